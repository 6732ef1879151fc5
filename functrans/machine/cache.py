"""Object code on disk, so that a program is compiled once per machine and not once per process.

Here: ``ObjectCache``, one directory of entries, and ``cache_key``, which names an entry. Not here:
what object code is (``machine.engine``), which programs are looked up (the caller).

An entry is a file named after its key: a header (magic, format version, key, length, SHA-256), then
the data. It is written under a temporary name and renamed, so a reader sees all of it or nothing;
whatever does not check out is removed and counts as absent. Object code is executed, so the
directory and each file in it must belong to the user and be writable for no one else; a file must
have one name and be no symbolic link, and all that is asked of the open file, which nobody can
exchange meanwhile. What others put there is not read and is replaced: entries may be there from the
time before their directory was protected. Every failure of the file system means "not cached",
never an exception: programs run without a cache.

How much there is stands in one file, to which every writer appends what it adds, so that no process
looks at tens of thousands of entries because it writes one. Entries that are written again count
twice, so the sum is never too small for long; when it is beyond the bound, the entries are counted.

The environment: ``FUNCTRANS_CACHE_DIR`` (empty or ``off`` for none), ``FUNCTRANS_CACHE_SIZE_MB``.

Layer: ``machine``.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
import os
import stat
import struct
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from functrans.core.boundary import warn
from functrans.machine.system import System, system
from functrans.records import dataclass

_MAGIC = b"functrans-object"
_FORMAT = 1
_HEADER = struct.Struct("<16sI32sQ32s")
_SUFFIX = ".object"
_UNFINISHED = ".unfinished"
_UNFINISHED_AGE_S = 3600
_DEFAULT_SIZE_MB = 256
_SIZES = "sizes"
"""Name of the file of sizes: 64-bit integers, whose sum is that of all entries, or more."""
_caches: dict[str, ObjectCache] = {}
_lock = threading.Lock()
_KEEP_AFTER_EVICTION = 0.75
"""Share of the bound that an eviction leaves, so that not every write evicts."""


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """What a cache holds, and what this process found in it.

    Attributes:
      entries: number of entries on disk.
      size_bytes: their sizes together.
      hits: look-ups that found an entry.
      misses: look-ups that did not.
      damaged: entries that did not check out and were removed.
    """

    entries: int
    size_bytes: int
    hits: int
    misses: int
    damaged: int


class ObjectCache:
    """A directory of object code; safe to share between threads and processes.

    Attributes:
      directory: where the entries are; ``None`` if there is no cache.
      limit_bytes: how much the entries may take together.
    """

    def __init__(self, directory: Path | None, limit_bytes: int | None = None) -> None:
        self.limit_bytes = _limit_bytes() if limit_bytes is None else limit_bytes
        self.directory = _usable(directory) if directory is not None else None
        self._lock = threading.Lock()
        self._hits = self._misses = self._damaged = 0
        self._has_warned = False
        self._written_bytes: int | None = None
        """Size of all entries as far as this process knows; unknown before the first write."""

    def get(self, key: str) -> bytes | None:
        """The object code of a key, or ``None``.

        Args:
          key: what ``cache_key`` returned.
        """
        data = self._read(key)
        with self._lock:
            if data is None:
                self._misses += 1
            else:
                self._hits += 1
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep object code, unless the directory cannot be written.

        Args:
          key: what ``cache_key`` returned.
          data: the object code.
        """
        path = self._path(key)
        size_bytes = _HEADER.size + len(data)
        if path is None or size_bytes > self.limit_bytes:
            return
        header = _HEADER.pack(_MAGIC, _FORMAT, digest_of(key), len(data), _checksum(key, data))
        try:
            _write_whole(path, header + data)
        except OSError:  # read-only, full, gone
            return
        self._bound(size_bytes)

    def clear(self) -> None:
        """Remove all entries."""
        for entry in self._entries():
            _remove(Path(entry.path))
        if self.directory is not None:
            _remove(self.directory / _SIZES)
        with self._lock:
            self._written_bytes = None

    def statistics(self) -> CacheStatistics:
        """What is there, and what was found."""
        sizes = [_size_bytes(entry) for entry in self._entries()]
        with self._lock:
            return CacheStatistics(len(sizes), sum(sizes), self._hits, self._misses, self._damaged)

    # files

    def _path(self, key: str) -> Path | None:
        if self.directory is None:
            return None
        return self.directory / (digest_of(key).hex() + _SUFFIX)

    def _read(self, key: str) -> bytes | None:
        path = self._path(key)
        if path is None:
            return None
        try:
            with _opened(path, "rb") as file:
                content = file.read()
                with contextlib.suppress(OSError):
                    os.utime(_handle(file, path))  # what was used last is evicted last
        except _ForeignFileError as error:
            self._warn_of(path, error.reason)
            return None
        except OSError:
            return None
        data = _checked(key, content)
        if data is None:
            with self._lock:
                self._damaged += 1
            _remove(path)
            return None
        return data

    def _warn_of(self, path: Path, reason: str) -> None:
        """Say once that there is code of others."""
        with self._lock:
            known, self._has_warned = self._has_warned, True
        if not known:
            warn(
                f"functrans: {path} {reason}, so it is not run but compiled anew and replaced. "
                "Somebody else may have put it there, and more: remove the entries with "
                f"functrans.clear_caches(disk=True) or by hand (rm -r {self.directory}), and keep "
                "the directory writable for yourself alone (chmod 700)",
                RuntimeWarning,
            )

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        """Entries, and what writers that were killed left behind."""
        if self.directory is None:
            return
        try:
            with os.scandir(self.directory) as found:
                yield from (e for e in found if e.name.endswith((_SUFFIX, _UNFINISHED)))
        except OSError:
            return

    def _bound(self, added_bytes: int) -> None:
        """Remove the least recently used entries when they take too much together."""
        assert self.directory is not None
        sizes = self.directory / _SIZES
        with self._lock:
            known = _recorded(sizes) if self._written_bytes is None else self._written_bytes
            self._written_bytes = None if known is None else known + added_bytes
            if known is not None and known + added_bytes <= self.limit_bytes:
                _record(sizes, added_bytes)
                return
        total = self._evict()
        with contextlib.suppress(OSError):
            _write_whole(sizes, struct.pack("<q", total))
        with self._lock:
            self._written_bytes = total

    def _evict(self) -> int:
        """Remove what is too much; the size of what is left."""
        now = _now(self.directory)
        ages: list[tuple[float, int, Path]] = []
        for entry in self._entries():
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            unfinished = entry.name.endswith(_UNFINISHED)
            if unfinished and now - status.st_mtime > _UNFINISHED_AGE_S:
                _remove(Path(entry.path))
            elif not unfinished:
                ages.append((status.st_mtime, status.st_size, Path(entry.path)))
        total = sum(size for _, size, _ in ages)
        if total <= self.limit_bytes:
            return total
        for _, size, path in sorted(ages):
            if total <= _KEEP_AFTER_EVICTION * self.limit_bytes:
                break
            _remove(path)
            total -= size
        return total


