"""Names for the arrays that columns, tables and kernels are made of.

Row ids and numbers come from NumPy as `intp` or `int64`; both are integers here.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]  # of any element type
Integers: TypeAlias = NDArray[np.signedinteger[Any]]
RowIds: TypeAlias = Integers  # rows of a table
Codes: TypeAlias = Integers  # values as a dictionary codes them
Times: TypeAlias = Integers  # time points
RowData: TypeAlias = Integers  # the data of a table: fields by rows
Mask: TypeAlias = NDArray[np.bool_]
Flags: TypeAlias = NDArray[np.uint8]  # booleans that are stored, such as which rows are alive
Bytes: TypeAlias = NDArray[np.uint8]  # text in UTF-8
Floats: TypeAlias = NDArray[np.float64]
Hashes: TypeAlias = NDArray[np.uint64]
