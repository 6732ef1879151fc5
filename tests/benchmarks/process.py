"""The parent's handle on a worker process: start, ask with a time limit, end.

Layer: above ``libraries``; ``rounds`` is built on it. POSIX only (the pipe's descriptor is
inherited).
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.benchmarks import libraries

ROOT = Path(__file__).resolve().parents[2]


class ContenderError(Exception):
    """A contender cannot go on.

    Attributes:
      kind: ``missing``, ``failed`` or ``timeout``.
      reason: one line.
      detail: traceback or the end of the process's standard error.
    """

    def __init__(self, kind: str, reason: str, detail: str = "") -> None:
        """Keep the three parts apart."""
        super().__init__(f"{kind}: {reason}")
        self.kind = kind
        self.reason = reason
        self.detail = detail


class Worker:
    """A process that runs one contender; a context manager that ends the process."""

    def __init__(self, library: str, threads: int, dtype: str, cache: Path) -> None:
        """Start the process with thread limits and a private cache directory."""
        self._connection, theirs = multiprocessing.Pipe()
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115, closed in end
        environment = os.environ | libraries.environment(library, threads, dtype)
        environment |= {"XDG_CACHE_HOME": str(cache), "FUNCTRANS_CACHE_DIR": str(cache)}
        command = [sys.executable, "-m", "tests.benchmarks.worker", str(theirs.fileno())]
        self._process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            env=environment,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stderr=self._errors,
        )
        theirs.close()

    def ask(self, operation: str, *arguments: Any, timeout_s: float) -> Any:
        """Send one request and wait for its answer.

        Raises:
          ContenderError: the worker raised, died, or took longer than ``timeout_s`` seconds (it
            is then killed).
        """
        try:
            self._connection.send((operation, *arguments))
            if not self._connection.poll(timeout_s):
                self.end()
                raise ContenderError("timeout", f"{operation} > {timeout_s:g} s")
            status, *rest = self._connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            code = self._process.wait()
            reason = f"process ended with code {code} during {operation}"
            raise ContenderError("failed", reason, self._last_errors()) from None
        if status == "ok":
            return rest[0]
        raise ContenderError(*rest)

    def end(self) -> None:
        """Kill the process if it still runs, and free its pipe."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._connection.close()
        self._errors.close()

    def _last_errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-2000:]

    def __enter__(self) -> Self:
        """Return the worker."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        self.end()
