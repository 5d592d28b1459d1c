"""A program in its normal form, as `augury fmt` and editors write it."""

from __future__ import annotations

from augury.core.errors import Findings, Source
from augury.language.rules.read import read
from augury.language.rules.show import show_module
from augury.language.spaseq.query_printer import show_query
from augury.language.spaseq.query_program import SPASEQ
from augury.language.spaseq.query_reader import read_query


def formatted(source: Source) -> str:
    """The text in its normal form; raises ProgramError where it cannot be read."""
    findings = Findings()
    if source.language == SPASEQ:
        query = read_query(source, findings)
        findings.raise_errors()
        assert query is not None
        return show_query(query)
    module = read(source, findings)[-1]
    findings.raise_errors()
    return show_module(module)
