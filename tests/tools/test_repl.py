"""`augury repl` over a pipe, in a pseudo-terminal, and `%%augury` in a notebook."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import augury
from augury.core.errors import AuguryError
from augury.tools.conversation import Conversation, Finished, inputs, is_complete
from tests.support.commands import run

RULES = "near('creek', 's1').\nalarm(P) <- (reported(P) AND wind(S, V)).2h\n    WHERE near(P, S), V > 20.\n"


def test_rules_events_and_questions(tmp_path: Path) -> None:
    conversation = Conversation()
    answers = [conversation.answer(text) for text in inputs(RULES.splitlines())]
    assert answers == ["", ""]
    assert conversation.answer("r: reported('creek') @ '2026-07-01 12:00'") == ""
    assert conversation.answer("goals").startswith("alarm: 50% [reported('creek')")
    alarm = "alarm('creek') @ ['2026-07-01T12:00:00Z', '2026-07-01T12:05:00Z']"
    assert conversation.answer("w: wind('s1', 25) @ '2026-07-01 12:05'") == f"+ {alarm}"
    assert conversation.answer("?- near(X, Y).") == "X = 'creek', Y = 's1'"
    assert (
        conversation.answer("?- near('lake', 's1')") == "no" and conversation.answer("?- near('creek', 's1')") == "yes"
    )
    assert conversation.answer("?- alarm(_)") == alarm
    assert "near('creek', 's1')" in conversation.answer("why alarm('creek')")
    assert "reported('lake')" in conversation.answer("why not alarm('lake')")
    assert conversation.answer("strong(S) <- wind(S, V) WHERE V > 24.") == "+ strong('s1') @ '2026-07-01T12:05:00Z'"
    assert conversation.answer("events").splitlines()[0] == "r: reported('creek') @ '2026-07-01T12:00:00Z'"
    assert conversation.answer("revoke w").splitlines() == [f"- {alarm}", "- strong('s1') @ '2026-07-01T12:05:00Z'"]
    assert "runs as" in conversation.answer("explain") and "alarm" in conversation.answer("profile")
    case = tmp_path / "creek_cases.toml"
    assert "wrote" in conversation.answer(f":save {case}")
    assert run(["test", str(case)], tmp_path).code == 0
    assert "expected" in case.read_text() and conversation.answer(":clear") == "nothing is left"
    with pytest.raises(Finished):
        conversation.answer("quit")


def test_files_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "a.aug").write_text("hot(S) <- heat(S, T) WHERE T > 40.\n")
    (tmp_path / "heat.csv").write_text("type,s,t,time\nheat,l1,50,3\nheat,l2,30,4\n")
    conversation = Conversation()
    conversation.answer(f":load {tmp_path / 'a.aug'}")
    assert conversation.answer(f":load {tmp_path / 'heat.csv'}").splitlines() == ["2 events", "+ hot('l1') @ 3"]
    with pytest.raises(AuguryError, match="no such file"):
        conversation.answer(":load nothing.aug")


def test_input_goes_on_until_it_is_whole() -> None:
    assert (
        not is_complete("a(X) <-")
        and is_complete("a(X) <-\n b(X).")
        and is_complete("b(1) @ 3")
        and is_complete("goals")
    )
    assert not is_complete("?- near(X,") and is_complete("?- near(X, Y)") and not is_complete("goals(X) <- b(X)")
    assert list(inputs(["% note", "a(X) <-", "  b(X).", "b(1) @ 3", "evnts", "?- a(X)"])) == [
        "a(X) <-\n  b(X).", "b(1) @ 3", "evnts", "?- a(X)",
    ]  # fmt: skip


def test_over_a_pipe(tmp_path: Path) -> None:
    done = run(["repl"], tmp_path, stdin="a(X) <- b(X).\nb(1) @ 3\nevnts\nc(X) <- b(Y).\n?- a(X)\n")
    assert done.out.splitlines() == ["+ a(1) @ 3", "a(1) @ 3"] and done.code == 1
    assert "did you mean `events`?" in done.err and "`X` is not bound" in done.err and "^" in done.err


def test_in_a_terminal(tmp_path: Path) -> None:
    """Keys go in as a user types them: a rule of two lines, an event, and goodbye."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "XDG_STATE_HOME": str(tmp_path), "PROMPT_TOOLKIT_NO_CPR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "augury", "repl"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        close_fds=True,
    )
    os.close(slave)
    shown = ""

    def expect(wanted: str) -> None:
        nonlocal shown
        until = time.monotonic() + 500
        while wanted not in plain(shown):
            assert time.monotonic() < until and process.poll() is None, plain(shown)
            if select.select([master], [], [], 0.2)[0]:
                shown += os.read(master, 65536).decode(errors="replace")

    def send(keys: str) -> None:
        os.write(master, keys.encode())

    try:
        expect("aug>")
        send("alarm(L) <-\r")
        expect("...")
        send("smoke(L).\r")
        expect("smoke(L).")
        send("smoke('l1') @ 3\r")
        expect("+ alarm('l1') @ 3")
        send("quit\r")
        process.wait(500)
    finally:
        process.kill()
        os.close(master)
    assert process.returncode == 0
    assert "alarm(L) <-" in (tmp_path / "augury" / "repl_history").read_text()


def plain(text: str) -> str:
    """What a terminal shows, without its controls."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]", "", text)


def test_cells_of_notebooks(capsys: pytest.CaptureFixture[str]) -> None:
    shells = pytest.importorskip("IPython.core.interactiveshell")
    shell: Any = shells.InteractiveShell()
    augury.load_ipython_extension(shell)
    shell.user_ns["smokes"] = [{"type": "smoke", "args": [place], "time": 3} for place in ("l1", "l2")]
    shell.user_ns["places"] = [("l1",)]
    line = "--events smokes --facts indoors=places --into result --clock logical"
    result = shell.run_cell_magic("augury", line, "alarm(L) <- smoke(L) WHERE indoors(L).")
    assert [event.args for event in result] == [("l1",)] and shell.user_ns["result"] is result
    page = result._repr_html_()
    assert "<table" in page and "<svg" in page
    assert isinstance(shell.run_cell_magic("augury", "", "alarm(L) <- smoke(L)."), augury.Program)
    assert shell.run_cell_magic("augury", "", "alarm(X) <- smoke(L).") is None
    assert "`X` is not bound" in capsys.readouterr().out
    assert shell.run_cell_magic("augury", "--evnts x", "a(L) <- b(L).") is None
