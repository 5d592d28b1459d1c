"""Events and facts from files, standard input and Python objects: one reader for all of them.

`files.py` finds files and says their form, `csv.py`, `jsonl.py` and `parquet.py` read one each, `tables.py` reads tables of
Python. They give `Sheet`s and `Items` (`sheet.py`), whose columns are `Cells` (`cells.py` and those named after it).
`heading.py` says which column is what, `types.py` how a value of each type is read, and `reader.py` makes a `History`
(`history.py`) of it all.
"""

from augury.sources.files import ENDINGS, FORMATS, SourceFile, listed, read, titles
from augury.sources.heading import ColumnNames, EventHeading, FactHeading
from augury.sources.history import Batch, History
from augury.sources.objects import item_from
from augury.sources.problems import OnError, Skipped
from augury.sources.reader import EventTypes, Reader, first_time, read_history
from augury.storage.column import Coded, Column

__all__ = [
    "ENDINGS",
    "FORMATS",
    "Batch",
    "Coded",
    "Column",
    "ColumnNames",
    "EventHeading",
    "EventTypes",
    "FactHeading",
    "History",
    "OnError",
    "Reader",
    "Skipped",
    "SourceFile",
    "first_time",
    "item_from",
    "listed",
    "read",
    "read_history",
    "titles",
]
