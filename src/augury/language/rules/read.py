"""Text to syntax tree: split at full stops, parse each statement, report every syntax error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from lark import Token, Tree, UnexpectedInput
from lark.exceptions import VisitError

from augury.algebra.sparql_conditions import KNOWN_PREFIXES
from augury.core.errors import Findings, Note, Source, Span
from augury.language.rules import syntax as s
from augury.language.rules.grammar import parser
from augury.language.rules.nesting import too_large
from augury.language.rules.parse_trees import Refused, TreeReader
from augury.language.rules.statements import COLON, StatementText, chunks
from augury.language.rules.syntax_errors import explain, next_statement

Loader = Callable[[str, Span], Source | None]


def read(source: Source, findings: Findings, load: Loader | None = None) -> list[s.Module]:
    """The modules of a source, included ones first. Syntax errors go to `findings`; what could be read is returned."""
    modules: list[s.Module] = []
    prefixes = dict(KNOWN_PREFIXES)
    findings.prefixes.update(prefixes)
    _read(source, findings, load, prefixes, modules, (source.name,))
    return modules


def _read(
    source: Source,
    findings: Findings,
    load: Loader | None,
    prefixes: dict[str, str],
    modules: list[s.Module],
    open_files: tuple[str, ...],
) -> None:
    statements: list[s.Statement] = []
    trailing: tuple[str, ...] = ()
    for chunk in chunks(source, prefixes):
        if not chunk.text.strip():
            trailing = chunk.comments.before
            continue
        for statement in parse_statement(chunk, source, findings, prefixes):
            if isinstance(statement, s.PrefixDecl):
                prefixes[statement.name] = findings.prefixes[statement.name] = statement.iri
            if isinstance(statement, s.Include) and load is not None:
                included = load(statement.path, statement.span)
                if included is not None and included.name in open_files:
                    message = f"`{statement.path}` includes itself"
                    findings.add(
                        "E103",
                        message,
                        statement.span,
                        Note("the way round: " + " → ".join([*open_files, included.name])),
                    )
                elif included is not None and all(m.span.source.name != included.name for m in modules):
                    _read(included, findings, load, prefixes, modules, (*open_files, included.name))
            statements.append(statement)
    modules.append(s.Module(tuple(statements), trailing, Span(source, 0, len(source.text))))


def parse_statement(
    chunk: StatementText, source: Source, findings: Findings, prefixes: dict[str, str]
) -> Iterator[s.Statement]:
    """The statement of a chunk; several where a full stop is missing before a line that begins one."""
    tree = _tree(chunk)
    while isinstance(tree, UnexpectedInput):
        cut = next_statement(tree, chunk)
        first, rest = chunk.split(cut or 0)
        shorter = _tree(first) if cut is not None else tree
        if isinstance(shorter, UnexpectedInput):
            explain(tree, chunk, source, findings)
            _unread(chunk, findings)
            return
        yield from _statement(shorter, first, source, findings, prefixes)
        chunk, tree = rest, _tree(rest)
    yield from _statement(tree, chunk, source, findings, prefixes)


def _tree(chunk: StatementText) -> Tree[Token] | UnexpectedInput:
    try:
        return parser().parse(chunk.text)
    except UnexpectedInput as error:
        return error


def _statement(
    tree: Tree[Token], chunk: StatementText, source: Source, findings: Findings, prefixes: dict[str, str]
) -> Iterator[s.Statement]:
    statement = _transform(tree, TreeReader(source, chunk.start, prefixes, findings))
    if statement is None:
        _unread(chunk, findings)
        return
    if not chunk.closed:
        end = chunk.start + len(chunk.text.rstrip())
        findings.add("E102", "a full stop is missing", Span(source, end, end + 1), hint="end every statement with `.`")
    yield replace(statement, comments=chunk.comments)


def _transform(tree: Tree[Token], reader: TreeReader) -> s.Statement | None:
    try:
        statement = reader.transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, Refused):
            return None
        raise
    assert isinstance(statement, s.Statement)
    if isinstance(statement, s.RuleStatement | s.StaticRule) and (problem := too_large(statement)) is not None:
        message, span, hint = problem
        reader.findings.add("E108", message, span, hint=hint)
        return None
    return statement


def _unread(chunk: StatementText, findings: Findings) -> None:
    """Suppresses findings about the names that an unreadable statement may define: those before an arrow."""
    lines = [re.split(r"<-|←|:-", line) for line in chunk.text.splitlines()]
    heads = [parts[0] for parts in lines if len(parts) > 1] or [chunk.text]
    for head in heads:
        findings.unread |= set(re.findall(r"[^\W\d]\w*", head))
        for prefix, local in re.findall(rf"(?<!\w)(\w+){COLON}([\w-]+)", head):
            findings.unread.add(findings.prefixes[prefix] + local)
