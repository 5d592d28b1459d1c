"""The session: what goes in, what comes out, what can be looked at, and what happens when something fails."""

from __future__ import annotations

import json
import os
import signal
import threading
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import augury
from augury import Session
from augury.core.errors import CallbackErrors, DataError, RunError, UnusableError
from augury.core.model import Change, Event, HistoryItem, Revocation
from augury.engine.operators.collect import CollectOperator

PAIRS = "pair(X) <- (a(X) SEQ b(X)).10."


def session(program: str, **settings: Any) -> Session:
    functions = settings.pop("functions", ())
    return augury.compile(program, functions=functions).session(**{"clock": "logical", **settings})


def shown(changes: Any) -> list[str]:
    return [("+ " if c.op == "insert" else "- ") + str(c.event) for c in changes]


def event(type: str, time: int, *args: Any, id: str = "") -> Event:
    return Event(type, args, time, id=id)


# What goes in


def test_an_event_may_be_told_in_many_ways() -> None:
    program = "event a(key: int, name: string). hit(K, N) <- a(K, N)."
    told = [
        event("a", 3, 1, "x"),
        {"type": "a", "args": [1, "x"], "time": 3},
        {"type": "a", "key": 1, "name": "x", "time": 3},
        [event("a", 3, 1, "x")],
        {"a": pd.DataFrame({"key": [1], "name": ["x"], "time": [3]})},
        {"a": pa.table({"name": ["x"], "key": [1], "time": [3]})},
        {"a": pa.table({"name": ["x"], "key": [1], "start": [3], "end": [3]})},
    ]
    for item in told:
        assert shown(session(program).push(item)) == ["+ hit(1, 'x') [3, 3]"], item


def test_tables_of_undeclared_types_have_their_columns_in_order() -> None:
    table = pd.DataFrame({"time": [1, 2], "x": [1.5, None], "s": ["k", None], "flag": [True, False]})
    found = session("hit(X, S, F) <- a(X, S, F).").push({"a": table})
    assert shown(found) == ["+ hit(1.5, 'k', true) [1, 1]", "+ hit(null, null, false) [2, 2]"]


def test_calendar_times_in_tables() -> None:
    times = pd.to_datetime(["2026-01-01 10:00", "2026-01-01 10:05"])
    found = augury.compile("late <- (a SEQ b).10min.").session().push(
        {"a": pd.DataFrame({"time": times[:1]}), "b": pd.DataFrame({"time": times[1:]})}
    )  # fmt: skip
    assert len(found) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"wind": pd.DataFrame({"time": [1], "x": [1]})}, "unknown event type `wind`"),
        ({"winds": pd.DataFrame({"x": [1]})}, "no column `time`"),
        ({"winds": pd.DataFrame({"time": [1], "start": [3], "end": [2], "x": [1]})}, "after its end"),
        ({"winds": pd.DataFrame({"time": [1]})}, "has 0 arguments; the program uses it with 1"),
        ({"winds": pd.DataFrame({"time": [2**61], "x": [1]})}, "too far from the origin"),
        ({"winds": pd.DataFrame({"time": [1], "op": ["revoke"], "x": [1]})}, "names the id of an event"),
        (event("winds", 2**61, 1), "too far from the origin"),
        ("winds", "events are a list"),
        ({"type": "winds", "args": [1]}, "an event has a time"),
    ],
)
def test_malformed_inputs_are_refused(given: Any, message: str) -> None:
    one = session("hit(X) <- winds(X).")
    with pytest.raises((DataError, RunError), match=message):
        one.push(given)
    assert shown(one.push(event("winds", 1, 7))) == ["+ hit(7) [1, 1]"]  # nothing is lost by a mistake


def test_one_bad_item_takes_in_nothing() -> None:
    one = session(PAIRS)
    with pytest.raises(DataError):
        one.push([event("a", 1, 1), {"type": "b", "args": [1]}])
    assert not one.push(event("b", 2, 1))


# What comes out


def test_changes_are_a_sequence() -> None:
    one = session(PAIRS)
    changes = one.push([event("a", 1, 1, id="x"), event("b", 2, 1), event("b", 3, 1)])
    assert len(changes) == 2
    assert changes[0].event.trace[0] == "x"
    assert [c.event.end for c in changes[0:2]] == [2, 3]
    assert "2" in repr(changes)
    assert shown(one.revoke("x")) == ["- pair(1) [1, 2]", "- pair(1) [1, 3]"]


