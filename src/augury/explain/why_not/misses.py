"""Why an event was not detected: for each rule the nearest partial match, and what it fails at.

A partial match is what there is of a pattern, with words for what is not. Bottom-up, every pattern offers the best of
its partial matches; an operator pairs those of its two sides and says of each pair which of its demands failed. The
nearest one has the most events, then the fewest failures, then the latest end. Where there are too many pairs, only
the latest rows are looked at, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from augury.algebra import nodes as n
from augury.algebra.matching import Scalars
from augury.algebra.plan import Plan
from augury.algebra.stages import SLICE
from augury.core.clock import Clock
from augury.core.errors import RunError, counted
from augury.core.model import Event, Value
from augury.explain.tree import Tree
from augury.explain.why import ExplainedEvent, tree_as_json
from augury.explain.why_not.asked import Asked, bind, read_asked, underivable
from augury.explain.why_not.candidates import Nearby
from augury.explain.why_not.search import Search, rank_of
from augury.explain.why_not.words import MissWording
from augury.notation import show_event
from augury.semantics.occurrences import by_type
from augury.semantics.static_calls import Static

HEADS = 20  # complete rows that are looked at for what fails after the body
CAPPED = "there were too many pairs: only the latest rows were looked at"


@dataclass(frozen=True)
class Miss:
    """How near a rule came: the events of its nearest partial match, how many it needs, and what failed."""

    rule: str
    parts: tuple[Event, ...]
    total: int
    failed: tuple[str, ...]

    @property
    def farness(self) -> tuple[int, float]:
        """How far the rule was from deriving the event: what failed counts first."""
        return len(self.failed), -len(self.parts) / max(1, self.total)

    def without_extra(self, extra: int) -> Miss:
        """The same in a stage of slices, in whose events the last argument is the slice, which a user knows nothing of.

        Events without a common slice are further apart than the window of the rule, which is said as well.
        """
        if not extra:
            return self
        parts = tuple(replace(part, args=part.args[:-extra]) for part in self.parts)
        failed = (text.replace(f", {SLICE}", "") for text in self.failed)
        return replace(self, parts=parts, failed=tuple(text for text in failed if SLICE not in text))


def why_not(
    plan: Plan,
    rules: Iterable[n.Rule],
    events: Iterable[Event],
    clock: Clock,
    static: Static,
    scalars: Scalars,
    atom: str,
    now: int | None = None,
) -> list[Miss]:
    """For each placed rule that could derive the atom, the nearest partial match among all events that stand.

    `(smoke(L) SEQ heat(L)).5` on smoke at 1 and heat at 9 → both events, "`window 5s`: from 1 to 9 is 8".
    """
    asked, standing = read_asked(atom, clock, plan.prefixes), sorted(events, key=lambda e: e.order)
    if now is None:
        now = max((e.end for e in standing), default=0)
    able = [r for r in rules if r.type == asked.type and (asked.args is None or len(asked.args) == len(r.args))]
    if not able:
        raise underivable(plan, asked)
    seen = [e for e in standing if asked.is_met(e) and e.end <= now]
    if seen:
        hint = f"ask why of {show_event(seen[-1], clock)}; to ask about another one give its arguments or its times"
        raise RunError(f"{atom.strip()} was detected", hint)
    words, least = MissWording(plan, clock, scalars), min((e.end for e in standing), default=None)
    world = partial(Nearby, scalars, static, by_type(standing), least=least, now=now)
    return [_of_rule(rule, asked, world(), words, now) for rule in able]


def show_misses(misses: Iterable[Miss], clock: Clock) -> str:
    """One tree for each rule: the events that there were, then what failed."""
    return "\n\n".join(str(_tree(miss, clock)) for miss in misses)


def _tree(miss: Miss, clock: Clock) -> Tree:
    below = [show_event(p, clock) for p in miss.parts] + [f"failed: {line}" for line in miss.failed]
    return Tree(f"rule {miss.rule}: {len(miss.parts)} of {counted(miss.total, 'event')}", tuple(map(Tree, below)))


def misses_as_json(misses: Iterable[Miss], clock: Clock) -> list[dict[str, object]]:
    return [
        {
            "rule": miss.rule,
            "parts": [tree_as_json(ExplainedEvent(part), clock) for part in miss.parts],
            "total": miss.total,
            "failed": list(miss.failed),
        }
        for miss in misses
    ]


def _of_rule(rule: n.Rule, asked: Asked, world: Nearby, words: MissWording, now: int) -> Miss:
    """The nearest partial match of one rule."""
    wanted: dict[str, Value] = {}
    world.scalars.rule = rule.label
    if asked.args and not all(bind(h, a, world.scalars, wanted) for h, a in zip(rule.args, asked.args, strict=True)):
        return Miss(rule.label, (), len(n.scans(rule.body)), (f"its head is `{words.atom(rule.type, rule.args, {})}`",))
    world.wanted, world.interval = wanted, asked.interval
    world.patterns_beside = (*n.scans(rule.body), *(collect.pattern for collect in rule.collects))
    search = Search(world, words)
    offers = search.best(rule.body)
    world.interval = None  # what is collected may lie outside: the derived event then has another interval
    ends = [search.derived(rule, near, asked, now) for near in offers if not near.failed][-HEADS:]
    best = max(ends or offers, key=rank_of)
    needs = best.needs + (bool(rule.collects) and not ends)
    parts = tuple(sorted(best.row.parts, key=lambda e: e.order))
    return Miss(rule.label, parts, needs, (*best.failed, *([CAPPED] if world.capped else [])))
