"""Syntax tree to text, such that reading the text gives the tree again; comments are kept. `augury fmt` is this printer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from augury.core.errors import Span
from augury.language.spaseq import query_tree as t
from augury.language.spaseq.tokens import SparqlToken, pieces_of

WIDTH = 100
INDENT = "  "
_STATEMENTS = ("FILTER", "OPTIONAL", "GRAPH", "BIND", "VALUES", "MINUS", "SERVICE")


def show_query(tree: t.QueryTree) -> str:
    """A query as text."""
    return _Printer(tree).text()


class _Printer:
    def __init__(self, tree: t.QueryTree) -> None:
        self.tree = tree
        self.comments = list(tree.comments)
        self.lines: list[str] = []

    def text(self) -> str:
        tree = self.tree
        for entry in tree.prologue:
            self._unit(entry.span, [_prologue(entry)])
        if tree.prologue:
            self._blank()
        self._unit(tree.answer.span, _answer(tree.answer))
        for clause in tree.clauses:
            self._unit(clause.span, [_clause(clause)])
        self.lines.append("WHERE {")
        for sequence in tree.sequences:
            words = [f"SEQ({show_items(sequence.items)})", *_choice(sequence.choice)]
            self._unit(sequence.span, [" ".join(words)], INDENT)
        for define in tree.defines:
            self._blank()
            names = ", ".join(name.text for name in define.streams)
            first, *rest = group_lines(define.pattern.span)
            self._unit(
                define.span, [f"DEFINE GPM {define.name.text} ON {names} {first}", *rest], INDENT, define.pattern.span
            )
        self._rest(self._closing())
        self.lines.append("}")
        for modifier in tree.modifiers:
            self._unit(modifier.span, [_modifier(modifier)])
        self._rest(None)
        return "\n".join(self.lines) + "\n"

    def _closing(self) -> int | None:
        """Where comments no longer stand inside the braces: at the first modifier."""
        return self.tree.modifiers[0].span.start if self.tree.modifiers else self.tree.span.end

    def _blank(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def _unit(self, span: Span, lines: list[str], indent: str = "", inner: Span | None = None) -> None:
        """Lines with the comments that stand before them, inside them, and behind them on the same line.

        Those inside `inner` are among the lines already.
        """
        text = span.source.text
        after = [c for c in self.comments if c.start >= span.end and "\n" not in text[span.end : c.start]]
        for comment in [c for c in self.comments if c.start < span.end]:
            if inner is None or not inner.start <= comment.start < inner.end:
                self.lines.append(indent + comment.text)
        self.lines += [indent + line for line in lines]
        if after and not text[span.end : after[0].start].strip(" \t,;:)}"):
            self.lines[-1] += f"  {after[0].text}"
            self.comments.remove(after[0])
        self.comments = [c for c in self.comments if c.start >= span.end]

    def _rest(self, end: int | None) -> None:
        """Comments that stand before the end of something."""
        for comment in [c for c in self.comments if end is None or c.start < end]:
            self.lines.append((INDENT if end is not None else "") + comment.text)
            self.comments.remove(comment)


def _prologue(entry: t.Base | t.QueryPrefix) -> str:
    return f"BASE <{entry.iri}>" if isinstance(entry, t.Base) else f"PREFIX {entry.name} <{entry.iri}>"


def _answer(answer: t.SelectClause | t.ConstructClause) -> list[str]:
    match answer:
        case t.SelectClause():
            words = " ".join(["SELECT", *([answer.distinct] if answer.distinct else [])])
            return _filled(words, [_expression(c) for c in answer.columns] or ["*"])
        case t.ConstructClause():
            lines = group_lines(answer.template.span)
            lines[0] = f"CONSTRUCT {lines[0]}"
            if answer.into is not None:
                lines[-1] += f" INTO {answer.into.text}"
            return lines
        case _:
            assert_never(answer)


def _filled(first: str, words: Sequence[str]) -> list[str]:
    """Words in lines that are not too long."""
    lines = [first]
    for word in words:
        if len(lines[-1]) + len(word) >= WIDTH:
            lines.append(INDENT + word)
        else:
            lines[-1] += f" {word}"
    return lines


def _clause(clause: t.Clause) -> str:
    match clause:
        case t.WithinClause():
            origin = f" FROM {clause.origin.text}" if clause.origin else ""
            tumbling = " TUMBLING" if clause.tumbling else ""
            return f"WITHIN {clause.count.text} {clause.unit.text.upper()}{tumbling}{origin}"
        case t.Partition():
            return f"PARTITION BY ({', '.join('?' + v.text for v in clause.variables)})"
        case t.FromStream():
            return f"FROM STREAM {clause.name.text} {clause.iri.text}"
        case t.FromGraph():
            return f"FROM {'NAMED ' if clause.named else ''}{clause.iri.text}"
        case _:
            assert_never(clause)


def show_items(items: Sequence[t.ItemText]) -> str:
    """What stands in the parentheses of SEQ."""
    text = ""
    for number, item in enumerate(items):
        between = "" if not number else " : " if item.separator == ":" else f"{item.separator} "
        text += between + _operand(item.operand) + item.quantifier
    return text


def _choice(choice: t.ChoiceText | None) -> Iterator[str]:
    if choice is None:
        return
    if choice.which:
        yield choice.which
    if choice.skip:
        yield f"SKIP {choice.skip}{f' {choice.to.text}' if choice.to else ''}"


def _operand(operand: t.OperandText) -> str:
    match operand:
        case t.QueryName():
            return operand.text
        case t.Joined():
            first, *rest = map(_operand, operand.operands)
            return f"({' '.join([first, *(f'{j} {o}' for j, o in zip(operand.joiners, rest, strict=True))])})"
        case _:
            assert_never(operand)


def _modifier(modifier: t.Modifier) -> str:
    match modifier:
        case t.GroupBy():
            return " ".join(["GROUP BY", *map(_expression, modifier.keys)])
        case t.Having():
            return " ".join(["HAVING", *map(_expression, modifier.conditions)])
        case t.OrderBy():
            return " ".join(["ORDER BY", *map(_key, modifier.keys)])
        case t.LimitClause():
            return f"LIMIT {modifier.count.text}"
        case t.Offset():
            return f"OFFSET {modifier.count.text}"
        case _:
            assert_never(modifier)


def _key(key: t.Key) -> str:
    text = _expression(key.expression)
    if not key.direction:
        return text
    return f"{key.direction}{text if text.startswith('(') else f' {text}'}"


def _expression(part: t.QueryName | t.Sparql) -> str:
    if isinstance(part, t.QueryName):
        return f"?{part.text}"
    return "".join(_spaced(pieces_of(part.span)))


def _spaced(words: Sequence[SparqlToken]) -> Iterator[str]:
    """Words as they stand in the source, with one blank where there are several, and none inside parentheses."""
    for number, piece in enumerate(words):
        before = words[number - 1] if number else None
        glued = before is None or piece.lines is None or before.text == "(" or piece.text in (")", ",")
        yield ("" if glued else " ") + piece.written


# Graph patterns


def group_lines(span: Span) -> list[str]:
    """A graph pattern, or a template, on lines of its own: a triple each, groups indented."""
    return _PrintedGroup(pieces_of(span, comments=True)).lines()


def _short(lines: list[str]) -> list[str]:
    """Groups with one line inside stand on one line, where that is not too long."""
    result: list[str] = []
    for line in lines:
        result.append(line)
        if len(result) > 2 and result[-3].endswith("{") and line.lstrip().startswith("}"):
            joined = f"{result[-3]} {result[-2].strip()} {line.strip()}"
            if "#" not in result[-2] and result[-2].strip() not in ("}", "{") and len(joined) < WIDTH - 20:
                result[-3:] = [joined]
    return result


class _PrintedGroup:
    def __init__(self, words: list[SparqlToken]) -> None:
        self.words, self.done = words, list[str]()
        self.line = ""
        self.depth = 0
        self.inside = 0  # parentheses and square brackets that are open
        self.continued = False  # after `;`
        self.alone = False  # a FILTER or BIND, which ends with its parentheses

    def lines(self) -> list[str]:
        for number, piece in enumerate(self.words):
            before = self.words[number - 1] if number else None
            after = self.words[number + 1] if number + 1 < len(self.words) else None
            self._add(piece, before, after)
        self._end()
        return _short(self.done)

    def _add(self, piece: SparqlToken, before: SparqlToken | None, after: SparqlToken | None) -> None:
        sign = piece.text if piece.kind == "sign" else ""
        if piece.kind == "comment":
            self._comment(piece)
        elif sign == "{":
            self.line += " {" if self.line else "{"
            self._end()
            self.depth += 1
            self.continued = False
        elif sign == "}":
            self._end()
            self.depth -= 1
            self.continued = False
            self.line = "}"
            if after is None or not (after.is_word("UNION") or after.text in (".", ")", "}")):
                self._end()
        elif sign in (".", ";") and not self.inside:
            self.line += f" {sign}" if self.line else sign
            if not (after is not None and after.kind == "comment" and not after.lines):
                self._end()
            self.continued = sign == ";"
        else:
            self._text(piece, before, after, sign)

    def _text(self, piece: SparqlToken, before: SparqlToken | None, after: SparqlToken | None, sign: str) -> None:
        if piece.is_word(*_STATEMENTS) and not self.inside:
            self._end()
            self.continued = False
            self.alone = piece.is_word("FILTER", "BIND")
        glued = (
            not self.line or piece.lines is None or (before is not None and before.text == "(") or sign in (")", ",")
        )
        self.line += ("" if glued else " ") + piece.written
        self.inside += {"(": 1, "[": 1, ")": -1, "]": -1}.get(sign, 0)
        if sign == ")" and not self.inside and self.alone:
            self.alone = False
            if after is None or after.text != ".":
                self._end()

    def _comment(self, piece: SparqlToken) -> None:
        behind = piece.lines in (None, 0) and (self.line or self.done)
        if behind and self.line:
            self.line += f"  {piece.text.rstrip()}"
            self._end()
        elif behind:
            self.done[-1] += f"  {piece.text.rstrip()}"
        else:
            self._end()
            self.done.append(INDENT * self.depth + piece.text.rstrip())

    def _end(self) -> None:
        if self.line:
            deeper = self.continued or (self.inside and not self.line.startswith("}"))
            self.done.append(INDENT * (self.depth + bool(deeper)) + self.line)
        self.line = ""
