"""The functions of SPARQL on single terms, one row each. What a function does not take is an `ExpressionError`.

How many arguments a function takes is for the grammar to say. Those whose answer is not decided by their arguments (NOW, RAND,
UUID, …) are refused there.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction
from functools import lru_cache, partial
from typing import TypeVar
from urllib.parse import quote, urljoin

from augury.algebra.sparql_algebra import (
    BOOLEAN,
    LANG_STRING,
    STRING,
    Blank,
    Literal,
    RdfTerm,
    Triple,
)
from augury.core.model import Iri
from augury.graphs import lexical as lex
from augury.graphs.lexical import RANKED, RANKS, LexicalTime, Number, family, literal_of, moment_of, number_of, of_rank


class ExpressionError(Exception):
    """An expression has no value: SPARQL's error, which makes a filter fail and leaves a variable unbound."""


# What arguments are

T = TypeVar("T")


def known(value: T | None, fits: bool = True) -> T:
    """The argument, if it is of the kind that a function takes."""
    if value is None or not fits:
        raise ExpressionError
    return value


def literal(term: RdfTerm) -> Literal:
    return known(term if isinstance(term, Literal) else None)


def text(term: RdfTerm) -> Literal:
    """A literal that is a text: a plain one, or one with a language."""
    result = literal(term)
    return known(result, result.datatype in (STRING, LANG_STRING))


def plain(term: RdfTerm) -> str:
    result = literal(term)
    return known(result.text, result.datatype == STRING)


def number(term: RdfTerm) -> Number:
    result = number_of(literal(term))
    if result is None:
        raise ExpressionError
    return result


def rank(term: RdfTerm) -> int:
    return RANKS[literal(term).datatype]


def moment(term: RdfTerm) -> LexicalTime:
    return known(moment_of(literal(term)))


def same_kind(first: RdfTerm, second: RdfTerm) -> tuple[str, str]:
    """Two texts of which the second can be looked for in the first: it is plain, or of the same language."""
    a, b = text(first), text(second)
    if b.language and a.language != b.language:
        raise ExpressionError
    return a.text, b.text


def like(model: RdfTerm, string: str) -> Literal:
    """A text in the language of another."""
    model_literal = text(model)
    return Literal(string, model_literal.datatype, model_literal.language)


# Truth and comparison


def truth(term: RdfTerm) -> bool:
    """The effective boolean value."""
    result = literal(term)
    if result.datatype == STRING or result.datatype == LANG_STRING:
        return bool(result.text)
    if result.datatype == BOOLEAN:
        return bool(lex.boolean_of(result))
    if result.datatype in RANKS:
        value = number_of(result)
        return value is not None and value == value and value != 0
    raise ExpressionError


def equal(a: RdfTerm, b: RdfTerm) -> bool:
    """`=`: by value where both have one that is known; an error where one has none and they are not the same term."""
    if a == b and not (isinstance(a, Literal) and a.text == "NaN"):
        return True
    if isinstance(a, Triple) and isinstance(b, Triple):
        return equal(a.subject, b.subject) and equal(a.predicate, b.predicate) and equal(a.object, b.object)
    if not (isinstance(a, Literal) and isinstance(b, Literal)):
        return False
    (kind_a, value_a), (kind_b, value_b) = family(a), family(b)
    if "other" in (kind_a, kind_b):
        raise ExpressionError
    return kind_a == kind_b and value_a == value_b


def less(a: RdfTerm, b: RdfTerm) -> bool:
    """`<`: of two numbers, texts, booleans or times."""
    (kind_a, value_a), (kind_b, value_b) = family(literal(a)), family(literal(b))
    if kind_a != kind_b or kind_a == "other" or (kind_a == "lang" and value_a[0] != value_b[0]):  # type: ignore[index]
        raise ExpressionError
    return bool(value_a < value_b)  # type: ignore[operator]


def _compare(operator: str) -> Callable[[RdfTerm, RdfTerm], Literal]:
    tests: dict[str, Callable[[RdfTerm, RdfTerm], bool]] = {
        "=": equal,
        "!=": lambda a, b: not equal(a, b),
        "<": less,
        ">": lambda a, b: less(b, a),
        "<=": lambda a, b: less(a, b) or equal(a, b),
        ">=": lambda a, b: less(b, a) or equal(a, b),
    }
    test = tests[operator]
    return lambda a, b: literal_of(test(a, b))


# Arithmetic


def _arithmetic(operator: str) -> Callable[[RdfTerm, RdfTerm], Literal]:
    def compute(a: RdfTerm, b: RdfTerm) -> Literal:
        times = _times(operator, a, b) if operator in "+-" else None
        if times is not None:
            return times
        x, y = number(a), number(b)
        highest = max(rank(a), rank(b))
        try:
            return of_rank(*_computed(operator, x, y, highest))
        except (InvalidOperation, DivisionByZero, Overflow, ZeroDivisionError, OverflowError):
            raise ExpressionError from None

    return compute


