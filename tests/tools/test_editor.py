"""What editors are told is made of: the words of the grammars, and statements that are read once."""

from __future__ import annotations

import random
import re
from pathlib import Path

from augury.compiled import Compiled
from augury.core.errors import ProgramError, Source
from augury.editor import analysis
from augury.editor.expected_words import TERMINALS
from augury.editor.open_files import ProjectFiles
from augury.editor.statements_read import StatementList
from augury.editor.vocabulary import PATTERN_WORDS, QUERY_WORDS, RULE_WORDS, UNITS
from augury.language.rules.grammar import parser
from augury.language.spaseq.tokens import KEYWORDS, SPARQL_WORDS


def without_lookahead(pattern: str) -> str:
    """A regular expression without what must, or may not, follow and precede."""
    pattern = re.sub(r"\[[^\]]*\]", "", re.sub(r"\\.", " ", pattern))  # escapes and classes have brackets
    while (start := re.search(r"\(\?[=!<]", pattern)) is not None:
        depth, end = 1, start.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(pattern[end], 0)
            end += 1
        pattern = pattern[: start.start()] + pattern[end:]
    return pattern


def words_of_the_grammar() -> dict[str, set[str]]:
    """The words that each terminal of the grammar of rules matches, looked for in its pattern."""
    result: dict[str, set[str]] = {}
    for terminal in parser().terminals:
        pattern = without_lookahead(terminal.pattern.value)
        if "i" in terminal.pattern.flags and terminal.name not in ("DURATION", "SOME", "ANY", "GRAPH"):
            words = set(re.findall(r"[a-z][a-z_]+", pattern))
            if words:
                result[terminal.name] = words
    result["GRAPH"] = {"graph"}
    return result


def test_the_vocabulary_is_that_of_the_grammars() -> None:
    words = {word for listed in words_of_the_grammar().values() for word in listed}
    assert words == set(RULE_WORDS)
    assert set(QUERY_WORDS) >= KEYWORDS and set(PATTERN_WORDS) | {"AS", "SELECT", "WHERE", "DISTINCT"} == SPARQL_WORDS
    duration = next(t for t in parser().terminals if t.name == "DURATION").pattern.value
    assert all(re.fullmatch(duration, f"3{unit}", re.IGNORECASE) for unit in UNITS)


def test_completion_has_each_keyword_of_the_grammar() -> None:
    listed = {
        name: {w for text in texts for w in re.findall(r"\w+", text.lower())} for name, texts in TERMINALS.items()
    }
    grammar = words_of_the_grammar()
    assert listed.keys() == grammar.keys()
    assert {name for name in listed if listed[name] != grammar[name]} == set()


def test_examples_of_words_compile() -> None:
    for word in RULE_WORDS.values():
        if word.example.endswith(".") and word.text not in ("include", "output"):
            text = word.example + "\np(X) <- q(X)."
            try:
                Compiled.of([Source("example", text)], facts=["mode"])
            except ProgramError as error:
                raise AssertionError(word.text) from error


PIECES = ["", ".", "x", "\n", ". ", " % k\n", "(", "'", "5", ":-", "/*", "*/", "a(X) <- b(X).\n", "GRAPH <x:y> {", "}"]
TEXT = (
    "event a(x: int).\nb(X) <- a(X). % c\nc(X) <- (a(X) SEQ b(X)).5min WHERE X > 3.5.\n\n% dd\nd(X) :- f(X, 'a. b').\n"
)


def test_statements_are_the_same_however_a_text_was_typed() -> None:
    chance = random.Random(7)
    text = TEXT
    typed = StatementList("typed")
    for _ in range(300):
        start = chance.randrange(len(text) + 1)
        text = text[:start] + chance.choice(PIECES) + text[min(len(text), start + chance.choice([0, 0, 1, 3, 10])) :]
        text = TEXT if len(text) < 20 else text
        typed.change(text)
        at_once = StatementList("at once")
        at_once.change(text)
        assert [_shown(entry) for entry in typed.entries] == [_shown(entry) for entry in at_once.entries]


def _shown(entry: object) -> tuple[object, ...]:
    start, text, statements, findings = (getattr(entry, n) for n in ("start", "text", "statements", "findings"))
    assert isinstance(statements, tuple) and isinstance(findings, tuple)
    return start, text, list(map(str, statements)), [(d.code, d.span.start) for d in findings]


def test_one_keystroke_reads_one_statement(tmp_path: Path) -> None:
    """What typing costs does not grow with the file: it reads the statement that changed, and checks it with a few."""
    rules = "".join(f"alarm{n}(S, V) <- wind(S, V) WHERE V > {n}.\n" for n in range(500))
    document = ProjectFiles().opened(tmp_path / "long.aug", "event wind(s: string, v: float).\n" + rules, 0)
    assert len(document.statements.entries) == 502
    changed = document.change(document.text.replace("V > 250.", "W > 250."))
    assert [entry.text.strip() for entry in changed] == ["alarm250(S, V) <- wind(S, V) WHERE W > 250."]
    assert analysis.check_changed(document, changed)
    [placed] = analysis.diagnostics_of(document)
    assert placed.diagnostic.code == "E301" and document.text[placed.start : placed.end] == "W"
    changed = document.change("% above\n" + document.text)
    assert len(changed) == 1 and analysis.check_changed(document, changed)
    [placed] = analysis.diagnostics_of(document)
    assert document.text[placed.start : placed.end] == "W"
