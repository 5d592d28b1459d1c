"""Where names stand in a query in SPAseQ: variables, graph patterns, streams and prefixes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from augury.core.errors import Findings, Source, Span
from augury.editor.name_occurrences import NameOccurrence
from augury.language.spaseq import query_tree as t
from augury.language.spaseq.query_reader import read_query
from augury.language.spaseq.tokens import pieces


def query_occurrences(source: Source, tree: t.QueryTree | None = None) -> list[NameOccurrence]:
    """All names of a query, in the order of the text. Of one that cannot be read, its variables and prefixes."""
    tree = tree or read_query(source, Findings())
    names = [*_words(source), *(_structure(tree) if tree is not None else ())]
    return sorted(names, key=lambda name: (name.span.start, name.span.end))


def _words(source: Source) -> Iterator[NameOccurrence]:
    """Variables and prefixes, which are words of their own wherever they stand."""
    sequences = [(m.start, m.end) for m in _sequences(source)]
    declaring = False
    for piece in pieces(source.text, source=source):
        if any(start <= piece.start < end for start, end in sequences):
            continue
        if piece.kind == "var":
            yield NameOccurrence("variable", piece.text[1:], piece.span)
        elif piece.kind == "pname":
            prefix = piece.text.partition(":")[0]
            span = Span(source, piece.start, piece.start + len(prefix))
            yield NameOccurrence("prefix", prefix, span, "declaration" if declaring else "reference")
        declaring = piece.is_word("PREFIX")


def _sequences(source: Source) -> list[Span]:
    """The parentheses of SEQ, where `A:B` is a sequence and no name."""
    spans, depth, start, opening = [], 0, 0, False
    for piece in pieces(source.text):
        if piece.is_word("SEQ") and depth == 0:
            opening = True
        elif piece.text == "(" and (opening or depth):
            start = piece.start if depth == 0 else start
            depth, opening = depth + 1, False
        elif piece.text == ")" and depth:
            depth -= 1
            if depth == 0:
                spans.append(Span(source, start, piece.end))
        else:
            opening = False
    return spans


def _structure(tree: t.QueryTree) -> Iterator[NameOccurrence]:
    for clause in tree.clauses:
        if isinstance(clause, t.FromStream):
            yield NameOccurrence("stream", clause.name.text, clause.name.span, "definition")
    for sequence in tree.sequences:
        yield from _used([item.operand for item in sequence.items])
    for define in tree.defines:
        yield NameOccurrence("gpm", define.name.text, define.name.span, "definition")
        yield from (NameOccurrence("stream", name.text, name.span) for name in define.streams)


def _used(operands: Iterable[t.OperandText]) -> Iterator[NameOccurrence]:
    for operand in operands:
        if isinstance(operand, t.Joined):
            yield from _used(operand.operands)
        else:
            yield NameOccurrence("gpm", operand.text, operand.span)
