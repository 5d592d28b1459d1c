"""RDF files as columns of numbers: Turtle, N-Triples, N-Quads, TriG, RDF/XML and JSON-LD, read with pyoxigraph.

    open ──> lines of N-Quads ──> four words a line ──> numbers, one a different word ──> `Triples`

Plain lines of N-Triples and N-Quads are cut into words as they stand; all else pyoxigraph first writes as such lines.
Nothing is ever fetched. A relative IRI is resolved against the file's own `file://` address.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

import numpy as np

from augury.errors import DataError, RunError
from augury.graphs.literals import LANG_STRING, literal_value, term_key, value_of
from augury.knowledge.fact_table import FactTable
from augury.model import Iri, Value, text_hash
from augury.sources import Coded, Skipped

Form = Literal["Turtle", "N-Triples", "N-Quads", "TriG", "RDF/XML", "JSON-LD"]
ENDINGS: dict[str, Form] = {
    ".ttl": "Turtle",
    ".nt": "N-Triples",
    ".nq": "N-Quads",
    ".trig": "TriG",
    ".rdf": "RDF/XML",
    ".owl": "RDF/XML",
    ".xml": "RDF/XML",
    ".jsonld": "JSON-LD",
}
Array: TypeAlias = Any
Pairs: TypeAlias = tuple[Array, Array]  # the subjects and the objects of one predicate
Split: TypeAlias = tuple[Array, Array]  # a row of four words a line, and the different words
CHUNK = 1 << 24  # bytes of lines at a time
BATCH = 100_000  # statements at a time
DEEPEST = 500  # elements of RDF/XML, or objects and lists of JSON-LD, inside one another


# Triples


class _Terms:
    """Different terms, each with a number."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.iris: dict[str, int] = {}
        self._texts: dict[str, int] = {}
        self._others: dict[Any, int] = {}

    def number(self, value: Value) -> int:
        """The number of a term, a new one where there is none."""
        if type(value) is Iri:
            number = self.iris.setdefault(value.text, len(self.values))
        elif type(value) is str:
            number = self._texts.setdefault(value, len(self.values))
        else:
            number = self._others.setdefault(term_key(value), len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


@dataclass(frozen=True)
class Triples:
    """Triples as numbers of terms: `terms[subject[i]]` is the subject of triple `i`; graph -1 is the default graph."""

    terms: Sequence[Value]  # all different
    subject: Array
    predicate: Array
    object: Array
    graph: Array

    @staticmethod
    def of(rows: Iterable[tuple[Value, Value, Value]]) -> Triples:
        """Triples of the default graph."""
        terms = _Terms()
        numbers = [terms.number(value) for row in rows for value in row]
        subject, predicate, object = np.array(numbers, np.int32).reshape(-1, 3).T
        return Triples(terms.values, subject, predicate, object, np.full(len(subject), -1, np.int32))

    @staticmethod
    def joined(parts: Sequence[Triples]) -> Triples:
        """The triples of several files as one; a term that is in two of them has one number."""
        if len(parts) == 1:
            return parts[0]
        terms = _Terms()
        columns: list[list[Array]] = [[], [], [], []]
        for part in parts:
            places = np.array(
                [*map(terms.number, part.terms), -1], np.int32
            )  # the last one is that of the default graph
            for column, numbers in zip(columns, (part.subject, part.predicate, part.object, part.graph), strict=True):
                column.append(places[numbers])
        return Triples(terms.values, *(np.concatenate([np.empty(0, np.int32), *column]) for column in columns))

    def __len__(self) -> int:
        return len(self.subject)

    def __iter__(self) -> Iterator[tuple[Value, Value, Value]]:
        for s, p, o in zip(self.subject.tolist(), self.predicate.tolist(), self.object.tolist(), strict=True):
            yield self.terms[s], self.terms[p], self.terms[o]

    @cached_property
    def pairs(self) -> dict[int, Pairs]:
        """Subjects and objects for each predicate, over all graphs: every pair once, in order."""
        n = max(1, len(self.terms))
        order = np.argsort(self.predicate, kind="stable")
        keys = (self.subject.astype(np.int64) * n + self.object)[order]
        ordered = self.predicate[order]
        found = distinct(ordered)
        parts = np.split(keys, np.searchsorted(ordered, found[1:]))
        return {p: split(distinct(part), n) for p, part in zip(found.tolist(), parts, strict=False)}

    def tables(self, only: Collection[str] | None = None) -> list[FactTable]:
        """A table of two columns for each predicate, named by its IRI; of those in `only`, where it is given."""
        return tables_of_pairs(self.terms, self.pairs, only)


def distinct(keys: Array) -> Array:
    """The different numbers, in order. (NumPy's own `unique` hashes, which is ten times slower.)"""
    keys = np.sort(keys)
    return keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys


def split(keys: Array, n: int) -> Pairs:
    """Pairs from `first * n + second`."""
    first = keys // n
    return first.astype(np.int32), (keys - first * n).astype(np.int32)


def tables_of_pairs(
    terms: Sequence[Value], pairs: dict[int, Pairs], only: Collection[str] | None = None
) -> list[FactTable]:
    """Tables named by the IRIs of their predicates, in the order of these names."""
    named = {name.text: rows for p, rows in pairs.items() if type(name := terms[p]) is Iri}
    chosen = sorted(name for name in named if not name.startswith("_:") and (only is None or name in only))
    places = np.empty(len(terms), np.int32)
    return [
        FactTable(name, tuple(_column(terms, numbers, places) for numbers in named[name]), len(named[name][0]))
        for name in chosen
    ]


def _column(terms: Sequence[Value], numbers: Array, places: Array) -> Coded:
    """A column that has no other values than those in it; `places` is room to write in."""
    if len(numbers) * 8 < len(terms):
        found = distinct(numbers)
    else:
        marked = np.zeros(len(terms), bool)
        marked[numbers] = True
        found = np.flatnonzero(marked)
    places[found] = np.arange(len(found), dtype=np.int32)
    return Coded([terms[i] for i in found.tolist()], places[numbers])


# Files


def read_rdf(path: str, skipped: Skipped, form: Form | None = None) -> Triples:
    """The triples of a file, its form by its ending unless given; `-` is standard input.

    What is malformed is named by its line. Where it is skipped, that is the line of N-Triples and N-Quads, the statement
    of Turtle and TriG, the whole document of RDF/XML and JSON-LD.
    """
    form = form or form_of(path)
    _oxigraph()
    place = "standard input" if path == "-" else path
    reading = _Reading(place, form)
    with _opened(path) as file:
        try:
            _check_triple_terms(file, place)
            for part in _lines(file, reading, skipped) if form in _LINED else _statements(file, path, reading, skipped):
                reading.add(part)
        except DataError as error:
            if form not in _WHOLE:
                raise
            skipped.handle(error)
            return _Reading(place, form).triples()
        except RecursionError:
            raise _too_deep(place) from None
    return reading.triples()


_LINED = ("N-Triples", "N-Quads")
_WHOLE = ("RDF/XML", "JSON-LD")


def form_of(path: str) -> Form:
    """The form of a file, by its ending; standard input is TriG, as Turtle and N-Triples are, too."""
    found = "TriG" if path == "-" else ENDINGS.get(Path(path).suffix.lower())
    if found is None:
        raise DataError("is no RDF by its name", path, f"name it {', '.join(ENDINGS)}")
    return found


def _oxigraph() -> Any:
    try:
        import pyoxigraph
    except ImportError:
        raise RunError("RDF is read with pyoxigraph, which is not installed", "pip install 'augury[rdf]'") from None
    return pyoxigraph


def _opened(path: str) -> IO[bytes]:
    """A file behind its byte order mark, if it has one."""
    try:
        file = io.BytesIO(sys.stdin.buffer.read()) if path == "-" else open(path, "rb")  # noqa: SIM115
        if file.read(3) != b"\xef\xbb\xbf":
            file.seek(0)
        return file
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except IsADirectoryError:
        raise DataError("is a directory, not a file", path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path) from None


def _format(form: Form) -> Any:
    formats = _oxigraph().RdfFormat
    return getattr(formats, form.upper().replace("-", "_").replace("/", "_"))


def _malformed(error: SyntaxError, place: str, form: Form, before: int = 0) -> DataError:
    text = re.sub(r"^Parser error (at|between) [^:]*: ", "", error.msg)
    column = f" at column {error.offset}" if error.offset else ""
    hint = "write the whole IRI, such as <http://example.org/a>" if "No scheme found" in text else ""
    at = f"{place}:{before + error.lineno}" if error.lineno else place
    return DataError(f"malformed {form}: {text[:1].lower()}{text[1:]}{column}", at, hint)


# Lines of N-Triples and N-Quads


def _lines(file: IO[bytes], reading: _Reading, skipped: Skipped) -> Iterator[Split]:
    """The words of a file of lines, a chunk at a time."""
    rest, before = b"", 0
    while block := file.read(CHUNK):
        block = rest + block
        cut = block.rfind(b"\n") + 1
        chunk, rest = block[:cut], block[cut:]
        yield from _chunk(chunk, before, reading, skipped)
        before += chunk.count(b"\n")
    yield from _chunk(rest, before, reading, skipped)


def _chunk(chunk: bytes, before: int, reading: _Reading, skipped: Skipped) -> Iterator[Split]:
    if not chunk.strip():
        return
    found = _cut(chunk, reading.graphs)
    if found is None or not _plain(found[1]):
        found = _cut(_canonical(chunk, before, reading, skipped), reading.graphs)
    if found is not None:
        yield found


def _canonical(chunk: bytes, before: int, reading: _Reading, skipped: Skipped) -> bytes:
    """Lines as pyoxigraph would write them; where one is malformed, they are read one by one."""
    ox, format = _oxigraph(), _format(reading.form)

    def write(lines: bytes) -> bytes:
        return ox.serialize(ox.parse(lines, format), format=ox.RdfFormat.N_QUADS)  # type: ignore[no-any-return]

    try:
        return write(chunk)
    except SyntaxError as error:
        if skipped.on_error == "stop":
            raise _malformed(error, reading.place, reading.form, before) from None
    good: list[bytes] = []
    for number, line in enumerate(chunk.split(b"\n"), before + 1):
        try:
            good.append(write(line))
        except SyntaxError as error:
            skipped.handle(_malformed(error, reading.place, reading.form, number - (error.lineno or 0)))
    return b"".join(good)


def _cut(lines: bytes, graphs: bool) -> Split | None:
    """Lines `s p o .` and `s p o g .` as words, each with what follows it: `s `, `p `, `o ` and `.` or `g .`.

    The words are cut in place, at the first two spaces and before the graph, which is what follows the last space but
    one if it is no part of a literal. None where a line does not look like that.
    """
    import pyarrow as pa

    data = np.frombuffer(lines, np.uint8)
    ends, spaces = np.flatnonzero(data == ord("\n")), np.flatnonzero(data == ord(" "))
    if not len(ends) or ends[-1] != len(data) - 1:
        return None
    bounds = np.empty((len(ends), 4), np.int32)
    bounds[:, 0] = starts = np.concatenate([[0], ends[:-1] + 1])
    first = np.searchsorted(spaces, starts)
    if first[-1] + 3 > len(spaces):
        return None
    bounds[:, 1] = predicates = spaces[first] + 1
    bounds[:, 2] = objects = spaces[first + 1] + 1
    bounds[:, 3] = ends - 1
    if not (
        np.all(objects <= ends - 3)
        and np.all(data[ends - 1] == ord("."))
        and np.all(data[ends - 2] == ord(" "))
        and np.all(data[predicates] == ord("<"))
        and np.all(np.isin(data[starts], (ord("<"), ord("_"))))
    ):
        return None
    if graphs:
        last = spaces[np.searchsorted(spaces, ends) - 2] + 1
        quotes = np.flatnonzero(data == ord('"'))
        named = (last > objects) & np.isin(data[last], (ord("<"), ord("_")))
        named &= np.searchsorted(quotes, last) == np.searchsorted(quotes, ends)
        bounds[named, 3] = last[named]
    offsets = np.append(bounds.ravel(), np.int32(len(data)))
    words = pa.Array.from_buffers(pa.binary(), bounds.size, [None, pa.py_buffer(offsets), pa.py_buffer(lines)])
    words = words.dictionary_encode()
    try:
        return words.indices.to_numpy().reshape(-1, 4), words.dictionary.cast(pa.string())
    except pa.ArrowInvalid:  # not UTF-8
        return None


_CHAR = r"[\w.~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2}"
_PLAIN_IRI = rf"[A-Za-z][\w+.-]*:(?://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/(?:{_CHAR})*)?|[A-Za-z0-9](?:{_CHAR})*)(?:\?(?:{_CHAR})*)?(?:#(?:{_CHAR})*)?"
_PLAIN_NODE = rf"<{_PLAIN_IRI}> |_:[A-Za-z0-9]+ "
_PLAIN_TEXT = rf'"[^"\\\x00-\x1f\x7f]*"(?:@[A-Za-z]{{2,3}}(?:-[A-Za-z]{{2}})?|\^\^<{_PLAIN_IRI}>)? '
_PLAIN = rf"^(?:{_PLAIN_NODE}|{_PLAIN_TEXT}|(?:{_PLAIN_NODE})?\.\n)$"


def _plain(words: Array) -> bool:
    """Whether all words are surely well formed and without escapes: ASCII names, text in any script."""
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(words, _PLAIN)).as_py())


