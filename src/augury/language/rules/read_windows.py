"""`every(1h, 5min, from = T, zone = 'Europe/Berlin')` and `previous(w)` (SEMANTICS 11)."""

from __future__ import annotations

from augury.algebra.clock_windows import Windows, unit_windows
from augury.algebra.terms import Const, Var
from augury.algebra.wall_time import DAY, UnknownZone, zone_of
from augury.core.clock import Duration, Timestamp
from augury.core.errors import Findings, misspelt
from augury.language.rules import syntax as s
from augury.language.rules.show import show_node

_UNITS = ("day", "week", "month", "quarter", "year")
_FORM = "write `w: every(1h)`, `every(1h, 5min)`, `every(month, zone = 'Europe/Berlin')`"
ELSEWHERE = {"tumble", "tumbling", "hop", "hopping", "slide", "sliding", "window", "time_window"}


class WindowReader:
    """Reads the arguments of `every`."""

    def __init__(self, call: s.CallTerm, tick: int | None, findings: Findings) -> None:
        self.call, self.tick, self.findings = call, tick, findings

    def windows(self) -> Windows | None:
        places = [a for a in self.call.args if not is_named(a)]
        named = {a.operands[0].text: a.operands[1] for a in self.call.args if is_named(a)}  # type: ignore[union-attr]
        for name in named.keys() - {"from", "zone"}:
            hint = "it takes a size, a hop, `from = T` and `zone = '…'`"
            return self._wrong(f"`every` has no argument `{name}`", self.call, hint)
        if len(places) not in (1, 2):
            return self._wrong("`every` takes a size and, if need be, a hop", self.call)
        zone = self._zone(named.get("zone"))
        if isinstance(zone, bool):
            return None
        unit_and_size = self._size(places[0], zone)
        if unit_and_size is None:
            return None
        unit, size = unit_and_size
        hop = size
        if len(places) == 2:
            if unit == "month":
                return self._wrong("windows of months, quarters and years take no hop", places[1])
            other = self._size(places[1], zone)
            if other is None:
                return None
            if other[0] == "month":
                return self._wrong("a hop is a length of time", places[1])
            hop = other[1]
        return self._checked(unit, size, hop, named.get("from"), zone)

    def _checked(self, unit: str, size: int, hop: int, origin: s.Node | None, zone: str | None) -> Windows | None:
        if size <= 0 or hop <= 0:
            return self._wrong("windows have a length, and begin one after the other", self.call)
        if zone is not None and unit != "month" and (size % DAY or hop % DAY):
            message = "in a time zone windows are whole days, weeks, months, quarters or years"
            hint = "leave the zone out: hours and shorter go by elapsed time"
            return self._wrong(message, self.call, hint)
        if self.tick is not None and (unit != "us" or size % self.tick or hop % self.tick):
            return self._wrong("on a logical clock windows are whole numbers of ticks", self.call)
        match origin:
            case None:
                begins: Timestamp | int | None = None
            case Const(value=Timestamp() | int() as begins) if not isinstance(begins, bool):
                pass
            case _:
                hint = "write `from = @'2026-01-31 06:00'`"
                return self._wrong(f"`{show_node(origin)}` is no time to count windows from", origin, hint)
        return Windows(unit, size, hop, begins, zone)  # type: ignore[arg-type]

    def _zone(self, node: s.Node | None) -> str | bool | None:
        if node is None:
            return None
        name = node.value if isinstance(node, Const) else node.text if isinstance(node, s.BareName) else None
        try:
            zone_of(str(name))
        except UnknownZone as error:
            self.findings.add("E268", str(error), node.span)
            return False
        return None if name == "UTC" else str(name)

    def _size(self, node: s.Node, zone: str | bool | None) -> tuple[str, int] | None:
        where = zone if isinstance(zone, str) else None
        match node:
            case Const(value=Duration() as length):
                return ("us" if where is None else "day"), length.us
            case Const(value=int() as ticks) if self.tick is not None and not isinstance(ticks, bool):
                return "us", ticks * self.tick
            case s.BareName(text=unit) if unit in _UNITS:
                return unit_windows(unit, where)
            case s.BareName(text=unit):
                close = misspelt(unit, _UNITS)
                self._wrong(f"`{unit}` is no size of windows", node, f"did you mean `{close}`?" if close else _FORM)
            case Var():
                self._wrong("the size of windows is written in the rule", node)
            case _:
                self._wrong(f"`{show_node(node)}` is no size of windows", node)
        return None

    def _wrong(self, message: str, node: s.Node, hint: str = _FORM) -> Windows | None:
        self.findings.add("E268", message, node.span, hint=hint)
        return None


def is_named(node: s.Node) -> bool:
    return isinstance(node, s.Chain) and node.ops == ("=",) and isinstance(node.operands[0], s.BareName)
