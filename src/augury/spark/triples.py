"""RDF that is too large for one machine: triples as DataFrames, and what RDFS entails of the predicates that are asked for.

    lines of N-Triples ──> subject | predicate | object ──> pairs of each predicate ──> facts

The schema is fetched and closed on the driver; the tables that say which classes and properties are above which are small,
so that each triple is joined with them once, and nothing is repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType
from pyspark.sql.window import Window

from augury.algebra.nodes import (
    Holds,
    Unless,
)
from augury.algebra.plan import Plan, static_atoms
from augury.algebra.terms import Const
from augury.core.errors import DataError
from augury.core.model import Iri, Value, text_hash
from augury.engine.decoding import tagged
from augury.graphs.oxigraph import oxigraph, term_of_n_triples
from augury.graphs.rdf_terms import value_of_key, value_of_term
from augury.knowledge.rdf import RdfTriples
from augury.knowledge.rdfs import DOMAIN, RANGE, SUBCLASS, SUBPROPERTY, TYPE, Schema
from augury.spark.casts import canonical
from augury.spark.inputs import is_frame
from augury.spark.layout import FAMILY, common_kind, sql_type, value_kind
from augury.spark.relation_frames import FactFrame, raw_value

_HIERARCHY = (SUBCLASS, SUBPROPERTY, DOMAIN, RANGE)
_PARTS = ("subject", "predicate", "object")
_LISTED = 200  # predicates that a filter names one by one

# Reading


def read_rdf(spark: SparkSession, source: str | DataFrame, on_error: Literal["fail", "drop"] = "fail") -> DataFrame:
    """The triples of N-Triples or N-Quads, as terms in text; of all graphs.

    `source` is a path that Spark reads (a file, a folder, a pattern), or a DataFrame with the columns subject, predicate and
    object. The blank nodes of a path are its own. A malformed line stops the run, or is left out: `malformed` has them.
    """
    if is_frame(source):
        assert isinstance(source, DataFrame)
        return source.select(*(F.col(c).cast("string").alias(c) for c in _PARTS))
    lines = _parsed(_lines(spark, str(source)), str(source))
    if on_error == "drop":
        lines = lines.where("subject IS NOT NULL")
    else:
        message = F.concat(F.lit("malformed N-Triples: "), F.col("value"), F.lit(" in "), F.col("file"))
        checked = F.coalesce(F.col("predicate"), F.raise_error(message).cast("string"))
        lines = lines.withColumn("predicate", checked)
    return lines.select(*_PARTS)


def malformed(spark: SparkSession, path: str) -> DataFrame:
    """The malformed lines of a path: the file, the number of the line, and its text."""
    numbered = _lines(spark, path).withColumn("n", F.monotonically_increasing_id())
    blocks = numbered.groupBy("file", "start").agg(F.min("n").alias("first"), F.count("*").alias("lines"))
    earlier = Window.partitionBy("file").orderBy("start").rowsBetween(Window.unboundedPreceding, -1)
    before = blocks.withColumn("before", F.coalesce(F.sum("lines").over(earlier), F.lit(0))).drop("lines")
    wrong = _parsed(numbered, path).where("subject IS NULL")
    line = (F.col("before") + F.col("n") - F.col("first") + 1).alias("line")
    return wrong.join(before, ["file", "start"]).select("file", line, F.col("value").alias("text"))


def _lines(spark: SparkSession, path: str) -> DataFrame:
    text = spark.read.option("lineSep", "\n").text(path)
    return text.select(
        F.rtrim(F.col("value"), F.lit("\r")).alias("value"),
        F.col("_metadata.file_path").alias("file"),
        F.col("_metadata.file_block_start").alias("start"),
    )


def _parsed(lines: DataFrame, path: str) -> DataFrame:
    """Lines with the terms of their triples, which are null where a line is malformed; empty lines and comments are left out."""
    schema = StructType([*lines.schema.fields, *(StructField(name, StringType()) for name in _PARTS)])
    return lines.mapInArrow(partial(_terms, f"{text_hash(path):016x}"), schema)


def _terms(file: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reads the lines of batches; a blank node gets a name that no other path has."""
    ox = oxigraph()

    def shown(term: object) -> str:
        if isinstance(term, ox.Triple):
            raise SyntaxError("a triple inside a triple")
        return f"{term}.{file}" if isinstance(term, ox.BlankNode) else str(term)

    for batch in batches:
        kept, rows = list[int](), list[dict[str, str]]()
        for number, line in enumerate(batch.column("value").to_pylist()):
            try:
                quads = ox.parse(line, ox.RdfFormat.N_QUADS)
                line_rows = [{part: shown(getattr(quad, part)) for part in _PARTS} for quad in quads]
            except SyntaxError:
                line_rows = [{}]
            rows += line_rows
            kept += [number] * len(line_rows)
        columns = [pa.array([row.get(part) for row in rows], pa.string()) for part in _PARTS]
        lines = batch.take(pa.array(kept, pa.int64())).columns
        yield pa.record_batch([*lines, *columns], [*batch.schema.names, *_PARTS])


