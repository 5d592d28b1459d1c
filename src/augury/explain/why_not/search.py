"""The search for the nearest partial match, bottom-up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import assert_never

from augury.algebra import nodes as n
from augury.algebra.matching import Named, agree
from augury.algebra.place import binds, is_ready, ready_order
from augury.algebra.relations import OPERATORS, holds
from augury.algebra.scalar import RowError
from augury.core.model import Event, OrderKey, order_key
from augury.explain.why_not.asked import Asked
from augury.explain.why_not.candidates import EACH, PAIRS, Nearby
from augury.explain.why_not.nearest_run import NearestRun
from augury.explain.why_not.words import UNTOLD, FailedCondition, MissWording, interval_of
from augury.semantics.groups import GroupEvaluator, cover
from augury.semantics.occurrences import Row, distinct
from augury.semantics.throttling import decided

BEAM = 200  # partial matches that a pattern offers, and of those with one end
FEW = 4
PLACE = "#place"
BRANCHES = 50  # ways in which conditions may bind


@dataclass(frozen=True)
class NearMiss:
    """A partial match: what there is of it, how many events it needs, and what failed."""

    row: Row
    needs: int
    failed: tuple[str, ...] = ()
    distance: int = 0  # of its window from what might have been collected

    @property
    def rank(self) -> OrderKey:
        return (len(self.row.parts), -len(self.failed), -self.distance, self.row.order)

    @property
    def is_blank(self) -> bool:
        return not self.row.parts and self.needs > 0

    @property
    def is_full(self) -> bool:
        """Every event is there, so that its interval is known."""
        return len(self.row.parts) == self.needs

    def but(self, *failed: str) -> NearMiss:
        """With more failures. A condition that failed below, too, is said once, as it failed last."""
        lines = {line.partition("`: ")[0] if line.startswith("`") else line: line for line in (*self.failed, *failed)}
        return replace(self, failed=tuple(lines.values()))


def rank_of(near: NearMiss) -> OrderKey:
    return near.rank


class Search:
    """Finds the best partial matches of patterns, bottom-up."""

    def __init__(self, world: Nearby, words: MissWording) -> None:
        self.world, self.words = world, words
        self._known: dict[int, list[NearMiss]] = {}
        self._bound: dict[int, set[str]] = {}

    def best(self, node: n.Node) -> list[NearMiss]:
        """The partial matches that a pattern offers, the best one last; complete ones have no failures."""
        if id(node) not in self._known:
            self._known[id(node)] = self._ranked(self.world.fitting(node), self._partial(node))
        return self._known[id(node)]

    def _ranked(self, whole: Iterable[Row], partial: Iterable[NearMiss]) -> list[NearMiss]:
        """Each row once, the best last. Where there are too many, few for each end: what follows may need an earlier one."""
        seeded = [NearMiss(row.bind({**self.world.wanted, **row.binding}), len(row.parts)) for row in whole]
        ranked = sorted([*seeded, *partial], key=rank_of, reverse=True)
        by_row: dict[OrderKey, NearMiss] = {}
        for near in ranked:
            times = () if near.row.parts else interval_of(near.row)
            by_row.setdefault((tuple(p.id for p in near.row.parts), near.row.bound, times), near)
        kept = list(by_row.values())
        if len(kept) > BEAM:
            self.world.capped = True
            by_end: dict[tuple[int, int], list[NearMiss]] = {}
            for near in kept:
                by_end.setdefault((near.row.end, len(near.row.parts)), []).append(near)
            kept = [near for level in by_end.values() for near in level[:FEW]]
        return kept[:BEAM][::-1]

    def _partial(self, node: n.Node) -> Iterable[NearMiss]:
        match node:
            case n.Scan() | n.Instant() | n.Every():
                blank = NearMiss(Row(0, 0), 1)
                return (
                    []
                    if self.world.fitting(node)
                    else [blank.but(FailedCondition(self.words.missing(node, self.world), node.span))]
                )
            case n.SessionWindow():
                return [] if self.world.fitting(node) else self._no_session(node)
            case n.Graph() | n.Unfold():
                return [] if self.world.rows(node) else self.best(node.input)
            case n.Label():
                return [self._labelled(near, node.label) for near in self.best(node.input)]
            case n.Select():
                return [
                    near if near.is_blank else self._tested(near, node.where, node) for near in self.best(node.input)
                ]
            case n.Within():
                return [near.but(*self.words.windows((node.length,), near.row)) for near in self.best(node.input)]
            case n.Either():
                left, right = self.best(node.left), self.best(node.right)
                blank = left[-1].but(*right[-1].failed)
                return [blank] if left[-1].is_blank and right[-1].is_blank else [*left, *right]
            case n.Join():
                return self._pairs(node, self.best(node.left), self.best(node.right), self.world.rows(node))
            case n.Repeat():
                return self._repeated(node)
            case n.Run():
                return self._run(node)
            case _:
                assert_never(node)

    def _no_session(self, node: n.SessionWindow) -> list[NearMiss]:
        """Where there are events, none of their sessions has ended, or all are too long; else there are no events."""
        if not self.world.fitting(node.input):
            return self.best(node.input)
        return [NearMiss(Row(0, 0), 1).but(f"no session of `{node.text}` fits")]

    def _labelled(self, near: NearMiss, label: str) -> NearMiss:
        named = {label: Named(near.row.start, near.row.end, near.row.parts)} if near.is_full else {}
        return replace(near, row=replace(near.row, labels={**near.row.labels, **named}))

    def _repeated(self, node: n.Repeat) -> Iterator[NearMiss]:
        """One more at each step, until no complete row is left."""
        step, rows = self.best(node.input)[-EACH:], self.world.rows(node.input)
        absent = node.input if node.consecutive else None
        join = n.Join("SEQ", node.input, node.input, windows=node.windows, absent=absent, policy=node.policy)
        level, length = step, max(near.needs for near in step)
        for _ in range(node.count - 1):
            rows = distinct(self.world.join(join, rows, self.world.rows(node.input)))
            level = self._ranked(filter(self.world.fits, rows), self._pairs(join, level, step, rows))[-EACH:]
            if all(near.failed for near in level):
                break
            level = [near for near in level if not near.failed]
        for near in level:
            times = len(near.row.parts) // max(length, 1)
            short = [f"`^ {node.count}`: {times} of {node.count} times"] if 0 < times < node.count else []
            yield replace(near.but(*short), needs=node.count * length) if near.failed else near

    def _run(self, node: n.Run) -> list[NearMiss]:
        """The run that came furthest, and what it lacks."""
        match, needs, failed = NearestRun(self.world, self.words, node).nearest()
        start, end = (match.start, match.end) if match.events else (0, 0)
        row = Row(start, end, match.binding, match.labels, match.events, match.proofs)
        return [NearMiss(row, needs).but(*failed)]

    def _pairs(self, node: n.Join, left: list[NearMiss], right: list[NearMiss], taken: list[Row]) -> list[NearMiss]:
        """The nearest pairs that agree on what they share; where none do, some that do not."""
        near_misses: list[NearMiss] = []
        for item in reversed(left):
            partners = (p for p in reversed(right) if agree(item.row.binding, p.row.binding) is not None)
            pairs = [self._pair(node, item, other, taken) for other in islice(partners, EACH)]
            near_misses += pairs
            self.world.capped |= len(pairs) == EACH or len(near_misses) >= PAIRS
            if len(near_misses) >= PAIRS:
                break
        return near_misses or [self._pair(node, item, other, taken) for item in left[-10:] for other in right[-10:]]

    def _pair(self, node: n.Join, left: NearMiss, right: NearMiss, taken: list[Row]) -> NearMiss:
        """Two partial matches as one. Where they are apart in time or differ in a value, only the nearer one is kept."""
        words, kept = self.words, max(left, right, key=rank_of)
        both = NearMiss(kept.row, left.needs + right.needs, left.failed).but(*right.failed)
        if left.is_blank or right.is_blank:
            return both
        full = left.is_full and right.is_full
        apart = words.keys(left.row, right.row, kept.row)
        if (node.op == "SEQ" or full) and not holds(OPERATORS[node.op], interval_of(left.row), interval_of(right.row)):
            apart.append(words.relation(node, left.row, right.row, kept is left))
        row = left.row.joined(right.row)
        if apart or row is None:
            return both.but(*apart)
        failed = words.windows(node.windows, row)
        if full and (blocker := self.world.between(node, left.row, right.row, row)):
            failed.append(words.blocked(blocker))
        result = self._tested(replace(both, row=row).but(*failed), node.where, node)
        chosen = node.policy == n.UNRESTRICTED or any(t.parts == row.parts for t in taken)
        if result.failed or not full or chosen:
            return result
        return result.but(words.policy(node, left.row, right.row, taken, self.world))

    def _tested(self, near: NearMiss, where: tuple[n.Condition, ...], node: n.Node | None = None) -> NearMiss:
        """Each condition by itself; one that needs what is not there, or failed to be bound, is left out."""
        rows, failed = [near.row], list[str]()
        lost = self._given(node) - near.row.binding.keys() if node is not None and where else set()
        for condition in ready_order(where, set(near.row.binding)):
            row, bound = rows[-1], set(rows[-1].binding)
            decidable = isinstance(condition, n.Holds) or is_ready(condition, bound)
            if not decidable or n.condition_vars(condition) & lost or n.condition_labels(condition) - row.labels.keys():
                continue
            passed = list(islice((p for r in rows for p in self.world.select((condition,), r)), BRANCHES))
            if not passed:
                failed.append(self.words.condition(condition, row, self.world))
                lost |= binds(condition, bound)
            rows = passed or rows
        return replace(near, row=rows[-1]).but(*failed)

    def _given(self, node: n.Node) -> set[str]:
        """The variables that complete inputs of an operator bind."""
        if id(node) not in self._bound:
            self._bound[id(node)] = {v for part in n.inputs(node) for v in n.bound_vars(part)}
        return self._bound[id(node)]

    # After the body

    def derived(self, rule: n.Rule, near: NearMiss, asked: Asked, now: int) -> NearMiss:
        """What fails after a complete row: nothing to collect, a condition on a group, its place, the head, the time."""
        groups, rows = GroupEvaluator(self.world, rule), [near.row]
        for number, collect in enumerate(rule.collects):
            self.world.errors.clear()
            collected = list(groups.collected(number, collect, rows))
            if not collected:
                short = max((self._collected(rule, collect, _whole(row)) for row in rows), key=rank_of)
                return short if short.failed else short.but(*(message for _, message in self.world.errors))
            rows = collected
        return max((self._headed(groups, _whole(row), asked, now) for row in rows), key=rank_of)

    def _headed(self, groups: GroupEvaluator, near: NearMiss, asked: Asked, now: int) -> NearMiss:
        """A row of a group: the conditions on it, its place, and its head."""
        rule, words = groups.rule, self.words
        near = self._tested(near, rule.having)
        if near.failed:
            return near
        if rule.top is not None:
            position = self._place(groups, rule.top, near.row)
            if position is None:
                whole = self._place(groups, replace(rule.top, count=None), near.row)
                return near.but(words.rank_text(rule.top, near.row, whole))
            near = replace(near, row=near.row.bind({**near.row.binding, rule.top.place or PLACE: position}))
        try:
            args, start, end = groups.head(near.row)
        except RowError:
            return near.but(*words.uncomputed(groups, near.row))
        event = Event(rule.type, args, start, end)
        failed = words.head(rule, event, asked, now)
        if rule.at_most is not None and failed == [UNTOLD]:
            failed = [words.throttled(rule.at_most, self._before(groups, event))]
        return near.but(*failed)

    def _before(self, groups: GroupEvaluator, event: Event) -> list[Event]:
        """The events that were given before an event, so that AT MOST held it back."""
        rule, made = groups.rule, list[tuple[Event, OrderKey]]()
        assert rule.at_most is not None
        for row in groups.rows():
            with suppress(RowError):
                made.append((Event(rule.type, *groups.head(row)), groups.key(row)))
        decisions = decided(rule.at_most, made, self.world.scalars.clock)
        return next((before for other, before in decisions if other.content == event.content), [])

    def _place(self, groups: GroupEvaluator, top: n.Top, row: Row) -> int | None:
        """The place of a row in a ranking; None where it has none."""
        name = top.place or PLACE
        whole = GroupEvaluator(self.world, replace(groups.rule, top=None))
        every = groups.ranked(replace(top, place=name), whole.rows())
        mine = _content(row, name, groups.rule.covers)
        positions = (item.binding[name] for item in every if _content(item, name, groups.rule.covers) == mine)
        position = next(positions, None)
        return position if isinstance(position, int) else None

    def _collected(self, rule: n.Rule, collect: n.Collect, near: NearMiss) -> NearMiss:
        """A row with what it collects."""
        row = near.row
        last = max([row.end, *(row.labels[label].end for label in rule.covers)])
        window = row.labels[collect.window][:2] if collect.window else (None, last)
        offers = [offer for offer in self.best(collect.pattern) if not offer.is_blank]
        timely = [o for o in offers if (window[0] is None or window[0] <= o.row.start) and o.row.end <= window[1]]
        tried = [self._gathered(collect, row, offer) for offer in timely]
        gathered = sorted((t.row for t in tried if not t.failed), key=lambda r: r.order)
        whole = list(dict.fromkeys(item.parts for item in gathered))[-(collect.last or 0) :]
        parts = tuple(dict.fromkeys((*row.parts, *(p for item in whole for p in item))))
        short = (collect.last or 0) - len(whole) if collect.exactly else 0 if whole or collect.none else 1
        result = replace(near, row=replace(row, parts=parts), needs=len(parts) + short)
        if whole or (collect.none and not short):
            return result.but(f"`exactly {collect.last}`: only {len(whole)} to collect") if short else result
        distance, reasons = 0, self.best(collect.pattern)[-1].failed
        if tried:
            reasons = max(tried, key=lambda t: (-len(t.failed), t.rank)).failed
        elif offers:
            first, end = window
            agreed = [o.row for o in offers if agree(row.binding, o.row.binding) is not None]
            nearest = min(agreed, key=lambda other: _outside(other, first, end), default=None)
            distance = _outside(nearest, first, end) if nearest is not None else 0
            reasons = (self.words.outside(collect, row, first, end, nearest),)
        return replace(result, distance=distance).but(*(f"nothing to collect: {reason}" for reason in reasons))

    def _gathered(self, collect: n.Collect, row: Row, offer: NearMiss) -> NearMiss:
        joined = row.joined(offer.row)
        if joined is None:
            return offer.but(*self.words.keys(row, offer.row, row))
        window = {collect.label: Named(offer.row.start, offer.row.end, offer.row.parts)} if collect.label else {}
        there = replace(offer.row, binding=joined.binding, labels={**row.labels, **window})
        return replace(self._tested(replace(offer, row=there), collect.where), row=offer.row)


def _outside(row: Row, first: int | None, last: int) -> int:
    """How much of a row, and of the way to it, lies outside of a window."""
    return max(0, row.end - last, 0 if first is None else first - row.start)


def _whole(row: Row) -> NearMiss:
    """A row with all that it has collected so far."""
    parts = row.parts + row.collected
    return NearMiss(replace(row, parts=parts, collected=()), len(parts))


def _content(row: Row, position: str, covers: tuple[str, ...]) -> OrderKey:
    """What a row is, its place aside."""
    bound = tuple((v, order_key(x)) for v, x in sorted(row.binding.items()) if v != position)
    return (cover(row, covers), bound, tuple(p.id for p in row.parts + row.collected))
