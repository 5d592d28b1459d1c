"""Runs (SEMANTICS 10): sequences whose parts repeat.

`moments.py` has the events of a run, each once, in the order of time for each key; `following.py` which of them may follow each
other, by which moves (`moves.py`). Then either `partials.py` has the partial matches, a tree for each first event, and
`matches.py` those that are complete, and of these the longest, or what SKIP leaves; or, where the last event alone says what
may follow, `greedy.py` finds the longest by itself. `sight.py` is what conditions see of many matches at once. The hot
loops are in `kernels/`.
"""