# Documents


def _statements(file: IO[bytes], path: str, reading: _Reading, skipped: Skipped) -> Iterator[Split]:
    """The words of a document, written by pyoxigraph as lines of N-Quads."""
    ox, form = _oxigraph(), reading.form
    base = (Path.cwd() / "-" if path == "-" else Path(path).resolve()).as_uri()
    if form in _WHOLE:
        file = io.BytesIO(_checked(file.read(), reading.place, form))
    parser = ox.parse(file, _format(form), base_iri=base)
    quads = _recovering(parser, reading, skipped) if form not in _WHOLE else _stopping(parser, file, reading, base)
    while lines := ox.serialize(islice(quads, BATCH), format=ox.RdfFormat.N_QUADS):
        found = _cut(lines, reading.graphs)
        if found is None:
            raise RunError(f"{reading.place}: pyoxigraph wrote something else than N-Quads")
        yield found


def _recovering(parser: Iterator[Any], reading: _Reading, skipped: Skipped) -> Iterator[Any]:
    """The statements of Turtle and TriG; after a malformed one the parser goes on with the next."""
    seen: str | None = None
    while True:
        try:
            yield from parser
            return
        except SyntaxError as error:
            if error.msg == seen:
                return
            seen = error.msg
            skipped.handle(_malformed(error, reading.place, reading.form))


