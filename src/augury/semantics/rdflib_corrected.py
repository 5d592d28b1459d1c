"""Corrections of rdflib where it differs from SPARQL 1.1: arithmetic and comparison.

rdflib multiplies integers to a decimal, orders literals of any types, and takes IN for sameness of terms.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, DivisionByZero, InvalidOperation, Overflow
from types import MethodType
from typing import Any

from augury.algebra.sparql_parser import RdflibNode

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip


def corrected(algebra: RdflibNode) -> RdflibNode:
    """An algebra of rdflib whose expressions are evaluated as SPARQL has it."""
    for part in _parts(algebra):
        evaluation = _OWN.get(part.name)
        if evaluation is not None:
            part._evalfn = MethodType(evaluation, part)
    return algebra


def _parts(tree: Any) -> Iterator[Any]:
    if hasattr(tree, "name") and hasattr(tree, "items"):
        yield tree
        for key in list(tree.keys()):
            yield from _parts(dict.__getitem__(tree, key))
    elif isinstance(tree, list | tuple):
        for part in tree:
            yield from _parts(part)


def plain_term(term: object) -> Any:
    """A string is one term, whether its type is written or not."""
    import rdflib

    if isinstance(term, rdflib.Literal) and term.datatype == rdflib.XSD.string:
        return rdflib.Literal(str(term))
    return term


# Arithmetic


def _multiplicative(e: RdflibNode, _: object) -> object:
    import rdflib
    from rdflib.plugins.sparql.operators import numeric
    from rdflib.plugins.sparql.sparql import SPARQLError

    if e.other is None:
        return e.expr
    result = numeric(e.expr)
    for op, term in zip(e.op, e.other, strict=True):
        left, right = _promoted(result, numeric(term))
        try:
            if op == "*":
                result = left * right
            elif isinstance(left, float):
                result = _float_division(left, right)
            else:
                result = Decimal(left) / Decimal(right)
        except (InvalidOperation, DivisionByZero, ZeroDivisionError, Overflow):
            raise SPARQLError("no number") from None
    datatype = rdflib.XSD.double if isinstance(result, float) else None
    return rdflib.Literal(result, datatype=datatype)


def _promoted(left: Any, right: Any) -> tuple[Any, Any]:
    if isinstance(left, float) or isinstance(right, float):
        return float(left), float(right)
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return Decimal(left), Decimal(right)
    return left, right


def _float_division(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or left != left:
        return float("nan")
    return float("inf") if left > 0 else float("-inf")


def _called(e: RdflibNode, context: object) -> object:
    """A call by IRI: the casts of XSD. A number cast to an integer is cut, to a boolean it is whether it is not zero."""
    import rdflib
    from rdflib.plugins.sparql.operators import Function
    from rdflib.plugins.sparql.sparql import SPARQLError

    operand = e.expr[0] if e.expr else None
    kind = _worth(operand)
    if kind is not None and kind[0] in ("number", "boolean"):
        try:
            if e.iri == rdflib.XSD.integer:
                return rdflib.Literal(int(kind[1]))
            if e.iri == rdflib.XSD.boolean:
                return rdflib.Literal(bool(kind[1]) and kind[1] == kind[1])
            if e.iri == rdflib.XSD.decimal:
                return rdflib.Literal(Decimal(str(float(kind[1]) if isinstance(kind[1], bool) else kind[1])))
            if e.iri in (rdflib.XSD.double, rdflib.XSD.float):
                return rdflib.Literal(float(kind[1]), datatype=e.iri)
        except (ValueError, OverflowError, InvalidOperation):
            raise SPARQLError("no number") from None
    return Function(e, context)


# Comparison


def _relational(e: RdflibNode, _: object) -> object:
    import rdflib
    from rdflib.plugins.sparql.sparql import SPARQLError

    if e.other is None:
        return e.expr
    if e.op not in ("IN", "NOT IN"):
        return rdflib.Literal(_compared(e.op, e.expr, e.other))
    error: SPARQLError | None = None
    for item in () if e.other == rdflib.RDF.nil else e.other:
        try:
            if _compared("=", e.expr, item):
                return rdflib.Literal(e.op == "IN")
        except SPARQLError as problem:
            error = problem
    if error is not None:
        raise error
    return rdflib.Literal(e.op == "NOT IN")


def _compared(op: str, left: object, right: object) -> bool:
    """Whether a comparison holds. Values of one kind are compared; other terms are the same, or that is an error."""
    import rdflib
    from rdflib.plugins.sparql.sparql import SPARQLError

    for term in (left, right):
        if not isinstance(term, rdflib.term.Node):
            raise SPARQLError("what is compared has no value")
    kinds = _worth(left), _worth(right)
    if kinds[0] is not None and kinds[1] is not None and kinds[0][0] == kinds[1][0]:
        return _ORDER[op](*_together(kinds[0][1], kinds[1][1]))
    if op not in ("=", "!="):
        raise SPARQLError("values of two kinds have no order")
    if plain_term(left) == plain_term(right):
        return op == "="
    if isinstance(left, rdflib.Literal) and isinstance(right, rdflib.Literal):
        raise SPARQLError("it is not known whether two literals are equal")
    return op == "!="


def _together(left: object, right: object) -> tuple[Any, Any]:
    return _promoted(left, right) if isinstance(left, int | float | Decimal) else (left, right)


def _worth(term: object) -> tuple[str, Any] | None:
    """The kind of value that a literal has, and the value; None where it has none that is ordered."""
    import rdflib

    if not isinstance(term, rdflib.Literal) or term.language:
        return None
    if term.datatype is None or term.datatype == rdflib.XSD.string:
        return "text", str(term)
    value = term.toPython()
    match value:
        case bool():
            return ("boolean", value) if term.datatype == rdflib.XSD.boolean else None
        case int() | Decimal() | float():
            return "number", value
        case datetime():
            return "moment", value if value.tzinfo else value.replace(tzinfo=UTC)
        case date():
            return "day", value
        case timedelta():
            return "duration", value
    return None


_OWN = {"RelationalExpression": _relational, "MultiplicativeExpression": _multiplicative, "Function": _called}
