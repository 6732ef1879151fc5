"""Programs in files, pickles and hashes.

Here: ``save``, ``load``, ``reduce`` (pickling) and ``structural_hash``. Not here: programs and
single values as JSON (``ir.writing``, ``ir.encoding``).

A file is a zip archive, readable without functrans and free of code:

``program.json``
    ``format``, ``version``, and tables that the rest refers to by position: ``primitives``
    (names), ``avals``, ``literals``, ``sources`` (file, line, function), ``scopes``, ``consts`` and
    ``programs``. Program 0 is the one that was saved, the others are its sub-programs, each written
    once. An equation is ``[primitive, operands, parameters, avals of outputs, source, scope]``.
    Variables are numbered as they are bound (constants, arguments, outputs); an operand is the
    number of a variable, or ``-1 - i`` for literal ``i``.
``constants/0.npy``, ...
    Arrays in NumPy's format; bfloat16 arrays as their 16-bit patterns.

Others add entries to ``program.json`` (``jitted.saved``), which are no part of the program.
Everything about the format that a reader must know changes ``VERSION``; readers refuse newer
versions. Functions attached as annotations are written by name only, and come back as
``SavedHook``. A pickle is such a file, beside which pickle itself takes what has no encoding
(callbacks).

Layer: ``ir``.
"""

from __future__ import annotations

import io
import json
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np

from functrans.core.annotations import KINDS, Annotation
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var
from functrans.core.source import SourceLine
from functrans.core.values import Array
from functrans.errors import CacheFormatError, FunctransError
from functrans.ir.check import check_jaxpr
from functrans.ir.encoding import (
    decode_aval,
    decode_dtype,
    decode_value,
    dtype_text,
    encode_value,
    from_little_endian,
    little_endian,
    primitive_name,
    primitive_named,
)
from functrans.ir.printing import line_resolver
from functrans.ir.writing import SavedHook, Table, Writer, require_plain

FORMAT = "functrans-jaxpr"
VERSION = 1
_PROGRAM_FILE = "program.json"
_LARGEST_RATIO = 100  # of JSON to its compressed form; about 20 in long programs
_HASH_SALT = f"{FORMAT} hash 1:"


# files ------------------------------------------------------------------------------------------


def _document(
    jaxpr: Jaxpr, action: str, stray: Callable[[Any], Any] | None
) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The program as JSON, and the arrays that go beside it."""
    primitives, sources, scopes, consts = (Table() for _ in range(4))
    programs = [jaxpr]
    program_number = {jaxpr: 0}

    def subprogram(sub: Jaxpr) -> int:
        if sub not in program_number:
            program_number[sub] = len(programs)
            programs.append(sub)
        return program_number[sub]

    writer = Writer(action, subprogram, stray)
    line_of = line_resolver()
    const_rows: list[Any] = []
    arrays: list[np.ndarray] = []
    rows: list[dict[str, Any]] = []
    for current in programs:  # grows while it is read
        row = writer.structure(current, lambda primitive: primitives(primitive_name(primitive)))
        for cells, eqn in zip(row["eqns"], current.eqns, strict=True):
            cells += (sources(line_of(eqn.source)), scopes(eqn.scope))
        row["consts"] = []
        for i, const in enumerate(current.consts):
            require_plain(const, i, action)
            number = consts(_Identity(const))
            if number == len(const_rows):
                const_rows.append(_const_row(const, arrays))
            row["consts"].append(number)
        rows.append({"name": current.name, "arg_names": list(current.arg_names), **row})
    literals = writer.literal_rows()
    document = {
        "format": FORMAT,
        "version": VERSION,
        "primitives": list(primitives.number),
        "avals": writer.aval_rows(),
        "literals": literals,
        "sources": [
            None if line is None else [line.file, line.line, line.function]
            for line in sources.number
        ],
        "scopes": list(scopes.number),
        "consts": const_rows,
        "programs": rows,
    }
    return document, arrays


class _Identity:
    """A key that stands for one object, kept alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _const_row(const: object, arrays: list[np.ndarray]) -> dict[str, Any]:
    """Describe a constant; an array is appended to ``arrays``."""
    if not isinstance(const, np.ndarray):
        return {"value": encode_value(const, _no_program)}
    arrays.append(np.asarray(const))
    return {
        "file": _const_file(len(arrays) - 1),
        "dtype": dtype_text(const.dtype),
        "writeable": bool(const.flags.writeable),
    }


