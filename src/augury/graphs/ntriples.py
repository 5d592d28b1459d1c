"""Plain N-Triples and N-Quads as triples of numbers, for a whole column of texts: a kernel over their bytes.

A text is the graph of an event, or one line of a file, which may have the name of a graph behind its triple.

What is not plain is left to the parser, with the whole text that it stands in: escapes, prefixes, IRIs with other characters than
those of ASCII that surely stand in one, and all that is malformed. A term is looked at closely when it is new; one that
is known is well-formed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from augury.algebra.sparql_algebra import RDF, STRING
from augury.core.arrays import Array, Bytes
from augury.core.jit import Kernel, helper
from augury.graphs.keys import add_key, find_key, hash_of, put_key, same_bytes
from augury.graphs.rdf_terms import Terms
from augury.storage.kernels.hashing import NUMBER
from augury.storage.table import capacity, grown

Arrays: TypeAlias = tuple[Array, ...]
MAKES_NO_ARRAYS = True
_FEW = 16  # triples of an event that are compared with one another
_GUESSES = 8  # predicates of an event that are expected to be those of the event before
_TOGETHER = 512  # terms that are looked up together
_PORTION = _TOGETHER * 32  # bytes of texts that are read before their terms are looked up
_CHECKED = -1  # no hash: a term that is not wanted
_NO_TERM = -(1 << 62)  # in place of a term where a triple has no graph
NOT_PLAIN = -1
NO_GRAPH = -1  # in place of the number of its name
DONE, NO_ROOM, NO_NAMES = 0, 1, 2
# The state of a scan: how many terms and triples there are, whether some may be twice, the next event; the last one is not used
TERMS, TRIPLES, REPEATED, EVENT, UNUSED = range(5)

# What a byte may be, as bits
_SPACE, _IN_IRI, _LETTER, _DIGIT, _HEX, _PATH, _HOST, _IN_TEXT = (1 << i for i in range(8))


def _classes() -> Array:
    """For each byte what it may be."""
    result = np.zeros(256, np.uint8)
    for bit, characters in (
        (_SPACE, " \t\r\n"),
        (_IN_IRI, "".join(chr(c) for c in range(33, 127) if chr(c) not in '<>"{}|^`\\')),
        (_LETTER, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        (_DIGIT, "0123456789"),
        (_HEX, "0123456789abcdefABCDEF"),
        (_PATH, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.~!$&'()*+,;=:@/"),
        (_HOST, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"),
    ):
        for c in characters.encode():
            result[c] |= bit
    for c in range(32, 256):
        if c not in b'"\\\x7f':
            result[c] |= _IN_TEXT
    return result


CLASSES = _classes()
_LT, _GT, _QUOTE, _AT, _CARET, _DOT, _HASH, _COLON, _UNDERSCORE, _SLASH, _PERCENT, _QUESTION, _MINUS = b'<>"@^.#:_/%?-'
_LF, _CR, _TAB, _BLANK = b"\n\r\t "
_STRING = np.frombuffer(f"^^<{STRING}>".encode(), np.uint8)
_RDF = np.frombuffer(f"^^<{RDF}".encode(), np.uint8)


@helper
def _begins(data: Bytes, begin: int, end: int, text: Array) -> bool:
    """Whether a text stands at a place."""
    return end - begin >= len(text) and same_bytes(data, begin, text, 0, len(text))


@helper
def _after_space(data: Bytes, pos: int, end: int) -> int:
    """Where spaces, ends of lines and comments end."""
    while pos < end:
        if CLASSES[data[pos]] & _SPACE:
            pos += 1
        elif data[pos] == _HASH:
            while pos < end and data[pos] != _LF and data[pos] != _CR:
                pos += 1
        else:
            break
    return pos


@helper
def _iri_end(data: Bytes, pos: int, end: int) -> int:
    """Where an IRI ends that begins with `<` here; NOT_PLAIN where it has what no plain one has."""
    pos += 1
    while pos < end and CLASSES[data[pos]] & _IN_IRI:
        pos += 1
    return pos + 1 if pos < end and data[pos] == _GT else NOT_PLAIN


@helper
def _is_plain_iri(data: Bytes, begin: int, end: int) -> bool:
    """Whether what stands between `<` and `>` is surely an IRI: a scheme, a host and a port or none, a path, a query, a fragment."""
    pos, last = begin + 1, end - 1
    if not CLASSES[data[pos]] & _LETTER:
        return False
    while pos < last and (
        CLASSES[data[pos]] & (_LETTER | _DIGIT) or data[pos] == 43 or data[pos] == _MINUS or data[pos] == _DOT
    ):
        pos += 1
    if pos >= last or data[pos] != _COLON:
        return False
    pos += 1
    if pos + 1 < last and data[pos] == _SLASH and data[pos + 1] == _SLASH:
        pos += 2
        first = pos
        while pos < last and CLASSES[data[pos]] & _HOST:
            pos += 1
        if pos == first:
            return False
        if pos < last and data[pos] == _COLON:
            pos += 1
            first = pos
            while pos < last and CLASSES[data[pos]] & _DIGIT:
                pos += 1
            if pos == first:
                return False
        if pos < last and data[pos] != _SLASH and data[pos] != _QUESTION and data[pos] != _HASH:
            return False
    elif pos >= last or not CLASSES[data[pos]] & (_LETTER | _DIGIT):
        return False
    part = 0  # of path, query, fragment
    while pos < last:
        byte = data[pos]
        if CLASSES[byte] & _PATH:
            pos += 1
        elif byte == _PERCENT:
            if pos + 2 >= last or not CLASSES[data[pos + 1]] & _HEX or not CLASSES[data[pos + 2]] & _HEX:
                return False
            pos += 3
        elif byte == _QUESTION and part == 0:
            part = 1
            pos += 1
        elif byte == _HASH and part < 2:
            part = 2
            pos += 1
        else:
            return False
    return True


@helper
def _label_end(data: Bytes, pos: int, end: int) -> int:
    """Where a blank node ends that begins with `_` here, and is of letters and digits, with a space behind it."""
    if pos + 2 >= end or data[pos + 1] != _COLON:
        return NOT_PLAIN
    pos += 2
    first = pos
    while pos < end and CLASSES[data[pos]] & (_LETTER | _DIGIT):
        pos += 1
    return pos if pos > first and pos < end and CLASSES[data[pos]] & _SPACE else NOT_PLAIN


@helper
def _tag_end(data: Bytes, pos: int, end: int) -> int:
    """Where a language ends that begins with `@` here: two or three letters, and two more behind a hyphen or none."""
    pos += 1
    first = pos
    while pos < end and CLASSES[data[pos]] & _LETTER:
        pos += 1
    if pos - first < 2 or pos - first > 3:
        return NOT_PLAIN
    if pos < end and data[pos] == _MINUS:
        pos += 1
        first = pos
        while pos < end and CLASSES[data[pos]] & _LETTER:
            pos += 1
        if pos - first != 2:
            return NOT_PLAIN
    if pos < end and (data[pos] == _MINUS or CLASSES[data[pos]] & _DIGIT):
        return NOT_PLAIN
    return pos


@helper
def _literal_end(data: Bytes, pos: int, end: int) -> int:
    """Where the text of a literal ends that begins with a quote here, behind the second quote."""
    pos += 1
    first = pos
    while pos < end and CLASSES[data[pos]] & _IN_TEXT:
        pos += 1
    if pos >= end or data[pos] != _QUOTE:
        return NOT_PLAIN
    if pos == first and pos + 1 < end and data[pos + 1] == _QUOTE:  # three quotes begin a long text
        return NOT_PLAIN
    return pos + 1


@helper
def _term_end(data: Bytes, pos: int, end: int, kind: Array) -> int:
    """Where a term ends; NOT_PLAIN where it is not plain as far as that is looked at here.

    `kind` is where the last datatype stood at this place of an event, and its length: mostly it is the next one as well.
    """
    byte = data[pos]
    if byte == _UNDERSCORE:
        return _label_end(data, pos, end)  # type: ignore[no-any-return]
    typed = False
    if byte == _QUOTE:
        pos = _literal_end(data, pos, end)
        if pos < 0 or pos >= end:
            return NOT_PLAIN
        length = kind[1]
        if 0 < length <= end - pos and same_bytes(data, pos, data, kind[0], length):
            return pos + length  # type: ignore[no-any-return]
        if data[pos] == _AT:
            return _tag_end(data, pos, end)  # type: ignore[no-any-return]
        if data[pos] != _CARET:
            return pos
        if pos + 2 >= end or data[pos + 1] != _CARET:
            return NOT_PLAIN
        pos += 2
        typed = True
    if data[pos] != _LT:
        return NOT_PLAIN
    result = _iri_end(data, pos, end)
    if typed and result > 0:
        kind[0], kind[1] = pos - 2, result - pos + 2
    return result  # type: ignore[no-any-return]


@helper
def _is_plain(data: Bytes, begin: int, end: int) -> bool:
    """Whether a term whose end is known is surely well-formed."""
    if data[begin] == _LT:
        return _is_plain_iri(data, begin, end)  # type: ignore[no-any-return]
    if data[begin] == _QUOTE and data[end - 1] == _GT:
        text_end = _literal_end(data, begin, end)
        return not _begins(data, text_end, end, _RDF) and _is_plain_iri(data, text_end + 2, end)
    return True


@helper
def _written(
    data: Bytes, begin: int, end: int, event: int, names: Array, name_ends: Array, keys: Array, first: int
) -> int:
    """Writes a key that does not stand in the text behind all others, from `first` on; where it ends.

    A blank node has the name of its event behind its label, a language is in lower case.
    """
    pos = first
    for i in range(begin, end):
        keys[pos] = data[i]
        pos += 1
    if data[begin] == _UNDERSCORE:
        keys[pos] = _DOT
        pos += 1
        for i in range(name_ends[event], name_ends[event + 1]):
            keys[pos] = names[i]
            pos += 1
        return pos
    i = pos - 1
    while keys[i] != _AT:
        if keys[i] >= 65 and keys[i] <= 90:
            keys[i] = keys[i] + 32
        i -= 1
    return pos


@helper
def _key_end(data: Bytes, begin: int, end: int) -> int:
    """Where the key of a term ends: xsd:string is left out."""
    if data[begin] == _QUOTE and data[end - 1] == _GT:
        datatype_begin = end - len(_STRING)
        if datatype_begin > begin and _begins(data, datatype_begin, end, _STRING):
            return datatype_begin
    return end


@Kernel
def scan_graphs(
    texts: Arrays,
    lines: bool,
    key_table: Arrays,
    wanted: Array,
    every: bool,
    output: Arrays,
    scratch: Arrays,
    state: Array,
) -> int:
    """Reads texts from the event on that `state` says; DONE, NO_ROOM for the next one, or NO_NAMES for its blank nodes.

    `texts` has the bytes and bounds of the texts and of the names of events. `key_table` has the keys. `output` receives the
    triples and, for each text, whether this kernel could read it. With `lines`, a text is one triple and may name a graph.

    The kernel reads several texts at a time: it first finds their terms in the bytes, then looks all of them up, so that no
    lookup waits for another. `asked` holds these terms and `drafts` the triples. A draft refers to a term by its index in
    `asked`, or by -1 - number where the term has a number already.
    """
    data, bounds, names, name_ends = texts
    keys, ends, buckets = key_table
    rows, plain = output
    guesses, kinds, asked, drafts = scratch
    n, count, events, event = state[TERMS], state[TRIPLES], len(bounds) - 1, state[EVENT]
    while event < events:
        # The terms of some texts
        terms, triples, room, status = 0, 0, 0, DONE
        while event < events:
            pos, end = bounds[event], bounds[event + 1]
            size = end - pos
            if room and (terms + size // 3 + 2 > asked.shape[1] or room > _PORTION):
                break
            more = size
            if len(name_ends) > 1:
                more += (size // 4 + 1) * (name_ends[event + 1] - name_ends[event] + 1)
            if (
                ends[n] + room + more > len(keys)
                or n + (room + size) // 3 + 2 > len(ends)
                or 2 * (n + (room + size) // 3) > len(buckets)
                or count + triples + size // 8 + 1 > rows.shape[1]
                or size // 3 + 2 > asked.shape[1]
            ):
                status = NO_ROOM
                break
            room += more
            first_term, first_triple, good, slot = terms, triples, True, 0
            subject, subject_begin, subject_size = 0, 0, 0
            pos = _after_space(data, pos, end)
            while pos < end:
                # The subject, which mostly is that of the triple before
                good = False
                begin = pos
                again = 0 < subject_size <= end - pos and same_bytes(data, pos, data, subject_begin, subject_size)
                if again:
                    stop = pos + subject_size
                elif data[pos] == _QUOTE:
                    break
                else:
                    stop = _term_end(data, pos, end, kinds[slot])
                    if stop < 0:
                        break
                pos = _after_space(data, stop, end)
                # The predicate, which mostly is that of the triple at the same place of the event before
                if pos >= end or data[pos] != _LT:
                    break
                predicate = guesses[slot]
                length = ends[predicate + 1] - ends[predicate] if predicate >= 0 else 0
                if 0 < length <= end - pos and same_bytes(data, pos, keys, ends[predicate], length):
                    pos += length
                else:
                    predicate_end = _iri_end(data, pos, end)
                    if predicate_end < 0:
                        break
                    h = hash_of(data, pos, predicate_end)
                    b = find_key(data, pos, predicate_end, h, keys, ends, buckets)
                    predicate = buckets[b] & NUMBER if buckets[b] >= 0 else -1
                    if predicate < 0:
                        if not _is_plain_iri(data, pos, predicate_end):
                            break
                        if every:
                            put_key(data, pos, predicate_end, h, keys, ends, n, buckets, b)
                            predicate = n
                            n += 1
                    guesses[slot] = predicate
                    pos = predicate_end
                # The object, and the full stop
                pos = _after_space(data, pos, end)
                if pos >= end:
                    break
                object_begin, object_end = pos, _term_end(data, pos, end, kinds[slot])
                slot = (slot + 1) % len(guesses)
                if object_end < 0:
                    break
                pos = _after_space(data, object_end, end)
                graph_begin, graph_end = pos, pos
                if lines and pos < end and (data[pos] == _LT or data[pos] == _UNDERSCORE):
                    graph_end = _term_end(data, pos, end, kinds[slot])
                    if graph_end < 0:
                        break
                    pos = _after_space(data, graph_end, end)
                if pos >= end or data[pos] != _DOT:
                    break
                pos = _after_space(data, pos + 1, end)
                if lines and pos < end:
                    break
                use = every or (predicate >= 0 and predicate < len(wanted) and wanted[predicate])
                for which in (1, 3, 4):
                    if which == 1 and again:
                        drafts[1, triples] = subject
                        continue
                    if which == 1:
                        head, tail = begin, stop
                    elif which == 3:
                        head, tail = object_begin, object_end
                    else:
                        head, tail = graph_begin, graph_end
                        if head == tail:
                            drafts[4, triples] = _NO_TERM
                            continue
                    byte, last = data[head], data[tail - 1]
                    odd = byte == _UNDERSCORE or (byte == _QUOTE and last != _GT and last != _QUOTE)
                    if not use:
                        if not odd:
                            asked[0, terms], asked[1, terms], asked[2, terms], asked[3, terms] = (
                                head,
                                tail,
                                _CHECKED,
                                event,
                            )
                            terms += 1
                        continue
                    if odd:
                        if byte == _UNDERSCORE and len(name_ends) == 1:
                            status = NO_NAMES
                            break
                        key_end = _written(data, head, tail, event, names, name_ends, keys, ends[n])
                        h = hash_of(keys, ends[n], key_end)
                        number = add_key(keys, ends[n], key_end, h, keys, ends, n, buckets)
                        n += number == n
                        code = -1 - number
                    else:
                        tail = _key_end(data, head, tail)
                        code = terms
                        asked[0, terms], asked[1, terms] = head, tail
                        asked[2, terms] = hash_of(data, head, tail)
                        terms += 1
                    drafts[which, triples] = code
                if not use:
                    good = True
                    continue
                if status == NO_NAMES:
                    break
                subject = drafts[1, triples]
                if data[begin] == _LT:  # an IRI has an end of its own, a label may be the beginning of another
                    subject_begin, subject_size = begin, stop - begin
                else:
                    subject_size = 0
                drafts[0, triples], drafts[2, triples] = event, predicate
                triples += 1
                good = True
            if status == NO_NAMES:
                terms, triples = first_term, first_triple
                break
            if not good:
                terms, triples = first_term, first_triple
            plain[event] = good
            event += 1
        # What they are; of those that are not wanted, whether they are well-formed
        mask, greatest = len(buckets) - 1, 0
        for i in range(terms):
            if asked[2, i] != _CHECKED:
                asked[3, i] = buckets[asked[2, i] & mask]
        for i in range(terms):
            if asked[2, i] != _CHECKED and asked[3, i] >= 0:
                greatest = max(greatest, keys[ends[asked[3, i] & NUMBER]])
        state[UNUSED] = greatest
        for i in range(terms):
            h, b = asked[2, i], 0
            if h != _CHECKED:
                b = find_key(data, asked[0, i], asked[1, i], h, keys, ends, buckets)
                if buckets[b] >= 0:
                    asked[3, i] = buckets[b] & NUMBER
                    continue
            if _is_plain(data, asked[0, i], asked[1, i]):
                if h != _CHECKED:
                    put_key(data, asked[0, i], asked[1, i], h, keys, ends, n, buckets, b)
                    asked[3, i] = n
                    n += 1
            elif h == _CHECKED:
                plain[asked[3, i]] = False
            else:
                asked[3, i] = NOT_PLAIN
        # The triples
        first, current = count, -1
        for i in range(triples):
            subject, object, graph = drafts[1, i], drafts[3, i], drafts[4, i]
            subject = asked[3, subject] if subject >= 0 else -1 - subject
            object = asked[3, object] if object >= 0 else -1 - object
            name = NO_GRAPH
            if graph != _NO_TERM:
                name = asked[3, graph] if graph >= 0 else -1 - graph
            if drafts[0, i] != current:
                current, first = drafts[0, i], count
            if subject < 0 or object < 0 or (name < 0 and graph != _NO_TERM):
                plain[current] = False
            if not plain[current]:
                count = first
                continue
            repeated = False
            if count - first <= _FEW:
                for j in range(first, count):
                    if rows[1, j] == subject and rows[2, j] == drafts[2, i] and rows[3, j] == object:
                        repeated = True
            else:
                state[REPEATED] = 1
            if not repeated:
                rows[0, count], rows[1, count], rows[2, count] = current, subject, drafts[2, i]
                rows[3, count], rows[4, count] = object, name
                count += 1
        if status != DONE:
            break
    state[TERMS], state[TRIPLES], state[EVENT] = n, count, event
    return status if event < events else DONE


def frozen(data: Any) -> Array:
    """Bytes as a read-only array: a writable one is another type to the compiler, which would compile again."""
    result = np.frombuffer(data, np.uint8)
    result.flags.writeable = False
    return result


def scan(
    data: Bytes,
    bounds: Array,
    names: Callable[[], tuple[Array, Array]],
    terms: Terms,
    wanted: Array | None = None,
    lines: bool = False,
) -> tuple[Array, Array, bool]:
    """The triples of texts as rows `event, subject, predicate, object, graph`; whether each text is plain; whether some may be twice.

    `names` gives the names of events, which blank nodes need; `wanted` says by the number of a predicate whether it is.
    """
    events, keys = len(bounds) - 1, terms.keys
    largest = int(np.diff(bounds).max(initial=0))
    result = np.empty((5, max(16, 2 * events)), np.int64)
    plain = np.zeros(events, np.uint8)
    asked, drafts = (np.empty((rows, _TOGETHER + largest // 3), np.int64) for rows in (4, 5))
    scratch = np.full(_GUESSES, -1, np.int64), np.zeros((_GUESSES, 2), np.int64), asked, drafts
    state = np.zeros(5, np.int64)
    name_data, name_ends = frozen(b""), np.zeros(1, np.int64)
    every, chosen = wanted is None, np.empty(0, np.uint8) if wanted is None else wanted
    room = _TOGETHER * 64
    while True:
        keys.room(room, room)
        state[TERMS] = keys.n
        status = scan_graphs(
            (data, bounds, name_data, name_ends),
            lines,
            (keys.data, keys.ends, keys.buckets),
            chosen,
            every,
            (result, plain),
            scratch,
            state,
        )
        keys.grew(int(state[TERMS]))
        if status == DONE:
            return result[:, : state[TRIPLES]], plain.astype(bool), bool(state[REPEATED])
        if status == NO_NAMES:
            name_data, name_ends = names()
        event = int(state[EVENT])
        size = int(bounds[event + 1] - bounds[event])
        room = _TOGETHER * 64 + 4 * size
        if len(name_ends) > 1:
            room += (size // 4 + 1) * int(name_ends[event + 1] - name_ends[event] + 1)
        if state[TRIPLES] + room // 8 > result.shape[1]:
            result = grown(result, capacity(int(state[TRIPLES]) + room // 8), int(state[TRIPLES]))
