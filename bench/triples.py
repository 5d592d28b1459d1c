"""RDF with what RDFS entails: from a file to the first answer, and lookups of types."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import augury
from augury.core.jit import HOT, count_work
from augury.core.model import Iri
from bench import script
from bench.measure import Settings, best
from bench.rows import Row
from bench.streams import SEED, Ints
from bench.workload import BATCH

TRIPLES, CLASSES, PROPERTIES = 1_000_000, 2_000, 100
QUESTIONS = 400_000
SECONDS, MEGABYTES = 5.0, 600.0
LOOKUPS = "K lookups/CPU s"

SPACE = "http://example.org/"
RDF, RDFS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#"
TYPE = RDF + "type"
PROGRAM = """tick 1ms.
event seen(thing: iri).
known(X, C) <- seen(X) WHERE rdf:type(X, C).
"""


@dataclass(frozen=True)
class Ontology:
    """A tree of classes, things with a class each, and links between things.

    Every second property, where there are `domains`, has a domain, the others have a range.
    """

    parent: Ints  # of each class but the first
    own: Ints  # the class of each thing
    link: Ints  # subject, property and object
    classes: Ints  # the domain or range of each property; none where it is empty

    @property
    def direct(self) -> tuple[Ints, Ints]:
        """Things with the classes that they are said to have, and those that follow from their links."""
        subject, property, object = self.link
        things, classes = [np.arange(len(self.own))], [self.own]
        if len(self.classes):
            things.append(np.where(property % 2 == 0, subject, object))
            classes.append(self.classes[property])
        keys = np.unique(np.concatenate(things) * len(self.parent) + np.concatenate(classes))
        return np.divmod(keys, len(self.parent))

    def above(self) -> NDArray[np.bool_]:
        """Which class is the other, or below it."""
        found = np.eye(len(self.parent), dtype=bool)
        for c in range(1, len(self.parent)):
            found[c] |= found[self.parent[c]]
        return found

    def write(self, path: Path) -> None:
        """As N-Triples."""
        with path.open("w", encoding="ascii") as file:
            for c, up in enumerate(self.parent[1:].tolist(), 1):
                file.write(f"<{SPACE}c{c}> <{RDFS}subClassOf> <{SPACE}c{up}> .\n")
            for p, c in enumerate(self.classes.tolist()):
                file.write(f"<{SPACE}p{p}> <{RDFS}{'range' if p % 2 else 'domain'}> <{SPACE}c{c}> .\n")
            for i, c in enumerate(self.own.tolist()):
                file.write(f"<{SPACE}x{i}> <{TYPE}> <{SPACE}c{c}> .\n")
            for s, p, o in self.link.T.tolist():
                file.write(f"<{SPACE}x{s}> <{SPACE}p{p}> <{SPACE}x{o}> .\n")


def ontology(triples: int, classes: int, domains: bool) -> Ontology:
    """A fifth of the triples say the class of a thing, the others link things."""
    rng = np.random.default_rng(SEED)
    parent = (rng.random(classes) * np.arange(classes)).astype(np.int64)
    things = triples // 5
    typed = rng.integers(0, classes, PROPERTIES) if domains else np.empty(0, np.int64)
    links = triples - things - (classes - 1) - len(typed)
    ends = rng.integers(0, things, (2, links))
    return Ontology(
        parent,
        rng.integers(0, classes, things),
        np.stack([ends[0], rng.integers(0, PROPERTIES, links), ends[1]]),
        typed,
    )


@dataclass(frozen=True)
class Questions:
    """Things and classes to be asked for in pairs, how many are there, and how many classes the first few things have."""

    thing: Ints
    kind: Ints
    held: int
    few: int
    classes: int


def questions(given: Ontology, count: int) -> Questions:
    """Every second one asks for a class above the thing's own, so that the answer is yes."""
    rng = np.random.default_rng(SEED)
    above, (things, direct) = given.above(), given.direct
    thing, kind = rng.integers(0, len(given.own), count), rng.integers(0, len(given.parent), count)
    up = given.own[thing]
    for _ in range(3):
        up = np.where(rng.random(count) < 0.5, given.parent[up], up)
    kind[::2] = up[::2]
    first, last = np.searchsorted(things, thing), np.searchsorted(things, thing, side="right")
    question = np.repeat(np.arange(count), last - first)
    at = np.arange(len(question)) + np.repeat(first - np.cumsum(last - first) + (last - first), last - first)
    held = np.unique(question[above[direct[at], kind[question]]])
    few = max(1, count // 20)
    # Each thing counts as often as it is asked for.
    mine = question < few
    row, column = np.nonzero(above[direct[at[mine]]])
    classes = len(np.unique(question[mine][row] * len(given.parent) + column))
    return Questions(thing, kind, len(held), few, classes)


def rdfs(settings: Settings) -> Iterator[Row]:
    """A process of its own reads the file, so that nothing that ran before hides what is held."""
    shrink = min(1.0, settings.events / 1_000_000)
    size, classes = max(200, int(TRIPLES * shrink)), max(10, int(CLASSES * shrink))
    for case, domains in (("classes", False), ("classes, domains", True)):
        given = ontology(size, classes, domains)
        asked = questions(given, max(20, int(QUESTIONS * shrink)))
        with TemporaryDirectory() as folder:
            given.write(Path(folder, "graph.nt"))
            np.savez(Path(folder, "questions.npz"), thing=asked.thing, kind=asked.kind, few=asked.few)
            found = elsewhere(folder, settings.repeat)
        yield from rows(f"{classes:,} {case}", size, asked, found)


def rows(case: str, size: int, asked: Questions, found: dict[str, Any]) -> Iterator[Row]:
    note = f"first answers {found['first']:.2f} CPU s of it; by the clock {found['wall']:.2f} s"
    yield Row("rdfs", case, "file to answer", found["cpu"], "CPU s", size, note=note, target=SECONDS)
    file = found["file"] / 1e6
    for series, most in (("memory", found["ready"]), ("after lookups", found["asked"])):
        note = f"in all {most:.0f} MB; the file {file:.0f} MB"
        yield Row("rdfs", case, series, most - found["before"], "MB", size, note=note, target=MEGABYTES)
    count = len(asked.thing)
    rate = count / found["both"] / 1000
    yield Row("rdfs", case, "thing and class", rate, LOOKUPS, count, found["held"], asked.held)
    rate = asked.few / found["one"] / 1000
    note = f"{asked.classes / asked.few:.0f} classes each"
    yield Row("rdfs", case, "classes of a thing", rate, LOOKUPS, asked.few, found["classes"], asked.classes, note=note)


def elsewhere(folder: str, repeat: int) -> dict[str, Any]:
    code = f"from bench.triples import in_own_process; in_own_process({folder!r}, {repeat})"
    done = subprocess.run(script(code), capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def opened(path: str) -> Any:
    """A session with a graph as its facts."""
    return augury.compile(PROGRAM).session(clock="logical", rdf=[path])


def in_own_process(folder: str, repeat: int) -> None:
    """Reads, asks, and writes figures as JSON."""
    count_work(HOT)
    path = Path(folder, "graph.nt")
    before, wall, cpu = most_held(), perf_counter(), process_time()
    knowledge = opened(str(path)).circuit.knowledge
    read = process_time()
    words, kind = knowledge.words, (TYPE, 2)
    at = np.zeros(1, np.int64)
    for mode in ((True, True), (True, False)):
        ask = words.encode_all([Iri(SPACE + "x0"), Iri(SPACE + "c0")])
        knowledge.solve(kind, mode, [ask[i : i + 1] for i in range(2) if mode[i]], at)
    ready, used, held = perf_counter(), process_time(), most_held()
    with np.load(Path(folder, "questions.npz")) as asked:
        thing, classes, few = asked["thing"], asked["kind"], int(asked["few"])
    things = words.encode_all([Iri(f"{SPACE}x{i}") for i in range(thing.max() + 1)])[thing]
    kinds = words.encode_all([Iri(f"{SPACE}c{i}") for i in range(classes.max() + 1)])[classes]

    def fresh(mode: tuple[bool, bool], given: list[Ints]) -> int:
        """Every run asks anew: answers to single questions that were found before are no help."""
        knowledge.solver.forget()
        parts = ([codes[low : low + BATCH] for codes in given] for low in range(0, len(given[0]), BATCH))
        return sum(len(knowledge.solve(kind, mode, part, np.zeros(len(part[0]), np.int64))[0]) for part in parts)

    both, yes = best(partial(fresh, (True, True), [things, kinds]), repeat)
    one, number = best(partial(fresh, (True, False), [things[:few]]), repeat)
    figures = {
        "wall": ready - wall,
        "cpu": used - cpu,
        "first": used - read,
        "before": before,
        "ready": held,
        "asked": most_held(),
        "file": path.stat().st_size,
        "both": both,
        "held": yes,
        "one": one,
        "classes": number,
    }
    json.dump(figures, sys.stdout)


def most_held() -> float:
    """The most megabytes that the process has held: `ru_maxrss` where the system does not say.

    That would not do on Linux: it begins with what the process held that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        held = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        return int(held.split()[1]) / 1000
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


EXPERIMENTS = {"rdfs": rdfs}