# Entailment


def entailed(triples: DataFrame, wanted: Iterable[str], classes: Collection[str] | None = None) -> dict[str, DataFrame]:
    """The pairs, subject and object, that RDFS entails of each wanted predicate, by its IRI.

    Of `rdf:type` with `classes` alone, where they are given.
    """
    graph = _TripleFrame(triples, None if classes is None else frozenset(map(_text, classes)))
    return {name: graph.pairs(_text(name)) for name in wanted}


def _text(iri: str) -> str:
    return iri if iri.startswith("_:") else f"<{iri}>"


_WORDS = {word: _text(word.text) for word in (TYPE, *_HIERARCHY)}


def _value(term: str) -> Value:
    """A term of the schema: a literal is its text."""
    return Iri(term[1:-1]) if term.startswith("<") else Iri(term) if term.startswith("_:") else term


def _term(value: Value) -> str:
    return _text(value.text) if isinstance(value, Iri) else str(value)


@dataclass
class _TripleFrame:
    """Triples, and their schema."""

    triples: DataFrame
    classes: frozenset[str] | None
    closed: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # the hierarchy: pairs of each of its words
    above: dict[str, set[str]] = field(default_factory=dict)  # properties, and those above each

    def __post_init__(self) -> None:
        schema, numbers = self._schema()
        for word in _HIERARCHY:
            first, second = schema.instances(numbers[word.text])
            terms = [[_term(schema.terms[i]) for i in side.tolist()] for side in (first, second)]
            self.closed[_WORDS[word]] = list(zip(*terms, strict=True))
        for low, high in self.closed[_WORDS[SUBPROPERTY]]:
            if not high.startswith('"'):
                self.above.setdefault(low, set()).add(high)
        if self._ups(_WORDS[TYPE]) & self.closed.keys():
            raise DataError(
                "rdf:type is a subproperty of the vocabulary of RDFS, which Spark does not entail",
                hint="read the graph with augury.rdf(…) instead",
            )

    def _schema(self) -> tuple[Schema, dict[str, int]]:
        """What the triples say of classes and properties: those of the vocabulary, and of properties below it."""
        wanted, rows, seen = {_WORDS[w] for w in _HIERARCHY}, list[tuple[Value, Value, Value]](), set[str]()
        while True:
            triples = self._among(self.triples, wanted - seen).distinct().collect()
            rows += [(_value(r["subject"]), _value(r["predicate"]), _value(r["object"])) for r in triples]
            schema = Schema(RdfTriples.of(rows))
            numbers = {term.text: i for i, term in enumerate(schema.terms) if isinstance(term, Iri)}
            seen |= wanted
            below = {q for w in _HIERARCHY for q in schema.subproperties.get(numbers[w.text], ())}
            wanted = {_term(schema.terms[q]) for q in below} - {_WORDS[TYPE]}
            if wanted <= seen:
                return schema, numbers

    @cached_property
    def said(self) -> DataFrame:
        """The triples, with the hierarchy closed."""
        rows = [(s, word, o) for word, pairs in self.closed.items() for s, o in pairs]
        remaining = self.triples.select(*_PARTS).where(~F.col("predicate").isin(*self.closed))
        return remaining.union(self._local(rows, *_PARTS)) if rows else remaining

    def pairs(self, name: str) -> DataFrame:
        """The pairs of a predicate."""
        if name == _WORDS[TYPE]:
            return self.types(self.classes).distinct()
        if name in self.closed:
            return self._local(self.closed[name], "subject", "object")
        below = {low for low, highs in self.above.items() if name in highs} | {name}
        result = self._among(self.said, below).select("subject", "object")
        if _WORDS[TYPE] in below:
            result = result.union(self.types(None))
        return result.distinct()

    def types(self, classes: frozenset[str] | None) -> DataFrame:
        """All of `rdf:type`: the asserted types, those that follow from domains and ranges, and the classes above."""
        low = self._direct()
        if classes is None:
            up = self._ahead(self.closed[_WORDS[SUBCLASS]], "low", "high")
            higher = low.join(up, F.col("object") == F.col("low")).select("subject", F.col("high").alias("object"))
            result = low.union(higher) if self.closed[_WORDS[SUBCLASS]] else low
        else:
            pairs = {(c, c) for c in classes} | {(a, b) for a, b in self.closed[_WORDS[SUBCLASS]] if b in classes}
            up = self._ahead(sorted(pairs), "low", "high")
            result = low.join(up, F.col("object") == F.col("low")).select("subject", F.col("high").alias("object"))
        meta = self._of_types(low)
        if meta is None:
            return result
        return result.union(meta if classes is None else meta.where(F.col("object").isin(*classes)))

    def _direct(self) -> DataFrame:
        """The types that are asserted, or follow from the properties of a subject."""
        type_properties = {low for low, highs in self.above.items() if _WORDS[TYPE] in highs} | {_WORDS[TYPE]}
        parts = [self._among(self.said, type_properties).select("subject", "object")]
        for word, side in ((DOMAIN, "subject"), (RANGE, "object")):
            rows = self._classes(word)
            if rows:
                ahead = self._ahead(rows, "property", "class")
                triples = self.said if side == "subject" else self.said.where(~F.col("object").startswith('"'))
                typed = triples.join(ahead, F.col("predicate") == F.col("property"))
                parts.append(typed.select(F.col(side).alias("subject"), F.col("class").alias("object")))
        return reduce(DataFrame.union, parts)

    def _of_types(self, low: DataFrame) -> DataFrame | None:
        """What follows from having a type, where `rdf:type` has a domain or a range itself."""
        of_subjects, of_classes = self._above_of_type(DOMAIN), self._above_of_type(RANGE)
        if not of_subjects and not of_classes:
            return None
        subjects = low.select("subject")
        if of_classes:
            up = self._ahead([*self.closed[_WORDS[SUBCLASS]]], "low", "high")
            higher = low.join(up, F.col("object") == F.col("low")).select(F.col("high").alias("object"))
            named = self._local([(c,) for c in sorted(of_subjects | of_classes)], "object")
            some = low.select("object").union(higher) if self.closed[_WORDS[SUBCLASS]] else low.select("object")
            schema_classes = named.crossJoin(F.broadcast(low.limit(1).select(F.lit(1).alias("any")))).select("object")
            used = (
                some.union(schema_classes)
                .where(~F.col("object").startswith('"'))
                .select(F.col("object").alias("subject"))
            )
            subjects = subjects.union(used)
            typed = used.distinct().crossJoin(self._ahead([(c,) for c in sorted(of_classes)], "object"))
        if not of_subjects:
            return typed
        all_typed = subjects.distinct().crossJoin(self._ahead([(c,) for c in sorted(of_subjects)], "object"))
        return all_typed.union(typed) if of_classes else all_typed

    def _above_of_type(self, word: Iri) -> set[str]:
        """The classes of whatever has a type, or is one, all the way up."""
        classes = {c for p, c in self._classes(word, types=True) if p == _WORDS[TYPE]}
        return classes | {b for a, b in self.closed[_WORDS[SUBCLASS]] if a in classes}

    def _classes(self, word: Iri, types: bool = False) -> list[tuple[str, str]]:
        """Properties and the classes that are their domain, or range, or that of one above them; `rdf:type` apart."""
        said: dict[str, set[str]] = {}
        for p, c in self.closed[_WORDS[word]]:
            said.setdefault(p, set()).add(c)
        result = {(p, c) for p in {*said, *self.above} for q in self._ups(p) for c in said.get(q, ())}
        return sorted(pair for pair in result if types or pair[0] != _WORDS[TYPE])

    def _ups(self, name: str) -> set[str]:
        return self.above.get(name, set()) | {name}

    # Tables of the driver

    def _local(self, rows: list[Any], *names: str) -> DataFrame:
        return self.triples.sparkSession.createDataFrame(rows, ", ".join(f"{n} string" for n in names))

    def _ahead(self, rows: list[Any], *names: str) -> DataFrame:
        return F.broadcast(self._local(rows, *names))

    def _among(self, triples: DataFrame, names: Collection[str]) -> DataFrame:
        if len(names) <= _LISTED:
            return triples.where(F.col("predicate").isin(*sorted(names)))
        return triples.join(self._ahead([(n,) for n in sorted(names)], "predicate"), "predicate", "left_semi")


