"""What a window has of intervals in which facts hold, as parts of a derivation: they are rows, and no events of a circuit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from augury.algebra.nodes import Collect, Rule, Scan, walk
from augury.algebra.terms import Const, Var, Wild
from augury.core.model import Event, Value, content_id
from augury.engine.events import Events
from augury.engine.operators.clipped import Clipped
from augury.engine.operators.derive import Derived
from augury.engine.runtime import Runtime
from augury.storage.table import Table


def held_parts(circuit: Runtime, rule: Rule, table: Table, row: int) -> Iterator[Event]:
    """The intervals that a row of a rule has collected: `while w: collect x: holding mode(M, S)`."""
    maker = circuit.maker(table)
    if isinstance(maker, Clipped):
        for collect in rule.collects:
            if collect.label == maker.spec.label:
                yield _interval(circuit, maker, collect, row)
    elif not isinstance(maker, Events | Derived):
        for _, sources in maker.sources(np.array([row])):
            for source, parents, _ in sources:
                for parent in parents.tolist():
                    yield from held_parts(circuit, rule, source, parent)


def _interval(circuit: Runtime, maker: Clipped, collect: Collect, row: int) -> Event:
    """The part of an interval that lies in a window, as an event."""
    scan = next(node for node in walk(collect.pattern) if isinstance(node, Scan))
    view, decode = maker.out, circuit.tables.dictionary.decode
    start, end = (int(view.table.data[field, row]) for field in view.labels[maker.spec.label])
    args: list[Value] = []
    for i, arg in enumerate(scan.args):
        if isinstance(arg, Const):
            args.append(arg.value)
        elif isinstance(arg, Var | Wild):
            name = arg.name if isinstance(arg, Var) else f"#{i}"
            args.append(decode(int(view.table.data[view.vars[name], row])))
    return Event(scan.type, tuple(args), start, end, content_id(scan.type, tuple(args), start, end))
