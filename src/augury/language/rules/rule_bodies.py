"""The literals of an event rule. The program's names decide which is a pattern, a condition, a window or an interval."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace

from augury.algebra import nodes as n
from augury.algebra.clock_windows import Windows
from augury.algebra.relations import OPERATORS, RELATIONS, RELATIVE
from augury.algebra.terms import Const
from augury.core.clock import Duration, show_duration
from augury.core.errors import Note, Span, misspelt
from augury.language.rules import syntax as s
from augury.language.rules.patterns import PatternReader
from augury.language.rules.read_sessions import SessionReader, is_session
from augury.language.rules.read_windows import ELSEWHERE, WindowReader, is_named
from augury.language.rules.run_parts import part_labels, run_literal
from augury.language.rules.session_form import is_turned_session, turned_session
from augury.language.rules.show import show_node

THE_RUN = n.Run(())  # stands for the run of a rule until all its conditions are read


@dataclass
class RuleBody:
    """What the literals of a rule come to."""

    patterns: list[n.Node] = field(default_factory=list)
    conditions: list[n.Condition] = field(default_factory=list)
    relatives: list[n.Relative] = field(default_factory=list)
    collects: list[s.While | s.Last] = field(default_factory=list)
    windows: dict[str, Windows] = field(default_factory=dict)  # those by the clock, by their labels
    sessions: set[str] = field(default_factory=set)  # the labels of session windows
    previous: list[n.Relative] = field(default_factory=list)


def collecting(literal: s.Node) -> s.While | s.Last | None:
    """The literal, where it collects."""
    match literal:
        case s.Last() | s.While(collect=True):
            return literal
    return None


_DATA = "a length that is data is a duration, `extend(o, D)`, and a deadline that is data `until(o, Due)`"


class BodyReader:
    """Reads the literals of one event rule, and defines the labels of its reader."""

    def __init__(self, patterns: PatternReader, literals: tuple[s.Node, ...], used: Counter[str]) -> None:
        """`used` says how often the rule names each variable."""
        self.patterns, self.reader, self.literals, self.used = patterns, patterns.reader, literals, used
        self.symbols, self.findings = patterns.symbols, patterns.findings
        self._has_run = any(run_literal(literal) is not None for literal in literals)
        self._collects = any(collecting(literal) is not None for literal in literals)
        for literal in literals:
            run, collected = run_literal(literal), collecting(literal)
            if isinstance(literal, s.Labelled):
                self._define_label(literal.label, literal.span, literal.body)
            for part in part_labels(run) if run else ():
                self._define_label(part.label, part.span, part.body)
            if collected and collected.label:
                self._define_label(collected.label, collected.span, collected.body)
                self.reader.counted_labels.add(collected.label)
                if isinstance(collected, s.While) and s.is_holding(collected.body):
                    self.reader.held_in[collected.label] = collected.window

    def read(self) -> RuleBody:
        body = RuleBody()
        for literal in self.literals:
            self._literal(literal, body)
        self._counted_back(body)
        return body

    def _define_label(self, label: str, span: Span, body: s.Node) -> None:
        previous, here = self.reader.labels.get(label), span.part(r"\w+")
        if previous is not None:
            self.findings.add("E222", f"the label `{label}` is used twice", here, Note("used here first", previous))
        self.reader.labels.setdefault(label, here)
        if isinstance(body, s.BareName | s.CallTerm):
            self.reader.labelled.setdefault(label, body.text if isinstance(body, s.BareName) else body.name)

    def _is_decimal_comma(self, literal: s.Node) -> bool:
        """Whether a time point is a number that follows a comma directly, and that a digit: `Y > 1,5`; it is reported."""
        span = literal.span
        number = re.compile(r"\d+,$").search(span.source.text[max(0, span.start - 40) : span.start])
        if not isinstance(literal, Const) or not span.text.isdigit() or number is None:
            return False
        written = Span(span.source, span.start - len(number[0]), span.end)
        message = (
            f"`{written.text}` is no number: the comma ends the condition, and `{span.text}` would be a time point"
        )
        hint = (
            f"the decimal sign is a point, `{written.text.replace(',', '.')}`; a time point is written `@{span.text}`"
        )
        self.findings.add("E213", message, written, hint=hint)
        return True

    def _literal(self, literal: s.Node, body: RuleBody) -> None:
        if self._is_decimal_comma(literal):
            return
        if run_literal(literal) is not None:
            body.patterns.append(THE_RUN)
            return
        match literal:
            case s.Labelled(body=s.CallTerm() as call) if self._is_relative(call):
                relative = self._relative(literal, call)
                if relative is not None:
                    body.relatives.append(relative)
            case s.Labelled(body=s.CallTerm(name="every") as call) if not self.symbols.is_event("every"):
                windows = WindowReader(call, self.symbols.tick, self.findings).windows()
                if windows is not None:
                    body.windows[literal.label] = windows
                    body.patterns.append(n.Label(literal.label, n.Every(windows, call.span), literal.span))
            case s.Labelled(body=s.CallTerm() as call) if is_session(call):
                session = SessionReader(call, self.patterns, self.used).window()
                if session is not None:
                    body.sessions.add(literal.label)
                    body.patterns.append(n.Label(literal.label, session, literal.span))
            case s.Labelled(body=s.CallTerm() as call) if is_turned_session(call) and not self.symbols.is_event(
                call.name
            ):
                message, span, hint = turned_session(call, literal.label)
                self.findings.add("E276", message, span, hint=hint)
            case s.Labelled(body=s.CallTerm(name="previous") as call) if not self.symbols.is_event("previous"):
                self._previous(literal, call, body)
            case s.Labelled(body=s.CallTerm() as call) if call.name.lower() in ELSEWHERE and self._a_length(call):
                message = f"`{call.name}` is not a word of the language"
                hint = "windows by the clock are `w: every(1h)`, and `w: every(1h, 5min)` where they hop"
                self.findings.add("E268", message, call.span.part(r"\w+"), hint=hint)
            case s.Labelled(body=s.CallTerm() as call) if self._meant_relative(call):
                close = misspelt(call.name, RELATIVE)
                message = f"unknown relative temporal event `{call.name}`"
                hint = f"did you mean `{close}`?"
                self.findings.add("E201", message, call.span.part(r"\w+"), hint=hint)
            case s.Labelled():
                read = self.patterns.holding if s.is_holding(literal.body) else self.patterns.pattern
                pattern = read(literal.body)
                if pattern is not None:
                    body.patterns.append(n.Label(literal.label, pattern, literal.span))
            case s.While(collect=False):
                self.reader.known_label(literal.window, literal.span.part(r"^\w+\s+(?P<it>\w+)"))
                pattern = self.patterns.pattern(literal.body)
                if pattern is not None:
                    body.conditions.append(n.NoneInside(literal.window, pattern, span=literal.span))
            case s.While() | s.Last():
                body.collects.append(literal)
            case s.Cut():
                hint = "to take one of several events, use a policy: `a SEQ[recent] b`"
                self.findings.add("E218", "a cut belongs to a static rule", literal.span, hint=hint)
            case s.Group() if not all(self._is_condition(item) for item in literal.items):
                hint = "write the literals without parentheses, or join patterns with AND"
                self.findings.add("E228", "one literal is expected here, not a list", literal.span, hint=hint)
            case _ if self._is_condition(literal):
                reader = replace(self.reader, in_run=self._has_run, may_aggregate=self._collects)
                body.conditions.extend(reader.conditions(literal))
            case _:
                pattern = self.patterns.pattern(literal)
                if pattern is not None:
                    body.patterns.append(pattern)

    def _is_condition(self, node: s.Node) -> bool:
        """Whether a literal tests or binds rather than matches events."""
        symbols, labels = self.symbols, self.reader.labels
        match node:
            case s.Chain() | s.Among() | s.Between() | s.WithinSet() | s.Group() | s.Not(between=None) | s.Was():
                return True
            case s.Binary(left=s.BareName(text=left), right=s.BareName(text=right)) if node.op.lower() in RELATIONS:
                return node.op not in OPERATORS or (left in labels and right in labels)
            case s.Binary(op="AND" | "OR"):
                return self._is_condition(node.left) and self._is_condition(node.right)
            case s.CallTerm(name=name, args=args):
                if name == "sparql" and not symbols.is_event(name):
                    return True
                if symbols.is_property(name) and len(args) == 2:  # an event with such a name is declared, or derived
                    return True
                aggregate = symbols.aggregates.get(name) if self._collects or self._has_run else None
                tests = symbols.is_test(name) or (aggregate is not None and aggregate.result == "bool")
                return symbols.is_static(name) or (tests and not symbols.is_event(name))
            case s.BareName(text=name):
                return symbols.is_static(name)
            case Const(value=bool()):
                return True
        return False

    def _a_length(self, call: s.CallTerm) -> bool:
        lengths = any(isinstance(a, Const) and isinstance(a.value, Duration) for a in call.args)
        return lengths and not self.symbols.is_event(call.name)

    def _previous(self, literal: s.Labelled, call: s.CallTerm, body: RuleBody) -> None:
        """`v: previous(w)`, once all windows are read."""
        match call.args:
            case (s.BareName() as anchor,) if self.reader.known_label(anchor.text, anchor.span):
                body.previous.append(n.Relative(literal.label, "previous", anchor.text, 0, literal.span))
            case (s.BareName(),):
                pass
            case _:
                hint = f"write `{literal.label}: previous(w)`"
                self.findings.add("E268", "`previous` takes the label of a window by the clock", call.span, hint=hint)

    def _counted_back(self, body: RuleBody) -> None:
        """The windows that `previous` counts in; of a window before that one, the same."""
        for relative in body.previous:
            chain = {r.label: r.anchor for r in body.previous}
            anchor = relative.anchor
            while anchor in chain and anchor not in body.windows:
                anchor = chain[anchor] if chain[anchor] != relative.label else relative.label
                if anchor == relative.label:
                    break
            if anchor in body.windows:
                body.relatives.append(replace(relative, windows=body.windows[anchor]))
            elif self.findings.sound(relative.span):
                hint = "`previous` is the window before one of `every`"
                self.findings.add("E268", f"`{relative.anchor}` is not a clock window", relative.span, hint=hint)

    def _meant_relative(self, call: s.CallTerm) -> bool:
        """Whether `extends(o, 6h)` looks like a relative temporal event."""
        match call.args:
            case (s.BareName(text=anchor), Const(value=Duration())) if anchor in self.reader.labels:
                return not self.symbols.is_event(call.name) and misspelt(call.name, RELATIVE) is not None
        return False

    def _is_relative(self, call: s.CallTerm) -> bool:
        return call.name in RELATIVE and not (call.name == "until" and self.symbols.is_event("until"))

    def _relative(self, literal: s.Labelled, call: s.CallTerm) -> n.Relative | None:
        places = tuple(a for a in call.args if not is_named(a))
        named = {a.operands[0].text: a.operands[1] for a in call.args if is_named(a)}  # type: ignore[union-attr]
        match places:
            case (s.BareName() as anchor, length) if call.name == "until" or named or not isinstance(length, Const):
                return self._from_value(literal, call, anchor, length, named)
            case (s.BareName() as anchor, Const(value=Duration()) as length):
                if not self.reader.known_label(anchor.text, anchor.span):
                    return None
                tick = self.symbols.tick
                if tick is not None and self.reader.length(length) % tick:
                    message = f"{length.span.quoted} is not a whole number of ticks of {show_duration(tick)}"
                    hint = "declare a finer tick"
                    self.findings.add("E224", message, length.span, hint=hint)
                    return None
                return n.Relative(literal.label, call.name, anchor.text, self.reader.length(length), literal.span)
            case (s.BareName() as anchor, Const(value=int() | float()) as length):
                if self.symbols.tick is None:
                    number = show_node(length)
                    hint = f"write `{number}s` or `{number}min`; ticks count where the program declares `tick`; {_DATA}"
                    self.findings.add("E224", "a duration needs a unit", length.span, hint=hint)
                    return None
                if self.reader.known_label(anchor.text, anchor.span):
                    return n.Relative(literal.label, call.name, anchor.text, self.reader.length(length), literal.span)
                return None
        what = "time" if call.name == "until" else "duration"
        hint = f"write `{literal.label}: {call.name}(o, {'Due' if what == 'time' else '6h'})`"
        hint += "" if what == "time" else f"; {_DATA}"
        self.findings.add("E224", f"`{call.name}` takes a label and a {what}", call.span, hint=hint)
        return None

    def _from_value(
        self, literal: s.Labelled, call: s.CallTerm, anchor: s.BareName, length: s.Node, named: dict[str, s.Node]
    ) -> n.Relative | None:
        """A window whose length, or end, is an expression; `most = D` bounds it."""
        most = named.pop("most", None)
        for name in named:
            self.findings.add(
                "E224", f"`{call.name}` has no argument `{name}`", call.span, hint="it takes `most = 30d`"
            )
            return None
        is_constant = most is None or (isinstance(most, Const) and isinstance(most.value, Duration | int))
        if not is_constant or isinstance(getattr(most, "value", None), bool):
            hint = "write `most = 30d`"
            self.findings.add("E224", "`most` must be a constant duration", call.span, hint=hint)
            return None
        if isinstance(most, Const) and isinstance(most.value, int) and self.symbols.tick is None:
            hint = f"write `most = {show_node(most)}s`; ticks count where the program declares `tick`"
            self.findings.add("E224", "a duration needs a unit", most.span, hint=hint)
            return None
        if not self.reader.known_label(anchor.text, anchor.span):
            return None
        value = replace(self.reader, may_aggregate=False).value(length)
        bound = self.reader.length(most) if isinstance(most, Const) else None
        return n.Relative(literal.label, call.name, anchor.text, value, literal.span, most=bound)
