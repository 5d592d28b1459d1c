"""Scalar expressions: data that can be printed, analysed, pushed down and shipped; never a lambda."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, assert_never

from augury.core.errors import NOWHERE, Span
from augury.core.model import Value, show_value


@dataclass(frozen=True)
class Var:
    """A variable."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Wild:
    """`_`: any value, another one at each occurrence."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Const:
    """A value."""

    value: Value
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True)
class Build:
    """A nested term: matched in a pattern, built in a head."""

    functor: str
    args: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Apply:
    """A function of the scalar table, arithmetic included, applied to arguments.

    One that is not `pure` may give something else the next time: it stays where it is written, and is like no other.
    """

    function: str
    args: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    pure: bool = field(default=True, repr=False)


@dataclass(frozen=True)
class Moment:
    """`start(o)`, `end(o)`, `duration(o)` or `length(o)` of the occurrence labelled `o`; a length counts time points."""

    which: Literal["start", "end", "duration", "length"]
    label: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Aggregate:
    """An aggregate over what the rule collects, or over the iterations of a part of a run; without arguments it counts."""

    function: str
    args: tuple[Expr, ...]
    distinct: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Prev:
    """`prev(of, default)`: `of` as it was one iteration earlier; in the first iteration, the default.

    It stands in the conditions that a run asks of every iteration of a repeated part (`Part.where`), nowhere else. `of`
    is made of that part's own variables, the times of its label, and what is the same in all iterations; it has no
    `Prev` and no `Aggregate` inside. `default` is evaluated at the first iteration, with all that a condition sees
    there. Without a default, the condition is not asked of the first iteration.
    """

    of: Expr
    default: Expr | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Expr: TypeAlias = Var | Wild | Const | Build | Apply | Moment | Aggregate | Prev

INFIX = ("+", "-", "*", "/", "//", "mod", "**")
_TESTS = ("=", "!=", "<", "<=", ">", ">=")
_JOINTS = {"&": " and ", "|": " or "}


def parts(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly below."""
    match expr:
        case Build() | Apply() | Aggregate():
            return expr.args
        case Prev():
            return (expr.of,) if expr.default is None else (expr.of, expr.default)
    return ()


def mapped_term(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with each of its parts changed."""
    match expr:
        case Build() | Apply() | Aggregate():
            return replace(expr, args=tuple(map(change, expr.args)))
        case Prev():
            return replace(expr, of=change(expr.of), default=None if expr.default is None else change(expr.default))
    return expr


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all its parts."""
    yield expr
    for part in parts(expr):
        yield from walk(part)


def outside_aggregates(expr: Expr) -> Iterator[Expr]:
    """The expression and its parts, as far as they are no aggregates and in none."""
    if not isinstance(expr, Aggregate):
        yield expr
        for part in parts(expr):
            yield from outside_aggregates(part)


def variables(*exprs: Expr) -> set[str]:
    return {part.name for expr in exprs for part in walk(expr) if isinstance(part, Var)}


def plain_variables(*exprs: Expr) -> set[str]:
    """The variables outside aggregates."""
    return {part.name for expr in exprs for part in outside_aggregates(expr) if isinstance(part, Var)}


def labels(*exprs: Expr) -> set[str]:
    return {part.label for expr in exprs for part in walk(expr) if isinstance(part, Moment)}


PAIR = "#pair"  # the two arguments of an aggregate as one

FILTERED = " where"  # ends the names of aggregates over pairs that filter; no program can write such a name


def is_pair(expr: Expr) -> bool:
    return isinstance(expr, Build) and expr.functor == PAIR


def computes(expr: Expr) -> bool:
    """Whether the expression makes a value that none of its variables has."""
    return any(isinstance(part, Apply | Moment | Aggregate | Prev) for part in walk(expr))


def is_pure(*exprs: Expr) -> bool:
    """Whether expressions give the same for the same values."""
    return all(part.pure for expr in exprs for part in walk(expr) if isinstance(part, Apply))


def _show_filtered(name: str, value: Expr, by: Expr) -> str:
    """`list(V where c)`, which is an aggregate of pairs `(V, if(c, 1, null))`, and `nth(V, 2 where c)`."""
    assert isinstance(by, Apply)
    condition, mark, _ = by.args
    second = f", {show(mark)}" if name == "nth" else ""
    return f"{name}({show(value)}{second} where {show(condition)})"


def show(expr: Expr, outer: int = 0) -> str:
    """An expression as the rule language writes it, with no more parentheses than needed."""
    match expr:
        case Var():
            return expr.name
        case Wild():
            return "_"
        case Const():
            return show_value(expr.value)
        case Moment():
            return f"{expr.which}({expr.label})"
        case Aggregate():
            args = expr.args[0].args if expr.args and is_pair(expr.args[0]) else expr.args  # type: ignore[union-attr]
            if expr.function.endswith(FILTERED):
                return _show_filtered(expr.function.removesuffix(FILTERED), *args)
            inner = ", ".join(show(a) for a in args)
            return f"{expr.function}({'distinct ' if expr.distinct else ''}{inner})"
        case Prev():
            return f"prev({', '.join(show(e) for e in (expr.of, expr.default) if e is not None)})"
        case Build():
            return f"{expr.functor}({', '.join(show(a) for a in expr.args)})"
        case Apply():
            if expr.function in _TESTS:
                return f" {expr.function} ".join(show(a) for a in expr.args)
            if expr.function in _JOINTS:
                text = _JOINTS[expr.function].join(show(a, 1) for a in expr.args)
                return f"({text})" if outer else text
            if expr.function in INFIX and len(expr.args) == 2:
                level = {"+": 1, "-": 1, "**": 3}.get(expr.function, 2)
                left, right = expr.args
                # Left-associative, except the power: its left operand is the tighter one.
                bump = (1, 0) if expr.function == "**" else (0, 1)
                text = f"{show(left, level + bump[0])} {expr.function} {show(right, level + bump[1])}"
                return f"({text})" if level < outer else text
            if expr.function == "-" and len(expr.args) == 1:
                text = f"-{show(expr.args[0], 3)}"
                return f"({text})" if outer > 2 else text
            return f"{expr.function}({', '.join(show(a) for a in expr.args)})"
        case _:
            assert_never(expr)
