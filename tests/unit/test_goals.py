"""What has begun and has not ended: partial matches and facts, with since when, whatever came late."""

from pathlib import Path

import augury
from augury.core.model import Event
from tests.support.commands import run

STATES = """
fact down(M) <- stop(M).
fact not down(M) <- go(M).
alarm(M) <- call(M), down(M).
idle(M, D) <- s: stop(M), g: go(M), s before g, {s, g} within 1h, D = start(g) - end(s).
"""


def facts(session: augury.Session) -> dict[str, int | None]:
    return {g.awaits: g.since for g in session.goals() if g.rule == "down"}


def test_a_state_that_has_begun() -> None:
    session = augury.compile(STATES).session(clock="logical")
    session.push([Event("stop", ("a",), 3, 3), Event("stop", ("b",), 4, 4), Event("go", ("a",), 6, 6)])
    assert facts(session) == {"the end of down('b')": 4}
    (goal,) = [g for g in session.goals() if g.rule == "down"]
    session.advance(10)
    assert goal.lasting(10) == 6
    assert [e.type for e in goal.done] == ["fact down"]
    assert (
        goal.show(session.clock, 10) == "down: since 4 for 6 ticks 50% [fact down('b') @ 4] awaits the end of down('b')"
    )


def test_under_late_and_revoked_events() -> None:
    session = augury.compile(STATES).session(clock="logical")
    session.push([Event("stop", ("a",), 5, 5), Event("stop", ("a",), 8, 8), Event("stop", ("b",), 9, 9, "x")])
    assert facts(session) == {"the end of down('a')": 5, "the end of down('b')": 9}
    session.push([Event("go", ("a",), 6, 6, "late")])  # so it began anew at 8
    assert facts(session) == {"the end of down('a')": 8, "the end of down('b')": 9}
    session.push([Event("stop", ("a",), 2, 2)])
    assert facts(session)["the end of down('a')"] == 8
    session.revoke("late")
    assert facts(session) == {"the end of down('a')": 2, "the end of down('b')": 9}
    session.revoke("x")
    assert facts(session) == {"the end of down('a')": 2}


def test_a_beginning_that_is_forgotten_is_not_said() -> None:
    session = augury.compile(STATES).session(clock="logical", lateness="0s")
    session.push([Event("stop", ("a",), 5, 5)])
    session.advance(50)
    session.prune()
    assert facts(session) in ({"the end of down('a')": 5}, {"the end of down('a')": None})


def test_partial_matches_say_since_when() -> None:
    session = augury.compile(STATES).session(clock="logical")
    session.push([Event("stop", ("a",), 3, 3)])
    (goal,) = session.goals("idle")
    assert (goal.since, goal.lasting(10), goal.awaits) == (3, 7, "g: go(M)")


def test_on_the_command_line(tmp_path: Path) -> None:
    program, events = tmp_path / "p.aug", tmp_path / "e.jsonl"
    program.write_text(STATES)
    events.write_text(
        '{"type": "stop", "args": ["m1"], "time": "2026-01-01 10:03"}\n{"type": "go", "args": ["m2"], "time": "2026-01-01 10:15"}\n'
    )
    done = run(["run", str(program), "--events", str(events), "--goals", "--engine", "embedded"], tmp_path)
    assert "down: since 2026-01-01T10:03:00Z for 12min" in done.out + done.err


PENDING = """
late(N)           <- o: order(N, Due), w: until(o, Due, most = 1h), while w: not shipped(N).
visit(U, count()) <- w: session(30s, click(U, _)), while w: collect click(U, V).
paid(N, sum(A))   <- o: order(N, _), w: extend(o, 20s), while w: collect pay(N, A).
"""


