"""What choosing operators works with: the settings of a run, and the specs made so far, each once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from augury.algebra.nodes import (
    AnyOf,
    Compare,
    Condition,
    Graph,
    Holds,
    Label,
    Node,
    NoneInside,
    Relative,
    Run,
    Scan,
    Unfold,
    bound_vars,
    condition_labels,
    condition_terms,
    condition_vars,
    conditions,
    inputs,
    walk_all,
)
from augury.algebra.plan import Plan, Predicate
from augury.algebra.ready import ready_order
from augury.algebra.run_terms import run_labels, run_variables
from augury.algebra.sharing import canonical
from augury.algebra.strata import static_calls_of
from augury.algebra.terms import is_pure
from augury.algebra.timing import Lengths
from augury.core.clock import Clock
from augury.planner.specs import FrozenDict, InputSpec, Output, Reading, SetSpec, Spec


@dataclass(frozen=True)
class Needs:
    """The variables and labels that operators above a pattern read (projection)."""

    vars: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()

    def more(self, vars: Iterable[str] = (), labels: Iterable[str] = ()) -> Needs:
        return Needs(self.vars | set(vars), self.labels | set(labels))

    def of(self, where: Iterable[Condition]) -> Needs:
        """Also what conditions read."""
        needs = self
        for condition in where:
            needs = needs.more(condition_vars(condition), condition_labels(condition))
            if isinstance(condition, NoneInside):
                needs = needs.more(labels={name for c in condition.where for name in condition_labels(c)})
        return needs


@dataclass(frozen=True)
class Setting:
    """What a plan depends on beside the program.

    `changing` are static predicates whose facts change while the program runs, `varying` those whose answers change in
    time. `since` has the rules that see just events that start after a time.
    """

    clock: Clock
    lengths: Lengths | None = None
    changing: Collection[str] = frozenset()
    varying: Collection[str] = frozenset()
    retention: int | None = None
    since: Mapping[str, int | None] = field(default_factory=dict)


Choose = Callable[["Planning", Node, Needs, str], Reading]


class Planning:
    """The specs of a program, in an order in which each comes after its inputs.

    It outlives a plan: rules that are added later share what is there.
    """

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self.plan, self.setting = Plan(), Setting(Clock("logical"))
        self.specs: dict[Spec, Spec] = {}
        self.new: list[Spec] = []  # since the last plan
        self._patterns: dict[tuple[object, ...], Reading] = {}
        self._by_spec: dict[Spec, list[tuple[object, ...]]] = {}
        self._serials = 0
        self.learning: set[Predicate] = set()  # whose facts events make

    def add(self, spec: Spec, where: Iterable[Condition] = ()) -> Reading:
        """The output of a spec; an equal one that exists already takes its place, unless it calls impure functions."""
        if not all(is_pure(*condition_terms(c)) for c in where):
            self._serials += 1
            spec = replace(spec, serial=self._serials)
        kept = self.specs.get(spec)
        if kept is None:
            kept = self.specs[spec] = spec
            self.new.append(spec)
        return kept.reading()

    def take_new(self) -> list[Spec]:
        """The specs that were added since the last call."""
        new, self.new = self.new, []
        return new

    def forget(self, spec: Spec) -> None:
        """Its operator is gone."""
        self.specs.pop(spec, None)
        self.new = [one for one in self.new if one != spec]
        for key in self._by_spec.pop(spec, ()):
            self._patterns.pop(key, None)

    def input(self, type: Predicate) -> InputSpec:
        spec = self.add(InputSpec(type=type[0], arity=type[1])).source
        assert isinstance(spec, InputSpec)
        return spec

    def events(self, type: Predicate) -> SetSpec:
        """The set of a derived type."""
        spec = self.add(_set_spec(type)).source
        assert isinstance(spec, SetSpec)
        return spec

    def has_set(self, type: Predicate) -> bool:
        return _set_spec(type) in self.specs

    def changes(self, condition: Condition) -> bool:
        """Whether a condition asks for facts that may change while the program runs."""
        return any(name in self.setting.changing for name, _ in static_calls_of(condition))

    def pattern(self, node: Node, needs: Needs, rule: str) -> Reading:
        """The rows of a pattern. Sub-plans that are equal up to the names of variables and labels are one (sharing)."""
        names: dict[str, str] = {}
        form = canonical(node, names)
        needs = Needs(needs.vars & possible_vars(node), needs.labels & possible_labels(node))
        label_names = {name: names.get(f"label {name}", name) for name in possible_labels(node)}
        asks = any(isinstance(c, Holds | AnyOf) for n in walk_all(node) for c in conditions(n))
        key = (
            form,
            tuple(sorted(names.get(v, v) for v in needs.vars)),
            tuple(sorted(label_names[name] for name in needs.labels)),
            asks and bool(self.setting.varying),
            self.setting.since.get(rule),
        )
        if key not in self._patterns:
            made = self._choose(self, node, needs, rule)
            self._patterns[key] = _renamed(made, names, label_names)
            self._by_spec.setdefault(made.source, []).append(key)
        back = {short: name for name, short in names.items() if not name.startswith("label ")}
        return _renamed(self._patterns[key], back, {short: name for name, short in label_names.items()})


def _set_spec(type: Predicate) -> SetSpec:
    return SetSpec(type=type[0], arity=type[1], out=Output(codes=type[1]))


def _renamed(rows: Reading, names: Mapping[str, str], labels: Mapping[str, str]) -> Reading:
    return Reading(
        rows.source,
        FrozenDict({names.get(v, v): f for v, f in rows.vars.items()}),
        FrozenDict({labels.get(n, n): f for n, f in rows.labels.items()}),
        FrozenDict({labels.get(n, n): f for n, f in rows.named.items()}),
    )


def in_order(where: Iterable[Condition], bound: Iterable[str]) -> tuple[Condition, ...]:
    """Conditions in evaluation order, for rows that have these variables."""
    return tuple(ready_order(tuple(where), set(bound)))


def same_columns(rows: Reading, more_labels: Iterable[str] = ()) -> Output:
    """An output with the columns of its input; the occurrences behind labels are those of the input."""
    return Output.of(rows.vars, [*rows.labels, *more_labels], dict.fromkeys(rows.named, 0))


def possible_vars(node: Node) -> set[str]:
    """The variables that some row of the pattern binds."""
    if isinstance(node, Scan | Graph):
        return bound_vars(node)
    if isinstance(node, Run):
        return run_variables(node)
    names = {v for part in inputs(node) for v in possible_vars(part)}
    if isinstance(node, Unfold):
        return names | set(node.binds)
    for condition in conditions(node):
        if isinstance(condition, Holds) or (isinstance(condition, Compare) and condition.op == "="):
            names |= condition_vars(condition)
    return names


def possible_labels(node: Node) -> set[str]:
    """The labels that some row of the pattern has."""
    names = {c.label for c in conditions(node) if isinstance(c, Relative)}
    if isinstance(node, Label):
        names.add(node.label)
    if isinstance(node, Run):
        return names | run_labels(node)
    return names.union(*(possible_labels(part) for part in inputs(node)))
