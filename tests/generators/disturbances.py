"""A session that is disturbed: pruned, saved and restored after any step, with late and revoked events.

Whatever happens between steps, the answer after every step is the reference's, and so are the final answers in the end.

`python -m tests.generators.disturbances KIND FIRST COUNT` checks stories from seeds, and prints each one that fails, made smaller.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache

import augury
from augury.algebra.kinds import keeps_some_matches
from augury.algebra.nodes import Scan, SessionWindow
from augury.algebra.plan import static_calls
from augury.algebra.strata import Stratum, fact_edges
from augury.core.errors import AuguryError, RunError
from augury.core.model import Event, HistoryItem, OrderKey
from augury.engine import batch
from augury.engine.changes import Changes
from augury.engine.session import Session
from augury.knowledge.facts import Facts
from augury.knowledge.graphs import Graphs
from augury.knowledge.timeline import Statement, statement_tables
from augury.program import Program
from augury.reference import evaluate, static_graphs
from augury.reference.finality import Finality
from augury.semantics.pattern_rows import World
from tests.differential.test_differential import CLOCK, Told
from tests.generators import mixtures, typed
from tests.generators.run_stories import KINDS as RUN_KINDS
from tests.generators.run_stories import story as run_story
from tests.generators.spaseq_programs import static_knowledge
from tests.generators.state_programs import KINDS, Story
from tests.generators.state_programs import story as state_story

LONG = "lasts longer"  # of an event that needs what a session without `longest` has forgotten


def story(kind: str, seed: object) -> Story:
    """A story of a kind, from a seed."""
    if kind == "typed":
        return typed.story(seed)
    if kind == "mixtures":
        return mixtures.story(kind, seed)
    return (run_story if kind in RUN_KINDS else state_story)(kind, seed)


class Inputs(Told):
    """What a session was told and let in."""

    def __init__(self, story: Story) -> None:
        super().__init__(story.lateness)
        self.revision = story.lateness if story.revisable is None else story.revisable
        self.longest, self.said = story.longest, list[Statement]()

    def copy(self) -> Inputs:
        other = object.__new__(Inputs)
        other.__dict__ = {k: v.copy() if isinstance(v, list | dict) else v for k, v in self.__dict__.items()}
        return other

    @property
    def fixed(self) -> int | None:
        """What ends at or before it can no longer be revoked."""
        behind = None if self.revision is None or self.greatest is None else self.greatest - self.revision - 1
        return max((t for t in (behind, self.advanced) if t is not None), default=None)

    @property
    def settled(self) -> int | None:
        """What ends at or before it can no longer change."""
        bounds = [] if self.advanced is None else [self.advanced]
        if self.lateness is not None and self.revision is not None and self.greatest is not None:
            bounds.append(self.greatest - max(self.lateness, self.revision) - 1)
        return max(bounds, default=None)

    def tell(self, item: HistoryItem) -> None:
        if isinstance(item, Event):
            versions = self.ids.get(item.id)
            new = versions is None or item.version not in versions.events
            if self.longest is not None and new and item.end - item.start > self.longest:
                self.late += 1
                return
        super().tell(item)

    def advance(self, time: int) -> None:
        self.advanced = time if self.advanced is None else max(self.advanced, time)

    def learn(self, statement: Statement) -> None:
        since = statement.fact.since
        if self.settled is None or (since is not None and since > self.settled):
            self.said.append(statement)
        else:
            self.late += 1


@cache
def compiled(text: str, language: str) -> Program | None:
    try:
        return augury.compile(text, language=language, name="q" if language == "spaseq" else None)
    except augury.ProgramError:
        return None


@dataclass
class Watch:
    """A session beside what it was told, and the answer that its changes add up to."""

    program: Program
    story: Story
    session: Session
    inputs: Inputs
    answer: dict[OrderKey, Event]
    pruned: bool = False
    open: set[OrderKey] = field(default_factory=set)  # expected answers that need not be final yet
    not_final: set[OrderKey] = field(default_factory=set)  # those that cannot be
    waiting: set[str] = field(init=False)  # types whose answers may be emitted later than they are final

    def __post_init__(self) -> None:
        """What rests on a run that chooses may wait for longer than for the matches that may still be chosen; so may the
        run itself, and a session of events that rules derive, where nobody says how long events last."""
        rules = self.program.plan.rules if self.story.emit == "final" else ()
        reads = {rule.type: {node.type for node in rule.nodes if isinstance(node, Scan)} for rule in rules}
        for edge in fact_edges(self.program.plan) if rules else ():
            reads.setdefault(edge.head[0], set()).add(edge.reads[0])
        chosen = {rule.type for rule in rules if any(map(keeps_some_matches, rule.nodes))}
        sessions = {r.type for r in rules for x in r.nodes if isinstance(x, SessionWindow) and x.input.type in reads}
        self.waiting = chosen | sessions if self.story.longest is None else set()
        for _ in reads:
            self.waiting |= {type for type, read in reads.items() if read & (chosen | self.waiting)}

    def apply(self, changes: Changes) -> None:
        assert len({change.event.content for change in changes}) == len(changes), "a step tells net changes"
        if len(changes):
            table = changes.to_arrow()
            assert table.column("trace").to_pylist() == [list(change.event.trace) for change in changes], "traces"
        for change in changes:
            content = change.event.content
            assert change.op == "insert" or self.story.emit == "early", f"a final answer is retracted: {change.event}"
            assert (content in self.answer) == (change.op == "retract"), f"{change.op} {change.event}, of {self.answer}"
            if change.op == "insert":
                self.answer[content] = change.event
            else:
                del self.answer[content]

    def expected(self, until: int) -> set[OrderKey]:
        facts = Facts.of(self.story.facts) + Facts(statement_tables(self.inputs.said))
        rdf = static_knowledge() if self.story.language == "spaseq" else ()
        graphs = static_graphs(Graphs.of(rdf), self.program.plan)
        finality = self._finality(until)

        def observe(world: World, stratum: Stratum) -> None:
            for one in finality:
                one.observe(world, stratum)

        model = evaluate(self.program.plan, self.inputs.items, CLOCK, facts, until, graphs=graphs, observe=observe)
        self.open, self.not_final = (
            ({e.content for e in model.events if not one.is_final(e, model)} for one in finality)
            if finality
            else (set(), set())
        )
        return {event.content for event in model.events}

    def _finality(self, until: int) -> list[Finality]:
        """Where runs and sessions wait for what may come: which answers are final, for inputs as long as those so far.

        First by where events may start alone, then also by where they may end.
        """
        nodes = (node for rule in self.program.plan.rules for node in rule.nodes)
        waits = any(isinstance(node, SessionWindow) or keeps_some_matches(node) for node in nodes)
        if self.story.emit == "early" or not waits:
            return []
        lasting = max((e.end - e.start for e in self.inputs.items if isinstance(e, Event)), default=0)
        longest = lasting if self.story.longest is None else self.story.longest
        return [Finality(self.program.plan, CLOCK, until, longest, by_ends) for by_ends in (False, True)]

    def compare(self, until: int | None, over: bool = False) -> None:
        expected = set() if until is None else self.expected(until)
        missing, wrong = expected - self.answer.keys(), self.answer.keys() - expected
        missing -= set() if over else self.open
        missing = {content for content in missing if over or content[0] not in self.waiting}
        assert not missing and not wrong, f"missing {shown(missing)}, wrong {shown(wrong)}"
        early = self.not_final & self.answer.keys() if self.story.longest is not None and not over else set()
        assert not early, f"emitted before they are final {shown(early)}"

    def act(self, action: object) -> Changes:
        session = self.session
        match action:
            case Statement():
                self.inputs.learn(action)
                return session.learn(Facts(statement_tables([action])))
            case int():
                self.inputs.advance(action)
                return session.advance(action)
            case list():
                for item in action:
                    self.inputs.tell(item)
                return session.push(action)
        raise AssertionError(action)

    def step(self, action: object) -> None:
        """One thing that happens. A push that is refused leaves all as it was."""
        if action == "prune":
            self.session.prune()
            self.pruned = self.pruned or self.inputs.settled is not None
            return
        if action == "save":
            facts = {"rdf": static_knowledge()} if self.story.language == "spaseq" else {}
            self.session = self.program.restore(self.session.snapshot(), **facts)
            return
        if isinstance(action, list) and self.pruned:
            action = [item for item in action if not self._forgotten(item)]
        before = self.inputs.copy()
        try:
            changes = self.act(action)
        except RunError as error:
            if (
                LONG not in error.message
                or self.story.longest is not None
                or not (self.pruned or self.story.emit == "final")
            ):
                raise
            self.inputs = before
            return
        self.apply(changes)
        self.compare(self.inputs.now if self.story.emit == "early" else self.inputs.settled)
        if not self.pruned:
            assert self.session.late_count == self.inputs.late, "late items"

    def _forgotten(self, item: HistoryItem) -> bool:
        """Whether the session may have forgotten the versions of an id: what comes under it then is new."""
        versions, settled = self.inputs.ids.get(item.id), self.inputs.settled
        if versions is None or settled is None or not (item.version or len(versions.events) > 1 or versions.revoked):
            return False
        return versions.last_end is None or versions.last_end <= settled

    def finish(self) -> None:
        self.apply(self.session.finish())
        if self.inputs.now > -(10**6):
            self.compare(self.inputs.now, over=True)
            if self.story.language == "rules" and not self.inputs.said:
                self._compare_batch(self.inputs.now)

    def _compare_batch(self, until: int) -> None:
        """All at once: the same answers."""
        model = batch.evaluate(self.program, self.inputs.items, CLOCK, self.story.facts, until)
        found, outputs = {event.content for event in model.events}, set(self.program.plan.outputs)
        expected = {content for content in self.answer if content[0] in outputs}
        missing, wrong = expected - found, {content for content in found - expected if content[0] in outputs}
        assert not missing and not wrong, f"in batch missing {shown(missing)}, wrong {shown(wrong)}"


def shown(contents: set[OrderKey]) -> list[str]:
    return sorted(map(str, contents))


def check(story: Story) -> bool | None:
    """Lets a story happen; whether a rule had an answer, None where the program is refused. Raises where it goes wrong."""
    program = compiled(story.text, story.language)
    if program is None:
        return None
    known = static_calls(program.plan)
    changing = ["known"] if ("known", 1) in known else []
    facts = [f for f in story.facts if (f.name, len(f.args)) in known]
    story = replace(story, facts=tuple(facts))

    def length(ticks: int | None) -> str | None:
        return None if ticks is None else f"{ticks}s"

    try:
        session = program.session(
            clock="logical", facts=facts, emit=story.emit, lateness=length(story.lateness), longest=length(story.longest),
            rdf=static_knowledge() if story.language == "spaseq" else (), changing=changing,
            revisable=True if story.revisable is None else f"{story.revisable}s",
        )  # fmt: skip
    except augury.ProgramError:  # refused on ticks
        return None
    watch = Watch(program, story, session, Inputs(story), {})
    answered = False
    for action in story.actions:
        if isinstance(action, Statement) and not changing:
            continue
        watch.step(action)
        answered = answered or bool(watch.answer)
    watch.finish()
    return answered or bool(watch.answer)


# Smaller stories


def smaller(story: Story, fails: Callable[[Story], bool]) -> Story:
    """A story that still fails, without what can be left out."""
    changed = True
    while changed:
        changed = False
        for other in _simpler(story):
            if fails(other):
                story, changed = other, True
                break
    return story


def _simpler(story: Story) -> Iterator[Story]:
    lines = story.text.splitlines()
    for i in range(len(lines)) if story.language == "rules" else ():
        yield replace(story, text="\n".join(lines[:i] + lines[i + 1 :]) + "\n")
    size = len(story.actions)
    for width in (size // 2, size // 4, 2, 1):
        for i in range(0, size, width) if width else ():
            yield replace(story, actions=story.actions[:i] + story.actions[i + width :])
    for i, action in enumerate(story.actions):
        if isinstance(action, list) and len(action) > 1:
            for j in range(len(action)):
                less = [*action[:j], *action[j + 1 :]]
                yield replace(story, actions=(*story.actions[:i], less, *story.actions[i + 1 :]))
    for name in ("lateness", "revisable", "longest"):
        if getattr(story, name) is not None:
            yield replace(story, **{name: None})  # type: ignore[arg-type]
    if story.emit == "final":
        yield replace(story, emit="early")
    if story.facts:
        yield replace(story, facts=())


def failure(story: Story, counts: Counter[str] | None = None) -> str | None:
    """What goes wrong; if nothing does, it is counted what came of it."""
    try:
        answered = check(story)
        if counts is not None:
            counts[{True: "answered", False: "not answered", None: "refused"}[answered]] += 1
    except AuguryError as error:
        return f"{type(error).__name__}: {error}"
    except AssertionError as error:
        return f"AssertionError: {error}"
    except Exception:
        return traceback.format_exc()
    return None


def _kind_of(message: str) -> str:
    return message.split("\n")[0].split(":")[0] if message.startswith("Traceback") else message.split(" ")[0]


def report(kind: str, seed: object, story: Story, message: str) -> str:
    like = _kind_of(message)
    less = smaller(story, lambda s: (m := failure(s)) is not None and _kind_of(m) == like)
    actions = "\n".join(f"  {[str(i) + ' ' + i.id for i in a] if isinstance(a, list) else a}" for a in less.actions)
    options = {n: getattr(less, n) for n in ("emit", "lateness", "revisable", "longest", "facts", "language")}
    return f"--- {kind} {seed}\n{less.text}{actions}\n  {options}\n{failure(less)}\n{less!r}\n"


def main(kinds: list[str], first: int, count: int) -> None:
    for kind in kinds:
        counts, began = Counter[str](), time.process_time()
        for seed in range(first, first + count):
            one = story(kind, seed)
            message = failure(one, counts)
            if message is not None:
                counts["failed"] += 1
                sys.stdout.write(report(kind, seed, one, message))
                sys.stdout.flush()
        took = time.process_time() - began
        sys.stdout.write(f"{kind} {first}..{first + count - 1}: {dict(counts)}, {took:.0f} s\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(
        [*KINDS, *RUN_KINDS, "mixtures", "typed", "spaseq"] if sys.argv[1] == "all" else sys.argv[1].split(","),
        int(sys.argv[2]),
        int(sys.argv[3]),
    )