def test_absences_sessions_and_collects_that_are_not_over() -> None:
    session = augury.compile(PENDING).session(clock="logical")
    session.push([Event("order", (1, 9), 1), Event("click", ("u", 1), 3), Event("click", ("u", 2), 5, id="c")])
    session.push(Event("pay", (1, 5), 4))

    def pending() -> set[tuple[object, ...]]:
        return {(g.rule, g.awaits, len(g.done), g.since, g.until) for g in session.goals()}

    late, paid = ("late", "no shipped(N)", 1, 1, 9), ("paid", "the end of w", 2, 1, 21)
    assert pending() == {late, paid, ("visit", "the end of the session", 2, 3, 35)}
    session.revoke("c")
    session.push(Event("click", ("v", 1), 6))
    assert pending() >= {("visit", "the end of the session", 1, 3, 33), ("visit", "the end of the session", 1, 6, 36)}
    session.push(Event("shipped", (1,), 8))
    assert late not in pending()
    session.advance(40)
    assert pending() == set()


HOURLY = "busy(K, count()) <- w: every(10s, 5s), while w: collect (call(K, V) WHERE V > 1)."


def test_windows_by_the_clock_that_are_not_over() -> None:
    session = augury.compile(HOURLY).session(clock="logical")
    session.push([Event("call", ("a", 2), 3), Event("call", ("a", 1), 4), Event("call", ("b", 3), 6, id="b")])
    assert all(goal.timed and goal.awaits == "the end of w" for goal in session.goals())

    def pending() -> dict[tuple[object, object], int]:
        return {(goal.binding["K"], goal.until): len(goal.done) for goal in session.goals()}

    assert pending() == {("a", 9): 1, ("b", 9): 1, ("b", 14): 1}
    session.revoke("b")
    assert pending() == {("a", 9): 1}
    session.push(Event("call", ("a", 5), 8))
    assert pending() == {("a", 9): 2, ("a", 14): 1}
    session.advance(9)
    assert pending() == {("a", 14): 1}


def test_a_run_without_answers_says_what_is_not_over(tmp_path: Path) -> None:
    program, events = tmp_path / "p.aug", tmp_path / "e.jsonl"
    program.write_text("total(sum(V)) <- w: every(1d), while w: collect pay(V).")
    events.write_text('{"type": "pay", "args": [5], "time": "2026-01-01 10:03"}\n')
    command = ["run", str(program), "--events", str(events), "--engine", "embedded"]
    assert (
        "1 absence or window is not over at the last event, the next one at 2026-01-01T23:59:59.999999Z"
        in run(command, tmp_path).err
    )
    assert "not over" not in run([*command, "--until", "2026-01-02"], tmp_path).err


TIME_IN_STATE = """
output spent, off.
fact latest mode(M, S) PER (M) <- change(M, S).
spent(M, sum(duration(x))) <- w: every(10s), while w: collect x: holding mode(M, 'on').
off(M) <- x: holding mode(M, 'off').
"""


def changes() -> augury.Session:
    session = augury.compile(TIME_IN_STATE).session(clock="logical")
    session.push([Event("change", ("a", "on"), 2, 2, "one"), Event("change", ("a", "off"), 6, 6, "two")])
    session.advance(9)
    return session


def test_the_value_of_a_key_ends_with_the_next_one() -> None:
    assert [goal.awaits for goal in changes().goals("mode")] == ["the end of mode('a', 'off')"]


def test_why_names_the_intervals_that_a_window_has_collected() -> None:
    session = changes()
    (spent,) = session.events()
    lines = session.why(spent).splitlines()
    assert [line.strip(" │├└─") for line in lines] == [
        "spent('a', 4) @ [0, 9]",
        "by rule spent",
        "holding mode('a', 'on') @ [2, 6]",
        "mode('a', 'on')",
        "fact mode('a', 'on') @ 2",
        "by rule mode",
        "change('a', 'on') @ 2  (input one)",
    ]


def test_why_not_says_that_a_fact_still_holds() -> None:
    text = changes().why_not("off('a')")
    assert "no interval in which `mode('a', 'off')` holds has begun and ended" in text
