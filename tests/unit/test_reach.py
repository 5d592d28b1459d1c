"""The index of what reaches what, against a naive closure, after every change."""

from __future__ import annotations

import os
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from augury.core import jit
from augury.core.arrays import Array
from augury.core.jit import Kernel, compile_all
from augury.knowledge.reachability import Reach, answer, hubs, lookup, reach, searches

Pairs = set[tuple[int, int]]
node = st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, -1, -(2**63), 2**63 - 1, 2**40])
pairs = st.sets(st.tuples(node, node), max_size=24)
SHAPES = ("any", "acyclic", "down", "up", "chain")


@pytest.fixture(autouse=True)
def as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled here, unless it was asked for or is compiled already."""
    if os.environ.get("AUGURY_JIT") != "on":
        monkeypatch.setattr(jit, "_MODE", "off")


def closure(edges: Pairs) -> Pairs:
    """All pairs with a path of one or more edges."""
    after: dict[int, set[int]] = {}
    for x, y in edges:
        after.setdefault(x, set()).add(y)
    found = set()
    for x in after:
        seen, todo = set[int](), list(after[x])
        while todo:
            y = todo.pop()
            if y not in seen:
                seen.add(y)
                todo += after.get(y, ())
        found |= {(x, y) for y in seen}
    return found


def columns(some: Pairs) -> tuple[Array, Array]:
    array = np.array(sorted(some), np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def chain(n: int) -> Reach:
    return Reach(np.arange(n), np.arange(1, n + 1))


def check_pairs(index: Reach, asked: Pairs, expected: Pairs) -> None:
    x, y = columns(asked)
    assert set(zip(x[found := index.reaches(x, y)].tolist(), y[found].tolist(), strict=True)) == expected & asked


def check_lists(index: Reach, nodes: list[int], expected: Pairs) -> None:
    asked = np.array(nodes, np.int64)
    rows, others = index.targets(asked)
    assert sorted(zip(asked[rows].tolist(), others.tolist(), strict=True)) == sorted(expected)
    rows, others = index.sources(asked)
    assert sorted(zip(others.tolist(), asked[rows].tolist(), strict=True)) == sorted(expected)
    x, y = index.everything()
    assert sorted(zip(x.tolist(), y.tolist(), strict=True)) == sorted(expected)


def check_path(index: Reach, edges: Pairs, x: int, y: int) -> None:
    """A path is of edges, and none is shorter."""
    path = index.path(x, y)
    steps, reached = 0, {x}
    while steps <= len(edges):
        steps += 1
        reached = {b for a, b in edges if a in reached}
        if y in reached or not reached:
            break
    assert len(path) == (steps + 1 if y in reached else 0)
    assert all(step in edges for step in pairwise(path))
    assert path == [] or (path[0], path[-1]) == (x, y)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs)
def test_reachability_answers_every_binding_pattern(edges: Pairs) -> None:
    index, expected = Reach(*columns(edges)), closure(edges)
    nodes = sorted({x for pair in edges for x in pair} | {99})
    check_pairs(index, {(x, y) for x in nodes for y in nodes}, expected)
    check_lists(index, nodes, expected)
    for x in nodes[:4]:
        for y in nodes[:4]:
            check_path(index, edges, x, y)


def an_edge(random: Random, n: int, shape: str) -> tuple[int, int]:
    x, y = random.randrange(n), random.randrange(n)
    if random.random() < 0.03:
        return x, y
    match shape:
        case "acyclic":
            return min(x, y), max(x, y) + 1
        case "down":
            return x // 2, x + 1
        case "up":
            return x + 1, x // 2
        case "chain":
            return x, x + 1
    return x, y


def live_through_changes(random: Random) -> Reach:
    n, shape = random.choice([3, 6, 10, 16]), random.choice(SHAPES)
    edges = {an_edge(random, n, shape) for _ in range(random.randrange(3 * n))}
    index, nodes = Reach(*columns(edges)), range(-1, n + 3)
    everything = {(x, y) for x in nodes for y in nodes}
    for _ in range(random.choice([2, 15, 30])):
        expected = closure(edges)
        check_pairs(index, everything if random.random() < 0.5 else set(random.sample(sorted(everything), 5)), expected)
        if random.random() < 0.3:
            check_lists(index, list(nodes), expected)
            check_path(index, edges, random.randrange(n), random.randrange(n))
        count = random.choice([1, 1, 1, 3])
        if random.random() < 0.5:
            change = {an_edge(random, n, shape) for _ in range(count)}
            index.add(*columns(change))
            edges |= change
        else:
            change = set(random.sample(sorted(edges), min(count, len(edges)))) | {an_edge(random, n, "any")}
            index.remove(*columns(change))
            edges -= change
    return index


@pytest.mark.parametrize("patience", [0, 1, 1000])
@pytest.mark.parametrize("hub_words", [0, 20, 4_000_000])
def test_reachability_follows_edge_changes(monkeypatch: pytest.MonkeyPatch, patience: int, hub_words: int) -> None:
    monkeypatch.setattr(reach, "PATIENCE", patience)
    monkeypatch.setattr(hubs, "HUB_WORDS", hub_words)
    for seed in range(800 if os.environ.get("AUGURY_FUZZ") else 20):
        live_through_changes(Random(f"{patience} {hub_words} {seed}"))


def test_a_forest_that_falls_apart_is_not_searched() -> None:
    """Where there is one path at most, what went through a removed edge is lost; extra edges lead around it."""
    n = 2_000
    index, edges = chain(n), {(x, x + 1) for x in range(n)}
    assert index.reaches([0], [n])[0]
    for x in range(100, n, 200):
        index.remove([x], [x + 1])
        edges.discard((x, x + 1))
    index.add([950], [20])
    edges.add((950, 20))
    before = index.visited
    nodes = range(0, n, 53)
    asked = {(x, y) for x in nodes for y in nodes}
    check_pairs(index, asked, closure(edges))
    assert index.builds == 1
    assert index.visited - before < 3 * len(asked)
    index.add([90, 300, 100], [310, 305, 101])  # more than one path now
    index.remove([303, 950], [304, 20])
    edges = (edges | {(90, 310), (300, 305), (100, 101)}) - {(303, 304), (950, 20)}
    check_pairs(index, asked, closure(edges))


def test_compiled_reachability_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same compiled, where that was asked for or has happened already."""
    if not (Kernel.compiled or os.environ.get("AUGURY_JIT") == "on" or os.environ.get("AUGURY_FUZZ")):
        pytest.skip("compiling takes long: AUGURY_JIT=on")
    if not Kernel.compiled:
        compile_all()
    name = lookup.by_labels.__name__  # compiled for all modules that import it
    assert vars(answer)[name] is vars(searches)[name] is vars(lookup)[name] is not vars(lookup)[name].py_func
    monkeypatch.setattr(hubs, "HUB_WORDS", 20)
    for seed in range(50):
        live_through_changes(Random(seed))


