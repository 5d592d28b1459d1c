"""How a program is spread over buckets: stages of rules whose events share a key, one after the other.

A stage is partitioned by the values of some arguments of every type it reads, so that all events that can meet do meet. Rules
whose events share no argument are cut into slices of time where their answers have a bounded length, and else run in one
bucket. Rules whose key changes inside are parts by now (`planner/cut_rules.py`).

    s(L, W)  <- wind(L, W) SEQ fire(L).                     stage 1: by wind.0 and fire.0
    near(A)  <- (s(A, _) AND s(B, _)).1h WHERE d(A, B) < 9. stage 2: no shared argument; slices of time
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, assert_never

from augury.algebra import nodes as n
from augury.algebra.kinds import chooses, inner_absences, keeps_some_matches
from augury.algebra.place import place
from augury.algebra.plan import INPUT, Attribute, Plan, Predicate, rule_reads
from augury.algebra.properties import correlation_key, event_lengths, finality_delays
from augury.algebra.rule_terms import makes_windows
from augury.algebra.stage_keys import (
    KeyColumn,
    MadeArguments,
    Options,
    assigned,
    chooses_instants,
    key_columns,
    made_arguments,
    options_of,
)
from augury.algebra.strata import Stratum, fact_edges, strata
from augury.algebra.terms import Var

How = Literal["key", "slices", "anywhere", "one"]
PART = "#part "  # what the types of parts of rules begin with
ANYWHERE = f"{PART}any "  # and of those that each bucket makes of whatever it has
SLICES = 16  # a slice is at most so many times as long as its answers can be
LIVE_SLICES = (
    4  # a slice of a stream is so many times as long as its answers can be: a quarter of its events have a copy
)
SLICE = "#slice"  # the variable that events of one slice share


@dataclass(frozen=True)
class Stage:
    """Rules that run together. `reads` says for every type that it is given which arguments are the key, one for each of
    its variables, if there is one. `how` is "anywhere" where each event may be in any bucket: what these make is combined.

    Events of the types in `everywhere` go to all buckets: facts are made of them, which rules of any key may ask for, or
    windows by the clock are opened by them.
    `longest` bounds the length of its answers, in microseconds, where it is cut into slices; `why` says why it has no key,
    and `advice` which change to its rules would help.
    """

    number: int
    rules: tuple[n.Rule, ...]
    how: How
    reads: Mapping[Predicate, tuple[int, ...]]
    gives: tuple[Predicate, ...]
    longest: int | None = None
    why: str = ""
    advice: str = ""
    everywhere: frozenset[Predicate] = frozenset()


@dataclass(frozen=True)
class Stages:
    """The stages of a program. Events of the types in `spread` may be made in several buckets: equal ones are one."""

    plan: Plan
    stages: tuple[Stage, ...]
    spread: frozenset[Predicate]
    lengths: Mapping[Predicate, int | None]

    def plan_of(self, stage: Stage) -> Plan:
        """The plan of a stage's circuit: its rules, with the events of earlier stages as given sets."""
        lengths = {t: self.lengths[t] for t in stage.reads if t in self.plan.derived and t not in stage.gives}
        asked = set(self.plan.outputs) | {t[0] for other in self.stages[stage.number :] for t in other.reads}
        outputs = tuple(sorted({name for name, _ in stage.gives if name in asked}))
        declared: dict[str, tuple[Attribute, ...]] = {INPUT[0]: ()} if INPUT in stage.reads else {}
        return replace(self.plan, rules=stage.rules, outputs=outputs, declared=declared, given=lengths)


def needed(plan: Plan, outputs: Iterable[str]) -> Plan:
    """The plan with just the rules and queries that some outputs rest on."""
    wanted, open_types = set[Predicate](), [t for t in plan.derived if t[0] in set(outputs)]
    facts = fact_edges(plan)
    while open_types:
        type = open_types.pop()
        if type not in wanted:
            wanted.add(type)
            open_types += [e.reads for e in facts if e.head == type]
            open_types += [t for rule in plan.derived.get(type, ()) for t in rule_reads(rule) if t in plan.derived]
            queries = [query for query in plan.graph_queries if query.predicate == type]
            open_types += [t for query in queries for t in query.reads if t in plan.derived]
    rules = tuple(rule for rule in plan.rules if rule.predicate in wanted)
    asked = tuple(query for query in plan.graph_queries if query.predicate in wanted)
    return replace(plan, rules=rules, graph_queries=asked, outputs=tuple(o for o in plan.outputs if o in set(outputs)))


