"""From patterns to operators: each node of a plan becomes an operator and a table, equal sub-plans once.

Only what operators above need is carried along (projection); a scan whose arguments are variables of their own is the
table of its type itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

from augury.algebra.clock_windows import Windows, refuse_clock
from augury.algebra.nodes import (
    AnyOf,
    Compare,
    Condition,
    Either,
    Every,
    Graph,
    Holds,
    Instant,
    Join,
    Label,
    Node,
    NoneInside,
    Policy,
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
    condition_labels,
    condition_vars,
    conditions,
    inputs,
    walk,
    walk_all,
)
from augury.algebra.place import not_looked_for
from augury.algebra.plan import Plan
from augury.algebra.rule_terms import collected_variables, head_labels, just_windows, later_variables
from augury.algebra.run_terms import run_labels, run_variables
from augury.algebra.sharing import canonical
from augury.algebra.strata import static_calls_of
from augury.algebra.terms import Var, Wild, variables
from augury.core.clock import Timestamp
from augury.core.errors import RunError
from augury.engine.operators.absence import Absence
from augury.engine.operators.choose import Agree
from augury.engine.operators.clocked import ClockWindows
from augury.engine.operators.collect import CollectOperator, RowsOfOne
from augury.engine.operators.derive import Derive
from augury.engine.operators.graph import Solve
from augury.engine.operators.join import GAP
from augury.engine.operators.join import JoinOperator as JoinOperator
from augury.engine.operators.map import UNTIL, MapOperator, Point, Unfolded, UnionOperator, Until
from augury.engine.operators.panes import Panes
from augury.engine.operators.policies import POLICIES
from augury.engine.operators.ranged_collect import RangedCollect
from augury.engine.operators.ranking import Ranking
from augury.engine.operators.runs.greedy import Greedy, is_greedy
from augury.engine.operators.runs.matches import Complete, Longest
from augury.engine.operators.runs.moments import Moments
from augury.engine.operators.runs.partials import Partials
from augury.engine.operators.runs.prepare import prepared
from augury.engine.operators.session_windows import SessionWindows
from augury.engine.operators.settled import Settled
from augury.engine.operators.throttle import EventRows, Throttle, event_args
from augury.planner.implied_bounds import Back, implied_back, implied_bounds
from augury.storage.frame import Needs, View
from augury.storage.table import END, FIELDS, Table

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit


class Wiring:
    """Wires the rules of a circuit."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.known: dict[tuple[object, ...], View] = {}  # sub-plans that there are already

    def rule(self, rule: Rule) -> None:
        """Wires a rule: its body, what it collects, conditions on groups, its ranking and its head."""
        collects = range(len(rule.collects))
        if (windows := just_windows(rule)) is not None:  # those with nothing in them give nothing
            rows, collects = self._panes(rule, windows), collects[1:]
        else:
            rows = self.view(rule.body, self._above(rule, -1), rule.label)
        if any(collect.last is not None for collect in rule.collects):
            rows = self._until(rule, rows)
        for number in collects:
            rows = self._collect(rule, number, rows)
        if rule.having:
            above = self._above(rule, len(rule.collects))
            bound = {v for c in rule.having for v in condition_vars(c)}
            out = self.table(sorted(above.vars & (set(rows.vars) | bound)), sorted(above.labels & set(rows.labels)))
            rows = MapOperator(self.circuit, rows, out, rule.label, where=rule.having).out
        covers, events = rule.covers, self.circuit.derived[rule.predicate]
        if rule.top is not None:
            place = {rule.top.place} if rule.top.place else set()
            out = self.table(sorted(set(rows.vars) | place), sorted(rows.labels))
            rows, covers = Ranking(self.circuit, rows, out, rule).out, ()
        args, since = rule.args, rule.since
        if rule.at_most is not None:
            rows = self._throttle(rule, rows, covers)
            args, covers, since = event_args(rule), (), None
        if rule.delay:
            rows = Settled(self.circuit, rows, self.like(rows), rule.label).out
        self.circuit.heads[rule.label] = Derive(
            self.circuit, rows, events, rule.label, args, covers, since, rule.until, rule.delay
        )

    def _throttle(self, rule: Rule, rows: View, covers: tuple[str, ...]) -> View:
        """The events that the rows of a rule make, and those of them that AT MOST lets through."""
        assert rule.at_most is not None
        names = [arg.name for arg in event_args(rule)]
        events = self.table([*names, *rule.at_most.per], ())
        made = EventRows(self.circuit, rows, events, rule, covers).out
        return Throttle(self.circuit, made, self.table(names, ()), rule).out

    def _until(self, rule: Rule, rows: View) -> View:
        """Rows with the times that `last n` collects from: up to their end, or that of a window if it is later."""
        if not rule.covers:
            return replace(rows, labels={**rows.labels, UNTIL: (END, END)})
        out = self.like(rows, {**dict.fromkeys(rows.labels), UNTIL: None})
        return Until(self.circuit, rows, out, rule.label, rule.covers).out

    def _above(self, rule: Rule, number: int) -> Needs:
        """What is needed of the rows after a collect: by the head, conditions on groups, a ranking, and later collects."""
        vars = {v for value in rule.values for v in variables(value)}
        vars |= rule.per
        if number < len(rule.collects):
            vars |= {v for c in rule.having for v in condition_vars(c)}
        for collect in rule.collects[number + 1 :]:
            vars |= collected_variables(collect)
        last = {UNTIL} if any(collect.last is not None for collect in rule.collects[number + 1 :]) else set()
        return Needs(frozenset(vars), frozenset(head_labels(rule) | last))

    def _panes(self, rule: Rule, windows: Windows) -> View:
        """What is collected in windows by the clock, where these are all that the body has."""
        refuse_clock(windows, self.circuit.clock.kind, rule.label)
        collect, above = rule.collects[0], self._above(rule, 0)
        inner = possible_vars(collect.pattern)
        own = (collected_variables(collect) | above.vars) & inner
        collected = self.view(collect.pattern, Needs(frozenset(own)), rule.label)
        names = {total.name for total in collect.totals} | set(collect.by)
        out = self.table(sorted(above.vars & names), sorted(above.labels & {collect.window or ""}))
        return Panes(self.circuit, collected, out, rule, windows, _several(collect.pattern)).out

    def _collect(self, rule: Rule, number: int, rows: View) -> View:
        collect = rule.collects[number]
        inner, bound = possible_vars(collect.pattern), bound_vars(rule.body)
        bound |= {v for other in rule.collects[:number] for v in other.by}
        above = self._above(rule, number)
        own = collected_variables(collect) | above.vars | set(rows.vars)
        collected = self.view(collect.pattern, Needs(frozenset(own & inner)), rule.label)
        shared = tuple(sorted(set(rows.vars) & inner))
        keys = tuple(v for v in shared if v in bound & bound_vars(collect.pattern))
        names = {total.name for total in collect.totals}
        out = self.table(
            sorted(above.vars & (set(rows.vars) | set(collect.by) | names)), sorted(above.labels & set(rows.labels))
        )
        back = None if collect.window is None else partial(implied_back, rule.body, collect.window, self.circuit.clock)
        several = _rows_of_one(rule, number, rows)
        # A fact in a filter may bind in several ways, and what it binds is no second occurrence.
        collected_twice = _several(collect.pattern) or any(isinstance(c, Holds) for c in collect.where)
        simple = keys == shared and several != "groups" and not collected_twice
        kind = RangedCollect if simple and RangedCollect.suits(self.circuit, collect, rows) else CollectOperator
        return kind(self.circuit, rows, collected, out, rule, number, keys, shared, several, collected_twice, back).out

    # Patterns

    def view(self, node: Node, needs: Needs, rule: str) -> View:
        """The table of a pattern; of equal sub-plans there is one."""
        names: dict[str, str] = {}
        form = canonical(node, names)
        needs = Needs(needs.vars & possible_vars(node), needs.labels & possible_labels(node))
        label_names = {name: names.get(f"label {name}", name) for name in possible_labels(node)}
        key = (
            form,
            tuple(sorted(names.get(v, v) for v in needs.vars)),
            tuple(sorted(label_names[name] for name in needs.labels)),
            self._varying_here(node),
            self.circuit.since.get(rule),
        )
        if key not in self.known:
            view = self._view(node, needs, rule)
            self.known[key] = _renamed(view, names, label_names)
        shared = self.known[key]
        back = {short: name for name, short in names.items() if not name.startswith("label ")}
        back_labels = {short: name for name, short in label_names.items()}
        return View(
            shared.table,
            {back.get(v, v): f for v, f in shared.vars.items()},
            {back_labels.get(n, n): f for n, f in shared.labels.items()},
            {back_labels.get(n, n): f for n, f in shared.named.items()},
        )

    def _varying_here(self, node: Node) -> bool:
        return any(isinstance(c, Holds | AnyOf) for n in walk_all(node) for c in conditions(n)) and bool(
            self.circuit.varying
        )

    def table(self, vars: Iterable[str], labels: Iterable[str], named: Mapping[str, int] | None = None) -> View:
        fields = {v: FIELDS + i for i, v in enumerate(dict.fromkeys(vars))}
        first = FIELDS + len(fields)
        ends = {name: (first + 2 * i, first + 2 * i + 1) for i, name in enumerate(dict.fromkeys(labels))}
        return View(Table(len(fields), self.circuit.tables, 2 * len(ends)), fields, ends, named or {})

    def like(self, view: View, labels: Iterable[str] | None = None) -> View:
        return self.table(view.vars, view.labels if labels is None else labels, dict.fromkeys(view.named, 0))

    def _view(self, node: Node, needs: Needs, rule: str) -> View:
        match node:
            case Scan():
                return self._scan(node, needs, rule, (), None, ())
            case Instant():
                return self._instant(node)
            case Every():
                refuse_clock(node.windows, self.circuit.clock.kind, rule)
                return ClockWindows(self.circuit, self.table((), ()), node.windows, rule).out
            case SessionWindow():
                occurrences = self.view(node.input, Needs(frozenset(node.key)), rule)
                return SessionWindows(self.circuit, occurrences, self.table(node.key, ()), node, rule).out
            case Label() | Within():
                return self._unary(node, needs, rule)
            case Select():
                return self._select(node, needs, rule)
            case Either():
                left, right = self.view(node.left, needs, rule), self.view(node.right, needs, rule)
                out = self.table(sorted(needs.vars), sorted(needs.labels))
                return UnionOperator(self.circuit, (left, right), out, rule).out
            case Repeat():
                return self.view(repeated(node), needs, rule)
            case Join():
                return self._join(node, needs, rule)
            case Unfold():
                source = self.view(node.input, needs.more(variables(node.of)), rule)
                out = self.table(
                    sorted(needs.vars), sorted(needs.labels & set(source.labels)), dict.fromkeys(source.named, 0)
                )
                return Unfolded(self.circuit, source, out, rule, node).out
            case Graph():
                source = self._graphs(node, needs, rule)
                out = self.table(sorted(bound_vars(node) & (needs.vars | {v for _, v in node.binds})), ())
                return Solve(self.circuit, source, out, rule, node).out
            case Run():
                return self._run(node, needs, rule)
            case _:
                assert_never(node)

    def _graphs(self, node: Graph, needs: Needs, rule: str) -> View:
        """The events whose graphs a pattern is asked of. The texts of inputs are taken as they came, and are no fields."""
        scan = node.input
        if not (
            isinstance(scan, Scan)
            and reads_text_alone(node, self.circuit.plan)
            and self.circuit.since.get(rule) is None
        ):
            return self.view(scan, Needs(needs.vars | {node.text}), rule)
        events = self.circuit.inputs[scan.type, len(scan.args)]
        others = {a.name: i for i, a in enumerate(scan.args) if isinstance(a, Var) and a.name != node.text}
        return View(events.out.table, {name: events.field(i) for name, i in others.items()})

    def _unary(self, node: Label | Within, needs: Needs, rule: str) -> View:
        """Names and windows, read together with what is below them."""
        labels: list[str] = []
        longest: int | None = None
        inner: Node = node
        while isinstance(inner, Label | Within):
            if isinstance(inner, Label):
                labels.append(inner.label)
            else:
                length = self.circuit.clock.length(inner.length)
                longest = length if longest is None else min(longest, length)
            inner = inner.input
        if isinstance(inner, Scan):
            return self._scan(inner, needs, rule, tuple(labels), longest, ())
        source = self.view(inner, Needs(needs.vars, needs.labels - set(labels)), rule)
        if longest is None:  # a name is two more ways to read the fields of a row
            names = dict.fromkeys(labels, (0, 1))
            return View(
                source.table, source.vars, {**source.labels, **names}, {**source.named, **dict.fromkeys(labels, -1)}
            )
        kept = [n for n in (*source.labels, *labels) if n in needs.labels]
        out = self.table(source.vars, kept, {**dict.fromkeys(source.named, 0), **dict.fromkeys(labels, -1)})
        return MapOperator(self.circuit, source, out, rule, labels=tuple(labels), longest=longest).out

    def _scan(
        self,
        node: Scan,
        needs: Needs,
        rule: str,
        labels: tuple[str, ...],
        longest: int | None,
        where: tuple[Condition, ...],
    ) -> View:
        """A scan; where every argument is a variable of its own, it is the table of the type itself."""
        type = (node.type, len(node.args))
        table, field = self.circuit.inputs[type].out.table, self.circuit.inputs[type].field
        if type in self.circuit.derived:
            table, field = self.circuit.derived[type].out.table, lambda position: FIELDS + position
        names = [a.name for a in node.args if isinstance(a, Var)]
        own = all(isinstance(a, Var | Wild) for a in node.args) and len(set(names)) == len(names)
        own_labels, named = dict.fromkeys(labels, (0, 1)), dict.fromkeys(labels, -1)
        columns = {a.name: field(i) for i, a in enumerate(node.args) if isinstance(a, Var)}
        after = self.circuit.since.get(rule)
        if own and longest is None and not where and after is None:
            return View(table, columns, own_labels, named)
        made = {c.label for c in where if isinstance(c, Relative)}
        out = self.table(sorted(needs.vars), sorted(needs.labels & (set(labels) | made)), named)
        if own:
            source, args = View(table, columns, own_labels), ()
        else:
            source = View(table, {}, own_labels)
            args = tuple((field(i), a) for i, a in enumerate(node.args) if not isinstance(a, Wild))  # type: ignore[assignment]
        MapOperator(
            self.circuit, source, out, rule, args=args, labels=labels, longest=longest, where=where, after=after
        )
        return out

    def _instant(self, node: Instant) -> View:
        time = node.time.value
        kind = "timestamp" if isinstance(time, Timestamp) else "logical"
        if kind != self.circuit.clock.kind:
            raise RunError(
                f"the program names the {'time' if kind == 'timestamp' else 'tick'} {time}, but the run is on "
                f"{'the logical clock' if kind == 'timestamp' else 'timestamps'}"
            )
        at = time.us if isinstance(time, Timestamp) else time
        return Point(self.circuit, self.table((), ()), int(at)).out  # type: ignore[arg-type]

    def _select(self, node: Select, needs: Needs, rule: str) -> View:
        plain, absent = _parted(node.where)
        above = _asking(needs, absent)
        below = _asking(above, plain)
        inner, labels = node.input, []
        while isinstance(inner, Label):
            labels.append(inner.label)
            inner = inner.input
        if isinstance(inner, Scan) and plain:
            rows = self._scan(inner, above, rule, tuple(labels), None, plain)
        else:
            source = self.view(node.input, below, rule)
            if plain:
                made = {c.label for c in plain if isinstance(c, Relative)}
                kept = sorted(above.vars & possible_vars(node)), sorted(above.labels & (set(source.labels) | made))
                out = self.table(*kept, dict.fromkeys(source.named, 0))
                rows = MapOperator(self.circuit, source, out, rule, where=plain).out
            else:
                rows = source
        for condition in absent:
            rows = self._inside(condition, rows, node, rule)
        return rows

    def _inside(self, condition: NoneInside, rows: View, node: Select | Join, rule: str) -> View:
        bound = bound_vars(node)
        own = tuple(sorted(not_looked_for(condition, node) & set(rows.named or ())))
        back = partial(implied_back, node, condition.window, self.circuit.clock)
        return self.absence(rows, condition.pattern, condition.where, condition.window, bound, None, own, back, rule)

    def absence(
        self,
        rows: View,
        pattern: Node,
        where: tuple[Condition, ...],
        window: str,
        bound: set[str],
        of: set[str] | None,
        not_looked_for: tuple[str, ...],
        back: Back | None,
        rule: str,
    ) -> View:
        """Rows with nothing of a pattern in a window. `of` are the variables that it may share with them."""
        inner = possible_vars(pattern)
        mine = set(rows.vars) if of is None else set(rows.vars) & of
        asked = {v for c in where for v in condition_vars(c)}
        absent = self.view(pattern, Needs(frozenset((mine | asked) & inner)), rule)
        shared = tuple(sorted(mine & inner))
        keys = tuple(v for v in shared if v in bound and v in bound_vars(pattern))
        return Absence(
            self.circuit, rows, absent, self.like(rows), rule, window, keys, shared, where, not_looked_for, back
        ).out

    def _join(self, node: Join, needs: Needs, rule: str) -> View:
        """Pairs; of them those for which the facts are so, without what must be absent, and that the policy takes."""
        selection = POLICIES[node.policy.name]
        changing = () if node.policy.per else tuple(c for c in node.where if self._changes(c))
        node = replace(node, where=tuple(c for c in node.where if c not in changing))
        if changing and selection is None:
            return self._select(Select(node, changing, node.span), needs, rule)
        where, absences = _parted(node.where)
        shared = tuple(sorted(possible_vars(node.left) & possible_vars(node.right)))
        chosen_of = _asking(needs, (*absences, *node.absent_where)).more(_absent_keys(node))
        above = _asking(chosen_of, changing)
        below = _asking(above, where).more((*shared, *node.policy.per, node.policy.by or ""))
        left, right = self.view(node.left, below, rule), self.view(node.right, below, rule)
        made = {c.label for c in where if isinstance(c, Relative)}
        labels = sorted(above.labels & (set(left.labels) | set(right.labels) | made))
        named = {**dict.fromkeys(right.named, 1), **dict.fromkeys(left.named, 0)}
        gap = node.absent is not None
        out = self.table(sorted(above.vars & possible_vars(node)), [*labels, *([GAP] if gap else [])], named)
        if node.policy.per:
            return self._absences(self._join_per(node, left, right, out, shared, where, rule), node, absences, rule)
        keys = tuple(v for v in shared if v in bound_vars(node.left) & bound_vars(node.right))
        both = self._both(node, left, right, where, keys=keys, shared=shared)
        one_row = not (gap or absences or changing or _several(node.left) or _several(node.right) or _stretched(node))
        if selection is not None and selection.join is not None and selection.join.suits(node.op) and one_row:
            return selection.join(self.circuit, left, right, out, rule, policy=node.policy, **both).out
        hidden = self._hidden(node, right, rule)
        join = JoinOperator(
            self.circuit, left, right, out, rule, gap=gap, absent=hidden, absent_keys=_absent_keys(node), **both
        )
        rows = self._known(out, node, changing, chosen_of, rule) if changing else out
        return self._chosen(node.policy, self._absences(rows, node, absences, rule), join, rule)

    def _join_per(
        self,
        node: Join,
        left: View,
        right: View,
        out: View,
        shared: tuple[str, ...],
        where: tuple[Condition, ...],
        rule: str,
    ) -> View:
        """`recent per`: chosen by the temporal conditions alone, before the parts have to agree."""
        timely = tuple(c for c in where if _timely(c, left, right))
        pairs = self.table([], [], out.named)
        both = self._both(node, left, right, timely, keys=(), shared=())
        join = JoinOperator(self.circuit, left, right, pairs, rule, gap=False, **both)
        chosen = self._chosen(node.policy, pairs, join, rule)
        agreed = View(out.table, out.vars, out.labels, dict.fromkeys(out.named, 0))
        gap = node.absent is not None
        return Agree(self.circuit, chosen, agreed, rule, join=join, shared=shared, where=where, gap=gap).out

    def _both(
        self, node: Join, left: View, right: View, where: tuple[Condition, ...], **options: Any
    ) -> dict[str, Any]:
        """What a join needs to know of its two parts: all bounds on their times, and the conditions that are left."""
        node = replace(node, where=where)
        bounds = partial(implied_bounds, node, self.circuit.clock, left.labels, right.labels)
        relation, rest = bounds(self.circuit.lengths)
        return {"relation": relation, "where": rest, "bounds_for": bounds, "nodes": (node.left, node.right), **options}

    def _absences(self, rows: View, node: Join, inside: tuple[NoneInside, ...], rule: str) -> View:
        """Of pairs those with nothing of `absent` between their parts, and nothing of the others inside a window."""
        if node.absent is not None:
            bound = bound_vars(node.left) | bound_vars(node.right)
            back = partial(implied_back, node, None, self.circuit.clock)
            rows = self.absence(rows, node.absent, node.absent_where, GAP, bound, _either(node), (), back, rule)
        for condition in inside:
            rows = self._inside(condition, rows, node, rule)
        return rows

    def _run(self, node: Run, needs: Needs, rule: str) -> View:
        """A run: its events in order, the partial matches, the complete ones, and those that are chosen."""
        circuit, node = self.circuit, prepared(node)
        every = frozenset(v for part in node.parts for v in possible_vars(part.input))
        parts = tuple(self.view(part.input, Needs(every), rule) for part in node.parts)
        among = tuple(self.view(scan, Needs(frozenset(node.key)), rule) for scan in node.among)
        moments = Moments(circuit, among, parts, node.key, rule)
        if is_greedy(node, parts):
            out = self.table(
                [*node.key, *sorted(needs.vars & run_variables(node))], sorted(needs.labels & run_labels(node))
            )
            return Greedy(circuit, node, moments, parts, out, rule).out
        partials = Partials(circuit, node, moments, parts, rule)
        absences = tuple(c for c in node.where if isinstance(c, NoneInside))
        above = _asking(needs, absences)
        labels = run_labels(node) | {c.label for c in node.where if isinstance(c, Relative)}
        out = self.table(sorted(above.vars & run_variables(node)), sorted(above.labels & labels))
        rows = Complete(circuit, partials, out, rule).out
        for condition in absences:
            back = partial(implied_back, node, condition.window, circuit.clock)
            rows = self.absence(
                rows, condition.pattern, condition.where, condition.window, run_variables(node), None, (), back, rule
            )
        return rows if node.which == "ALL" else Longest(circuit, rows, self.like(rows), rule, partials).out

    def _changes(self, condition: Condition) -> bool:
        """Whether a condition asks for facts that may change while the program runs."""
        return any(name in self.circuit.changing for name, _ in static_calls_of(condition))

    def _known(self, rows: View, node: Join, where: tuple[Condition, ...], needs: Needs, rule: str) -> View:
        """Pairs that a policy chooses among: those for which the facts are so, as long as they are."""
        vars = needs.vars & (possible_vars(node) | {v for c in where for v in condition_vars(c)})
        out = self.table(sorted(vars), sorted(rows.labels), dict.fromkeys(rows.named, 0))
        return MapOperator(self.circuit, rows, out, rule, where=where).out

    def _hidden(self, node: Join, right: View, rule: str) -> View | None:
        """What must be absent, where the right part alone says which occurrences of it block."""
        if node.absent is None or node.absent_where:
            return None
        keys = set(_absent_keys(node))
        if not keys <= bound_vars(node.right) & bound_vars(node.absent) & set(right.vars):
            return None
        return self.view(node.absent, Needs(frozenset(keys)), rule)

    def _chosen(self, policy: Policy, rows: View, join: JoinOperator, rule: str) -> View:
        selection = POLICIES[policy.name]
        if selection is None:
            return rows
        return selection.listed(self.circuit, rows, self.like(rows), rule, policy=policy, join=join).out


