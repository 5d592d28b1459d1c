"""JSON lines on Spark: parsed by Spark, their values converted in Catalyst.

A line is read twice at most. First with the types that the program declares, which is cheap and strict; where a value is not
of its type as it stands (`1.0` for an integer), once more with values that know what they are. Lists of arguments that are
undeclared are of the kinds that one pass has found. Nested values, and places that have values of several types, are read
by Python, for the lines of just those types.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from augury.algebra.plan import Attribute, Plan, Predicate
from augury.engine.decoding import tagged
from augury.errors import DataError
from augury.sources.files import SourceFile
from augury.sources.heading import Names
from augury.sources.objects import args_of
from augury.sources.reader import EventTypes
from augury.sources.reader import first_time as earliest
from augury.spark.conversions import CONVERSIONS, first_problem, from_json, is_decimal, literal_map, misread_json
from augury.spark.inputs import PATH, PROBLEM, ROW, STREAM, Part, Source

_TYPED = {"int": "bigint", "float": "double", "bool": "boolean"}  # types of JSON that Spark reads strictly
_END = "augury end"  # a key that stands after the line: what is not closed, or closed twice, does not reach it
_CORRUPT = "augury corrupt"
_OPTIONS = {"columnNameOfCorruptRecord": _CORRUPT, "allowSingleQuotes": "false", "mode": "PERMISSIVE"}
_SAMPLE = 100  # lines that are searched for a time
_CLASSES = {"BIGINT": "int", "DOUBLE": "float", "STRING": "string", "BOOLEAN": "bool"}


@dataclass(frozen=True)
class Seen:
    """What one pass tells of the lines of one type and number of arguments."""

    rows: int
    listed: bool  # whether arguments come in lists
    kinds: tuple[str, ...]
    says: frozenset[str]


@dataclass(frozen=True)
class Lines:
    """The lines of a source, and what is known of them; in a stream, nothing is."""

    source: SourceFile
    plan: Plan
    frame: DataFrame
    strict: bool = False
    seen: Mapping[tuple[str | None, int], Seen] | None = None
    lasting: bool = True  # whether events may last for a time
    numbers: bool = True
    first: object = None
    known: EventTypes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", EventTypes(self.plan, self.strict))

    # Which types there are

    @cached_property
    def args(self) -> dict[Predicate, tuple[Attribute, ...]]:
        """The arguments of each type, with the types of undeclared ones as they were found."""
        found: dict[Predicate, tuple[Attribute, ...]] = {}
        derived = {name for name, _ in self.plan.derived}
        for name, arity in sorted(self.plan.event_types):
            declared = self.plan.declared.get(name)
            if self.seen is not None and not any(t == name for t, _ in self.seen):
                continue
            if self.seen is None and name in derived and declared is None:
                continue
            if declared is not None:
                found[name, len(declared)] = tuple(declared)
            else:
                seen = None if self.seen is None else self.seen.get((name, arity))
                kinds = ["any"] * arity if seen is None else [k or "any" for k in seen.kinds[:arity]]
                found[name, arity] = tuple(Attribute(f"arg{i + 1}", kind) for i, kind in enumerate(kinds))
        return found

    @cached_property
    def slow(self) -> list[Predicate]:
        """The types that have nested values, or values of several types in one place."""
        return [type for type, args in self.args.items() if any(CONVERSIONS[a.type].json is None for a in args)]

    @cached_property
    def refused(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.seen is None:
            derived = {name for name, _ in self.plan.derived} - self.plan.declared.keys()
            wrong = "`{0}` is derived by the program, but the input has such events; declare `event {0}(…).`"
            return {f"{n}/{a}": wrong.format(n) for n, a in self.plan.event_types if n in derived}
        for name, arity in self.seen:
            if name is not None and (name, arity) not in self.args:
                problem = self.known.problem((name, arity))
                if problem is not None:
                    found[f"{name}/{arity}" if name in self.known.arities else name] = problem.message
        return found

    def _says(self, role: str) -> bool:
        """Whether some line says something of its event beside its attributes."""
        return self.seen is None or any(role in seen.says for seen in self.seen.values())

    # Reading

    @property
    def sources(self) -> list[Source]:
        names = self.source.names
        parts = tuple(
            Part(
                type,
                tuple(self._column(type, i) for i in range(len(args))),
                tuple(_kind(a) for a in args),
                _key(type),
                frozenset(),  # what is an attribute, and what is said of an event, is told apart line by line
            )
            for type, args in self.args.items()
        )
        seen = self.seen or {}
        unknown: dict[str, int] = {}
        for (name, arity), one in seen.items():
            if name is None or name in self.plan.declared or self.known.problem((name, arity)) is not None:
                continue
            if name in self.known.arities and not one.listed:
                continue  # attributes by name that nobody has declared: such lines are wrong
            if passed := self.known.passed_over((name, arity)):
                unknown[passed] = unknown.get(passed, 0) + one.rows
        return [
            Source(
                self._converted(),
                parts,
                names,
                True,
                frozenset(self.known.arities),
                self.plan.prefixes,
                self.refused,
                self.numbers,
                self.first,
                unknown,
                None if self.seen is None else frozenset(t for t, _ in seen if t is not None),
            )
        ]

    @cached_property
    def _fields(self) -> dict[str, str]:
        """The keys that are read, with the types in which Spark reads them first."""
        names = self.source.names
        wanted: dict[str, set[str]] = {}
        for (name, _), args in self.args.items():
            if name in self.plan.declared:
                for a in args:
                    if CONVERSIONS[a.type].json is not None:
                        wanted.setdefault(a.name, set()).add(a.type)
        found = {
            key: _TYPED.get(next(iter(types)), "variant") if len(types) == 1 else "variant"
            for key, types in wanted.items()
        }
        for key in (*names.all, "args"):
            if key != names.known and (key != "args" or self._lists):
                found[key] = "array<variant>" if key == "args" else "variant" if key in found else "string"
        return found

    @cached_property
    def _lists(self) -> bool:
        return self.seen is None or any(seen.listed for seen in self.seen.values())

    def _converted(self) -> DataFrame:
        names, fields = self.source.names, self._fields
        line = F.col("value")
        whole = F.concat(F.lit('{"r":'), line, F.lit(f',"{_END}":1}}'))
        strict, careful = (
            _schema({k: "variant" if c and t in _TYPED.values() else t for k, t in fields.items()})
            for c in (False, True)
        )
        frame = self.frame.select("value", PATH, F.from_json(whole, strict, _OPTIONS).alias("p"))
        ok = _sound(F.col("p"))
        frame = frame.select(
            "value", PATH, "p", ok.alias("ok"), F.from_json(F.when(~ok, whole), careful, _OPTIONS).alias("q")
        )
        read = F.col("ok") | _sound(F.col("q"))
        keys = {key: self._field(key) for key in fields if fields[key] not in _TYPED.values()}
        listed = keys["args"] if "args" in keys else F.lit(None).cast("array<variant>")
        type = keys[names.type] if fields[names.type] == "string" else _text(keys[names.type])
        if self.source.type is not None:
            type = F.coalesce(type, F.lit(self.source.type))
        arities = {name: len(args) for name, args in self.plan.declared.items()}
        by_name = F.element_at(literal_map(arities), type) if arities else F.lit(None).cast("int")
        arity = F.when(listed.isNotNull(), F.size(listed)).otherwise(F.coalesce(by_name, F.lit(0)))
        roles = self._roles(keys, type, listed)
        frame = frame.select(
            "value",
            PATH,
            "p",
            "q",
            "ok",
            read.alias("read"),
            listed.alias("list"),
            type.alias("name"),
            F.when(type.isin(sorted(self.known.arities)), F.concat_ws("/", type, arity)).otherwise(type).alias("key"),
            *(column.alias(f"said {name}") for name, column in roles.items()),
        )
        if self.slow:
            wanted = F.when(F.col("read") & F.col("key").isin([_key(t) for t in self.slow]), F.col("value"))
            frame = frame.withColumn("slow", _arguments(self.plan, self.source)(wanted))
        values = {name: self._value(*place) for name, (place, _) in self._places.items()}
        made = frame.select("*", *(column.alias(name) for name, (column, _) in values.items()))
        problem = self._problem({name: wrong for name, (_, wrong) in values.items()})
        return made.select(
            F.col("key").alias(names.type),
            *(F.col(f"`said {name}`").alias(name) for name in roles),
            *(F.col(f"`{name}`") for name in values),
            PATH,
            problem.alias(PROBLEM),
            F.col("value").alias(ROW),
        )

    def _column(self, type: Predicate, at: int) -> str:
        """The column of an argument. Types that have one of the same name and type share it, where it comes by name."""
        attribute = self.args[type][at]
        if CONVERSIONS[attribute.type].json is None:
            return f"{_key(type)} {at}"
        if type[0] not in self.plan.declared:
            return f"{at} as {attribute.type}"
        return f"{attribute.name}{f' {at}' if self._lists else ''} as {attribute.type}"

    @cached_property
    def _places(self) -> dict[str, tuple[tuple[Predicate, int, Attribute], list[str]]]:
        """What is read into each column, and the keys of the types that have it."""
        found: dict[str, tuple[tuple[Predicate, int, Attribute], list[str]]] = {}
        for type, args in self.args.items():
            for at, attribute in enumerate(args):
                found.setdefault(self._column(type, at), ((type, at, attribute), []))[1].append(_key(type))
        return found

    def _field(self, key: str) -> Column:
        """What a line says under a key."""
        return F.when(F.col("ok"), _inside("p", key)).otherwise(_inside("q", key))

    def _roles(self, keys: Mapping[str, Column], type: Column, listed: Column) -> dict[str, Column]:
        """What lines say of their events: the columns of which some line says something.

        The id and the op of an event whose attributes come by name may be attributes; beside a list they never are.
        """
        names = self.source.names
        texts = {
            key: keys[key] if self._fields[key] == "string" else _text(keys[key]) for key in names.all if key in keys
        }
        for key in (names.id, names.op):
            if owners := [name for name, args in self.plan.declared.items() if any(a.name == key for a in args)]:
                owned = F.coalesce(type.isin(owners), F.lit(False)) & listed.isNull()
                texts[key] = F.when(~owned, texts[key])
        time = texts[names.time] if names.time == "time" else F.coalesce(texts[names.time], texts["time"])
        found = {names.time: _whole(time)}
        for role, name in (("start", names.start), ("end", names.end)):
            if self.lasting and self._says(role):
                found[name] = _whole(texts[name])
            elif not self.lasting:
                found["augury " + role] = _whole(texts[name])
        if "augury end" in found:  # a point may be written as an interval, too
            found[names.time] = F.coalesce(found[names.time], found["augury end"], found["augury start"])
        if self._says("id") or self._says("op"):
            found[names.id] = texts[names.id]
        if self._says("op"):
            found[names.op] = texts[names.op]
        return found

    def _value(self, type: Predicate, at: int, attribute: Attribute) -> tuple[Column, Column]:
        """An argument, and whether what is given is none."""
        if CONVERSIONS[attribute.type].json is None:
            return F.get(F.col("slow"), F.lit(at)), F.col("slow").isNull()
        element = F.get(F.col("list"), F.lit(at))
        listed = from_json(attribute.type, element, self.plan.prefixes)
        wrong_element = misread_json(attribute.type, element, listed)
        if type[0] not in self.plan.declared:
            return listed, wrong_element
        named, wrong = self._named(attribute)
        if not self._lists:
            return named, wrong
        by_list = F.col("list").isNotNull()
        return F.when(by_list, listed).otherwise(named), F.when(by_list, wrong_element).otherwise(wrong)

    def _named(self, attribute: Attribute) -> tuple[Column, Column]:
        """An attribute that comes by name."""
        own, prefixes = _inside("q", attribute.name), self.plan.prefixes
        careful = from_json(attribute.type, own, prefixes)
        wrong = ~F.col("ok") & misread_json(attribute.type, own, careful)
        if self._fields[attribute.name] in _TYPED.values():
            strict = _inside("p", attribute.name)
            if attribute.type == "bool":
                strict = strict.cast("int").cast("bigint")
            if attribute.type == "float":
                wrong = F.when(F.col("ok"), F.abs(strict) == F.lit(float("inf"))).otherwise(wrong)
                strict = F.when(~F.isnan(strict), strict + F.lit(0.0))
            named = F.when(F.col("ok"), strict).otherwise(careful)
        else:
            given = self._field(attribute.name)
            named = from_json(attribute.type, given, prefixes)
            wrong = misread_json(attribute.type, given, named)
        absent = named.isNull() & ~F.array_contains(F.json_object_keys("value"), attribute.name)
        return named, F.coalesce(wrong, F.lit(False)) | absent

    def _problem(self, values: Mapping[str, Column]) -> Column:
        """What is wrong with a line, apart from its times."""
        names = self.source.names
        op = self._field(names.op) if self._fields[names.op] == "string" else _text(self._field(names.op))
        insert = op.isNull() | op.isin("", "insert")
        wrong: list[tuple[Column, Column | str]] = [(~F.col("read"), "malformed JSON, or not an object")]
        undeclared = [t for t in sorted(self.known.arities) if t not in self.plan.declared]
        if undeclared:
            usual = F.array(*(F.lit(n) for n in (*names.all, "args")))
            more = F.size(F.array_except(F.json_object_keys("value"), usual)) > 0
            unnamed = F.col("list").isNull() & F.col("name").isin(undeclared) & insert & more
            wrong.append((unnamed, "attributes by name, but the program does not declare the type"))
        if not any("args" in (a.name for a in args) for args in self.plan.declared.values()):
            named = F.col("list").isNull() & F.col("value").contains('"args"')
            wrong.append((named & insert & F.get_json_object("value", "$.args").isNotNull(), "`args` is not a list"))
        keys = [_key(type) for type in self.args]
        narrow = sorted(self.known.arities if self.strict else self.plan.declared)
        odd = F.col("name").isin(narrow) & ~F.col("key").isin([*keys, *self.refused]) & insert
        wrong.append((odd, "another number of arguments than the program has"))
        for name, misread in values.items():
            (type, _, attribute), users = self._places[name]
            own = F.col("list").isNull() | insert if self._owns(type, names.op) else insert
            text = f"`{attribute.name}` of `{type[0]}` is missing, or no {attribute.type}"
            wrong.append((F.col("key").isin(users) & own & misread, text))
        if not self.lasting:
            lasts = F.col("`said augury start`") != F.col("`said augury end`")
            wrong.append((lasts, "the event lasts for a time; say how long events last at most: --longest 1h"))
        return first_problem(wrong)

    def _owns(self, type: Predicate, name: str) -> bool:
        return any(a.name == name for a in self.plan.declared.get(type[0], ()))


def _key(type: Predicate) -> str:
    return f"{type[0]}/{type[1]}"


def _kind(attribute: Attribute) -> str:
    return "json" if CONVERSIONS[attribute.type].json is None else CONVERSIONS[attribute.type].kind


def _schema(fields: Mapping[str, str]) -> str:
    inside = ", ".join(f"`{key.replace('`', '``')}`: {type}" for key, type in fields.items())
    return f"r struct<{inside}>, `{_END}` int, `{_CORRUPT}` string"


def _sound(parsed: Column) -> Column:
    """Whether a line was read, to its end."""
    end = parsed.getField(_END)
    return F.coalesce(parsed.getField(_CORRUPT).isNull() & parsed.getField("r").isNotNull() & (end == 1), F.lit(False))


def _inside(parsed: str, key: str) -> Column:
    return F.col(parsed).getField("r").getField(key)


def _text(value: Column) -> Column:
    """A variant as text: a string as it is, a number as it is written."""
    return F.try_variant_get(value, "$", "string")


def _whole(text: Column) -> Column:
    """A time as text; a number that is whole is one, however it is written."""
    number = text.try_cast("double")
    decimal = text.rlike(r"\A-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?\z") & text.rlike("[.eE]")
    return F.when(decimal & (number == F.floor(number)), number.try_cast("bigint").cast("string")).otherwise(text)


def _arguments(plan: Plan, source: SourceFile) -> Any:
    """The arguments of events as the layout keeps values of several types; null where one of them is wrong."""
    names, type = source.names, source.type

    def one(line: str | None) -> list[str | None] | None:
        if line is None:
            return None
        try:
            item = json.loads(line.removeprefix("\ufeff"))
            values = args_of(item, item.get(names.type, type), plan, names)
        except (ValueError, DataError, RecursionError, AttributeError):
            return None
        return [None if v is None else tagged(v) for v in values]

    @arrow_udf("array<string>")  # type: ignore[call-overload, untyped-decorator]
    def read(lines: pa.Array) -> pa.Array:
        return pa.array([one(line) for line in lines.to_pylist()], pa.list_(pa.string()))

    return read


# Before events are read


def reads_graphs(plan: Plan) -> bool:
    """Whether a program reads graph events, whose types are those of their streams."""
    return any(name.startswith("<") for name, _ in plan.event_types)


def lines_of(frame: DataFrame, plan: Plan, names: Names) -> DataFrame:
    """The lines that say something, with their files. One of a graph event is given the type that its stream has."""
    line = F.col("value")
    plain = F.when(line.startswith("\ufeff"), F.substr(line, F.lit(2))).otherwise(line)
    if reads_graphs(plan):
        stream, typed = F.get_json_object(plain, f"$.{STREAM}"), F.get_json_object(plain, f"$['{names.type}']")
        key = F.lit('{"' + names.type + '": "<')
        named = F.concat(key, stream, F.lit('>", '), F.regexp_replace(plain, r"^\s*\{", ""))
        plain = F.when(stream.isNotNull() & typed.isNull(), named).otherwise(plain)
    return frame.where(line.rlike(r"\S")).select(plain.alias("value"), F.col("_metadata.file_path").alias(PATH))


def first_time(source: SourceFile, texts: Iterable[str]) -> object:
    """A time that tells the clock; nothing where no line has one."""
    found = earliest(_objects(texts), source.names)
    return 0 if found is None else found


def _objects(texts: Iterable[str]) -> Iterator[dict[str, Any]]:
    for text in texts:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def seen(
    spark: SparkSession, paths: Sequence[str], source: SourceFile, plan: Plan
) -> dict[tuple[str | None, int], Seen]:
    """One pass: which types there are, with how many arguments of which kinds, and what is said of events beside them."""
    names = source.names
    arities = {
        name: [n for t, n in plan.event_types if t == name] for name, _ in plan.event_types if name not in plan.declared
    }
    most = max((n for ns in arities.values() for n in ns), default=0)
    roles = {"id": names.id, "op": names.op, "start": names.start, "end": names.end}
    graphs = reads_graphs(plan)
    fields = ", ".join(f"`{key}` string" for key in (names.type, *roles.values(), *([STREAM] if graphs else [])))
    frame = (
        spark.read.schema(f"{fields}, args array<{'variant' if most else 'string'}>")
        .options(**_OPTIONS)
        .json(list(paths))
    )
    type = F.col(f"`{names.type}`")
    if graphs:
        type = F.coalesce(type, F.concat(F.lit("<"), F.col(STREAM), F.lit(">")))
    if source.type is not None:
        type = F.coalesce(type, F.lit(source.type))
    listed = F.col("args").isNotNull()
    size = F.when(listed, F.size("args")).otherwise(F.lit(0))
    kinds = [F.collect_set(_class(F.get("args", F.lit(i)))).alias(f"kinds {i}") for i in range(most)]
    says = [F.max(F.col(f"`{name}`").isNotNull()).alias(role) for role, name in roles.items()]
    grouped = frame.groupBy(type.alias("type"), size.alias("size"))
    rows = grouped.agg(F.count("*").alias("rows"), F.max(listed).alias("listed"), *says, *kinds).collect()
    found: dict[tuple[str | None, int], Seen] = {}
    for row in rows:
        name, declared = row["type"], plan.declared.get(row["type"])
        own = {a.name for a in declared or ()} if not row["listed"] else set()
        roles_said = {role for role, key in roles.items() if row[role] and (key not in own or role in ("start", "end"))}
        arity = len(declared) if declared is not None and not row["listed"] else row["size"]
        classes = tuple(_one([k for k in row[f"kinds {i}"] if k]) for i in range(min(arity, most)))
        old = found.get((name, arity), Seen(0, False, (), frozenset()))
        found[name, arity] = Seen(
            old.rows + row["rows"], old.listed or row["listed"], classes or old.kinds, old.says | roles_said
        )
    return found


def _class(value: Column) -> Column:
    """The type of the language that a value of JSON has; `any` for what is nested or is too long a number."""
    is_a = F.schema_of_variant(value)
    there = value.isNotNull() & ~F.is_variant_null(value)
    plain = F.element_at(literal_map(_CLASSES), is_a)
    return F.when(there, F.coalesce(plain, F.when(is_decimal(is_a), F.lit("float")), F.lit("any")))


def _one(classes: Sequence[str]) -> str:
    """The type of a place: one that all its values have."""
    return classes[0] if len(classes) == 1 else "any" if classes else "string"