def test_a_revoked_blocker_lets_an_answer_appear() -> None:
    one = session("calm <- NOT(c).[a, b].")
    one.push([event("a", 1), event("c", 2, id="c"), event("b", 3)])
    assert not one.events()
    assert shown(one.revoke("c")) == ["+ calm() [1, 3]"]


def test_an_absence_fires_though_nothing_more_arrives() -> None:
    one = session("idle(X) <- i: login(X), w: extend(i, 10s), while w: not click(X).")
    assert not one.push(event("login", 1, 7))
    assert not one.advance(10)
    assert shown(one.advance(11)) == ["+ idle(7) [1, 11]"]


def test_final_answers_wait_for_the_frontier() -> None:
    one = session(PAIRS, emit="final", lateness="5s")
    assert not one.push([event("a", 1, 1), event("b", 2, 1)])
    assert shown(one.push(event("c", 8))) == ["+ pair(1) [1, 2]"]
    one.push([event("a", 9, 2), event("b", 10, 2)])
    assert shown(one.finish()) == ["+ pair(2) [9, 10]"]


def test_late_events_go_to_the_late_callback() -> None:
    aside: list[HistoryItem] = []
    one = session(PAIRS, lateness="2s", late=aside.append)
    one.push([event("a", 1, 1), event("b", 9, 1), event("b", 3, 1), event("b", 7, 1)])
    assert [i.end for i in aside if isinstance(i, Event)] == [3]
    assert [e.end for e in one.events()] == [7, 9]
    one.push(Revocation("nobody"))
    assert one.stats()["late"] == 1


def test_events_that_last_too_long_go_aside() -> None:
    one = session(PAIRS, longest="3s")
    one.push([Event("a", (1,), 1, 5), Event("a", (1,), 2, 5), event("b", 6, 1)])
    assert [e.start for e in one.events()] == [2]
    assert [i.start for i in one.late if isinstance(i, Event)] == [1]


def test_callbacks_get_changes_of_their_type() -> None:
    one, heard = session(PAIRS + " other <- c."), list[Change]()
    one.on("pair", heard.append)
    one.push([event("a", 1, 1), event("b", 2, 1), event("c", 3)])
    assert shown(heard) == ["+ pair(1) [1, 2]"]
    with pytest.raises(RunError, match="no rule derives"):
        one.on("pear", heard.append)


def test_feeding_event_by_event() -> None:
    one = session(PAIRS)
    assert shown(one.feed([event("a", 1, 1), event("b", 2, 1), event("b", 3, 1)])) == [
        "+ pair(1) [1, 2]",
        "+ pair(1) [1, 3]",
    ]


# Looking inside


def test_goals_say_what_is_awaited() -> None:
    one = session("m(X) <- (a(X) SEQ b(X) SEQ c(X)).10.")
    heard: list[str] = []
    one.on_goal("m", 0.6, lambda goal: heard.append(goal.show(one.clock)))
    one.push([event("a", 1, 1), event("a", 2, 5)])
    assert not heard
    one.push(event("b", 3, 1))
    assert heard == ["m: 67% [a(1) @ 1, b(1) @ 3] awaits c(X) until 11 where X = 1"]
    goals = one.goals("m")
    assert [round(g.complete, 2) for g in goals] == [0.67, 0.33, 0.33]
    assert [g.awaits for g in goals] == ["c(X)", "b(X)", "b(X)"]
    one.advance(12)
    assert [g.binding for g in one.goals()] == [{"X": 5}]  # the window of the others is over
    with pytest.raises(RunError, match="there is no rule `n`"):
        one.goals("n")


def test_goals_that_cannot_be_reached_are_none() -> None:
    one = session("m(X) <- (NOT(c(X)).[a(X), b(X)]).10.")
    one.push([event("a", 2, 1), event("a", 2, 2), event("c", 3, 1, id="c")])
    assert [g.binding for g in one.goals()] == [{"X": 2}]
    one.revoke("c")
    assert len(one.goals()) == 2
    two = session("m <- (a(X) SEQ[chronological] b(Y)).10.")
    two.push([event("a", 1, 1), event("a", 2, 2), event("b", 3, 3)])
    assert [[e.args for e in g.done] for g in two.goals() if g.awaits == "b(Y)"] == [[(2,)]]


