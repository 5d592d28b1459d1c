"""Distances on the sphere, made of sums, products and roots alone: the same on every machine, one by one and in columns."""

from __future__ import annotations

import math
from typing import Any

from augury.core.arrays import Array, Floats

EARTH_KM = 6378.137  # the radius of E 9.1
_RAD = math.pi / 180


def distance_km(lat1: float, lon1: float, lat2: float, lon2: float) -> Any:
    """The haversine formula (43) of E 9.1, with differences taken in degrees, where they are nearly exact."""
    across = math.fmod(abs(math.fmod(lon1, 360) - math.fmod(lon2, 360)), 360)
    up, over = _sin_degrees(abs(lat1 - lat2) / 2), _sin_degrees(min(across, 360 - across) / 2)
    a = min(up * up + _sin_degrees(90 - abs(lat1)) * _sin_degrees(90 - abs(lat2)) * (over * over), 1.0)
    s = math.sqrt(a)
    if s < 0.5:
        return _arc_sine(s, a) * (2 * EARTH_KM)
    z = (1 - s) / 2
    return (math.pi / 2 - 2 * _arc_sine(math.sqrt(z), z)) * (2 * EARTH_KM)


def _sin_degrees(x: float) -> Any:
    """The sine of 0 to 90 degrees."""
    return _sine(x * _RAD) if x <= 45 else _cosine((90 - x) * _RAD)


def distances_km(lat1: Array, lon1: Array, lat2: Array, lon2: Array) -> Floats:
    """`distance_km` of columns; NaN where there is none."""
    import numpy as np

    def sin_degrees(x: Array) -> Floats:
        sine: Array = np.where(x <= 45, _sine(x * _RAD), _cosine((90 - x) * _RAD))
        return sine

    if any(np.asarray(c).dtype.kind not in "iuf" for c in (lat1, lon1, lat2, lon2)):
        raise TypeError("a column that is not of numbers")
    phi1, turn1, phi2, turn2 = (np.asarray(c, np.float64) for c in (lat1, lon1, lat2, lon2))
    with np.errstate(all="ignore"):
        across = np.fmod(np.abs(np.fmod(turn1, 360) - np.fmod(turn2, 360)), 360)
        up, over = sin_degrees(np.abs(phi1 - phi2) / 2), sin_degrees(np.minimum(across, 360 - across) / 2)
        a = up * up + sin_degrees(90 - np.abs(phi1)) * sin_degrees(90 - np.abs(phi2)) * (over * over)
        a = np.minimum(a, 1.0)
        s = np.sqrt(a)
        near = s < 0.5
        z = np.where(near, a, (1 - s) / 2)
        arc = _arc_sine(np.where(near, s, np.sqrt(z)), z)
        found = np.where(near, arc, math.pi / 2 - 2 * arc) * (2 * EARTH_KM)
    return np.where((np.abs(phi1) <= 90) & (np.abs(phi2) <= 90), found, np.nan)


# The polynomials of fdlibm, of a number or a column: sine and cosine up to 45 degrees, arc sine up to a half


def _sine(x: Any) -> Any:
    z = x * x
    r = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))  # fmt: skip
    return x + x * z * (-1.66666666666666324348e-01 + z * r)


def _cosine(x: Any) -> Any:
    z = x * x
    r = 4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))))  # fmt: skip
    return 1 - (z / 2 - z * z * r)


def _arc_sine(x: Any, z: Any) -> Any:
    """The arc sine of x, whose square is z."""
    p = z * (1.66666666666666657415e-01 + z * (-3.25565818622400915405e-01 + z * (2.01212532134862925881e-01 + z * (-4.00555345006794114027e-02 + z * (7.91534994289814532176e-04 + z * 3.47933107596021167570e-05)))))  # fmt: skip
    q = 1 + z * (-2.40339491173441421878e00 + z * (2.02094576023350569471e00 + z * (-6.88283971605453293030e-01 + z * 7.70381505559019352791e-02)))  # fmt: skip
    return x + x * (p / q)
