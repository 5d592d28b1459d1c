"""The documentation is true: its programs compile, its examples give the answers it prints, its pictures line up.

A fenced block is known by its tag; a second word names a file that the block is written to.

    aug                     a program; it compiles, and is the program of the examples that follow
    spaseq                  a query, called `q`, of the examples that follow; rules after it go with it
    rdf                     the static dataset of the next example, as TriG
    events                  one event a line; `% key: value` at the top is a setting of the case (clock, until, …)
    facts NAME              facts of a static predicate as JSON lines, for the next example
    timeline                a picture of the events and the answer, checked column by column
    answer, changes         all that is detected; what is said when the events are told one by one
    python, output          run in order, in one namespace a page; what the block before prints
    console                 `$ command` lines and what they print
    refused CODE            a program that draws this diagnostic

Any other tag, such as `text` or `py`, is left alone. Pages that start Spark are skipped without Java.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import augury
from augury.algebra.aggregates import AGGREGATES
from augury.algebra.scalar import FUNCTIONS
from augury.language.codes import CODES
from augury.testing import Case

try:
    from tests.support.spark_session import SPARK, session
except pytest.skip.Exception as missing:
    SPARK = [pytest.mark.skip(reason=str(missing))]

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
# Pages that need a server, by the name of its fixture and its usual port: tests/connectors/test_pages.py runs them.
SERVED: dict[str, tuple[str | None, int]] = {
    "connectors/http.md": (None, 8099),
    "connectors/kafka.md": ("kafka", 9092),
    "connectors/mqtt.md": ("mosquitto", 1883),
    "connectors/nats.md": ("nats", 4222),
    "connectors/postgres.md": ("postgres", 5432),
    "connectors/redis.md": ("redis", 6379),
}
_FENCE = re.compile(r"```(\w+)(?: +(\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block, with the heading that it stands under."""

    page: str
    line: int
    heading: str
    tag: str
    name: str
    text: str

    @property
    def lines(self) -> list[str]:
        """What is in it, without empty lines and comments."""
        return [s for line in self.text.splitlines() if (s := line.strip()) and not s.startswith("%")]

    @property
    def id(self) -> str:
        return f"{self.page}:{self.line} {self.heading}"


@dataclass
class Example:
    """A program, its events and what they give."""

    events: Block
    program: str
    query: str = ""
    rdf: str = ""
    facts: dict[str, list[Any]] = field(default_factory=dict)
    timeline: Block | None = None
    answer: Block | None = None
    changes: Block | None = None

    @property
    def settings(self) -> dict[str, Any]:
        found: dict[str, Any] = dict(re.findall(r"^% (\w+): (.+)$", self.events.text, re.MULTILINE))
        if self.changes is not None:
            found["changes"] = self.changes.lines
        found |= {"query": self.query} if self.query else {}
        found |= {"rdf": self.rdf} if self.rdf else {}
        return {**found, "facts": self.facts}


def blocks(page: str) -> Iterator[Block]:
    text = (DOCS / page).read_text(encoding="utf-8")
    headings = [(m.start(), m[1]) for m in _HEADING.finditer(text)]
    for found in _FENCE.finditer(text):
        heading = next((title for at, title in reversed(headings) if at < found.start()), page)
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, heading, found[1], found[2] or "", found[3])


def examples(page: str) -> Iterator[Example]:
    program, query, rdf, facts, current = "", "", "", {}, None
    for block in blocks(page):
        match block.tag:
            case "aug" if not block.name:
                program, query = block.text, query if block.page == "spaseq.md" and "GRAPH" not in block.text else ""
            case "spaseq":
                program, query = "", block.text
            case "rdf":
                rdf = block.text
            case "facts":
                facts[block.name] = [json.loads(line) for line in block.lines]
            case "events":
                if current is not None:
                    yield current
                current, facts, rdf = Example(block, program, query, rdf, facts), {}, ""
            case "timeline" | "answer" | "changes":
                assert current is not None, f"{block.id}: no events before it"
                setattr(current, block.tag, block)
    if current is not None:
        yield current


def write_files(page: str, folder: Path) -> None:
    """The files that a page names."""
    for block in blocks(page):
        if block.name and block.tag not in ("facts", "refused"):
            (folder / block.name).write_text(block.text, encoding="utf-8")


def starts_spark(page: str) -> bool:
    """Whether a page imports PySpark, or runs a command that does: `augury run` over a few events does not."""
    return any(
        (b.tag == "console" and re.search(r"^\$ augury (stream|.*--engine spark)", b.text, re.MULTILINE))
        or (b.tag == "python" and "import augury.spark" in b.text)
        for b in blocks(page)
    )


CHAPTERS = [
    (page, number, line.removeprefix("## ").removeprefix("# "))
    for page in PAGES
    for number, line in enumerate((DOCS / page).read_text(encoding="utf-8").splitlines(), 1)
    if line.startswith(("# ", "## "))
]
BLOCKS = [block for page in PAGES for block in blocks(page)]
EXAMPLES = [example for page in PAGES for example in examples(page)]


@pytest.mark.parametrize("block", [pytest.param(b, id=b.id) for b in BLOCKS if b.tag == "aug"])
def test_program_compiles(block: Block, tmp_path: Path) -> None:
    write_files(block.page, tmp_path)
    names = {name for example in examples(block.page) for name in example.facts}
    augury.compile(block.text, name=str(tmp_path / "program.aug"), facts=names)


@pytest.mark.parametrize("block", [pytest.param(b, id=b.id) for b in BLOCKS if b.tag == "spaseq"])
def test_query_compiles(block: Block) -> None:
    augury.compile(block.text, language="spaseq")


