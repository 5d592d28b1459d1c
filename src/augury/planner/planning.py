"""The state of planning: the settings of a run, and the specs made so far, each once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from augury.algebra.nodes import Condition, Node, condition_terms
from augury.algebra.plan import Plan, Predicate
from augury.algebra.ready import evaluation_order
from augury.algebra.strata import static_calls_of
from augury.algebra.terms import is_pure
from augury.algebra.timing import Lengths
from augury.core.clock import Clock
from augury.planner.infer_types import declared_types
from augury.planner.project import Needs, project
from augury.planner.share import share
from augury.planner.specs import InputSpec, Output, Reading, SetSpec, Spec


@dataclass(frozen=True)
class Setting:
    """The setting of a plan, beside the program.

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
        self.choose = choose
        self.plan, self.setting = Plan(), Setting(Clock("logical"))
        self.specs: dict[Spec, Spec] = {}
        self.new: list[Spec] = []  # since the last plan
        self.shared: dict[Hashable, Reading] = {}  # the rows of patterns, by their forms
        self._inputs: dict[Predicate, InputSpec] = {}
        self._sets: dict[Predicate, SetSpec] = {}
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
        self.new = [other for other in self.new if other != spec]
        self.shared = {form: rows for form, rows in self.shared.items() if rows.source != spec}

    def input(self, type: Predicate) -> InputSpec:
        """The events of a type that arrive."""
        spec = self._inputs.get(type)
        if spec is None:
            spec = self._inputs[type] = InputSpec(type=type[0], arity=type[1])
            spec.infer(declared_types(self.plan.declared, type))
        self.add(spec)
        return spec

    def events(self, type: Predicate) -> SetSpec:
        """The set of a derived type."""
        spec = self._sets.get(type)
        if spec is None:
            spec = self._sets[type] = SetSpec(type=type[0], arity=type[1], out=Output(codes=type[1]))
        self.add(spec)
        return spec

    def has_set(self, type: Predicate) -> bool:
        return self._sets.get(type) in self.specs

    def changes(self, condition: Condition) -> bool:
        """Whether a condition asks for facts that may change while the program runs."""
        return any(name in self.setting.changing for name, _ in static_calls_of(condition))

    def pattern(self, node: Node, needs: Needs, rule: str) -> Reading:
        """The rows of a pattern, with at least the columns that are read above it."""
        return share(self, node, project(node, needs), rule)


def in_order(where: Iterable[Condition], bound: Iterable[str]) -> tuple[Condition, ...]:
    """Conditions in evaluation order, for rows that have these variables."""
    return evaluation_order(tuple(where), set(bound))


def same_columns(rows: Reading, more_labels: Iterable[str] = ()) -> Output:
    """An output with the columns of its input; the occurrences behind labels are those of the input."""
    return Output.of(rows.vars, [*rows.labels, *more_labels], dict.fromkeys(rows.named, 0))
