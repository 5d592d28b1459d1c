"""A program as a circuit: one operator for each node of its plan, equal sub-plans once, wired through tables."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from augury.algebra.nodes import (
    AnyOf,
    Compare,
    Condition,
    Either,
    Follow,
    Holds,
    Instant,
    Join,
    Kleene,
    Label,
    Node,
    NoneInside,
    Policy,
    Relative,
    Repeat,
    Rule,
    Scan,
    Select,
    Within,
    bound_vars,
    condition_labels,
    condition_vars,
    conditions,
    inputs,
    walk,
    walk_all,
)
from augury.algebra.place import placed, varying
from augury.algebra.program import Plan, Predicate
from augury.algebra.properties import all_properties, event_lengths
from augury.algebra.sharing import canonical
from augury.algebra.strata import Stratum, edges, strata
from augury.algebra.terms import Var, Wild, variables
from augury.algebra.terms import labels as labels_of
from augury.clock import Clock, Timestamp
from augury.engine.events import Events
from augury.engine.frame import LONGEST, Context, Frame, View
from augury.engine.operators.absence import Absence
from augury.engine.operators.base import Operator, Part
from augury.engine.operators.choose import Choose
from augury.engine.operators.collect import Collect
from augury.engine.operators.derive import Derive, Derived, Rederive
from augury.engine.operators.join import GAP, joined
from augury.engine.operators.join import Join as JoinOperator
from augury.engine.operators.map import Map, Union
from augury.engine.operators.recent import Recent
from augury.engine.table import FIELDS, LEFT, RIGHT, Links, Table, Words
from augury.engine.values import Dictionary
from augury.errors import RunError
from augury.meaning.rows import Scalars
from augury.meaning.static import Static
from augury.model import Event, Fact, content_id
from augury.optimiser.implied_bounds import FAR, implied_back, implied_bounds

UNTIL = "#until"


@dataclass(frozen=True)
class Needs:
    """What the operators above need of a pattern: variables and labels."""

    vars: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()

    def more(self, vars: Iterable[str] = (), labels: Iterable[str] = ()) -> Needs:
        return Needs(self.vars | set(vars), self.labels | set(labels))


class Circuit:
    """The operators of a program and the order in which they are to run."""

    def __init__(
        self, plan: Plan, clock: Clock, facts: Iterable[Fact] = (), retention: int | None = None, longest: int | None = None
    ) -> None:
        self.plan, self.clock, self.retention, self.longest = plan, clock, retention, longest
        self.facts = list(facts)
        self.words = Words(Dictionary())
        scalars = Scalars(plan.functions, plan.aggregates, clock)
        static = Static(plan.clauses, self.facts, scalars, self.report)
        self.context = Context(scalars, static, self.words.dictionary, self.report)
        self.errors: dict[tuple[str, str], int] = {}
        self.operators: list[Operator] = []
        self.makers: dict[int, Operator] = {}
        self.inputs: dict[Predicate, Events] = {}
        self.derived: dict[Predicate, Derived] = {}
        self.heads: dict[str, Derive] = {}
        self.journal: list[tuple[Table, int, int, int]] = []
        self.in_order = False  # whether a recursion looks at what is absent or chosen, so that time must pass step by step
        self._ready: list[tuple[int, int, Operator]] = []
        self._known: dict[tuple[object, ...], View] = {}
        self._events: dict[tuple[int, int], Event] = {}
        self._orders = 0
        self.words_kept = 0  # how many values there were after the last compaction
        self.sources: dict[int, tuple[View, View]] = {}
        self.rules: dict[str, Rule] = {}
        self.since: dict[str, int | None] = {}
        self.extend(plan)
        self.settle()

    def report(self, rule: str, message: str, binding: Mapping[str, object]) -> None:
        self.errors[rule, message] = self.errors.get((rule, message), 0) + 1

    # Running

    def add(self, operator: Operator) -> int:
        self.operators.append(operator)
        self.makers[id(operator.out.table)] = operator
        return self._next_order()

    def _next_order(self) -> int:
        self._orders += 1
        return self._orders

    def schedule(self, operator: Operator) -> None:
        operator.scheduled = True
        heapq.heappush(self._ready, (operator.order, id(operator), operator))

    def run(self) -> None:
        """Lets every operator take in what has changed, those first whose inputs are complete."""
        ready = self._ready
        while ready:
            operator = heapq.heappop(ready)[2]
            operator.scheduled = False
            operator.step()

    @property
    def rows(self) -> int:
        return sum(operator.out.table.n for operator in self.operators)

    def undo(self) -> None:
        """All tables as they were when the step began."""
        self._ready.clear()
        for operator in self.operators:
            operator.scheduled = False
        for table, field, row, value in reversed(self.journal):
            table.data[field, row] = value
        for table in self.words.changed.values():
            table.undo()
        self.rebuild()
        self.settle()

    def rebuild(self) -> None:
        """Makes indexes and all else anew that is not in tables."""
        self._events.clear()
        self.words.rows = self.rows
        for operator in self.operators:
            operator.out.table.rebuild()
        for operator in self.operators:
            operator.rebuild()

    def settle(self) -> None:
        """The step is over."""
        for table in self.words.changed.values():
            table.begin()
        self.words.changed.clear()
        self.journal.clear()

    # What rows are made of

    def maker(self, table: Table) -> Operator:
        return self.makers[id(table)]

    def parts(self, table: Table, row: int) -> tuple[Part, ...]:
        return self.makers[id(table)].parts(row) if row >= 0 else ()

    def label_parts(self, view: View, row: int, label: str) -> tuple[Part, ...]:
        """The events of the occurrence behind a label."""
        where = view.named.get(label)
        if where is None:
            return ()
        if where < 0:
            return self.parts(view.table, row)
        return self.label_parts(self.sources[id(view.table)][where], int(view.table.data[LEFT + where, row]), label)

    def event(self, part: Part) -> Event:
        """The event of a part."""
        key = (id(part[0]), part[1])
        found = self._events.get(key)
        if found is None:
            maker = self.maker(part[0])
            if isinstance(maker, Events):
                found = maker.event(part[1])
            else:
                assert isinstance(maker, Derived)
                data, decode = part[0].data, self.words.dictionary.decode
                args = tuple(decode(int(c)) for c in data[part[0].codes, part[1]])
                start, end = int(data[0, part[1]]), int(data[1, part[1]])
                found = Event(maker.type, args, start, end, content_id(maker.type, args, start, end))
            if len(self._events) > 100_000:
                self._events.clear()
            self._events[key] = found
        return found

    # Building

    def extend(self, plan: Plan, since: int | None = None) -> None:
        """Adds the rules that a plan has more. They see what is held of the past, or just what starts after `since`."""
        self.plan = plan
        self.context.scalars.functions, self.context.scalars.aggregates = plan.functions, plan.aggregates
        self.varying = varying(plan, self.facts)
        unbounded = (
            {label for label, found in all_properties(plan).items() if found.horizon is None}
            if self.retention is not None
            else set()
        )
        self.lengths = None if self.longest is None else event_lengths(plan, self.longest)
        layers = strata(plan)
        new = [rule for layer in layers for rule in layer.rules if rule.label not in self.rules]
        for rule in new:
            self.rules[rule.label] = placed(rule, self.varying, self.retention, unbounded)
            self.since[rule.label] = since
        self._add_inputs(plan, [self.rules[rule.label] for rule in new])
        self.operators = [o for o in self.operators if not isinstance(o, Rederive)]
        for layer in layers:
            self._stratum(layer, {rule.label for rule in new})
        self._number(layers)
        for operator in self.operators:  # a new operator takes in what is there
            operator.wake()
        self.run()

    def _add_inputs(self, plan: Plan, rules: list[Rule]) -> None:
        used: dict[Predicate, set[int]] = {}
        for rule in rules:
            for pattern in (rule.body, *((rule.collect.pattern,) if rule.collect else ())):
                for node in walk_all(pattern):
                    if isinstance(node, Scan):
                        some = used.setdefault((node.type, len(node.args)), set())
                        some |= {i for i, a in enumerate(node.args) if not isinstance(a, Wild)}
        for type in sorted(plan.event_types):
            needed = set(range(type[1])) if type in plan.derived else used.get(type, set())
            if type not in self.inputs:
                self.inputs[type] = Events(self, *type, tuple(sorted(needed)))
            else:
                self.inputs[type].use(needed)

    def _stratum(self, stratum: Stratum, new: set[str]) -> None:
        for type in stratum.types:
            if type in self.derived:
                self.derived[type].recursive = stratum.recursive
                continue
            self.derived[type] = Derived(self, *type, stratum.recursive)
            given, names = self.inputs[type], [f"#{i}" for i in range(type[1])]
            view = View(given.out.table, {name: given.field(i) for i, name in enumerate(names)})
            Derive(self, view, self.derived[type], "", tuple(Var(name) for name in names), ())
        if stratum.recursive and not _monotone(stratum):
            self.in_order = True
        for rule in stratum.rules:
            if rule.label in new:
                self._rule(self.rules[rule.label])
        sets = [self.derived[type] for type in stratum.types]
        rederive = Rederive(self, sets)
        for one in sets:
            one.rederive = rederive

    def _number(self, layers: Iterable[Stratum]) -> None:
        """Numbers the operators: each after those it reads, a set after the rules that derive its events."""
        done: set[int] = set()

        def number(operator: Operator) -> None:
            open_operators = [operator]
            while open_operators:
                last = open_operators[-1]
                below = [self.maker(view.table) for view in last.inputs]
                waiting = [o for o in below if id(o) not in done and not isinstance(o, Derived)]
                if waiting:
                    open_operators.extend(waiting)
                    continue
                open_operators.pop()
                if id(last) not in done:
                    done.add(id(last))
                    last.order = self._next_order()

        for layer in layers:
            sets = [self.derived[type] for type in layer.types]
            for one in sets:
                for links in one.supports:
                    number(self.maker(links.child))
            for one in sets:
                number(one)
            number(sets[0].rederive)
        for operator in self.operators:
            number(operator)
        for events in self.derived.values():
            events.loops = [loop for reader in events.out.table.readers if (loop := self._loop(events, *reader))]

    def _loop(self, events: Derived, reader: Operator, port: int) -> tuple[Links, Derive] | None:
        """A rule that joins events of a set and derives events of the same set, and whose join nothing else reads."""
        if type(reader) is not JoinOperator or port > 1 or len(reader.out.table.readers) != 1:
            return None
        head, links = reader.out.table.readers[0][0], reader.links[port]
        if isinstance(head, Derive) and head.events is events and links is not None:
            return links, head
        return None

    def silence(self, label: str) -> None:
        """What a rule derived falls, unless another rule derives it, too."""
        head = self.heads[label]
        table = head.out.table
        rows = np.flatnonzero(table.alive[: table.n])
        table.kill(rows)
        head.events.release(table.data[RIGHT, rows])
        self.run()

    def remove(self, label: str) -> None:
        """Takes a rule out that has been silenced."""
        head = self.heads.pop(label)
        table = head.out.table
        head.events.supports = [links for links in head.events.supports if links.child is not table]
        self.rules.pop(label)
        self._drop(head)

    def _drop(self, operator: Operator) -> None:
        """Takes out an operator, and below it all that nobody reads any more."""
        self.operators.remove(operator)
        self._known = {key: known for key, known in self._known.items() if known.table is not operator.out.table}
        for view in operator.inputs:
            view.table.readers = [(o, port) for o, port in view.table.readers if o is not operator]
            below = self.maker(view.table)
            if not view.table.readers and not isinstance(below, Events | Derived) and below in self.operators:
                self._drop(below)

    def _rule(self, rule: Rule) -> None:
        vars = {v for arg in rule.args for v in variables(arg)}
        labels = {name for arg in rule.args for name in labels_of(arg)} | set(rule.covers)
        needs = Needs(frozenset(vars), frozenset(labels))
        if rule.collect is None:
            body = self.view(rule.body, needs, rule.label)
            self.heads[rule.label] = Derive(self, body, self.derived[rule.predicate], rule.label, rule.args, rule.covers)
            return
        collect = rule.collect
        inner = possible_vars(collect.pattern)
        asked = {v for c in collect.where for v in condition_vars(c)}
        labels |= {name for c in collect.where for name in condition_labels(c)}
        labels |= {collect.window} if collect.window else set()
        outer = possible_vars(rule.body)
        body = self.view(rule.body, needs.more(asked | inner, labels), rule.label)
        if collect.window is None:
            out = self._like(body, {**dict.fromkeys(body.labels), UNTIL: None})
            Until(self, body, out, rule.label, rule.covers)
            self.sources[id(out.table)] = (body, body)
            body = out
        collected = self.view(collect.pattern, Needs(frozenset((vars | asked | outer) & inner)), rule.label)
        shared = tuple(sorted(outer & inner))
        keys = tuple(v for v in shared if v in bound_vars(rule.body) & bound_vars(collect.pattern))
        head = tuple(Var(f"#{i}") for i in range(len(rule.args)))
        out = self._table([v.name for v in head], ())
        back = FAR if collect.window is None else implied_back(rule.body, collect.window, self.clock, self.lengths)
        Collect(self, body, collected, out, rule, collect, keys, shared, _several(rule.body), back)
        self.heads[rule.label] = Derive(self, out, self.derived[rule.predicate], rule.label, head, ())

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
            self.since.get(rule),
        )
        if key not in self._known:
            view = self._view(node, needs, rule)
            self._known[key] = _renamed(view, names, label_names)
        shared = self._known[key]
        back = {short: name for name, short in names.items() if not name.startswith("label ")}
        back_labels = {short: name for name, short in label_names.items()}
        return View(
            shared.table,
            {back.get(v, v): f for v, f in shared.vars.items()},
            {back_labels.get(n, n): f for n, f in shared.labels.items()},
            {back_labels.get(n, n): f for n, f in shared.named.items()},
        )

    def _varying_here(self, node: Node) -> bool:
        return any(isinstance(c, Holds | AnyOf) for n in walk_all(node) for c in conditions(n)) and bool(self.varying)

    def _table(self, vars: Iterable[str], labels: Iterable[str], named: Mapping[str, int] | None = None) -> View:
        fields = {v: FIELDS + i for i, v in enumerate(dict.fromkeys(vars))}
        first = FIELDS + len(fields)
        ends = {name: (first + 2 * i, first + 2 * i + 1) for i, name in enumerate(dict.fromkeys(labels))}
        return View(Table(len(fields), self.words, 2 * len(ends)), fields, ends, named or {})

    def _like(self, view: View, labels: Iterable[str] | None = None) -> View:
        return self._table(view.vars, view.labels if labels is None else labels, dict.fromkeys(view.named, 0))

    def _view(self, node: Node, needs: Needs, rule: str) -> View:
        match node:
            case Scan():
                return self._scan(node, needs, rule, (), None, ())
            case Instant():
                return self._instant(node)
            case Label() | Within():
                return self._unary(node, needs, rule)
            case Select():
                return self._select(node, needs, rule)
            case Either():
                left, right = self.view(node.left, needs, rule), self.view(node.right, needs, rule)
                out = self._table(sorted(needs.vars), sorted(needs.labels))
                Union(self, (left, right), out, rule)
                return out
            case Repeat():
                return self.view(repeated(node), needs, rule)
            case Join():
                return self._join(node, needs, rule)
            case Follow() | Kleene():
                raise RunError("sequences of graph patterns do not run on the embedded engine yet",
                               hint='use engine="reference"')  # fmt: skip

    def _unary(self, node: Label | Within, needs: Needs, rule: str) -> View:
        """Names and windows, read together with what is below them."""
        labels: list[str] = []
        longest: int | None = None
        inner: Node = node
        while isinstance(inner, Label | Within):
            if isinstance(inner, Label):
                labels.append(inner.label)
            else:
                length = self.clock.length(inner.length)
                longest = length if longest is None else min(longest, length)
            inner = inner.input
        if isinstance(inner, Scan):
            return self._scan(inner, needs, rule, tuple(labels), longest, ())
        source = self.view(inner, Needs(needs.vars, needs.labels - set(labels)), rule)
        if longest is None:  # a name is two more ways to read the fields of a row
            names = {name: (0, 1) for name in labels}
            return View(source.table, source.vars, {**source.labels, **names}, {**source.named, **dict.fromkeys(labels, -1)})
        kept = [n for n in (*source.labels, *labels) if n in needs.labels]
        out = self._table(source.vars, kept, {**dict.fromkeys(source.named, 0), **dict.fromkeys(labels, -1)})
        Map(self, source, out, rule, labels=tuple(labels), longest=longest)
        self.sources[id(out.table)] = (source, source)
        return out

    def _scan(
        self, node: Scan, needs: Needs, rule: str, labels: tuple[str, ...], longest: int | None,
        where: tuple[Condition, ...],
    ) -> View:  # fmt: skip
        """A scan; where every argument is a variable of its own, it is the table of the type itself."""
        type = (node.type, len(node.args))
        table, field = self.inputs[type].out.table, self.inputs[type].field
        if type in self.derived:
            table, field = self.derived[type].out.table, lambda position: FIELDS + position  # type: ignore[assignment]
        names = [a.name for a in node.args if isinstance(a, Var)]
        own = all(isinstance(a, Var | Wild) for a in node.args) and len(set(names)) == len(names)
        own_labels, named = {name: (0, 1) for name in labels}, dict.fromkeys(labels, -1)
        columns = {a.name: field(i) for i, a in enumerate(node.args) if isinstance(a, Var)}
        after = self.since.get(rule)
        if own and longest is None and not where and after is None:
            return View(table, columns, own_labels, named)
        made = {c.label for c in where if isinstance(c, Relative)}
        out = self._table(sorted(needs.vars), sorted(needs.labels & (set(labels) | made)), named)
        if own:
            source, args = View(table, columns, own_labels), ()
        else:
            source = View(table, {}, own_labels)
            args = tuple((field(i), a) for i, a in enumerate(node.args) if not isinstance(a, Wild))  # type: ignore[assignment]
        Map(self, source, out, rule, args=args, labels=labels, longest=longest, where=where, after=after)
        self.sources[id(out.table)] = (source, source)
        return out

    def _instant(self, node: Instant) -> View:
        time = node.time.value
        kind = "timestamp" if isinstance(time, Timestamp) else "logical"
        if kind != self.clock.kind:
            raise RunError(f"the program names the {'time' if kind == 'timestamp' else 'tick'} {time}, but the run is on "
                           f"{'the logical clock' if kind == 'timestamp' else 'timestamps'}")  # fmt: skip
        at = time.us if isinstance(time, Timestamp) else time
        out = self._table((), ())
        Point(self, out, int(at))  # type: ignore[arg-type]
        return out

    def _select(self, node: Select, needs: Needs, rule: str) -> View:
        plain = tuple(c for c in node.where if not isinstance(c, NoneInside))
        absent = tuple(c for c in node.where if isinstance(c, NoneInside))
        above = needs.more(
            {v for c in absent for v in condition_vars(c)},
            {name for c in absent for name in self._absence_labels(c)},
        )
        below = above.more({v for c in plain for v in condition_vars(c)}, {n for c in plain for n in condition_labels(c)})
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
                out = self._table(*kept, dict.fromkeys(source.named, 0))
                Map(self, source, out, rule, where=plain)
                self.sources[id(out.table)] = (source, source)
                rows = out
            else:
                rows = source
        for condition in absent:
            rows = self._inside(condition, rows, node, rule)
        return rows

    def _absence_labels(self, condition: NoneInside) -> set[str]:
        return {condition.window, *(n for c in condition.where for n in condition_labels(c))}

    def _inside(self, condition: NoneInside, rows: View, node: Select | Join, rule: str) -> View:
        bound = bound_vars(node)
        not_looked_for = tuple(sorted(rows.named)) if rows.named else ()
        back = implied_back(node, condition.window, self.clock, self.lengths)
        return self._absence(rows, condition.pattern, condition.where, condition.window, bound, None, not_looked_for, back, rule)

    def _absence(
        self, rows: View, pattern: Node, where: tuple[Condition, ...], window: str, bound: set[str],
        of: set[str] | None, not_looked_for: tuple[str, ...], back: int, rule: str,
    ) -> View:  # fmt: skip
        """Rows with nothing of a pattern in a window. `of` are the variables that it may share with them."""
        inner = possible_vars(pattern)
        mine = set(rows.vars) if of is None else set(rows.vars) & of
        asked = {v for c in where for v in condition_vars(c)}
        absent = self.view(pattern, Needs(frozenset((mine | asked) & inner)), rule)
        shared = tuple(sorted(mine & inner))
        keys = tuple(v for v in shared if v in bound and v in bound_vars(pattern))
        out = self._like(rows)
        Absence(
            self, rows, absent, out, rule, window=window, keys=keys, shared=shared, where=where,
            not_looked_for=not_looked_for, back=back,
        )  # fmt: skip
        self.sources[id(out.table)] = (rows, absent)
        return out

    def _join(self, node: Join, needs: Needs, rule: str) -> View:
        per = node.policy.per if node.policy.name == "recent" else ()
        absences = tuple(c for c in node.where if isinstance(c, NoneInside))
        where = tuple(c for c in node.where if not isinstance(c, NoneInside))
        sides = possible_vars(node.left), possible_vars(node.right)
        both = sides[0] | sides[1]
        above = needs.more(
            {v for c in absences for v in condition_vars(c)} | {v for c in node.absent_where for v in condition_vars(c)},
            {n for c in absences for n in self._absence_labels(c)}
            | {n for c in node.absent_where for n in condition_labels(c)},
        )
        if node.absent is not None:
            above = above.more(possible_vars(node.absent) & both)
        below = above.more(
            {v for c in where for v in condition_vars(c)} | (sides[0] & sides[1]) | {*per, node.policy.by or ""},
            {n for c in where for n in condition_labels(c)},
        )
        left, right = self.view(node.left, below, rule), self.view(node.right, below, rule)
        shared = tuple(sorted(sides[0] & sides[1]))
        keys = tuple(v for v in shared if v in bound_vars(node.left) & bound_vars(node.right))
        timely = tuple(c for c in where if _timely(c, left, right))
        now = replace(node, where=timely if per else where)
        relation, rest = implied_bounds(now, self.clock, left.labels, right.labels, self.lengths)
        gap = node.absent is not None
        made = {c.label for c in where if isinstance(c, Relative)}
        labels = (above if not per else below).labels & (set(left.labels) | set(right.labels) | (made if not per else set()))
        named = {**{n: 1 for n in right.named}, **{n: 0 for n in left.named}}
        if per:
            return self._join_per(node, above, left, right, relation, rest, shared, absences, named, rule)
        out = self._table(sorted(above.vars & possible_vars(node)), [*sorted(labels), *([GAP] if gap else [])], named)
        alone = node.absent is None and not absences and not _several(node.left) and not _several(node.right)
        if node.policy.name == "recent" and alone:
            Recent(
                self, left, right, out, rule, policy=node.policy, keys=keys, shared=shared, relation=relation, where=rest,
                nodes=(node.left, node.right),
            )  # fmt: skip
            self.sources[id(out.table)] = (left, right)
            return out
        hidden = self._hidden(node, right, both, rule)
        join = JoinOperator(
            self, left, right, out, rule, keys=keys, shared=shared, relation=relation, where=rest, gap=gap,
            nodes=(node.left, node.right), absent=hidden, absent_keys=self._absent_keys(node, both),
        )  # fmt: skip
        self.sources[id(out.table)] = (left, right)
        rows = out
        if node.absent is not None:
            bound = bound_vars(node.left) | bound_vars(node.right)
            rows = self._absence(rows, node.absent, node.absent_where, GAP, bound, both, (), implied_back(node, None, self.clock, self.lengths), rule)
        for condition in absences:
            rows = self._inside(condition, rows, node, rule)
        return self._chosen(node.policy, rows, join, rule)

    def _absent_keys(self, node: Join, both: set[str]) -> tuple[str, ...]:
        return () if node.absent is None else tuple(sorted(possible_vars(node.absent) & both))

    def _hidden(self, node: Join, right: View, both: set[str], rule: str) -> View | None:
        """What must be absent, where the right part alone says which occurrences of it block."""
        if node.absent is None or node.absent_where:
            return None
        keys = set(self._absent_keys(node, both))
        if not keys <= bound_vars(node.right) & bound_vars(node.absent) or not keys <= set(right.vars):
            return None
        return self.view(node.absent, Needs(frozenset(keys)), rule)

    def _chosen(self, policy: Policy, rows: View, join: JoinOperator, rule: str) -> View:
        if policy.name == "unrestricted":
            return rows
        out = self._like(rows)
        Choose(self, rows, out, rule, policy=policy, join=join)
        self.sources[id(out.table)] = (rows, rows)
        return out

    def _join_per(
        self, node: Join, above: Needs, left: View, right: View, relation, rest, shared: tuple[str, ...],  # type: ignore[no-untyped-def]
        absences: tuple[NoneInside, ...], named: dict[str, int], rule: str,
    ) -> View:  # fmt: skip
        """`recent per`: chosen by the temporal conditions alone, before the join."""
        out = self._table([], [], named)
        join = JoinOperator(self, left, right, out, rule, keys=(), shared=(), relation=relation, where=rest, gap=False, nodes=(node.left, node.right))
        self.sources[id(out.table)] = (left, right)
        rows = self._chosen(node.policy, out, join, rule)
        where = tuple(c for c in node.where if not isinstance(c, NoneInside))
        made = {c.label for c in where if isinstance(c, Relative)}
        labels = sorted(above.labels & (set(left.labels) | set(right.labels) | made))
        gap = [GAP] if node.absent is not None else []
        agreed = self._table(sorted(above.vars & possible_vars(node)), [*labels, *gap], dict.fromkeys(named, 0))
        Agree(self, rows, agreed, rule, join=join, shared=shared, where=where, gap=bool(gap))
        self.sources[id(agreed.table)] = (rows, rows)
        result = agreed
        if node.absent is not None:
            bound, both = bound_vars(node.left) | bound_vars(node.right), possible_vars(node.left) | possible_vars(node.right)
            back = implied_back(node, None, self.clock, self.lengths)
            result = self._absence(result, node.absent, node.absent_where, GAP, bound, both, (), back, rule)
        for condition in absences:
            result = self._inside(condition, result, node, rule)
        return result


class Point(Operator):
    """`q`: the time point [q, q]."""

    kind = "point"

    def __init__(self, circuit: Circuit, out: View, at: int) -> None:
        super().__init__(circuit, (), out, "")
        out.table.append(np.array([[at], [at], [-1], [-1], [0]], np.int64))

    def make_links(self) -> list:  # type: ignore[type-arg]
        return []

    def step(self) -> None:
        pass

    def parts(self, row: int) -> tuple[Part, ...]:
        return ()


class Until(Map):
    """Adds the times that `last n` collects from: up to the end of the labelled events."""

    def __init__(self, circuit: Circuit, source: View, out: View, rule: str, covers: tuple[str, ...]) -> None:
        self.covers = covers
        super().__init__(circuit, source, out, rule)

    def mapped(self, frame: Frame) -> Frame:
        end = frame.end
        for label in self.covers:
            end = np.maximum(end, frame.labels[label][1])
        frame.labels[UNTIL] = (np.full(len(frame), -LONGEST), end)
        return frame


class Agree(Map):
    """What `recent per` has chosen: those pairs that agree and meet the other conditions."""

    def __init__(
        self, circuit: Circuit, source: View, out: View, rule: str, *, join: JoinOperator, shared: tuple[str, ...],
        where: tuple[Condition, ...], gap: bool,
    ) -> None:  # fmt: skip
        self.join, self.shared, self.gap = join, shared, gap
        super().__init__(circuit, source, out, rule, where=where)

    def mapped(self, frame: Frame) -> Frame:
        base, pairs = self.join.out.table, self.inputs[0].table.data[LEFT, frame.left]
        left, right = self.join.inputs
        frame = joined(left, right, base.data[LEFT, pairs], base.data[RIGHT, pairs], self.shared, self.gap, frame.left)
        return self.circuit.context.select(self.where, frame, self.rule)


def _monotone(stratum: Stratum) -> bool:
    for rule in stratum.rules:
        if any(e.reads in stratum.types and e.kind != "positive" for e in edges(rule)):
            return False
        for node in walk_all(rule.body):
            if isinstance(node, Join | Repeat) and node.policy.name != "unrestricted":
                return False
    return True


def _several(node: Node) -> bool:
    """Whether several rows may be made of the same events: where facts bind, or branches meet."""
    return any(
        isinstance(n, Either) or any(isinstance(c, Holds) for c in conditions(n)) for n in walk(node)
    )


def _timely(condition: Condition, left: View, right: View) -> bool:
    labels = condition_labels(condition)
    if isinstance(condition, Relative | NoneInside) or not labels or condition_vars(condition):
        return False
    return labels <= set(left.labels) | set(right.labels)


def possible_vars(node: Node) -> set[str]:
    """The variables that some row of the pattern binds."""
    if isinstance(node, Scan):
        return bound_vars(node)
    found = {v for part in inputs(node) for v in possible_vars(part)}
    for condition in conditions(node):
        if isinstance(condition, Holds) or (isinstance(condition, Compare) and condition.op == "="):
            found |= condition_vars(condition)
    return found


def possible_labels(node: Node) -> set[str]:
    found = {c.label for c in conditions(node) if isinstance(c, Relative)}
    if isinstance(node, Label):
        found.add(node.label)
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

