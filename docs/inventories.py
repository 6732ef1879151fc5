"""Write the inventories of other libraries' documentation that links of the site are made from.

Run ``python docs/inventories.py`` after a change of the versions in ``support.json``. The site is
built without network, so that the inventories are files of the repository. They are made from the
installed packages: the names that pages of functrans link to, at the addresses that the public
sites give them (``https://numpy.org/doc/stable/reference/generated/numpy.sin.html#numpy.sin``). A
page that such a site has moved is found by following one of these links, not by the build.
"""

from __future__ import annotations

import builtins
import inspect
import pkgutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from api_pages import MIRRORS, SITES, namespaces

FOLDER = Path(__file__).resolve().parent / "inventories"
STANDARD_TYPES = (
    "bytearray", "bytes", "complex", "dict", "frozenset", "list", "memoryview", "range", "set",
    "str", "tuple",
)  # fmt: skip
"""Python's types that have their entry in the chapter on standard types, not on functions."""


def _kind(value: Any) -> str:
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if callable(value) else "data"


def _place(full: str, value: Any) -> str:
    """The file of a name of NumPy or SciPy."""
    if inspect.isclass(value) and issubclass(value, np.generic):
        return "reference/arrays.scalars.html"
    if full.startswith("numpy.") and _kind(value) == "data" and full.count(".") == 1:
        return "reference/constants.html"
    return f"reference/generated/{full}.html"


def _of_library(library: str) -> list[str]:
    """Lines for the names that functrans has, too."""
    lines = []
    for namespace in namespaces():
        root = ".".join(namespace.split(".")[:2])
        if MIRRORS.get(root) != library:
            continue
        module = library + namespace.removeprefix(root)
        for name in sorted(pkgutil.resolve_name(namespace).__all__):
            value = getattr(pkgutil.resolve_name(module), name, None)
            if (value is None and name != "newaxis") or inspect.ismodule(value):
                continue
            full = f"{module}.{name}"
            lines.append(f"{full} py:{_kind(value)} 1 {_place(full, value)}#$ -")
    return lines


def _of_python() -> list[str]:
    """Lines for the names that are built in."""
    lines = []
    for name, value in sorted(vars(builtins).items()):
        if name.startswith("_") or not callable(value):
            continue
        place = "stdtypes" if name in STANDARD_TYPES else "functions"
        place = "exceptions" if _kind(value) == "exception" else place
        lines.append(f"{name} py:{_kind(value)} 1 library/{place}.html#$ -")
    return lines


def inventory(library: str) -> bytes:
    """The inventory of a library, in the second form of Sphinx."""
    lines = _of_python() if library == "python" else _of_library(library)
    header = f"# Sphinx inventory version 2\n# Project: {library}\n# Version: \n"
    header += "# The remainder of this file is compressed using zlib.\n"
    return header.encode() + zlib.compress("\n".join([*lines, ""]).encode(), 9)


def main() -> None:
    """Write all inventories."""
    FOLDER.mkdir(exist_ok=True)
    for library in SITES:
        (FOLDER / f"{library}.inv").write_bytes(inventory(library))


if __name__ == "__main__":
    main()
