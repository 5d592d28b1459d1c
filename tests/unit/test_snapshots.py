"""Snapshots: what is saved comes back, and whatever is wrong with the bytes is one clear error."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import augury
from augury.core.clock import Duration, Timestamp
from augury.core.errors import DataError, SnapshotError
from augury.core.model import Event, Fact, Iri, Revocation, Term
from augury.engine.saved import packed, unpacked
from augury.engine.saved import saving as saved_files
from augury.engine.saved.envelope import FORMAT
from augury.engine.session import Session
from augury.program import Program
from augury.storage.column import Coded

FLIPS = int(os.environ.get("AUGURY_FLIPS", "100"))
FORGED = int(os.environ.get("AUGURY_FORGED", "30"))


def event(type: str, time: int, *args: Any, id: str = "") -> Event:
    return Event(type, args, time, id=id)


def shown(changes: Any) -> list[str]:
    return [("+ " if c.op == "insert" else "- ") + f"{c.event} {c.event.id} {c.event.trace}" for c in changes]


# What comes back


def things() -> list[Any]:
    nested = Term("loc", ("N", 4042, Term("deep", (None, 1.0, (1, "two", ())))))
    values = [
        None, True, False, 0, -1, 2**62, -(2**63), 2**63 - 1, 2**64, -(2**200), 0.5, -1.5e300, float("inf"), "", "text",
        "ü€😀", "\ud800", "a\0b", Iri("http://x#y"), Timestamp(-5), Timestamp(2**61), Duration(7), nested, (), (nested, None),
    ]  # fmt: skip
    return [
        *values, values, values * 3, [["x"], []] * 20, [("a", 1)] * 20, [("a", 1), ("b", 2.5)] * 20, [()] * 20, [(), (1,)] * 20,
        {"k": 1, 2: [3], ("t", 1): None}, {i: str(i) for i in range(100)}, [{"a": 1}] * 20, b"", b"\x00\xff", [b"x"] * 20,
        Event("e", (1, nested), 3, 5, "id", ("p", "q"), 9), Revocation("x", 4), Fact("f", ("a",), None, 8),
        [Fact("f", (i, "x"), i, None) for i in range(50)], [None] * 50, [True, False] * 20, [2**70] * 20,
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(len(things())))
def test_plain_values_survive_a_snapshot(number: int) -> None:
    thing = things()[number]
    data = packed("test", thing)
    found = unpacked("test", data)[1]
    assert repr(found) == repr(thing)
    assert packed("test", found) == data


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "b1"])
def test_arrays_survive_a_snapshot(dtype: str) -> None:
    for given in (np.zeros(0, dtype), np.arange(100).astype(dtype), np.arange(6).astype(dtype).reshape(2, 3).T):
        found = unpacked("test", packed("test", [given]))[1][0]
        assert found.dtype == given.dtype and found.shape == given.shape and (found == given).all()
        found[...] = 1  # it is one's own


def test_what_columns_share_is_written_once() -> None:
    values = [f"a long name {i}" for i in range(1000)]
    columns = [Coded(values, np.arange(n)) for n in range(100)]
    data = packed("test", columns)
    found = unpacked("test", data)[1]
    assert [list(c) for c in found] == [list(c) for c in columns]
    assert len(data) < 2 * len(packed("test", values)) + 100 * 200
    assert found[0].values is found[99].values


def test_what_is_nested_too_deeply_is_said() -> None:
    thing: Any = ()
    for _ in range(100_000):
        thing = (thing,)
    with pytest.raises(augury.RunError, match="nested too deeply"):
        packed("test", thing)


# Sessions of all kinds: (program, settings, what is told)


def history(*types: str, keys: int = 3, n: int = 40) -> list[Any]:
    """Some events of some types, one of them late, one of them revoked."""
    found: list[Any] = [
        event(types[i % len(types)], i, i * i // 5 % keys, id=f"e{i}" if i % 3 else "") for i in range(n)
    ]
    found.insert(n // 2, event(types[0], n // 2 - 3, 1, id="late"))
    found.insert(3 * n // 4, Revocation("late"))
    found.insert(3 * n // 4 + 1, Revocation("e4"))
    return found


def values_told() -> list[Any]:
    values = [
        v
        for v in things()[:25]
        if not (isinstance(v, float) and v == float("inf")) and type(v) is not int and v != "\ud800"
    ]
    values += [1, 1.0, 2**61, -(2**62), 2**63 - 1, 0.1, 0.25]
    return [Event("abc"[i % 2], (v,), i) for i, v in enumerate(v for v in values for _ in (0, 1))]


def facts_told() -> list[Any]:
    def say(op: str, *args: Any) -> Callable[[Session], Any]:
        return lambda session: getattr(session, f"{op}_fact")("near", *args)

    return [event("a", 1, 1), say("assert", 1, "x"), event("a", 3, 1), say("retract", 1, "x"), event("a", 5, 1), event("b", 6, 2), say("assert", 2, "y"), event("a", 7, 2)]  # fmt: skip


KINDS: dict[str, tuple[str, dict[str, Any], list[Any]]] = {
    "join": ("p(X) <- (a(X) SEQ b(X)).10. q(X) <- p(X) AND a(X).", {}, history("a", "b")),
    "final": ("p(X) <- (a(X) SEQ b(X)).10.", {"emit": "final", "lateness": "5s"}, history("a", "b")),
    "recent": ("p(X) <- a(X) SEQ[recent] b(X).", {"lateness": "9s"}, history("a", "b")),
    "recent per": ("p(X, Y) <- a(X) SEQ[recent per (X)] b(Y).", {}, history("a", "b")),
    "chronological": ("p(X) <- a(X) SEQ[chronological] b(X).", {"lateness": "9s"}, history("a", "b")),
    "or": ("p(X) <- (a(X) OR b(X)) SEQ c(X).", {}, history("a", "b", "c")),
    "absence": ("p(X) <- NOT(c(X)).[a(X), b(X)].", {}, history("a", "b", "c")),
    "while not": ("p(X) <- r: a(X), w: extend(r, 3s), while w: not b(X).", {"lateness": "4s"}, history("a", "b")),
    "collect": ("p(X, count(), sum(Y)) <- r: a(X), w: extend(r, 9s), while w: collect b(Y).", {}, history("a", "b")),
    "last": ("p(X, list(Y)) <- i: a(X), last 3: collect b(Y).", {}, history("a", "b")),
    "windows": ("p(X, count()) <- w: every(5s), while w: collect a(X). q(X, count()) <- w: every(5s), a(X), while w: collect b(Y).", {"lateness": "9s"}, history("a", "b")),
    "windows that hop": ("p(count(), sum(X), median(X)) <- w: every(6s, 2s), while w: collect a(X). q(sum(X)) <- w: every(6s, 2s), while w: collect a(X).", {"lateness": "9s"}, [*history("a", "b"), "prune", *history("b", n=3)]),
    "ranking": ("p(X, R) <- w: every(9s), while w: collect a(X) TOP 2 BY count() AS R.", {}, history("a", "b")),
    "throttle": ("p(X) <- a(X) AT MOST 2 PER (X) EVERY 9s. q(X) <- b(X) ONCE PER (X).", {"lateness": "4s"}, [*history("a", "b"), "prune", *history("b", n=3)]),
    "groups of nothing": ("shop(0). shop(7). p(S, count(), last(S)) <- w: every(9s), shop(S), while w: collect a(S) or none, count() < 3.", {}, history("a", "b")),
    "several collects": ("p(count(x), count(y)) <- r: a(X), w: extend(r, 9s), while w: collect x: a(X), last 2: collect y: b(X).", {}, history("a", "b")),
    "repeat": ("p(X) <- (a(X) ^ 3).30.", {}, history("a", "b")),
    "recursion": ("r(X, Y) <- (a(X) SEQ b(Y)).4. r(X, Z) <- r(X, Y) SEQ r(Y, Z).", {}, history("a", "b", n=24)),
    "pruned": ("p(X) <- (a(X) SEQ b(X)).6. q(X) <- (p(X) SEQ p(X)).100.", {"lateness": "8s", "longest": "1s"}, [*history("a", "b"), "prune", *history("d", n=3)]),
    "values": ("p(X) <- a(X) SEQ b(X). q(X) <- a(X) OR b(X).", {}, values_told()),
    "knowledge": ("near(1, 's'). near(2, 2.5). q(X, Y) :- near(X, Y). p(X, Y) <- a(X) SEQ b(_) WHERE q(X, Y).", {"facts": {"near": [(0, "t"), (1, (2, 3))]}}, history("a", "b")),
    "changing facts": ("static near(x: number, y: string). p(X, Y) <- a(X) WHERE near(X, Y). q(X) <- p(X, _) OR b(X).", {"facts": {"near": [(1, "s")]}, "changing": ["near"]}, facts_told()),
    "facts of events": ("fact on(X) <- a(X). fact not on(X) <- b(X). p(X) <- c(X) WHERE on(X).", {"lateness": "9s"}, history("a", "c", "a", "c", "b", keys=2)),
    "rules added": ("p(X) <- a(X) SEQ b(X).", {}, [*history("a", "b", n=10), lambda s: s.add_rules("q(X) <- b(X) SEQ a(X)."), *history("c", n=4), lambda s: s.remove_rule("p"), event("b", 50, 1), event("a", 51, 1)]),
    "columns": ("p(X, Y, F) <- (a(X, Y, F) SEQ b(X)).9.", {}, [{"a": pa.table({"x": ["u", "v", None] * 9, "y": [0.5, None, 2.0] * 9, "f": [True, False, None] * 9, "time": list(range(27))})}, event("b", 12, "u"), event("b", 28, "v"), {"b": pa.table({"x": ["u"] * 20, "time": list(range(20, 40)), "id": [f"i{n}" for n in range(20)]})}]),
    "unknown": ("p(X) <- a(X) SEQ b(X).", {}, [event("a", 1, 1), event("z", 2, 3, 4, id="z1"), event("b", 3, 1)]),
}  # fmt: skip


def tell(session: Session, item: Any) -> list[str]:
    if item == "prune":
        session.prune()
        return []
    return shown(item(session) if callable(item) else session.push(item))


def opened(kind: str) -> tuple[Program, Session, list[Any]]:
    text, settings, told = KINDS[kind]
    program = augury.compile(text)
    return program, program.session(clock="logical", **settings), told


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_session_resumes_from_a_snapshot(kind: str) -> None:
    program, one, told = opened(kind)
    other, some = opened(kind)[1], False
    for step, item in enumerate(told):
        if step and step % 3 == 0:
            data = other.snapshot()
            other = program.restore(data)
            assert other.snapshot() == data
        before = tell(one, item)
        some |= bool(before)
        assert tell(other, item) == before, (step, item)
    assert some
    assert sorted(map(str, one.events())) == sorted(map(str, other.events()))


@pytest.mark.parametrize("lateness", [None, "5s"])
@pytest.mark.parametrize("how", ["last 2", "exactly 1"])
def test_after_a_restore_revoking_what_was_collected_retracts_the_answer(how: str, lateness: str | None) -> None:
    program = augury.compile(f"p(count(V)) <- o: d(1), {how}: collect c(V).")
    session = program.session(clock="logical", lateness=lateness)
    session.push(event("c", 7, "x", id="c1"))
    assert len(session.push(Event("d", (1,), 4, 9))) == 1
    session = program.restore(session.snapshot())
    assert [(c.op, c.event.args) for c in session.revoke("c1")] == [("retract", (1,))]


@pytest.mark.parametrize("kind", KINDS)
def test_a_snapshot_holds_nothing_that_was_in_memory_before(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays that nobody has written to have something in them, and a snapshot does not depend on what."""

    def filled_with(byte: int) -> Callable[..., Any]:
        def made(*args: Any, **options: Any) -> Any:
            array = empty(*args, **options)
            if array.dtype.kind in "iufb":
                array.reshape(-1).view(np.uint8)[:] = byte & 1 if array.dtype.kind == "b" else byte
            return array

        return made

    empty, found = np.empty, list[bytes]()
    for byte in (0, 0x5B):
        monkeypatch.setattr(np, "empty", filled_with(byte))
        program, session, told = opened(kind)
        for item in told:
            tell(session, item)
        # An event that is taken back in the step in which it comes: its row is dead before any operator has seen it.
        session.push([event(name, 60, 1, id=f"{name}!") for name in "abc"] + [Revocation(f"{name}!") for name in "abc"])
        found.append(session.snapshot())
        program.restore(found[-1])
    assert found[0] == found[1]


