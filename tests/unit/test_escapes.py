"""What data may do to a terminal, a page or a picture: nothing. Controls and marks of direction are shown as text."""

from __future__ import annotations

import io
import json
import sys
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

import augury
from augury import sinks
from augury.core.errors import DataError, Diagnostic, RunError, Source, Span, visible
from augury.core.model import Iri, Term, show_value
from augury.notation import read_atom
from tests.support.commands import run

CONTROLS = [chr(n) for n in (*range(0x20), *range(0x7F, 0xA0)) if chr(n) not in "\t\n"]
TURNS = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
DIRECTIONS = [c for c in map(chr, range(sys.maxunicode)) if unicodedata.bidirectional(c) in TURNS]
OTHERS = ["\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\ufeff", "\ufffe", "\uffff"]
HARMFUL = [*CONTROLS, *DIRECTIONS, *OTHERS]
NASTY = "a\x1b[31mb\x9b2Jc\u202ed\x00e\rf\x07g\u2066h\x7fi"
PROGRAM = "event e(x: string, y: any). static s(x: string).\nr(X, Y) <- e(X, Y).\nt(X) <- e(X, Y) WHERE s(X).\n"


def harmless(text: str) -> bool:
    return not any(c in text for c in HARMFUL)


def test_control_characters_are_escaped() -> None:
    assert len(DIRECTIONS) == 9
    for c in HARMFUL:
        assert visible(f"a{c}b") == f"a\\u{ord(c):04x}b"
        assert json.loads(f'"{visible(c)}"') == c
    for text in ("plain", "Zürich, 東京", "line\n\ttab", "👩‍🚀", "می‌خواهم", "עברית"):
        assert visible(text) == text


@pytest.mark.parametrize("c", [*HARMFUL, "\n", "\t", "'", "\\", "\\u0041"])
def test_a_value_is_written_as_the_language_reads_it(c: str) -> None:
    shown = show_value(f"x{c}y")
    assert harmless(shown)
    assert read_atom(f"e({shown})") == ("e", (f"x{c}y",))


def test_values_of_all_kinds_are_shown_as_text() -> None:
    for value in (NASTY, Iri(NASTY), Term(NASTY, (NASTY,)), (NASTY, (NASTY,))):
        assert harmless(show_value(value))


def test_the_language_reads_characters_by_their_numbers() -> None:
    program = augury.compile(r"""r('\u00e9\u202E', "\u000a", '\ud83d', '\u12', '\\u0041') <- e(_).""")
    [event] = augury.run(program, [augury.Event("e", (1,), 1)])
    assert event.args == ("é\u202e", "\n", "ud83d", "u12", "\\u0041")


def test_errors_escape_control_characters() -> None:
    assert harmless(str(DataError(NASTY, NASTY, NASTY)))
    assert harmless(str(RunError(NASTY, NASTY)))
    assert harmless(Diagnostic("E101", NASTY, Span(Source(NASTY, NASTY), 0, 1), hint=NASTY).render())


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("format", ["table", "jsonl", "csv"])
def test_answers_on_a_screen(format: sinks.Format) -> None:
    events = [augury.Event("e", (c, (c,)), 1, id=f"id{c}") for c in [*HARMFUL, NASTY, "a\nb"]]
    result = augury.run(augury.compile(PROGRAM), events)
    screen = Screen()
    sinks.write(result, format, "-", screen, width=80 if format == "table" else None)
    shown = screen.getvalue()
    assert harmless(shown)
    if format == "table":
        assert shown.count("\n") >= len(events) + 1
    if format == "jsonl":
        assert [json.loads(line)["args"][0] for line in shown.splitlines()] == [e.args[0] for e in result]


