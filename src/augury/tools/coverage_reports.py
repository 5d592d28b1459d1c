"""Coverage as text, as a page over the source, and as lcov."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from augury.core.errors import Source
from augury.tools.rule_coverage import Coverage, Part

_KINDS = ("rule", "condition", "absence", "window", "alternative", "limit", "retraction")
_PLURALS = {"alternative": "alternatives of OR"}


def coverage_text(coverage: Coverage) -> str:
    """A line for each kind of part, then what is missing, by place."""
    if not coverage.parts:
        return "nothing to cover: the cases have no rules; static rules and queries in SPAseQ do not count"
    lines = [f"coverage {coverage.percent:.1f}%"]
    counts = coverage.counts()
    for kind in _KINDS:
        if kind in counts:
            done, goals = counts[kind]
            lines.append(f"  {_PLURALS.get(kind, kind + 's'):<20}{done:>5} of {goals:<5} {100 * done / goals:5.1f}%")
    missed = [part for part in _sorted(coverage) if part.missed]
    if missed:
        lines += ["", "missing"]
    for part in missed:
        lines.append(f"  {part.span!r}  {part.kind} {_short(part)}: never {', never '.join(part.missed)}")
    return "\n".join(lines)


def _short(part: Part) -> str:
    text = part.rule if part.kind == "rule" else " ".join(part.span.text.split())
    return f"`{text if len(text) <= 60 else text[:59] + '…'}`"


def _sorted(coverage: Coverage) -> list[Part]:
    return sorted(coverage.parts.values(), key=lambda part: (part.span.source.name, part.span.start, -part.span.end))


def _by_source(coverage: Coverage) -> dict[Source, list[Part]]:
    sources: dict[Source, list[Part]] = {}
    for part in _sorted(coverage):
        sources.setdefault(part.span.source, []).append(part)
    return sources


def coverage_lcov(coverage: Coverage) -> str:
    """A line for each rule with how many cases gave it an answer, a branch for each way that a part can go."""
    lines: list[str] = []
    for source, parts in _by_source(coverage).items():
        if not Path(source.name).is_file() or Path(source.name).suffix == ".toml":
            continue  # programs inside cases have no lines of their own
        lines += ["TN:", f"SF:{source.name}"]
        rules = [part for part in parts if part.kind == "rule"]
        hits = {source.position(r.span.start)[0]: coverage.hits.get((source, r.span.start, -1), 0) for r in rules}
        branches = 0
        for block, part in enumerate(parts):
            for branch, (_, reached) in enumerate(part.goals.items()):
                if part.kind != "rule":
                    branches += 1
                    lines.append(f"BRDA:{source.position(part.span.start)[0]},{block},{branch},{int(reached)}")
        went = sum(sum(part.goals.values()) for part in parts if part.kind != "rule")
        lines += [f"BRF:{branches}", f"BRH:{went}"]
        lines += [f"DA:{line},{count}" for line, count in sorted(hits.items())]
        lines += [f"LF:{len(hits)}", f"LH:{sum(map(bool, hits.values()))}", "end_of_record"]
    return "\n".join(lines) + "\n"


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1d1f21; background: #fff }
pre { font: 13px/1.6 ui-monospace, Menlo, Consolas, monospace; background: #f6f7f9; padding: 1rem; overflow-x: auto; border-radius: 6px }
table { border-collapse: collapse } td, th { padding: .2rem .9rem .2rem 0; text-align: left } td.n { text-align: right }
.full { background: #c9efd0 } .some { background: #ffe9a8 } .none { background: #ffc9c2 }
.line { color: #8a9099; user-select: none }
@media (prefers-color-scheme: dark) { body { background: #16181b; color: #e4e6e8 } pre { background: #1f2226 }
.full { background: #1f5a2e } .some { background: #6a5410 } .none { background: #7c2a22 } }
"""


def coverage_html(coverage: Coverage) -> str:
    """A page with the sources, their parts coloured: green went both ways, yellow one way, red never."""
    counts = coverage.counts()
    rows = "".join(
        f"<tr><td>{_PLURALS.get(kind, kind + 's')}</td><td class=n>{counts[kind][0]} of {counts[kind][1]}</td></tr>"
        for kind in _KINDS
        if kind in counts
    )
    legend = "<span class=full>went both ways</span> <span class=some>one way only</span> <span class=none>never</span>"
    pages = "".join(
        f"<h2>{escape(source.name)}</h2><pre>{_marked(source, parts)}</pre>"
        for source, parts in _by_source(coverage).items()
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>Coverage of rules</title><style>{_STYLE}</style>"
        f"<h1>Coverage of rules: {coverage.percent:.1f}%</h1><table>{rows}</table><p>{legend}; hover a part to see what is missing</p>{pages}</html>\n"
    )


def _marked(source: Source, parts: list[Part]) -> str:
    """The text of a source with line numbers, its parts marked; of parts in one another the inner one counts."""
    owner: list[Part | None] = [None] * len(source.text)
    for part in parts:
        first, last = part.span.start, part.span.end
        if part.kind == "rule":  # its head alone, or it would colour all that is inside
            arrow = source.text.find("<-", first, last)
            last = arrow if arrow >= 0 else last
        owner[first:last] = [part] * (last - first)
    return "".join(_pieces(source, owner))


def _pieces(source: Source, owner: list[Part | None]) -> Iterator[str]:
    width = len(str(source.text.count("\n") + 1))
    offset = 0
    for number, line in enumerate(source.text.splitlines(), 1):
        yield f"<span class=line>{number:>{width}}  </span>"
        start = 0
        while start < len(line):
            part = owner[offset + start]
            end = start
            while end < len(line) and owner[offset + end] is part:
                end += 1
            text = escape(line[start:end])
            if part is None:
                yield text
            else:
                reached = sum(part.goals.values())
                colour = "none" if not reached else "some" if part.missed else "full"
                title = f"{part.kind}: " + (f"never {', never '.join(part.missed)}" if part.missed else "covered")
                yield f'<span class={colour} title="{escape(title)}">{text}</span>'
            start = end
        yield "\n"
        offset += len(line) + 1