def one_stage(plan: Plan, longest: int | None = 0) -> Stages:
    """All rules in one bucket, beside each other: where there are no others, stages would cost and spread nothing."""
    builder = _Builder("one", plan.rules)
    stage = replace(builder.stage(1, plan, {}), why="there is one bucket")
    return Stages(plan, (stage,), frozenset(), event_lengths(plan, longest or 0))


def stages(plan: Plan, longest: int | None = 0, slices: bool = True, everywhere: bool = False) -> Stages:
    """The stages of a plan. `longest` bounds the length of input events, in microseconds; without a bound, and without
    `slices`, what has no key runs in one bucket. With `everywhere`, events that just make facts may go to all buckets."""
    lengths = event_lengths(plan, longest or 0)
    late = _late(plan) if everywhere else set[Predicate]()  # in a stream; history is there as a whole
    placing = _Placing(plan, lengths if longest is not None and slices else {}, late)
    makers, fact_inputs = _makers(plan), _just_for_facts(plan) if everywhere else set[Predicate]()
    for unit in _units(plan, late):
        if all(rule.makes for rule in unit.rules):
            continue
        asked = tuple(dict.fromkeys(rule for type in unit.types for rule in makers[type]))
        if asked and placing.by_facts(asked, unit):
            continue
        if any(t not in fact_inputs for rule in asked for t in rule_reads(rule)):
            # Rules that ask for facts that others make: these run beside them, in one bucket.
            asked_makers = [maker for rule in unit.rules for maker in makers[rule.predicate]]
            placing.into("one", tuple(dict.fromkeys([*asked_makers, *unit.rules])), unit.types)
            continue
        # Events that make facts go to all buckets, but not to all slices.
        if not placing.put(unit.rules, unit.types, unit.recursive or not late.isdisjoint(unit.types), not asked):
            for rule in unit.rules:
                placing.put((rule,), (rule.predicate,), False, not asked)
        for builder in placing.builders if asked else ():
            if any(rule in builder.rules for rule in unit.rules):
                builder.makers |= dict.fromkeys(asked)
    made_stages = tuple(b.stage(i + 1, plan, placing.bounds) for i, b in enumerate(placing.builders))
    spread_types = {t for t, where in placing.made.items() if len(where) > 1}
    spread_types |= {t for b in placing.builders for t in b.spread}
    return Stages(plan, made_stages, frozenset(spread_types), lengths)


class _Placing:
    """Puts rules into stages; `made` says in which ones each type is made."""

    def __init__(self, plan: Plan, bounds: Mapping[Predicate, int | None], late: set[Predicate]) -> None:
        self.plan, self.bounds, self.late = plan, bounds, late
        self.builders: list[_Builder] = []
        self.made: dict[Predicate, set[int]] = {}

    def put(self, rules: tuple[n.Rule, ...], types: tuple[Predicate, ...], recursive: bool, slices: bool) -> bool:
        """Into the first stage that fits; where there is none, a rule without a key gets its own way."""
        if slices and self.late.isdisjoint(types) and all(rule.type.startswith(ANYWHERE) for rule in rules):
            return self.into("anywhere", rules, types)
        for number in self._open("key", rules, types):
            if self.builders[number].take(rules, self.late):
                return self._note(types, number)
        keyed = _Builder("key")
        if keyed.take(rules, self.late):
            self.builders.append(keyed)
            return self._note(types, len(self.builders) - 1)
        if len(rules) > 1 and not recursive:
            return False
        whole = slices and self.late.isdisjoint(types) and _sliceable(rules, self.bounds)
        return self.into("slices" if whole else "one", rules, types)

    def by_facts(self, makers: tuple[n.Rule, ...], unit: Stratum) -> bool:
        """Into a stage whose key is that of the facts, too: what makes a fact goes where it is asked for."""
        rules, with_facts = (*makers, *unit.rules), made_arguments(self.plan)
        for number in self._open("key", rules, unit.types):
            if self.builders[number].take(rules, self.late, with_facts):
                return self._note(unit.types, number)
        keyed = _Builder("key")
        if not keyed.take(rules, self.late, with_facts):
            return False
        self.builders.append(keyed)
        return self._note(unit.types, len(self.builders) - 1)

    def into(self, how: How, rules: tuple[n.Rule, ...], types: tuple[Predicate, ...]) -> bool:
        """Into the first stage of a kind in which all that they read is there, or a new one."""
        number = next(self._open(how, rules, types), None)
        if number is None:
            self.builders.append(_Builder(how))
            number = len(self.builders) - 1
        builder = self.builders[number]
        builder.rules += tuple(rule for rule in rules if rule not in builder.rules)
        return self._note(types, number)

    def _open(self, how: How, rules: tuple[n.Rule, ...], types: tuple[Predicate, ...]) -> Iterator[int]:
        """The stages of a kind in which all that rules read is there; what several stages make is whole behind them."""
        read = [self.made[t] for rule in rules for t in rule_reads(rule) if t in self.made and t not in types]
        first = max((i for where in read for i in where), default=0)
        for number in range(first, len(self.builders)):
            there = all(i < number or len(where) == 1 for where in read for i in where)
            if self.builders[number].how == how and there:
                yield number

    def _note(self, types: Iterable[Predicate], number: int) -> bool:
        for type in types:
            self.made.setdefault(type, set()).add(number)
        return True


