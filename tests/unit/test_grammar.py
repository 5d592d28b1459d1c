"""The kept tables of the parser: they are those of the grammar, and nothing goes wrong without them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from lark import Lark, UnexpectedInput

from augury.language.rules import grammar

STATEMENTS = [
    "event wind(loc: string, speed: float)",
    "prefix wt: <http://example.org/weather#>",
    "near('creek', 's1')",
    "increase(S, New) <- (wind(S, Old) SEQ wind(S, New)).30min WHERE New > Old * 1.1",
    "fire_alarm(P) <- (NOT(localised(P)).[reported(P), increase(S, _)]).2h WHERE near(P, S)",
    "overdue(P) <- r: reported(P), w: extend(r, 3h), while w: not localised(P)",
    "a(X) <- b(X",
    "a(X) <- b(X) SEQ",
    "a(X) <- while w not c(X)",
    "a(X) ;",
    "",
]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Two folders in which tables may be kept, and a parser that has yet to be made."""
    found = [tmp_path / "package" / "cache", tmp_path / "user"]
    monkeypatch.setattr(grammar, "folders", lambda: iter(found))
    grammar.parser.cache_clear()
    yield found
    grammar.parser.cache_clear()


def again() -> Lark:
    grammar.parser.cache_clear()
    return grammar.parser()


def outcome(parser: Lark, text: str) -> object:
    """A tree with its positions, or where reading stopped and what could have stood there."""
    try:
        tree = parser.parse(text)
    except UnexpectedInput as error:
        expected = [getattr(error, name, None) or () for name in ("accepts", "allowed", "expected")]
        return type(error), error.pos_in_stream, [sorted(names) for names in expected]
    return tree, [node.meta.start_pos for node in tree.iter_subtrees() if not node.meta.empty]


def test_kept_tables_read_as_the_grammar_does(places: list[Path], made: list[str]) -> None:
    first = grammar.parser()
    kept = list(places[0].iterdir())
    assert len(kept) == 1 and not places[1].exists()
    loaded = again()
    assert loaded is not first and len(made) == 1 and list(places[0].iterdir()) == kept
    assert [outcome(loaded, text) for text in STATEMENTS] == [outcome(first, text) for text in STATEMENTS]


_made = cache(grammar.made)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The grammars of which tables are made from now on; it takes seconds, so one that was made is taken again."""
    texts: list[str] = []

    def watched(text: str) -> Lark:
        texts.append(text)
        return _made(text)

    monkeypatch.setattr(grammar, "made", watched)
    return texts


def test_tables_are_made_once(places: list[Path], made: list[str]) -> None:
    for _ in range(3):
        again()
    assert len(made) == 1


@pytest.mark.parametrize("kept", [0, 10, 100, None])
def test_damaged_and_old_tables_are_made_anew(kept: int | None, places: list[Path], made: list[str]) -> None:
    grammar.parser()
    (path,) = places[0].iterdir()
    whole = path.read_bytes()
    path.write_bytes(b"of another grammar" + whole if kept is None else whole[:kept])
    assert again().parse(STATEMENTS[0]) and again().parse(STATEMENTS[0]) and len(made) == 2


def test_where_nothing_can_be_written_the_parser_is_made(places: list[Path], made: list[str]) -> None:
    places[0].parent.write_text("a file, where a folder should be")
    assert grammar.parser().parse(STATEMENTS[0]) and len(list(places[1].iterdir())) == 1
    places[1].joinpath(grammar._NAME).unlink()
    places[1].rmdir()
    places[1].write_text("here, too")
    assert again().parse(STATEMENTS[0]) and len(made) == 2
