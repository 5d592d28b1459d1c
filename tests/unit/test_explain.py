"""What `explain` says, as text, JSON and Mermaid."""

from __future__ import annotations

import json

import pytest

import augury

PROGRAM = """
% two readings, the second a tenth higher
increase(S, New) <- (wind(S, Old) SEQ wind(S, New)).30min WHERE New > Old * 1.1.
alarm(P) <- NOT(localised(P)).[reported(P), increase(S, _)] WHERE near(P, S) POLICY recent.
gust(S) <- (wind(S, A) SEQ wind(S, B)).30min WHERE B > A * 1.1.
overdue(P) <- r: reported(P), w: extend(r, 3h), while w: not localised(P).
calm(count()) <- d: day, w: extend_backward(d, 24h), while w: collect overdue(_).
near('creek', 's1').
"""

TEXT = """\
rule increase
  reading   increase(S, New) <- (wind(S, Old) SEQ wind(S, New)).30min WHERE New > Old * 1.1
  key       S
  horizon   30min, its events last 30min at most
  stratum   1
  runs as   13 increase(S, New)
            └─ 12 join SEQ, on S, within 30min, where New > Old * 1.1 → New, S; keeps left 30min
               ├─ 9 wind(S, Old)
               └─ 9 wind(S, New)

rule alarm
  reading   alarm(P) <- NOT(localised(P)).[reported(P), increase(S, _)] WHERE near(P, S) POLICY recent
  key       none: its events share no variable
  horizon   without bound
  certain   NOT: when the closing part starts
  stratum   1
  runs as   19 alarm(P)
            └─ 18 policy recent → P
               └─ 17 not between its parts, on P → P; keeps absent without bound
                  ├─ 16 join SEQ, where near(P, S) → P; keeps left without bound
                  │  ├─ 8 reported(P)
                  │  └─ 10 increase(S, _)
                  └─ absent: 6 localised(P)

rule gust
  reading   gust(S) <- (wind(S, A) SEQ wind(S, B)).30min WHERE B > A * 1.1
  key       S
  horizon   30min, its events last 30min at most
  stratum   1
  runs as   33 gust(S)
            └─ 32 join SEQ, on S, within 30min, where B > A * 1.1 → S; keeps left 30min
               ├─ 9 wind(S, A)
               └─ 9 wind(S, B)

rule overdue
  reading   overdue(P) <- r: reported(P), w: extend(r, 3h), while w: not localised(P)
  key       P
  horizon   3h, for point inputs, its events last 3h at most
  certain   while w: at end(w) = end(r) + 3h
  stratum   1
  runs as   24 overdue(P) covering w
            └─ 23 not in w, on P → P, w; keeps waiting 3h
               ├─ 22 scan reported(P), where w = extend(r, 3h) → P, w
               └─ absent: 6 localised(P)

rule calm
  reading   calm(count()) <- d: day, w: extend_backward(d, 24h), while w: collect overdue(_)
  key       none: its events share no variable
  horizon   24h, for point inputs, its events last 24h at most
  stratum   2
  runs as   29 calm(count()) covering w
            └─ 28 collect while w, running totals → count(), w; keeps collected 24h
               ├─ 27 scan day, where w = extend_backward(d, 24h) → w
               └─ collected: 20 overdue(_)

knowledge
  near/2
            facts, looked up by argument 1 and 2

on Spark
  stage 1   by key: localised.argument 1, reported.argument 1, wind.argument 1
            rules increase, overdue, gust
            operators 12 to 13, 22 to 24, 32 to 33
            remembers 3h, beside the lateness
  stage 2   in one bucket
            rules alarm
            operators 16 to 19
            remembers without bound
            warning: no key, for the events of rule `alarm` share no variable
            hint: let its policy choose `per (V)`, where all its events have V
            warning: a stream remembers all of it; say `--retention`, or give the rule a window
  stage 3   by slices of time that overlap by 24h; a stream too
            two slices for each partition, each 24h to 16d long
            rules calm
            operators 27 to 29
            remembers 24h, beside the lateness
            warning: no key, for the events of rule `calm` share no variable
            hint: give its events an argument that all of them share"""


