"""What a user would change about a session: events that are added, moved or revoked, facts, and the text of rules."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from augury.algebra.nodes import Clause
from augury.algebra.terms import Const
from augury.compiled import Compiled
from augury.console.input_log import ClockAdvance, Input, Setup
from augury.console.program_text import ProgramText
from augury.console.recording import Recording
from augury.core.clock import Clock
from augury.core.errors import RunError
from augury.core.model import Event, Fact, content_id, order_key, spelling_of
from augury.notation import read_atom, read_event
from augury.program import ProgramSession
from augury.sources import item_from


@dataclass(frozen=True)
class InputEdit:
    """One change, by its `kind`.

    `add` an `event` as it is written in tests; `move` the event of an `id` to other times; `revoke` it; `assert` or
    `retract` a `fact`, from the beginning on or from a `time` on.
    """

    kind: str
    event: str = ""
    type: str = ""
    id: str = ""
    start: int | None = None
    end: int | None = None
    fact: str = ""
    time: str = ""


@dataclass(frozen=True)
class HypothesisRequest:
    """Changes to the session as of a moment; `sources` has other texts for files of the program, by name."""

    edits: tuple[InputEdit, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)
    moment: int | None = None


@dataclass
class EditedSession:
    """A recording with changes: what is played, and what is told to the session afterwards."""

    recording: Recording
    text: ProgramText
    facts: list[Fact] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    revoked: list[str] = field(default_factory=list)  # ids that came before the recording begins
    learnt: list[InputEdit] = field(default_factory=list)  # where it does not begin with the session

    @staticmethod
    def of(recording: Recording, request: HypothesisRequest) -> EditedSession:
        setup = recording.setup
        text = setup.text.changed(request.sources) if request.sources else setup.text
        result = EditedSession(recording, text, list(setup.facts), list(recording.inputs))
        for edit in request.edits:
            if edit.kind not in _EDITS:
                raise RunError(f"unknown change `{edit.kind[:40]}`", hint=f"there is {', '.join(_EDITS)}")
            _EDITS[edit.kind](result, edit)
        return result

    @property
    def clock(self) -> Clock:
        return self.recording.setup.clock

    @property
    def program(self) -> Compiled:
        return self.recording.setup.program

    @property
    def changed(self) -> Recording:
        """The recording with the changes, in one step."""
        setup = Setup(self.text, self.clock, tuple(self.facts), self.recording.setup.settings)
        return replace(self.recording, setup=setup, inputs=tuple(self.inputs), counts=(len(self.inputs),), wall=(0.0,))

    def finish(self, session: ProgramSession) -> None:
        """Tells a session that began with a snapshot what cannot be changed before it."""
        if self.revoked:
            session.revoke(self.revoked)
        for edit in self.learnt:
            name, args = read_atom(edit.fact, self.program.plan.prefixes)
            change = session.assert_fact if edit.kind == "assert" else session.retract_fact
            change(name, *args, at=edit.time or None)

    # Events

    def add(self, edit: InputEdit) -> None:
        event = read_event(edit.event, self.clock, self.program.plan.prefixes)
        if not isinstance(event, Event):
            raise RunError("an event is added", hint="revoke one by a click on it")
        event = item_from(event, self.program.plan, self.clock)
        assert isinstance(event, Event)
        taken = {item.id for item in self.inputs if isinstance(item, Event)}
        number, written = 0, spelling_of(event.args)
        while not event.id or event.id in taken:
            id = content_id(event.type, event.args, event.start, event.end, number, written)
            event, number = replace(event, id=id), number + 1
        self.insert(event)

    def insert(self, event: Event) -> None:
        """An event comes in time: before the first input that ends later, or that promises its time."""

        def is_later(item: Input) -> bool:
            match item:
                case Event():
                    return item.end > event.end
                case ClockAdvance():
                    return item.time >= event.end
            return False

        later = (number for number, item in enumerate(self.inputs) if is_later(item))
        self.inputs.insert(next(later, len(self.inputs)), event)

    def move(self, edit: InputEdit) -> None:
        event = self.taken(edit.id)
        if event is None:
            raise RunError(f"the event {edit.id} came too long ago to be moved", hint="revoke it, and add another one")
        start = event.start if edit.start is None else edit.start
        end = event.end if edit.end is None else edit.end
        if start > end:
            raise RunError(f"an event cannot start at {self.clock.show(start)} and end at {self.clock.show(end)}")
        self.insert(replace(event, start=start, end=end, known=None))

    def revoke(self, edit: InputEdit) -> None:
        if self.taken(edit.id) is None:
            if not self.recording.base:
                raise RunError(f"there is no event with the id {edit.id}")
            self.revoked.append(edit.id)

    def taken(self, id: str) -> Event | None:
        """Takes out what came with an id; its latest version."""
        events = [item for item in self.inputs if isinstance(item, Event) and item.id == id]
        if events:
            self.inputs = [item for item in self.inputs if not (isinstance(item, Event) and item.id == id)]
        return max(events, key=lambda event: event.version) if events else None

    # Facts

    def assert_fact(self, edit: InputEdit) -> None:
        if self.recording.base:
            self.learnt.append(edit)
            return
        fact = self.fact(edit)
        self.facts.append(replace(fact, since=self.clock.read(edit.time)) if edit.time else fact)

    def retract_fact(self, edit: InputEdit) -> None:
        if self.recording.base:
            self.learnt.append(edit)
            return
        fact = self.fact(edit)
        same = [item for item in self.facts if (item.name, item.args) == (fact.name, fact.args)]
        if same:
            until = self.clock.read(edit.time) if edit.time else None
            kept = [item for item in self.facts if item not in same]
            self.facts = kept if until is None else [*kept, *(replace(item, until=until) for item in same)]
        elif edit.time or not self.blank(fact):
            hint = "one that is written in the program can be left out, but not from a time on"
            raise RunError(f"there is no fact {edit.fact.strip()} to be retracted", hint=hint)

    def fact(self, edit: InputEdit) -> Fact:
        name, args = read_atom(edit.fact.strip().rstrip("."), self.program.plan.prefixes)
        return Fact(name, args)

    def blank(self, fact: Fact) -> bool:
        """Leaves a fact out of the text of the program; whether it is there."""
        spans = [clause.span for clause in self.text.compile().plan.clauses if _is_fact(clause, fact)]
        for span in spans:
            text = next(source.text for source in self.text.sources if source.name == span.source.name)
            end = text.find(".", span.end) + 1 or len(text)
            blank = text[: span.start] + " " * (end - span.start) + text[end:]
            changed = self.text.changed({span.source.name: blank})
            self.text = replace(changed, facts=tuple(dict.fromkeys((*changed.facts, fact.name))))
        return bool(spans)


def _is_fact(clause: Clause, fact: Fact) -> bool:
    """Whether a clause of a program says a fact, and nothing else."""
    if clause.name != fact.name or clause.body or len(clause.args) != len(fact.args):
        return False
    pairs = zip(clause.args, fact.args, strict=True)
    return all(isinstance(arg, Const) and order_key(arg.value) == order_key(value) for arg, value in pairs)


_EDITS = {
    "add": EditedSession.add,
    "move": EditedSession.move,
    "revoke": EditedSession.revoke,
    "assert": EditedSession.assert_fact,
    "retract": EditedSession.retract_fact,
}