def _computed(operator: str, x: Number, y: Number, highest: int) -> tuple[Number, int]:
    if highest >= 2:
        return _double(operator, float(x), float(y)), highest
    if highest == 1 or operator == "/":
        p, q = Decimal(x), Decimal(y)
        return {"+": p.__add__, "-": p.__sub__, "*": p.__mul__, "/": p.__truediv__}[operator](q), 1
    assert isinstance(x, int) and isinstance(y, int)
    return {"+": x.__add__, "-": x.__sub__, "*": x.__mul__}[operator](y), 0


def _double(operator: str, x: float, y: float) -> float:
    """Arithmetic of doubles, in which a division by zero is infinite, or no number."""
    match operator:
        case "+":
            return x + y
        case "-":
            return x - y
        case "*":
            return x * y
    if y:
        return x / y
    return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1, y)


def _times(operator: str, a: RdfTerm, b: RdfTerm) -> Literal | None:
    """A time and a duration, or two times; None where there is no time among them."""
    first, second = literal(a), literal(b)
    left, right = moment_of(first), moment_of(second)
    if operator == "-" and left is not None and right is not None:
        if first.datatype != second.datatype:
            raise ExpressionError
        return _duration(left.seconds - right.seconds)
    if left is not None and (length := lex.duration_of(second)) is not None:
        return _shifted(first, left, length if operator == "+" else (-length[0], -length[1]))
    if right is not None and operator == "+" and (length := lex.duration_of(first)) is not None:
        return _shifted(second, right, length)
    return None


def _duration(seconds: int | Fraction) -> Literal:
    if seconds.denominator != 1:
        raise ExpressionError
    return Literal(lex.day_time(timedelta(seconds=int(seconds))), lex.DAY_TIME_DURATION)


def _shifted(written: Literal, time: LexicalTime, length: tuple[int, Fraction]) -> Literal:
    months, seconds = length
    if (
        months
        or time.local is None
        or written.datatype == lex.TIME
        or (Fraction(time.second) % 1)
        or seconds.denominator != 1
    ):
        raise ExpressionError
    try:
        shifted = time.local + timedelta(seconds=int(seconds))
    except OverflowError:
        raise ExpressionError from None
    shown = shifted.isoformat() if written.datatype == lex.DATE_TIME else shifted.date().isoformat()
    return Literal(shown + time.zone, written.datatype)


def _unary(sign: int) -> Callable[[RdfTerm], Literal]:
    return lambda a: of_rank(number(a) if sign > 0 else -number(a), rank(a))


def _rounded(how: Callable[[Number], Number]) -> Callable[[RdfTerm], Literal]:
    def compute(a: RdfTerm) -> Literal:
        value = number(a)
        if isinstance(value, float) and not math.isfinite(value):
            return literal(a)
        return of_rank(how(value), rank(a))

    return compute


def _round(value: Number) -> Number:
    """To the nearest whole number; of two that are as near, to the greater one."""
    if isinstance(value, float):
        return float(math.floor(Fraction(value) + Fraction(1, 2)))
    return Decimal(math.floor(Fraction(value) + Fraction(1, 2))) if isinstance(value, Decimal) else value


def _whole(value: Number, rounding: str) -> Number:
    if isinstance(value, Decimal):
        return value.to_integral_value(rounding)
    return (
        float(math.ceil(value) if rounding == ROUND_CEILING else math.floor(value))
        if isinstance(value, float)
        else value
    )


# Texts


def _substring(a: RdfTerm, start: RdfTerm, length: RdfTerm | None = None) -> Literal:
    """The characters whose places, from one, are within `start` up to `start + length`, both rounded."""
    begin = float(_round(number(start)))
    end = math.inf if length is None else begin + float(_round(number(length)))
    result = text(a).text
    if math.isnan(begin) or math.isnan(end):
        return like(a, "")
    first = 0 if begin < 1 else min(len(result), int(begin) - 1) if begin < math.inf else len(result)
    last = len(result) if end == math.inf else max(first, min(len(result), int(max(end, 0)) - 1))
    return like(a, result[first:last])


def _before(a: RdfTerm, b: RdfTerm) -> Literal:
    whole, part = same_kind(a, b)
    index = whole.find(part)
    return Literal("") if index < 0 else like(a, whole[:index])


def _after(a: RdfTerm, b: RdfTerm) -> Literal:
    whole, part = same_kind(a, b)
    index = whole.find(part)
    return Literal("") if index < 0 else like(a, whole[index + len(part) :])


