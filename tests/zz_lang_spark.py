from pathlib import Path
import random, pytest
from tests.test_spark import *
from tests.spec_cases import all_cases
from augury.algebra.nodes import Every, walk
from augury.algebra.rule_terms import just_windows

def mine():
    found=[]
    for told, path in tolds():
        found.append(told)
    return found

def tolds():
    for case in all_cases():
        p=Path(case.path)
        if not (p.parent.name=="groups" or p.stem in ("every","was","conditions","more")): continue
        settings = set(case.settings) - {"changes", "emit", "lateness"}
        if case.expected is None or not settings <= {"facts", "until", "policy"}: continue
        told = told_of(case)
        ids = [i.id for i in told.history if isinstance(i, Event) and i.id]
        types = {(i.type, len(i.args)) for i in told.history if isinstance(i, Event)}
        if len(types) > len({name for name, _ in types}): continue
        if not told.history or len(ids) > len(set(ids)) or told.clock != Clock() or told.program.plan.tick is not None: continue
        if any(isinstance(n, Every) for r in told.program.plan.rules for n in walk(r.body)) and any(just_windows(r) is None for r in told.program.plan.rules): continue
        yield told, p

@pytest.mark.parametrize("part", range(1))
def test_mine(plain, part):
    some=mine()[1::6]
    print(len(some))
    run_many(plain, Many(some), 3)

def test_mine_stream(plain, tmp_path):
    some=mine()[1::6]
    stream_many(plain, Many(some), tmp_path, "final", random.Random(3))
