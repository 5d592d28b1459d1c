"""Which nodes of a large graph reach which: the index, questions by the batch, and changes of single edges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import augury
from augury.knowledge.reachability import Reach
from bench.measure import Settings, best, clocked, give, steady
from bench.paper_r import HEADER
from bench.report import figures
from bench.rows import THROUGHPUT, Row
from bench.streams import BEGIN, SEED, Ints
from bench.workload import Tables, Workload, pa, tables

NODES, EDGES = 100_000, 1_000_000
QUESTIONS = 200_000
SOURCES = 5  # nodes of which all that they reach is found edge by edge
CHANGES = 10  # edges that come, and as many that go
AFTER = 1_000  # questions after each change

LOOKUPS = "K lookups/CPU s"
MANY_LOOKUPS = 1000  # thousands
BUILD = 3.0  # seconds
SHARE = 0.1  # of a build: what a change may cost with the questions after it

FACTS = f"{HEADER}static linked(a: int, b: int).\nevent pair(a: int, b: int, answer: int).\n"
REACHES = f"""{FACTS}reaches(X, Y) :- linked(X, Y).
reaches(X, Z) :- linked(X, Y), reaches(Y, Z).
found(A, B) <- pair(A, B, _) WHERE reaches(A, B).
"""
FORETOLD = FACTS + "found(A, B) <- pair(A, B, 1).\n"


@dataclass(frozen=True)
class Graph:
    """Edges between nodes from 0 up to, not including, `nodes`."""

    nodes: int
    source: Ints
    target: Ints

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"linked": pa.table({"a": self.source, "b": self.target})}

    def changed(self, came: Ints, gone: Ints) -> Graph:
        """The graph with some edges more, then some fewer."""
        source, target = np.append(self.source, came[:, 0]), np.append(self.target, came[:, 1])
        keep = ~np.isin(source * self.nodes + target, gone[:, 0] * self.nodes + gone[:, 1])
        return Graph(self.nodes, source[keep], target[keep])


def random_graph(nodes: int, edges: int, rng: np.random.Generator) -> Graph:
    """Any node to any: nearly all reach each other."""
    return Graph(nodes, rng.integers(0, nodes, edges), rng.integers(0, nodes, edges))


def random_dag(nodes: int, edges: int, rng: np.random.Generator) -> Graph:
    """From one node to a later one."""
    ends = np.sort(rng.integers(0, nodes, (2, edges)), axis=0)
    apart = ends[0] < ends[1]
    return relabelled(Graph(nodes, ends[0][apart], ends[1][apart]), rng)


def sparse_dag(nodes: int, edges: int, rng: np.random.Generator) -> Graph:
    """From one node to a later one, three from each: few pairs are reached, and labels alone do not tell which."""
    return random_dag(nodes, 3 * nodes, rng)


def tree(nodes: int, edges: int, rng: np.random.Generator) -> Graph:
    """From parents to children; of as many edges as the others, so that there are more nodes."""
    child = np.arange(1, edges + 1)
    return relabelled(Graph(edges + 1, (rng.random(edges) * child).astype(np.int64), child), rng)


def rings(nodes: int, edges: int, rng: np.random.Generator) -> Graph:
    """Rings of a hundred nodes, with edges from one ring to a later one, few enough that some reach few."""
    size = min(100, max(2, nodes // 4))
    node = np.arange(nodes - nodes % size)
    around = (node // size) * size + (node + 1) % size
    more = random_dag(len(node) // size, edges - len(node), np.random.default_rng(SEED))
    inside = rng.integers(0, size, (2, len(more.source)))
    return relabelled(
        Graph(
            len(node),
            np.concatenate([node, more.source * size + inside[0]]),
            np.concatenate([around, more.target * size + inside[1]]),
        ),
        rng,
    )


def relabelled(graph: Graph, rng: np.random.Generator) -> Graph:
    """The same graph with numbers and an order of edges that tell nothing."""
    number, order = rng.permutation(graph.nodes), rng.permutation(len(graph.source))
    return Graph(graph.nodes, number[graph.source][order], number[graph.target][order])


GRAPHS: Mapping[str, Callable[[int, int, np.random.Generator], Graph]] = {
    "random": random_graph,
    "random DAG": random_dag,
    "sparse DAG": sparse_dag,
    "tree": tree,
    "cyclic": rings,
}


def reached(graph: Graph, starts: Ints) -> list[Ints]:
    """The nodes that each of some nodes reaches, edge by edge."""
    order = np.argsort(graph.source, kind="stable")
    ends = graph.target[order]
    first = np.searchsorted(graph.source[order], np.arange(graph.nodes + 1))
    found: list[Ints] = []
    for start in starts.tolist():
        seen = np.zeros(graph.nodes, bool)
        border = np.array([start])
        while len(border):
            count = first[border + 1] - first[border]
            at = np.arange(int(count.sum())) + np.repeat(first[border] - np.cumsum(count) + count, count)
            border = np.unique(ends[at])
            border = border[~seen[border]]
            seen[border] = True
        found.append(np.flatnonzero(seen))
    return found


def questions(graph: Graph, count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    return rng.integers(0, graph.nodes, count), rng.integers(0, graph.nodes, count)


def asked(x: Ints, y: Ints, answer: Ints, begin: int = BEGIN) -> list[Tables]:
    """Questions as events, after a first one by itself."""
    columns = {"time": begin + np.arange(len(x)), "a": x, "b": y, "answer": answer}
    parts = [{name: values[part] for name, values in columns.items()} for part in (slice(1), slice(1, None))]
    return [step for part in parts for step in tables(np.zeros(len(part["a"]), np.int64), ["pair"], part)]


def reach(settings: Settings) -> Iterator[Row]:
    """For each graph: the index, questions to it, to knowledge and by a rule, and changes."""
    shrink = min(1.0, settings.events / 1_000_000)
    settings = replace(settings, repeat=min(settings.repeat, 1))
    for case, draw in GRAPHS.items():
        rng = np.random.default_rng(SEED)
        graph = draw(max(20, int(NODES * shrink)), max(60, int(EDGES * shrink)), rng)
        x, y = questions(graph, max(50, int(QUESTIONS * shrink)), rng)
        index, build, row = built(case, graph, settings)
        yield row
        cpu, answer = best(partial(index.reaches, x, y), settings.repeat)
        yield Row("reach", case, "Reach.reaches", len(x) / cpu / 1000, LOOKUPS, len(x), least=MANY_LOOKUPS)
        yield from by_rule(case, graph, x, y, answer, settings)
        session = settings.open(augury.compile(REACHES), facts=graph.facts, changing=["linked"])
        yield by_knowledge(case, session, x, y, int(np.sum(answer)), settings)
        count = max(10, int(AFTER * shrink))
        yield from changing(case, graph, session, (x[:count], y[:count]), build)


def built(case: str, graph: Graph, settings: Settings) -> tuple[Reach, float, Row]:
    """The index, how long it takes, and whether it says what paths say."""
    starts = np.random.default_rng(SEED).choice(graph.nodes, SOURCES, replace=False)

    def build() -> Reach:
        made = Reach(graph.source, graph.target)
        made.reaches(starts[:1], starts[:1])
        return made

    seconds, index = best(build, settings.repeat)
    paths, wrong = reached(graph, starts), 0
    for start, nodes in zip(starts.tolist(), paths, strict=True):
        found = np.flatnonzero(index.reaches(np.full(graph.nodes, start), np.arange(graph.nodes)))
        wrong += len(np.setxor1d(found, nodes))
    answers = sum(map(len, paths))
    note = f"{graph.nodes:,} nodes, {len(graph.source):,} edges"
    edges = len(graph.source)
    return (
        index,
        seconds,
        Row("reach", case, "index", seconds, "CPU s", edges, answers + wrong, answers, note=note, target=BUILD),
    )


def by_rule(case: str, graph: Graph, x: Ints, y: Ints, answer: Ints, settings: Settings) -> Iterator[Row]:
    """The condition of a rule: all of the rule, what it costs more than being told the answer, and knowledge alone."""
    expected = int(np.sum(answer))
    steps = asked(x, y, answer.astype(np.int64))
    work = Workload(REACHES, steps, len(x), expected, graph.facts)
    told = Workload(FORETOLD, steps, len(x), expected)
    took, without = steady([work, told], settings)
    note = f"facts {took.load:.2f} s, index {took.first:.2f} s"
    rate = len(x) / took.cpu / 1000
    yield Row("reach", case, "rule", rate, THROUGHPUT, len(x), took.answers, expected, note=note)
    more = max(took.cpu - without.cpu, 1e-9)
    yield Row("reach", case, "its condition", len(x) / more / 1000, LOOKUPS, len(x), without.answers, expected, least=MANY_LOOKUPS)  # fmt: skip


def by_knowledge(case: str, session: Any, x: Ints, y: Ints, expected: int, settings: Settings) -> Row:
    """Knowledge alone: the columns are codes already."""
    knowledge, at = session.circuit.knowledge, np.full(len(x), BEGIN)
    given = [knowledge.words.encode_column(column) for column in (x, y)]
    solve = partial(knowledge.solve, ("reaches", 2), (True, True))
    solve([column[:1] for column in given], at[:1])
    cpu, (which, _) = best(partial(solve, given, at), settings.repeat)
    rate = len(x) / cpu / 1000
    return Row("reach", case, "Knowledge.solve", rate, LOOKUPS, len(x), len(which), expected, least=MANY_LOOKUPS)


def changing(case: str, graph: Graph, session: Any, pairs: tuple[Ints, Ints], build: float) -> Iterator[Row]:
    """An edge comes or goes, then there are a thousand questions: what that costs beside an index."""
    count = len(pairs[0])
    nothing = np.zeros(count, np.int64)
    columns = {"a": pairs[0], "b": pairs[1], "answer": nothing}

    def ask(now: int) -> int:
        return give(session, tables(nothing, ["pair"], {"time": now + np.arange(count), **columns}))

    def step(change: Callable[..., Any], ends: Ints, now: int) -> int:
        change("linked", *ends.tolist(), at=now)
        return ask(now)

    ask(BEGIN)
    rng = np.random.default_rng(SEED)
    came = rng.integers(0, graph.nodes, (CHANGES, 2))
    gone = np.stack([graph.source, graph.target], axis=1)[rng.integers(0, len(graph.source), CHANGES)]
    for series, change, edges, begin in (
        ("an edge comes", session.assert_fact, came, BEGIN + count),
        ("an edge goes", session.retract_fact, gone, BEGIN + count * (1 + CHANGES)),
    ):
        took = [clocked(partial(step, change, ends, begin + count * number)) for number, ends in enumerate(edges)]
        costs = [1000 * cpu for cpu, _ in took]
        row = Row(
            "reach", case, series, float(np.median(costs)), "CPU ms", count,
            note=f"at most {figures(max(costs))} CPU ms", base=1000 * build, target=SHARE,
        )  # fmt: skip
        if edges is gone:  # after all changes
            then = graph.changed(came, gone)
            row = replace(row, answers=took[-1][1], expected=int(Reach(then.source, then.target).reaches(*pairs).sum()))
        yield row


EXPERIMENTS = {"reach": reach}
