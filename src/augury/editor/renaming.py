"""Which names an editor may change, and to what."""

from __future__ import annotations

import re

from augury.editor.meanings import Names
from augury.editor.open_files import NamePlace, ProjectFiles


def renames(project: ProjectFiles, name_place: NamePlace) -> bool:
    """Whether a name is the user's own: not a built-in function, a file, an IRI or a prefix of the language."""
    if name_place.name.meaning == "file" or ":" in name_place.text or name_place.text.startswith("<"):
        return False
    kind = (
        Names(project.related(name_place.document)).kind_of(name_place.name)
        if name_place.name.meaning == "predicate"
        else ""
    )
    return kind not in ("function", "term") or bool(project.definitions(name_place))


def check_new_name(project: ProjectFiles, name_place: NamePlace, new: str) -> None:
    """Raises ValueError where a name cannot be what it would be, or is there already."""
    meaning, plain = name_place.name.meaning, new.lstrip("?$") if name_place.document.is_query else new
    pattern = {
        "variable": r"\w+" if name_place.document.is_query else r"[A-Z]\w*|_\w+",
        "label": r"[a-z]\w*",
        "rule": r"[a-z]\w*",
        "gpm": r"[^\W\d]\w*",
        "stream": r"[^\W\d]\w*",
    }.get(meaning, r"[^\W\d_]\w*")
    if not re.fullmatch(pattern, plain):
        hint = "a variable begins with a capital letter" if meaning == "variable" else "a name begins with a letter"
        raise ValueError(f"`{new}` cannot be the name of a {meaning}: {hint}")
    others = (
        name_place.document.names() if meaning in ("gpm", "stream", "rule") or name_place.document.is_query
        else (n for d in project.related(name_place.document) for n in d.names())
        if meaning == "predicate"
        else (n for n in name_place.document.names() if n.statement is name_place.statement)
    )  # fmt: skip
    if plain != name_place.name.name and any(n.name.name == plain and n.name.meaning == meaning for n in others):
        raise ValueError(f"there is another {meaning} `{plain}` already")


def as_written(use: NamePlace, new: str) -> str:
    """A variable of a query keeps its question mark."""
    sign = use.text[:1] if use.text[:1] in "?$" else ""
    return sign + new.lstrip("?$") if sign else new
