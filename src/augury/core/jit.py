"""The compiler of the hot loops: plain Python over flat arrays, compiled by Numba once there is enough work to pay for it.

Small inputs never wait for a compilation: a kernel runs as it is written until `HOT` rows have gone through kernels, or
`WARM` rows where compiled code is in the cache on disk. `AUGURY_JIT=off` never compiles, `AUGURY_JIT=on` compiles at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar

HOT, WARM = 100_000, 5_000  # compiling takes seconds, fetching what was compiled a fraction of one
_MODE = os.environ.get("AUGURY_JIT", "")


class Kernel:
    """A function that is compiled when it has become worth it."""

    rows = 0  # how many rows have gone through kernels
    compiled = False  # whether all are: more of them come with the modules that have them
    all: ClassVar[list[Kernel]] = []

    def __init__(self, python: Callable[..., Any]) -> None:
        self.python = self.call = python
        self.__name__, self.__doc__ = python.__name__, python.__doc__
        Kernel.all.append(self)
        Kernel.compiled = False

    def __call__(self, *args: object) -> Any:
        return self.call(*args)


_HELPERS: list[Callable[..., Any]] = []
_done = 0  # how many of the kernels are compiled


def helper(python: Callable[..., Any]) -> Callable[..., Any]:
    """A function that kernels call: those of its module, and of others that import it by its name."""
    _HELPERS.append(python)
    return python


def count_work(rows: int) -> None:
    """Called with the rows of each step; compiles the kernels once they are hot."""
    Kernel.rows += rows
    expect_work(Kernel.rows)


def expect_work(rows: int) -> None:
    """Compiles the kernels where so many rows are worth it."""
    if Kernel.compiled or _MODE == "off" or (rows < WARM and _MODE != "on"):
        return
    if rows >= HOT or _MODE == "on" or _cached():
        compile_all()


@cache
def _cached() -> bool:
    """Whether there was compiled code in the cache when it was first asked for."""
    return next(cache_folder().rglob("pairs.probe-*.nbi"), None) is not None


def cache_folder() -> Path:
    """The folder below which Numba keeps compiled code: beside each kernel, unless the environment names another."""
    return Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parents[1])


_compiling = threading.RLock()


def _after_fork() -> None:
    global _compiling
    _compiling = threading.RLock()


if hasattr(os, "register_at_fork"):
    # A child must not begin in the middle of an import of Numba, which would never complete there: forks wait.
    os.register_at_fork(
        before=lambda: _compiling.acquire(), after_in_parent=lambda: _compiling.release(), after_in_child=_after_fork
    )


def compile_all() -> None:
    """Compiles all kernels that there are by now; cached on disk where there is a place for it."""
    with _compiling:
        _compile_all()


def _compile_all() -> None:
    global _done
    import numba

    functions = [*(getattr(item, "py_func", item) for item in _HELPERS), *(kernel.python for kernel in Kernel.all)]
    spaces = {python.__module__: python.__globals__ for python in functions}
    stamps = _stamps(functions)

    def compiled(python: Callable[..., Any]) -> Any:
        try:
            result = njit(python, cache=True)
        except RuntimeError:  # neither the package nor the home folder can be written to
            return njit(python)
        with suppress(AttributeError):  # Numba looks for changes in one file: helpers of others may have changed, too
            result._cache._cache_file._source_stamp = stamps[_folder(python)]
            _forgive(result._cache._cache_file)
            _load_leanly(result._cache)
        return result

    jit: Any = numba.njit

    def njit(python: Callable[..., Any], **options: object) -> Any:
        # Kernels run beside other threads: what they work on belongs to one circuit, which one thread at a time uses.
        # Numba counts who holds an array whenever a helper is called, and a count waits for all that is on its way from
        # memory. What makes no arrays can do without.
        if python.__globals__.get("MAKES_NO_ARRAYS"):
            with suppress(KeyError):  # where Numba no longer knows the option
                return jit(**options, nogil=True, _nrt=False)(python)
        return jit(**options, nogil=True)(python)

    for index, python in enumerate(_HELPERS):
        if not isinstance(python, FunctionType):  # compiled already
            continue
        helper = _HELPERS[index] = compiled(python)
        for names in spaces.values():
            if names.get(python.__name__) is python:
                names[python.__name__] = helper
    for kernel in Kernel.all[_done:]:
        kernel.call = compiled(kernel.python)
    _done, Kernel.compiled = len(Kernel.all), True


def _forgive(file: Any) -> None:
    """Takes what another version has left in the cache, and this one cannot read, for nothing."""
    usual = file._load_index

    def load() -> Any:
        try:
            return usual()
        except Exception:
            return {}

    file._load_index = load


def _load_leanly(cache: Any) -> None:
    """Lets compiled code come from its cache without all that compiling needs, which takes Numba a third of a second.

    Where there is none, or Numba has changed inside, everything is as usual.
    """
    usual, cached = cache.load_overload, cache._load_overload

    def load(signature: object, context: object) -> Any:
        try:
            from numba.core.runtime.nrt import rtsys

            rtsys.initialize(context)
            result = cached(signature, context)
        except Exception:
            result = None
        return usual(signature, context) if result is None else result

    cache.load_overload = load


def _folder(python: Callable[..., Any]) -> str:
    return os.path.dirname(python.__code__.co_filename)


def _stamps(functions: Iterable[Callable[..., Any]]) -> dict[str, list[object]]:
    """For each folder of kernels, what its compiled code rests on: when the files of it, and of the folders whose helpers
    they call, were changed last, how large they are, and the numbers that these files import, which are compiled in.
    """
    home = {id(python): _folder(python) for python in functions}
    spaces = {python.__code__.co_filename: python.__globals__ for python in functions}
    calls: dict[str, set[str]] = {folder: set() for folder in home.values()}
    for file, names in spaces.items():
        used = (home.get(id(getattr(value, "py_func", value))) for value in names.values())
        calls[os.path.dirname(file)] |= {folder for folder in used if folder is not None}
    result: dict[str, list[object]] = {}
    for folder in calls:
        below, open_folders = {folder}, [folder]
        while open_folders:
            new = calls[open_folders.pop()] - below
            below |= new
            open_folders += new
        files = sorted(file for file in spaces if os.path.dirname(file) in below and os.path.exists(file))
        files.append(__file__)  # which says how kernels are compiled
        changed = [(stat.st_mtime, stat.st_size) for stat in map(os.stat, files)]
        numbers = [(k, v) for file in files for k, v in sorted(spaces.get(file, {}).items()) if type(v) in (int, float)]
        result[folder] = [*changed, *numbers]
    return result