def _late(plan: Plan) -> set[Predicate]:
    """The types whose events may be chosen, or known, after their ends."""
    return {type for type, delay in finality_delays(plan).items() if delay != 0}


def _units(plan: Plan, late: set[Predicate]) -> list[Stratum]:
    """Units of placement: a stratum, with the strata that read events of it which may come late.

    A stage has come to their ends by then, and has forgotten what they would have met: who reads them runs beside them.
    """
    groups: list[list[Stratum]] = []
    asked = fact_edges(plan)
    for layer in strata(plan):
        reads = {t for rule in layer.rules for t in rule_reads(rule)}
        reads |= {edge.reads for edge in asked if edge.head in layer.types}
        reads &= late
        below = [group for group in groups if any(reads & set(item.types) for item in group)]
        groups = [group for group in groups if group not in below]
        groups.append([*(item for group in below for item in group), layer])
    # No rule outside reads events of a group of several: it goes last.
    return [
        group[0] if len(group) == 1 else _together(group) for group in sorted(groups, key=lambda group: len(group) > 1)
    ]


def _together(group: list[Stratum]) -> Stratum:
    """Strata as one, which is not taken apart."""
    rules, types = (tuple(x for item in group for x in getattr(item, name)) for name in ("rules", "types"))
    return replace(group[0], rules=rules, types=types, recursive=True)


def _just_for_facts(plan: Plan) -> set[Predicate]:
    """The input types that no rule reads but those that make facts."""
    read = {t for rule in plan.rules if rule.makes for t in rule_reads(rule)}
    return read - set(plan.derived) - {t for rule in plan.rules if not rule.makes for t in rule_reads(rule)}


def _makers(plan: Plan) -> dict[Predicate, tuple[n.Rule, ...]]:
    """For each type the rules that make the facts that its rules ask for, and those that make what these ask for."""
    edges = fact_edges(plan)
    result: dict[Predicate, tuple[n.Rule, ...]] = {}
    for type in plan.derived:
        below, open_types = dict[Predicate, None](), [type]
        while open_types:
            asking = open_types.pop()
            for edge in edges:
                if edge.head == asking and edge.reads not in below:
                    below[edge.reads] = None
                    open_types.append(edge.reads)
        result[type] = tuple(rule for t in reversed(below) for rule in plan.derived[t])
    return result


