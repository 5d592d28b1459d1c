"""Rows on their way between the stages of a stream: in packages, one for each bucket and task, an Arrow table as bytes.

A stateful operator sees few rows, whatever the number of events, and a package is what a bucket writes to its log.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from augury.algebra.plan import INPUT, Predicate
from augury.engine.changes import Changes
from augury.engine.saved import not_whole
from augury.engine.session import Session
from augury.sources import Batch
from augury.spark import host
from augury.spark.host import Work
from augury.spark.layout import batches
from augury.spark.state import BucketStep

SHIFT = 1 << 41  # milliseconds that ticks are ahead of the epoch, where Spark's watermark begins


def bucket_keys(buckets: int) -> list[int]:
    """The keys of buckets: numbers that Spark's hash spreads evenly over as many partitions, 0 among them."""
    result: dict[int, int] = {}
    key = 0
    while len(result) < buckets:
        result.setdefault(_murmur(key) % buckets, key)
        key += 1
    return [result[n] for n in range(buckets)]


def _murmur(value: int, seed: int = 42) -> int:
    """Murmur3 of a 32-bit integer, as Spark hashes the keys of a shuffle; signed."""
    mask = 0xFFFFFFFF

    def rotated(x: int, by: int) -> int:
        return ((x << by) | (x >> (32 - by))) & mask

    k = rotated((value * 0xCC9E2D51) & mask, 15) * 0x1B873593 & mask
    h = (rotated(seed ^ k, 13) * 5 + 0xE6546B64) & mask
    h ^= 4
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & mask
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def pack(records: Iterator[pa.RecordBatch], keys: list[int], work: Work) -> Iterator[pa.RecordBatch]:
    """The rows of a task, a package for each bucket. What is revoked goes to all; the bucket 0 always hears something."""
    for table in host.chunks(records, 1 << 20):
        names, packages, passed = [0], [b""], [False]
        if work.forward:
            codes = table.column("type")
            made = pc.or_(_among(codes, sorted(work.forward)), pc.less(codes, 0))
            ahead = pc.and_not(made, table.column("revoke"))
            if work.slice is not None:
                ahead = pc.and_(ahead, host.in_own_slice(table, work.slice))
            ahead = table.filter(ahead)
            if len(ahead):
                notices = pc.max(ahead.column("type")).as_py() < 0  # for them alone no bucket is woken up
                names.append(0 if notices else int(ahead.column("bucket")[0].as_py()))
                packages.append(serialised(ahead.drop_columns(["bucket", "revoke", *work.extra])))
                passed.append(True)
            table = table.filter(pc.or_(_among(codes, work.taken), table.column("revoke")))
        table = _first_and_last(table, work)
        buckets = table.column("bucket").to_numpy()
        rows = table.drop_columns(["bucket"])
        order = np.argsort(buckets, kind="stable")
        ordered = buckets[order]
        edges = (np.flatnonzero(np.diff(ordered)) + 1).tolist()
        for lo, hi in zip([0, *edges], [*edges, len(ordered)], strict=True):
            if hi > lo:
                targets = keys if ordered[lo] < 0 else [int(ordered[lo])]
                names += targets
                packages += [serialised(rows.take(pa.array(order[lo:hi])))] * len(targets)
                passed += [False] * len(targets)
        columns = [pa.array(names, pa.int32()), pa.array(packages, pa.binary()), pa.array(passed)]
        yield pa.RecordBatch.from_arrays(columns, ["bucket", "payload", "passed"])


def _first_and_last(table: pa.Table, work: Work) -> pa.Table:
    """Without events as such that say nothing of the clock: those that cannot be revoked, but the first and the last one."""
    code = work.layout.codes.get(INPUT)
    if code is None or not len(table):
        return table
    plain = pc.equal(table.column("type"), code)
    plain = pc.and_(plain, pc.invert(table.column("revoke"))) if "revoke" in table.column_names else plain
    plain = pc.and_(plain, pc.is_null(table.column("id"))) if "id" in table.column_names else plain
    if "ahead" in table.column_names:
        plain = pc.and_(plain, pc.invert(pc.fill_null(table.column("ahead"), False)))
    rows = np.flatnonzero(pc.fill_null(plain, False).to_numpy())
    if len(rows) <= 2:
        return table
    ends = table.column("end").to_numpy()[rows]
    keep = np.ones(len(table), bool)
    keep[rows] = False
    keep[rows[[ends.argmin(), ends.argmax()]]] = True
    return table.filter(pa.array(keep))


