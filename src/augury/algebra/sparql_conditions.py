"""Queries in SPARQL inside rules: `sparql("SELECT ?x WHERE { ?x a wt:Station }", X)`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

KNOWN_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "owl": "http://www.w3.org/2002/07/owl#",
}

# What no word of a query is inside of: IRIs, strings and comments.
ASIDE = re.compile(
    r"<[^<>\s]*>|\"\"\".*?\"\"\"|'''.*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|#[^\n]*", re.DOTALL
)


def query_name(text: str) -> str:
    """The static predicate of a query."""
    return f"sparql {hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"


def with_prefixes(text: str, prefixes: Mapping[str, str]) -> str:
    """A query with the prefixes of the program that it uses and does not declare."""
    bare = ASIDE.sub(" ", text)
    declared = set(re.findall(r"\bprefix\s+([\w-]*)\s*:", bare, re.IGNORECASE))
    used = [p for p in prefixes if p not in declared and re.search(rf"(?<![\w-]){re.escape(p)}:", bare)]
    return "".join(f"PREFIX {p}: <{prefixes[p]}>\n" for p in used) + text
