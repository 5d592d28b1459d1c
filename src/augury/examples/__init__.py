"""Complete applications, one a folder: a program, knowledge, data or what makes it, and a README.

`augury demo` lists them and runs one. All are made of files, as a user would have them: `Example.prepare` writes them into a
folder, where `augury run` and `augury stream` take them from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from augury.core.clock import Clock
from augury.core.model import Event, Iri

EXAMPLES = (
    "wildfire", "blizzard", "flower_delivery", "brokerage", "web_shop", "supply_chain", "smart_grid", "card_fraud", "stocks", "traffic",
    "trajectories", "earthquakes", "seattle_weather",
)  # fmt: skip
EventObject: TypeAlias = dict[str, Any]  # an event as JSON
DATA = (".aug", ".spaseq", ".csv", ".ttl", ".trig", ".md")


@dataclass(frozen=True)
class ExampleTable:
    """Something to read: a title, names of columns, and rows."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class ExampleResult:
    """What an example has detected, in the order of events, and where its files are."""

    events: Sequence[Event]
    clock: Clock
    folder: Path

    def of(self, type: str) -> list[Event]:
        return [event for event in self.events if event.type == type]

    def time(self, time: int) -> str:
        return show_time(self.clock, time)


@dataclass(frozen=True)
class Example:
    """An application.

    `write(folder, size)` makes its data and says how many events there are; `sizes` are those of the demonstration and of
    the tests. Events, facts and graphs are named as on the command line, by files of its folder.

    `lateness` is how late events come; `streams` is whether `--stream` shows it event by event. `revises` are the
    outputs whose later retractions are shown. `lanes` are outputs that are drawn on a line of time, one for each
    first argument. `explains` is one whose first event is explained. `tables` makes the tables that are shown;
    without it there is one for each output. `pictured` are the types of the picture, without it the outputs; it is
    a map where `places` gives longitudes and latitudes by name, else a timeline.
    """

    name: str
    about: str
    program: tuple[str, ...]
    write: Callable[[Path, int], int]
    sizes: tuple[int, int]
    events: tuple[str, ...] = ("events.jsonl",)
    facts: tuple[str, ...] = ()
    rdf: tuple[str, ...] = ()
    until: str | None = None
    lateness: str = "0s"
    streams: bool = True
    revises: tuple[str, ...] = ()
    lanes: tuple[str, ...] = ()
    explains: str = ""
    tables: Callable[[ExampleResult], list[ExampleTable]] | None = None
    pictured: tuple[str, ...] = ()
    places: Callable[[], dict[str, tuple[float, float]]] | None = None

    @property
    def sentence(self) -> str:
        """What it is about, as the title of a picture."""
        return f"{self.about[0].upper()}{self.about[1:]}"

    @property
    def extra(self) -> str:
        """The extra of Augury that it needs: RDF files, and queries over graph streams, need a parser of RDF."""
        return "rdf" if self.rdf or any(name.endswith(".spaseq") for name in self.program) else ""

    @property
    def missing(self) -> str:
        """The extra that it needs and that is not installed."""
        there = all(find_spec(module) is not None for module in ("pyoxigraph", "rdflib"))
        return "" if there else self.extra

    def prepare(self, folder: Path, size: int | None = None) -> int:
        """Writes all files of the example into a folder, and says how many events there are."""
        folder.mkdir(parents=True, exist_ok=True)
        with as_file(files("augury.examples").joinpath(self.name)) as here:
            for path in sorted(here.iterdir()):
                if path.suffix in DATA:
                    (folder / path.name).write_bytes(path.read_bytes())
        return self.write(folder, self.sizes[0] if size is None else size)

    def located(self, sources: Iterable[str], folder: Path | None) -> list[str]:
        """Files by name, as they are written on the command line: in a folder, or in the current one."""
        parts = [source.rpartition("=") for source in sources]
        return [f"{type}{equals}{path if folder is None else folder / path}" for type, equals, path in parts]

    def options(self, folder: Path | None = None) -> list[str]:
        """What stands on the command line of `augury run` and `augury stream`."""
        result = self.located(self.program, folder)
        for option, sources in (("--events", self.events), ("--facts", self.facts), ("--rdf", self.rdf)):
            result += [word for source in self.located(sources, folder) for word in (option, source)]
        return result


def load(name: str) -> Example:
    """An example by its name."""
    result: Example = import_module(f"augury.examples.{name}").EXAMPLE
    return result


def graph_event(stream: str, time: datetime, id: str, graph: str) -> EventObject:
    return {"stream": stream, "time": time.isoformat(" "), "id": id, "graph": graph}


def lines_of(events: Callable[[int], Iterable[Mapping[str, object]]]) -> Callable[[Path, int], int]:
    """Writes the events of a size as JSON lines, in the order in which they come, and says how many there are."""

    def write(folder: Path, size: int) -> int:
        lines = [json.dumps(event, ensure_ascii=False) + "\n" for event in events(size)]
        (folder / "events.jsonl").write_text("".join(lines), encoding="utf-8")
        return len(lines)

    return write


def show_time(clock: Clock, time: int) -> str:
    """A time to read: without seconds where there are none, and without a zone, which is UTC.

    A window by the clock ends a microsecond before the next one begins, and is shown to end there.
    """
    text = str(clock.show(time + (time % 1_000_000 == 999_999))).removesuffix("Z").replace("T", " ")
    return text.removesuffix(":00") if clock.kind == "timestamp" else text


def show_argument(value: object) -> str:
    """An argument to read: text without quotes, the last part of an IRI, a number without its last digits."""
    if isinstance(value, Iri):
        return value.text.rpartition("#")[2].rpartition("/")[2]
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, tuple):
        return ", ".join(map(show_argument, value))
    return "" if value is None else str(value)
