"""`augury profile`, `augury diff` and `augury case` as their users run them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

import augury
from augury.explain.sessions import held_events
from augury.testing import read_spec
from augury.tools.version_diff import compare_versions, explained_difference, spans_around
from tests.support.commands import run

RULES = """\
output alarm, hot.
hot(S) <- heat(S, T) WHERE T > 40.
rule smoke_and_heat: alarm(S) <- (smoke(S) SEQ hot(S)).10s.
rule both: alarm(S) <- (smoke(S) SEQ hot(S)).10s WHERE near(S, _).
"""
EVENTS = "type,s,t,time,id\nsmoke,a,,1,s1\nheat,a,50,4,h1\nheat,b,30,5,h2\nsmoke,c,,6,s2\nheat,c,41,9,h3\n"
DECLARED = "event smoke(s: string).\nevent heat(s: string, t: int).\nstatic near(s: string, x: string).\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "old.aug").write_text(DECLARED + RULES)
    (tmp_path / "events.csv").write_text(EVENTS)
    (tmp_path / "near.csv").write_text("s,x\na,y\nz,z\n")
    return tmp_path


INPUT = ("--events", "events.csv", "--facts", "near=near.csv")


def test_profile_adds_up_and_says_what_is_shared(folder: Path) -> None:
    done = run(["profile", "old.aug", *INPUT, "--json", "--flame", "flame.svg"], folder)
    assert done.code == 0, done.err
    costs = json.loads(done.out)
    rules = {rule["rule"]: rule for rule in costs["rules"]}
    assert {name: rule["answers"] for name, rule in rules.items()} == {"hot": 2, "smoke_and_heat": 2, "both": 1}
    assert sum(rule["seconds"] for rule in costs["rules"]) == pytest.approx(costs["seconds"], abs=1e-3)
    assert costs["events"] == 5 and costs["hints"] == []
    svg = ElementTree.parse(folder / "flame.svg").getroot()
    assert svg.tag.endswith("svg") and "smoke_and_heat" in (folder / "flame.svg").read_text()
    text = run(["run", "old.aug", *INPUT, "--profile", "--format", "csv"], folder)
    assert "operators, the dearest first" in text.err and "operators" not in text.out


def test_profile_says_what_rules_share() -> None:
    session = augury.compile("x(X) <- (a(X) SEQ b(X)).5s.\ny(X) <- (a(X) SEQ b(X)).5s.").session()
    session.push([augury.Event("a", (1,), 1, 1), augury.Event("b", (1,), 2, 2)])
    costs = session.profile()
    assert {rule.rule: rule.shared for rule in costs.rules} == {"x": ("y",), "y": ("x",)}
    assert "x shares operators with y" in str(costs)


def test_profile_names_slow_shapes() -> None:
    session = augury.compile("pair(X, Y) <- a(X) AND b(Y) WHERE X + Y < 0.").session()
    session.push([augury.Event(type, (i,), i, i) for type in ("a", "b") for i in range(1, 201)])
    costs = session.profile()
    (join,) = [hint for hint in costs.hints if "without a key" in hint.problem]
    assert (
        join.rules == ("pair",)
        and costs.rules[0].shared == ()
        and "looks at" in join.problem
        and "share a variable" in join.hint
    )
    assert "slow: operator" in str(costs) and "<pre>" in costs._repr_html_()


def test_diff_explains_what_a_change_does(folder: Path) -> None:
    new = DECLARED + RULES.replace("T > 40", "T > 45").replace("SEQ hot(S)).10s.", "SEQ hot(S)).2s.")
    (folder / "new.aug").write_text(new + "rule sum: alarm(sum) <- heat(_, 30).\n")
    done = run(["diff", "old.aug", "new.aug", *INPUT, "--fail-on", "lost"], folder)
    assert done.code == 1, done.err
    lines = [line.split() for line in done.out.splitlines()]
    assert ["alarm", "2", "2", "1", "1", "0"] in lines and ["hot", "2", "1", "0", "1", "0"] in lines
    assert "lost: alarm('c') @ [6, 9]" in done.out and "gained: alarm('sum') @ 5" in done.out
    # The alarm is lost since its part is: the condition of the rule behind it is named.
    assert "failed: `T > 45`: 41 > 45 does not hold" in done.out
    assert run(["diff", "old.aug", "new.aug", *INPUT, "--fail-on", "changed"], folder).code == 0
    same = run(["diff", "old.aug", "old.aug", *INPUT, "--fail-on", "any", "--format", "json"], folder)
    assert same.code == 0 and json.loads(same.out)["lost"] == 0
    assert "both versions have the same answers" in run(["diff", "old.aug", "old.aug", *INPUT], folder).out


def test_diff_tells_another_interval(folder: Path) -> None:
    (folder / "a.aug").write_text("late(S) <- o: smoke(S), w: extend(o, 2s).")
    (folder / "b.aug").write_text("late(S) <- o: smoke(S), w: extend(o, 3s).")
    shown = json.loads(run(["diff", "a.aug", "b.aug", "--events", "events.csv", "--format", "json"], folder).out)
    assert (shown["gained"], shown["lost"], shown["changed"]) == (0, 0, 2)
    assert [shown["samples"][0][key]["end"] for key in ("before", "event")] == [3, 4]


def test_diff_reads_types_that_versions_declare_differently(folder: Path) -> None:
    (folder / "new.aug").write_text((DECLARED + RULES).replace("t: int", "t: float"))
    shown = json.loads(run(["diff", "old.aug", "new.aug", *INPUT, "--format", "json"], folder).out)
    assert (shown["gained"], shown["lost"]) == (0, 0)


def test_diff_of_git_revisions_and_folders(folder: Path) -> None:
    rules = folder / "rules"
    rules.mkdir()
    (rules / "hot.aug").write_text("hot(S) <- heat(S, T) WHERE T > limit.\n".replace("limit", "40"))
    (rules / "main.aug").write_text('include "hot.aug".\nalarm(S) <- hot(S).\n')

    def git(*args: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    (rules / "hot.aug").write_text("hot(S) <- heat(S, T) WHERE T > 20.\n")
    for old, new in (("HEAD:rules/main.aug", "rules/main.aug"), ("HEAD:rules", "rules")):
        shown = json.loads(run(["diff", old, new, "--events", "events.csv", "--format", "json"], folder).out)
        assert (shown["gained"], shown["lost"]) == (2, 0)
    below = ("--events", "../events.csv", "--format", "json")
    for old in ("HEAD:rules/main.aug", "HEAD:./main.aug", "HEAD:main.aug"):  # from the top, as git has it, or from here
        assert json.loads(run(["diff", old, "main.aug", *below], rules).out)["gained"] == 2
    done = run(["diff", "HEAD:rules/none.aug", "rules", "--events", "events.csv"], folder)
    assert done.code == 1 and "revision `HEAD` has no `rules/none.aug`" in done.err
    (rules / "hot.aug").write_text("hot(S) <- heat(S, T) WHERE T >.\n")
    git("commit", "-qam", "second")
    assert "--> HEAD:rules/hot.aug:1:30" in run(["diff", "HEAD:rules", "old.aug", "--events", "events.csv"], folder).err
    assert "give two versions" in run(["diff", "rules", "--events", "events.csv"], folder).err


QUERY = """\
PREFIX : <http://x/>
SELECT ?p WITHIN 10 SECONDS FROM STREAM S <http://x/s> WHERE {
  SEQ(A; B)
  DEFINE GPM A ON S { ?p :smoke ?v FILTER(?v > 3) }
  DEFINE GPM B ON S { ?p :heat ?t }
}
"""


def test_diff_of_queries_names_the_graph_pattern(folder: Path) -> None:
    """A query is called as its file is; where each version has one, they are compared all the same."""
    (folder / "alarm.spaseq").write_text(QUERY)
    (folder / "stricter.spaseq").write_text(QUERY.replace("?v > 3", "?v > 5"))
    (folder / "sooner.spaseq").write_text(QUERY.replace("10 SECONDS", "2 SECONDS"))
    graphs = [":a :smoke 4", ":b :smoke 9", ":a :heat 50"]
    (folder / "graphs.jsonl").write_text(
        "".join(
            json.dumps(
                {"stream": "http://x/s", "time": 3 * i, "id": f"g{i}", "graph": f"@prefix : <http://x/> . {g} ."}
            )
            + "\n"
            for i, g in enumerate(graphs)
        )
    )
    events = ("--events", "graphs.jsonl", "--clock", "logical")
    done = run(["diff", "alarm.spaseq", "stricter.spaseq", *events], folder)
    assert "alarm          1         0         0         1         0" in done.out, done.err
    assert "└─ by rule alarm" in done.out and "·" not in done.out  # what the query is lowered to is not shown
    assert "query alarm: the graph pattern A does not match" in done.out and "(input g0)" in done.out.splitlines()[-1]
    done = run(["diff", "alarm.spaseq", "sooner.spaseq", *events], folder)
    assert "their sequence, its window, or what is selected does not" in done.out
    done = run(["case", "alarm.spaseq", *events, "--event", "alarm(_)", "--output", "case.toml"], folder)
    assert done.code == 0 and "2 events of 3" in done.err, done.err
    assert run(["test", "case.toml"], folder).out.startswith("1 case: 1 passed")


def test_the_smallest_case_of_an_answer(folder: Path) -> None:
    done = run(["case", "old.aug", *INPUT, "--event", "alarm(a)", "--output", "case.toml"], folder)
    assert done.code == 0 and "2 events and 0 facts of 5 and 2" in done.err, done.err
    (case,) = read_spec(folder / "case.toml")
    assert case.events == ("s1: smoke('a') @ 1", "h1: heat('a', 50) @ 4")
    assert case.expected == ("alarm('a') @ [1, 4]", "hot('a') @ 4")
    assert run(["test", "case.toml"], folder).code == 0


def test_the_smallest_case_of_a_miss(folder: Path) -> None:
    done = run(["case", "old.aug", *INPUT, "--event", "hot(b)", "--output", "case.toml"], folder)
    assert done.code == 0, done.err
    (case,) = read_spec(folder / "case.toml")
    assert (case.events, case.expected) == (("h2: heat('b', 30) @ 5",), ())
    assert run(["test", "case.toml"], folder).code == 0


def test_explaining_what_is_missing_looks_at_what_is_near_in_time() -> None:
    """An event with an interval is looked for among what its rule can see from there, and not in all of a history."""
    session = augury.compile("alarm(S) <- (smoke(S) SEQ heat(S, T)).10s WHERE T > 40.").session()
    for time in range(0, 3000, 30):
        session.push([augury.Event("smoke", ("a",), time, time), augury.Event("heat", ("a", time), time + 5, time + 5)])
    near = session.why_not("alarm('a') @ [30, 35]")
    assert "smoke('a') @ 30" in near and "`T > 40`: 30 > 40 does not hold" in near
    assert len(held_events(session, (20, 40))) == 2 and len(held_events(session)) == 298
    unbounded = augury.compile("alarm(S) <- smoke(S) SEQ heat(S, T) WHERE T > 40.").session()
    unbounded.push([augury.Event("smoke", ("a",), 1, 1), augury.Event("heat", ("a", 30), 900, 900)])
    assert "smoke('a') @ 1" in unbounded.why_not("alarm('a') @ [1, 900]")


def test_samples_are_explained_with_the_events_around_them() -> None:
    """As diff does for answers from Spark: what lies within the horizons of the rules is all that explanations need."""
    rules = "hot(S) <- heat(S, T) WHERE T > {}. alarm(S) <- (smoke(S) SEQ hot(S)).10s."
    old, new = (augury.compile(rules.format(limit)) for limit in (40, 50))
    history = [
        event
        for time in range(0, 600, 60)
        for event in (
            augury.Event("smoke", ("a",), time, time),
            augury.Event("heat", ("a", 35 + time // 60), time + 5, time + 5),
        )
    ]
    sessions = [program.session() for program in (old, new)]
    for session in sessions:
        session.push(history)
    answers = [session.events() for session in sessions]
    named = compare_versions(answers[0], answers[1], sessions[0].clock, ("alarm",), most=1)
    assert [(s.kind, s.why) for s in named.samples] == [("lost", "")] and named.count("lost") == 4
    [(first, last)] = spans_around(named, (old, new))
    near = [program.session() for program in (old, new)]
    for session in near:
        session.push([event for event in history if first <= event.start <= last])
    [sample] = explained_difference(named, (near[0], near[1])).samples
    assert "heat('a', 41) @ 365" in sample.why and "`T > 50`: 41 > 50 does not hold" in sample.why_not
    assert explained_difference(named, (near[0], near[0])).samples == named.samples  # they do not lead to the same
    with pytest.raises(augury.RunError, match="rule `alarm` looks back without a bound"):
        spans_around(named, (old, augury.compile("alarm(S) <- smoke(S) SEQ heat(S, T).")))
