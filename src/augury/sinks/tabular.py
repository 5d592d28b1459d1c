"""Base class of answers: export as Arrow, pandas and Polars tables."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from augury.core.errors import RunError
from augury.sinks.answers import Answers
from augury.sinks.notebook import shown_table


class Tabular:
    """Answers that are an Arrow stream: whatever reads tables from Python takes them as they are.

    They are like sequences, but not of that class: PyArrow and Polars would take sequences for columns.
    """

    __slots__ = ()

    def as_answers(self) -> Answers:
        """The columns of the answers."""
        raise NotImplementedError

    def to_arrow(self, type: str | None = None, trace: bool = True) -> Any:
        """An Arrow table of the answers of one type, or of all.

        Where several types are outputs, all are one table with a column `type` and one for each attribute. Without `trace`
        the column of the traces is left out.
        """
        return self.as_answers().table(type, trace)

    def to_pandas(self, type: str | None = None, trace: bool = True) -> Any:
        """A pandas DataFrame of the answers of one type, or of all."""
        return self.to_arrow(type, trace).to_pandas()

    def to_polars(self, type: str | None = None, trace: bool = True) -> Any:
        """A Polars DataFrame of the answers of one type, or of all."""
        try:
            polars = import_module("polars")
        except ImportError:
            raise RunError("Polars is not installed", "pip install polars") from None
        return polars.from_arrow(self.to_arrow(type, trace))

    def _repr_html_(self) -> str:
        return shown_table(self.as_answers())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)
