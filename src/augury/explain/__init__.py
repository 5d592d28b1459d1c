"""Explanations of a program and its answers: how it is read and runs (`plans.py`, `spark.py`), why an event was derived (`why.py`),
and why one was not (`why_not/`). Text, JSON and Mermaid are written from one tree (`tree.py`)."""