def digest_of(key: str) -> bytes:
    """What an entry is named after."""
    return hashlib.sha256(key.encode()).digest()


def _checksum(key: str, data: bytes) -> bytes:
    """Over the key and the length as well, so that every byte of an entry is covered."""
    checksum = hashlib.sha256(digest_of(key))
    checksum.update(struct.pack("<Q", len(data)))
    checksum.update(data)
    return checksum.digest()


def _checked(key: str, content: bytes) -> bytes | None:
    """The data of an entry, if the entry is whole and belongs to the key."""
    if len(content) < _HEADER.size:
        return None
    magic, version, digest, length, checksum = _HEADER.unpack_from(content)
    data = content[_HEADER.size :]
    whole = (
        magic == _MAGIC
        and version == _FORMAT
        and digest == digest_of(key)
        and length == len(data)
        and checksum == _checksum(key, data)
    )
    return data if whole else None


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears under its name only when it is complete."""
    handle, name = tempfile.mkstemp(suffix=_UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)  # noqa: PTH105  # names, as mkstemp gives them
    except BaseException:
        _remove(Path(name))
        raise


def _recorded(sizes: Path) -> int | None:
    """The sum of a file of sizes; ``None`` if there is none, or a damaged one."""
    try:
        with _opened(sizes, "rb") as file:
            content = file.read()
    except OSError:
        return None
    if not content or len(content) % 8:
        return None
    total = int(np.frombuffer(content, "<i8").sum())
    return total if total >= 0 else None


def _record(sizes: Path, added_bytes: int) -> None:
    """Append to a file of sizes; short appends of several processes do not mix."""
    with contextlib.suppress(OSError), _opened(sizes, "ab") as file:
        file.write(struct.pack("<q", added_bytes))


class _ForeignFileError(OSError):
    """A file that somebody else may have written; carries how one knows."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _opened(path: Path, mode: str) -> IO[bytes]:
    """Open a file that nobody but the user can have written, without a buffer.

    Raises:
      OSError: it cannot be opened; a ``_ForeignFileError`` if that is for being somebody else's.
    """
    if path.is_symlink():  # for the reason; what counts is what is opened
        raise _ForeignFileError("is a symbolic link")
    file = open(path, mode, buffering=0, opener=_open_itself)  # noqa: SIM115  # returned
    status = os.fstat(file.fileno())
    reason = _not_own(status)
    if reason is None and not stat.S_ISREG(status.st_mode):
        reason = "is no file"
    if reason is None and status.st_nlink > 1:
        reason = "has a second name, under which it may have been another's"
    if reason is not None:
        file.close()
        raise _ForeignFileError(reason)
    return file