def test_why_explains_an_answer_of_a_session() -> None:
    one = session("twice(X) :- X = 1. m(X) <- a(X) SEQ b(X) WHERE twice(X). k(X) <- m(X) AND c(_).")
    one.push([event("a", 1, 1, id="e1"), event("b", 2, 1, id="e2"), event("c", 3, 0, id="e3")])
    found = one.events()[-1]
    text = one.why(found)
    assert all(part in text for part in ("k(1) @ [1, 3]", "by rule m", "(input e1)", "twice(1)", "(input e3)"))
    tree = json.loads(one.why(found, format="json"))
    assert tree["derivations"][0]["parts"][0]["derivations"][0]["facts"][0]["name"] == "twice"
    assert "flowchart" in one.why(found, format="mermaid")
    one.push(event("b", 2, 1, id="e4"))
    assert one.why(one.events()[0], all=True).count("by rule m") == 2
    with pytest.raises(RunError, match="does not stand"):
        one.why(event("k", 1, 9))


def test_why_not_names_the_nearest_match_of_a_session() -> None:
    one = session("m(X) <- (a(X) SEQ b(X)).5.")
    one.push([event("a", 1, 1), event("b", 9, 1)])
    assert "`window 5s`: from 1 to 9 is 8" in one.why_not("m(1)")
    assert json.loads(one.why_not("m(1)", format="json"))[0]["rule"] == "m"
    one.push([event("a", 8, 1)])
    with pytest.raises(RunError, match="was detected"):
        one.why_not("m(1)")


def test_stats_count_rows_and_bytes() -> None:
    one = session(PAIRS)
    one.push([event("a", 1, 1), event("b", 2, 1), event("d", 2, 1)])
    stats = one.stats()
    assert (stats["events"], stats["matches"], stats["steps"], stats["forgets"]) == (3, 1, 1, False)
    assert stats["rules"]["pair"]["rows"] >= 1
    assert {o["operator"] for o in stats["operators"]} >= {"input", "join", "head", "set"}


# Rules that come and go


def test_rules_are_added_from_the_past_or_from_now() -> None:
    one = session(PAIRS)
    one.push([event("a", 1, 1), event("b", 2, 1), event("c", 3, 1)])
    assert shown(one.add_rules("past(X) <- (b(X) SEQ c(X)).10.")) == ["+ past(1) [2, 3]"]
    assert not one.add_rules("now(X) <- (b(X) SEQ c(X)).10. more(X) <- pair(X) SEQ c(_).", since="now")
    found = one.push([event("c", 4, 1), event("b", 5, 1), event("c", 6, 1)])
    assert shown(c for c in found if c.event.type == "now") == ["+ now(1) [5, 6]"]
    assert not [c for c in found if c.event.type == "more"]


def test_a_removed_rule_takes_its_answers_back() -> None:
    one = session("both(X) <- a(X). both(X) <- b(X). top(X) <- both(X).")
    one.push([event("a", 1, 1), event("b", 1, 1), event("b", 2, 2)])
    assert shown(one.remove_rule("both#2")) == ["- both(2) [2, 2]", "- top(2) [2, 2]"]
    assert shown(one.push([event("a", 3, 3), event("b", 4, 4)])) == ["+ both(3) [3, 3]", "+ top(3) [3, 3]"]
    with pytest.raises(RunError, match="there is no rule"):
        one.remove_rule("both#2")


def test_rules_that_cannot_be_added_are_refused() -> None:
    one = session(PAIRS)
    with pytest.raises(RunError, match="is an input of the running rules"):
        one.add_rules("a(X) <- c(X).")
    with pytest.raises(RunError, match="static rules cannot be added"):
        one.add_rules("known(1). q(X) <- c(X) WHERE known(X).")
    with pytest.raises(augury.ProgramError):
        one.add_rules("q(X) <- c(Y).")
    assert shown(one.push([event("a", 1, 1), event("b", 2, 1)])) == ["+ pair(1) [1, 2]"]


# Saving


def test_session_resumes_from_its_snapshot() -> None:
    program = augury.compile(PAIRS)
    one = program.session(clock="logical", lateness="100s")
    one.push([event("a", 1, 1, id="x"), event("b", 2, 1)])
    one.add_rules("late(X) <- (b(X) SEQ c(X)).10.")
    two = program.restore(one.snapshot())
    assert two.stats()["events"] == 2
    for restored in (one, two):
        assert shown(restored.push(event("c", 3, 1))) == ["+ late(1) [2, 3]"]
        assert shown(restored.revoke("x")) == ["- pair(1) [1, 2]"]


def test_bytes_that_are_not_a_snapshot_are_refused() -> None:
    program = augury.compile(PAIRS)
    one = program.session(clock="logical")
    one.push(event("a", 1, 1))
    data = one.snapshot()
    with pytest.raises(RunError, match="of another program"):
        augury.compile("m(X) <- a(X).").restore(data)
    with pytest.raises(RunError, match="not a whole snapshot"):
        program.restore(b"hello")
    with pytest.raises(RunError, match="damaged"):
        program.restore(data[:-20])
    evil = b"augury session 4\n" + b"cos\nsystem\n(S'true'\ntR."
    with pytest.raises(RunError, match="of another version"):
        program.restore(evil)


