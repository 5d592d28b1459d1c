"""Functions and aggregates from Python; their types come from annotations or from arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import wraps
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from augury.algebra.aggregates import AggregateFunction
from augury.algebra.scalar import TYPES, Function, RowError, array_of_objects
from augury.core.clock import Duration, Timestamp
from augury.core.errors import RunError, counted, nearest
from augury.core.model import Iri, Term, show_value


def function(
    python: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    types: Iterable[object] | None = None,
    result: object = None,
    vectorized: bool | Literal["arrow", "numpy"] = False,
    vectorised: bool = False,
    pure: bool = True,
) -> Any:
    """Makes a Python function usable in rules; types are read from its annotations, or given.

    A type is one of the language, such as "timestamp", or one of Python: float, str, datetime, …. Parameters with a default
    may be left out. A `vectorized` function is given Arrow arrays, an element for each row, and gives an array as long;
    with `vectorized="numpy"` they are NumPy arrays (`vectorised=True` is the older name of this). One that reads a clock, a service or a random number is not `pure`: it is called for each row that asks for it, and a replay may
    differ from the first run.

    >>> @function
    ... def index(t: float, h: float) -> float:
    ...     return t + h
    >>> function(math.hypot, types=("float", "float"), result="float").types
    ('float', 'float')
    """

    def register(call: Callable[..., object]) -> Function:
        called = _rule_name("function", call, name)
        where = f"the function `{called}`"
        given_types = None if types is None else (types,) if isinstance(types, str | type) else tuple(types)
        parameters = _parameters(call, where, given_types)
        declared = _annotated(call, parameters) if given_types is None else given_types
        variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        optional = sum(p.default is not p.empty for p in parameters) + variadic
        gives = _return_annotation(call) if result is None else result
        arrays = _arrays(vectorized, vectorised, where)
        return Function(
            called,
            tuple(type_of(t, where, given_types is not None) for t in declared),
            type_of(gives, where, result is not None),
            call if arrays == "arrow" else _opening(call, declared, _opened_all if arrays else _opened),
            (getattr(call, "__doc__", "") or "").strip(),
            optional,
            variadic,
            registered=True,
            vectorised=bool(arrays),
            arrow=arrays == "arrow",
            pure=pure,
        )

    return register(python) if python is not None else register


def aggregate(
    python: Callable[[Any], Any] | None = None,
    *,
    name: str | None = None,
    argument: object = None,
    result: object = None,
    vectorized: bool | Literal["arrow", "numpy"] = False,
    vectorised: bool = False,
    pure: bool = True,
) -> Any:
    """Makes a Python function of a list usable as an aggregate; types are read from its annotations, or given.

    `argument` is the type of a single value. A `vectorized` aggregate is given an Arrow array; with `vectorized="numpy"`
    (`vectorised=True` is the older name of this) a NumPy array: of numbers or booleans where all values are, else of
    objects. One that is not `pure` may give something else for the same values.

    >>> @aggregate
    ... def median(values: list[float]) -> float:
    ...     return sorted(values)[len(values) // 2]
    >>> median.argument, median.result
    ('number', 'number')
    """

    def register(call: Callable[[object], object]) -> AggregateFunction:
        called = _rule_name("aggregate", call, name)
        where = f"the aggregate `{called}`"
        takes = _element(call, where) if argument is None else argument
        gives = _return_annotation(call) if result is None else result
        arrays = _arrays(vectorized, vectorised, where)
        return AggregateFunction(
            called,
            type_of(takes, where, argument is not None),
            type_of(gives, where, result is not None),
            call if arrays == "arrow" else _opening(call, [takes], _opened_all),
            (getattr(call, "__doc__", "") or "").strip(),
            registered=True,
            vectorised=bool(arrays),
            arrow=arrays == "arrow",
            pure=pure,
        )

    return register(python) if python is not None else register


def _arrays(vectorized: object, vectorised: bool, where: str) -> str:
    """Which arrays a function takes: those of Arrow, of NumPy, or none."""
    if vectorized not in (False, True, "arrow", "numpy"):
        raise RunError(f"vectorized={vectorized!r} in {where}", hint='it is True, "arrow" or "numpy"')
    if not vectorized:
        return "numpy" if vectorised else ""
    return "numpy" if vectorized == "numpy" else "arrow"


def _rule_name(what: str, call: Callable[..., object], name: str | None) -> str:
    """The name by which rules call something from Python."""
    if not callable(call):
        raise RunError(f"{call!r} is not a Python function", hint=f"decorate a function with @augury.{what}")
    result = getattr(call, "__name__", type(call).__name__) if name is None else name
    if not re.fullmatch(r"[^\W\d_]\w*", str(result)):
        raise RunError(
            f"rules cannot call a{'n' if what[0] in 'aeiou' else ''} {what} `{result}`",
            hint='a name begins with a letter and has letters, digits and `_`; give one with name="…"',
        )
    return str(result)


def _parameters(call: Callable[..., object], where: str, types: Sequence[object] | None) -> list[inspect.Parameter]:
    """The positional parameters of a function."""
    try:
        signature = inspect.signature(call)
    except (ValueError, TypeError):
        if types is None:
            raise RunError(f"Python has no signature for {where}", hint=_GIVE_TYPES) from None
        return []
    result: list[inspect.Parameter] = []
    for p in signature.parameters.values():
        if p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD:
            result.append(p)
        elif p.kind is p.KEYWORD_ONLY and p.default is p.empty:
            hint = f"give `{p.name}` a default, or move it before the `*`"
            raise RunError(f"{where} needs `{p.name}` by name, but rules give arguments by position", hint=hint)
    return result if types is None else _typed(result, where, len(types))


def _typed(parameters: list[inspect.Parameter], where: str, count: int) -> list[inspect.Parameter]:
    """The parameters that so many types are for; those with a default may go without."""
    variadic = bool(parameters) and parameters[-1].kind is inspect.Parameter.VAR_POSITIONAL
    if variadic and count > len(parameters):
        return []  # it takes just as many as there are types
    if count > len(parameters) or any(
        p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters[count:]
    ):
        hint = "give one type for each parameter; that of *args holds for the rest"
        raise RunError(f"{where} has {counted(len(parameters), 'parameter')}, but {counted(count, 'type')}", hint=hint)
    return parameters[:count]


def _element(call: Callable[[object], object], where: str) -> object:
    """The type of the elements of a function's list, as it is annotated."""
    try:
        parameters = list(inspect.signature(call).parameters.values())
        inspect.signature(call).bind([])
    except ValueError:  # some functions of C do not tell
        return Any
    except TypeError:
        raise RunError(f"{where} must take one argument, the list of the values") from None
    inside = [t for t in get_args(_annotated(call, parameters[:1])[0]) if t is not Ellipsis]
    return inside[0] if len(inside) == 1 else Any


# Types

_PYTHON = {
    int: "int", float: "number", str: "string", bool: "bool", list: "list", tuple: "list", Iri: "iri", Term: "term",
    datetime: "timestamp", Timestamp: "timestamp", timedelta: "duration", Duration: "duration",
}  # fmt: skip
_GIVE_TYPES = 'give them: function(types=("float", "string"), result="float")'


def _annotated(call: Callable[..., object], parameters: Iterable[inspect.Parameter]) -> tuple[object, ...]:
    return tuple(_evaluated(p.annotation, call) for p in parameters)


def _return_annotation(call: Callable[..., object]) -> object:
    try:
        return _evaluated(inspect.signature(call).return_annotation, call)
    except (ValueError, TypeError):
        return inspect.Parameter.empty


def _evaluated(annotation: object, call: Callable[..., object]) -> object:
    """The type that an annotation written as text names; the text itself where it names a type of the language."""
    plain = inspect.unwrap(call)
    scope = getattr(plain, "__globals__", None) or getattr(type(plain).__call__, "__globals__", {})
    for _ in range(2):  # text may be quoted once more, to be read later
        if isinstance(annotation, str) and annotation not in TYPES:
            with suppress(Exception):
                annotation = eval(annotation, scope)
    return annotation


def type_of(annotation: object, where: str, declared: bool = False) -> str:
    """The type of the language that an annotation or a declaration stands for; any, where only Python knows it.

    The float of an annotation is a number, since an integer may stand for it; a declared one is a float.
    """
    if isinstance(annotation, str):
        if annotation not in TYPES:
            guess = nearest(annotation, TYPES)
            meant = f"did you mean `{guess}`? " if guess else ""
            raise RunError(f"`{annotation}` is not a type, in {where}", hint=f"{meant}the types are {', '.join(TYPES)}")
        return "number" if annotation == "float" and not declared else annotation
    kinds = {"float" if declared and t is float else _python_type(t) for t in _options(annotation)}
    if declared and kinds == {"any"} and annotation is not Any:
        raise RunError(f"{annotation!r} is not a type, in {where}", hint=f"the types are {', '.join(TYPES)}")
    return kinds.pop() if len(kinds) == 1 else "number" if kinds <= {"int", "float", "number"} and kinds else "any"


def _python_type(annotation: object) -> str:
    plain = get_origin(annotation) or annotation
    return next((name for python, name in _PYTHON.items() if python is plain), "any")


def _options(annotation: object) -> tuple[Any, ...]:
    """The types of a union but for None, which every type allows."""
    if get_origin(annotation) in (Union, UnionType):
        return tuple(t for t in get_args(annotation) if t is not NoneType)
    return (annotation,)


# Times


def _opening(
    call: Callable[..., object], declared: Sequence[object], opened: Callable[[object], object]
) -> Callable[..., Any]:
    """A function that is given datetime and timedelta of Python where it asks for them."""
    asks = [any(t is datetime or t is timedelta for t in _options(each)) for each in declared]
    if not any(asks):
        return call

    @wraps(call)
    def with_python_times(*args: object) -> object:
        return call(*(opened(a) if asks[min(i, len(asks) - 1)] else a for i, a in enumerate(args)))

    return with_python_times


def _opened(value: Any) -> Any:
    """A time as Python has it; other values as they are."""
    try:
        match value:
            case Timestamp():
                return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value.us)
            case Duration():
                return timedelta(microseconds=value.us)
    except OverflowError:
        raise RowError(f"{show_value(value)} is beyond the times of Python") from None
    return value


def _opened_all(values: Any) -> object:
    """Times of a list or an array as Python has them."""
    result = [_opened(v) for v in values]
    return result if isinstance(values, list) else array_of_objects(result)