def _stopping(parser: Iterator[Any], file: IO[bytes], reading: _Reading, base: str) -> Iterator[Any]:
    """The statements of RDF/XML and JSON-LD, up to a mistake."""
    try:
        yield from parser
    except SyntaxError as error:
        file.seek(0)
        data = file.read()
        if "remote context" in error.msg:
            raise _remote(data, reading.place) from None
        if error.lineno is None:
            error.lineno = _line_of_mistake(data, reading.form, base)
        raise _malformed(error, reading.place, reading.form) from None


def _checked(data: bytes, place: str, form: Form) -> bytes:
    """A document that is not empty, and well-formed XML where it should be: the parser takes one that is cut off."""
    if not data.strip():
        raise DataError("is empty", place)
    if form == "JSON-LD" and _depth_of_json(data) > DEEPEST:
        raise _too_deep(place)
    if form == "RDF/XML":
        from xml.parsers import expat

        try:
            _xml_parser(place).Parse(data, True)
        except expat.ExpatError as error:
            text = expat.errors.messages[error.code]
            raise DataError(f"malformed XML: {text} at column {error.offset + 1}", f"{place}:{error.lineno}") from None
    return data


def _too_deep(place: str) -> DataError:
    return DataError(
        f"is nested more than {DEEPEST} deep", place, "give nodes an id, and say of each where it stands alone"
    )


