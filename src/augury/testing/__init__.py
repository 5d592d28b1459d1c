"""Test your own rules: a spec file is a program, events and the expected answer, in TOML.

    program = '''
    fire_alarm(L) <- smoke(L) SEQ heat(L).
    '''

    [[case]]
    name = "smoke, then heat"
    events = ["smoke('l1') @ 1", "heat('l1') @ 3"]
    expected = ["fire_alarm('l1') @ [1, 3]"]

`augury test`, pytest and `case.check()` run the cases. `docs/tools.md` lists all keys of a case; `spec_reader.py` has the
table of them. `expected` is the whole answer: every output event, in any order.
"""

from augury.testing.outcomes import Mismatch, Outcome, compare_answers
from augury.testing.spec_case import Case
from augury.testing.spec_reader import case_files, read_spec, read_specs

__all__ = ["Case", "Mismatch", "Outcome", "case_files", "compare_answers", "read_spec", "read_specs"]
