"""`augury bench`: runs benchmarks by name, prints a table a figure, and writes JSON and charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from rich.console import Console

from augury.terminal import say, working
from bench import (
    charts,
    compare,
    extras,
    files,
    fraud,
    graph_events,
    history_files,
    knowledge,
    linear_road,
    nexmark,
    paper_b,
    paper_e,
    paper_r,
    paper_v,
    papers,
    payments,
    shapes,
    spaseq,
    state_bytes,
    threads,
)
from bench.measure import Settings
from bench.report import as_json, table
from bench.rows import Row

Experiment: TypeAlias = Callable[[Settings], Iterator[Row]]

GROUPS: Mapping[str, Mapping[str, Experiment]] = {
    "P": compare.EXPERIMENTS,
    "E": paper_e.EXPERIMENTS,
    "R": paper_r.EXPERIMENTS,
    "V": paper_v.EXPERIMENTS,
    "B": paper_b.EXPERIMENTS,
    "knowledge": knowledge.EXPERIMENTS,
    "clock": payments.EXPERIMENTS,
    "graphs": graph_events.EXPERIMENTS,
    "spaseq": {**spaseq.EXPERIMENTS, **fraud.EXPERIMENTS},
    "nexmark": nexmark.EXPERIMENTS,
    "linearroad": linear_road.EXPERIMENTS,
    "files": files.EXPERIMENTS,
    "shapes": shapes.EXPERIMENTS,
    "extras": extras.EXPERIMENTS | state_bytes.EXPERIMENTS | threads.EXPERIMENTS,
}
LONG = extras.LONG | files.LONG
ALL: Mapping[str, Experiment] = {name: run for group in GROUPS.values() for name, run in group.items()} | LONG

TITLES = {
    "P": "P1 to P8: Augury beside a loop and a query over the whole table",
    "R3a": "R figure 3a: SEQ by size of the stream and of the pattern",
    "R3b": "R figure 3b: SEQ with a selection",
    "R3c": "R figure 3c: SEQ with all selected, by size of the stream",
    "R4a": "R figure 4a: negation",
    "R4b": "R figure 4b: negation, by size of the stream",
    "R4c": "R figure 4c: conjunction, by size of the stream",
    "R5a": "R figure 5a: disjunction, by size of the stream",
    "R5b": "R figure 5b: transitive closure",
    "R5c": "R figure 5c: plan sharing",
    "V3a": "V figure 3a: reasoning over a chain of companies",
    "V3b": "V figure 3b: ready for revision or not",
    "V3c": "V figure 3c: negation and revision",
    "V4": "V figure 4: taking back a chain of derived events",
    "V5": "V figure 5: prices of shares with corrections",
    "chains": "V figure 3a: complex events with a chain of companies behind each",
    "reach": "Which nodes of a graph reach which",
    "rdfs": "A million triples with what RDFS entails",
    "background": "A detection, by how much is known beside what it needs",
    "enrich": "Events joined with a table of a million rows",
    "near": "Stations within 50 km of events",
    "state": "State that events make and end, one change after the other",
    "windows": "Windows by the clock, rankings, doubles: payments of 10,000 shops over a month",
    **paper_e.TITLES,
    **paper_b.TITLES,
    **graph_events.TITLES,
    **spaseq.TITLES,
    **fraud.TITLES,
    **nexmark.TITLES,
    **linear_road.TITLES,
    **files.TITLES,
    **shapes.TITLES,
    "latency": "P1, one event at a time",
    "batches": "P1, by the number of events pushed at once",
    "answers": "P1, answers counted and looked at",
    "memory": "P1, resident memory over time",
    "bytes": "Bytes of state for each event where nothing is forgotten, up to 100,000 events",
    "snapshot": "Saving and restoring a session",
    "start": "A new process",
    "threads": "A whole history in several threads, by the clock",
}


def chosen(names: Sequence[str]) -> list[str]:
    """The benchmarks that are meant: a name, or a group; all but the long ones where nothing is named."""
    known = {name.lower(): [name] for name in ALL} | {name.lower(): list(group) for name, group in GROUPS.items()}
    names = papers.expanded(names)
    unknown = [name for name in names if name.lower() not in known]
    if unknown:
        raise KeyError(unknown[0])
    picked = [one for name in names or GROUPS for one in known[name.lower()]]
    return list(dict.fromkeys(picked))


def run(
    names: list[str],
    events: int = 1_000_000,
    json_path: str | None = None,
    charts_dir: str | None = None,
    repeat: int = 3,
    *,
    settings: Settings | None = None,
    sessions: bool = False,
    record: bool = False,
    threads: int = 1,
) -> int:
    """Exit code 0 when every count is right, 1 when one is wrong or cannot be had, 2 for a name that is not there."""
    try:
        picked = chosen(names)
    except KeyError as error:
        say(f"error: no benchmark is called {error}; there are {', '.join([*GROUPS, *ALL])}")
        return 2
    settings = settings or Settings(events, repeat, sessions=sessions, threads=threads)
    experiments = {name: partial(watched, name, settings) for name in picked}
    return report(experiments, TITLES, json_path, charts_dir, history_files.FOLDER if record else None)


def watched(name: str, settings: Settings) -> list[Row]:
    with working(f"{name} …"):
        return list(ALL[name](settings))


def show(console: Console, titles: Mapping[str, str], rows: Sequence[Row]) -> None:
    """A table, and what the paper says of its own figure."""
    figure = rows[0].figure
    console.print(table(titles[figure], rows))
    if figure in papers.SAYS:
        console.print(f"The paper: {papers.SAYS[figure]}.\n", highlight=False, markup=False)


def report(
    experiments: Mapping[str, Callable[[], Sequence[Row]]],
    titles: Mapping[str, str],
    json_path: str | None = None,
    charts_dir: str | None = None,
    history: Path | None = None,
) -> int:
    """Runs experiments and tells what they find; the exit code says whether every count is there and right."""
    console = Console()
    kernel = history_files.baseline() if history else 0.0
    rows: list[Row] = []
    shown: list[Row] = []  # of one figure, which are one table
    failed = False
    for name, experiment in experiments.items():
        try:
            mine = experiment()
        except Exception as error:  # one that fails does not take the others with it
            say(f"FAILED: {name}: {type(error).__name__}: {error}")
            failed = True
            continue
        rows += mine
        for row in mine:
            if shown and row.figure != shown[0].figure:
                show(console, titles, shown)
                shown = []
            shown.append(row)
    if shown:
        show(console, titles, shown)
    if json_path:
        Path(json_path).write_text(as_json(rows), encoding="utf-8")
    if charts_dir:
        for path in charts.draw(dict(titles), rows, Path(charts_dir)):
            say(f"wrote {path}")
    if history:
        for path in history_files.record(rows, kernel, history):
            say(f"wrote {path}")
    wrong = [row for row in rows if not row.right]
    for row in wrong:
        say(f"WRONG: {row.figure} {row.case}, {row.series}: {row.answers} answers, must be {row.expected}")
    return 1 if wrong or failed else 0