def _open_itself(path: str, flags: int) -> int:
    """Open a file, but not what a symbolic link names, and without waiting for a pipe's writer."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o600)


def _not_own(status: os.stat_result) -> str | None:
    """Why a file or directory is not the user's alone; ``None`` if it is.

    The superuser's is not: what an administrator's process left behind was made from other programs
    and settings than the user's, and is made anew at no harm.
    """
    if system() == "windows":
        return None
    if status.st_uid != os.geteuid():
        return "belongs to another user"
    return "can be written by other users" if status.st_mode & 0o022 else None


def _handle(file: IO[bytes], path: Path) -> Any:
    """What times are set of: the open file, where the system can do that."""
    return file.fileno() if os.utime in os.supports_fd else path


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _size_bytes(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:  # removed by somebody else
        return 0


def _now(directory: Path | None) -> float:
    """The file system's time, in seconds: that of its newest change in a directory."""
    try:
        return directory.stat().st_mtime if directory is not None else 0.0
    except OSError:
        return 0.0


def _usable(directory: Path) -> Path | None:
    """The directory, made if need be, if nobody else can put code into it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except (FileExistsError, NotADirectoryError):
        _warn_unused(str(directory), "is no directory", "name one of your own")
        return None
    except OSError:
        return None
    reason = _not_own(status)
    if reason is not None:
        remedy = (
            "use a directory of your own with mode 700 (an empty one: others may have left code in "
            f"this one; rm -r {directory})"
        )
        _warn_unused(str(directory), reason, remedy)
        return None
    return directory


@functools.cache
def _warn_unused(directory: str, reason: str, remedy: str) -> None:
    warn(
        f"functrans: the cache directory {directory} {reason}, so compiled programs are not kept; "
        f"{remedy}, or set FUNCTRANS_CACHE_DIR=off",
        RuntimeWarning,
    )


def _limit_bytes() -> int:
    text = os.environ.get("FUNCTRANS_CACHE_SIZE_MB", "")
    try:
        size_mb = float(text) if text else _DEFAULT_SIZE_MB
    except ValueError:
        size_mb = math.nan
    if not 0 <= size_mb < math.inf:
        raise ValueError(
            f"FUNCTRANS_CACHE_SIZE_MB is {text!r}, expected a number of megabytes, 0 or more "
            "(0 for no cache)"
        )
    return int(size_mb * 2**20)


_PLACES: dict[System, tuple[str, str]] = {
    "windows": ("LOCALAPPDATA", "AppData/Local"),
    "macos": ("", "Library/Caches"),
    "posix": ("XDG_CACHE_HOME", ".cache"),
}
"""The environment variable that names the place for caches, and the place beneath the home."""


def default_directory() -> Path | None:
    """Where object code is kept; ``None`` if nowhere.

    ``FUNCTRANS_CACHE_DIR``, else the platform's directory for caches.
    """
    chosen = os.environ.get("FUNCTRANS_CACHE_DIR")
    if chosen is not None:
        return None if chosen in ("", "off") else Path(chosen)
    try:
        home = Path.home()
    except RuntimeError:  # no home directory
        return None
    variable, otherwise = _PLACES[system()]
    base = Path(os.environ.get(variable, "") if variable else "")
    # The XDG specification: relative paths are invalid and ignored.
    return (base if base.is_absolute() else home / otherwise) / "functrans"


def _renew_locks() -> None:
    """In a forked child, which lacks the threads that may have held them."""
    global _lock
    _lock = threading.Lock()
    for cache in _caches.values():
        cache._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def object_cache() -> ObjectCache:
    """The cache on disk that the environment names now."""
    directory = default_directory()
    key = str(directory)
    with _lock:
        if key not in _caches:
            _caches[key] = ObjectCache(directory)
        return _caches[key]


_HEAD = struct.Struct("<I")


def packed(head: object, code: bytes) -> bytes:
    """What is kept of code that needs a description: that as JSON, and the code."""
    text = json.dumps(head).encode()
    return _HEAD.pack(len(text)) + text + code


def unpacked(data: bytes) -> tuple[Any, bytes]:
    """Description and code from ``packed``.

    Raises:
      ValueError, struct.error: it is no such thing.
    """
    (length,) = _HEAD.unpack_from(data)
    start = _HEAD.size + length
    return json.loads(data[_HEAD.size : start]), data[start:]


# keys ------------------------------------------------------------------------------------------

_APART = ("autograd", "compat", "random", "scipy", "sparse", "__pycache__")
"""Packages whose code is seen in the programs that it makes, and which the compiler and the rules
of primitives do not import; all other code may decide what object code a program becomes."""


def cache_key(*parts: object) -> str:
    """Name an entry.

    What is the same for all programs of a process is always a part of the name:

    - the version of functrans, since packagers may give all files one size and time;
    - its source: rules of primitives, passes and the compiler decide what a program becomes;
    - Python's version and build, whose objects the wrappers read and make;
    - NumPy's version, likewise, and since its conventions are the rules'.

    Args:
      *parts: whatever else the object code depends on, as values whose ``repr`` is the same in
        every process (``compiler.compiled``).
    """
    return repr((_environment(), *parts))


@functools.cache
def _environment() -> tuple[str, ...]:
    """What is the same for all programs of a process."""
    abi = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    own: str = sys.modules[__name__.partition(".")[0]].__version__
    return (own, _source_digest(), abi, np.__version__)


def _source_digest() -> str:
    """Changes whenever the source does that machine code depends on.

    From names, sizes and modification times in nanoseconds, at a third of the time that reading the
    contents takes. What it can do wrong is to see a change where there is none, after files were
    copied, and compile once more; an edit that keeps both size and time does not happen.
    """
    lines: list[str] = []
    _list_sources(str(Path(__file__).parent.parent), "", lines)
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _list_sources(directory: str, relative: str, lines: list[str]) -> None:
    """Append name, size and time of each source below a directory."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                lines.append(f"{relative}{entry.name} {status.st_size} {status.st_mtime_ns}")
            elif entry.is_dir() and entry.name not in _APART:
                _list_sources(entry.path, f"{relative}{entry.name}/", lines)