def test_a_table_is_text_wherever_it_goes() -> None:
    events = [augury.Event("e", (NASTY, Iri(NASTY)), 1, id=NASTY), augury.Event("e", ("x", "y"), 1, id="two\nlines")]
    shown = sinks.show_table(augury.run(augury.compile(PROGRAM), events))
    assert harmless(shown)
    assert shown.count("\n") == 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.aug").write_text(PROGRAM)
    lines = [
        {"type": "e", "x": NASTY, "y": NASTY, "time": 1, "id": NASTY},
        {"type": "e", "x": 5, "y": NASTY, "time": 1},
        {"type": "e", "x": NASTY, "y": 1, "time": NASTY},
        {"type": NASTY, "x": NASTY, "time": 2},
        {"type": "e", "x": NASTY, NASTY: 1, "time": 2},
        {"op": NASTY, "type": "e", "x": "a", "y": "b", "time": 2},
        {"type": "e", "x": "x", "y": "other", "time": 3, "id": NASTY},
    ]
    (tmp_path / "e\x1b[1m\u202e.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    (tmp_path / "facts.csv").write_text(f"x\n{NASTY.replace(chr(13), '')}\n")
    return tmp_path


COMMANDS = [
    ["run", "p.aug", "--format", "table", "--on-error", "skip"],
    ["run", "p.aug", "--format", "table"],
    ["run", "p.aug", "--format", "table", "--on-error", "skip", "--changes", "--lateness", "0s", "--goals"],
    ["run", "p.aug", "--format", "table", "--on-error", "skip", "--strict"],
    ["why", "p.aug", "--event", "r", "--on-error", "skip"],
    ["why", "p.aug", "--event", "r", "--on-error", "skip", "--format", "json"],
    ["why", "p.aug", "--event", "r", "--on-error", "skip", "--format", "mermaid"],
    ["why", "p.aug", "--event", "t('nobody')", "--on-error", "skip", "--facts", "s=facts.csv"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_escape_control_characters(command: list[str], folder: Path) -> None:
    events = next(folder.glob("e*.jsonl")).name
    done = run([*command, "--events", events], folder)
    assert "Traceback" not in done.err
    assert harmless(done.out), done.out
    assert harmless(done.err), done.err
    assert "\\u001b" in done.out + done.err


@pytest.mark.parametrize("command", [["check", "p\x1b.aug"], ["explain", "p\x1b.aug"], ["run", "p\x1b.aug", "--events", "no\x1b.csv"]])  # fmt: skip
def test_file_names_are_escaped(command: list[str], folder: Path) -> None:
    (folder / "p\x1b.aug").write_text(PROGRAM if command[0] == "run" else "r(X <- e(X).\n")
    done = run(command, folder)
    assert done.code == 1
    assert harmless(done.err)
    assert "\\u001b" in done.err


def test_json_lines_are_data_where_nobody_looks(folder: Path) -> None:
    events = next(folder.glob("e*.jsonl")).name
    done = run(["run", "p.aug", "--events", events, "--on-error", "skip", "--format", "jsonl"], folder)
    assert json.loads(done.out.splitlines()[0])["args"] == [NASTY, NASTY]
    assert "\u202e" in done.out


def test_pictures_are_valid_xml(folder: Path) -> None:
    events = [
        augury.Event("e", (c, f"{c}]]>&<'\""), n, id=f"id{c}") for n, c in enumerate([*HARMFUL, NASTY, "$\\frac"])
    ]
    result = augury.run(augury.compile(PROGRAM), events)
    picture = result.timeline(title=NASTY)
    for svg in (picture.svg, picture._repr_html_(), result.timeline(select=[]).svg):
        ElementTree.fromstring(svg)
        assert harmless(svg)
    assert harmless(picture.html)
    HTMLParser().feed(picture.html)
    assert harmless(result._repr_html_())
    assert harmless(result.why(result.events[0])._repr_html_())


def test_maps_are_valid_xml() -> None:
    program = augury.compile("event e(x: string, lat: float, lon: float).\nr(X, A, B) <- e(X, A, B).")
    places = {NASTY: (1.0, 2.0), "$\\frac{": (1.5, 2.5)}
    events = [augury.Event("e", (name, 1.0, 2.0), n) for n, name in enumerate(places)]
    picture = augury.run(program, events).map(places, title=NASTY)
    ElementTree.fromstring(picture.svg)
    assert harmless(picture.svg)