def _either(node: Join) -> set[str]:
    return possible_vars(node.left) | possible_vars(node.right)


def _absent_keys(node: Join) -> tuple[str, ...]:
    """The variables that what must be absent shares with a pair."""
    return () if node.absent is None else tuple(sorted(possible_vars(node.absent) & _either(node)))


def _parted(where: tuple[Condition, ...]) -> tuple[tuple[Condition, ...], tuple[NoneInside, ...]]:
    """Conditions on a row, and those on what is absent."""
    absent = tuple(c for c in where if isinstance(c, NoneInside))
    return tuple(c for c in where if not isinstance(c, NoneInside)), absent


def _asking(needs: Needs, where: Iterable[Condition]) -> Needs:
    """Also what conditions ask for."""
    for condition in where:
        needs = needs.more(condition_vars(condition), condition_labels(condition))
        if isinstance(condition, NoneInside):
            needs = needs.more(labels={name for c in condition.where for name in condition_labels(c)})
    return needs


def _several(node: Node) -> bool:
    """Whether several rows may be made of the same events: where facts bind, or branches meet."""
    return any(isinstance(n, Either) for n in walk(node)) or bool(_bound_by_facts(node))


def _stretched(node: Join) -> bool:
    """Whether its parts may be the same events over different intervals: `a AND (@2 AND a)`."""
    return node.op != "SEQ" and any(isinstance(n, Instant | Every | SessionWindow) for n in walk(node))