def _const_file(number: int) -> str:
    return f"constants/{number}.npy"


def _no_program(jaxpr: object) -> Any:
    raise CacheFormatError("a constant holds a program")


def _write(stream: IO[bytes], document: dict[str, Any], arrays: list[np.ndarray]) -> None:
    """Write the archive."""
    with zipfile.ZipFile(stream, "w") as archive:
        info = zipfile.ZipInfo(_PROGRAM_FILE)  # its fixed date makes equal files equal
        info.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(info, json.dumps(document, separators=(",", ":"), allow_nan=False))
        for i, array in enumerate(arrays):
            stored = array.view(np.uint16) if array.dtype.name == "bfloat16" else array
            with archive.open(zipfile.ZipInfo(_const_file(i)), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, stored, allow_pickle=False)


def save(jaxpr: Jaxpr, path: Any) -> None:
    """Write a program to a file.

    Args:
      jaxpr: the program.
      path: file name, or a file that is open for writing bytes.
    Raises:
      UnsupportedOperationError: a parameter is a Python function, a constant is a traced value, or
        a primitive is not functrans' own; the file is then not touched.
    """
    save_document(jaxpr, path, {})


def save_document(jaxpr: Jaxpr, path: Any, more: Mapping[str, Any]) -> None:
    """Write a program to a file, with more entries in JSON beside those of the format."""
    document, arrays = _document(jaxpr, "save", None)
    document.update(more)
    if hasattr(path, "write"):
        _write(path, document, arrays)
        return
    with Path(path).open("wb") as stream:
        _write(stream, document, arrays)


def load(path: Any) -> Jaxpr:
    """Read a program from a file, and check it.

    Args:
      path: file name, or a file that is open for reading bytes.
    Raises:
      CacheFormatError: the file is damaged, of another kind or of a newer version.
    """
    return load_document(path)[0]


def load_document(path: Any) -> tuple[Jaxpr, dict[str, Any]]:
    """A program from a file, and the entries beside it, which are not checked."""
    # Read whole: a damaged offset would make the file system, not the format, report the error.
    if hasattr(path, "read"):
        return _unzip(path.read(), "load: the file", ())
    return _unzip(Path(path).read_bytes(), f"load: {path}", ())


def reduce(jaxpr: Jaxpr) -> tuple[Any, ...]:
    """What ``Jaxpr.__reduce__`` returns."""
    strays: list[Any] = []

    def stray(value: object) -> dict[str, Any]:
        strays.append(value)
        return {"object": len(strays) - 1}

    stream = io.BytesIO()
    _write(stream, *_document(jaxpr, "pickle", stray))
    return _unpickle, (stream.getvalue(), tuple(strays))


def _unpickle(data: bytes, strays: tuple[Any, ...]) -> Jaxpr:
    return _unzip(data, "unpickle: the pickled program", strays)[0]


# JSON to programs -------------------------------------------------------------------------------

_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, LookupError, TypeError, ValueError,
    AttributeError, OverflowError, RecursionError, NotImplementedError, RuntimeError, SyntaxError,
    tokenize.TokenError,
)  # fmt: skip