@dataclass
class _Builder:
    """A stage that grows: the ways in which each of its rules can have a key, and one in which all of them have."""

    how: How
    rules: tuple[n.Rule, ...] = ()
    options: list[Options] = field(default_factory=list)
    column: KeyColumn = field(default_factory=KeyColumn)
    must: set[Predicate] = field(default_factory=set)  # whose heads hold the key
    makers: dict[n.Rule, None] = field(default_factory=dict)  # of facts, whose events go to all buckets

    def take(self, rules: tuple[n.Rule, ...], late: set[Predicate], facts: MadeArguments | None = None) -> bool:
        """Takes rules in where a key fits all of them. Equal events that come late are made in one bucket.

        With `facts`, the rules agree on the key of the facts that they ask for, which others of them make.
        """
        new = tuple(rule for rule in rules if rule not in self.rules)
        options = [options_of(rule, facts or {}) for rule in new]
        column, must = assigned(options, self.column), {rule.predicate for rule in new} & late
        if column is None or not must <= column.held:
            return False
        self.column, self.must = column, self.must | must
        self.options += options
        self.rules += new
        return True

    @cached_property
    def columns(self) -> list[KeyColumn]:
        """The key, once all rules are there."""
        return key_columns(self.options, self.must) or [self.column]

    @property
    def spread(self) -> set[Predicate]:
        """The types whose heads do not hold the key, so that several buckets may make equal events."""
        if self.how != "key":
            return set()
        made = {rule.predicate for rule in self.rules if not rule.makes}
        return {type for type in made if any(type not in column.held for column in self.columns)}

    def stage(self, number: int, plan: Plan, bounds: Mapping[Predicate, int | None]) -> Stage:
        gives = tuple(sorted({rule.predicate for rule in self.rules if not rule.makes}))
        read = {t for rule in self.rules for t in rule_reads(rule)} | set(gives)
        read |= {INPUT} if any(makes_windows(rule) or rule.held for rule in self.rules) else set()
        if self.how == "key":
            broadcast = frozenset(t for rule in self.makers for t in rule_reads(rule))
            keys = {t: () if t in broadcast else self._arguments(t) for t in sorted(read | broadcast)}
            broadcast |= {INPUT} & read  # the first event of all opens windows by the clock
            return Stage(number, (*self.makers, *self.rules), "key", keys, gives, everywhere=broadcast)
        if self.how == "anywhere":
            return Stage(number, self.rules, self.how, dict.fromkeys(sorted(read), ()), gives)
        self.rules = tuple(dict.fromkeys([*self.makers, *self.rules]))
        read |= {t for rule in self.makers for t in rule_reads(rule)}
        makers = [rule for rule in self.rules if rule.makes and rule not in self.makers]
        if makers:
            name = makers[0].makes
            why = f"facts of `{name}` are made by a rule"
            advice = f"ask for `{name}` with a variable that all events of the rule and of those that make it share"
        else:
            made = [rule for rule in self.rules if not rule.makes]
            whole = [rule for rule in made if not combines(rule)]
            why, advice = _reason(whole[0], self.how) if whole else ("", "")
        longest = _reach(self.rules, bounds) if self.how == "slices" else None
        return Stage(number, self.rules, self.how, dict.fromkeys(sorted(read), ()), gives, longest, why, advice)

    def _arguments(self, type: Predicate) -> tuple[int, ...]:
        """The arguments of a type that are the key."""
        held = [column.keys.get(type) or column.heads.get(type) for column in self.columns]
        return tuple(min(positions) for positions in held if positions) if all(held) else ()


def combines(rule: n.Rule) -> bool:
    """Whether a rule without a key reads just what parts of it have left of many events."""
    return all(type.startswith(PART) for type, _ in rule_reads(rule))


def _reason(rule: n.Rule, how: How) -> tuple[str, str]:
    """Why a rule has no key, and which change to it would help."""
    share = "give its events an argument that all of them share"
    if rule.held:
        return f"the rule `{rule.label}` ranges over the times of facts", ""
    if makes_windows(rule):
        why = f"the windows of rule `{rule.label}` are there with or without events"
        return why, "collect in the windows first, without `or none`: those in which nothing happened are left out"
    if any(isinstance(node, n.Run) and not node.key for node in rule.nodes):
        query, _, part = rule.label.partition("·")
        if part:  # a rule that stands for a query
            return f"the sequence of query `{query}` has no key", "add `PARTITION BY ?v`, where all its graphs have ?v"
        return f"the run of rule `{rule.label}` has no key", "end the rule with `PER (V)`, where all its events have V"
    if any(map(chooses_instants, rule.nodes)):
        return f"a policy of rule `{rule.label}` chooses among pairs with a time point", "choose `per (V)`"
    if rule.at_most is not None and not correlation_key(rule) and correlation_key(replace(rule, at_most=None)):
        return f"AT MOST of rule `{rule.label}` chooses among events of all keys", "choose for each key: `PER (V)`"
    if correlation_key(rule):
        return f"the key of rule `{rule.label}` changes its place", "hand the key on, at one place, in every event"
    if any(map(chooses, rule.nodes)):
        share = "let its policy choose `per (V)`, where all its events have V"
    elif how == "one":
        share += ", or give it a window, so that a history is cut into slices of time"
    return f"the events of rule `{rule.label}` share no variable", share


def _sliceable(rules: tuple[n.Rule, ...], bounds: Mapping[Predicate, int | None]) -> bool:
    """Whether an answer rests on nothing but what lies inside its interval, or what a policy chooses from within a window."""
    if any(bounds.get(rule.predicate) is None for rule in rules):
        return False
    made = {rule.predicate for rule in rules}
    for rule in rules:
        if any(collect.last is not None for collect in rule.collects) or makes_windows(rule) or rule.held:
            return False
        if rule.since is not None or rule.until is not None or rule.at_most is not None:
            return False
        if any(isinstance(node, n.Instant | n.SessionWindow) or keeps_some_matches(node) for node in rule.nodes):
            return False
        if any(map(chooses, rule.nodes)) and not _chooses_within(rule, made):
            return False
    return True