def _concatenated(*args: RdfTerm) -> Literal:
    texts = [text(a) for a in args]
    languages = {item.language for item in texts}
    language = languages.pop() if len(languages) == 1 else ""
    return Literal("".join(item.text for item in texts), LANG_STRING if language else STRING, language)


NO_FLAGS = Literal("")
_FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE, "x": re.VERBOSE}


@lru_cache(256)
def _compiled(pattern: str, flags: str) -> re.Pattern[str]:
    if set(flags) - {*_FLAGS, "q"}:
        raise ExpressionError
    try:
        return re.compile(re.escape(pattern) if "q" in flags else pattern, sum(_FLAGS[f] for f in set(flags) - {"q"}))
    except (re.error, RecursionError, OverflowError):
        raise ExpressionError from None


def _matches(a: RdfTerm, pattern: RdfTerm, flags: RdfTerm = NO_FLAGS) -> Literal:
    return literal_of(bool(_compiled(plain(pattern), plain(flags)).search(text(a).text)))


def _replaced(a: RdfTerm, pattern: RdfTerm, by: RdfTerm, flags: RdfTerm = NO_FLAGS) -> Literal:
    shape = _compiled(plain(pattern), plain(flags))
    if shape.search("") is not None:  # it would be found everywhere
        raise ExpressionError
    template = re.sub(r"\\([\\$])|\$([0-9])|(\\)", _template, plain(by))
    try:
        return like(a, shape.sub(template, text(a).text))
    except (re.error, IndexError):
        raise ExpressionError from None


def _template(match: re.Match[str]) -> str:
    """A replacement text of SPARQL, as Python writes it."""
    if match[2]:
        return rf"\g<{match[2]}>"
    return r"\\" if match[1] == "\\" else "$" if match[1] else r"\\"


def _language_matches(tag: RdfTerm, range: RdfTerm) -> Literal:
    have, want = plain(tag).lower(), plain(range).lower()
    return literal_of(bool(have) if want == "*" else have == want or have.startswith(want + "-"))


def _hash(name: str) -> Callable[[RdfTerm], Literal]:
    return lambda a: Literal(hashlib.new(name, plain(a).encode(), usedforsecurity=False).hexdigest())


# Terms


def _str(a: RdfTerm) -> Literal:
    if not isinstance(a, Iri | Literal):
        raise ExpressionError
    return Literal(a.text)


def _iri(a: RdfTerm, base: RdfTerm | None = None) -> Iri:
    if isinstance(a, Iri):
        return a
    result = plain(a)
    if re.search(r'[\x00-\x20<>"{}|^`\\]', result):
        raise ExpressionError
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", result):
        return Iri(result)
    return Iri(urljoin(known(base if isinstance(base, Iri) else None).text, result))


def _typed(a: RdfTerm, datatype: RdfTerm) -> Literal:
    return Literal(plain(a), known(datatype if isinstance(datatype, Iri) else None).text)


