"""The words of both languages, by what they do, with a line and an example of each: the only list that there is.

Completion, hover texts and every highlighter (Pygments, TextMate, Vim, Emacs) are made from it. A test compares it with
the grammars, so that a word that is added there is missing nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from augury.algebra.aggregates import AGGREGATES
from augury.algebra.relations import RELATIVE
from augury.algebra.scalar import FUNCTIONS, TYPES

WordKind: TypeAlias = Literal["declaration", "literal", "operator", "clause", "constant"]


@dataclass(frozen=True)
class Word:
    """A keyword: what it does, and how it is used."""

    text: str
    kind: WordKind
    about: str
    example: str

    @property
    def markdown(self) -> str:
        return f"**{self.text}** {self.about}\n```aug\n{self.example}\n```"


def _words(kind: WordKind, rows: Mapping[str, tuple[str, str]]) -> dict[str, Word]:
    return {text: Word(text, kind, about, example) for text, (about, example) in rows.items()}


# How a statement begins.
_DECLARATIONS = _words("declaration", {
    "include": ("reads another file of rules, once.", 'include "weather.aug".'),
    "prefix": ("declares a prefix of IRIs.", "prefix wt: <http://example.org/weather#>."),
    "event": ("declares an event type: the names and types of its attributes.", "event wind(station: string, speed: float)."),
    "from": ("names the column, or the path into a nested one, that holds an attribute.", 'event pay(card: string from "card.id").'),
    "static": ("declares a predicate whose facts come from outside.", "static near(fire: string, station: string)."),
    "function": ("declares a function that Python registers.", "function index(t: float, h: float): float."),
    "policy": ("says which candidates pair: recent, chronological or unrestricted; for a program or, at the end of a rule, for it.", "policy recent."),
    "tick": ("says how long a tick of the logical clock lasts.", "tick 1ms."),
    "output": ("names the events that a run answers with.", "output fire_alarm, overdue."),
    "rule": ("gives a rule a label, by which messages and costs name it.", "rule storm: alarm(S) <- wind(S, V) WHERE V > 90."),
    "fact": ("makes a fact of events; `fact not` ends it.", "fact open(D) <- opened(D).\nfact not open(D) <- closed(D)."),
    "latest": ("makes a fact and ends the one before with the same key.", "fact latest level(T, L) PER (T) <- measured(T, L)."),
})  # fmt: skip

# What stands in a body.
_LITERALS = _words("literal", {
    "while": ("says what must be absent in a window, or what is collected in it.", "overdue(N) <- o: order(N), w: extend(o, 6h), while w: not shipped(N)."),
    "not": ("absence of an event, or negation of a condition.", "unanswered(C) <- (NOT(answer(C)).[call(C), hangup(C)]).1h."),
    "collect": ("collects all occurrences in a window, for aggregates.", "busy(count(S)) <- w: every(10min), while w: collect sale(S)."),
    "last": ("collects the most recent occurrences.", "trend(S, avg(V)) <- t: tick(S), last 5: collect price(S, V)."),
    "exactly": ("as `last`, where fewer do not count.", "trend(S, avg(V)) <- t: tick(S), exactly 5: collect price(S, V)."),
    "none": ("`or none`: a collection may be empty.", "quiet(count(S)) <- w: every(1h), while w: collect sale(S) or none."),
    "holding": ("the intervals in which a fact holds.", "broken(M) <- x: holding mode(M, 'error'), duration(x) > 1h."),
    "was": ("a fact as it was just before.", "changed(M) <- mode_set(M, X) WHERE was mode(M, Y), X != Y."),
    "graph": ("a graph pattern over a stream of RDF graphs, as an event.", "fast(Car) <- GRAPH <http://e.org/cars> { ?car <http://e.org/speed> ?s FILTER(?s > 120) }."),
    "distinct": ("aggregates each value once.", "visitors(count(distinct U)) <- w: every(1d), while w: collect visit(U)."),
})  # fmt: skip

# What joins two patterns, or two labels.
_OPERATORS = _words("operator", {
    "seq": ("the second begins after the first has ended.", "(smoke(R) SEQ heat(R)).5min"),
    "next": ("the next event that the rule reads, and no other between.", "a(X) NEXT b(X)"),
    "then": ("the next event that matches; others between are skipped.", "a(X) THEN b(X)"),
    "and": ("both, in any order; of conditions, both hold.", "(temperature(P, T) AND humidity(P, H)).30min"),
    "par": ("both, and they overlap.", "(meeting(R) PAR alarm(R)).1h"),
    "or": ("one or the other.", "smoke(R) OR heat(R)"),
    "equals": ("both have the same interval.", "a EQUALS b"),
    "meets": ("the second begins when the first ends.", "a MEETS b"),
    "during": ("the first lies inside the second.", "outage(X) DURING maintenance(X)"),
    "starts": ("both begin together, the first ends earlier.", "a STARTS b"),
    "finishes": ("both end together, the first begins later.", "a FINISHES b"),
    "before": ("between labels: the first ends before the second begins.", "o: order(N), s: shipped(N), o before s"),
    "after": ("between labels: the first begins after the second has ended.", "s after o"),
    "met_by": ("between labels: the first begins when the second ends.", "i met_by j"),
    "overlaps": ("between labels: the first begins first and ends inside the second.", "i overlaps j"),
    "overlapped_by": ("between labels: the second begins first and ends inside the first.", "i overlapped_by j"),
    "started_by": ("between labels: both begin together, the second ends earlier.", "i started_by j"),
    "contains": ("between labels: the second lies inside the first. Of texts, whether the second is in the first.", "i contains j"),
    "finished_by": ("between labels: both end together, the second begins later.", "i finished_by j"),
    "inside": ("between labels: the first lies inside the second, whose ends count.", "i inside j"),
    "mod": ("the remainder of a division.", "N mod 2 = 0"),
    "is": ("the same as `=`.", "Total is A + B"),
    "in": ("one of several values.", "State in ('open', 'late')"),
    "between": ("from one value to another, both included.", "T between 10 and 20"),
    "within": ("the labelled parts lie within a duration.", "{o, s, d} within 12h"),
})  # fmt: skip

# What ends a pattern or a rule.
_CLAUSES = _words("clause", {
    "where": ("conditions on a pattern, or on what an aggregate counts.", "wind(S, V) WHERE V > 20, near(F, S)"),
    "consecutive": ("a repetition with no other occurrence between.", "failed(U) ^ 3 CONSECUTIVE"),
    "per": ("the key: by what something is chosen, ranked or limited.", "ONCE PER (S) EVERY 10min"),
    "by": ("what a ranking orders by, or the operator between iterations.", "TOP 3 BY sum(A) AS R"),
    "recent": ("a policy: the later part pairs with the most recent candidate.", "a(X) SEQ[recent] b(X)"),
    "chronological": ("a policy: first in, first out; what has paired is used up.", "policy chronological."),
    "unrestricted": ("the policy that is the default: every candidate pairs.", "policy unrestricted."),
    "longest": ("of several matches, or candidates, the longest.", "run(S) <- up(S)+ PER (S) LONGEST."),
    "shortest": ("of several matches, or candidates, the shortest.", "run(S) <- up(S)+ PER (S) SHORTEST."),
    "all": ("all matches of a run, or all members: `all: collect`.", "run(S) <- up(S)+ PER (S) ALL."),
    "since": ("when the derived event starts; `SINCE END` makes it a point.", "late(N) SINCE end(o) <- o: order(N), w: extend(o, 6h), while w: not shipped(N)."),
    "end": ("`SINCE END`, `SKIP PAST END`: where a match ends.", "alarm(S) SINCE END <- (smoke(S) SEQ heat(S)).5min."),
    "skip": ("where the search for the next match of a run goes on.", "SKIP PAST END"),
    "past": ("`SKIP PAST END`: after the last event of a match.", "SKIP PAST END"),
    "to": ("`SKIP TO FIRST u`: at the first, or last, event of a label.", "SKIP TO FIRST u"),
    "first": ("`SKIP TO FIRST u`: the first event of a label.", "SKIP TO FIRST u"),
    "top": ("the best by some value.", "TOP 10 BY sum(A) PER (Shop) AS Rank"),
    "asc": ("the least first.", "TOP 3 BY Price ASC"),
    "desc": ("the greatest first, as without it.", "TOP 3 BY Price DESC"),
    "with": ("`WITH TIES`: all that are as good as the last one.", "TOP 3 BY Price WITH TIES"),
    "ties": ("`WITH TIES`: all that are as good as the last one.", "TOP 3 BY Price WITH TIES"),
    "as": ("the variable that has the rank.", "TOP 3 BY Price AS Rank"),
    "at": ("`AT MOST n`: how many answers there are.", "AT MOST 3 PER (S) EVERY 10min"),
    "most": ("`AT MOST n`: how many answers there are.", "AT MOST 3 PER (S) EVERY 10min"),
    "once": ("the first answer alone: `AT MOST 1`.", "alarm(S) <- smoke(S) ONCE PER (S) EVERY 10min."),
    "every": ("in how much time `AT MOST` and `ONCE` count.", "ONCE PER (S) EVERY 10min"),
})  # fmt: skip

_CONSTANTS = _words("constant", {
    "true": ("the boolean.", "valid(X, true)"),
    "false": ("the boolean.", "valid(X, false)"),
    "null": ("no value: it equals nothing, itself included.", "is_null(X)"),
})  # fmt: skip

RULE_WORDS: dict[str, Word] = {**_DECLARATIONS, **_LITERALS, **_OPERATORS, **_CLAUSES, **_CONSTANTS}

# Events that the language knows, and functions of labels and windows.
WINDOW_FUNCTIONS: dict[str, tuple[str, str]] = {
    "extend": ("extend(label, duration)", "the interval, longer at its end"),
    "extend_backward": ("extend_backward(label, duration)", "the interval, longer at its start"),
    "shorten": ("shorten(label, duration)", "the interval, shorter at its end"),
    "shift_forward": ("shift_forward(label, duration)", "the interval, later"),
    "shift_backward": ("shift_backward(label, duration)", "the interval, earlier"),
    "from_end": ("from_end(label, duration)", "an interval that begins where the label ends"),
    "from_start": ("from_start(label, duration)", "an interval that begins where the label starts"),
    "until": ("until(label, time)", "from the start of the label to a time"),
    "every": ("every(duration)", "windows by the clock, one after the other"),
    "start": ("start(label)", "when it starts"),
    "end": ("end(label)", "when it ends"),
    "duration": ("duration(label)", "how long it lasts"),
}
assert RELATIVE.keys() <= WINDOW_FUNCTIONS.keys()

TYPE_NAMES: tuple[str, ...] = TYPES
FUNCTION_NAMES: tuple[str, ...] = tuple(
    sorted({n for n in (*FUNCTIONS, *AGGREGATES, *WINDOW_FUNCTIONS) if n.isidentifier()})
)
UNITS = ("us", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes", "h", "hour", "hours",
    "d", "day", "days", "w", "week", "weeks", "millisecond", "milliseconds", "microsecond", "microseconds",
)  # fmt: skip

_SELECT = "SELECT ?car WITHIN 10 MINUTES FROM STREAM S <http://e.org/cars> WHERE { SEQ(A; B) … }"
# The words of SPAseQ itself.
QUERY_WORDS: dict[str, tuple[str, str]] = {
    "BASE": ("the IRI that relative IRIs are read against.", "BASE <http://e.org/>"),
    "PREFIX": ("declares a prefix of IRIs.", "PREFIX e: <http://e.org/>"),
    "SELECT": ("the variables and values of an answer.", _SELECT),
    "DISTINCT": ("each answer once.", "SELECT DISTINCT ?car"),
    "REDUCED": ("duplicates may be left out.", "SELECT REDUCED ?car"),
    "CONSTRUCT": ("an answer is a graph, made of a template.", "CONSTRUCT { ?car a e:Speeder } INTO <http://e.org/found>"),
    "INTO": ("the stream of the graphs that are constructed.", "INTO <http://e.org/found>"),
    "WITHIN": ("the window: how long a match may last, or of how many events.", "WITHIN 10 MINUTES"),
    "TUMBLING": ("windows one after the other instead of sliding ones.", "WITHIN 1 HOURS TUMBLING"),
    "PARTITION": ("`PARTITION BY`: matches have these values in common.", "PARTITION BY (?car)"),
    "BY": ("what to partition, group or order by.", "GROUP BY ?car"),
    "FROM": ("a stream, or a graph of background knowledge.", "FROM STREAM S <http://e.org/cars>"),
    "STREAM": ("a stream of RDF graphs, with a name.", "FROM STREAM S <http://e.org/cars>"),
    "NAMED": ("a graph that GRAPH reads.", "FROM NAMED <http://e.org/roads>"),
    "WHERE": ("the sequence and its graph patterns.", "WHERE { SEQ(A; B) DEFINE GPM A ON S { … } }"),
    "SEQ": ("the sequence of graph pattern matches. `,` is next to it, `;` skips to the next match, `:` skips to any; `+` repeats, `?` is optional, `!` is absent.", "SEQ(A; B+, C)"),
    "LONGEST": ("of the matches with the same first event, those in which each `+` comes most often.", "SEQ(A, B+) LONGEST"),
    "SHORTEST": ("of the matches with the same first event, those in which each `+` comes least often.", "SEQ(A, B+; C) SHORTEST"),
    "SKIP": ("where the next match may begin: `PAST END`, `TO FIRST` or `TO LAST` an item.", "SEQ(A, B+) LONGEST SKIP PAST END"),
    "DEFINE": ("defines a graph pattern of the sequence.", "DEFINE GPM A ON S { ?car e:speed ?v }"),
    "GPM": ("a graph pattern with a name.", "DEFINE GPM A ON S { ?car e:speed ?v }"),
    "ON": ("the streams whose graphs a pattern matches.", "DEFINE GPM A ON S, T { … }"),
    "GROUP": ("`GROUP BY`: one answer for each group.", "GROUP BY ?car"),
    "HAVING": ("a condition on a group.", "HAVING (AVG(?v) > 100)"),
    "ORDER": ("`ORDER BY`: how answers are ordered before LIMIT.", "ORDER BY DESC(?v)"),
    "ASC": ("the least first.", "ORDER BY ASC(?v)"),
    "DESC": ("the greatest first.", "ORDER BY DESC(?v)"),
    "LIMIT": ("how many answers.", "LIMIT 10"),
    "OFFSET": ("how many answers are left out first.", "OFFSET 5"),
    "AS": ("the variable that gets a value.", "(AVG(?v) AS ?mean)"),
    "SECONDS": ("the unit of a window.", "WITHIN 30 SECONDS"),
    "MINUTES": ("the unit of a window.", "WITHIN 30 MINUTES"),
    "HOURS": ("the unit of a window.", "WITHIN 6 HOURS"),
    "DAYS": ("the unit of a window.", "WITHIN 2 DAYS"),
    "EVENTS": ("the unit of a window that counts events.", "WITHIN 100 EVENTS"),
}  # fmt: skip
# Those of the graph patterns inside.
PATTERN_WORDS: dict[str, tuple[str, str]] = {
    "FILTER": ("a condition; one on variables of an earlier GPM is asked on the join.", "FILTER(?v > 100)"),
    "PREV": ("a variable one iteration of a `+` earlier, and its value in the first.", "FILTER(?p > PREV(?p, ?p0))"),
    "OPTIONAL": ("what may be there.", "OPTIONAL { ?car e:owner ?o }"),
    "UNION": ("one pattern or the other.", "{ … } UNION { … }"),
    "MINUS": ("without the solutions of a pattern.", "MINUS { ?car a e:Ambulance }"),
    "GRAPH": ("a pattern on background knowledge, which FROM NAMED names.", "GRAPH <http://e.org/roads> { ?road e:limit ?l }"),
    "BIND": ("gives a variable a value.", "BIND(?v * 1.6 AS ?kmh)"),
    "VALUES": ("the values that a variable may have.", "VALUES ?kind { e:Car e:Bus }"),
    "UNDEF": ("in VALUES: no value.", "VALUES (?a ?b) { (1 UNDEF) }"),
    "EXISTS": ("whether a pattern has a solution.", "FILTER EXISTS { ?car e:owner ?o }"),
    "NOT": ("`NOT EXISTS`, `NOT IN`.", "FILTER NOT EXISTS { ?car e:owner ?o }"),
    "IN": ("one of several values.", "FILTER(?kind IN (e:Car, e:Bus))"),
    "SERVICE": ("SPARQL's federation, which streams do not have.", "SERVICE <…> { … }"),
    "SILENT": ("SPARQL's federation, which streams do not have.", "SERVICE SILENT <…> { … }"),
    "SEPARATOR": ("what GROUP_CONCAT writes between values.", "GROUP_CONCAT(?x; SEPARATOR=', ')"),
}  # fmt: skip
ALL_QUERY_WORDS: dict[str, tuple[str, str]] = {**QUERY_WORDS, **PATTERN_WORDS}


def of_kind(*kinds: WordKind) -> list[str]:
    """The words of some kinds, in alphabetical order."""
    return sorted(word.text for word in RULE_WORDS.values() if word.kind in kinds)