@pytest.mark.parametrize("block", [pytest.param(b, id=b.id) for b in BLOCKS if b.tag == "refused"])
def test_program_is_refused(block: Block) -> None:
    language = "spaseq" if "DEFINE GPM" in block.text else "rules"
    try:
        found = augury.compile(block.text, language=language).warnings
    except augury.ProgramError as error:
        found = error.diagnostics
    assert block.name in {d.code for d in found}


@pytest.mark.parametrize("example", [pytest.param(e, id=e.events.id) for e in EXAMPLES])
def test_example(example: Example, tmp_path: Path) -> None:
    write_files(example.events.page, tmp_path)
    answer = None if example.answer is None else tuple(example.answer.lines)
    assert answer is not None or example.changes is not None, "events without an answer"
    Case(
        example.events.heading,
        example.program,
        tuple(example.events.lines),
        answer,
        example.settings,
        str(tmp_path / "program.aug"),
    ).check(engine="embedded")


@pytest.mark.parametrize("example", [pytest.param(e, id=e.events.id) for e in EXAMPLES if e.timeline])
def test_timeline(example: Example) -> None:
    assert example.timeline is not None and example.answer is not None
    events: set[str] = set()
    answer: set[str] = set()
    for label, first, last, mark in drawn(example.timeline):
        (answer if mark in "=#" else events).add(f"{label} @ {first if first == last else f'[{first}, {last}]'}")
    assert events == {re.sub(r"^\w+: (?=\w)", "", line) for line in example.events.lines}
    assert answer == set(example.answer.lines)


def drawn(picture: Block) -> Iterator[tuple[str, int, int, str]]:
    """The rows of a timeline: what, from, to and how it is drawn. A label in parentheses is only a remark."""
    header, *rows = picture.text.splitlines()
    ticks = {m.start(): int(m[0]) for m in re.finditer(r"\d+", header)}
    margin = min(ticks)
    for row in rows:
        label, marks = row[:margin].strip(), row[margin:]
        at = [i for i, char in enumerate(marks, margin) if char != " "]
        assert at[0] in ticks and at[-1] in ticks, f"{picture.id}: between two ticks: {row}"
        assert at == list(range(at[0], at[-1] + 1)), f"{picture.id}: a gap: {row}"
        shape = re.fullmatch(r"[*#]|\|([-=.])\1*\|", marks.strip())
        assert shape, f"{picture.id}: not a mark: {row}"
        if not label.startswith("("):
            yield label, ticks[at[0]], ticks[at[-1]], shape[1] or shape[0]


def table(page: str, heading: str) -> list[str]:
    """The first column of the tables below a heading, without the titles and the backquotes."""
    text = (DOCS / page).read_text(encoding="utf-8")
    part = text.split(f"\n{heading}\n", 1)[1]
    part = re.split(f"^#{{1,{heading.index(' ')}}} ", part, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^\| `([^`]+)` \|", part, re.MULTILINE)


def test_every_function_is_listed_once() -> None:
    assert sorted(table("language.md", "### Functions")) == sorted(FUNCTIONS)


def test_every_aggregate_is_listed_once() -> None:
    assert sorted(table("language.md", "### Aggregates")) == sorted(AGGREGATES)


def test_every_code_is_listed_once() -> None:
    assert table("errors.md", "## All codes") == list(CODES)


def test_the_codes_that_are_mentioned_exist() -> None:
    for page in PAGES:
        mentioned = set(re.findall(r"\b[EW]\d{3}\b", (DOCS / page).read_text(encoding="utf-8")))
        assert mentioned <= set(CODES)


@pytest.mark.parametrize("page", PAGES)
def test_links_have_targets(page: str) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", (DOCS / page).read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        path = path or Path(page).name
        assert (DOCS / page).parent.joinpath(path).exists(), target
        if not anchor:
            continue
        text = (DOCS / page).parent.joinpath(path).read_text(encoding="utf-8")
        anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in _HEADING.findall(text)}
        assert anchor in anchors, target


# Pages of which just the end needs Spark: the rest of them is run without it as well.
SPARK_AT_THE_END = ["tutorial.md"]
_WHOLE = [
    pytest.param(p, marks=SPARK if starts_spark(p) and p not in SPARK_AT_THE_END else ())
    for p in PAGES
    if p not in SERVED
]


@pytest.mark.parametrize("page", _WHOLE)
def test_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python blocks and commands, from top to bottom."""
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path, spark=page not in SPARK_AT_THE_END)


@pytest.mark.parametrize("page", [pytest.param(page, marks=SPARK) for page in SPARK_AT_THE_END])
def test_page_runs_on_spark(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path, spark=True)


def run_page(page: str, folder: Path, spark: bool, port: tuple[str, str] = ("", "")) -> None:
    """Runs a page; without Spark, up to where it begins. A usual port becomes another one."""
    write_files(page, folder)
    if spark and any("import augury.spark" in block.text for block in blocks(page)):
        session()  # with the settings of all tests; what a page asks for is added to them
    namespace: dict[str, Any] = {}
    printed = ""
    for block in blocks(page):
        if not spark and "import augury.spark" in block.text:
            break
        match block.tag:
            case "python" if not block.name:
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile(block.text.replace(*port), block.id, "exec"), namespace)
                printed = out.getvalue()
            case "output":
                assert plain(printed) == plain(block.text), block.id
            case "console":
                for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
                    assert shell(command) == expected.rstrip(), f"{block.id}: {command}"


def plain(text: str) -> str:
    """What is printed, without spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


def shell(command: str) -> str:
    """What a command prints, standard error included, but for what a stream says of its progress every ten seconds."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PATH": path},
        check=False,
    )
    if command.startswith("augury stream"):
        return plain("".join(re.findall(r"^(?!starting Spark|reading ).*\n", done.stdout, re.MULTILINE)))
    return plain(done.stdout)
