"""Requests of the page: JSON as dataclasses, each field of its type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


class RequestRefused(Exception):
    """A request that is not answered: its status and the message."""

    def __init__(self, status: int, message: str, **more: object) -> None:
        self.status, self.message, self.more = status, message, more
        super().__init__(message)


def read_request(kind: type[T], body: object) -> T:
    """A dataclass from the JSON of a request: its fields, each of its type."""
    if not isinstance(body, Mapping):
        raise RequestRefused(400, "the request is not an object")
    hints = get_type_hints(kind)
    names = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(map(str, body)) - names):
        raise RequestRefused(400, f"unknown field `{unknown[0][:60]}`: there is {', '.join(sorted(names)) or 'none'}")
    values: dict[str, Any] = {}
    for item in fields(kind):  # type: ignore[arg-type]
        if item.name in body:
            values[item.name] = _value(hints[item.name], body[item.name], item.name)
        elif item.default is MISSING and item.default_factory is MISSING:
            raise RequestRefused(400, f"the field `{item.name}` is missing")
    return kind(**values)


def _value(hint: Any, value: object, name: str) -> object:
    if get_origin(hint) is UnionType:
        choices = get_args(hint)
        if value is None and NoneType in choices:
            return None
        return _value(next(choice for choice in choices if choice is not NoneType), value, name)
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise RequestRefused(400, f"the field `{name}` is not a list")
        return tuple(_value(get_args(hint)[0], item, name) for item in value)
    if get_origin(hint) is dict:
        if not isinstance(value, dict):
            raise RequestRefused(400, f"the field `{name}` is not an object")
        return {key: _value(get_args(hint)[1], item, f"{name}.{key[:60]}") for key, item in value.items()}
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return read_request(hint, value)
    if type(value) is not hint:
        raise RequestRefused(400, f"the field `{name}` is not {_WORDS[hint]}")
    if hint is int and abs(value) > 2**62:  # type: ignore[arg-type]
        raise RequestRefused(400, f"the field `{name}` is beyond 62 bits")
    return value


_WORDS = {int: "an integer", str: "a text", bool: "true or false"}