# Failing


@augury.function
def picky(x: float) -> float:
    if x == 13:
        raise ValueError("unlucky")
    return x


def test_a_failing_function_leaves_the_session_as_it_was() -> None:
    one = session(
        "rule doubt: hit(picky(X)) <- a(X) SEQ b(X). calm <- NOT(c).[a(_), b(_)]. n(count()) <- i: b(X), last 3: collect a(Y).",
        functions=[picky],
    )
    one.push([event("a", 1, 1, id="a1"), event("a", 2, 13, id="a13"), event("b", 3, 1, id="b1")])
    before, state = one.events(), one.snapshot()
    with pytest.raises(RunError) as failure:
        one.push([event("b", 5, 1), event("c", 2, id="c"), Revocation("a1"), event("b", 6, 13, id="b13")])
    for part in ("picky", "doubt", "unlucky", "a13", "b13"):
        assert part in str(failure.value)
    assert [e.content for e in one.events()] == [e.content for e in before]
    assert one.snapshot() == state
    again = shown(one.push([event("b", 5, 1, id="b5"), event("c", 2, id="c")]))
    assert again == shown(augury.compile(
        "rule doubt: hit(picky(X)) <- a(X) SEQ b(X). calm <- NOT(c).[a(_), b(_)]. n(count()) <- i: b(X), last 3: collect a(Y).",
        functions=[picky],
    ).restore(state).push([event("b", 5, 1, id="b5"), event("c", 2, id="c")]))  # fmt: skip
    assert again


CALLS: list[int] = []


@augury.function(vectorised=True)  # type: ignore[untyped-decorator]
def scaled(x: float, y: float) -> float:
    CALLS.append(len(x))  # type: ignore[arg-type]
    if (np.asarray(x) == 13).any():
        raise ValueError("unlucky")
    return x * y


@augury.function(vectorised=True)  # type: ignore[untyped-decorator]
def shouted(name: str) -> str:
    return np.array([None if n is None else n.upper() for n in name], object)  # type: ignore[return-value]


def test_vectorised_functions_see_many_rows_at_once() -> None:
    program = "event a(x: float, s: string). hit(scaled(X, 2), shouted(S)) <- a(X, S) WHERE scaled(X, 3) > 3."
    rows = [event("a", t, float(t), f"n{t}") for t in range(5)] + [event("a", 9, 9.5, None)]
    CALLS.clear()
    one = session(program, functions=[scaled, shouted])
    one.push(rows)
    assert CALLS == [6, 4]
    reference = augury.run(
        augury.compile(program, functions=[scaled, shouted]), rows, clock="logical", engine="reference"
    )
    assert [e.content for e in one.events()] == [e.content for e in reference]
    assert one.events()[-1].args == (19.0, None)
    with pytest.raises(RunError) as failure:
        one.push([event("a", 10, 1.5, "x"), event("a", 11, 13.0, "y", id="bad")])
    assert "unlucky" in str(failure.value) and "(bad)" in str(failure.value)


def test_a_row_that_cannot_be_computed_is_counted() -> None:
    one = session("hit(1 / X) <- a(X).")
    one.push([event("a", 1, 0), event("a", 2, 2)])
    assert [e.args for e in one.events()] == [(0.5,)]
    assert list(one.errors.values()) == [1]


def test_a_session_belongs_to_one_thread() -> None:
    one = session(PAIRS)
    failures: list[BaseException] = []

    def push_again(_: Change) -> None:
        try:
            one.push(event("a", 9, 9))
        except RunError as error:
            failures.append(error)

    one.on("pair", push_again)
    one.push([event("a", 1, 1), event("b", 2, 1)])
    assert len(failures) == 1
    other = threading.Thread(target=lambda: one.push(event("a", 3, 3)))
    other.start()
    other.join()
    assert one.stats()["events"] == 3


def test_a_session_that_is_not_revisable() -> None:
    one = session(PAIRS, revisable=False)
    one.push([event("a", 1, 1, id="x"), event("b", 2, 1)])
    with pytest.raises(RunError, match="not revisable"):
        one.revoke("x")


def test_how_old_a_revoked_event_may_be() -> None:
    one = session(PAIRS, lateness="2s", revisable="20s", emit="final")
    one.push([event("a", 1, 1, id="x"), event("b", 2, 1, id="y"), event("c", 10)])
    assert not one.events()  # it may still be taken back
    one.push(event("b", 5, 1))
    assert one.stats()["late"] == 1
    one.revoke("x")
    assert one.stats()["late"] == 1
    one.push(event("c", 40))
    one.revoke("y")
    assert one.stats()["late"] == 2
    assert not one.events()


