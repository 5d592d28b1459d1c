"""Program text cut into statements at its full stops, so that every statement gets its own syntax error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from augury.core.errors import Source
from augury.language.rules.syntax import Comments
from augury.language.spaseq import tokens as spaseq

COLON = "\ua789"  # stands for the colon of a prefixed name: same length, so spans stay true
PIECES = re.compile(
    r"""(?P<string>'[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*")
      | (?P<comment>[%\#][^\n]*|/\*.*?\*/)
      | (?P<iri><[A-Za-z][A-Za-z0-9+.-]*:[^\s<>"{}|\\^`]*>)
      | (?P<end>\.(?!\s*\[)(?=\s|$|[%\#]|/\*))
      | (?P<pname>(?<![\w])[A-Za-z_]\w*:[A-Za-z_][\w-]*)
      | (?P<other>\w+|\s+|.)""",
    re.VERBOSE | re.DOTALL,
)
INSIDE = "\ue000"  # stands for all characters of GRAPH but its word
_STREAM = re.compile(r"\s*(<[^<>\s]*>|(?:[A-Za-z_][\w-]*)?:[\w-]+)\s*\{")
_REST_OF_LINE = re.compile(r"[ \t]*([%#][^\n]*|/\*.*?\*/[ \t]*(?=\n|$))")


def _graph(text: str, offset: int) -> int | None:
    """Where `GRAPH <stream> { … }` ends, whose word is before a place; None where it is something else."""
    opening = _STREAM.match(text, offset)
    if opening is None:
        return None
    depth = 0
    for piece in spaseq.pieces(text, opening.end() - 1):
        depth += {"{": 1, "}": -1}.get(piece.text, 0) if piece.kind == "sign" else 0
        if depth == 0:
            return piece.end
    return None


@dataclass
class StatementText:
    """One statement's characters: comments blanked, prefixed names marked."""

    start: int
    text: str
    comments: Comments
    closed: bool

    def split(self, offset: int) -> tuple[StatementText, StatementText]:
        return (
            StatementText(self.start, self.text[:offset], self.comments, False),
            StatementText(self.start + offset, self.text[offset:], Comments(), self.closed),
        )


def chunks(source: Source, prefixes: Mapping[str, str]) -> Iterator[StatementText]:
    """The statements of a text. `prefixes` is read again for each, because a statement may declare one."""
    text = source.text
    start, pieces, before, blank = 0, [], [], False
    pos, seen_code = 0, False
    while pos < len(text):
        piece = PIECES.match(text, pos)
        assert piece is not None, "the last alternative matches anything"
        kind, value = piece.lastgroup, piece.group()
        pos = piece.end()
        graph = _graph(text, pos) if value.upper() == "GRAPH" else None
        if graph is not None:  # its words are SPARQL's, and full stops in it end nothing
            before += [p.text.strip() for p in spaseq.pieces(text, pos, graph, comments=True) if p.kind == "comment"]
            pieces.append(value + INSIDE * (graph - pos))
            pos, seen_code = graph, True
            continue
        match kind:
            case "comment":
                before.append(value.strip())
                pieces.append(re.sub(r"[^\n]", " ", value))
            case "pname" if value.partition(":")[0] in prefixes:
                pieces.append(value.replace(":", COLON, 1))
                seen_code = True
            case "pname":
                # Only the label is taken, so that `o:order` and `o: order` read alike.
                pos = piece.start() + value.index(":") + 1
                pieces.append(value[: value.index(":") + 1])
                seen_code = True
            case "end":
                pieces.append(".")
                remaining = _REST_OF_LINE.match(text, pos)
                after = remaining.group(1).strip() if remaining else ""
                yield StatementText(start, "".join(pieces), Comments(tuple(before), after, blank), True)
                pos = remaining.end() if remaining else pos
                start, pieces, before, blank, seen_code = pos, [], [], False, False
            case _:
                if not value.isspace():
                    seen_code = True
                elif not seen_code and not before and value.count("\n") > 1 and start > 0:
                    blank = True
                pieces.append({COLON: "\ufffd", "\ufeff": " "}.get(value, value))  # a byte order mark is a blank
    yield StatementText(start, "".join(pieces), Comments(tuple(before), "", blank), False)