def _bound_by_facts(node: Node) -> set[str]:
    """The variables that facts bind. A static literal whose variables are all bound holds once, or not at all."""
    found: set[str] = set()
    for part in walk(node):
        asked = {v for c in conditions(part) if isinstance(c, Holds) for v in condition_vars(c)}
        found |= asked - {v for below in inputs(part) for v in bound_vars(below)}
    return found


def _rows_of_one(rule: Rule, number: int, rows: View) -> RowsOfOne:
    """How the rows that a collect is for may be made of the same events, see `RowsOfOne`."""
    earlier = {v for collect in rule.collects[:number] for v in collect.by}
    extra, later = _bound_by_facts(rule.body) | earlier, later_variables(rule, number)
    if any(isinstance(node, Either) for node in walk(rule.body)) or not extra & rows.vars.keys() <= later:
        return "groups"
    if extra <= later:
        return "one"
    return "groups" if number else "copies"


def _timely(condition: Condition, left: View, right: View) -> bool:
    labels = condition_labels(condition)
    if isinstance(condition, Relative | NoneInside) or not labels or condition_vars(condition):
        return False
    return labels <= set(left.labels) | set(right.labels)


def reads_text_alone(node: Graph, plan: Plan) -> bool:
    """Whether a pattern is asked of inputs, whose texts nobody else looks at by this scan."""
    scan = node.input
    if not isinstance(scan, Scan) or (scan.type, len(scan.args)) in plan.derived:
        return False
    names = [a.name for a in scan.args if isinstance(a, Var)]
    return len(names) == len(scan.args) == len(set(names))


