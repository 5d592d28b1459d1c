"""The steps between the body of a rule and its head: collects, conditions on groups, rankings (SEMANTICS 3, 11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from augury.algebra.matching import Named
from augury.algebra.nodes import SEEN, Collect, Rule, Top
from augury.algebra.rule_terms import clock_labels, later_variables, start_of, uses_place
from augury.algebra.scalar import RowError
from augury.algebra.terms import variables
from augury.core.model import OrderKey, Value, order_key
from augury.semantics.occurrences import Row
from augury.semantics.pattern_rows import World


class GroupEvaluator:
    """The rows that the head of a rule is computed of."""

    def __init__(self, world: World, rule: Rule) -> None:
        self.world, self.rule = world, rule

    def rows(self) -> Iterator[Row]:
        rows = self.world.rows(self.rule.body)
        for number, collect in enumerate(self.rule.collects):
            rows = list(self.collected(number, collect, rows))
        selected = [selected_row for row in rows for selected_row in self.world.select(self.rule.having, row)]
        yield from selected if self.rule.top is None else self.ranked(self.rule.top, selected)

    # Collecting

    def collected(self, number: int, collect: Collect, rows: Iterable[Row]) -> Iterator[Row]:
        """For each combination of labelled events, and each value of what is used later, a row with the totals."""
        world, others = self.world, sorted(later_variables(self.rule, number))
        seen = sorted({v for total in collect.totals for v in variables(total.aggregate)})
        candidates = [] if collect.clips else world.rows(collect.pattern)
        groups: dict[OrderKey, tuple[Row, dict[OrderKey, tuple[Row, Row]]]] = {}
        for row in rows:
            if collect.none:
                groups.setdefault(_group(row, row, others), (row, {}))
            limit = cover(row, self.rule.covers)[1]
            for candidate in self.held(collect, row) if collect.clips else candidates:
                if not (collect.clips or _eligible(collect, row, candidate, limit)):
                    continue
                joined = row.joined(candidate)
                if joined is None:
                    continue
                named = Named(candidate.start, candidate.end, candidate.parts)
                labels = {**row.labels, **({collect.label: named} if collect.label else {})}
                if collect.clips:  # facts are seen at the end of an interval, or of the window if that is before
                    labels[SEEN] = Named(candidate.start, min(candidate.end, row.labels[collect.window or ""].end))
                joined = replace(joined, start=candidate.start, end=candidate.end, labels=labels)
                for bound in world.select(collect.where, joined):
                    _, members = groups.setdefault(_group(row, bound, others), (row, {}))
                    identity = (
                        tuple(p.id for p in candidate.parts),
                        tuple(order_key(bound.binding.get(v)) for v in seen),
                    )
                    members.setdefault(identity, (candidate, bound))
        for row, members in groups.values():
            chosen = sorted(members.values(), key=lambda m: m[0].order)
            if collect.last is not None:
                different = list(dict.fromkeys(c.parts for c, _ in chosen))[-collect.last :]
                chosen = [(c, bound) for c, bound in chosen if c.parts in different]
                if collect.exactly and len(different) < collect.last:
                    continue
                row = replace(
                    row,
                    start=min([row.start, *(c.start for c, _ in chosen)]),
                    end=max([row.end, *(c.end for c, _ in chosen)]),
                )
            yield from self._totalled(collect, row, chosen)

    def held(self, collect: Collect, row: Row) -> list[Row]:
        """What lies in the window of a row of intervals in which facts hold: one by the clock counts to its very end."""
        window = row.labels[collect.window or ""]
        by_clock = collect.window in clock_labels(self.rule.body)
        return self.world.clipped(collect.pattern, window.start, window.end + by_clock)

    def _totalled(self, collect: Collect, row: Row, chosen: list[tuple[Row, Row]]) -> Iterator[Row]:
        """The row of a group, with its variables and its totals."""
        members = [bound for _, bound in chosen]
        try:
            totals = {total.name: self.world.aggregated(total.aggregate, members) for total in collect.totals}
        except RowError as error:
            self.world.report(self.rule.label, str(error), row.binding, row.parts)
            return
        group_variables = {v: chosen[0][1].binding[v] for v in collect.by if chosen}
        parts = row.parts + row.collected
        gathered = tuple(dict.fromkeys(p for c, _ in chosen for p in c.parts if p not in parts))
        proofs = chosen[0][1].proofs if chosen else row.proofs
        yield replace(
            row, binding={**row.binding, **group_variables, **totals}, collected=row.collected + gathered, proofs=proofs
        )

    # Rankings

    def ranked(self, top: Top, rows: Iterable[Row]) -> Iterator[Row]:
        """Of rows with one cover and one value of `per`, those with the first places; equal ones share theirs."""
        tables: dict[OrderKey, dict[OrderKey, list[Row]]] = {}
        for row in rows:
            try:
                by = self.world.scalars.evaluate(top.by, row.binding, row.labels)
                start = self.start(row)
                args = tuple(order_key(a) for a in self._without_place(row))
            except RowError as error:
                self.world.report(self.rule.label, str(error), row.binding, row.parts)
                continue
            per = tuple(order_key(row.binding[v]) for v in top.per)
            table = tables.setdefault((*cover(row, self.rule.covers), per), {})
            table.setdefault((by is None, order_key(by), start, args), []).append(row)
        for table in tables.values():
            order = sorted(table, key=lambda key: key[2:])  # the start that the event will have, then its arguments
            order.sort(key=lambda key: key[1], reverse=not top.ascending)
            order.sort(key=lambda key: key[0])  # null last
            for index, key in enumerate(order[: _taken(top, order)], 1):
                for row in table[key]:
                    yield row.bind({**row.binding, top.place: index}) if top.place else row

    def _without_place(self, row: Row) -> list[Value]:
        """The arguments of the head that do not depend on the rank."""
        args = [a for a in self.rule.args if not uses_place(self.rule, a)]
        return [self.world.scalars.evaluate(a, row.binding, row.labels) for a in args]

    # The head

    def key(self, row: Row) -> OrderKey:
        """The values for which AT MOST chooses."""
        return tuple(order_key(row.binding[v]) for v in (self.rule.at_most.per if self.rule.at_most else ()))

    def head(self, row: Row) -> tuple[tuple[Value, ...], int, int]:
        """The arguments, the start and the end of the event that a row gives."""
        start, end = self.start(row), cover(row, self.rule.covers)[1]
        return tuple(self.world.scalars.evaluate(a, row.binding, row.labels) for a in self.rule.args), start, end

    def start(self, row: Row) -> int:
        """Where the event of a row starts: with its cover, or where the head says."""
        start, end = cover(row, self.rule.covers)
        since = self.rule.since
        if since is None:
            return start
        if since == "END":
            return end
        value = self.world.scalars.evaluate(since, row.binding, row.labels)
        return start_of(value, end, self.world.scalars.clock.kind)


def cover(row: Row, labels: Sequence[str]) -> tuple[int, int]:
    """The interval of a derived event: all positive parts and windows."""
    windows: list[Named] = [row.labels[label] for label in labels]
    return min([row.start, *(w.start for w in windows)]), max([row.end, *(w.end for w in windows)])


def _group(row: Row, bound: Row, others: list[str]) -> OrderKey:
    """What makes a group: the labelled events, the times of labels, and the values that are used later."""
    values = tuple((v in bound.binding, order_key(bound.binding.get(v))) for v in others)
    return (tuple(p.id for p in row.parts), tuple(sorted(row.labels.items())), values)


def _eligible(collect: Collect, row: Row, candidate: Row, limit: int) -> bool:
    if collect.window is not None:
        window = row.labels[collect.window]
        return window.start <= candidate.start and candidate.end <= window.end
    return candidate.end <= limit


def _taken(top: Top, order: Sequence[OrderKey]) -> int | None:
    """How many of the rows in order are given: with ties, all whose value equals that of the n-th, if that is not null."""
    count = top.count
    if count is None or not top.ties or count > len(order):
        return count
    missing, value = order[count - 1][:2]
    while not missing and count < len(order) and order[count][:2] == (missing, value):
        count += 1
    return count