_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_LONG_STRING = rb'"{3}(?:[^"\\]|\\.|"(?!""))*"{3}|\'{3}(?:[^\'\\]|\\.|\'(?!\'\'))*\'{3}'
_IRI_OR_COMMENT = rb"<[^<>\s]*>|#[^\n]*"


def _depth_of_json(data: bytes) -> int:
    """How deep objects and lists are nested; brackets inside strings are none."""
    return _depth(re.sub(_STRING, b"", data, flags=re.DOTALL), "[{", "]}")


def _check_triple_terms(file: IO[bytes], place: str) -> None:
    """Refuses triples inside triples beyond measure, `<<( … <<( …`; only a file with very many is looked at closely."""
    begin = file.tell()
    count = sum(block.count(b"<<") for block in iter(lambda: file.read(CHUNK), b""))
    file.seek(begin)
    if count > DEEPEST:
        bare = re.sub(
            b"|".join([_LONG_STRING, _STRING, _STRING.replace(b'"', b"'"), _IRI_OR_COMMENT]),
            b"",
            file.read(),
            flags=re.DOTALL,
        )
        file.seek(begin)
        if _depth(bare.replace(b"<<", b"{").replace(b">>", b"}"), "{", "}") > DEEPEST:
            raise _too_deep(place)


def _depth(bare: bytes, opening: str, closing: str) -> int:
    """The greatest number of brackets that are open at one place."""
    data = np.frombuffer(bare, np.uint8)
    steps = np.isin(data, list(opening.encode())).astype(np.int8) - np.isin(data, list(closing.encode()))
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