def possible_vars(node: Node) -> set[str]:
    """The variables that some row of the pattern binds."""
    if isinstance(node, Scan | Graph):
        return bound_vars(node)
    if isinstance(node, Run):
        return run_variables(node)
    found = {v for part in inputs(node) for v in possible_vars(part)}
    if isinstance(node, Unfold):
        return found | set(node.binds)
    for condition in conditions(node):
        if isinstance(condition, Holds) or (isinstance(condition, Compare) and condition.op == "="):
            found |= condition_vars(condition)
    return found


def possible_labels(node: Node) -> set[str]:
    found = {c.label for c in conditions(node) if isinstance(c, Relative)}
    if isinstance(node, Label):
        found.add(node.label)
    if isinstance(node, Run):
        return found | run_labels(node)
    return found.union(*(possible_labels(part) for part in inputs(node)))


def repeated(node: Repeat) -> Node:
    """`P ^ n` is `P ^ (n-1) SEQ P`; consecutive: `NOT(P).[P ^ (n-1), P]`."""
    rows = node.input
    for _ in range(node.count - 1):
        absent = node.input if node.consecutive else None
        once_more = replace(node.input)  # times are told apart by the identity of nodes
        rows = Join("SEQ", rows, once_more, windows=node.windows, absent=absent, policy=node.policy, span=node.span)
    return rows


def _renamed(view: View, names: Mapping[str, str], labels: Mapping[str, str]) -> View:
    return View(
        view.table,
        {names.get(v, v): f for v, f in view.vars.items()},
        {labels.get(n, n): f for n, f in view.labels.items()},
        {labels.get(n, n): f for n, f in view.named.items()},
    )
