"""What the prompt answers: rules, events and questions, one after another, as lines of text.

Rules may come after events: the events are then told again to a session of the new program, and what changes is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from augury.core.clock import Clock, Kind
from augury.core.errors import AuguryError, DataError, ProgramError, RunError, Source, counted, nearest
from augury.core.model import Event, show_value
from augury.explain import sessions
from augury.explain.why_not.asked import read_asked
from augury.language.rules.statements import chunks
from augury.notation import read_event, show_event
from augury.program import Program, ProgramSession
from augury.settings import Settings
from augury.sources import Reader, Skipped, SourceFile, item_from
from augury.testing.case_steps import take_step
from augury.testing.outcomes import change_line

COMMANDS = {
    "?-": ("?- near(X, 's1').", "the answers to a condition, or the events of a type"),
    "why": ("why alarm('l1')", "the derivation of an event"),
    "why not": ("why not alarm('l2')", "how near each rule came"),
    "revoke": ("revoke e1", "takes an event back, by its id"),
    "advance": ("advance 10", "moves the clock"),
    "assert": ("assert near('l1', 's1')", "makes a fact hold"),
    "retract": ("retract near('l1', 's1')", "ends a fact"),
    "goals": ("goals", "what has begun, and what it waits for"),
    "explain": ("explain", "how the program is read, and what runs"),
    "profile": ("profile", "what rules have cost"),
    "rules": ("rules", "the program so far"),
    "events": ("events", "the events that are held"),
    ":load": (":load fire.aug", "rules, a query, or events (.csv, .jsonl, …)"),
    ":save": (":save creek_cases.toml", "all of it as a test case"),
    ":clear": (":clear", "begins anew"),
    "help": ("help", "this list"),
    "quit": ("quit", "or Ctrl-D"),
}
_EVENT = re.compile(
    r"(?:[\w.-]+\s*:\s+)?[^\W\d_]\w*\s*(?:\(.*\))?\s*@\s*(?:\[.*\]|'[^']*'|\"[^\"]*\"|-?\d+)", re.DOTALL
)
_GRAPH_EVENT = re.compile(r"(?:[\w.-]+\s*:\s+)?(?:<[^<>]*>|[\w:-]+)\s*\{.*\}\s*@\s*\S.*", re.DOTALL)
_CALENDAR = re.compile(r"@\s*\[?\s*['\"]")
_VARIABLE = re.compile(r"(?<![\w'\"])[A-Z]\w*\b(?!\s*\()")
_FIRST = re.compile(r"\?-|:\w+|why\s+not\b|\w+")


class Finished(Exception):
    """The user has said goodbye."""


def is_complete(text: str) -> bool:
    """Whether a line of input is whole: a command, an event, or statements that all end in a full stop."""
    stripped = text.strip()
    command = _command(stripped)
    if command == "?-":
        return stripped.endswith(".") or not _is_open(stripped)
    if not stripped or command is not None or _is_event(stripped) or re.fullmatch(r"\w+", stripped):
        return True
    pieces = list(chunks(Source("", stripped), {}))
    return all(piece.closed or not piece.text.strip() for piece in pieces)


def _is_open(text: str) -> bool:
    """Whether brackets are open at the end of a text, or it ends as if more came."""
    blank = re.sub(r"'[^'\n]*'|\"[^\"\n]*\"", "", text)
    return sum(map(blank.count, "([{")) > sum(map(blank.count, ")]}")) or blank.endswith(",")


def _command(text: str) -> str | None:
    """The command that a line begins with; None of rules and events."""
    match = _FIRST.match(text)
    word = re.sub(r"\s+", " ", match[0]) if match else ""
    if word not in COMMANDS:
        return None
    following = text[match.end() :].lstrip() if match else ""
    if word in ("?-", "why", "why not") or word.startswith(":"):
        return word
    # `events(X) <- …` and `help @ 3` are rules and events of these names.
    return None if following[:1] in ("(", "@", "<", ":", "{") else word


def _is_event(text: str) -> bool:
    text = text.rstrip().removesuffix(".")
    rule = "<-" in text or ":-" in text or "←" in text
    return not rule and bool(_EVENT.fullmatch(text) or _GRAPH_EVENT.fullmatch(text))


@dataclass
class Conversation:
    """A program that grows, and a session that is told events."""

    functions: tuple[Any, ...] = ()
    sources: list[Source] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, list[list[Any]]] = field(default_factory=dict)
    kind: Kind | None = None
    _session: ProgramSession | None = None

    # The program and its session

    @property
    def program(self) -> Program:
        return self._compiled(self.sources)

    def _compiled(self, sources: Sequence[Source]) -> Program:
        return Program.of(sources, self.functions, tuple(self.facts))

    @property
    def session(self) -> ProgramSession:
        if self._session is None:
            self._session = self._opened(self.program)
        return self._session

    def _opened(self, program: Program) -> ProgramSession:
        """A session of a program that has been told everything; it answers with all that is derived."""
        plan = program.plan
        derived = [query.name for query in plan.graph_queries] + [rule.type for rule in plan.rules if not rule.makes]
        outputs = tuple(dict.fromkeys([*plan.outputs, *derived]))
        kind: Kind = "logical" if plan.tick is not None else self.kind or "logical"
        session = replace(program, plan=replace(plan, outputs=outputs)).session(clock=kind, facts=self.facts)
        for step in self.steps:
            take_step(session, step, lambda line: self._item(line, session), plan.prefixes)
        return session

    def _item(self, line: str, session: ProgramSession) -> Any:
        plan = session.program.plan
        streams = {stream.name: stream.iri for query in plan.graph_queries for stream in query.streams}
        return item_from(read_event(line, session.clock, plan.prefixes, streams), plan, session.clock)

    # Answers

    def answer(self, text: str) -> str:
        """What there is to say to a line; raises AuguryError where it is wrong, and Finished at the end."""
        text = text.strip()
        command = _command(text)
        if command is not None:
            rest = text[len(_FIRST.match(text)[0]) :].strip()  # type: ignore[index]
            return self._commanded(command, rest)
        if not text:
            return ""
        if _is_event(text):
            return self._push(text.removesuffix(".").strip())
        return self._add(text)

    def _commanded(self, command: str, rest: str) -> str:
        match command:
            case "quit":
                raise Finished
            case "help":
                return help_text()
            case "?-":
                return self._ask(rest.removesuffix("."))
            case "why":
                return self._why(rest.removesuffix("."))
            case "why not":
                return self.session.why_not(rest.removesuffix("."))
            case "revoke" | "assert" | "retract":
                return self._step({command: self._named(command, rest.removesuffix("."))})
            case "advance":
                time = rest.removesuffix(".").strip("'\"")
                self._kind_of_time(f"@ {rest}")
                return self._step({"advance": int(time) if re.fullmatch(r"-?\d+", time) else time})
            case "goals":
                session = self.session
                listed = session.goals() if session.now is not None else []
                return "\n".join(goal.show(session.clock) for goal in listed) or "nothing has begun"
            case "explain":
                return str(self.session.explain())
            case "profile":
                return str(self.session.profile())
            case "rules":
                return "\n".join(source.text.strip() for source in self.sources) or "no rules yet"
            case "events":
                return self._held()
            case ":load":
                return self._load(rest)
            case ":save":
                return self._save(rest)
            case ":clear":
                self.sources, self.steps, self.facts, self.kind, self._session = [], [], {}, None, None
                return "nothing is left"
        raise AssertionError(command)

    def _named(self, command: str, rest: str) -> list[str]:
        if not rest:
            raise DataError(f"`{command}` of what?", hint=f"such as {COMMANDS[command][0]}")
        return [rest]

    def _add(self, text: str) -> str:
        """Takes more rules; what they change about the answers."""
        first = re.match(r"\w+", text)
        name = f"<{len(self.sources) + 1}>"
        try:
            return self._with_source(Source(name, text))
        except ProgramError as error:
            close = nearest(first[0], COMMANDS) if first and " " not in text.strip() else None
            if close:
                raise RunError(f"unknown command `{text.strip()}`", hint=f"did you mean `{close}`?") from error
            raise

    def _with_source(self, source: Source) -> str:
        program = self._compiled([*self.sources, source])
        before = self._lines(self._session) if self._session is not None else []
        session = self._opened(program)
        self.sources.append(source)
        self._session = session
        after = self._lines(session)
        lines = [f"- {line}" for line in before if line not in after]
        lines += [f"+ {line}" for line in after if line not in before]
        return "\n".join(lines)

    def _lines(self, session: ProgramSession | None) -> list[str]:
        """The answers that stand."""
        if session is None or session.now is None:
            return []
        return [show_event(event, session.clock) for event in session._standing(None)]

    def _push(self, line: str) -> str:
        self._kind_of_time(line)
        return self._step({"push": [line]})

    def _kind_of_time(self, line: str) -> None:
        """The first time decides between calendar times and ticks."""
        if self.kind is None:
            self.kind = "timestamp" if _CALENDAR.search(line) else "logical"
            self._session = None

    def _step(self, step: dict[str, Any]) -> str:
        session = self.session
        changes = take_step(session, step, lambda line: self._item(line, session), session.program.plan.prefixes)
        self.steps.append(step)
        lines = [change_line(change, session.clock) for change in changes]
        return "\n".join(lines)

    def _held(self) -> str:
        session = self.session
        events = sessions.held_events(session) if session.now is not None else []
        lines = [f"{event.id}: {show_event(event, session.clock)}" if _short_id(event) else show_event(event, session.clock)
            for event in sorted(events, key=lambda event: event.order)]  # fmt: skip
        return "\n".join(lines) or "no events yet"

    # Questions

    def _ask(self, goal: str) -> str:
        """The events of a type, or the answers to a condition on facts."""
        session, plan = self.session, self.session.program.plan
        name = re.match(r"\s*([\w:]+)", goal)
        types = {type for type, _ in plan.event_types}
        if name is not None and name[1] in types and "," not in re.sub(r"\([^()]*\)", "", goal):
            asked = read_asked(goal, session.clock, plan.prefixes)
            held = sessions.held_events(session) if session.now is not None else []
            met = sorted((e for e in held if asked.is_met(e)), key=lambda e: e.order)
            return "\n".join(show_event(event, session.clock) for event in met) or "no"
        return self._condition(goal)

    def _condition(self, goal: str) -> str:
        """Bindings of the variables of a condition: what a rule derives that asks it."""
        variables = list(dict.fromkeys(_VARIABLE.findall(re.sub(r"'[^']*'", "", goal))))
        head = f"repl_answer({', '.join(variables)})" if variables else "repl_answer"
        question = Source("<question>", f"{head} <- repl_asked WHERE ({goal}).")
        program = self._compiled([*self.sources, question])
        session = replace(program, plan=replace(program.plan, outputs=("repl_answer",))).session(
            clock=self.session.clock.kind, facts=self.facts
        )
        for step in self.steps:
            take_step(session, step, lambda line: self._item(line, session), program.plan.prefixes)
        now = session.now if session.now is not None else 0
        answers = [c.event for c in session.push(Event("repl_asked", (), now, now)) if c.op == "insert"]
        if not answers:
            return "no"
        if not variables:
            return "yes"
        return "\n".join(
            ", ".join(f"{v} = {show_value(a)}" for v, a in zip(variables, event.args, strict=True)) for event in answers
        )

    def _why(self, atom: str) -> str:
        session = self.session
        asked = read_asked(atom, session.clock, session.program.plan.prefixes)
        held = sessions.held_events(session) if session.now is not None else []
        events = sorted((e for e in held if asked.is_met(e)), key=lambda e: e.order)
        if not events:
            try:
                nearest_miss = session.why_not(atom)
            except AuguryError as error:
                raise RunError(f"no `{atom}` is held", hint=str(error)) from None
            return f"{atom} was not detected; what came nearest:\n\n{nearest_miss}"
        return "\n\n".join(session.why(event).rstrip() for event in events[:5])

    # Files

    def _load(self, name: str) -> str:
        path = Path(name)
        if not path.is_file():
            raise DataError("no such file", name or ":load", "such as :load fire.aug")
        if path.suffix in (".aug", ".spaseq"):
            language = "spaseq" if path.suffix == ".spaseq" else "rules"
            text = self._with_source(Source(str(path), path.read_text(encoding="utf-8"), language))
            return text or f"{path}: {self.program!r}"
        return self._load_events(path)

    def _load_events(self, path: Path) -> str:
        """Tells the events of a file, as lines, so that they can be saved as a case."""
        program = self.program
        settings = Settings.of(program, **({"clock": self.kind} if self.kind else {}))
        reader = Reader(program.plan, lambda first: settings.clock_of(program, first), Skipped())
        history = reader.sources([SourceFile.parse(str(path), plan=program.plan)])
        self.kind, self._session = reader.clock.kind, None if self.kind is None else self._session
        lines = [_line(item, reader.clock) for item in history.items()]
        shown = [self._step({"push": [line]}) for line in lines]
        return "\n".join([counted(len(lines), "event"), *(text for text in shown if text)])

    def _save(self, name: str) -> str:
        if not name.endswith(".toml"):
            raise DataError("a case is saved as TOML", name or ":save", "such as :save creek_cases.toml")
        path = Path(name)
        existing = path.read_text(encoding="utf-8") if path.exists() else ""
        text = self.case(path.stem.replace("_", " "))
        path.write_text(f"{existing.rstrip()}\n\n{text}" if existing.strip() else text, encoding="utf-8")
        return f"{'added a case to' if existing.strip() else 'wrote'} {path}; run it with `augury test {path}`"

    def case(self, name: str) -> str:
        """All of it as a case in TOML: the steps, with what each emits."""
        program = self.program
        queries = [source for source in self.sources if source.language == "spaseq"]
        rules = "\n".join(source.text.strip() for source in self.sources if source.language != "spaseq")
        lines = ["[[case]]", f"name = {json.dumps(name)}"]
        if rules:
            lines.append(f"program = '''\n{rules}\n'''" if "'''" not in rules else f"program = {json.dumps(rules)}")
        lines += [f"queries.{Path(source.name).stem} = {json.dumps(source.text)}" for source in queries]
        session = program.session(clock=self.kind or "logical")
        lines.append(f'clock = "{session.clock.kind}"')
        steps = []
        for step in self.steps:
            changes = take_step(session, step, lambda line: self._item(line, session), program.plan.prefixes)
            emitted = [change_line(change, session.clock) for change in changes]
            ((action, value),) = step.items()
            shown = json.dumps(value, ensure_ascii=False)
            steps.append(f"    {{ {action} = {shown}, emits = {json.dumps(emitted, ensure_ascii=False)} }},")
        lines += ["steps = [", *steps, "]"] if steps else []
        answers = [show_event(event, session.clock) for event in session._standing(None)]
        lines.append(f"expected = {json.dumps(answers, ensure_ascii=False)}")
        return "\n".join(lines) + "\n"


def _line(item: Any, clock: Clock) -> str:
    if isinstance(item, Event):
        return f"{item.id}: {show_event(item, clock)}" if _short_id(item) else show_event(item, clock)
    return f"revoke {item.id}"


def _short_id(event: Event) -> bool:
    """Whether a user has named an event, rather than its content."""
    return re.fullmatch(r"[\w.-]{1,20}", event.id) is not None and not re.fullmatch(
        r"[0-9a-f]{16}(?:[.#]\d+)?", event.id
    )


def help_text() -> str:
    width = max(len(form) for form, _ in COMMANDS.values())
    lines = [
        "Rules, facts and declarations end with a full stop: alarm(L) <- (smoke(L) SEQ heat(L)).5min.",
        "Events have a time: smoke('l1') @ 3, or with an id and an interval: e1: smoke('l1') @ [1, 3]",
        "",
        *(f"{form:<{width}}  {about}" for form, about in COMMANDS.values()),
    ]
    return "\n".join(lines)


def inputs(lines: Iterable[str]) -> Iterator[str]:
    """Whole inputs of a text that comes line by line."""
    waiting: list[str] = []
    for line in lines:
        if not waiting and line.strip().startswith(("%", "#")):
            continue
        waiting.append(line.rstrip("\n"))
        if is_complete("\n".join(waiting)):
            yield "\n".join(waiting)
            waiting = []
    if any(line.strip() for line in waiting):
        yield "\n".join(waiting)