# What is wrong with the bytes


def sample(kind: str = "collect") -> tuple[Program, bytes]:
    program, session, told = opened(kind)
    for item in told:
        tell(session, item)
    return program, session.snapshot()


def refused(program: Program, data: Any, code: str = "S101") -> str:
    """The one error of bytes that are no snapshot."""
    with pytest.raises(SnapshotError) as failure:
        program.restore(data)
    assert failure.value.code == code and failure.value.hint and f"[{code}]" in str(failure.value)
    return str(failure.value)


def bit_flips(count: int, seed: int = 0) -> Iterator[str]:
    """What is said of snapshots in which one bit is another; of sessions of all kinds."""
    given, chance = [sample(kind) for kind in ("collect", "values", "facts of events")], random.Random(seed)
    for n in range(count):
        program, data = given[n % len(given)]
        place = chance.randrange(8 * len(data)) if n % 4 else chance.randrange(8 * 64)
        broken = bytearray(data)
        broken[place // 8] ^= 1 << place % 8
        yield refused(program, bytes(broken))


def test_a_flipped_bit_is_always_the_same_error() -> None:
    assert len(set(bit_flips(FLIPS))) == 1


def test_what_is_cut_off_or_too_long() -> None:
    program, data = sample()
    head = struct.unpack_from("<8sIQQ", data)[3]
    for size in {0, 1, 7, 8, 11, 12, 20, 27, 28, 29, 28 + head - 1, 28 + head, 28 + head + 1, len(data) // 2, len(data) - 33, len(data) - 32, len(data) - 1}:  # fmt: skip
        refused(program, data[:size])
    refused(program, data + b"\0")
    refused(program, data[1:])
    refused(program, data + data)


def test_bytes_that_are_not_a_snapshot_are_refused() -> None:
    program, data = sample()
    for other in (
        b"",
        b"hello",
        b"\0" * 10_000,
        data[::-1],
        os.urandom(5000),
        None,
        5,
        "x" * 3 if False else 1.5,
        [data],
    ):
        refused(program, other)
    refused(program, packed("step of a stream", [1]))
    assert program.restore(bytearray(data)).snapshot() == data  # type: ignore[arg-type]
    assert program.restore(memoryview(data)).snapshot() == data  # type: ignore[arg-type]


def test_another_program_or_version() -> None:
    program, data = sample()
    assert "another program" in refused(augury.compile("m(X) <- a(X)."), data, "S103")
    for old in (b"augury session 4\n\x80\x05\x95", b"augury session 3\n", b"\x80\x05\x95abc" * 50):
        assert "another version" in refused(program, old, "S102")
    described, parts = taken_apart(data)
    assert "another version" in refused(program, put_together(described, parts, format=FORMAT + 1), "S102")
    described["augury"] = "0.0.9"  # the format is the same, but not how the program is laid out
    described["state"] = json.loads(json.dumps(described["state"]).replace("collect", "gather"))
    assert "0.0.9" in refused(program, put_together(described, parts), "S102")


# Crafted: the digest is right, and what is inside is not


def taken_apart(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    head = struct.unpack_from("<8sIQQ", data)[3]
    described, at, parts = json.loads(data[28 : 28 + head]), 28 + head, []
    for name, length in described["parts"]:
        parts.append(data[at : at + length * int(name[1])])
        at += length * int(name[1])
    return described, parts


def put_together(described: Any, parts: list[bytes], format: int = FORMAT, length: int | None = None) -> bytes:
    head = described if isinstance(described, bytes) else json.dumps(described).encode()
    whole = 28 + len(head) + sum(map(len, parts)) + 32 if length is None else length
    data = struct.pack("<8sIQQ", b"\x89augury\n", format, whole, len(head)) + head + b"".join(parts)
    return data + hashlib.blake2b(data, digest_size=32).digest()


def test_heads_that_say_what_cannot_be() -> None:
    import tracemalloc

    program, data = sample()
    described, parts = taken_apart(data)
    assert program.restore(put_together(described, parts)).snapshot() == data

    def with_part(*part: Any) -> dict[str, Any]:
        return {**described, "parts": [list(part), *described["parts"][1:]]}

    first = described["parts"][0]
    heads: list[Any] = [
        with_part("i8", 10**15), with_part("i8", 2**63), with_part("i8", 2**64 + first[1]), with_part("i8", -1),
        with_part("O", first[1]), with_part("object", 1), with_part("U9", 1), with_part("M8", first[1]), with_part("V8", 1),
        with_part(first[0], first[1], 1), with_part(first[0], str(first[1])), with_part(first[0], float(first[1])),
        with_part(first[0], True), with_part(None, 1), with_part(first[0], first[1] - 1), with_part("f8", first[1]),
        {**described, "parts": described["parts"][1:]}, {**described, "parts": [*described["parts"], ["i1", 0]]},
        {**described, "parts": {}}, {**described, "parts": None}, {**described, "more": 1}, {**described, "kind": "other"},
        {k: v for k, v in described.items() if k != "state"}, [], None, 1, b"", b"{", b"\xff", b"[" * 100_000, b"1" * 10_000,
        {**described, "state": None}, {**described, "state": ["l"]}, {**described, "state": ["d", ["l"], ["l"]]},
        {**described, "about": {}}, {**described, "about": 5},
    ]  # fmt: skip
    tracemalloc.start()
    for head in heads:
        other = refused_any(program, put_together(head, parts))
        assert other.code in ("S101", "S103"), head
    refused(program, put_together(described, parts, length=5))
    refused(program, put_together(described, parts, length=2**64 - 1))
    bombs = [
        ["g", "i8", 2**40, 0], ["g", "i8", -1, -1], ["g", "i8", 10**6, 10**6], ["a", "O"], ["a", "i16"], ["S"], ["I"], ["T"], ["M"],
        ["R", "dict", ["l"]], ["O", "os.system", ["l", "true"]], ["o", "facts of a predicate", ["t", ["l", "f", ["l"], 10**12, None, None]]],
        ["c", 0, ["a", "i8"]], ["t", 5], ["d", ["l", 1, 1], ["l", 1, 1]], ["d", ["l", ["l"]], ["l", 1]], ["x"], [], ["l", [[]]], {"a": 1}, 1.5,
        ["n", "zz"], ["f", "zz"], ["b"], ["o", "event", 5], ["o", "clock", ["t", ["l", "logical", 0, True]]], ["o", "iri", 5],
    ]  # fmt: skip
    for bomb in bombs:
        refused(
            program, put_together({**described, "state": bomb, "parts": [["i8", 2]]}, [struct.pack("<qq", 2**62, -1)])
        )
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 40 * len(data) + (20 << 20)


def refused_any(program: Program, data: bytes) -> SnapshotError:
    with pytest.raises(SnapshotError) as failure:
        program.restore(data)
    return failure.value


def forged(data: bytes, change: Callable[[Any], Any]) -> bytes:
    head, state = unpacked("session", data)
    change(state)
    return packed("session", state, **head.about)


def table_named(state: Any, kind: str, rows: bool = True) -> list[Any]:
    return next(t for (_, k, _, _), t in zip(state["operators"], state["tables"], strict=True) if k == kind and (len(t[0]) or not rows))  # fmt: skip


def state_of(state: Any, kind: str) -> Any:
    """What an operator of a kind keeps beside its table."""
    return next(own for (_, k, _, _), own in zip(state["operators"], state["states"], strict=True) if k == kind)


def kept(state: Any) -> Any:
    return next(own for (_, k, _, _), own in zip(state["operators"], state["states"], strict=True) if k == "set" and len(own["row"]))  # fmt: skip


def set_at(array: Any, value: int) -> Any:
    array[-1] = value


LEFT, RIGHT, FIELDS = 3, 4, 6  # of a table in a snapshot, whose flags come first
FORGERIES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "left row too large": ("join", lambda s: set_at(table_named(s, "join")[LEFT], 10**9)),
    "left row just too large": ("join", lambda s: set_at(table_named(s, "join")[LEFT], max(len(t[0]) for t in s["tables"]))),
    "left row negative": ("join", lambda s: set_at(table_named(s, "join")[LEFT], -1)),
    "left row very negative": ("join", lambda s: set_at(table_named(s, "join")[LEFT], -(2**63))),
    "right row too large": ("join", lambda s: set_at(table_named(s, "join")[RIGHT], 2**31)),
    "derived event not there": ("join", lambda s: set_at(table_named(s, "head")[RIGHT], 10**6)),
    "derived from a row not there": ("join", lambda s: set_at(table_named(s, "head")[LEFT], -2)),
    "either side of or": ("or", lambda s: [set_at(table_named(s, "or")[field], -1) for field in (LEFT, RIGHT)]),
    "value too large": ("values", lambda s: set_at(table_named(s, "input")[FIELDS], 2**40 + 1)),
    "value negative": ("values", lambda s: set_at(table_named(s, "input")[FIELDS], -1)),
    "flag": ("join", lambda s: set_at(table_named(s, "input")[0], 2)),
    "time too far": ("join", lambda s: set_at(table_named(s, "input")[2], 2**62)),
    "ends before it starts": ("join", lambda s: set_at(table_named(s, "input")[1], 2**40)),
    "field missing": ("join", lambda s: table_named(s, "join").pop()),
    "field too short": ("join", lambda s: table_named(s, "join").__setitem__(2, table_named(s, "join")[2][:-1])),
    "field of floats": ("join", lambda s: table_named(s, "join").__setitem__(2, table_named(s, "join")[2].astype(float))),
    "field of objects": ("join", lambda s: table_named(s, "join").__setitem__(2, [None] * len(table_named(s, "join")[2]))),
    "table missing": ("join", lambda s: s["tables"].pop()),
    "operator missing": ("join", lambda s: (s["tables"].pop(), s["operators"].pop(), s["states"].pop())),
    "operator twice": ("join", lambda s: [s[all].append(s[all][0]) for all in ("tables", "operators", "states")]),
    "unexpected state": ("join", lambda s: s["states"].__setitem__(-1, {"row": 1})),
    "member not there": ("last", lambda s: set_at(state_of(s, "collect")["of"], 10**9)),
    "member of a row not there": ("last", lambda s: set_at(state_of(s, "collect")["row"], 10**9)),
    "member count": ("last", lambda s: set_at(state_of(s, "collect")["count"], 2**62)),
    "members missing": ("last", lambda s: state_of(s, "collect").update(row=np.zeros(0, int), count=np.zeros(0, int), of=np.zeros(0, int))),
    "kept part not there": ("pruned", lambda s: set_at(kept(s)["of"], 10**9)),
    "kept part of no input": ("pruned", lambda s: set_at(kept(s)["place"], len(s["tables"]) - 1)),
    "kept part of nothing": ("pruned", lambda s: set_at(kept(s)["place"], 10**9)),
    "id of no event": ("join", lambda s: set_at(s["ids"]["row"], 10**9)),
    "id of no input": ("join", lambda s: set_at(s["ids"]["place"], len(s["tables"]) - 1)),
    "id twice": ("join", lambda s: s["ids"]["names"].__setitem__(slice(0, 2), ["same", "same"])),
    "too many shown": ("join", lambda s: s["shown"].__setitem__(0, np.ones(10**6, np.uint8))),
    "shown twice": ("join", lambda s: set_at(s["shown"][0], 7)),
    "chunk too long": ("join", lambda s: state_of(s, "input")["chunks"][0].update(count=10**9)),
    "chunk without a column": ("join", lambda s: state_of(s, "input")["chunks"][0]["columns"].pop()),
    "chunk of no values": ("join", lambda s: state_of(s, "input")["chunks"][0]["columns"].__setitem__(0, [b"x"] * state_of(s, "input")["chunks"][0]["count"])),
    "chunks missing": ("join", lambda s: state_of(s, "input")["chunks"].clear()),
    "numbers of equals": ("join", lambda s: state_of(s, "input").update(fixed=np.full(3, -7))),
    "value missing": ("values", lambda s: s["values"]["values"].pop()),
    "value twice": ("values", lambda s: s["values"]["values"].__setitem__(-1, s["values"]["values"][2])),
    "value that is no value": ("values", lambda s: s["values"]["values"].__setitem__(-1, {})),
    "value that has a code of its own": ("values", lambda s: s["values"]["values"].__setitem__(-1, 5)),
    "kind of a value": ("values", lambda s: set_at(s["values"]["kind"], 9)),
    "float that is whole": ("values", lambda s: set_at(s["values"]["floats"], 3)),
    "invalid rules": ("rules added", lambda s: s["grown"].append(["add", "p(X) <- ", None])),
    "a rule that is not there": ("rules added", lambda s: s["grown"].append(["remove", "nobody", None])),
    "rules of a file": ("rules added", lambda s: s["grown"].append(["add", "/etc/passwd.aug", None])),
    "facts of nothing": ("knowledge", lambda s: s.update(facts=5)),
    "facts nobody asks for": ("changing facts", lambda s: s["settings"].update(changing=["nobody"])),
    "changes that are none": ("changing facts", lambda s: s.update(changes=[("near", 2, [((1,), "x", 3)])])),
    "a setting": ("join", lambda s: s["settings"].update(emit="never")),
    "a length": ("join", lambda s: s["settings"].update(lateness=-5)),
    "late events": ("final", lambda s: s.update(late=[5])),
    "counts": ("join", lambda s: s.update(counts=[1, 2])),
    "a time": ("join", lambda s: s.update(time=["x", None])),
    "a clock": ("join", lambda s: s.update(clock=None)),
    "nothing": ("join", lambda s: s.clear()),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_snapshots_are_refused(name: str) -> None:
    kind, change = FORGERIES[name]
    program, data = sample(kind)
    refused(program, forged(data, change))


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """All places in a state at which something else could stand."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from leaves(value[key])
    elif isinstance(value, tuple):
        for one in value:
            yield from leaves(one)


def mangled(state: Any, chance: random.Random) -> None:
    """Changes one thing somewhere."""
    holder, key = chance.choice(list(leaves(state)))
    value = holder[key]
    if isinstance(value, np.ndarray) and value.size and chance.random() < 0.8:
        value = value.reshape(-1)  # the same numbers
        if value.dtype.kind == "f":
            value[chance.randrange(len(value))] = chance.choice([0.0, 1e300, -1e-300, float("nan"), 2.5])
        else:
            info = np.iinfo(value.dtype) if value.dtype.kind in "iu" else None
            least, most = (0, 1) if info is None else (int(info.min), int(info.max))
            near = int(value[chance.randrange(len(value))])
            new = chance.choice(
                [-1, 0, 1, 2, 3, 7, near + 1, near - 1, near ^ 1, len(value), 10**6, 2**31, 2**40 + 1, least, most]
            )
            value[chance.randrange(len(value))] = min(max(new, least), most)
        return
    others: list[Any] = [
        None,
        True,
        -1,
        0,
        2**40,
        2**70,
        "",
        "x",
        b"",
        0.5,
        [],
        (),
        {},
        [None] * 3,
        ("x", 1),
        np.zeros(3, np.int64),
        Iri("x"),
    ]
    if (chance.random() < 0.3 and isinstance(holder, list)) or (chance.random() < 0.2 and isinstance(holder, dict)):
        del holder[key]
    else:
        holder[key] = chance.choice(others)


def forgeries(count: int, seed: int = 0) -> Iterator[bool]:
    """Whether each of many forged states was refused, or can be resumed and leads nowhere outside."""
    given, chance = [(kind, *sample(kind)) for kind in KINDS], random.Random(seed)
    for n in range(count):
        kind, program, data = given[n % len(given)]

        def change(state: Any) -> None:
            mangled(state, chance)

        broken = forged(data, change)
        try:
            session = program.restore(broken)
        except SnapshotError as error:
            yield bool(error.code in ("S101", "S103", "S104") and error.hint)
            continue
        go_on(session, kind)
        yield True


def go_on(session: Session, kind: str) -> None:
    """Steps of a session that somebody has forged: what it says may be anything, but it stays within its tables."""
    for item in KINDS[kind][2][-6:]:
        try:
            tell(session, item)
        except IndexError:
            raise
        except Exception:
            pass


def test_random_forgeries_are_refused() -> None:
    assert all(forgeries(FORGED))


# Files


def test_a_session_is_saved_and_loaded(tmp_path: Path) -> None:
    program, session, told = opened("collect")
    path = tmp_path / "state.augury"
    for item in told[:20]:
        tell(session, item)
    session.save(path)
    again = program.restore(path)
    session.save(str(path))
    other = program.restore(str(path))
    assert os.listdir(tmp_path) == ["state.augury"]
    for item in told[20:]:
        assert tell(session, item) == tell(again, item) == tell(other, item)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    program, data = sample()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    program.restore(data).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == data


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    program, _ = sample()
    with pytest.raises(DataError, match="no such file"):
        program.restore(tmp_path / "none")
    with pytest.raises(DataError, match="is a directory"):
        program.restore(str(tmp_path))
    (tmp_path / "empty").touch()
    with pytest.raises(SnapshotError, match="there is nothing"):
        program.restore(tmp_path / "empty")


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    program, data = sample()
    session = program.restore(data)
    with pytest.raises(DataError, match="is a directory"):
        session.save(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        session.save(tmp_path / "none" / "state")
    with pytest.raises(DataError, match="cannot be written"):
        session.save("/proc/state")
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be written: Not a directory"):
        session.save(tmp_path / "file" / "state")


@pytest.mark.parametrize("failing", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, session, told = opened("join")
    path = tmp_path / "state"
    tell(session, told[0])
    session.save(path)
    before = path.read_bytes()
    tell(session, told[1])

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        if failing == "write":
            patch.setattr(saved_files, "open", full, raising=False)
        else:
            patch.setattr(os, failing, full)
        with pytest.raises(DataError, match="No space left on device") as failure:
            session.save(path)
    assert "as it was" in str(failure.value)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["state"]
    session.save(path)
    assert program.restore(path).snapshot() == session.snapshot()


def test_a_file_that_may_not_grow_leaves_the_old_one(tmp_path: Path) -> None:
    program, data = sample()
    path = tmp_path / "state"
    program.restore(data).save(path)
    path.chmod(0o640)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(data) // 2, before[1]))
    try:
        with pytest.raises(DataError, match="cannot be written: File too large"):
            program.restore(data).save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == data and os.listdir(tmp_path) == ["state"]
    program.restore(data).save(path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_two_do_not_write_one_file_at_once(tmp_path: Path) -> None:
    program, data = sample()
    path = tmp_path / "state"

    def meanwhile() -> Iterator[bytes]:
        yield data[:100]
        with pytest.raises(DataError, match="by another process"):
            program.restore(data).save(path)
        yield data[100:]

    saved_files.write_file(path, meanwhile())
    assert path.read_bytes() == data and os.listdir(tmp_path) == ["state"]


SAVES = """
import sys, augury
from augury.core.model import Event
program = augury.compile("p(X) <- (a(X) SEQ b(X)).10.")
session = program.session(clock="logical")
n = 0
while True:
    session.push([Event("ab"[i % 2], (i % 7,), n + i) for i in range(50)])
    n += 50
    session.save(sys.argv[1])
    print(n, flush=True)
"""


def killed_saves(path: Path, kills: int) -> int:
    """How many files could be loaded of those that a process left which was killed while it saved again and again."""
    program, good, chance = augury.compile("p(X) <- (a(X) SEQ b(X)).10."), 0, random.Random(kills)
    for _ in range(kills):
        with subprocess.Popen([sys.executable, "-c", SAVES, str(path)], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(chance.random() / 20)
            child.send_signal(signal.SIGKILL)
            told = [50, *(int(line) for line in child.stdout.read().split("\n")[:-1])]
        found = program.restore(path).counted
        good += found >= told[-1] and found % 50 == 0
    return good


def test_a_process_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    assert killed_saves(tmp_path / "state", 2) == 2
    assert set(os.listdir(tmp_path)) <= {"state", ".state.saving"}
