"""State as bytes, and back. Nothing that is read here runs, and nothing is believed before it has been checked.

What is saved is plain: numbers, texts, arrays, lists, tuples and dicts of them, and the values and facts of the language.
It is written as a few long columns, whatever its shape (`writing.py`), between a head that describes them and a digest of
everything (`envelope.py`). `forms.py` says how the values and facts of the language are made of plain things.
"""

from augury.engine.saved.corrupt import CorruptSnapshot, not_whole, require
from augury.engine.saved.envelope import SnapshotHeader, packed, pieces, unpacked
from augury.engine.saved.references import check_numbers, is_array, ragged, unragged
from augury.engine.saved.saving import read_file, write_file

__all__ = [
    "CorruptSnapshot",
    "SnapshotHeader",
    "check_numbers",
    "is_array",
    "not_whole",
    "packed",
    "pieces",
    "ragged",
    "read_file",
    "require",
    "unpacked",
    "unragged",
    "write_file",
]