def test_explain_as_text() -> None:
    assert augury.compile(PROGRAM).explain() == TEXT


def test_explain_as_json_equals_text() -> None:
    data = json.loads(augury.compile(PROGRAM).explain("json"))
    assert data["outputs"] == ["increase", "alarm", "gust", "overdue", "calm"]
    rules = {rule["label"]: rule for rule in data["rules"]}
    assert rules["increase"]["horizon_us"] == 30 * 60 * 1_000_000
    operators = {operator["number"]: operator for operator in data["operators"]}
    join = operators[operators[rules["increase"]["head"]]["inputs"][0]]
    assert join["keeps"] == [{"what": "left", "for": "30min"}, {"what": "right", "for": "0s"}]
    assert rules["alarm"]["horizon_us"] is None
    assert rules["calm"]["stratum"] == 2
    absence = next(operator for operator in data["operators"] if operator["operator"] == "not")
    read = [operators[number]["text"] for number in absence["inputs"]]
    assert read == ["join SEQ, where near(P, S) → P; keeps left without bound", "input localised/1"]
    assert absence["derived_from"] == absence["inputs"][:1]


def test_mermaid_has_equal_parts_once() -> None:
    lines = augury.compile(PROGRAM).explain("mermaid").splitlines()
    assert lines[0] == "flowchart LR"
    assert sum('"wind"' in line for line in lines) == 1
    assert sum("not in w, on P" in line and "[" in line for line in lines) == 1
    assert any("-. absent .->" in line for line in lines)


def test_left_associativity_is_shown() -> None:
    assert "reading   e <- (a AND b) SEQ c" in augury.compile("e <- a AND b SEQ c.").explain()
    assert "reading   e <- (a SEQ b) SEQ c" in augury.compile("e <- a SEQ b SEQ c.").explain()


def test_unknown_explain_format_is_refused() -> None:
    with pytest.raises(augury.RunError, match="unknown format `svg`\n  hint: there is text, json, mermaid"):
        augury.compile(PROGRAM).explain("svg")


def test_explain_shows_static_predicates() -> None:
    text = augury.compile(
        """
        static store(id: string, region: string).
        fact linked(A, B) <- link_up(A, B).
        chain(X, Y) :- linked(X, Y).
        chain(X, Z) :- linked(X, Y), chain(Y, Z).
        grade(T, hot) :- T > 30, !.
        grade(_, cool).
        ally(X, Y) :- store(X, R), store(Y, R).
        peer(X, Y) :- ally(X, Y).
        peer(X, Y) :- peer(X, Z), ally(Z, Y), X != Y.
        trend(A, B, G) <- (up(A) SEQ up(B)).10 WHERE (chain(A, B), grade(3, G), peer(A, B)).
        """
    ).explain()
    told = text[text.index("knowledge\n") : text.index("\n\non Spark")].splitlines()
    assert dict(zip([t.strip() for t in told[1::2]], [t.strip() for t in told[2::2]], strict=True)) == {
        "ally/2": "rules: goal by goal, tabled; all at once where its facts are few, or its calls many",
        "chain/2": "transitive: an index of reachability over `linked`, from its last change on; changes with events",
        "grade/2": "rules: goal by goal, tabled",
        "linked/2": "facts, looked up by argument 1, or by 1 and 2; changes with events",
        "peer/2": "recursive: goal by goal, tabled; all at once where its facts are few, or its calls many",
        "store/2": "facts, looked up by argument 1, or by 1 and 2, or by 2",
    }


def test_what_the_optimiser_makes_of_a_rule_is_shown() -> None:
    program = augury.compile(
        "output five. iteration(1) <- a(_). iteration(K + 1) <- (a(_) SEQ iteration(K)).1h. five <- iteration(5)."
    )
    text = program.explain()
    assert text.count("K + 1 <= 5") == 1
    assert text.index("rule iteration#2") < text.index("where K + 1 <= 5") < text.index("rule five")
    assert any("K + 1 <= 5" in operator["text"] for operator in json.loads(program.explain("json"))["operators"])
    assert "K + 1 #lt;= 5" in program.explain("mermaid")
