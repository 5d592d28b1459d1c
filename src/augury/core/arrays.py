"""Names for the arrays that columns, rows and kernels are made of."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]  # of any element type: mostly int64
