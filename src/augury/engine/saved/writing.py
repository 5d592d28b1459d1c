"""Any plain thing as a tree and a few long arrays.

The tree is JSON. What is one number, text or null stands in it as itself; all else is a list that begins with a letter:

    a  an array             g  an array of several dimensions     n  an integer beyond 64 bits    f  a float
    b  bytes                t  a tuple, of a list                 d  a dict, of two lists         o  something with a form
    l  a list, node by node
    c  a column: which of some values each row has. Columns mostly share their values, which are written once: they are
       a list, or the number of the list among those that were written already

A long list is written by columns, so that it costs what its contents cost and not what its shape does:

    I F B S  of integers, of floats, of booleans, of texts and nulls
    T        of tuples of one length: a list for each place
    R        of tuples or lists of any length: the lengths, and one list of all that is inside
    O        of things with one form: the list of what they are made of
    M        of several kinds: which kind each one is, and a list for each kind

Arrays lie in the parts, in the order in which the tree comes to them: no node can name a part, and none is read twice.
Whole numbers are stored as narrow as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from augury.core.arrays import Array
from augury.core.model import MAX_INT, MIN_INT
from augury.engine.saved.forms import FORM_OF
from augury.storage.column import Coded, DeferredColumn

# All that an array may hold, and how that is named. Never objects.
DTYPES = {
    np.dtype(f"<{name}" if name[1] != "1" else name): name
    for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "b1")
}
_FEW = 12  # things that are not worth a column
_NARROW = {"i": ("i1", "i2", "i4"), "u": ("u1", "u2", "u4")}


class Writer:
    """Makes the tree, and fills the parts."""

    def __init__(self) -> None:
        self.parts: list[Array] = []
        self._shared: dict[int, int] = {}  # values of columns, by identity

    def node(self, value: Any) -> Any:
        """One thing."""
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return value if MIN_INT <= value <= MAX_INT else ["n", format(value, "x")]
        if kind is float:
            return ["f", value.hex()]
        if kind is list:
            return self.many(value)
        if kind is tuple:
            return ["t", self.many(value)]
        if kind is dict:
            return ["d", self.many(list(value)), self.many(list(value.values()))]
        if isinstance(value, np.ndarray):
            return self.array(value)
        if isinstance(value, DeferredColumn):
            return self.node(value.resolved())
        if isinstance(value, Coded):
            return ["c", self._values(value.values), self.array(value.index)]
        if kind is bytes:
            self.parts.append(np.frombuffer(value, np.uint8))
            return ["b"]
        if isinstance(value, np.generic):
            return self.node(value.item())
        form = FORM_OF.get(kind)
        if form is None:
            raise TypeError(f"{kind.__name__} cannot be saved")
        return ["o", form.name, self.node(form.state(value))]

    def _values(self, values: Sequence[object]) -> Any:
        if id(values) in self._shared:
            return self._shared[id(values)]
        self._shared[id(values)] = len(self._shared)
        return self.many(list(values))

    def array(self, value: Array) -> Any:
        dtype = value.dtype.newbyteorder("<")
        if dtype not in DTYPES:  # objects and texts
            return self.many(value.tolist())
        self.parts.append(_narrow(np.ascontiguousarray(value, dtype).ravel()))
        return ["a", DTYPES[dtype]] if value.ndim == 1 else ["g", DTYPES[dtype], *value.shape]

    def many(self, values: Sequence[Any]) -> Any:
        """A list."""
        if len(values) <= _FEW:
            return ["l", *map(self.node, values)]
        kinds = set(map(type, values))
        if len(kinds) == 1:
            return self._alike(values, next(iter(kinds)))
        if kinds == {str, type(None)}:
            return self._texts(values)
        order = sorted(kinds, key=lambda kind: (kind.__module__, kind.__qualname__))
        number = {kind: i for i, kind in enumerate(order)}
        self.parts.append(np.fromiter((number[type(v)] for v in values), np.uint8, len(values)))
        return ["M", *(self.many([v for v in values if type(v) is kind]) for kind in order)]

    def _alike(self, values: Sequence[Any], kind: type) -> Any:
        """A list of things of one kind."""
        if kind is str or values[0] is None:
            return self._texts(values)
        if kind is int:
            if min(values) >= MIN_INT and max(values) <= MAX_INT:
                self.parts.append(_narrow(np.array(values, np.int64)))
                return ["I"]
        elif kind is float or kind is bool:
            self.parts.append(np.array(values, kind))
            return ["F"] if kind is float else ["B"]
        elif kind is tuple and len(values[0]) and len(set(map(len, values))) == 1:
            return ["T", *(self.many([v[i] for v in values]) for i in range(len(values[0])))]
        elif kind is tuple or kind is list:
            self.parts.append(_narrow(np.fromiter(map(len, values), np.int64, len(values))))
            return ["R", kind.__name__, self.many(list(chain.from_iterable(values)))]
        elif kind in FORM_OF:
            form = FORM_OF[kind]
            return ["O", form.name, self.many([form.state(v) for v in values])]
        return ["l", *map(self.node, values)]

    def _texts(self, values: Sequence[str | None]) -> Any:
        """Lengths in characters, -1 of null, and all texts as one. A text may hold half of a surrogate pair."""
        if None in values:
            self.parts.append(_narrow(np.array([-1 if v is None else len(v) for v in values], np.int64)))
            values = [v for v in values if v is not None]
        else:
            self.parts.append(_narrow(np.fromiter(map(len, values), np.int64, len(values))))  # type: ignore[arg-type]
        text = "".join(values)  # type: ignore[arg-type]
        self.parts.append(np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8))
        return ["S"]


def _narrow(array: Array) -> Array:
    """Whole numbers in the fewest bytes that hold all of them."""
    kind = array.dtype.kind
    if kind in _NARROW and len(array) > 8:
        least, most = int(array.min()), int(array.max())
        for name in _NARROW[kind]:
            info = np.iinfo(name)
            if info.bits < 8 * array.itemsize and info.min <= least and most <= info.max:
                return array.astype(np.dtype(name).newbyteorder("<"))
    return array