def _xml_parser(place: str) -> Any:
    """A parser that only looks whether XML is well-formed, and not nested too deeply."""
    from xml.parsers import expat

    parser, depth = expat.ParserCreate(), 0

    def opened(name: str, attributes: object) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise _too_deep(f"{place}:{parser.CurrentLineNumber}")

    def closed(name: str) -> None:
        nonlocal depth
        depth -= 1

    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    return parser


class _ByLine:
    """Hands out a line at a time, so that the number of the last one read is known."""

    def __init__(self, data: bytes) -> None:
        self.lines = data.splitlines(keepends=True)
        self.number = 0
        self.rest = b""

    def read(self, size: int = -1) -> bytes:
        if not self.rest and self.number < len(self.lines):
            self.rest = self.lines[self.number]
            self.number += 1
        size = len(self.rest) if size < 0 else size
        given, self.rest = self.rest[:size], self.rest[size:]
        return given


def _line_of_mistake(data: bytes, form: Form, base: str) -> int | None:
    """The line at which a parser stops that does not say so itself."""
    lines = _ByLine(data)
    try:
        for _ in _oxigraph().parse(lines, _format(form), base_iri=base):
            pass
    except SyntaxError:
        return lines.number
    return None


def _remote(data: bytes, place: str) -> DataError:
    """What is said about a context that would have to be fetched."""
    try:
        found = next(_contexts(json.loads(data)), "")
    except ValueError:
        found = ""
    spelt = json.dumps(found, ensure_ascii=False).encode()
    line = data[: data.find(spelt)].count(b"\n") + 1 if found and spelt in data else 0
    return DataError(
        f"its @context is in another document, which is not fetched{f': {found}' if found else ''}",
        f"{place}:{line}" if line else place,
        "put the object that is there into the @context of the file",
    )


def _contexts(item: Any) -> Iterator[str]:
    """The addresses of the contexts that a JSON-LD document refers to."""
    if isinstance(item, list):
        for part in item:
            yield from _contexts(part)
    elif isinstance(item, dict):
        for key, part in item.items():
            if key in ("@context", "@import"):
                yield from (one for one in (part if isinstance(part, list) else [part]) if isinstance(one, str))
            yield from _contexts(part)


class _Reading:
    """The terms and triples of one file while it is read."""

    def __init__(self, place: str, form: Form) -> None:
        self.place, self.form = place, form
        self.graphs = form in ("N-Quads", "TriG", "JSON-LD")
        self.terms = _Terms()
        self.rows: list[Array] = []
        self._anonymous: dict[str, int] = {}
        self._file = f"{text_hash(place):016x}"

    def add(self, part: Split) -> None:
        codes, words = part
        known, numbers = self.terms.iris, list[int]()
        for word in words.to_pylist():
            if word[0] == "<" and word[-1] == " " and word[1] != "<":  # an IRI, as most are
                name = word[1:-2]
                number = known.get(name)
                numbers.append(self.terms.number(Iri(name)) if number is None else number)
            else:
                numbers.append(self._number(word))
        self.rows.append(np.array(numbers, np.int32)[codes])

    def triples(self) -> Triples:
        rows = np.concatenate([np.empty((0, 4), np.int32), *self.rows])
        return Triples(self.terms.values, *(np.ascontiguousarray(rows[:, i]) for i in range(4)))

    def _number(self, word: str) -> int:
        """The number of the term that a word of N-Quads stands for, -1 for that of the default graph."""
        if word == ".\n":
            return -1
        word = word.removesuffix(".\n")
        if word[0] == '"' or word[1] == "<":
            return self.terms.number(self._literal(word))
        return self.terms.number(Iri(word[1:-2] if word[0] == "<" else "_:" + self._blank(word[2:-1])))

    def _literal(self, word: str) -> Value:
        if "\\" in word or word[0] == "<":
            line = f"<a:a> <a:a> {word}.\n".encode()
            return value_of(next(_oxigraph().parse(line, _oxigraph().RdfFormat.N_TRIPLES)).object, self._blank)
        end = word.rindex('"')
        text, kind = word[1:end], word[end + 1 : -1]
        if not kind:
            return text
        return literal_value(text, LANG_STRING, kind[1:]) if kind[0] == "@" else literal_value(text, kind[3:-1])

    def _blank(self, label: str) -> str:
        """A name that no other file has: the label, or a number where the parser made one up, and a hash of the place."""
        if _MADE_UP.fullmatch(label):
            label = f"-{self._anonymous.setdefault(label, len(self._anonymous))}"
        return f"{label}.{self._file}"


_MADE_UP = re.compile(r"[0-9a-f]{24,32}")