def test_empty_graph_reaches_nothing() -> None:
    index = Reach([], [])
    assert index.reaches([1], [1]).tolist() == [False]
    assert index.reaches([], []).tolist() == []
    assert [len(part) for part in (*index.targets([1]), *index.sources([1]), *index.everything())] == [0] * 6
    assert index.path(1, 1) == []
    index.remove([1], [2])
    index.add([1], [2])
    index.remove([1], [2])
    assert not index.reaches([1], [2])[0]


def test_cycles_and_self_loops() -> None:
    index = Reach([1, 2, 3, 3, 5, 5], [2, 3, 1, 4, 5, 5])
    assert index.reaches([1, 4, 5, 1, 4, 5], [1, 4, 5, 4, 1, 1]).tolist() == [True, False, True, True, False, False]
    assert index.path(1, 1) == [1, 2, 3, 1]
    assert index.path(5, 5) == [5, 5]
    assert index.path(4, 4) == []
    index.remove([2, 5], [3, 5])
    assert index.reaches([1, 3, 5, 3], [1, 2, 5, 4]).tolist() == [False, True, False, True]


def test_a_chain_is_looked_up() -> None:
    n = 20_000
    index = chain(n)
    random = np.random.default_rng(1)
    x, y = random.integers(0, n, 200), random.integers(0, n, 200)
    assert (index.reaches(x, y) == (x < y)).all()
    assert index.visited == 0
    assert index.path(n - 3, n) == [n - 3, n - 2, n - 1, n]
    assert len(index.targets([n - 5])[0]) == 5


def test_a_chain_that_changes_is_not_indexed_again() -> None:
    n = 20_000
    index = chain(n)
    assert index.reaches([0], [n])[0]
    index.remove([100], [101])
    assert index.reaches([0, 0, 101, 50], [100, n, n, 102]).tolist() == [True, False, True, False]
    index.add([100], [101])
    assert index.reaches([0, 0, 101, 50], [100, n, n, 102]).tolist() == [True, True, True, True]
    index.add([5], [n - 5])
    index.remove([5], [n - 5])
    index.add([n], [-7])
    assert index.reaches([0, -7], [-7, 0]).tolist() == [True, False]
    assert index.builds == 1
    assert index.visited < 5_000


def test_a_tree_is_looked_up_both_ways() -> None:
    child = np.arange(1, 2_000)
    for index, up in ((Reach((child - 1) // 2, child), False), (Reach(child, (child - 1) // 2), True)):
        x, y = (1_999, 0) if up else (0, 1_998)
        assert index.reaches([x - up, y], [y, x - up]).tolist() == [True, False]
        assert index.visited == 0


def test_an_edge_beside_another_path_changes_nothing() -> None:
    n = 1_000
    index = Reach(np.arange(n), (np.arange(n) + 1) % n)
    assert index.reaches([5], [4])[0]
    index.add([5], [500])
    assert index.reaches([5], [4])[0]
    before = index.visited
    index.remove([5], [500])
    assert index.reaches([500, 5], [5, 4]).tolist() == [True, True]
    assert index.builds == 1
    assert index.visited - before < 4 * n


def test_many_changes_are_indexed_at_once() -> None:
    index = chain(100)
    assert index.reaches([0], [100])[0]
    index.add(np.arange(1_000, 2_000), np.arange(1_001, 2_001))
    assert index.reaches([0, 1_000, 0], [100, 2_000, 2_000]).tolist() == [True, True, False]
    assert index.builds == 2
    index.remove(np.arange(1_000, 2_000), np.arange(1_001, 2_001))
    assert index.reaches([0, 1_000], [100, 1_001]).tolist() == [True, False]
    assert index.builds == 3
