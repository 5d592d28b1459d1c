"""Compiled code that is kept on disk."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from augury.core import jit
from augury.storage.kernels import pairs

READ = """
from augury.core import jit
from augury.sources.lines import columns_of
jit.compile_all()
print(columns_of(b'{"a": 7}\\n').named["a"].plain().tolist())
"""


def test_what_another_version_has_left_in_the_cache_is_made_anew(tmp_path: Path) -> None:
    def read() -> str:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-c", READ], env=environment, check=True, capture_output=True, text=True
        ).stdout

    assert read() == "[7]\n"
    kept = list(tmp_path.rglob("*.nbi"))
    assert kept
    for path in kept:  # it names a module that there is no longer
        path.write_bytes(pickle.dumps(numba.__version__) + b"caugury.no_such_module\nX\n.")
    assert read() == "[7]\n"


def test_compiled_code_rests_on_helpers_of_other_folders_and_on_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    from augury.knowledge.reachability import edges
    from augury.storage.kernels import hashing, pairs

    functions = [kernel.python for kernel in jit.Kernel.all] + [getattr(h, "py_func", h) for h in jit._HELPERS]
    folder = os.path.dirname(edges.__file__)
    before = jit._stamps(functions)[folder]
    assert before == jit._stamps(functions)[folder]
    stat = os.stat(hashing.__file__)
    assert (stat.st_mtime, stat.st_size) in before
    monkeypatch.setattr(pairs, "END", 99)
    assert jit._stamps(functions)[folder] != before


def test_cache_folder_holds_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code stands beside each kernel: where it is looked for, all kernels must be."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert Path(pairs.__file__).is_relative_to(jit.cache_folder())