@pytest.mark.parametrize("settings", [{"emit": "soon"}, {"lateness": 5}, {"lateness": "long"}, {"clock": "sundial"}])
def test_settings_that_make_no_sense(settings: dict[str, Any]) -> None:
    with pytest.raises(RunError):
        session(PAIRS, **settings)


def test_a_callback_that_fails_loses_nothing() -> None:
    def refuse(_: object) -> None:
        raise ValueError("not today")

    one = session("hit(picky(X)) <- a(X).", functions=[picky], lateness="2s", late=refuse)
    with pytest.raises(CallbackErrors) as caught:
        one.push([event("a", 10, 1), event("a", 1, 1)])
    assert shown(caught.value.changes) == ["+ hit(1) [10, 10]"]
    with pytest.raises(RunError, match="unlucky"):
        one.push(event("a", 11, 13))
    assert [e.args for e in one.events()] == [(1,)]
    two = session("m(X) <- a(X) SEQ b(X).")
    two.on_goal("m", 0.5, refuse)
    with pytest.raises(CallbackErrors):
        two.push(event("a", 1, 1))
    assert shown(two.push(event("c", 2))) == []
    assert len(two.goals()) == 1


def test_rules_that_fail_on_the_past_are_not_added() -> None:
    program = augury.compile("k(X) <- a(X).", functions=[picky])
    one = program.session(clock="logical")
    one.push(event("a", 1, 13))
    with pytest.raises(RunError, match="unlucky"):
        one.add_rules("hit(picky(X)) <- a(X).")
    again = program.restore(one.snapshot())
    for session_ in (one, again):
        assert shown(session_.push(event("a", 2, 2))) == ["+ k(2) [2, 2]"]


def test_a_rule_may_be_replaced() -> None:
    one = session("output n, k. n(X) <- a(X). k(X) <- n(X).")
    one.push(event("a", 1, 1))
    assert shown(one.remove_rule("n")) == ["- k(1) [1, 1]", "- n(1) [1, 1]"]
    assert shown(one.push(event("n", 2, 7))) == ["+ k(7) [2, 2]"]
    assert shown(one.add_rules("output n. n(X + 1) <- a(X).")) == ["+ k(2) [1, 1]", "+ n(2) [1, 1]", "+ n(7) [2, 2]"]
    assert shown(one.remove_rule("k")) == ["- k(2) [1, 1]", "- k(7) [2, 2]"]
    assert one.program.outputs == ("n",)


def test_values_of_tables_are_checked() -> None:
    for column, message in (
        ([float("inf")], "an infinite number"),
        (np.array([2**63], np.uint64), "beyond 64 bits"),
        ([object()], "not a value"),
    ):
        one = session("h(X) <- a(X).")
        with pytest.raises(DataError, match=message):
            one.push({"a": pd.DataFrame({"x": column, "time": [1]})})
        assert not one.events()
    one = session("h(X) <- a(X).")
    one.push({"a": pd.DataFrame({"x": [1, 2], "time": [1, 2], "id": [None, None]})})
    assert len(one.events()) == 2
    one.push({"a": pd.DataFrame({"x": [[1, 2]], "time": [3]})})
    assert one.events()[-1].args == ((1, 2),)


def test_an_id_that_is_made_stays_when_its_equals_are_forgotten() -> None:
    one = session("m(X) <- (a(X) SEQ b(X)).20.", lateness="2s")
    one.push([event("a", 1, 1), event("a", 1, 1), event("b", 2, 1)])
    first, second = sorted(e.id for e in (one.circuit.inputs["a", 1].event(i) for i in range(2)))
    one.revoke(first)
    one.push(event("c", 8))
    one.prune()
    table = one.circuit.inputs["a", 1].out.table
    assert second in [one.circuit.inputs["a", 1].id(row) for row in range(table.n)]


def test_the_clock_is_known_with_the_first_event() -> None:
    one = augury.compile("q(S) <- ping(S).").session()
    assert not one.push([]) and not one.events()
    with pytest.raises(RunError, match="the clock is not known before the first event"):
        _ = one.clock
    assert len(one.push({"type": "ping", "args": ["a"], "time": "2026-03-01 10:00"})) == 1
    assert one.clock.kind == "timestamp"


