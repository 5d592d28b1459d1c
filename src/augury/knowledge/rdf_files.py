"""RDF files as columns of numbers: Turtle, N-Triples, N-Quads, TriG, RDF/XML and JSON-LD, read with pyoxigraph.

    open ──> lines of N-Quads ──> numbers of terms, as they are written (`Quads`) ──> by their values (`Triples`)

Plain lines of N-Triples and N-Quads are read as they stand, by the kernel that reads graph events; all else pyoxigraph first
writes as such lines. Nothing is ever fetched. A relative IRI is resolved against the file's own `file://` address.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from augury.algebra.sparql_algebra import Blank, RdfTerm, Triple
from augury.core.arrays import Array
from augury.core.errors import DataError
from augury.core.jit import expect_work
from augury.core.limits import LINE
from augury.core.model import text_hash
from augury.graphs.keys import compiled
from augury.graphs.ntriples import frozen, scan
from augury.graphs.oxigraph import is_made_up, key_from, oxigraph, said_by_parser
from augury.graphs.rdf_terms import Terms, key_text, term_of_text
from augury.knowledge.rdf import Quads, RdfTriples
from augury.sources import Skipped
from augury.storage.unique import is_in

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
CHUNK = 1 << 24  # bytes of lines at a time
BATCH = 100_000  # statements at a time
DEEPEST = 500  # elements of RDF/XML, or objects and lists of JSON-LD, inside one another


def read_rdf(path: str, skipped: Skipped, form: Form | None = None) -> RdfTriples:
    """The triples of a file by their values, see `read_quads`."""
    return read_quads(path, skipped, form).triples()


def read_quads(path: str, skipped: Skipped, form: Form | None = None) -> Quads:
    """The statements of a file, its form by its ending unless given; `-` is standard input.

    What is malformed is named by its line. Where it is skipped, that is the line of N-Triples and N-Quads, the statement
    of Turtle and TriG, the whole document of RDF/XML and JSON-LD.
    """
    form = form or form_of(path)
    oxigraph()
    position = "standard input" if path == "-" else path
    reading = _FileReading(position, form, skipped)
    with _opened(path) as file:
        try:
            _check_triple_terms(file, position)
            for lines in _lines(file, position) if form in _LINED else _statements(file, path, reading):
                reading.add(lines)
        except DataError as error:
            if form not in _WHOLE:
                raise
            skipped.handle(error)
            return _FileReading(position, form, skipped).quads()
        except RecursionError:
            raise _too_deep(position) from None
    return reading.quads()


_LINED = ("N-Triples", "N-Quads")
_WHOLE = ("RDF/XML", "JSON-LD")


def form_of(path: str) -> Form:
    """The form of a file, by its ending; standard input is TriG, as Turtle and N-Triples are, too."""
    result = "TriG" if path == "-" else ENDINGS.get(Path(path).suffix.lower())
    if result is None:
        raise DataError("is no RDF by its name", path, f"name it {', '.join(ENDINGS)}")
    return result


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


def format_of(form: Form) -> Any:
    return getattr(oxigraph().RdfFormat, form.upper().replace("-", "_").replace("/", "_"))


def _malformed(error: SyntaxError, source: str, form: Form, before: int = 0) -> DataError:
    hint = "write the whole IRI, such as <http://example.org/a>" if "No scheme found" in error.msg else ""
    position = f"{source}:{before + error.lineno}" if error.lineno else source
    return DataError(f"malformed {form}: {said_by_parser(error)}", position, hint)


# Lines of N-Triples and N-Quads


def _lines(file: IO[bytes], source: str) -> Iterator[bytes]:
    """The lines of a file, a chunk of them at a time."""
    remaining = b""
    while block := file.read(CHUNK):
        block = remaining + block
        cut = block.rfind(b"\n") + 1
        if len(block) - cut > LINE:
            raise DataError(f"a line of more than {LINE:,} bytes", source)
        yield block[:cut]
        remaining = block[cut:]
    yield remaining


class _FileReading:
    """The terms and statements of one file while it is read. Until the end, the key of a blank node is `_:label.`."""

    def __init__(self, source: str, form: Form, skipped: Skipped) -> None:
        self.location, self.form, self.skipped = source, form, skipped
        self.terms = Terms()
        self.rows = [np.empty((0, 4), np.int32)]
        self.before = 0  # lines that are read already

    def add(self, lines: bytes) -> None:
        """Plain lines are read by the kernel, once it is compiled, and all others by pyoxigraph."""
        data = frozen(lines)
        bounds = np.concatenate([[0], np.flatnonzero(data == ord("\n")) + 1])
        if bounds[-1] < len(data):
            bounds = np.append(bounds, len(data))
        count = len(bounds) - 1
        expect_work(count)
        rows, plain = np.empty((5, 0), np.int64), np.zeros(count, bool)
        if compiled() and _is_utf_8(lines):
            nameless = frozen(b""), np.zeros(count + 1, np.int64)
            rows, plain, _ = scan(data, bounds, lambda: nameless, self.terms, lines=True)
            if self.form == "N-Triples":  # which has no graphs
                named = rows[4] >= 0
                plain[rows[0, named]] = False
                rows = rows[:, ~named]
        odd = self._parsed([(i, lines[bounds[i] : bounds[i + 1]]) for i in np.flatnonzero(~plain).tolist()])
        both = np.concatenate([rows.T, odd])
        self.rows.append(both[np.argsort(both[:, 0], kind="stable"), 1:].astype(np.int32))
        self.before += count

    def _parsed(self, lines: list[tuple[int, bytes]]) -> Array:
        """The statements of lines by pyoxigraph; one that is malformed is named by its number."""
        ox, format = oxigraph(), format_of(self.form if self.form in _LINED else "N-Quads")
        keys, numbers, unnamed = list[bytes](), list[int](), list[bool]()
        for number, line in lines:
            try:
                quads = list(ox.parse(line, format))
            except SyntaxError as error:
                self.skipped.handle(_malformed(error, self.location, self.form, self.before + number))
                continue
            for quad in quads:
                alone = isinstance(quad.graph_name, ox.DefaultGraph)
                graph = quad.predicate if alone else quad.graph_name
                keys += [key_from(t, _unfinished) for t in (quad.subject, quad.predicate, quad.object, graph)]
                numbers.append(number)
                unnamed.append(alone)
        rows = self.terms.keys.add(keys).reshape(-1, 4)
        rows[np.array(unnamed, bool), 3] = -1
        return np.column_stack([np.array(numbers, np.int64), rows])

    def quads(self) -> Quads:
        """The triples of a file. A blank node gets a name that no other file has: its label and a hash of the location."""
        file, made_up = f"{text_hash(self.location):016x}", dict[str, int]()

        def named(term: RdfTerm) -> RdfTerm:
            match term:
                case Blank():
                    label = term.label.removesuffix(".")
                    if is_made_up(label):
                        label = f"-{made_up.setdefault(label, len(made_up))}"
                    return Blank(f"{label}.{file}")
                case Triple():
                    return Triple(named(term.subject), named(term.predicate), named(term.object))
            return term

        keys = [key.decode("utf-8", "surrogatepass") for key in self.terms.keys.all(0, len(self.terms))]
        for number, key in enumerate(keys):
            if key[0] == "_" or key[1] == "<":
                keys[number] = key_text(named(term_of_text(key)))
        return Quads(keys, np.concatenate(self.rows))


def _unfinished(label: str) -> str:
    return f"{label}."


def _is_utf_8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


# Documents


def _statements(file: IO[bytes], path: str, reading: _FileReading) -> Iterator[bytes]:
    """The statements of a document, written by pyoxigraph as lines of N-Quads."""
    ox, form = oxigraph(), reading.form
    base = (Path.cwd() / "-" if path == "-" else Path(path).resolve()).as_uri()
    if form in _WHOLE:
        file = io.BytesIO(_checked(file.read(), reading.location, form))
    parser = ox.parse(file, format_of(form), base_iri=base)
    quads = _recovering(parser, reading) if form not in _WHOLE else _stopping(parser, file, reading, base)
    while lines := ox.serialize(islice(quads, BATCH), format=ox.RdfFormat.N_QUADS):
        yield lines


def _recovering(parser: Iterator[object], reading: _FileReading) -> Iterator[Any]:
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
            reading.skipped.handle(_malformed(error, reading.location, reading.form))


def _stopping(parser: Iterator[object], file: IO[bytes], reading: _FileReading, base: str) -> Iterator[Any]:
    """The statements of RDF/XML and JSON-LD, up to a mistake."""
    try:
        yield from parser
    except SyntaxError as error:
        file.seek(0)
        data = file.read()
        if "remote context" in error.msg:
            raise _remote(data, reading.location) from None
        if error.lineno is None:
            error.lineno = _line_of_mistake(data, reading.form, base)
        raise _malformed(error, reading.location, reading.form) from None


def _checked(data: bytes, source: str, form: Form) -> bytes:
    """A document that is not empty, and well-formed XML where it should be: the parser takes one that is cut off."""
    if not data.strip():
        raise DataError("is empty", source)
    if form == "JSON-LD" and _depth_of_json(data) > DEEPEST:
        raise _too_deep(source)
    if form == "RDF/XML":
        from xml.parsers import expat

        try:
            _xml_parser(source).Parse(data, True)
        except expat.ExpatError as error:
            text = expat.errors.messages[error.code]
            raise DataError(f"malformed XML: {text} at column {error.offset + 1}", f"{source}:{error.lineno}") from None
    return data


def _too_deep(source: str) -> DataError:
    return DataError(
        f"is nested more than {DEEPEST} deep", source, "give nested nodes an id, and move them to the top level"
    )


_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_LONG_STRING = rb'"{3}(?:[^"\\]|\\.|"(?!""))*"{3}|\'{3}(?:[^\'\\]|\\.|\'(?!\'\'))*\'{3}'
_IRI_OR_COMMENT = rb"<[^<>\s]*>|#[^\n]*"


def _depth_of_json(data: bytes) -> int:
    """How deep objects and lists are nested; brackets inside strings are none."""
    return _depth(re.sub(_STRING, b"", data, flags=re.DOTALL), "[{", "]}")


def _check_triple_terms(file: IO[bytes], source: str) -> None:
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
            raise _too_deep(source)


def _depth(bare: bytes, opening: str, closing: str) -> int:
    """The greatest number of brackets that are open at one place."""
    data = np.frombuffer(bare, np.uint8)
    steps = is_in(data, list(opening.encode())).astype(np.int8) - is_in(data, list(closing.encode()))
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


def _xml_parser(source: str) -> Any:
    """A parser that only looks whether XML is well-formed, and not nested too deeply."""
    from xml.parsers import expat

    parser, depth = expat.ParserCreate(), 0

    def opened(name: str, attributes: object) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise _too_deep(f"{source}:{parser.CurrentLineNumber}")

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
        self.remainder = b""

    def read(self, size: int = -1) -> bytes:
        if not self.remainder and self.number < len(self.lines):
            self.remainder = self.lines[self.number]
            self.number += 1
        size = len(self.remainder) if size < 0 else size
        data, self.remainder = self.remainder[:size], self.remainder[size:]
        return data


def _line_of_mistake(data: bytes, form: Form, base: str) -> int | None:
    """The line at which a parser stops that does not say so itself."""
    lines = _ByLine(data)
    try:
        for _ in oxigraph().parse(lines, format_of(form), base_iri=base):
            pass
    except SyntaxError:
        return lines.number
    return None


def _remote(data: bytes, source: str) -> DataError:
    """The error for a context that would have to be fetched."""
    try:
        result = next(_contexts(json.loads(data)), "")
    except ValueError:
        result = ""
    spelt = json.dumps(result, ensure_ascii=False).encode()
    line = data[: data.find(spelt)].count(b"\n") + 1 if result and spelt in data else 0
    return DataError(
        f"its @context is in another document, which is not fetched{f': {result}' if result else ''}",
        f"{source}:{line}" if line else source,
        "put the object that is there into the @context of the file",
    )


def _contexts(item: object) -> Iterator[str]:
    """The addresses of the contexts that a JSON-LD document refers to."""
    if isinstance(item, list):
        for part in item:
            yield from _contexts(part)
    elif isinstance(item, dict):
        for key, part in item.items():
            if key in ("@context", "@import"):
                yield from (item for item in (part if isinstance(part, list) else [part]) if isinstance(item, str))
            yield from _contexts(part)
