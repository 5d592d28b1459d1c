"""The keys of stages: arguments of events on which all agree that can meet.

    s(U, I) <- login(U, I) SEQ failure(U, I).       by U and by I: login.(0, 1), failure.(0, 1)
    t(U)    <- s(U, _) SEQ fired(U).                beside it: by U alone, of which every event has its argument

A column of the key is a variable of each rule: it gives each type an argument. All shared variables are columns, so that the
rows of one hot value spread by the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from augury.algebra import nodes as n
from augury.algebra.kinds import atoms_in, of_kind
from augury.algebra.plan import Plan, Predicate, once_a_plan
from augury.algebra.properties import correlation_key, key_classes
from augury.algebra.rule_terms import makes_windows, windows_by_key
from augury.algebra.strata import below, static_reads
from augury.algebra.terms import Expr, Var

Positions = frozenset[int]
Arguments = Mapping[Predicate, Positions]
_COLUMNS = 4  # of a key; more would spread nothing further


@dataclass(frozen=True)
class KeyColumn:
    """One column of a key: the arguments that hold it, of each type that is read and of each that is made."""

    keys: dict[Predicate, Positions] = field(default_factory=dict)
    heads: dict[Predicate, Positions] = field(default_factory=dict)

    @property
    def held(self) -> frozenset[Predicate]:
        """The types whose heads hold it: no two buckets make equal events of them."""
        return frozenset(type for type, positions in self.heads.items() if positions)

    def adds_to(self, columns: Iterable[KeyColumn]) -> bool:
        """Whether it takes an argument that no other column takes."""
        taken = [column.keys for column in columns]
        return any(all(min(positions) != min(keys[type]) for keys in taken) for type, positions in self.keys.items())


@dataclass(frozen=True)
class Options:
    """The ways in which a rule can have a key: for each variable where each type that it reads holds it, and its head."""

    head: Predicate
    ways: tuple[tuple[Arguments, Positions], ...]


def assigned(
    options: Sequence[Options], start: KeyColumn | None = None, but: Iterable[KeyColumn] = ()
) -> KeyColumn | None:
    """A column for all rules beside what is there; the first that is found, those in `but` last."""
    tried = [_ways(options, 0, start or KeyColumn(), but)]  # for each rule that has one, the ways that are left to try
    while tried:
        column = next(tried[-1], None)
        if column is None:
            tried.pop()
        elif len(tried) <= len(options):
            tried.append(_ways(options, len(tried), column, but))
        else:
            return column
    return None


def key_columns(options: Sequence[Options], must: Iterable[Predicate] = ()) -> list[KeyColumn]:
    """The columns of the key of a stage: those that the heads hold, or those that most of them hold, where there are such.

    The heads of the types in `must` hold all of them.
    """
    columns: list[KeyColumn] = []
    while len(columns) < _COLUMNS:
        column = assigned(options, but=columns)
        if column is None or not column.adds_to(columns):
            break
        columns.append(column)
    columns = [column for column in columns if column.held.issuperset(must)]
    most = max((column.held for column in columns), key=len, default=frozenset())
    return [column for column in columns if column.held == most]


def _ways(options: Sequence[Options], number: int, column: KeyColumn, but: Iterable[KeyColumn]) -> Iterator[KeyColumn]:
    """The ways in which one rule can have a key beside those before it; behind the last one, whether all fit."""
    keys, heads = column.keys, column.heads
    if number == len(options):
        if all(positions & heads[t] for t, positions in keys.items() if t in heads):
            yield KeyColumn(
                {t: positions & heads[t] if t in heads else positions for t, positions in keys.items()}, heads
            )
        return
    rule = options[number]
    for reads, held in sorted(rule.ways, key=lambda way: not _is_new(way[0], but)):
        new_keys, new_heads = dict(keys), dict(heads)
        for type, positions in reads.items():
            new_keys[type] = new_keys.get(type, positions) & positions
        new_heads[rule.head] = new_heads.get(rule.head, held) & held
        if all(new_keys.values()):
            yield KeyColumn(new_keys, new_heads)


def _is_new(reads: Arguments, but: Iterable[KeyColumn]) -> bool:
    """Whether a way takes no argument that a column has taken."""
    return not any(
        positions & column.keys.get(type, frozenset()) for column in but for type, positions in reads.items()
    )


def options_of(rule: n.Rule, facts: MadeArguments) -> Options:
    """The ways in which a rule can have a key; with `facts`, the facts that it asks for and that rules make have it, too."""
    return Options(rule.predicate, tuple(_ways_of(rule, facts)))


def _ways_of(rule: n.Rule, facts: MadeArguments) -> Iterator[tuple[Arguments, Positions]]:
    nodes = list(rule.nodes)
    if rule.held:
        return  # each bucket would have the intervals of all facts
    if makes_windows(rule) and not windows_by_key(rule):
        return  # they are there in every bucket
    if any(map(chooses_instants, nodes)):
        return  # which partner a time point gets is chosen among those of all keys
    same = key_classes(rule)
    for key in correlation_key(rule):

        def holding(args: Iterable[Expr], key: str = key) -> Positions:
            return frozenset(i for i, a in enumerate(args) if isinstance(a, Var) and same(a.name) == key)

        reads: dict[Predicate, Positions] = {}
        for scan in of_kind(nodes, n.Scan):
            positions = holding(scan.args)
            reads[scan.predicate] = reads.get(scan.predicate, positions) & positions
        for atom in (atom for condition in rule.conditions for atom in atoms_in(condition)) if facts else ():
            for made, places in facts.get(atom.predicate, {}).items():
                positions = frozenset[int]().union(*(places.get(i, frozenset()) for i in holding(atom.args)))
                reads[made] = reads.get(made, positions) & positions
        if reads and all(reads.values()):
            held = holding(rule.args)
            if rule.latest is not None:  # a fact ends those with the same key, whatever else they say
                held &= frozenset(rule.latest)
            if held or not rule.makes:
                yield reads, held


def chooses_instants(node: n.Node) -> bool:
    """Whether a policy chooses among pairs with a time point, which has no key."""
    if not isinstance(node, n.Join | n.Repeat) or node.policy == n.UNRESTRICTED or node.policy.before_join:
        return False
    return bool(of_kind(n.walk(node), n.Instant))


# Facts that rules make

MadeArguments = Mapping[Predicate, Mapping[Predicate, Mapping[int, Positions]]]


@once_a_plan
def made_arguments(plan: Plan) -> MadeArguments:
    """For each static predicate the types of events that make the facts below it, and for each argument of the
    predicate those of the events that have its value in every answer.

        fact on(S) <- up(S).   lit(S, R) :- on(S), room(S, R).      lit/2: {fact on: {0: {0}, 1: {}}}
    """
    reads, heads = static_reads(plan.clauses), {(clause.name, len(clause.args)) for clause in plan.clauses}
    result: dict[Predicate, dict[Predicate, dict[int, Positions]]] = {}
    for made in plan.made:
        types = [type for type in plan.made[made] if type in plan.derived]
        reaching = {p for p in heads | {made} if made in below(p, reads)}
        pairs = {p: {i: frozenset(range(made[1])) for i in range(p[1])} for p in reaching}
        pairs[made] = {i: frozenset({i}) for i in range(made[1])}
        changed = True
        while changed:
            changed = False
            for clause in plan.clauses:
                for i, arg in enumerate(clause.args) if clause.predicate in reaching else ():
                    kept = pairs[clause.predicate][i] & _carried(clause, arg, pairs, made[1])
                    if kept != pairs[clause.predicate][i]:
                        pairs[clause.predicate][i], changed = kept, True
        for predicate, places in pairs.items():
            for type in types:
                result.setdefault(predicate, {})[type] = places
    return result


def _carried(clause: n.Clause, arg: Expr, pairs: Mapping[Predicate, Mapping[int, Positions]], arity: int) -> Positions:
    """The arguments of facts that have the value of an argument of the head, whatever atom asks for them."""
    result = frozenset(range(arity))
    for atom in (atom for condition in clause.body for atom in atoms_in(condition) if atom.predicate in pairs):
        same = [i for i, other in enumerate(atom.args) if isinstance(arg, Var) and other == arg]
        result &= frozenset[int]().union(*(pairs[atom.predicate][i] for i in same))
    return result
