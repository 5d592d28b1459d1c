"""PREV in the filters of a GPM: a variable in its place, which has the value of the iteration before.

FILTER(?p > PREV(?p))   →   FILTER(?p > ?prev·1), where ?prev·1 is ?p one iteration earlier
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from augury.algebra.graph_queries import Expression, PreviousValue
from augury.core.errors import Findings
from augury.language.spaseq.sparql_mistakes import NotSparql, expression_of
from augury.language.spaseq.sparql_text import MADE, Prologue, clauses, closing, normal, variables
from augury.language.spaseq.tokens import SparqlToken

_PLACE = "it is asked of the iterations of a `+`, in a FILTER of the outermost group: FILTER(?p > PREV(?p))"


def calls_previous(words: Sequence[SparqlToken]) -> list[int]:
    """The numbers of the words PREV that begin a call."""
    return [n for n, word in enumerate(words[:-1]) if word.is_word("PREV") and words[n + 1].text == "("]


def refuse_previous(words: Sequence[SparqlToken], findings: Findings) -> None:
    """Reports PREV where there are no iterations."""
    for number in calls_previous(words):
        findings.add("E237", "PREV is not in a filter of a GPM that repeats", words[number].span, hint=_PLACE)


def with_previous(
    words: Sequence[SparqlToken], prologue: Prologue
) -> tuple[tuple[SparqlToken, ...], tuple[PreviousValue, ...]] | None:
    """The words of a graph pattern with a variable for each PREV; None where one is wrong, which is reported."""
    before = len(prologue.findings.errors)
    calls = set(calls_previous(words))
    allowed = {c.pieces[n].start for c in clauses(words, "FILTER") if c.depth == 1 for n in calls_previous(c.pieces)}
    values: list[PreviousValue] = []
    kept: list[SparqlToken] = []
    index = 0
    while index < len(words):
        word = words[index]
        if index not in calls:
            kept.append(word)
            index += 1
            continue
        end = closing(words, index + 1)
        if word.start not in allowed:
            refuse_previous(words[index : index + 2], prologue.findings)
        value = _value(words[index : end + 1], prologue)
        if value is not None:
            values.append(value)
            kept.append(replace(word, kind="var", text=f"?{value.name}"))
        index = end + 1
    return (tuple(kept), tuple(values)) if len(prologue.findings.errors) == before else None


def _value(call: Sequence[SparqlToken], prologue: Prologue) -> PreviousValue | None:
    """What a call of PREV asks for."""
    span, inner = call[0].span.to(call[-1].span), call[2:-1]
    has_default = len(inner) > 2 and inner[1].text == ","
    if not inner or inner[0].kind != "var" or (len(inner) > 1 and not has_default):
        hint = "PREV takes a variable, and maybe its value in the first iteration: PREV(?p), PREV(?p, ?p0)"
        prologue.findings.add("E237", f"{span.quoted} is not the earlier value of a variable", span, hint=hint)
        return None
    default: Expression | None = None
    if has_default:
        if calls_previous(inner):
            hint = "its value in the first iteration is an expression without PREV"
            prologue.findings.add("E237", "PREV stands inside PREV", span, hint=hint)
            return None
        default = _default(inner[2:], prologue)
        if default is None:
            return None
    prologue.previous += 1
    return PreviousValue(f"prev{MADE}{prologue.previous}", inner[0].text[1:], default, span)


def _default(words: Sequence[SparqlToken], prologue: Prologue) -> Expression | None:
    span = words[0].span.to(words[-1].span)
    text = normal(words, prologue)
    if text is None:
        return None
    try:
        expression_of(text)
    except NotSparql as error:
        position = span if error.piece is None else error.piece.span
        prologue.findings.add("E250", error.message, position, hint=error.hint)
        return None
    return Expression(text.text, variables(words), span)