# Facts


def rdf_facts(triples: DataFrame, plan: Plan) -> dict[str, FactFrame]:
    """The facts of the predicates that a program asks for; of `rdf:type`, those classes that it names."""
    calls = [call for call, _ in static_atoms(plan) if len(call.args) == 2]
    heads = {c.name for c in plan.clauses if c.body}
    wanted = sorted({c.name for c in calls if ":" in c.name and c.name not in heads | plan.queries.keys()})
    return {name: of_pairs(pairs) for name, pairs in entailed(triples, wanted, named_classes(calls)).items()}


def named_classes(calls: Iterable[Holds | Unless]) -> set[str] | None:
    """The classes that a program asks for by name; None where it asks for any."""
    result: set[str] = set()
    for call in calls:
        if call.name == TYPE.text:
            if not isinstance(call.args[1], Const) or not isinstance(call.args[1].value, Iri):
                return None
            result.add(call.args[1].value.text)
    return result


def of_pairs(pairs: DataFrame) -> FactFrame:
    """Pairs of terms as facts: IRIs by their text, literals by their values. The objects are looked at once for their kinds."""
    read = pairs.mapInArrow(_read, "c0 string, kind string, l bigint, d double, s string")
    kinds = sorted(row[0] for row in read.select("kind").distinct().collect())
    kind = reduce(common_kind, ("json" if k == "term" else k for k in kinds), None) or "iri"
    made = F.lit(None).cast(sql_type(kind))
    for item in kinds:
        slot = F.col({"double": "d", "bigint": "l"}.get(sql_type("json" if item == "term" else item), "s"))
        converted = slot if item == "term" else canonical(slot, item, kind)
        made = F.when(F.col("kind") == item, converted.cast(sql_type(kind))).otherwise(made)
    return FactFrame(read.select("c0", made.alias("c1")), ("iri", kind))


