"""The columns of a table of answers: names, and the shapes that the values of all types fit in.

Where several types are outputs, all of them are one table with the type and a column for each attribute, null where a type
has none. Attributes of one name share a column, unless their values fit in nothing but JSON: then each type has its own,
with the type in its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from augury.algebra.plan import Plan
from augury.core.errors import RunError, nearest
from augury.sinks.names import column_names, declared_types
from augury.sinks.values import Shape, ValueColumn, declared_shape, fitting, regular

if TYPE_CHECKING:
    from augury.sinks.answers import AnswerColumns

TypeColumns = list[tuple[str, Shape]]  # the names of the attributes of a type, and what their values fit in


@dataclass(frozen=True)
class ColumnLayout:
    """A column of a table, and which attribute of each type is in it."""

    name: str
    shape: Shape
    attributes: Mapping[str, int]

    def of(self, piece: AnswerColumns) -> ValueColumn | None:
        """The values of some answers in this column; None where they have no such attribute."""
        position = self.attributes.get(piece.type, len(piece.columns))
        return piece.columns[position] if position < len(piece.columns) else None


def known_output(type: str, outputs: Sequence[str]) -> str:
    """The name of an output; another one is an error."""
    if type not in outputs:
        close = nearest(type, outputs)
        there = f"did you mean `{close}`?" if close else f"there is {', '.join(outputs) or 'none'}"
        raise RunError(f"`{type}` is not an output of the program", hint=there)
    return type


def type_columns(plan: Plan, type: str, parts: Iterable[Sequence[Shape]]) -> TypeColumns:
    """The columns of a type whose parts have these shapes."""
    shapes = [[declared_shape(name)] for name in declared_types(plan, type)]
    for part in parts:
        for column, shape in zip(shapes, part, strict=False):
            column.append(shape)
    return list(zip(column_names(plan, type), map(fitting, shapes), strict=True))


def layout_of_type(type: str, columns: TypeColumns) -> list[ColumnLayout]:
    """The columns of a table of one type."""
    return [ColumnLayout(name, regular(shape), {type: i}) for i, (name, shape) in enumerate(columns)]


def layout_of(types: Mapping[str, TypeColumns]) -> list[ColumnLayout]:
    """The columns of a table of all types."""
    attributes: dict[str, dict[tuple[str, int], Shape]] = {}
    for type, columns in types.items():
        for i, (name, shape) in enumerate(columns):
            attributes.setdefault(name, {})[type, i] = shape
    result: list[ColumnLayout] = []
    for name, shapes in attributes.items():
        shape = regular(fitting(shapes.values()))
        if shape == "json" and any(regular(value_shape) != "json" for value_shape in shapes.values()):
            for (type, i), value_shape in shapes.items():
                result.append(ColumnLayout(_free(f"{name}_{type}", attributes), regular(value_shape), {type: i}))
        else:
            result.append(ColumnLayout(name, shape, dict(shapes.keys())))
    return result


def _free(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name += "_"
    return name
