"""The dictionary of values: random stories of what is encoded at once and one by one, taken back, cleared out and restored."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from augury.core.clock import Duration, Timestamp
from augury.core.jit import Kernel
from augury.core.model import Iri, Value, spelling, value_hash
from augury.storage.dictionary import NULL, Dictionary

LETTERS = 'abé\U0001f600"\\\n'


class Story:
    """A dictionary beside the codes that it has given."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.dictionary = Dictionary()
        self.codes: dict[tuple[type, Value], int] = {}

    def tell(self, steps: int = 40) -> None:
        mark: Any = None
        for _ in range(steps):
            step = self.rng.random()
            if step < 0.8:
                self.encode()
            elif step < 0.85:
                self.find()
            elif step < 0.9:
                mark = (self.dictionary.mark(), dict(self.codes))
            elif step < 0.95 and mark is not None:
                self.dictionary.cut(mark[0])
                self.codes, mark = mark[1], None
            else:
                self.clear_out()
                mark = None
            self.check()

    def value(self) -> Value:
        text = "".join(self.rng.choices(LETTERS, k=self.rng.randrange(20)))
        number = self.rng.randrange(50)
        values: list[Value] = [number - 25, self.rng.random(), float(number), text, Iri(text), Timestamp(number)]
        return self.rng.choice([*values, Duration(number), None, "\ud800" + text, (text, number)])

    def text(self) -> str:
        return f"t{self.rng.randrange(400)}"

    def encode(self) -> None:
        count = self.rng.randrange(1, 80)
        match self.rng.randrange(6):
            case 0:
                values = [self.value() for _ in range(count)]
                codes = self.dictionary.encode_all(values)
            case 1:
                values = [self.value() for _ in range(count)]
                codes = np.array([self.dictionary.encode(value) for value in values], np.int64)
            case 2:
                values = [self.text() for _ in range(count)]
                codes = self.dictionary.encode_all(values)
            case 3:
                values = [Iri(self.text()) for _ in range(count)]
                codes = self.dictionary.encode_all(values)
            case 4:
                values = [self.text() if self.rng.random() < 0.9 else None for _ in range(count)]
                codes = self.dictionary.encode_texts(pa.array(["", *values, ""], pa.string()).slice(1, count))
            case _:
                values = [Timestamp(self.rng.randrange(99)) for _ in range(count)]
                codes = self.dictionary.encode_all(values)
        for value, code in zip(values, codes.tolist(), strict=True):
            if value is None:
                assert code == NULL
            else:
                assert self.codes.setdefault((type(value), value), code) == code

    def find(self) -> None:
        texts = [self.text() for _ in range(5)]
        codes = self.dictionary.find_texts(texts)
        assert codes is not None and codes.tolist() == [self.codes.get((str, text), 0) for text in texts]

    def clear_out(self) -> None:
        """Keeps some of the values; what is left is restored from its state now and then."""
        kept = {key: code for key, code in self.codes.items() if self.rng.random() < 0.9}
        used = np.array([*kept.values(), NULL], np.int64)
        self.dictionary, moved = self.dictionary.without([used])
        self.codes = {key: int(moved[code >> 1]) if code & 1 else code for key, code in kept.items()}
        if self.rng.random() < 0.5:
            restored = Dictionary.restored(self.dictionary.saved())
            assert restored is not None
            self.dictionary = restored

    def check(self) -> None:
        values = [value for _, value in self.codes]
        codes = np.array(list(self.codes.values()), np.int64)
        assert len(set(codes.tolist())) == len(codes)
        decoded = self.dictionary.decode_all(codes)
        assert [(type(value), value) for value in decoded] == list(self.codes)
        assert self.dictionary.hashes(codes).tolist() == list(map(value_hash, values))
        assert self.dictionary.spellings(codes).tolist() == list(map(spelling, values))


def test_codes_of_python_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kernel, "compiled", False)
    for seed in range(6):
        Story(seed).tell()


COMPILED = """
from augury.core import jit
from tests.unit.test_dictionary import Story

named = ("floats", "text_table", "blake2b", "hashing")
jit.Kernel.all = [kernel for kernel in jit.Kernel.all if kernel.python.__module__.endswith(named)]
jit._HELPERS[:] = [one for one in jit._HELPERS if one.__module__.endswith(named)]
jit.compile_all()
for seed in range(12):
    Story(seed).tell()
"""


def test_codes_of_pooled_texts() -> None:
    subprocess.run([sys.executable, "-c", COMPILED], check=True)