def _read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Terms as values; each different one of a batch is read once."""
    for batch in batches:
        subjects, objects = (batch.column(n).dictionary_encode() for n in ("subject", "object"))
        names = pa.array([_named(t) for t in subjects.dictionary.to_pylist()], pa.string())
        rows = [_slots(value(t)) for t in objects.dictionary.to_pylist()]
        types = {"kind": pa.string(), "l": pa.int64(), "d": pa.float64(), "s": pa.string()}
        columns = [pa.array([row[i] for row in rows], t).take(objects.indices) for i, t in enumerate(types.values())]
        yield pa.record_batch([names.take(subjects.indices), *columns], ["c0", *types])


def _named(term: str) -> str:
    return term[1:-1] if term.startswith("<") else term


def value(term: str) -> Value:
    """The value of a term of N-Triples."""
    return value_of_term(term_of_n_triples(term)) if "\\" in term else value_of_key(term)


def _slots(value: Value) -> tuple[str, int | None, float | None, str | None]:
    """The kind of a value, and the value in a column of its family."""
    kind = value_kind(value)
    if kind == "json":
        return "term", None, None, tagged(value)
    raw, family = raw_value(value), FAMILY[kind]
    return (
        kind,
        raw if family == "long" else None,
        raw if family == "double" else None,
        raw if family == "string" else None,
    )


__all__ = ["entailed", "malformed", "of_pairs", "rdf_facts", "read_rdf"]