def _unzip(data: bytes, origin: str, strays: tuple[Any, ...]) -> tuple[Jaxpr, dict[str, Any]]:
    """The program of an archive, and its document; ``origin`` begins all messages."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_records(archive, len(data))
            document = _read_document(archive)
            jaxpr = _Reader(archive, document, strays).program(0)
        check_jaxpr(jaxpr)
    except CacheFormatError as error:
        raise CacheFormatError(f"{origin} cannot be read: {error}") from None
    except _DAMAGE as error:
        reason = (
            f"{type(error).__name__}: {error}" if not isinstance(error, FunctransError) else error
        )
        raise CacheFormatError(
            f"{origin} cannot be read: it was not written by Jaxpr.save, or it is damaged "
            f"({reason}); write it again from the function"
        ) from error
    return jaxpr, document


def _check_records(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse archives of other methods, or whose records take far more memory than the file."""
    records = archive.infolist()
    if any(
        info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in records
    ):
        raise CacheFormatError("a record is compressed by a method that save does not use")
    stored = sum(info.file_size for info in records if info.filename != _PROGRAM_FILE)
    compressed = sum(info.file_size for info in records) - stored
    if stored > size or compressed > _LARGEST_RATIO * size:
        raise CacheFormatError("its records are far larger than the file, unlike those of save")
    if len({info.filename for info in records}) < len(records):
        raise CacheFormatError("it has two records of one name")


def _read_document(archive: zipfile.ZipFile) -> dict[str, Any]:
    if _PROGRAM_FILE not in archive.namelist():
        raise CacheFormatError(
            f"it is a zip archive without {_PROGRAM_FILE}, not written by Jaxpr.save"
        )
    document = json.loads(archive.read(_PROGRAM_FILE))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CacheFormatError(f"its {_PROGRAM_FILE} is not of format {FORMAT!r}")
    version = document["version"]
    if type(version) is not int or version > VERSION:
        raise CacheFormatError(
            f"it has format version {version}, this functrans reads versions up to {VERSION}; "
            "update functrans, or write the file again with this version"
        )
    return document


def _read_array(data: bytes) -> np.ndarray:
    """An array of numbers in NumPy's format, once its size agrees with its header.

    NumPy's own reader allocates what the header says before it looks for it.
    """
    stream = io.BytesIO(data)
    major, _ = np.lib.format.read_magic(stream)
    read_header = (
        np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    )
    shape, is_fortran, dtype = read_header(stream)
    left = memoryview(bytearray(data))[stream.tell() :]
    if dtype.kind not in "biufc" or min(shape, default=0) < 0:
        raise CacheFormatError(f"a constant of it is no array of numbers, but of {dtype}")
    if math.prod(shape) * dtype.itemsize != len(left):
        raise CacheFormatError("a constant of it has other bytes than its shape says")
    array = np.frombuffer(left, dtype)
    if dtype.kind == "b":  # compiled code relies on 0 and 1
        array = array.view(np.uint8) != 0
    return array.reshape(shape, order="F" if is_fortran else "C")


