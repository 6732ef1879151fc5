"""How many threads large loops and matrix products of compiled programs run on.

Here: ``set_num_threads``, ``get_num_threads``, and what native code refers to: the number, and the
function that runs a loop on threads (``emitter.chunks``). Not here: which loops are run so
(``compiler.parallel``), of which no result depends on the number of threads; ``threadpoolctl``,
which limits it too (``limits``).

The environment: ``FUNCTRANS_NUM_THREADS``, or ``OMP_NUM_THREADS``.

Layer: ``compiler``.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading

from functrans.core.boundary import boundary
from functrans.emitter.chunks import AFFINITY, NUM_THREADS, RUN_CHUNKS, runtime_text
from functrans.emitter.spare import GIVE_BLOCK, TAKE_BLOCK
from functrans.machine import engine
from functrans.machine.cache import cache_key, object_cache
from functrans.machine.system import function_address, system

_lock = threading.Lock()
_count = ctypes.c_int32(0)
"""Threads of a loop, the caller included; 0 before anybody asked. Read by native code."""


def _default_count() -> int:
    text = os.environ.get("FUNCTRANS_NUM_THREADS", "")
    if text:
        try:
            count = int(text)
        except ValueError:
            count = 0
        if count < 1:
            raise ValueError(f"FUNCTRANS_NUM_THREADS is {text!r}, expected a positive integer")
        return count
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if first.isdecimal() and int(first):  # else OpenMP takes no notice of it either
        return int(first)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def get_num_threads() -> int:
    """Number of threads that big loops, batches and matrix products run on.

    Returns:
      What ``set_num_threads`` or ``threadpoolctl`` set, else the environment variable
      ``FUNCTRANS_NUM_THREADS`` or ``OMP_NUM_THREADS``, else the number of processors that this
      process may use.

    Raises:
      ValueError: the environment variable is no positive integer.

    Example:
      >>> get_num_threads() >= 1
      True
    """
    if not _count.value:
        with _lock:
            if not _count.value:
                _count.value = _default_count()
    return _count.value


@boundary
def set_num_threads(count: int) -> None:
    """Set how many threads big loops, batches and matrix products run on.

    Results do not depend on it, but for the last bits of matrix products that are left to the BLAS
    library (large ones, and those with few columns), which is told too where ``threadpoolctl`` is
    installed; SciPy's own one, which comes with ``scipy.linalg``, if that is imported by then. It
    counts for all Python threads, from the next loop on.

    Args:
      count: at least 1, which is serial.

    Raises:
      TypeError: ``count`` is no integer.
      ValueError: ``count`` is less than 1.

    Example:
      >>> before = get_num_threads()
      >>> set_num_threads(1)
      >>> get_num_threads()
      1
      >>> set_num_threads(before)
    """
    if isinstance(count, bool) or not hasattr(count, "__index__"):
        raise TypeError(f"set_num_threads: expected an integer, got {type(count).__name__}")
    number = int(count.__index__())
    if not 1 <= number < 2**31:
        raise ValueError(f"set_num_threads: expected a positive number of threads, got {number}")
    limit_num_threads(number)
    try:
        import threadpoolctl  # type: ignore[import-not-found,import-untyped,unused-ignore]  # an option
    except ImportError:
        return
    threadpoolctl.threadpool_limits(limits=number, user_api="blas")


def _count_address() -> int:
    """The address of the number."""
    get_num_threads()
    return ctypes.addressof(_count)


_runtimes: dict[str, engine.Loaded] = {}
"""The code that all programs share, once it is loaded."""


def _runtime() -> engine.Loaded:
    """The code that all programs share; a thread may be in it after its program is unloaded.

    Threads that compile their first programs at once may each load it. They get the one that comes
    first: programs keep the address alone, and what nobody holds is freed.
    """
    known = _runtimes.get("runtime")
    return known or _runtimes.setdefault("runtime", _load_runtime())


def _load_runtime() -> engine.Loaded:
    has_affinity = all(map(function_address, AFFINITY))
    cache, text = object_cache(), runtime_text(system(), has_affinity)
    key = cache_key("threads", engine.target(), text)
    code = cache.get(key)
    if code is None:
        code = engine.compile_object(text, 0)  # as fast as level 1, in a fifth of the time
        cache.put(key, code)
    return engine.load_object(code)


def _runtime_address(symbol: str) -> int:
    return _runtime().address(symbol)


engine.provide(NUM_THREADS, _count_address)
for _symbol in (RUN_CHUNKS, TAKE_BLOCK, GIVE_BLOCK):
    engine.provide(_symbol, functools.partial(_runtime_address, _symbol))


def limit_num_threads(count: int) -> None:
    """Set the number that our own loops run on, and no library's."""
    with _lock:
        _count.value = max(1, count)
