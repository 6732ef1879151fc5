"""Where in the user's code an operation came from.

Here: whose code is the user's, a cheap capture of its innermost frame and the description of that.
Not here: the messages that use it, tracebacks (``core.boundary``). A captured source holds a code
object and an instruction offset, never a frame, so that it keeps no local variable alive.

Layer: ``core``.
"""

from __future__ import annotations

import inspect
import os
import sys
from types import CodeType, FrameType
from typing import Any

import numpy as np

from functrans.records import dataclass

# os.path and not pathlib, whose import takes 5 ms, a sixth of that of functrans.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100, PTH120  # as above
_SITE = os.path.dirname(os.path.dirname(np.__file__)) + os.sep  # noqa: PTH120  # as above
_STANDARD = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120  # as above
_SITES = ("site-packages", "dist-packages")
_OWN = (_PACKAGE, "<program ", "<__array_function__")
LIBRARIES = frozenset(
    {
        "IPython", "_pytest", "autograd", "casadi", "cupy", "cvxpy", "dask", "functrans",
        "hypothesis", "ipykernel", "jax", "jaxlib", "llvmlite", "matplotlib", "ml_dtypes", "mpmath",
        "networkx", "numba", "numexpr", "numpy", "optree", "pandas", "plotly", "pluggy", "polars",
        "pyarrow", "pytest", "scipy", "skimage", "sklearn", "statsmodels", "sympy", "tensorflow",
        "torch", "traitlets", "xarray", "xdist",
    }
)  # fmt: skip
"""Packages that are no user's code, as the standard library is not; others may be."""
_is_internal_file: dict[str, bool] = {}
_MAX_FILES = 1 << 12

Captured = tuple[CodeType, int]


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's program: file, line number, function name."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        """``model.py:12 (loss)``."""
        cell = cell_of(self.file)
        if cell:
            return f"{cell}, line {self.line} ({self.function})"
        name = os.path.basename(self.file)  # noqa: PTH119  # see _PACKAGE
        return f"{name}:{self.line} ({self.function})"


def cell_of(file: str) -> str:
    """What IPython and Jupyter call the cell that a file of theirs stands for: ``Cell In[12]``."""
    if os.path.isabs(file) and "ipykernel" not in file:  # noqa: PTH117  # see _PACKAGE
        return ""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    found = None if shell is None else shell.compile.format_code_name(file)
    return " ".join(found) if found else ""


def is_own(file: str) -> bool:
    """Whether a file is of functrans, or of what it calls users' functions through."""
    return file.startswith(_OWN) or _library(file) == "optree"


def _library(file: str) -> str:
    """The installed package that a file belongs to, or the module of the standard library."""
    if file.startswith(_SITE):
        return file[len(_SITE) :].partition(os.sep)[0]
    for site in _SITES:
        _, found, rest = file.rpartition(f"{os.sep}{site}{os.sep}")
        if found:
            return rest.partition(os.sep)[0]
    return file[len(_STANDARD) :] if file.startswith(_STANDARD) else ""


def is_internal(file: str) -> bool:
    """Whether frames of this file are left out when looking for the user's line."""
    known = _is_internal_file.get(file)
    return _is_internal(file) if known is None else known


def _is_internal(file: str) -> bool:
    if len(_is_internal_file) >= _MAX_FILES:
        _is_internal_file.clear()
    library = _library(file)
    known = (
        is_own(file)
        or library in LIBRARIES
        or (file.startswith((_STANDARD, "<frozen ")) and not any(site in file for site in _SITES))
    )
    _is_internal_file[file] = known
    return known


def capture(depth: int = 3) -> Captured | None:
    """The innermost frame outside functrans, as a code object and an instruction offset.

    Args:
      depth: frames to skip without a look; from a trace's method at least three are ours.
    """
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        is_internal = _is_internal_file.get(code.co_filename)
        if is_internal is None:
            is_internal = _is_internal(code.co_filename)
        if not is_internal:
            return (code, frame.f_lasti)
        frame = frame.f_back
    return None


def resolve(captured: Captured | SourceLine | None) -> SourceLine | None:
    """File, line and function of a captured source."""
    if captured is None or isinstance(captured, SourceLine):
        return captured
    code, offset = captured
    line = code.co_firstlineno
    for start, end, candidate in code.co_lines():
        if start <= offset < end and candidate is not None:
            line = candidate
            break
    return SourceLine(code.co_filename, line, code.co_qualname)


def here(depth: int = 2) -> str:
    """Describe the user's line for a message; empty when there is none."""
    source = resolve(capture(depth))
    return f" (at {source})" if source is not None else ""


def attribute(value: object, name: str, default: Any = None) -> Any:
    """An attribute of an object of the user's; the default where asking for it fails in any way."""
    try:
        return getattr(value, name, default)
    except Exception:  # what a __getattr__ of the user's raises, KeyError for one
        return default


def signature_of(fun: Any) -> inspect.Signature:
    """The signature of a callable, also of one whose ``__getattr__`` raises another error.

    Raises:
      TypeError: there is none to be had.
      ValueError: likewise.
    """
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        raise
    except Exception:  # its own
        return inspect.signature(type(fun).__call__.__get__(fun))


def defined_at(fun: Any) -> str:
    """Describe where a function is defined, for a message; empty if it has no Python code."""
    code = attribute(fun, "__code__")
    if code is None:
        return ""
    return f" (at {SourceLine(code.co_filename, code.co_firstlineno, code.co_qualname)})"


_EVALUATION = frozenset(
    {
        "functrans.primitives.elementwise", "functrans.primitives.family",
        "functrans.core.boundary", "functrans.core.dispatch",
        "functrans.passes.recording", "functrans.passes.pushing", "functrans.debugging.watched",
    }
)  # fmt: skip
"""Modules between an operator of a traced value and the function that it applies to plain ones."""


def may_be_caught() -> bool:
    """Whether an operator in code of the user asks for what is evaluated, and a ``try`` is around.

    No rule, pass or function of ours asks then, to which Python's errors would be none of its own.
    Without a ``try`` or ``with`` nothing would follow but the end; NumPy's number says more. The
    stack is looked at, since the answer matters only where Python raises.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in _EVALUATION:
        frame = frame.f_back
    if frame is None or frame.f_globals.get("__name__") != "functrans.arrays.operators":
        return False
    while frame is not None and frame.f_globals.get("__name__") == "functrans.arrays.operators":
        frame = frame.f_back
    while frame is not None and not _is_internal(frame.f_code.co_filename):
        if frame.f_code.co_exceptiontable:
            return True
        frame = frame.f_back
    return False
