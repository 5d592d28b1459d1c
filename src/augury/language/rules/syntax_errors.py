"""Syntax errors in words. Each cause is one function that looks at the place where reading stopped; the first that
recognises it speaks. Where none does, the message says what was found and what could have stood there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from lark import UnexpectedInput
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

from augury.algebra.selection import POLICIES
from augury.core.errors import Findings, Note, Source, Span, misspelt
from augury.language.rules.statements import COLON, INSIDE, PIECES, StatementText

OPERATORS = (
    "SEQ", "AND", "PAR", "OR", "EQUALS", "MEETS", "DURING", "STARTS", "FINISHES", "WHERE", "WITHIN",
    "before", "after", "met_by", "overlaps", "overlapped_by", "started_by", "contains", "finished_by",
)  # fmt: skip
RULE_FORM = "a rule is written `head <- body.`"
_ABSENCE = "absence is written `NOT(c).[a, b]` or `while w: not c`; a condition is negated with `not`"
_WINDOW = "a window stands behind its pattern: `(a(X) SEQ b(X)).5min`"

# What other languages write, and what this one writes instead.
_FOREIGN = {
    **dict.fromkeys(("&&", "&", "∧"), "patterns and conditions are joined by AND, literals by `,`"),
    **dict.fromkeys(("||", "|", "∨"), "patterns and conditions are joined by OR"),
    ";": "literals are separated by `,`; a statement ends with `.`",
    **dict.fromkeys(("!", "¬", "~"), _ABSENCE),
    "//": "a comment begins with `%` or `#`",
    "?": "a variable begins with a capital letter and has no question mark",
    "[": "a nested term is written `pair(X, Y)`; there are no lists in brackets",
    **dict.fromkeys("‘’‚`´", "a string stands in straight quotes, 'so' or \"so\""),
    **dict.fromkeys("“”„«»", "a string stands in straight quotes, 'so' or \"so\""),
    **dict.fromkeys("–—−", "a minus is written `-`"),
    **dict.fromkeys("×⋅", "multiplication is written `*`"),
}
_STATEMENTS = {
    "include": 'include "weather.aug".',
    "prefix": "prefix wt: <http://example.org/weather#>.",
    "event": "event wind(loc: string, speed: float).",
    "static": "static store(id: string, region: string).",
    "function": "function index(t: float, h: float): float.",
    "policy": "policy recent.",
    "tick": "tick 1ms.",
    "output": "output fire, alarm.",
    "rule": "rule label: head <- body.",
    "fact": "fact linked(A, B) <- link_up(A, B).",
}
_LITERALS = {
    "while": "while w: not …` or `while w: collect …",
    "last": "last 5: collect …",
    "exactly": "exactly 5: collect …",
    "collect": "while w: collect …`, `last 5: collect …` or `all: collect …",
}
# Words of other languages, and what this one writes instead.
_ELSEWHERE = {
    r"group\s+by": "the head's variables outside aggregates make the groups: `total(Shop, sum(A)) <- …, while w: collect sale(Shop, A)`",
    "having": "a condition on a group is a literal of the body: `…, while w: collect sale(S, A), sum(A) > 100`",
    r"partition\s+by": "a shared variable correlates events; a run says `PER (S)`, a ranking `TOP 3 BY E PER (S)`",
    r"order\s+by|limit": "the first of a ranking are `TOP 10 BY sum(A) AS R`, at the end of a rule, the first of all `AT MOST 10`",
    r"only\s+once|throttle|suppress|output\s+first": "the first for each key is `ONCE PER (S)`, the first in ten minutes `ONCE PER (S) EVERY 10min`, at the end of a rule",
    r"at\s+most(?!\s+\d)": "it is written `AT MOST 3`, `AT MOST 3 PER (S) EVERY 10min`",
    r"every(?=\s+\d)": "how often an answer may come is `AT MOST 1 EVERY 10min`; windows by the clock are `w: every(10min)`",
    r"skip(?!\s+(?:past\s+end|to\s+(?:first|last))\b)(?:\s+\w+)*": "it is written `SKIP PAST END`, `SKIP TO FIRST label` or `SKIP TO LAST label`",
    r"holding(?=\s+\w)": "intervals in which facts hold are a labelled literal: `x: holding mode(M, 'error')`",
    r"over(?=\s*\()": "a window is a literal: `w: extend_backward(o, 1h), while w: collect sale(C, A)`, `last 5: collect …`, or `all: collect …` for all so far",
    r"until(?!\s*\()": "a deadline that is data is `w: until(o, Due)`; an event that ends a repetition follows it: `b(I)+ NEXT c(I)`",
    r"select|from": "a rule is written `head <- body.`: the head says what is given, the body which events are read",
    r"filter(?=\s*\()": "an aggregate over some is `sum(A where A > 1)`, or `count(where A > 1)`",
    r"per(?=\s+[A-Za-z])": "the variables stand in parentheses: `PER (S)`",
    "unless": _ABSENCE,
    r"(?:window|for)(?=\s+\d)": _WINDOW,
    r"followed\s+by": "one event after another is `a(X) SEQ b(X)`, the next one `a(X) NEXT b(X)`",
    r"(?<=\S )(?:if|when)(?=\s+\w)": "conditions stand behind a comma or behind WHERE: `hot(S) <- heat(S, T), T > 60.`",
    "like": "a part of a string is found by `matches(S, '^abc')`, a regular expression",
    r"(?:import|load)(?=\s+[\w'\"])": 'another file is included: `include "weather.aug".`',
}
# Words that stand in the wrong place, and the right one.
_ORDER = {
    r"by(?=\s+(?:next|then|seq)\b)": "it follows a quantifier: `(b(I)+ BY NEXT)`",
    r"with\s+ties": "it follows what is ranked by: `TOP 3 BY E WITH TIES`",
    r"per(?=\s*\()": "it stands before LONGEST and SKIP, and before EVERY: `PER (S) LONGEST`, `AT MOST 1 PER (S) EVERY 10min`",
    r"top(?=\s+(?:\d|all\b))": "it stands before AT MOST and ONCE, and after POLICY",
    r"(?:at\s+most|once)(?=.*<-)": "it ends a rule: `head <- body AT MOST 1 PER (S) EVERY 10min.`",
}
_INCOMPLETE = {  # words of the language that lack something
    "skip": "to where",
    "per": "which variables",
    "at": "how many",
    "every": "how many",
}
_UNITS = ("us", "ms", "s", "sec", "seconds", "min", "minutes", "h", "hours", "d", "days", "w", "weeks")
_ARROWS = re.compile(r"<--+|<==+|-+>|=+>|::?=|→|⇒|⇐")
_WORD = re.compile(r"[^\W\d]\w*")
_BLANK = re.compile(r"\s*")
_CLOSERS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class RuleErrorSpot:
    """Where reading stopped: what was found there, and the terminals that could have stood there instead."""

    text: str
    at: int
    end: int
    found: str
    expected: frozenset[str]
    known_character: bool = True

    @property
    def before(self) -> str:
        return self.text[: self.at].rstrip()

    @property
    def previous(self) -> str:
        """The word or sign before."""
        match = re.search(r"(\w+|<-|:-|[<>=!]+|\S)$", self.before)
        return match.group() if match else ""

    @property
    def adjacent(self) -> str:
        """The character directly before."""
        return self.text[self.at - 1 : self.at]

    @property
    def is_word(self) -> bool:
        return _WORD.fullmatch(self.found) is not None

    @property
    def operand_expected(self) -> bool:
        return {"NAME", "LPAR"} <= self.expected

    @property
    def operator_expected(self) -> bool:
        return "SEQ" in self.expected or "COMMA" in self.expected

    def unexpected(self, hint: str) -> Cause:
        return Cause(f"unexpected `{self.found}`", self.at, self.end, hint)


@dataclass(frozen=True)
class Cause:
    """What is wrong, from where to where in the statement, and what to do. `other` is a second place, with its words."""

    message: str
    start: int
    end: int
    hint: str | None = None
    code: str = "E101"
    other: tuple[str, int] | None = None


def explain(error: UnexpectedInput, chunk: StatementText, source: Source, findings: Findings) -> None:
    """Reports a syntax error: the place, what is wrong there, and a likely cause."""
    spot = _spot(error, chunk.text)
    cause = next((c for c in (look(spot) for look in CAUSES) if c is not None), None) or _unexpected(spot)

    def span(start: int, end: int) -> Span:
        return Span(source, chunk.start + start, chunk.start + end)

    notes = (Note(cause.other[0], span(cause.other[1], cause.other[1] + 1)),) if cause.other else ()
    findings.add(cause.code, cause.message, span(cause.start, cause.end), *notes, hint=cause.hint)


def next_statement(error: UnexpectedInput, chunk: StatementText) -> int | None:
    """Where the next statement seems to begin, when a full stop is missing: at what was not expected, if that begins a
    line and stands no deeper than the statement itself."""
    spot = _spot(error, chunk.text)
    line = spot.text.rfind("\n", 0, spot.at) + 1
    first = _BLANK.match(spot.text).end()  # type: ignore[union-attr]
    margin = first - (spot.text.rfind("\n", 0, first) + 1)
    if spot.text[line : spot.at].strip() or spot.at - line > margin or not spot.before or not spot.found:
        return None
    return spot.at if _WORD.match(spot.found) else None


def _spot(error: UnexpectedInput, text: str) -> RuleErrorSpot:
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        begin = error.token.start_pos or 0
        result = str(error.token).replace(COLON, ":").rstrip(INSIDE)
        return RuleErrorSpot(text, begin, begin + len(result), result, frozenset(error.accepts or error.expected))
    if isinstance(error, UnexpectedCharacters):
        begin = error.pos_in_stream or 0
        word = re.compile(r"\w+|&&|\|\||.", re.DOTALL).match(text, begin)
        result = word.group() if word else ""
        tokenised = result in _FOREIGN or bool(_WORD.match(result)) or result in "'\"/:<>=-.@"
        return RuleErrorSpot(
            text, begin, begin + max(len(result), 1), result, frozenset(error.allowed or ()), tokenised
        )
    assert isinstance(error, UnexpectedToken | UnexpectedEOF)
    end = len(text.rstrip())
    return RuleErrorSpot(text, end, end + 1, "", frozenset(error.expected))


# Causes


def open_comment(spot: RuleErrorSpot) -> Cause | None:
    """`/* …` to the end of the file."""
    for piece in PIECES.finditer(spot.text):
        if piece.lastgroup == "other" and spot.text.startswith("/*", piece.start()):
            return Cause("the comment is never closed", piece.start(), piece.start() + 2, "a comment ends with `*/`")
    return None


def open_string(spot: RuleErrorSpot) -> Cause | None:
    """`'smoke).`"""
    for piece in PIECES.finditer(spot.text):
        if piece.group() in ("'", '"'):
            hint = "a string ends on the line it begins on, with the quote it began with"
            return Cause("the string is never closed", piece.start(), piece.end(), hint)
    return None


def unbalanced(spot: RuleErrorSpot) -> Cause | None:
    """`(a(X) SEQ b(X)`, `[a, b)`, `a(X))`."""
    stack: list[tuple[str, int]] = []
    for piece in PIECES.finditer(spot.text):
        char, offset = piece.group(), piece.start()
        if char in _CLOSERS:
            stack.append((char, offset))
        elif char in _CLOSERS.values():
            if not stack:
                return Cause(f"`{char}` closes nothing", offset, offset + 1)
            opener, opened = stack.pop()
            if _CLOSERS[opener] != char:
                hint = f"close it with `{_CLOSERS[opener]}`"
                return Cause(
                    f"`{char}` cannot close `{opener}`", offset, offset + 1, hint, other=("opened here", opened)
                )
    if not stack:
        return None
    opener, opened = stack[-1]
    return Cause(f"`{opener}` is never closed", opened, opened + 1)


def wrong_arrow(spot: RuleErrorSpot) -> Cause | None:
    """`smoke(L) -> fire(L)`."""
    for arrow in _ARROWS.finditer(spot.text, max(spot.at - 3, 0), spot.at + 3):
        if arrow.start() <= spot.at < arrow.end():
            return Cause(f"`{arrow.group()}` is not an arrow of the language", arrow.start(), arrow.end(), RULE_FORM)
    return None


def second_arrow(spot: RuleErrorSpot) -> Cause | None:
    """`a(X) <- b(X), c(X) <- d(X).`"""
    if spot.found in ("<-", "←", ":-") and re.search(r"<-|←|:-", spot.before):
        hint = "a statement ends with `.`; is the one before missing its full stop?"
        return Cause(f"a second `{spot.found}` in one statement", spot.at, spot.end, hint)
    return None


def foreign(spot: RuleErrorSpot) -> Cause | None:
    """`a(X) && b(X)`, `fire(?L)`."""
    if spot.found == "in" and re.match(r"\s*[\[{]", spot.text[spot.end :]):
        return spot.unexpected("the values stand in parentheses: `X in (1, 2)`")
    if spot.found == "[" and spot.previous == ")":
        return spot.unexpected("conditions stand behind a comma or behind WHERE: `a(X, Y) WHERE Y > 3`")
    if spot.found == ">" and spot.adjacent == "<":
        return Cause("`<>` is not an operator of the language", spot.at - 1, spot.end, "different is written `!=`")
    if spot.found == "*" and re.search(r"\bcount\s*\($", spot.before, re.IGNORECASE):
        return spot.unexpected("all events are counted by `count()`")
    if spot.previous == "!" and spot.is_word:
        return Cause("unexpected `!`", len(spot.before) - 1, len(spot.before), _FOREIGN["!"])
    if spot.found in _FOREIGN and not (spot.found == "[" and not spot.operand_expected):
        return spot.unexpected(_FOREIGN[spot.found])
    return None


def label_or_prefix(spot: RuleErrorSpot) -> Cause | None:
    """`O: order(N)`, `a(X) SEQ o: b(X)`, `wt:storm(L)`."""
    word = re.search(r"\w+\s*$", spot.text[: spot.at])
    if spot.found != ":" or word is None:
        return None
    name = word.group().strip()
    if name[:1].isupper():
        hint = f"write `{name[0].lower()}{name[1:]}: …`, here and where it is used"
        return Cause(f"`{name}` cannot be a label: a label begins with a small letter", word.start(), spot.at, hint)
    if _WORD.match(spot.text, spot.end):
        hint = f"declare it: `prefix {name}: <http://…>.`; a label stands before a literal of its own"
        return Cause(f"`{name}` is not a declared prefix", word.start(), spot.at, hint)
    if not spot.text[: word.start()].strip():
        hint = f"a rule is named so: `rule {name}: head <- body.`"
        return Cause(f"`{name}:` stands before a head", word.start(), spot.end, hint)
    if re.search(r"\b(next|then)\s+$", spot.text[: word.start()], re.IGNORECASE):
        hint = f"write `({name}: …)`, and likewise for the other parts that have one"
        return Cause("in a run, a label stands inside parentheses", word.start(), spot.end, hint)
    hint = "write `o: order(N), s: shipped(N), o before s`"
    return Cause("a label names a literal of its own, not a part of a pattern", word.start(), spot.end, hint)


def unknown_unit(spot: RuleErrorSpot) -> Cause | None:
    """`10parsecs`."""
    number = re.search(r"(?P<lead>within\s*|\.\s*|^\s*tick\s+)?\d+(?P<space>\s*)$", spot.text[: spot.at], re.IGNORECASE)
    if not spot.is_word or number is None or (number["space"] and not number["lead"]):
        return None
    close = misspelt(spot.found, _UNITS)
    hint = f"did you mean `{close}`?" if close else "units are us, ms, s, min, h, d and w: 90s, 30 min, 2 days"
    return Cause(f"`{spot.found}` is not a unit of time", spot.at, spot.end, hint, "E106")


def loose_window(spot: RuleErrorSpot) -> Cause | None:
    """`(a SEQ b) 10min`, `(a SEQ b).W`, `wind.speed`."""
    if spot.found[:1].isdigit() and spot.previous == ")" and spot.operator_expected:
        return spot.unexpected(f"a window is written `(…).{spot.found}`")
    if spot.adjacent == "." and spot.text[spot.at - 2 : spot.at - 1] == ")":
        return Cause("the length of a window is a number or a duration", spot.at, spot.end, "write `(…).10min`")
    if spot.adjacent == "." and spot.is_word:
        hint = "a name has no full stop; a statement ends with one and a space"
        return Cause("a full stop stands inside a statement", spot.at - 1, spot.at, hint)
    return None


def nothing_before(spot: RuleErrorSpot) -> Cause | None:
    """`SEQ b(X)`, `a(X) SEQ AND b(X)`: the word was read as a name, because no operator could stand there."""
    after_operator = spot.previous.upper() in {o.upper() for o in OPERATORS}
    if not (after_operator and spot.operator_expected and (spot.is_word or spot.found == "(")):
        return None
    start = len(spot.before) - len(spot.previous)
    comma = spot.previous.lower() == "where" and spot.before[:start].rstrip().endswith(",")
    hint = "WHERE follows its pattern without a comma" if comma else None
    return Cause(f"something is missing before `{spot.previous}`", start, len(spot.before), hint)


def nothing_after(spot: RuleErrorSpot) -> Cause | None:
    """`a(X) SEQ.`, `a(X, )`, `head <- .`"""
    if spot.found not in (")", "]", "}", ",", ".", "") or not spot.operand_expected or not spot.previous:
        return None
    end = len(spot.before)
    hint = "the last literal is followed by `.` alone" if (spot.previous, spot.found) == (",", ".") else None
    return Cause(f"something is missing after `{spot.previous}`", end - len(spot.previous), end, hint)


def statement_form(spot: RuleErrorSpot) -> Cause | None:
    """`prefix wt <http://…>.`, `event wind(loc, speed).`, `while not b(X)`."""
    words = re.match(r"\s*([a-z]+)\s+[\w'\"<]", spot.text, re.IGNORECASE)
    word = words[1].lower() if words else ""
    if word in _STATEMENTS and "_ARROW" not in spot.expected - {"_END"}:
        return _expecting(spot, f"it is written `{_STATEMENTS[word]}`")
    if word in _STATEMENTS and spot.before.strip().lower() == word:
        return spot.unexpected(f"it is written `{_STATEMENTS[word]}`")
    literal = re.match(r"\s*([a-z]+)\b", re.split(r",|<-|←", spot.text[: spot.at])[-1], re.IGNORECASE)
    if literal and literal[1].lower() in _LITERALS and not spot.before.endswith(")"):
        return spot.unexpected(f"it is written `{_LITERALS[literal[1].lower()]}`")
    return None


def other_language(spot: RuleErrorSpot) -> Cause | None:
    """`… GROUP BY U HAVING count() > 3`, `… SKIP.`, `… WITHIN 5 minutes`, `… TUMBLE(1h)`: words of SQL and its kin."""
    for word, hint in _ELSEWHERE.items():
        for match in re.finditer(rf"\b{word}\b", spot.text, re.IGNORECASE):
            if match.start() <= spot.at <= match.end() + 1:
                text = " ".join(match.group().split())
                lacks = next((what for begins, what in _INCOMPLETE.items() if word.startswith(begins)), None)
                message = f"`{text}` is not a word of the language"
                if lacks is not None:
                    message = f"`{text}` does not say {lacks}"
                elif text.lower() == "if":  # a function
                    message = f"unexpected `{text}`"
                return Cause(message, match.start(), match.end(), hint)
    return None


def wrong_order(spot: RuleErrorSpot) -> Cause | None:
    """`AT MOST 1 EVERY 10min PER (S)`, `TOP 1 WITH TIES BY E`, `a(X) ONCE <- b(X)`."""
    for word, hint in _ORDER.items():
        match = re.compile(word, re.IGNORECASE | re.DOTALL).match(spot.text, spot.at)
        if match:
            return Cause(f"`{' '.join(match.group().split())}` stands in the wrong place", spot.at, match.end(), hint)
    return None


def latest_alone(spot: RuleErrorSpot) -> Cause | None:
    """`latest mode(M, S) PER (M) <- change(M, S).`"""
    if spot.before.strip().lower() != "latest" or not spot.is_word:
        return None
    hint = f"write `fact latest {spot.found}(…) PER (…) <- …`"
    return Cause("`latest` stands after `fact`", spot.at - len("latest") - 1, spot.at - 1, hint)


def misspelt_statement(spot: RuleErrorSpot) -> Cause | None:
    """`ouput alarm.`, `evnt wind(s: string).`"""
    word = re.match(r"\s*([a-z]+)$", spot.before, re.IGNORECASE)
    meant = misspelt(word[1], _STATEMENTS) if word and "_ARROW" in spot.expected else None
    if word is None or meant is None:
        return None
    return Cause(f"unknown statement `{word[1]}`", word.start(1), word.end(1), f"did you mean `{meant}`?")


def misspelt_operator(spot: RuleErrorSpot) -> Cause | None:
    """`a(X) SEG b(X)`."""
    if not spot.is_word or "SEQ" not in spot.expected or not re.match(r"\s+[\w(@]", spot.text[spot.end :]):
        return None
    meant = misspelt(spot.found, (*OPERATORS, "NOT", "POLICY"))
    return Cause(f"unknown operator `{spot.found}`", spot.at, spot.end, f"did you mean `{meant}`?") if meant else None


def was_of_operator(spot: RuleErrorSpot) -> Cause | None:
    """`was within(X)`: after a word, `within` is an operator."""
    name = re.search(r"\bwas\s+(\w+)$", spot.before)
    if spot.found != "(" or name is None:
        return None
    hint = f"ask for it by another name: `holds_{name[1]}(X) :- {name[1]}(X).`, and then `was holds_{name[1]}(X)`"
    return Cause(f"`was` does not ask for `{name[1]}`, which is an operator here", name.start(1), spot.at, hint)


def reluctant(spot: RuleErrorSpot) -> Cause | None:
    """`b(I)+?`, `b(I)*?`."""
    if spot.found != "?" or spot.adjacent not in ("+", "*", "?", "}"):
        return None
    hint = "the fewest iterations are taken by `SHORTEST`, the most by `LONGEST`, at the end of the rule"
    return Cause(f"`{spot.adjacent}?` is no quantifier", spot.at - 1, spot.end, hint)


def repeated_sequence(spot: RuleErrorSpot) -> Cause | None:
    """`(a(N) b(N))+`."""
    inside = spot.before.endswith(")") and re.match(r"\w+", spot.found) and spot.operator_expected
    if not inside or not re.search(r"\)\s*(?:[+*?]|\{\d)", spot.text[spot.end :]):
        return None
    hint = "a sequence that repeats is an event of its own: `pair(N) <- a(N) NEXT b(N).`, and then `pair(N)+`"
    return Cause(f"an operator is missing before `{spot.found}`", spot.at, spot.end, hint)


def side_by_side(spot: RuleErrorSpot) -> Cause | None:
    """`a(X) b(X)`, `a(X Y)`."""
    if not spot.operator_expected or not re.match(r"[\w'\"@(_]", spot.found):
        return None
    if "_ARROW" in spot.expected and "RPAR" not in spot.expected:
        return Cause(f"unexpected `{spot.found}` after the head", spot.at, spot.end, RULE_FORM)
    if "RPAR" in spot.expected and _in_call(spot):
        return Cause(f"a comma is missing before `{spot.found}`", spot.at, spot.end)
    hint = "patterns are joined by an operator such as SEQ or AND, literals by `,`"
    return Cause(f"an operator or a comma is missing before `{spot.found}`", spot.at, spot.end, hint)


def _in_call(spot: RuleErrorSpot) -> bool:
    """Whether the innermost open parenthesis holds arguments."""
    depth = 0
    for offset in range(spot.at - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(spot.text[offset], 0)
        if depth < 0:
            return re.search(r"\w\s*$", spot.text[:offset]) is not None
    return False


CAUSES: tuple[Callable[[RuleErrorSpot], Cause | None], ...] = (
    open_comment,
    open_string,
    unbalanced,
    wrong_arrow,
    second_arrow,
    label_or_prefix,
    unknown_unit,
    loose_window,
    nothing_after,
    nothing_before,
    was_of_operator,
    reluctant,
    foreign,
    other_language,
    wrong_order,
    latest_alone,
    statement_form,
    misspelt_statement,
    misspelt_operator,
    repeated_sequence,
    side_by_side,
)


# What else could have stood there

_KINDS = (
    ({"NAME", "LPAR"}, "a pattern, condition or value"),
    ({"LABEL", "VAR"}, "an attribute and its type"),
    ({"SEQ"}, "an operator"),
    ({"COMMA"}, "`,`"),
    ({"RPAR"}, "`)`"),
    ({"RSQB"}, "`]`"),
    ({"RBRACE"}, "`}`"),
    ({"_ARROW"}, "`<-`"),
    ({"NOT", "_COLLECT"}, "`not` or `collect`"),
    ({"_COLLECT"}, "`collect`"),
    ({"COLON"}, "`:`"),
    ({"_END"}, "`.`"),
    ({"$END"}, "the end of the statement"),
    ({"LABEL"}, "a name and a colon"),
    ({"IRI"}, "an IRI such as <http://example.org/>"),
    ({"INT"}, "a number"),
    ({"DURATION"}, "a duration such as 6h"),
    ({"STRING"}, "a string"),
    ({"POLICY_NAME"}, " or ".join(", ".join(POLICIES).rsplit(", ", 1))),
    ({"VAR"}, "a variable"),
    ({"NAME"}, "a name"),
)


def _unexpected(spot: RuleErrorSpot) -> Cause:
    if not spot.known_character:
        return Cause(f"unexpected character `{_printable(spot.found)}`", spot.at, spot.end)
    return _expecting(spot)


def _printable(text: str) -> str:
    return text if text.isprintable() else " ".join(f"U+{ord(c):04X}" for c in text)


def _expecting(spot: RuleErrorSpot, hint: str | None = None) -> Cause:
    result = f"`{_printable(spot.found)}`" if spot.found else "end of the statement"
    expected = _expected(spot.expected)
    return Cause(f"unexpected {result}" + (f"; expected {expected}" if expected else ""), spot.at, spot.end, hint)


def _expected(names: frozenset[str]) -> str:
    result: list[str] = []
    left = set(names)
    for needed, text in _KINDS:
        if needed <= left:
            result.append(text)
            left -= needed
            if needed == {"NAME", "LPAR"}:
                left -= {"VAR", "INT", "STRING", "IRI", "DURATION", "LABEL", "NOT"}
    return ", ".join(result[:-1]) + (" or " if len(result) > 1 else "") + result[-1] if result else ""
