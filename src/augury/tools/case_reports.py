"""Results of cases for other programs: JUnit XML, which CI systems read, and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any
from xml.etree import ElementTree as xml

from augury.core.errors import visible
from augury.tools.case_runs import CaseResult


def junit(results: Iterable[CaseResult]) -> str:
    """A suite for each file, a test for each case."""
    root = xml.Element("testsuites", name="augury")
    for path, group in groupby(results, key=lambda result: result.case.path):
        rows = list(group)
        suite = xml.SubElement(root, "testsuite", name=path, time=f"{sum(r.seconds for r in rows):.3f}")
        suite.set("tests", str(len(rows)))
        suite.set("failures", str(sum(map(_failed, rows))))
        suite.set("errors", str(sum(bool(row.error) for row in rows)))
        for row in rows:
            test = xml.SubElement(
                suite, "testcase", classname=path, name=visible(row.case.name), time=f"{row.seconds:.3f}"
            )
            if not row.passed:
                first = row.message.partition("\n")[0]
                kind = "error" if row.error else "failure"
                xml.SubElement(test, kind, message=visible(first)).text = visible(row.message)
    xml.indent(root)
    return xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _failed(result: CaseResult) -> bool:
    return not result.passed and not result.error


def as_json(results: Sequence[CaseResult]) -> dict[str, Any]:
    """How many passed, and each case with what differs."""
    return {
        "passed": sum(result.passed for result in results),
        "failed": sum(not result.passed for result in results),
        "seconds": round(sum(result.seconds for result in results), 3),
        "cases": [
            {
                "file": result.case.path,
                "name": result.case.name,
                "tags": list(result.case.tags),
                "status": "passed" if result.passed else "error" if result.error else "failed",
                "seconds": round(result.seconds, 4),
                **({} if result.passed else {"message": result.message, "differences": _differences(result)}),
            }
            for result in results
        ],
    }


def _differences(result: CaseResult) -> list[dict[str, object]]:
    mismatches = () if result.outcome is None else result.outcome.mismatches
    return [{"about": m.about, "expected": list(m.expected), "actual": list(m.actual)} for m in mismatches]
