"""From the tree and the arrays of `writing.py` back to what was saved.

Each part is taken once, in order, so what is made is at most a small multiple of the bytes that are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np

from augury.core.arrays import Array
from augury.engine.saved.corrupt import CorruptSnapshot, require
from augury.engine.saved.forms import FORM_NAMED, Form, are_values, coded
from augury.engine.saved.writing import DTYPES

_NAMED = {name: dtype for dtype, name in DTYPES.items()}


class SnapshotReader:
    """Reads nodes, and takes the parts as it comes to them."""

    def __init__(self, parts: list[Array]) -> None:
        self._parts: Iterator[Array] = iter(parts)
        self._shared: list[list[Any]] = []

    @property
    def done(self) -> bool:
        return next(self._parts, None) is None

    def _part(self, kinds: str) -> Array:
        part = next(self._parts, None)
        require(part is not None, "a part is missing")
        assert part is not None
        require(part.dtype.kind in kinds, "a part has another type")
        return part

    def _whole(self) -> Array:
        return self._part("i").astype(np.int64)

    def value(self, node: Any) -> Any:
        """One thing."""
        if node is None or type(node) in (bool, int, str):
            return node
        require(isinstance(node, list) and node and isinstance(node[0], str), "an invalid node")
        letter, *rest = node
        match letter, rest:
            case "n", [str(digits)]:
                return int(digits, 16)
            case "f", [str(digits)]:
                return float.fromhex(digits)
            case "b", []:
                return self._bytes().tobytes()
            case "t", [inside]:
                return tuple(self.many(inside))
            case "d", [keys, values]:
                names = self.many(keys)
                fields = dict(zip(names, self.many(values), strict=True))
                require(len(fields) == len(names), "a name occurs twice")
                return fields
            case "o", [str(name), state]:
                return _form(name).make(self.value(state))
            case "a", [str(name)]:
                return self._array(name)
            case "c", [values, ["a", str(name)]]:
                return coded(self._values(values), self._array(name))
            case "g", [str(name), *shape]:
                require(len(shape) <= 4 and all(type(n) is int and n >= 0 for n in shape), "an impossible shape")
                return self._array(name).reshape(shape)
        return self.many(node)

    def _values(self, node: object) -> list[Any]:
        """The values of a column, which are looked at once, however many columns have them."""
        if type(node) is int:
            require(0 <= node < len(self._shared), "values that are not there")
            return self._shared[node]
        number = len(self._shared)
        self._shared.append([])
        self._shared[number] = values = self.many(node)
        require(are_values(values), "invalid values")
        return values

    def _bytes(self) -> Array:
        part = self._part("u")
        require(part.dtype.itemsize == 1, "a part has another type")
        return part

    def _array(self, name: str) -> Array:
        require(name in _NAMED, "an array of an unknown type")
        dtype, part = _NAMED[name], self._part(_NAMED[name].kind)
        require(part.dtype.itemsize <= dtype.itemsize, "an array of another type")
        if dtype.kind == "b":
            require(not len(part) or int(part.view(np.uint8).max()) <= 1, "an invalid boolean")
        return part.astype(dtype.newbyteorder("="))

    def many(self, node: Any) -> list[Any]:
        """A list, however it was written."""
        require(isinstance(node, list) and node, "an invalid list")
        letter, *rest = node
        match letter, rest:
            case "l", _:
                return [self.value(item) for item in rest]
            case "I", []:
                return self._whole().tolist()  # type: ignore[no-any-return]
            case "F", []:
                return self._array("f8").tolist()  # type: ignore[no-any-return]
            case "B", []:
                return self._array("b1").tolist()  # type: ignore[no-any-return]
            case "S", []:
                return self._texts()
            case "T", [_, *_]:
                return list(zip(*[self.many(item) for item in rest], strict=True))
            case "R", [("tuple" | "list") as kind, inside]:
                return self._ragged(tuple if kind == "tuple" else list, inside)
            case "O", [str(name), states]:
                make = _form(name).make
                return [make(state) for state in self.many(states)]
            case "M", [_, *_]:
                return self._mixed(rest)
        raise CorruptSnapshot("a list of an unknown kind")

    def _texts(self) -> list[Any]:
        lengths = self._whole()
        text = self._bytes().tobytes().decode("utf-8", "surrogatepass")
        ends = _ends(np.maximum(lengths, 0), len(text))
        null = len(lengths) and int(lengths.min()) < 0
        starts = [0, *ends[:-1]]
        strings: list[Any] = [text[a:b] for a, b in zip(starts, ends, strict=True)] if ends else []
        return [None if n < 0 else t for n, t in zip(lengths.tolist(), strings, strict=True)] if null else strings

    def _ragged(self, kind: type, inside: object) -> list[Any]:
        lengths = self._whole()
        require(not len(lengths) or int(lengths.min()) >= 0, "a length below zero")
        flat = self.many(inside)
        ends = _ends(lengths, len(flat))
        return [kind(flat[a:b]) for a, b in zip([0, *ends[:-1]], ends, strict=True)] if ends else []

    def _mixed(self, nodes: list[Any]) -> list[Any]:
        which = self._bytes()
        groups = [self.many(node) for node in nodes]
        counts = np.bincount(which, minlength=len(groups)).tolist()
        require(counts == list(map(len, groups)), "kinds that do not add up")
        each = [iter(group) for group in groups]
        return [next(each[i]) for i in which.tolist()]


def _form(name: str) -> Form:
    require(name in FORM_NAMED, "an object of an unknown form")
    return FORM_NAMED[name]


def _ends(lengths: Array, total: int) -> list[int]:
    """Where pieces of these lengths end, which are `total` together."""
    ends = list(accumulate(lengths.tolist()))
    require((ends[-1] if ends else 0) == total, "lengths that do not add up")
    return ends
