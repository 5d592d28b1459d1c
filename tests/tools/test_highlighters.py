"""Colours in editors, pages and notebooks come from one vocabulary."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Token

from augury.editor.pygments_lexers import AuguryLexer, SpaseqLexer
from augury.editor.vocabulary import ALL_QUERY_WORDS, RULE_WORDS
from tests.support.commands import run

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"


def test_grammars_of_editors_are_those_of_the_vocabulary() -> None:
    files = runpy.run_path(str(ROOT / "scripts" / "highlighters"))["files"]()
    different = [name for name, text in files.items() if (ROOT / name).read_text(encoding="utf-8") != text]
    assert different == [], "run `make highlighters`"


def coloured(lexer: AuguryLexer | SpaseqLexer, text: str) -> dict[str, Any]:
    return {value: token for token, value in lexer.get_tokens(text) if value.strip()}


def test_pygments_colours_rules_and_queries() -> None:
    tokens = coloured(
        AuguryLexer(), "event wind(s: string). % x\nhot(S) <- (wind(S, V) SEQ next(S)).30min WHERE abs(V) > 2.5."
    )
    assert (
        tokens["event"] is Keyword.Declaration and tokens["string"] is Keyword.Type and tokens["% x"] is Comment.Single
    )
    assert tokens["SEQ"] is Operator.Word and tokens["30min"] is Number and tokens["V"] is Name.Variable
    assert tokens["abs"] is Name.Builtin and tokens["next"] is Name.Function and tokens["2.5"] is Number.Float
    tokens = coloured(
        SpaseqLexer(), "SELECT ?car WITHIN 10 MINUTES { ?car e:speed <http://e.org/#x> FILTER(?v > 1) } # x"
    )
    assert tokens["SELECT"] is tokens["FILTER"] is tokens["MINUTES"] is Keyword and tokens["?car"] is Name.Variable
    assert tokens["e:speed"] is Name.Entity and tokens["# x"] is Comment.Single


def test_pygments_knows_every_word_and_takes_every_example() -> None:
    for word in RULE_WORDS:
        kinds = {token for token, value in AuguryLexer().get_tokens(f"{word} 'x'") if value == word}
        assert kinds and all(kind in Keyword or kind in Operator.Word for kind in kinds), word
    for word in ALL_QUERY_WORDS:
        assert (Keyword, word) in list(SpaseqLexer().get_tokens(f"{word} ?x"))
    for path in (ROOT / "src" / "augury" / "examples").glob("*/*.*"):
        if path.suffix in (".aug", ".spaseq"):
            lexer = AuguryLexer() if path.suffix == ".aug" else SpaseqLexer()
            text = path.read_text(encoding="utf-8")
            tokens = list(lexer.get_tokens(text))
            assert "".join(value for _, value in tokens).strip() == text.strip() and Error not in {t for t, _ in tokens}


def test_pygments_finds_the_lexers_by_name() -> None:
    try:
        lexer = get_lexer_by_name("aug")
    except Exception:
        pytest.skip("this installation is older than the entry points of the lexers")
    assert type(lexer).__name__ == "AuguryLexer" and Token is not None


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not there")
def test_the_extension_of_vs_code() -> None:
    """Its grammar, by the tests beside it; types and the bundle, too."""
    if not (EXTENSION / "node_modules").is_dir():
        if not os.environ.get("AUGURY_LONG"):
            pytest.skip("its packages are not installed: `make vscode`, or AUGURY_LONG=1")
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit"], cwd=EXTENSION, check=True, capture_output=True)
    for script in ("test", "check", "build"):
        done = subprocess.run(["npm", "run", script], cwd=EXTENSION, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not there")
def test_vim_colours_rules(tmp_path: Path) -> None:
    rules = tmp_path / "x.aug"
    rules.write_text("event wind(s: string).\nhot(S) <- (wind(S, V) SEQ b(S)).30min WHERE V contains 'x'. % y\n")
    script = tmp_path / "look.vim"
    script.write_text(
        f"set runtimepath^={ROOT}/editors/vim\nfiletype plugin on\nsyntax on\nedit {rules}\n"
        "let rows = [&filetype]\nfor place in [[1, 1], [1, 15], [2, 5], [2, 24], [2, 33], [2, 41], [2, 49], [2, 62]]\n"
        "call add(rows, synIDattr(synID(place[0], place[1], 1), 'name'))\nendfor\n"
        f"call writefile(rows, '{tmp_path}/rows')\nqall!\n"
    )
    subprocess.run(["vim", "-e", "-s", "-u", "NONE", "-S", script], check=False, capture_output=True, timeout=500)
    assert (tmp_path / "rows").read_text().split() == [
        "augury", "augDeclaration", "augType", "augVariable", "augOperator", "augDuration", "augKeyword", "augOperator", "augComment",
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("emacs") is None, reason="emacs is not there")
def test_emacs_colours_rules(tmp_path: Path) -> None:
    (tmp_path / "x.aug").write_text("hot(S) <- (wind(S, V) SEQ b(S)).30min. % y\n")
    look = (
        f'(progn (load "{ROOT}/editors/emacs/augury-mode.el") (find-file "{tmp_path}/x.aug") (font-lock-ensure)'
        ' (princ (format "%s %s %s %s" major-mode (get-text-property 1 (quote face))'
        " (get-text-property 23 (quote face)) (get-text-property 43 (quote face)))))"
    )
    done = subprocess.run(["emacs", "-Q", "--batch", "--eval", look], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "augury-mode", "font-lock-function-name-face", "font-lock-keyword-face", "font-lock-comment-face",
    ]  # fmt: skip


def test_hooks_for_pre_commit_run(tmp_path: Path) -> None:
    """Each hook is a command that works on the files that its pattern takes."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    hooks = {
        match["id"]: match["entry"]
        for match in re.finditer(r"- id: (?P<id>\S+)\n(?:  .*\n)*?  entry: (?P<entry>.*)\n", text)
    }
    assert hooks.keys() == {"augury-check", "augury-fmt", "augury-test"}
    (tmp_path / "a.aug").write_text("a(X) <- b( X ).\n")
    (tmp_path / "b.aug").write_text("a(X) <- c(X), Y > 1.\n")
    for name, code, said in (("augury-check", 1, "`Y` is not bound"), ("augury-fmt", 0, "a.aug: formatted")):
        done = run([*shlex.split(hooks[name])[1:], "a.aug", "b.aug"], tmp_path)
        assert done.code == code and said in done.err
