"""The physical plan in words: operators with their keys, conditions in order, columns, kept state and metrics.

4 m(X)
└─ 3 join SEQ, on X, within 10s → X; keeps left 10s
   ├─ 1 a(X)
   └─ 2 b(X)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from augury.algebra.nodes import GAP, AnyOf, Compare, Condition
from augury.algebra.plan import Plan
from augury.algebra.terms import Const, show
from augury.core.bounds import FAR
from augury.core.clock import Clock, show_duration
from augury.core.fields import FIELDS
from augury.engine.inspect import OperatorMetrics, numbered
from augury.explain.tree import Flowchart, Tree
from augury.explain.wording import at_most_text, collect_text, part_words, run_words, show_all, show_condition, top_text
from augury.planner import specs as s


class OperatorPlan:
    """The operators of a program, numbered in the order in which they were built, with what each has cost so far."""

    def __init__(
        self,
        plan: Plan,
        specs: Iterable[s.Spec],
        heads: Mapping[str, s.DeriveSpec],
        clock: Clock,
        metrics: Mapping[s.Spec, OperatorMetrics] | None = None,
    ) -> None:
        self.number = numbered(specs)
        self.specs = list(self.number)
        self.plan, self.heads, self.clock, self.metrics = plan, heads, clock, metrics or {}
        self._shown: dict[s.Spec, str] = {}  # in which rule an operator has been shown

    # Trees

    def tree(self, label: str) -> Tree:
        """The operators of a rule, from its head down. What another rule has shown is one line."""
        return self._tree(self.heads[label].reading(), label)

    def _tree(self, rows: s.Reading, label: str, prefix: str = "") -> Tree:
        spec = rows.source
        text = f"{prefix}{self.number[spec]} {_event(rows) or self.words(spec)}"
        shown = None if _event(rows) else self._shown.setdefault(spec, label)
        if shown is not None and shown != label:
            return Tree(f"{text} (as in rule {shown})")
        if spec in self.metrics:
            text += f"\n{self.metrics[spec]}"
        below = () if isinstance(spec, s.ScanSpec) else _inputs(spec)  # a scan names its events itself
        return Tree(text, tuple(self._tree(rows, label, role) for rows, role in below))

    def words(self, spec: s.Spec) -> str:
        """An operator in one line."""
        if isinstance(spec, s.DeriveSpec):
            return _head(spec)
        columns = f" → {', '.join(_columns(spec))}" if _columns(spec) else ""
        keeps = ", ".join(text for kept in spec.keeps if (text := self._kept(kept)))
        details = ", ".join(self._details(spec))
        return f"{spec.kind}{' ' if details else ''}{details}{columns}{f'; keeps {keeps}' if keeps else ''}"

    def _kept(self, kept: s.KeptState) -> str:
        if kept.count is not None:
            return f"{kept.what} the last {kept.count}"
        if kept.points <= 0:
            return ""
        return f"{kept.what} {'without bound' if kept.points >= FAR else self._length(kept.points)}"

    def _length(self, points: int) -> str:
        """A length; one that a strict bound makes a microsecond shorter is shown as it was written."""
        us = points * (self.clock.tick if self.clock.kind == "logical" else 1)
        return show_duration(us + 1 if us % 1000 == 999 else us)

    def _details(self, spec: s.Spec) -> list[str]:
        """Keys, times, conditions in evaluation order, and the algorithm."""
        match spec:
            case s.InputSpec() | s.SetSpec():
                return [f"{spec.type}/{spec.arity}"]
            case s.ScanSpec():
                return [f"{_scanned(spec)}", *_where(spec.where)]
            case s.SelectSpec():
                within = [f"within {self._length(spec.longest)}"] if spec.longest is not None else []
                return [*within, *_where(spec.where)]
            case s.JoinSpec():
                windows = [f"within {show_duration(min(spec.node.windows))}"] if spec.node.windows else []
                times = [f"with {show_all(spec.related)}"] if spec.related else []
                return [spec.node.op, *_on(spec.keys, spec.open), *windows, *times, *_where(spec.where)]
            case s.AgreeSpec():
                return [*_on((), spec.shared), *_where(spec.where)]
            case s.ChoiceSpec():
                return [spec.policy.name]
            case s.AbsenceSpec():
                where = "between its parts" if spec.window.startswith(GAP) else f"in {spec.window}"
                return [where, *_on(spec.keys, spec.open), *_where(spec.where)]
            case s.CollectSpec():
                how = "running totals" if isinstance(spec, s.RangedCollectSpec) else "listed members"
                return [collect_text(spec.collect), *_on(spec.keys, spec.open), how]
            case s.PanesSpec():
                ranged = ["running totals"] if spec.ranged else []
                return [collect_text(spec.collect), spec.windows.text, *ranged]
            case s.ClockWindowsSpec():
                return [spec.windows.text]
            case s.SessionSpec():
                return [f"with gaps of {self._length(spec.gap)}", *_on(spec.out.vars)]
            case s.MomentsSpec():
                return [f"per {', '.join(spec.run_key)}"] if spec.run_key else []
            case s.RunSpec():
                return [*run_words(spec.run), f"algorithm {spec.algorithm}"]
            case s.RankingSpec():
                return [top_text(spec.head.top).removeprefix("top ")] if spec.head.top else []
            case s.ThrottleSpec():
                every = None if spec.every is None else self._length(spec.every)
                return [at_most_text(spec.count, spec.per, every).removeprefix("at most ")]
            case s.UnfoldSpec():
                return [f"({', '.join(spec.binds)}) of {show(spec.of)}"]
            case s.GraphSpec():
                return [_short(spec.node.pattern)]
            case s.PointSpec():
                return [str(self.clock.show(spec.time))]
            case s.LearnSpec():
                return [f"{spec.predicate[0]}/{spec.predicate[1]}"]
        return []

    # JSON, Mermaid

    def filters(self, labels: Iterable[str]) -> dict[str, str]:
        """The conditions on one event under which rules read an input; not of one that some operator reads as it is."""
        ways: dict[str, list[str]] = {}
        for spec in self.below(labels):
            for rows in spec.inputs:
                if isinstance(rows.source, s.InputSpec):
                    ways.setdefault(rows.source.type, []).append(_tested(spec) if isinstance(spec, s.ScanSpec) else "")
        return {type: " or ".join(dict.fromkeys(texts)) for type, texts in sorted(ways.items()) if all(texts)}

    def below(self, labels: Iterable[str]) -> list[s.Spec]:
        """The operators that rules need: from their heads down to events of types."""
        reached: dict[s.Spec, None] = {}
        ahead: list[s.Spec] = [self.heads[label] for label in labels if label in self.heads]
        while ahead:
            spec = ahead.pop()
            if spec not in reached:
                reached[spec] = None
                ahead += [rows.source for rows in spec.inputs]
        return sorted(reached, key=self.number.__getitem__)

    def numbers(self, specs: Iterable[s.Spec]) -> str:
        """The numbers of operators, events of types aside: `3 to 7, 12`."""
        numbers = sorted({self.number[spec] for spec in specs if not isinstance(spec, s.InputSpec | s.SetSpec)})
        runs: list[list[int]] = []
        for number in numbers:
            if runs and runs[-1][-1] == number - 1:
                runs[-1].append(number)
            else:
                runs.append([number])
        return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)

    def as_json(self) -> list[dict[str, Any]]:
        """All operators as plain data."""
        return [
            {
                "number": self.number[spec],
                "operator": spec.kind,
                "rule": spec.rule,
                "text": self.words(spec),
                "inputs": [self.number[rows.source] for rows in spec.inputs],
                "derived_from": [self.number[spec.inputs[i].source] for i in spec.derived_from],
                "columns": self._typed_columns(spec),
                "keeps": [self._kept_json(kept) for kept in spec.keeps],
                "metrics": self.metrics[spec]._asdict() if spec in self.metrics else None,
            }
            for spec in self.specs
        ]

    def _typed_columns(self, spec: s.Spec) -> list[dict[str, str]]:
        """Variables with their types, labels, which have times, and of events the arguments."""
        if isinstance(spec, s.InputSpec | s.SetSpec):
            return [{"name": f"argument {i}", "type": type or "any"} for i, type in enumerate(spec.types, 1)]
        types = dict(zip(spec.out.vars, spec.types, strict=True)) | dict.fromkeys(spec.out.labels, "interval")
        return [{"name": name, "type": types.get(name) or "any"} for name in _columns(spec)]

    def _kept_json(self, kept: s.KeptState) -> dict[str, object]:
        return {"what": kept.what, "for": self._kept(kept).removeprefix(f"{kept.what} ") or "0s"}

    def draw(self, chart: Flowchart) -> None:
        """Boxes for events and operators, from inputs to derived events; the way in of a derived type is left out."""
        for spec in self.specs:
            if isinstance(spec, s.InputSpec | s.SetSpec) or (isinstance(spec, s.DeriveSpec) and not spec.rule):
                continue
            if isinstance(spec, s.DeriveSpec):
                for rows, _ in _inputs(spec):
                    chart.arrow(self._box(chart, rows.source), self._box(chart, spec.events))
                continue
            here = self._box(chart, spec)
            for rows, role in _inputs(spec):
                source = self._box(chart, rows.source)
                chart.arrow(source, here, role.removesuffix(": "), dotted=role == "absent: ")

    def _box(self, chart: Flowchart, spec: s.Spec) -> str:
        match spec:
            case s.InputSpec():
                return chart.box(spec.type, ("[/", "/]"), ("event", spec.type))[0]
            case s.SetSpec():
                return chart.box(spec.type, ("([", "])"), ("event", spec.type))[0]
        metrics = f"\n{self.metrics[spec]}" if spec in self.metrics else ""
        return chart.box(self.words(spec) + metrics, key=spec)[0]


def _event(rows: s.Reading) -> str:
    """The atom that reads the events of a type; nothing where rows are no events."""
    spec = rows.source
    if not isinstance(spec, s.InputSpec | s.SetSpec):
        return ""
    names = {field - FIELDS: name for name, field in rows.vars.items()}
    args = [names.get(i, "_") for i in range(spec.arity)]
    return f"{spec.type}({', '.join(args)})" if args else spec.type


def _scanned(spec: s.ScanSpec) -> str:
    """The atom of a scan, whose arguments are patterns or plain variables."""
    source, args = spec.inputs[0].source, {i: show(expr) for i, expr in spec.args}
    assert isinstance(source, s.InputSpec | s.SetSpec)
    names = {field - FIELDS: name for name, field in spec.inputs[0].vars.items()} | args
    shown = [names.get(i, "_") for i in range(source.arity)]
    return f"{source.type}({', '.join(shown)})" if shown else source.type


def _tested(spec: s.ScanSpec) -> str:
    """What a scan asks of one event, facts aside."""
    fixed = [f"argument {i + 1} = {show(expr)}" for i, expr in spec.args if isinstance(expr, Const)]
    return " and ".join([*fixed, *(show_condition(c) for c in spec.where if isinstance(c, Compare | AnyOf))])


def _head(spec: s.DeriveSpec) -> str:
    args = f"({', '.join(map(show, spec.args))})" if spec.args else ""
    covers = f" covering {', '.join(spec.covers)}" if spec.covers else ""
    since = "" if spec.since is None else f" since {'END' if spec.since == 'END' else show(spec.since)}"
    return f"{spec.events.type}{args}{covers}{since}"


def _inputs(spec: s.Spec) -> Iterator[tuple[s.Reading, str]]:
    """The inputs of an operator, each with its role in words."""
    match spec:
        case s.MomentsSpec():
            parts = {rows.source for rows in spec.inputs[spec.among :]}
            among = {rows.source: rows for rows in spec.inputs[: spec.among] if rows.source not in parts}
            yield from ((rows, "between: ") for rows in among.values())
        case s.RunSpec():
            yield spec.moments.reading(), ""
            for number, (rows, part) in enumerate(zip(spec.parts, spec.run.parts, strict=True)):
                words = part_words(part, linked=number > 0)
                yield rows, f"{words}: " if words else ""
        case s.JoinSpec() | s.AbsenceSpec():
            count = len(spec.derived_from)
            yield from ((rows, "" if i < count else "absent: ") for i, rows in enumerate(spec.inputs))
        case s.CollectSpec():
            yield from zip(spec.inputs, ("", "collected: "), strict=True)
        case _:
            yield from ((rows, "") for rows in spec.inputs)


def _columns(spec: s.Spec) -> list[str]:
    """Variables and labels; columns that no rule names, and those of the key of a run, are left out."""
    if isinstance(spec, s.MomentsSpec):
        return []
    return [name for name in (*spec.out.vars, *spec.out.labels) if not name.startswith("#")]


def _where(where: tuple[Condition, ...]) -> list[str]:
    return [f"where {show_all(where)}"] if where else []


def _on(keys: Iterable[str], unbound: Iterable[str] = ()) -> list[str]:
    both = (("on", tuple(keys)), ("agree on", tuple(unbound)))
    return [f"{word} {', '.join(names)}" for word, names in both if names]


def _short(text: str) -> str:
    """The beginning of a graph pattern."""
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:60]}…"
