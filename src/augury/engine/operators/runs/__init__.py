"""Runs (SEMANTICS 10): sequences whose parts repeat.

Three operators one after the other. `moments.py` has the events of a run, each once, in the order of time for each key.
`partials.py` goes from an event to its successors and has the partial matches, a tree for each first event. `matches.py`
has the complete ones, and of these the longest, or those that SKIP leaves.
"""
