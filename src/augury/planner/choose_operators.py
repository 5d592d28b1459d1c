"""Chooses the operators of each rule, from the head down.

    m(X) <- a(X, Y) SEQ b(X).   →   DeriveSpec ← JoinSpec(keys=("X",), columns X) ← InputSpec a/2, InputSpec b/1

The rows of an operator are the rows of its algebra node, so answers do not change. At each pattern two laws apply:
operators keep just the columns that are read above them (`project.py`), and equal patterns are one operator (`share.py`).
A scan whose arguments are distinct variables is the table of the type itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from augury.algebra.clock_windows import refuse_clock
from augury.algebra.nodes import (
    AtMost,
    Condition,
    Either,
    Every,
    Graph,
    Instant,
    Join,
    Label,
    Node,
    Relative,
    Repeat,
    Rule,
    Run,
    Scan,
    Select,
    SessionWindow,
    Unfold,
    Within,
    bound_vars,
    condition_vars,
    held_by,
    walk_all,
)
from augury.algebra.plan import Plan, Predicate
from augury.algebra.rule_terms import just_windows
from augury.algebra.strata import Stratum, strata
from augury.algebra.terms import Var, Wild, variables
from augury.core.bounds import FAR
from augury.core.clock import Clock, Timestamp
from augury.core.errors import RunError
from augury.core.fields import FIELDS
from augury.planner.choose_collects import choose_collect, choose_panes, needed_after, with_until
from augury.planner.choose_holding import OPEN, held_events, held_intervals
from augury.planner.choose_joins import choose_join, parted, repeated, without_inside
from augury.planner.choose_runs import choose_run
from augury.planner.planning import Planning, Setting, in_order, same_columns
from augury.planner.project import Needs, possible_vars
from augury.planner.specs import (
    ClockWindowsSpec,
    DeriveSpec,
    EventRowsSpec,
    FrozenDict,
    GraphSpec,
    HoldingSpec,
    LatestSpec,
    LearnSpec,
    Output,
    PointSpec,
    RankingSpec,
    Reading,
    RederiveSpec,
    ScanSpec,
    SelectSpec,
    SessionSpec,
    SettledSpec,
    Spec,
    ThrottleSpec,
    UnfoldSpec,
    UnionSpec,
)


@dataclass(frozen=True)
class PhysicalPlan:
    """The physical plan: specs in the order in which they are built, the heads of rules, the arguments of each type that some
    rule reads, and the rules after the other passes, by label. `clock` says what lengths in time points are."""

    specs: tuple[Spec, ...]
    heads: dict[str, DeriveSpec]
    columns: dict[Predicate, set[int]]
    rules: dict[str, Rule]
    clock: Clock


def choose_operators(
    rules: tuple[Rule, ...], plan: Plan, setting: Setting, planning: Planning | None = None
) -> PhysicalPlan:
    """The operators of rules of a plan, in an order of its strata. `planning` has what was chosen for earlier rules."""
    planning = planning or new_planning()
    planning.plan, planning.setting = plan, setting
    for type in sorted(plan.event_types):
        planning.input(type)
    by_label, heads = {rule.label: rule for rule in rules}, dict[str, DeriveSpec]()
    for layer in strata(plan):
        for type in layer.types:
            _set(planning, type)
        for rule in layer.rules:
            if rule.label in by_label:
                heads[rule.label] = choose_rule(planning, by_label[rule.label])
        if layer.recursive:
            planning.add(RederiveSpec(sets=tuple(planning.events(type) for type in layer.types)))
        _learn(planning, layer)
    columns = _columns_read(plan, rules, setting)
    return PhysicalPlan(tuple(planning.take_new()), heads, columns, by_label, setting.clock)


def new_planning() -> Planning:
    """No operators yet."""
    return Planning(choose_pattern)


def _set(planning: Planning, type: Predicate) -> None:
    """The set of a derived type, which also has the events of the type that arrive."""
    events, names = planning.events(type), [f"#{i}" for i in range(type[1])]
    rows = Reading(planning.input(type), FrozenDict({name: FIELDS + i for i, name in enumerate(names)}))
    planning.add(DeriveSpec(inputs=(rows,), events=events, args=tuple(Var(name) for name in names)))


def _learn(planning: Planning, layer: Stratum) -> None:
    """Facts that events make are known once both kinds of events, those that make and those that end them, are."""
    plan = planning.plan
    for predicate, types in plan.made.items():
        wanted = [(type, ends) for type, ends in zip(types, (False, True), strict=True) if type in plan.derived]
        ready = any(type in layer.types for type in types) and all(planning.has_set(type) for type, _ in wanted)
        if ready and predicate not in planning.learning:
            planning.learning.add(predicate)
            sets = tuple(Reading(planning.events(type)) for type, _ in wanted)
            ends, key = tuple(ends for _, ends in wanted), plan.latest.get(predicate)
            if key is None:
                planning.add(LearnSpec(inputs=sets, predicate=predicate, ends=ends))
            else:
                planning.add(LatestSpec(inputs=sets, predicate=predicate, ends=ends, key_arguments=key))


def _columns_read(plan: Plan, rules: Iterable[Rule], setting: Setting) -> dict[Predicate, set[int]]:
    """For each type the arguments that rules read; the text of a graph that is read as it came is none of them."""
    used: dict[Predicate, set[int]] = {}
    for rule in rules:
        nodes = [node for pattern in rule.patterns for node in walk_all(pattern)]
        graphs = [n for n in nodes if isinstance(n, Graph) and reads_text_alone(n, plan)]
        texts = {id(graph.input): graph.text for graph in graphs} if setting.since.get(rule.label) is None else {}
        for node in nodes:
            if isinstance(node, Scan):
                text = texts.get(id(node))
                read = [not isinstance(a, Wild) and not (isinstance(a, Var) and a.name == text) for a in node.args]
                used.setdefault(node.predicate, set()).update(i for i, reads in enumerate(read) if reads)
    return {
        type: set(range(type[1])) if type in plan.derived else used.get(type, set())
        for type in sorted(plan.event_types)
    }


# Rules


def choose_rule(planning: Planning, rule: Rule) -> DeriveSpec:
    """A rule: its body, what it collects, conditions on groups, its ranking and its head."""
    collects = range(len(rule.collects))
    if (windows := just_windows(rule)) is not None:  # windows with nothing inside give no rows
        rows, collects = choose_panes(planning, rule, windows), collects[1:]
    else:
        rows = planning.pattern(rule.body, needed_after(rule, -1), rule.label)
    if any(collect.last is not None for collect in rule.collects):
        rows = with_until(planning, rule, rows)
    for number in collects:
        rows = choose_collect(planning, rule, number, rows)
    if rule.having:
        rows = _having(planning, rule, rows)
    covers = rule.covers
    if rule.top is not None:
        position = {rule.top.place} if rule.top.place else set()
        out = Output.of(sorted(set(rows.vars) | position), sorted(rows.labels))
        rows, covers = planning.add(RankingSpec(inputs=(rows,), out=out, rule=rule.label, head=rule)), ()
    args, since = rule.args, rule.since
    if rule.at_most is not None:
        rows = _throttle(planning, rule, rule.at_most, rows, covers)
        args, covers, since = tuple(Var(name) for name in _event_args(rule)), (), None
    if rule.delay:
        rows = planning.add(SettledSpec(inputs=(rows,), out=same_columns(rows), rule=rule.label))
    head = DeriveSpec(
        inputs=(rows,), rule=rule.label, events=planning.events(rule.predicate), args=args, covers=covers,
        since=since, until=rule.until, delay=planning.setting.clock.length(rule.delay) if rule.delay else 0,
    )  # fmt: skip
    spec = planning.add(head).source
    assert isinstance(spec, DeriveSpec)
    return spec


def _event_args(rule: Rule) -> tuple[str, ...]:
    """The variables that hold the arguments of the events that rows make."""
    return tuple(f"#{i}" for i in range(len(rule.args)))


def _throttle(planning: Planning, rule: Rule, most: AtMost, rows: Reading, covers: tuple[str, ...]) -> Reading:
    """The events that the rows of a rule make, and those of them that AT MOST lets through."""
    names, clock = _event_args(rule), planning.setting.clock
    point = clock.tick if clock.kind == "logical" else 1
    every = None if most.every is None else min(-(-most.every // point), FAR)
    events = EventRowsSpec(
        inputs=(rows,), out=Output.of([*names, *most.per]), rule=rule.label,
        names=names, args=rule.args, covers=covers, since=rule.since,
    )  # fmt: skip
    throttle = ThrottleSpec(
        inputs=(planning.add(events),), out=Output.of(names), rule=rule.label,
        count=most.count, every=every, args=names, per=most.per,
        owned=set(most.per) <= {arg.name for arg in rule.args if isinstance(arg, Var)},
    )  # fmt: skip
    return planning.add(throttle)


def _having(planning: Planning, rule: Rule, rows: Reading) -> Reading:
    above = needed_after(rule, len(rule.collects))
    bound = {v for c in rule.having for v in condition_vars(c)}
    out = Output.of(sorted(above.vars & (set(rows.vars) | bound)), sorted(above.labels & set(rows.labels)))
    where = in_order(rule.having, rows.vars)
    return planning.add(SelectSpec(inputs=(rows,), out=out, rule=rule.label, where=where), where)


# Patterns


def choose_pattern(planning: Planning, node: Node, needs: Needs, rule: str) -> Reading:
    """The operators of a pattern, whose rows have at least what is needed."""
    match node:
        case Scan():
            return _scan(planning, node, needs, rule)
        case Instant():
            return _instant(planning, node)
        case Every():
            refuse_clock(node.windows, planning.setting.clock.kind, rule)
            return planning.add(ClockWindowsSpec(rule=rule, windows=node.windows))
        case SessionWindow():
            return _session(planning, node, rule)
        case Label() | Within():
            return _named(planning, node, needs, rule)
        case Select():
            return _select(planning, node, needs, rule)
        case Either():
            both = (planning.pattern(node.left, needs, rule), planning.pattern(node.right, needs, rule))
            out = Output.of(sorted(needs.vars), sorted(needs.labels))
            return planning.add(UnionSpec(inputs=both, out=out, rule=rule))
        case Repeat():
            return planning.pattern(repeated(node), needs, rule)
        case Join():
            return choose_join(planning, node, needs, rule, _select)
        case Unfold():
            rows = planning.pattern(node.input, needs.more(variables(node.of)), rule)
            named = dict.fromkeys(rows.named, 0)
            out = Output.of(sorted(needs.vars), sorted(needs.labels & set(rows.labels)), named)
            return planning.add(UnfoldSpec(inputs=(rows,), out=out, rule=rule, of=node.of, binds=node.binds))
        case Graph():
            rows = _graphs(planning, node, needs, rule)
            out = Output.of(sorted(bound_vars(node) & (needs.vars | {v for _, v in node.binds})))
            return planning.add(GraphSpec(inputs=(rows,), out=out, rule=rule, node=node))
        case Run():
            return choose_run(planning, node, needs, rule)
        case _:
            assert_never(node)


def _session(planning: Planning, node: SessionWindow, rule: str) -> Reading:
    clock, occurrences = planning.setting.clock, planning.pattern(node.input, Needs(frozenset(node.key)), rule)
    most = FAR if node.most is None else clock.length(node.most)
    gap, out = clock.exact_length(node.gap), Output.of(node.key)
    session = SessionSpec(inputs=(occurrences,), out=out, rule=rule, type=node.input.predicate, gap=gap, most=most)
    return planning.add(session)


def _graphs(planning: Planning, node: Graph, needs: Needs, rule: str) -> Reading:
    """The events whose graphs a pattern is matched in. Texts of inputs are read as they came, and are no columns."""
    scan = node.input
    alone = isinstance(scan, Scan) and reads_text_alone(node, planning.plan)
    if not isinstance(scan, Scan) or not alone or planning.setting.since.get(rule) is not None:
        return planning.pattern(scan, Needs(needs.vars | {node.text}), rule)
    others = {a.name: FIELDS + i for i, a in enumerate(scan.args) if isinstance(a, Var) and a.name != node.text}
    return Reading(planning.input(scan.predicate), FrozenDict(others))


def reads_text_alone(node: Graph, plan: Plan) -> bool:
    """Whether a graph pattern reads texts of inputs that nothing else reads by the same scan."""
    scan = node.input
    if not isinstance(scan, Scan) or scan.predicate in plan.derived:
        return False
    names = [a.name for a in scan.args if isinstance(a, Var)]
    return len(names) == len(scan.args) == len(set(names))


def _named(planning: Planning, node: Label | Within, needs: Needs, rule: str) -> Reading:
    """Labels and windows, read together with what is below them."""
    labels: list[str] = []
    longest: int | None = None
    inner: Node = node
    while isinstance(inner, Label | Within):
        match inner:
            case Label():
                labels.append(inner.label)
            case Within():
                length = planning.setting.clock.length(inner.length)
                longest = length if longest is None else min(longest, length)
            case _:
                assert_never(inner)
        inner = inner.input
    if isinstance(inner, Scan):
        return _scan(planning, inner, needs, rule, tuple(labels), longest)
    rows = planning.pattern(inner, Needs(needs.vars, needs.labels - set(labels)), rule)
    named = dict.fromkeys(labels, -1)
    if longest is None:  # a label is two more ways to read the times of a row
        times = {**rows.labels, **dict.fromkeys(labels, (0, 1))}
        return Reading(rows.source, rows.vars, FrozenDict(times), FrozenDict({**rows.named, **named}))
    kept = [name for name in (*rows.labels, *labels) if name in needs.labels]
    out = Output.of(rows.vars, kept, {**dict.fromkeys(rows.named, 0), **named})
    return planning.add(SelectSpec(inputs=(rows,), out=out, rule=rule, labels=tuple(labels), longest=longest))


def _source(planning: Planning, type: Predicate) -> Spec:
    """The spec with the occurrences of a type."""
    if (held := held_by(type)) is not None:
        return held_events(planning, type, held)
    if type[0].startswith(OPEN):
        return held_intervals(planning, (type[0].removeprefix(OPEN), type[1])).source
    # A type whose rules have been removed keeps its set: they may come back.
    derived = type in planning.plan.derived or planning.has_set(type)
    return planning.events(type) if derived else planning.input(type)


def _scan(
    planning: Planning,
    node: Scan,
    needs: Needs,
    rule: str,
    labels: tuple[str, ...] = (),
    longest: int | None = None,
    where: tuple[Condition, ...] = (),
) -> Reading:
    """A scan; where its arguments are distinct variables, and nothing else is asked, the table of the type itself."""
    source = _source(planning, node.predicate)
    names = [a.name for a in node.args if isinstance(a, Var)]
    distinct = all(isinstance(a, Var | Wild) for a in node.args) and len(set(names)) == len(names)
    times, named = FrozenDict(dict.fromkeys(labels, (0, 1))), FrozenDict(dict.fromkeys(labels, -1))
    columns = FrozenDict({a.name: FIELDS + i for i, a in enumerate(node.args) if isinstance(a, Var)})
    after = None if isinstance(source, HoldingSpec) else planning.setting.since.get(rule)
    if distinct and longest is None and not where and after is None:
        return Reading(source, columns, times, named)
    made = {c.label for c in where if isinstance(c, Relative)}
    out = Output.of(sorted(needs.vars), sorted(needs.labels & (set(labels) | made)), named)
    rows = Reading(source, columns if distinct else FrozenDict(), times)
    args = () if distinct else tuple((i, a) for i, a in enumerate(node.args) if not isinstance(a, Wild))
    where = in_order(where, variables(*node.args))
    scan = ScanSpec(
        inputs=(rows,), out=out, rule=rule, args=args, labels=labels, longest=longest, where=where, after=after
    )
    return planning.add(scan, where)


def _instant(planning: Planning, node: Instant) -> Reading:
    time = node.time.value
    kind = "timestamp" if isinstance(time, Timestamp) else "logical"
    if kind != planning.setting.clock.kind:
        raise RunError(
            f"the program names the {'time' if kind == 'timestamp' else 'tick'} {time}, but the run is on "
            f"{'the logical clock' if kind == 'timestamp' else 'timestamps'}"
        )
    return planning.add(PointSpec(time=int(time.us if isinstance(time, Timestamp) else time)))  # type: ignore[arg-type]


def _select(planning: Planning, node: Select, needs: Needs, rule: str) -> Reading:
    plain, absent = parted(node.where)
    above = needs.of(absent)
    inner, labels = node.input, []
    while isinstance(inner, Label):
        labels.append(inner.label)
        inner = inner.input
    if isinstance(inner, Scan) and plain:
        rows = _scan(planning, inner, above, rule, tuple(labels), None, plain)
    else:
        rows = planning.pattern(node.input, above.of(plain), rule)
        if plain:
            made = {c.label for c in plain if isinstance(c, Relative)}
            labels_kept = sorted(above.labels & (set(rows.labels) | made))
            out = Output.of(sorted(above.vars & possible_vars(node)), labels_kept, dict.fromkeys(rows.named, 0))
            where = in_order(plain, rows.vars)
            rows = planning.add(SelectSpec(inputs=(rows,), out=out, rule=rule, where=where), where)
    for condition in absent:
        rows = without_inside(planning, condition, rows, node, rule)
    return rows
