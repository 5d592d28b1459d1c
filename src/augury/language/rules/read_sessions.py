"""`w: session(30min, click(U, _), most = 1d)`: session windows (SEMANTICS 12)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from augury.algebra.nodes import Scan, SessionWindow
from augury.algebra.terms import Const, Var, Wild, variables
from augury.core.clock import Duration
from augury.language.rules import syntax as s
from augury.language.rules.patterns import PatternReader
from augury.language.rules.read_windows import is_named
from augury.language.rules.session_form import is_session

__all__ = ["SessionReader", "is_session"]

_FORM = "write `w: session(30min, click(U, _))`, with `most = 1d` to bound it"


class SessionReader:
    """Reads the arguments of `session`; `used` says how often the rule names each variable."""

    def __init__(self, call: s.CallTerm, patterns: PatternReader, used: Counter[str]) -> None:
        self.call, self.patterns, self.used = call, patterns, used
        self.reader, self.symbols, self.findings = patterns.reader, patterns.symbols, patterns.findings

    def window(self) -> SessionWindow | None:
        places = [a for a in self.call.args if not is_named(a)]
        named = {a.operands[0].text: a.operands[1] for a in self.call.args if is_named(a)}  # type: ignore[union-attr]
        if 2 in self.symbols.arities.get("session", ()):
            message = "`session` is an event of two arguments in this program, so that it cannot be a window"
            self._wrong(message, self.call, "give the event another name")
            return None
        if named.keys() - {"most"} or len(places) != 2:
            self._wrong("`session` takes a length, an atom and, if need be, `most = 1d`", self.call)
            return None
        gap, most = self._length(places[0]), self._length(named["most"]) if "most" in named else None
        if gap is None or ("most" in named and most is None):
            return None
        scan = self.patterns.pattern(places[1])
        if not isinstance(scan, Scan):
            if scan is not None:
                self._wrong(
                    "a session is of the occurrences of one event", places[1], "give the pattern a rule of its own"
                )
            return None
        scan = self._without_single(scan)
        return None if scan is None else SessionWindow(scan, gap, most, self.call.span)

    def _without_single(self, scan: Scan) -> Scan | None:
        """The atom with `_` for variables like `_V` that stand nowhere else; others that do not make no key."""
        inside = Counter(part.name for node in self.call.args for part in s.walk(node) if isinstance(part, Var))
        single = {name for name in variables(*scan.args) if self.used[name] == inside[name]}
        for arg in scan.args:
            for name in sorted(variables(arg) & {v for v in single if not v.startswith("_")}):
                message = f"`{name}` stands nowhere else in the rule: is it part of the key?"
                hint = "write `_` to match any value, or use it in the head: there is a session for each value"
                self.findings.add("E276", message, arg.span, hint=hint)
                return None
        return replace(
            scan, args=tuple(Wild(a.span) if isinstance(a, Var) and a.name in single else a for a in scan.args)
        )

    def _length(self, node: s.Node) -> int | None:
        tick = self.symbols.tick
        match node:
            case Const(value=Duration() as length) if length.us > 0:
                if tick is None or length.us % tick == 0:
                    return length.us
                self._wrong(f"{node.span.quoted} is not a whole number of ticks", node, "declare a finer tick")
            case Const(value=int() as ticks) if not isinstance(ticks, bool) and ticks > 0:
                if tick is not None:
                    return ticks * tick
                hint = f"write `{ticks}s` or `{ticks}min`; ticks count where the program declares `tick`"
                self._wrong("a duration needs a unit", node, hint)
            case _:
                self._wrong(f"{node.span.quoted} is no constant duration above 0", node)
        return None

    def _wrong(self, message: str, node: s.Node, hint: str = _FORM) -> None:
        self.findings.add("E276", message, node.span, hint=hint)
