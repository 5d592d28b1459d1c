"""Rows by key and in order, and what rests on them: as-of indexes, and agendas."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from augury.core.arrays import Array
from augury.knowledge.fact_table import EVER
from augury.knowledge.solving.relation import FactRelation
from augury.storage.agenda import Agenda
from augury.storage.dictionary import Dictionary
from augury.storage.kernels import entries as k
from augury.storage.kernels.entries import COUNT, FIRST
from augury.storage.segments import Segments


def numbers(values: list[int]) -> Array:
    return np.array(values, np.int64) << 2  # the codes of whole numbers


@pytest.mark.parametrize("seed", range(6))
def test_segments_are_sorted_lists(seed: int) -> None:
    chance, lines, expected = Random(seed), Segments(1, 3, 2, Dictionary()), dict[int, list[tuple[int, ...]]]()
    for _ in range(30):
        new = [(chance.randrange(5), chance.randrange(40), chance.randrange(1000)) for _ in range(chance.randrange(9))]
        for key, time, number in new:
            expected.setdefault(key, []).append((time, number, key))
        gone = [(key, row) for key, rows in expected.items() for row in rows if chance.random() < 0.1]
        for key, row in gone:
            expected[key].remove(row)
        if new:
            groups = lines.number([numbers([key for key, _, _ in new])], len(new))
            lines.enter(lines.grouped(groups, np.array([(time, row, key) for key, time, row in new], np.int64).T))
        if gone:
            groups = lines.number([numbers([key for key, _ in gone])], len(gone))
            lines.remove(lines.grouped(groups, np.array([row for _, row in gone], np.int64).T))
        for key, rows in expected.items():
            _, groups = lines.find([numbers([key])], 1)
            first, count = lines.spans[FIRST, groups[0]], lines.spans[COUNT, groups[0]]
            held = [tuple(row) for row in lines.pool[:, first : first + count].T.tolist()]
            assert sorted(held) == sorted(rows)
            assert [row[:2] for row in held] == sorted(row[:2] for row in rows)


@pytest.mark.parametrize("seed", range(6))
def test_an_as_of_index_finds_the_facts_that_hold(seed: int) -> None:
    """Whatever changes, in any order: what it finds is what each fact says of itself."""
    chance, words = Random(seed), Dictionary()
    relation = FactRelation("p", 2, words)
    for _ in range(25):
        count = chance.randrange(1, 6)
        columns = [
            numbers([chance.randrange(3) for _ in range(count)]),
            numbers([chance.randrange(6) for _ in range(count)]),
        ]
        rows, times = relation.places(columns, count), [chance.randrange(60) for _ in range(count)]
        until = [EVER if chance.random() < 0.5 else time + chance.randrange(1, 9) for time in times]
        acts = [chance.choice([k.ASSERT, k.ASSERT, k.RETRACT]) for _ in range(count)]
        relation.change(rows, np.array(times), np.array(acts), np.array(until))
        asked = [(chance.randrange(4), chance.randrange(-2, 70)) for _ in range(8)]
        at = np.array([time for _, time in asked], np.int64)
        for fields in ((0,), ()):
            which, found = relation.find(fields, [numbers([key for key, _ in asked])][: len(fields)], len(asked), at)
            pairs = sorted(zip(which.tolist(), *(column.tolist() for column in found), strict=True))
            every = np.arange(relation.rows.n)
            expected = [
                (i, *relation.rows.data[:, row].tolist())
                for i, (key, time) in enumerate(asked)
                for row in every[relation.holding(every, np.full(len(every), time))].tolist()
                if not fields or relation.rows.data[0, row] == key << 2
            ]
            assert pairs == sorted(expected)


@pytest.mark.parametrize("seed", range(4))
def test_an_agenda_gives_rows_in_time(seed: int) -> None:
    chance, agenda, expected = Random(seed), Agenda(2), list[tuple[int, ...]]()
    for now in range(0, 200, 7):
        new = [(chance.randrange(250), chance.randrange(9)) for _ in range(chance.choice([0, 1, 3, 100]))]
        agenda.add(np.array(new, np.int64).reshape(-1, 2).T)
        expected += new
        if expected and chance.random() < 0.3:
            first = agenda.first
            assert first is not None and first[0] == min(expected)[0]
            expected.remove(first)
            agenda.drop_first()
        taken = [tuple(row) for row in agenda.take(now).T.tolist()]
        assert sorted(taken) == sorted(row for row in expected if row[0] <= now)
        expected = [row for row in expected if row[0] > now]
