"""Printing and reading are inverse to one another."""

import pytest
from hypothesis import given

from augury.core.errors import Findings, Source, render_all
from augury.language.rules import syntax as s
from augury.language.rules.read import read
from augury.language.rules.show import show_module
from tests.generators.strategies import modules


def reread(text: str) -> s.Module:
    findings = Findings()
    found = read(Source("printed.aug", text), findings)
    assert not findings.items, render_all(findings.items) + "\n\n" + text
    return found[-1]


@given(modules)
def test_reading_what_was_printed_gives_the_tree(module: s.Module) -> None:
    assert reread(show_module(module)) == module


@given(modules)
def test_printing_again_changes_nothing(module: s.Module) -> None:
    text = show_module(module)
    assert show_module(reread(text)) == text


@pytest.mark.parametrize("sign", ["+", "*"])
@pytest.mark.parametrize("name", ["seq", "next", "then", "per"])
def test_a_function_named_like_an_operator_stays_behind_its_sign(sign: str, name: str) -> None:
    text = f"b(X {sign} ({name}(X))) <- c(X).\n"
    assert show_module(reread(text)) == text


def test_comments_and_blank_lines_survive() -> None:
    text = "% first\na(1).  % beside\n\n# second\n/* third */\nb(X) <- c(X).\n\n% the end\n"
    assert show_module(reread(text)) == text


def test_a_comment_inside_a_statement_moves_before_it() -> None:
    assert show_module(reread("b(X) <- c(X) % why\n  SEQ d(X).")) == "% why\nb(X) <- c(X) SEQ d(X).\n"


def test_long_rules_are_broken() -> None:
    text = (
        "alarm(Location) <- reading(Location, Temperature), " + ", ".join(f"other{i}(Location)" for i in range(6)) + "."
    )
    printed = show_module(reread(text))
    assert max(len(line) for line in printed.splitlines()) < 100
    assert reread(printed) == reread(text)
