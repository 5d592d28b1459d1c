"""Lexers for Pygments, so that Sphinx, mkdocs, notebooks and the prompt colour rules and queries.

They are entry points: ```` ```aug ```` and ```` ```spaseq ```` are enough. Their words are those of `vocabulary`.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

from augury.editor.vocabulary import (
    FUNCTION_NAMES,
    PATTERN_WORDS,
    QUERY_WORDS,
    TYPE_NAMES,
    UNITS,
    of_kind,
)

_UNITS = "|".join(sorted(UNITS, key=len, reverse=True))
_NOT_CALLED = r"\b(?!\s*\()"  # an event or a function may bear the name


class AuguryLexer(RegexLexer):  # type: ignore[misc]
    """Rules of Augury."""

    name = "Augury"
    url = "https://pypi.org/project/augury"
    aliases: ClassVar[list[str]] = ["aug", "augury"]
    filenames: ClassVar[list[str]] = ["*.aug"]
    mimetypes: ClassVar[list[str]] = ["text/x-augury"]
    flags = re.IGNORECASE | re.MULTILINE

    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"\s+", Text.Whitespace),
            (r"[%#][^\n]*", Comment.Single),
            (r"/\*(?:.|\n)*?\*/", Comment.Multiline),
            (r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"", String),
            (r"<[A-Za-z][A-Za-z0-9+.-]*:[^\s<>]*>", String.Other),
            (r"@\s*(?:'[^'\n]*'|\"[^\"\n]*\"|\d+)", Number.Date),
            (
                r"^(\s*)(" + "|".join(of_kind("declaration")) + r")(\s+)(?=[\w'\"])",
                bygroups(Text.Whitespace, Keyword.Declaration, Text.Whitespace),
            ),
            (rf"\d+(?:\.\d+)?\s*(?:{_UNITS})\b(?!\s*[(:])", Number),
            (r"\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+", Number.Float),
            (r"\d+", Number.Integer),
            (r"(<-|←|:-)", Keyword),
            (r"(:)(\s*)(" + "|".join(TYPE_NAMES) + r")\b", bygroups(Punctuation, Text.Whitespace, Keyword.Type)),
            (words(("not", "while", "where", "in", "and", "or"), suffix=r"\b"), Operator.Word),
            (words(of_kind("operator"), suffix=_NOT_CALLED), Operator.Word),
            (words(of_kind("literal", "clause"), suffix=_NOT_CALLED), Keyword),
            (words(of_kind("constant"), suffix=_NOT_CALLED), Keyword.Constant),
            (r"(?-i:[A-Z]\w*|_\w*)(?!\w|\s*\()", Name.Variable),
            (words(FUNCTION_NAMES, suffix=r"(?=\s*\()"), Name.Builtin),
            (r"[a-z_]\w*(?=\s*:(?![-\w]))", Name.Label),
            (r"[a-z_]\w*:[a-z_][\w-]*", Name.Entity),
            (r"\w+(?=\s*\()", Name.Function),
            (r"\w+", Name),
            (r"!=|\\=|<=|=<|>=|==|\*\*|//|[-+*/^=<>≠≤≥·]", Operator),
            (r".", Punctuation),
        ]
    }


class SpaseqLexer(RegexLexer):  # type: ignore[misc]
    """Queries over graph streams: SPAseQ."""

    name = "SPAseQ"
    url = "https://pypi.org/project/augury"
    aliases: ClassVar[list[str]] = ["spaseq"]
    filenames: ClassVar[list[str]] = ["*.spaseq"]
    mimetypes: ClassVar[list[str]] = ["application/x-spaseq"]
    flags = re.IGNORECASE | re.MULTILINE

    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"\s+", Text.Whitespace),
            (r"#[^\n]*", Comment.Single),
            (r"<(?![?$])[^<>\"{}|^`\\\s]*>", String.Other),
            (r"\"\"\"(?:.|\n)*?\"\"\"|'''(?:.|\n)*?'''", String),
            (r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", String),
            (r"[?$]\w+", Name.Variable),
            (words(sorted(QUERY_WORDS), prefix=r"(?<![\w:])", suffix=r"\b(?!:)"), Keyword),
            (words(sorted(PATTERN_WORDS), prefix=r"(?<![\w:])", suffix=r"\b(?!:)"), Keyword),
            (r"[a-z_]\w*(?=\s*\()", Name.Builtin),
            (r"(?:[a-z][\w.-]*)?:[\w.%-]*\w", Name.Entity),
            (r"(?:[a-z][\w.-]*)?:(?=\s|<)", Name.Namespace),
            (r"@[a-z]+(?:-[a-z0-9]+)*", String.Affix),
            (r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", Number),
            (r"\w+", Name),
            (r"\^\^|&&|\|\||[<>!]=|[-+*/=<>!?&|;:,]", Operator),
            (r".", Punctuation),
        ]
    }
