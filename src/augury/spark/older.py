"""What PySpark 4.0 lacks of what later ones have."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import pandas_udf

_AS_PANDAS = {pa.int64(): pd.Int64Dtype()}  # else a column with nulls is one of doubles


def arrow_udf(sql: str) -> Callable[[Callable[[pa.Array], pa.Array]], Callable[[Column], Column]]:
    """A function of an array of Arrow, by way of pandas."""

    def made(function: Callable[[pa.Array], pa.Array]) -> Callable[[Column], Column]:
        @pandas_udf(sql)  # type: ignore[call-overload, untyped-decorator]
        def through_pandas(column: pd.Series) -> pd.Series:
            return function(pa.array(column, from_pandas=True)).to_pandas(types_mapper=_AS_PANDAS.get)

        return through_pandas  # type: ignore[no-any-return]

    return made