def _among(codes: pa.ChunkedArray, wanted: list[int]) -> pa.ChunkedArray:
    return pc.is_in(codes, pa.array(wanted, pa.int32()))


def serialised(table: pa.Table) -> bytes:
    """A table as bytes, without columns that are null or implied: start where it is end, op where all are inserted."""
    sink = pa.BufferOutputStream()
    silent = {n for n in table.column_names if table.column(n).null_count == len(table)}
    if "start" in table.column_names and table.column("start").equals(table.column("end")):
        silent.add("start")
    if "op" in table.column_names and pc.all(pc.greater(table.column("op"), 0)).as_py():
        silent.add("op")
    kept = table.select([n for n in table.column_names if n not in silent]).combine_chunks()
    with pa.ipc.new_stream(sink, kept.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(kept)
    return bytes(sink.getvalue().to_pybytes())


def unpack(records: Iterator[pa.RecordBatch], stage: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of packages, with where they were made."""
    for batch in records:
        for bucket, payload in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            for rows in pa.ipc.open_stream(payload):
                has = {name: rows.column(name) for name in rows.schema.names}
                has.setdefault("origin", pa.array(np.full(rows.num_rows, stage << 20 | bucket, np.int32)))
                has.setdefault("start", has["end"])
                has.setdefault("op", pa.array(np.ones(rows.num_rows, np.int8)))
                made = [has[f.name] if f.name in has else pa.nulls(rows.num_rows, f.type) for f in schema]
                yield pa.RecordBatch.from_arrays([*made, has["origin"]], [*schema.names, "origin"])


# Into a session


def origin_of(table: pa.Table, code: int) -> list[int]:
    return table.filter(pc.equal(table.column("type"), code)).column("origin").to_pylist()  # type: ignore[no-any-return]


def _checked(payloads: list[bytes]) -> list[pa.Table]:
    """Packages that were kept in a checkpoint: what Arrow does not look at when it reads is looked at here."""
    try:
        tables = [pa.ipc.open_stream(p).read_all() for p in payloads]
        for table in tables:
            table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise not_whole(f"a package cannot be read ({type(error).__name__})") from None
    return tables


def feed(session: Session, step: BucketStep, work: Work) -> Changes:
    """One step of a session: what the packages say, and the frontier."""
    plan = work.plan
    tables = _checked(step.payloads) if step.stored else [pa.ipc.open_stream(p).read_all() for p in step.payloads]
    table = pa.concat_tables(tables, promote_options="default") if tables else None
    if table is None or not len(table):
        return session.push_batches({}, step.frontier)
    if {"start", "end"} <= set(table.column_names):  # a package of points has just the end
        start = pc.coalesce(table.column("start"), table.column("end"))
        table = table.set_column(table.column_names.index("start"), "start", start)
    revoked: list[str] = []
    if "revoke" in table.column_names:
        flags = pc.fill_null(table.column("revoke"), False)
        revoked = [i for i in table.filter(flags).column("id").to_pylist() if i] if pc.any(flags).as_py() else []
        table = table.filter(pc.invert(flags)) if revoked else table
    if "ahead" in table.column_names:
        ahead = pc.fill_null(table.column("ahead"), False)
        far, table = table.filter(ahead), table.filter(pc.invert(ahead))
        types = batches(far, work.layout, work.extra) if len(far) else {}
        step.ahead += [event for type, batch in types.items() for event in batch.events(type[0])]
    withdrawn: dict[Predicate, list[str]] = {}
    if "op" in table.column_names:
        gone = pc.less(pc.fill_null(table.column("op"), 1), 0)
        back = table.filter(gone)
        ids = zip(back.column("id").to_pylist(), back.column("origin").to_pylist(), strict=True)
        withdrawn = {next(iter(plan.given), ("", 0)): [f"{id}@{origin}" for id, origin in ids]}
        table = table.filter(pc.invert(gone))
    result: dict[Predicate, Batch] = batches(table, work.layout, work.extra) if len(table) else {}
    for type in plan.given.keys() & result.keys():  # the same content may come from several buckets
        origins = origin_of(table, work.layout.codes[type[0], type[1] - len(work.extra)])
        result[type].ids = [f"{id}@{origin}" for id, origin in zip(result[type].ids, origins, strict=True)]
    return session.push_batches(result, step.frontier, revoked, withdrawn, late=step.frontier)