def _in_language(a: RdfTerm, tag: RdfTerm) -> Literal:
    result = known(re.fullmatch(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*", plain(tag)))
    return Literal(plain(a), LANG_STRING, result[0].lower())


def _is(kind: type) -> Callable[[RdfTerm], Literal]:
    return lambda a: literal_of(isinstance(a, kind))


def _is_numeric(a: RdfTerm) -> Literal:
    return literal_of(isinstance(a, Literal) and number_of(a) is not None)


# Times


def _part(name: str) -> Callable[[RdfTerm], Literal]:
    def compute(a: RdfTerm) -> Literal:
        kinds = (lex.DATE_TIME, lex.DATE) if name in ("year", "month", "day") else (lex.DATE_TIME, lex.TIME)
        return literal_of(int(known(getattr(moment(a).local, name), literal(a).datatype in kinds)))

    return compute


def _seconds(a: RdfTerm) -> Literal:
    return literal_of(known(moment(a).second, literal(a).datatype in (lex.DATE_TIME, lex.TIME)))


def _zone(a: RdfTerm) -> Literal:
    time = moment(a)
    return known(Literal(lex.day_time(time.offset), lex.DAY_TIME_DURATION), bool(time.zone))


# Casts


def _to_string(a: RdfTerm) -> Literal:
    """The canonical text of a value: 1.0 and 1E0 are `1`."""
    value = number_of(a) if isinstance(a, Literal) else None
    if value is not None:
        return Literal(_shown(value))
    truth = lex.boolean_of(a) if isinstance(a, Literal) else None
    return _str(a) if truth is None else Literal(str(truth).lower())


def _shown(value: Number) -> str:
    if isinstance(value, float) and math.isfinite(value):
        if value and not 1e-6 <= abs(value) < 1e6:
            digits, _, exponent = f"{Decimal(repr(value)):E}".partition("E")
            return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"
        value = Decimal(repr(value))
    if isinstance(value, float):
        return lex.show_double(value)
    text = f"{value:f}" if value else "0"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _to_boolean(a: RdfTerm) -> Literal:
    source = literal(a)
    if source.datatype in RANKS:
        value = number(source)
        return literal_of(value == value and value != 0)
    read = lex.boolean_of(Literal(source.text.strip(), BOOLEAN)) if source.datatype in (STRING, BOOLEAN) else None
    return literal_of(known(read))


def _to_number(datatype: str) -> Callable[[RdfTerm], Literal]:
    def compute(a: RdfTerm) -> Literal:
        result = literal(a)
        if result.datatype == BOOLEAN:
            return of_rank(int(known(lex.boolean_of(result))), RANKS[datatype])
        if result.datatype == STRING:
            written = Literal(result.text.strip(), datatype)
            return known(written, number_of(written) is not None)
        value = number(result)
        if RANKS[datatype] < 2 and isinstance(value, float) and not math.isfinite(value):
            raise ExpressionError
        if RANKS[datatype] == 1 and isinstance(value, float):
            value = Decimal(repr(value))
        try:
            return of_rank(value, RANKS[datatype])
        except OverflowError:
            raise ExpressionError from None

    return compute


def _to_date_time(a: RdfTerm) -> Literal:
    source = literal(a)
    if source.datatype in (STRING, lex.DATE_TIME):
        written = Literal(source.text.strip(), lex.DATE_TIME)
    elif source.datatype == lex.DATE:
        written = Literal(re.sub(r"^(-?\d+-\d\d-\d\d)", r"\1T00:00:00", source.text), lex.DATE_TIME)
    else:
        raise ExpressionError
    return known(written, moment_of(written) is not None)


# The table


# Those that take unbound arguments, or do not look at all of theirs, are not among them: see `evaluate.py`.
FUNCTIONS: dict[str, Callable[..., RdfTerm]] = {
    "unary -": _unary(-1),
    "unary +": _unary(1),
    "STR": _str,
    "LANG": lambda a: Literal(literal(a).language),
    "DATATYPE": lambda a: Iri(literal(a).datatype),
    "ABS": _rounded(lambda value: value if value >= 0 else -value),
    "ROUND": _rounded(_round),
    "CEIL": _rounded(partial(_whole, rounding=ROUND_CEILING)),
    "FLOOR": _rounded(partial(_whole, rounding=ROUND_FLOOR)),
    "STRLEN": lambda a: literal_of(len(text(a).text)),
    "UCASE": lambda a: like(a, text(a).text.upper()),
    "LCASE": lambda a: like(a, text(a).text.lower()),
    "ENCODE_FOR_URI": lambda a: Literal(quote(text(a).text, safe="-_.~")),
    "YEAR": _part("year"),
    "MONTH": _part("month"),
    "DAY": _part("day"),
    "HOURS": _part("hour"),
    "MINUTES": _part("minute"),
    "SECONDS": _seconds,
    "TIMEZONE": _zone,
    "TZ": lambda a: Literal(moment(a).zone),
    "MD5": _hash("md5"),
    "SHA1": _hash("sha1"),
    "SHA256": _hash("sha256"),
    "SHA384": _hash("sha384"),
    "SHA512": _hash("sha512"),
    "truth": lambda a: literal_of(truth(a)),  # the effective boolean value, which has no name in SPARQL
    "isIRI": _is(Iri),
    "isBLANK": _is(Blank),
    "isLITERAL": _is(Literal),
    "isNUMERIC": _is_numeric,
    STRING: _to_string,
    BOOLEAN: _to_boolean,
    **{datatype: _to_number(datatype) for datatype in RANKED},
    lex.DATE_TIME: _to_date_time,
    **{operator: _compare(operator) for operator in ("=", "!=", "<", ">", "<=", ">=")},
    **{operator: _arithmetic(operator) for operator in "+-*/"},
    "LANGMATCHES": _language_matches,
    "CONTAINS": lambda a, b: literal_of(str.__contains__(*same_kind(a, b))),
    "STRSTARTS": lambda a, b: literal_of(str.startswith(*same_kind(a, b))),
    "STRENDS": lambda a, b: literal_of(str.endswith(*same_kind(a, b))),
    "STRBEFORE": _before,
    "STRAFTER": _after,
    "STRLANG": _in_language,
    "STRDT": _typed,
    "sameTerm": lambda a, b: literal_of(a == b),
    "IRI": _iri,
    "SUBSTR": _substring,
    "REGEX": _matches,
    "REPLACE": _replaced,
    "CONCAT": _concatenated,
}
