"""`station(S, A, B), distance_km(A, B, X, Y) < 50`: facts that are near, found by an index of the sphere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.nodes import Compare, Condition, Holds
from augury.algebra.scalar import FUNCTIONS
from augury.algebra.terms import Apply, Expr, Var, is_pure, variables
from augury.core.arrays import Array, Codes
from augury.knowledge.near import PointIndex, placed

if TYPE_CHECKING:
    from augury.knowledge.knowledge_base import Knowledge
    from augury.knowledge.solving.relation import FactRelation
    from augury.storage.conditions import Context
    from augury.storage.frame import Frame


def near_by(
    knowledge: Knowledge,
    context: Context,
    where: Sequence[Condition],
    frame: Frame,
    shown: Callable[[Array], Array],
) -> tuple[Compare, Frame] | None:
    """Meets the first condition, which asks for facts, together with one on how near they are; None where there is none.

    Both hold, or fail, for the same rows as one after the other. `shown` makes codes of the context of those of knowledge.
    """
    condition = where[0]
    if (
        not isinstance(condition, Holds)
        or condition.was
        or any(variables(a) & frame.vars.keys() for a in condition.args)
    ):
        return None
    if context.scalars.functions.get("distance_km") is not FUNCTIONS["distance_km"]:
        return None
    for compare in where[1:]:
        if not isinstance(compare, Compare):
            continue
        if not is_pure(compare.left, compare.right):
            return None
        asked = _question(compare, condition, frame)
        if asked is not None:
            places, lat, lon, km, strict = asked
            near = _facts_near(knowledge, context, condition, places, (lat, lon, km), strict, frame)
            if near is None:
                return None
            which, columns = near
            return compare, context.answered(condition, frame, which, [shown(c) for c in columns])
    return None


def _question(
    compare: Compare, condition: Holds, frame: Frame
) -> tuple[tuple[int, int], Expr, Expr, Expr, bool] | None:
    """Which arguments of the facts are a place, near what, how near, and whether nearer than that."""
    op, left, right = compare.op, compare.left, compare.right
    if op in (">", ">="):
        op, left, right = {">": "<", ">=": "<="}[op], right, left  # type: ignore[assignment]
    if op not in ("<", "<=") or not isinstance(left, Apply) or left.function != "distance_km" or len(left.args) != 4:
        return None
    for item, other in ((left.args[:2], left.args[2:]), (left.args[2:], left.args[:2])):
        if not all(isinstance(a, Var) and condition.args.count(a) == 1 for a in item) or item[0] == item[1]:
            continue
        if variables(*other, right) <= frame.vars.keys():
            places = (condition.args.index(item[0]), condition.args.index(item[1]))
            return places, other[0], other[1], right, op == "<"
    return None


def _facts_near(
    knowledge: Knowledge,
    context: Context,
    condition: Holds,
    places: tuple[int, int],
    asked: tuple[Expr, Expr, Expr],
    strict: bool,
    frame: Frame,
) -> tuple[Array, list[Array]] | None:
    relation = knowledge.relations.get((condition.name, len(condition.args)))
    if (condition.name, len(condition.args)) in knowledge.clauses or relation is None:
        return None
    index = index_of(knowledge, relation, places)
    numbers = [context.vector(expr, frame) for expr in asked]
    if index is None or any(n is None or n[0] != "n" for n in numbers):
        return None
    lat, lon, km = (np.broadcast_to(n[1], (len(frame),)).astype(np.float64) for n in numbers if n is not None)
    if not placed(lat, lon).all():
        return None  # row by row it is said what is wrong
    which, rows = index.within(lat, lon, km, strict)
    held = relation.holding(rows, frame.end[which])
    which, rows = which[held], rows[held]
    return which, [relation.rows.data[i, rows] for i in range(relation.arity)]


def index_of(knowledge: Knowledge, relation: FactRelation, places: tuple[int, int]) -> PointIndex | None:
    """The index of two columns of facts; None where some of them is no place on the sphere."""
    key, n = (relation.name, relation.arity, *places), relation.rows.n
    seen, index = knowledge.near.get(key, (0, PointIndex()))
    if index is not None and seen < n:
        lat, lon = (knowledge.words.numeric(_as_floats(relation.rows.data[i, seen:n])) for i in places)
        if lat is None or lon is None or not placed(lat, lon).all():
            index = None
        else:
            index.add(lat, lon)
    knowledge.near[key] = (n, index)
    return index


def _as_floats(codes: Codes) -> Array:
    """Codes in which 12 and 12.0 are both floats: a column of places may have both."""
    whole = (codes & 1) == 0
    return np.where(whole, codes | 2, codes)
