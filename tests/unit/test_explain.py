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
            SEQ left: 30min
            SEQ right: not stored
  stratum   1
  shares    SEQ, on S, within 30min, where New > Old * 1.1 — also in gust
  plan      increase(S, New)
            └─ SEQ, on S, within 30min, where New > Old * 1.1
               ├─ wind(S, Old)
               └─ wind(S, New)

rule alarm
  reading   alarm(P) <- NOT(localised(P)).[reported(P), increase(S, _)] WHERE near(P, S) POLICY recent
  key       none: its events share no variable
  horizon   without bound
            SEQ left: without bound
            SEQ right: not stored
            NOT absent: without bound
  certain   NOT: when the closing part starts
  stratum   1
  plan      alarm(P)
            └─ NOT between, where near(P, S), recent
               ├─ reported(P)
               ├─ increase(S, _)
               └─ absent: localised(P)

rule gust
  reading   gust(S) <- (wind(S, A) SEQ wind(S, B)).30min WHERE B > A * 1.1
  key       S
  horizon   30min, its events last 30min at most
            SEQ left: 30min
            SEQ right: not stored
  stratum   1
  shares    SEQ, on S, within 30min, where B > A * 1.1 — also in increase
  plan      gust(S)
            └─ SEQ, on S, within 30min, where B > A * 1.1
               ├─ wind(S, A)
               └─ wind(S, B)

rule overdue
  reading   overdue(P) <- r: reported(P), w: extend(r, 3h), while w: not localised(P)
  key       P
  horizon   3h, for point inputs, its events last 3h at most
            WHILE NOT waiting: 3h
            WHILE NOT absent: 0s
  certain   while w: at end(w) = end(r) + 3h
  stratum   1
  plan      overdue(P) covering w
            └─ where w = extend(r, 3h), none inside w
               ├─ r: reported(P)
               └─ absent: localised(P)

rule calm
  reading   calm(count()) <- d: day, w: extend_backward(d, 24h), while w: collect overdue(_)
  key       none: its events share no variable
  horizon   24h, for point inputs, its events last 24h at most
            COLLECT waiting: 0s
            COLLECT collected: 24h
  stratum   2
  plan      calm(count()) covering w
            ├─ where w = extend_backward(d, 24h)
            │  └─ d: day
            └─ collect while w
               └─ overdue(_)

knowledge
  near/2
            facts, looked up by argument 1 and 2

on Spark
  stage 1   by key: localised.argument 1, reported.argument 1, wind.argument 1
            rules increase, overdue, gust
            remembers 3h, beside the lateness
  stage 2   in one bucket
            rules alarm
            remembers without bound
            warning: no key, for the events of rule `alarm` share no variable
            warning: a stream remembers all of it; say `--retention`, or give the rule a window
  stage 3   by slices of time that overlap by 24h; a stream has one bucket
            rules calm
            remembers 24h, beside the lateness
            warning: no key, for the events of rule `calm` share no variable"""


def test_text() -> None:
    assert augury.compile(PROGRAM).explain() == TEXT


def test_json_says_the_same() -> None:
    data = json.loads(augury.compile(PROGRAM).explain("json"))
    assert data["outputs"] == ["increase", "alarm", "gust", "overdue", "calm"]
    rules = {rule["label"]: rule for rule in data["rules"]}
    assert rules["increase"]["horizon_us"] == 30 * 60 * 1_000_000
    assert rules["increase"]["memory"][1] == {"operator": "SEQ", "side": "right", "keep_us": -1}
    assert rules["alarm"]["horizon_us"] is None
    assert rules["calm"]["stratum"] == 2
    assert rules["alarm"]["plan"]["children"][0]["children"][2] == {"text": "absent: localised(P)", "kind": "input"}


def test_mermaid_has_equal_parts_once() -> None:
    lines = augury.compile(PROGRAM).explain("mermaid").splitlines()
    assert lines[0] == "flowchart LR"
    assert sum('"wind"' in line for line in lines) == 1
    assert sum('"SEQ, on S' in line for line in lines) == 1
    assert any("-. absent .->" in line for line in lines)


def test_left_associativity_is_shown() -> None:
    assert "reading   e <- (a AND b) SEQ c" in augury.compile("e <- a AND b SEQ c.").explain()
    assert "reading   e <- (a SEQ b) SEQ c" in augury.compile("e <- a SEQ b SEQ c.").explain()


def test_an_unknown_format() -> None:
    with pytest.raises(augury.RunError, match="unknown format `svg`\n  hint: there is text, json, mermaid, operators"):
        augury.compile(PROGRAM).explain("svg")


def test_knowledge() -> None:
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
    before, after = program.explain().split("runs as", 1)
    assert "K + 1 <= 5" not in before and "where K + 1 <= 5" in after.split("rule five")[0]
    runs = {rule["label"]: rule.get("runs") for rule in json.loads(program.explain("json"))["rules"]}
    assert runs["five"] is None and "K + 1 <= 5" in json.dumps(runs["iteration#2"])
    assert "K + 1 #lt;= 5" in program.explain("mermaid")