def test_values_that_are_not_events_are_refused() -> None:
    one = session(PAIRS)
    for wrong, hint in (
        (pd.DataFrame({"x": [1], "time": [1]}), "a table of which type"),
        ({"a": [1, 2]}, "neither an event nor tables by type"),
    ):
        with pytest.raises(RunError, match=hint):
            one.push(wrong)
    with pytest.raises(RunError, match="revoked by their ids"):
        one.revoke(5)  # type: ignore[arg-type]
    with pytest.raises(RunError, match="not an output"):
        session("output k. n(X) <- a(X). k(X) <- n(X).").on("n", print)


def test_a_run_takes_tables() -> None:
    tables = {"a": pd.DataFrame({"x": [1], "time": [1]}), "b": pd.DataFrame({"x": [1], "time": [2]})}
    assert [str(e) for e in augury.run(PAIRS, tables)] == ["pair(1) [1, 2]"]
    assert not list(augury.run(PAIRS, tables, until=1))


# What it costs: rows that operators look at, never seconds


def costs(program: str, batches: list[dict[str, pd.DataFrame]], **settings: Any) -> list[int]:
    """How many rows the operators look at in each step."""
    one, found = session(program, **settings), []
    for batch in batches:
        before = sum(o["touched"] for o in one.stats()["operators"])
        one.push(batch)
        found.append(sum(o["touched"] for o in one.stats()["operators"]) - before)
    return found


def stream(steps: int, size: int, keys: int = 1) -> list[dict[str, pd.DataFrame]]:
    """Steps of a, b and c in turn, in the order of time."""
    time = np.arange(steps * size * 3).reshape(steps, size, 3)
    return [
        {name: pd.DataFrame({"x": part[:, i] % keys, "time": part[:, i]}) for i, name in enumerate("abc")}
        for part in time
    ]


LINEAR = {
    "a window": "m(X) <- (a(X) SEQ b(X)).6.",
    "a key": "m(X) <- (a(X) SEQ b(X) SEQ c(X)).20.",
    "meets": "m(X) <- a(X) MEETS b(X).",
    "NOT": "m(X) <- NOT(c(_)).[a(X), b(_)].",
    "while not": "m(X) <- i: a(X), w: extend(i, 20s), while w: not b(_).",
    "recent": "m(X) <- a(X) SEQ[recent] b(_).",
    "recent with a condition": "m(X) <- a(X) SEQ[recent] b(Y) WHERE X <= Y.",
    "collect": "m(count()) <- i: a(X), w: extend_backward(i, 20s), while w: collect b(_).",
    "last": "m(sum(Y)) <- i: a(X), last 5: collect b(Y).",
    "median of the last": "m(X, median(Y)) <- i: a(X), last 5: collect b(Y).",
    "windows by the clock": "m(X, sum(Y)) <- w: every(20s), while w: collect a(X), while w: collect b(Y).",
    "totals of windows": "m(X, count(), median(X)) <- w: every(20s), while w: collect a(X).",
    "windows that hop": "m(count(), sum(X), max(X)) <- w: every(60s, 1s), while w: collect a(X).",
    "ranking": "m(X, R) <- w: every(20s), while w: collect a(X) TOP 2 BY count() AS R.",
    "throttle": "m(X) <- a(X) AT MOST 2 PER (X) EVERY 60s.",
    "throttle of all": "m(X) <- a(X) AT MOST 1 EVERY 9s.",
    "once": "m(X) <- a(X) ONCE PER (X).",
    "recursion": "n(0) <- a(_). n(C + 1) <- n(C) SEQ[recent] b(_).",
    "labels": "m(X) <- i: a(X), j: b(Y), i before j, {i, j} within 6s.",
}


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("lateness", [None, "10s"])
def test_a_step_costs_what_it_changes_not_what_came_before(name: str, lateness: str | None) -> None:
    found = costs(LINEAR[name], stream(12, 20, keys=5), lateness=lateness)
    assert max(found[8:]) <= 1.3 * max(found[2:5]) + 20, found


@pytest.mark.parametrize("name", LINEAR)
def test_twice_the_events_cost_twice(name: str) -> None:
    small, large = (costs(LINEAR[name], stream(1, size))[0] for size in (60, 240))
    assert large <= 6 * small + 50, (small, large)


LATE = {  # and in how many windows an event lies
    "totals": ("m(X, sum(Y)) <- w: every(10s), while w: collect a(X, Y).", 1),
    "medians": ("m(X, median(Y)) <- w: every(10s), while w: collect a(X, Y).", 1),
    "windows that hop": ("m(count(), sum(Y)) <- w: every(60s, 10s), while w: collect a(X, Y).", 6),
    "ranking": ("m(X, R) <- w: every(10s), while w: collect a(X, Y) TOP 3 BY sum(Y) AS R.", 1),
    "last": ("m(X, median(Y)) <- r: a(X, _), last 5: collect a(X, Y).", None),
}


