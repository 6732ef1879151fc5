"""Programs and machine code that are kept, counted and forgotten.

Here: ``clear_caches``, ``cache_statistics`` and ``counted``. Not here: the caches, which belong to
jitted functions (``jitted.jit``), programs (``core.analyses``) and the disk (``machine.cache``).

Layer: ``jitted``.
"""

from __future__ import annotations

from collections import Counter

from functrans.core import analyses, caching
from functrans.jitted.jit import jitted_functions
from functrans.machine.cache import object_cache
from functrans.records import dataclass


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """What is kept in memory and on disk, and what this process found on disk.

    Attributes:
      functions: jitted functions that are alive.
      programs: staged programs that they keep, one for each kind of arguments.
      compiled: those of them that have machine code.
      directory: where machine code is kept; ``None`` if nowhere.
      entries: files there.
      size_bytes: their sizes together.
      limit_bytes: what they may take together; the least recently used are removed beyond that.
      hits: look-ups of this process that found a file.
      misses: look-ups that did not.
      damaged: files that did not check out and were removed.
    """

    functions: int
    programs: int
    compiled: int
    directory: str | None
    entries: int
    size_bytes: int
    limit_bytes: int
    hits: int
    misses: int
    damaged: int


def cache_statistics() -> CacheStatistics:
    """Count programs in memory and machine code on disk.

    Example:
      >>> import functrans as ft
      >>> f = ft.jit(lambda x: x + 1.0)
      >>> before = ft.cache_statistics().programs
      >>> y = f(2.0)
      >>> ft.cache_statistics().programs - before
      1
    """
    functions = jitted_functions()
    programs = [program for function in functions for program in function.kept_programs()]
    cache = object_cache()
    disk = cache.statistics()
    return CacheStatistics(
        functions=len(functions),
        programs=len(programs),
        compiled=sum(program.native is not None for program in programs),
        directory=None if cache.directory is None else str(cache.directory),
        entries=disk.entries,
        size_bytes=disk.size_bytes,
        limit_bytes=cache.limit_bytes,
        hits=disk.hits,
        misses=disk.misses,
        damaged=disk.damaged,
    )


def counted() -> Counter[str]:
    """How much is kept in memory, by name of the analysis, function or table that keeps it."""
    programs = sum(function.cache_size for function in jitted_functions())
    return analyses.counted() + caching.counted() + Counter({"programs of jit": programs})


def clear_caches(disk: bool = False) -> None:
    """Forget the programs of all jitted functions; they are staged again when they are called.

    What else the library remembers, of programs that are still in use too, is forgotten with them.

    Args:
      disk: remove the machine code on disk as well, which other processes use too.

    Example:
      >>> import functrans as ft
      >>> f = ft.jit(lambda x: x + 1.0)
      >>> y = f(2.0)
      >>> ft.clear_caches()
      >>> f.cache_size
      0
    """
    for function in jitted_functions():
        function.clear_cache()
    caching.forget()
    analyses.forget()
    if disk:
        object_cache().clear()
