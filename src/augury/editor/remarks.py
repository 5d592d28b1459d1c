"""Remarks for tools in the comments of a program: `%! events: sample.jsonl`, in SPAseQ `#! events: sample.nq`.

`events`, `facts` and `rdf` name the sample that the editor runs a program on, `with` other files of the same program,
`profile` what `augury profile --json` has written. Paths are relative to the file; several are separated by blanks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

KEYS = ("events", "facts", "rdf", "with", "profile", "until", "clock")
_REMARK = re.compile(r"^[ \t]*[%#]![ \t]*(?P<key>\w+)[ \t]*:[ \t]*(?P<value>[^\n]*?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Remarks:
    """What the comments of a file name. `line` is that of the first remark, from 0."""

    events: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    rdf: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    profile: str = ""
    until: str = ""
    clock: str = ""
    line: int = 0

    @property
    def fact_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.facts)


def read_remarks(text: str, path: Path) -> Remarks:
    """The remarks of a text; their paths are those that programs are told of."""
    if "!" not in text:
        return Remarks()
    values: dict[str, list[str]] = {}
    lines: list[int] = []
    for match in _REMARK.finditer(text):
        if match["key"] in KEYS:
            lines.append(text.count("\n", 0, match.start()))
            words = [match["value"]] if match["key"] in ("until", "clock") else match["value"].split()
            values.setdefault(match["key"], []).extend(words)
    folder = path.parent

    def located(word: str) -> str:
        name, equals, file = word.rpartition("=")
        return f"{name}{equals}{folder / file}"

    facts = [word.partition("=") for word in values.get("facts", ())]
    return Remarks(
        events=tuple(map(located, values.get("events", ()))),
        facts=tuple((name, str(folder / file)) for name, equals, file in facts if equals),
        rdf=tuple(str(folder / file) for file in values.get("rdf", ())),
        others=tuple(str(folder / file) for file in values.get("with", ())),
        profile=str(folder / values["profile"][0]) if values.get("profile") else "",
        until=next(iter(values.get("until", ())), ""),
        clock=next(iter(values.get("clock", ())), ""),
        line=lines[0] if lines else 0,
    )