@pytest.mark.parametrize("name", LATE)
def test_a_late_event_costs_the_windows_it_lies_in(name: str) -> None:
    program, windows = LATE[name]
    found = []
    for count in (30, 300):  # windows
        one = session(program)
        times = np.arange(10 * count)
        one.push({"a": pd.DataFrame({"x": times % 3, "y": times % 7, "time": times})})
        one.push(event("a", 10 * count + 100, 9, 0))  # time passes
        before = sum(o["touched"] for o in one.stats()["operators"])
        changes = one.push(event("a", 105, 0, 1000))
        found.append(sum(o["touched"] for o in one.stats()["operators"]) - before)
        ends = {change.event.end for change in changes}
        assert changes and (len(ends) == windows if windows else ends <= set(range(105, 121)))
    assert found[1] <= found[0] + 10, found


@pytest.mark.parametrize("most", [1, 3])
def test_a_late_event_is_decided_with_the_next_ones_only(most: int) -> None:
    """A throttle decides anew until the last n that it gives are those of before."""
    found = []
    for count in (300, 3000):
        one = session(f"m(X, Y) <- a(X, Y) AT MOST {most} PER (X) EVERY 10s.")
        times = np.arange(count)
        one.push({"a": pd.DataFrame({"x": times % 3, "y": times % 7, "time": 10 * times})})
        one.push(event("a", 0, 0, -1))  # the events of the key are looked at one by one from now on
        before = sum(o["touched"] for o in one.stats()["operators"])
        one.push(event("a", 605, 0, -1))
        found.append(sum(o["touched"] for o in one.stats()["operators"]) - before)
    assert found[1] <= found[0] + 10, found


def test_a_window_that_hops_is_not_computed_for_every_hop() -> None:
    """Each event is looked at a few times, in however many windows it lies."""
    found = []
    for hops in (2, 60):
        one = session(f"m(count(), sum(X), max(X)) <- w: every({hops}s, 1s), while w: collect a(X).")
        times = np.arange(600)
        one.push({"a": pd.DataFrame({"x": times % 5, "time": times})})
        one.advance(1000)
        assert len(one.events()) == 600 + hops - 1
        found.append(sum(o["touched"] for o in one.stats()["operators"]))
    assert found[1] <= 1.3 * found[0], found


def test_the_last_n_are_all_that_is_held() -> None:
    """Of each key the last five, and what may still change; what they gave is not held, either."""
    one = session("m(X, median(Y)) <- r: a(X, _), last 5: collect a(X, Y).", lateness="10s")
    for step in range(30):
        times = np.arange(100 * step, 100 * (step + 1))
        one.push({"a": pd.DataFrame({"x": times % 4, "y": times % 7, "time": times})})
        one.prune()
    held = {o["operator"]: o["rows"] for o in one.stats()["operators"]}
    assert held["input"] <= 4 * 5 + 12, held
    (collect,) = (o for o in one.circuit.operators if isinstance(o, CollectOperator))
    assert collect.contents.size <= 5 * collect.out.table.n <= 5 * 40


def test_revocation_costs_what_it_retracts() -> None:
    """A chain of derived events falls link by link, each looked at a few times."""
    rules = "chain(0) <- start. chain(C + 1) <- chain(C) SEQ[recent] link(C)."
    for length in (50, 200):
        one = session(rules)
        one.push([event("start", 0, id="s"), *(event("link", i + 1, i) for i in range(length))])
        before = sum(o["touched"] for o in one.stats()["operators"])
        assert len(one.revoke("s")) == length + 1
        assert sum(o["touched"] for o in one.stats()["operators"]) - before < 40 * length


def test_one_rule_of_a_hundred_is_all_that_an_event_concerns() -> None:
    rules = "\n".join(f"m{i}(X) <- (a{i}(X) SEQ b{i}(X)).10." for i in range(100))
    one = session(rules)
    one.push([event("a7", 1, 1), event("b7", 2, 1)])
    assert sum(o["touched"] > 0 for o in one.stats()["operators"]) <= 4


def test_equal_parts_of_rules_exist_once() -> None:
    one = session("\n".join(f"m{i}(X) <- (a(X) SEQ b(X)).10." for i in range(16)))
    assert sum(o["operator"] == "join" for o in one.stats()["operators"]) == 1


