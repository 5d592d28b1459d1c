"""A tree of lines, and a flow chart: the two forms in which all explanations are shown."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Tree:
    """A text, the first line of which stands at its place, and what is below it."""

    text: str
    children: tuple[Tree, ...] = ()
    kind: str = "operator"

    def lines(self, first: str = "", rest: str = "") -> Iterator[str]:
        head, *more = self.text.split("\n")
        yield first + head
        yield from (f"{rest}{'│' if self.children else ' '}    {line}" for line in more)
        for number, child in enumerate(self.children, 1):
            last = number == len(self.children)
            yield from child.lines(rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def as_json(self) -> dict[str, Any]:
        below = {"children": [c.as_json() for c in self.children]} if self.children else {}
        return {"text": self.text, "kind": self.kind, **below}


class Flowchart:
    """A Mermaid flow chart: boxes of some shape, such as `[/` and `/]`, and arrows between them."""

    def __init__(self, direction: str) -> None:
        self._lines = [f"flowchart {direction}"]
        self._names: dict[Hashable, str] = {}

    def box(self, text: str, shape: tuple[str, str] = ("[", "]"), key: Hashable = None) -> tuple[str, bool]:
        """The name of a box, and whether it is new: there is one for each key."""
        key = ("box", len(self._names)) if key is None else key
        if key in self._names:
            return self._names[key], False
        name = self._names[key] = f"n{len(self._names)}"
        self._lines.append(f"  {name}{shape[0]}{_quoted(text)}{shape[1]}")
        return name, True

    def arrow(self, source: str, target: str, text: str = "", dotted: bool = False) -> None:
        if dotted:
            self._lines.append(f"  {source} -. {text} .-> {target}")
        else:
            self._lines.append(f"  {source} -->{f'|{_quoted(text)}|' if text else ''} {target}")

    def __str__(self) -> str:
        return "\n".join(self._lines)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;") + '"'
