"""The papers' experiments, and what the papers say of their own figures.

Their charts are pictures. What stands here are the figures in their text and tables; machines, data and years differ, so that they
say just in which region to look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench import paper_b, paper_e, paper_r, paper_v, spaseq

PAPERS: Mapping[str, Sequence[str]] = {
    "E": tuple(paper_e.EXPERIMENTS),
    "R": tuple(paper_r.EXPERIMENTS),
    "V": tuple(paper_v.EXPERIMENTS),
    "B": tuple(paper_b.EXPERIMENTS),
    "S": tuple(name for name in spaseq.EXPERIMENTS if name[:2] in ("S1", "S2")),
}

_ESPER = "P is ETALIS on YAP or SWI Prolog, one core at 2.66 GHz, streams of 25,000 to 100,000 events"
SAYS: Mapping[str, str] = {
    "E2": "counts of 2008 to 2010, with the conditions weakened: no snow, and wind of 15 mph or more",
    "E3": "eleven areas in three years",
    "E4": "51 places of GeoNames near KSFO; the example has a small gazetteer of its own",
    "E6": "24,696, 37,437 and 3,900 events a second",
    "E6b": "pattern 42 takes the least memory and pattern 39 the most, as they have the fewest and the most detections",
    "R3a": f"P-YAP reaches more than twice the throughput of Esper ({_ESPER})",
    "R3b": "Esper is faster up to 50 % selected, P-YAP slightly faster at 100 %",
    "R3c": "throughput stays the same as the stream grows",
    "R4a": "P is faster than Esper at each share of negated events",
    "R4b": "throughput does not go down as the stream grows",
    "R4c": "Esper is faster: P has twice as many rules for AND as for SEQ",
    "R5a": "P-YAP is the fastest, and as fast as for SEQ",
    "R5b": "P-YAP is the fastest, by far before P-SWI, first in first out",
    "R5c": "P-YAP slows down as rules are copied, P-SWI stays faster than Esper",
    "V3a": "reasoning takes about 10 %, with over 20,000 complex events a second at 100,000 links",
    "V3b": "to be ready for revision costs moderately: more goals are kept in memory",
    "V3c": "negation behaves as the other operators do",
    "V4": "31 ms for 1,000 events, less than a second up to 10,000, about 3 s for 20,000 and 16 s for 50,000",
    "V5": "throughput rises slightly as the filter gets tighter",
    "B4.2": "12 h and 36 h give 48 h (section 4.3)",
    "B4.3": "the right input need not be evaluated while the left one is empty",
    "S15-SMD": "EP-SPARQL takes two to three orders of magnitude longer, and grows with the square of the window by `;`",
    "S15-CCD": "by `;` the CPU time grows with the window: each event may begin a run",
    "S15-TD": "contiguous and next cost alike: few events begin a run",
    "S15-SHD": "contiguous and next cost alike: few events begin a run",
    "S16": "the number of clauses hardly matters",
    "S17": "the CPU time grows less than the knowledge, from 10,000 to 1 M triples",
    "S18": "graph patterns cost most, then the automaton, then parsing",
    "S19": "a repetition costs more than a sequence: it duplicates runs",
    "S20": "an index of runs by stream pays off as windows grow",
    "S21": "lazy evaluation is faster than eager, most of all in short windows",
}


def expanded(names: Sequence[str]) -> list[str]:
    """Names of experiments, where `paper E` stands for those of a paper and `paper` alone for all of them."""
    if not names or names[0].lower() != "paper":
        return list(names)
    letters = [name.upper() for name in names[1:]] or list(PAPERS)
    if unknown := [letter for letter in letters if letter not in PAPERS]:
        raise KeyError(f"paper {unknown[0]}")
    return [name for letter in letters for name in PAPERS[letter]]