class _Reader:
    """Decodes the programs of a document."""

    def __init__(
        self, archive: zipfile.ZipFile, document: dict[str, Any], strays: tuple[Any, ...]
    ) -> None:
        self.rows = document["programs"]
        self.files: set[str] = set()
        self.programs: dict[int, Jaxpr | None] = {}
        self.stray = strays.__getitem__
        self.primitives = [primitive_named(name) for name in document["primitives"]]
        self.avals = [decode_aval(encoded) for encoded in document["avals"]]
        self.literals = [
            Literal(decode_value(value, self.program, self.stray), self.avals[aval])
            for value, aval in document["literals"]
        ]
        self.sources = [None if row is None else SourceLine(*row) for row in document["sources"]]
        self.scopes = [str(scope) for scope in document["scopes"]]
        self.consts = [self._const(archive, row) for row in document["consts"]]

    def _const(self, archive: zipfile.ZipFile, row: dict[str, Any]) -> Array:
        if "file" not in row:
            return decode_value(row["value"], _no_program, _no_program)
        name = row["file"]
        if name in self.files:
            raise CacheFormatError(f"two of its constants are {name}")
        self.files.add(name)
        stored = _read_array(archive.read(name))
        array = from_little_endian(stored, decode_dtype(row["dtype"]))
        array.flags.writeable = bool(row["writeable"])
        return array

    def program(self, number: int) -> Jaxpr:
        """The n-th program; recursive in the depth to which programs are nested."""
        if number in self.programs:
            known = self.programs[number]
            if known is None:
                raise CacheFormatError("a program in it contains itself")
            return known
        self.programs[number] = None
        row = self.rows[number]
        constvars = [Var(self.avals[i]) for i in row["constvars"]]
        invars = [Var(self.avals[i]) for i in row["invars"]]
        atoms: list[Any] = [*constvars, *invars]
        eqns = [self._equation(cells, atoms) for cells in row["eqns"]]
        jaxpr = Jaxpr(
            tuple(constvars),
            tuple([self.consts[i] for i in row["consts"]]),
            tuple(invars),
            tuple(eqns),
            tuple([self._atom(i, atoms) for i in row["outvars"]]),
            row["name"],
            tuple(row["arg_names"]),
            self._annotations(row["annotations"], atoms, eqns),
        )
        self.programs[number] = jaxpr
        return jaxpr

    def _atom(self, number: int, variables: list[Any]) -> Literal | Var:
        return variables[number] if number >= 0 else self.literals[-1 - number]

    def _equation(self, cells: list[Any], variables: list[Any]) -> Equation:
        primitive, inputs, params, outputs, source, scope = cells
        literals = self.literals
        operands = tuple([variables[i] if i >= 0 else literals[-1 - i] for i in inputs])
        results = tuple([Var(self.avals[i]) for i in outputs])
        variables.extend(results)
        return Equation(
            self.primitives[primitive],
            operands,
            {key: decode_value(v, self.program, self.stray) for key, v in params.items()},
            results,
            self.sources[source],
            self.scopes[scope],
        )

    def _annotations(
        self, rows: list[Any], variables: list[Any], eqns: list[Equation]
    ) -> dict[Any, tuple[Any, ...]]:
        return {
            (variables if kind == "var" else eqns)[number]: tuple(map(self._annotation, values))
            for kind, number, values in rows
        }

    def _annotation(self, encoded: object) -> Any:
        if isinstance(encoded, dict) and "hook" in encoded:
            return SavedHook(encoded["hook"])
        if isinstance(encoded, dict) and "note" in encoded:
            name, text = encoded["note"]
            return Annotation(_KINDS[name], text)
        return decode_value(encoded, self.program, self.stray)


_KINDS = {kind.name: kind for kind in KINDS}


# hash -------------------------------------------------------------------------------------------


def structural_hash(jaxpr: Jaxpr) -> str:
    """Hexadecimal SHA-256 of a program's structure and constants.

    Programs have the same hash when they have the same equations (primitives by name, parameters,
    avals, literals), sub-programs, contents of constants, and annotations that are no functions.
    Names, sources and name scopes do not count. A name says what a primitive does only where it is
    one of functrans' own: two others may share it.

    Args:
      jaxpr: the program.
    Raises:
      UnsupportedOperationError: a parameter is a Python function, a constant is a traced value, or
        a primitive is not functrans' own.
    """
    return _hash(jaxpr, {})


def _hash(jaxpr: Jaxpr, known: dict[Jaxpr, str]) -> str:
    """Hash of a program; recursive in the depth to which programs are nested."""
    if jaxpr in known:
        return known[jaxpr]
    writer = Writer("structural_hash", lambda sub: _hash(sub, known))
    structure = writer.structure(jaxpr, primitive_name)
    for cells in structure["eqns"]:
        cells[2] = sorted(cells[2].items())
    structure["annotations"] = [
        (kind, number, items)
        for kind, number, values in structure["annotations"]
        if (items := [v for v in values if not (isinstance(v, dict) and "hook" in v)])
    ]
    consts = []
    for i, const in enumerate(jaxpr.consts):
        require_plain(const, i, "structural_hash")
        consts.append(_content_hash(const))
    literals = writer.literal_rows()
    text = json.dumps(
        [structure, consts, literals, writer.aval_rows()], separators=(",", ":"), sort_keys=True
    )
    known[jaxpr] = sha256((_HASH_SALT + text).encode()).hexdigest()
    return known[jaxpr]


def _content_hash(const: Array) -> str:
    """Hash of a constant's elements, whatever its memory layout; its aval is hashed elsewhere."""
    array = np.ascontiguousarray(little_endian(np.asarray(const)))
    return sha256(array.view(np.uint8).data if array.size else b"").hexdigest()