@pytest.mark.parametrize("name", ["a window", "a key", "meets", "while not", "collect", "labels"])
def test_state_does_not_grow_under_a_window(name: str) -> None:
    one, rows = session(LINEAR[name], lateness="10s", longest="0s"), []
    for batch in stream(8, 200, keys=5):
        one.push(batch)
        rows.append(one.prune())
    assert rows[-1] <= 1.2 * rows[1] + 20, rows


def test_the_dictionary_forgets_values() -> None:
    one = session("m(S) <- (a(S) SEQ b(S)).5.", lateness="5s")
    for step in range(6):
        times = np.arange(step * 2000, (step + 1) * 2000)
        one.push({"a": pd.DataFrame({"s": [f"name {t}" for t in times], "time": times})})
        one.prune()
    assert one.stats()["values"] < 5000


def test_all_callbacks_are_called_and_what_they_raise_comes_together() -> None:
    heard: list[str] = []

    def raises(change: Change) -> None:
        heard.append(f"{change.event.type} raises")
        raise ValueError(change.event.type)

    program = "pair(X) <- a(X) SEQ b(X).\nalone(X) <- a(X)."
    late: list[HistoryItem] = []

    def refuse(item: HistoryItem) -> None:
        late.append(item)
        raise KeyError(item.id)

    one = session(program, lateness="3s", late=refuse)
    one.on("pair", raises)
    one.on("alone", raises)
    one.on("alone", lambda change: heard.append(f"{change.event.type} hears"))
    with pytest.raises(CallbackErrors) as caught:
        one.push([event("a", 10, 1), event("b", 11, 1), *(event("a", 1, i) for i in range(3))])
    assert sorted(heard) == ["alone hears", "alone raises", "pair raises"]
    assert len(late) == 3
    group = caught.value
    assert [type(error) for error in group.exceptions] == [ValueError, ValueError, KeyError, KeyError, KeyError]
    assert sorted(shown(group.changes)) == ["+ alone(1) [10, 10]", "+ pair(1) [10, 11]"]
    only, rest = group.split(KeyError)
    assert only is not None and rest is not None
    assert only.changes is rest.changes is group.changes  # type: ignore[attr-defined]
    assert one.stats()["late"] == 3


def test_an_interrupt_in_a_callback_loses_no_late_event() -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    one = session("alone(X) <- a(X).", lateness="3s", late=interrupt)
    with pytest.raises(KeyboardInterrupt):
        one.push([event("a", 10, 1), *(event("a", 1, i) for i in range(3))])
    assert [item.args for item in one.late if isinstance(item, Event)] == [(1,), (2,)]
    assert shown(one.push(event("a", 11, 2))) == ["+ alone(2) [11, 11]"]


def test_a_step_that_cannot_be_undone_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    one = session("p(X) <- a(X) SEQ b(X).\nhit(picky(X)) <- a(X).", functions=[picky])
    one.push(event("a", 1, 1))
    saved = one.snapshot()

    def full(_: object) -> None:
        raise MemoryError("no memory")

    with monkeypatch.context() as broken:
        broken.setattr("augury.engine.circuit.Circuit.rebuild", full)
        for tell in (lambda: one.push(event("a", 2, 13)), lambda: one.push(event("b", 2, 1)), one.events, one.stats):
            with pytest.raises(UnusableError, match="S201"):
                tell()
    # Once there is memory again the step is undone, and the session goes on.
    assert shown(one.push(event("b", 2, 1))) == ["+ p(1) [1, 2]"]
    again = augury.compile("p(X) <- a(X) SEQ b(X).\nhit(picky(X)) <- a(X).", functions=[picky]).restore(saved)
    assert shown(again.push(event("b", 2, 1))) == ["+ p(1) [1, 2]"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_that_was_forked_during_a_push_goes_on() -> None:
    inside, forked = threading.Event(), threading.Event()

    @augury.function
    def waits(x: int) -> int:
        if x == 7:
            inside.set()
            forked.wait(60)
        return x

    one = session("p(waits(X)) <- a(X).\nq(X) <- a(X) SEQ b(X).", functions=[waits])
    one.push(event("a", 1, 1))
    pusher = threading.Thread(target=lambda: one.push([event("a", 2, 2), event("a", 3, 7)]))
    pusher.start()
    assert inside.wait(60)
    child = os.fork()
    if child == 0:  # the step that was under way is undone there
        code = 1
        with suppress(BaseException):
            signal.alarm(60)
            good = len(one.events()) == 1 and shown(one.push(event("b", 2, 1))) == ["+ q(1) [1, 2]"]
            code = 0 if good else 2
        os._exit(code)
    forked.set()
    pusher.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(one.events()) == 3