def _chooses_within(rule: n.Rule, made: Collection[Predicate]) -> bool:
    """Whether every choice of a rule is that of the most recent event inside a window, and nothing beside looks further."""
    if rule.covers or rule.collects or inner_absences(rule.conditions) or not n.event_types(rule.body).isdisjoint(made):
        return False
    nodes = [node for node in n.walk_all(place(rule.body)) if chooses(node)]
    joins = [node for node in nodes if isinstance(node, n.Join) and node.op == "SEQ" and node.windows]
    return len(joins) == len(nodes) and all(j.policy.name == "recent" and not j.policy.before_join for j in joins)


def _reach(rules: Iterable[n.Rule], bounds: Mapping[Predicate, int | None]) -> int | None:
    """How long before its end an answer can rest on anything: its own length, and what candidates of policies add."""
    lengths = [bound for rule in rules if (bound := bounds.get(rule.predicate)) is not None]
    joins = [node for rule in rules for node in n.walk_all(place(rule.body)) if chooses(node)]
    return max(lengths) + sum(min(join.windows) for join in joins) if lengths else None


def asks_the_clock(stage: Stage) -> bool:
    """Whether what a stage makes hangs on where the clock stands: there are windows up to there, or answers wait for it."""
    waits = any(isinstance(node, n.SessionWindow) for rule in stage.rules for node in rule.nodes)
    return INPUT in stage.reads or waits or any(rule.until is not None for rule in stage.rules)


def can_slice(stages: Stages, stage: Stage, longest: int | None) -> int | None:
    """The greatest length of the answers of a stage, where it can be cut into slices of time, a key or not."""
    if longest is None:
        return None
    bounds = event_lengths(stages.plan, longest)
    if any(rule.makes for rule in stage.rules) or not _sliceable(stage.rules, bounds):
        return None
    return _reach(stage.rules, bounds)


def slice_length(longest: int, span: int, partitions: int) -> int:
    """How long slices are, in time points, of a history that spans some: two for each partition, but no shorter than the
    longest answer, of which each event then has a copy or two, and no longer than 16 times that."""
    return max(1, longest, min(SLICES * longest, span // (2 * partitions) + 1))


def live_slice(longest: int) -> int:
    """How long slices are, in time points, in a stream, whose length is unknown."""
    return max(1, LIVE_SLICES * longest)


def sliced(plan: Plan) -> Plan:
    """The plan in which events meet only inside their slice: it is one more argument of every event, and all share it."""
    return replace(
        plan,
        rules=tuple(_sliced_rule(rule) for rule in plan.rules),
        given={(name, arity + 1): bound for (name, arity), bound in plan.given.items()},
        hidden=1,
        aliases={(name, arity + 1): type for (name, arity), type in plan.aliases.items()},
    )


def in_buckets(plan: Plan) -> Plan:
    """The plan in which every event has its bucket as one more argument, and so have the events of parts."""
    with_bucket = sliced(plan)
    rules = (replace(rule, args=(*rule.args[:-2], Var(SLICE), Var(SLICE))) for rule in with_bucket.rules)
    return replace(with_bucket, rules=tuple(rules))


def _sliced_rule(rule: n.Rule) -> n.Rule:
    body = _sliced(rule.body)
    bound, collects = SLICE in n.bound_vars(body), list[n.Collect]()
    for collect in rule.collects:  # beside windows by the clock alone, what is collected first says the slice
        by = collect.by if bound else (*collect.by, SLICE)
        collects.append(replace(collect, pattern=_sliced(collect.pattern), by=by))
        bound = True
    top = rule.top and replace(rule.top, per=(*rule.top.per, SLICE))
    return replace(rule, args=(*rule.args, Var(SLICE)), body=body, collects=tuple(collects), top=top)


def _sliced(node: n.Node) -> n.Node:
    below = n.mapped_all(node, _sliced)
    match below:
        case n.Scan():
            return replace(below, args=(*below.args, Var(SLICE)))
        case n.Run():
            among = tuple(replace(scan, args=(*scan.args, Var(SLICE))) for scan in below.among)
            return replace(below, key=(*below.key, SLICE), among=among)
        case (
            n.Either()
            | n.Every()
            | n.Graph()
            | n.Instant()
            | n.Join()
            | n.Label()
            | n.Repeat()
            | n.Select()
            | n.SessionWindow()
            | n.Unfold()
            | n.Within()
        ):
            return below
        case _:
            assert_never(below)
