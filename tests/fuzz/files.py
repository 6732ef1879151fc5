"""Damaged and forged files: ``compat.torch.load`` and ``Jaxpr.load`` read them or refuse them.

A case is the name of a good file (``_bases``) and mutations with seeds. Of the file is expected: it
is read, or refused with the one documented error; what was read lies in its own memory, and can be
read and written; no class, function or module changes, none is imported; memory stays bounded.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import io
import json
import pickle
import pickletools
import random
import resource
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from inspect import isfunction
from pathlib import Path
from typing import Any

import numpy as np

import functrans as ft
import functrans.compat.torch as torch
from functrans.autograd.methods import state
from functrans.compat.torch import archives, saving, weights
from functrans.errors import CacheFormatError

from .common import Case, Finding, Kind
from .payloads import HOSTILE

MEMORY_BYTES = 512 << 20
"""What a file may take; all are smaller than a few kilobytes."""

_SMALL_FILE = 5_000
_NUMBERS = (
    -1, 0, 1, 2, 7, 8, 63, 64, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40,
    1 << 62, (1 << 63) - 1, 1 << 64, -8, -(1 << 31), -(1 << 63),
)  # fmt: skip


# good files -------------------------------------------------------------------------------------


def _tensors() -> Any:
    x = torch.arange(6.0).reshape(2, 3)
    parameter = torch.nn.Parameter(x)
    parameter.tag = "a"
    ordered = collections.OrderedDict(w=parameter, b=x[1], t=x.t(), e=x[:1].expand(4, 3))
    ordered._metadata = collections.OrderedDict(version=1)  # type: ignore[attr-defined]  # as modules do
    kinds = [torch.ones(2, dtype=dtype) for dtype in (np.int64, np.bool_, np.complex64, np.uint16)]
    return {"model": ordered, "kinds": kinds, "size": x.size(), "none": torch.zeros(0, 3)}


def _plain() -> Any:
    arrays = [np.arange(3.0), np.arange(6, dtype=">i4").reshape(2, 3).T, np.array([True, False])]
    numbers = [np.float32(2), np.dtype("f4"), 1 << 70, 1.5, 1 + 2j, None, True, -5, 300]
    containers = [{1, "a"}, frozenset({2}), bytearray(b"ab"), b"x\xff", slice(1, 2), range(3)]
    further = [collections.defaultdict(list, {1: [2]}), collections.deque([1], 2), {(1, 2): []}]
    return [arrays, numbers, containers, further, torch.Size([2]), torch.ones(2, 2)[1]]


def _program(jaxpr: ft.Jaxpr) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program"
        jaxpr.save(path)
        return path.read_bytes()


def _programs() -> Iterator[bytes]:
    table = np.arange(6.0).reshape(2, 3)

    def loop(x: Any) -> Any:
        y, _ = ft.lax.scan(lambda c, a: (np.sin(c) * a, c), x, np.ones(3))
        return ft.lax.cond(y > 0, lambda z: z * 2, lambda z: np.sort(table, axis=1).sum() + z, y)

    yield _program(ft.make_jaxpr(loop)(1.0))
    yield _program(ft.make_jaxpr(ft.grad(loop))(1.0))
    yield _program(ft.make_jaxpr(lambda x: x[:, np.array([0, 2])] @ table[:, :2])(np.ones((2, 3))))


@functools.cache
def _bases() -> dict[str, bytes]:
    archive = io.BytesIO()
    torch.save(_tensors(), archive)
    found = {"archive": archive.getvalue()}
    for protocol in range(6):
        found[f"pickle {protocol}"] = pickle.dumps(_plain(), protocol)
        found[f"pickled tensors {protocol}"] = pickle.dumps(_tensors(), protocol)
    for i, program in enumerate(_programs()):
        found[f"program {i}"] = program
    small = {name: data for name, data in HOSTILE.items() if len(data) < _SMALL_FILE}
    return found | {f"hostile: {name}": data for name, data in small.items()}


# mutations --------------------------------------------------------------------------------------


def _flip(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] = rng.choice((0, 1, 127, 255, rng.randrange(256)))
    return bytes(changed)


def _cut(rng: random.Random, data: bytes) -> bytes:
    first, last = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return rng.choice((data[:first], data[:first] + data[last:], data[:last] + data[first:]))


@functools.lru_cache(1000)
def _instructions(data: bytes) -> list[bytes]:
    """The instructions of a pickle; what cannot be read of it is one more."""
    starts = []
    with contextlib.suppress(Exception):  # of every kind, on damaged pickles
        for _, _, position in pickletools.genops(data):
            starts.append(position or 0)  # what was found before an error counts
    return [data[a:b] for a, b in zip([0, *starts[1:]], [*starts[1:], len(data)], strict=True)]


def _integer(rng: random.Random) -> bytes:
    number = rng.choice(_NUMBERS)
    return pickle.dumps(number if rng.random() < 0.9 else float(number), 2)[2:-1]


def _other(rng: random.Random) -> list[bytes]:
    """Instructions of another file, without its beginning and end."""
    pickles = [data for data in _bases().values() if data[:2] != b"PK" and len(data) > 2]
    return _instructions(rng.choice(pickles))[1:-1]


def _change_instructions(rng: random.Random, data: bytes) -> bytes:
    code = list(_instructions(data))
    i, j = (rng.randrange(len(code)) for _ in range(2))
    kind = rng.randrange(8)
    if kind == 0:
        del code[i]
    elif kind == 1:
        code.insert(i, code[j])
    elif kind == 2:
        code[i], code[j] = code[j], code[i]
    elif kind == 3:
        integers = [n for n, part in enumerate(code) if part[:1] in b"JKMI\x8aL"]
        code[rng.choice(integers or [i])] = _integer(rng)
    elif kind == 4:
        code[i] = _integer(rng)
    elif kind == 5:
        simple = [op.code.encode("latin1") for op in pickletools.opcodes if op.arg is None]
        code.insert(i, rng.choice(simple))
    elif kind == 6:
        part = _other(rng)
        first = rng.randrange(len(part) + 1)
        code[i:i] = part[first : first + rng.choice((1, 3, 10, len(part)))]
    else:
        code.insert(i, b"h" + bytes([rng.randrange(100)]))
    return b"".join(code)


def _values(tree: Any) -> Iterator[tuple[Any, Any]]:
    """All places in parsed JSON: a container and a key."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(pairs):
        yield tree, key
        if isinstance(value, (dict, list)):
            yield from _values(value)


_JSON: tuple[Any, ...] = (
    None, True, "", "a", [], {}, 1.5, "float64", "O", "(04)f8", "f8,f8", "int32", "sin", "sort",
    {"dtype": "O"}, {"bytes": "00"}, {"int": "0x10"}, {"float": "nan"}, {"jaxpr": 0}, {"jaxpr": 1},
    {"aval": ["float64", [1 << 62, 4], False]}, {"tape": {"aval": ["float64", [], False]}},
    {"record": ["BasicIndex", [[0]]]}, {"scalar": ["float64", "00"]}, {"object": 0},
    {"slice": [0, None, 1]}, {"file": "constants/0.npy", "dtype": "int64", "writeable": True},
)  # fmt: skip


def _change_json(rng: random.Random, data: bytes) -> bytes:
    try:
        tree = json.loads(data)
        places = list(_values(tree))
    except (ValueError, TypeError):
        return _flip(rng, data)
    if not places:
        return data
    (container, key), (other, place) = rng.choice(places), rng.choice(places)
    kind = rng.randrange(4)
    if kind == 0:
        del container[key]
    elif kind == 1:
        container[key] = json.loads(json.dumps(other[place]))
    elif kind == 2:
        container[key] = rng.choice(_NUMBERS)
    else:
        container[key] = rng.choice(_JSON)
    return json.dumps(tree).encode()


def _records(data: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]


def _zipped(records: list[tuple[str, bytes]], compression: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, data in records:
            if name in archive.namelist():  # zipfile warns of a second record
                archive.filelist.append(archive.getinfo(name))
            else:
                archive.writestr(zipfile.ZipInfo(name), data, compression)
    return stream.getvalue()


def _change_record(rng: random.Random, name: str, data: bytes) -> bytes:
    if rng.random() < 0.1:
        return _cut(rng, data)
    if name.endswith(".pkl"):
        return _change_instructions(rng, data)
    if name.endswith(".json"):
        return _change_json(rng, data)
    return rng.choice((_flip(rng, data), data + data, b"", data[:-1], b"big"))


def _change_archive(rng: random.Random, data: bytes) -> bytes:
    try:
        records = _records(data)
    except Exception:  # of every kind, on damaged archives
        return _flip(rng, data)
    if not records:
        return _flip(rng, data)
    i, j = (rng.randrange(len(records)) for _ in range(2))
    kind = rng.randrange(12)
    if kind == 0:
        del records[i]
    elif kind == 1:
        records[i] = (records[j][0], records[i][1])
    elif kind == 2:
        records.append((rng.choice(("../a", "/etc/passwd", "a\0b", "archive/data/9")), b"x" * 24))
    else:
        i = (
            min(range(len(records)), key=lambda n: "data.pkl" not in records[n][0])
            if kind > 5
            else i
        )
        records[i] = (records[i][0], _change_record(rng, *records[i]))
    is_packed = rng.random() < 0.1
    return _zipped(records, zipfile.ZIP_DEFLATED if is_packed else zipfile.ZIP_STORED)


def _change(rng: random.Random, data: bytes) -> bytes:
    """One mutation, mostly one that keeps the form of the file."""
    if not data or rng.random() < 0.15:
        return _flip(rng, data)
    if rng.random() < 0.05:
        return _cut(rng, data)
    return _change_archive(rng, data) if data[:2] == b"PK" else _change_instructions(rng, data)


def built(case: Case) -> bytes:
    """The file of a case."""
    data = _bases()[case["base"]]
    for seed in case["steps"]:
        data = _change(random.Random(seed), data)
    return data


# judging ----------------------------------------------------------------------------------------


class _World:
    """What no file may change."""

    def __init__(self) -> None:
        classes = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer, torch.Size, torch.device)
        modules = [module for name, module in sys.modules.items() if _is_watched(name)]
        functions = [
            f for m in (state, archives, saving, weights) for f in vars(m).values() if isfunction(f)
        ]
        self.dicts = [vars(thing) for thing in (*classes, *modules, *functions)]
        self.before = [dict(attributes) for attributes in self.dicts]
        self.ids = [list(map(id, attributes.values())) for attributes in self.before]
        self.functions = functions
        self.defaults = [(f.__defaults__, f.__code__) for f in functions]
        self.names = set(sys.modules)

    def check(self) -> None:
        """Raises ``Finding``."""
        for now, before, ids in zip(self.dicts, self.before, self.ids, strict=True):
            if list(map(id, now.values())) != ids:
                changed = {k for k in {*now, *before} if now.get(k) is not before.get(k)}
                raise Finding("changed attributes", f"{now.get('__name__')}: {sorted(changed)}")
        if [(f.__defaults__, f.__code__) for f in self.functions] != self.defaults:
            raise Finding("changed functions", "defaults or code")
        new = [name for name in sys.modules if name not in self.names]
        if any(not name.startswith("encodings.") for name in new):
            raise Finding("imports", str(new))


def _is_watched(name: str) -> bool:
    return name in ("builtins", "os", "pickle", "numpy", "collections") or name.startswith(
        ("functrans.compat.torch.", "functrans.autograd.tensors", "functrans.ir.serialize")
    )


def _arrays(root: Any) -> Iterator[np.ndarray]:
    """All arrays in what was read."""
    rest, seen = [root], set()
    while rest:
        value = rest.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, torch.Tensor):
            rest += [value._value, *vars(value).values()]
        elif isinstance(value, dict):
            rest += [*value, *value.values(), *getattr(value, "__dict__", {}).values()]
        elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
            rest += value
        elif isinstance(value, ft.Jaxpr):
            rest += value.consts


def _check_array(array: np.ndarray) -> None:
    if array.dtype.hasobject:
        raise Finding("array of objects", str(array.dtype))
    root: Any = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    if not array.size:
        return
    first, last = np.lib.array_utils.byte_bounds(array)
    start, end = np.lib.array_utils.byte_bounds(root)
    if root.base is not None:
        memory = np.frombuffer(root.base, np.uint8)
        start, end = memory.ctypes.data, memory.ctypes.data + memory.nbytes
    if not (start <= first and last <= end):
        raise Finding("foreign memory", f"{array.shape} {array.strides} of {end - start} bytes")
    if array.size > 10_000:
        return
    if array.dtype.kind == "b" and array.copy().view(np.uint8).max() > 1:
        raise Finding("truth values other than 0 and 1", str(array.shape))
    if array.flags.writeable:
        array[...] = array.copy()


def _read(case: Case, data: bytes) -> Any:
    if not case["base"].startswith("program"):
        return torch.load(io.BytesIO(data))
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        return ft.Jaxpr.load(file.name)


class Files(Kind):
    """See the module's docstring."""

    name = "files"
    timeout_s = 20.0

    def prepare(self) -> None:
        """Import what good files need, and note the state of the process."""
        for name, data in _bases().items():
            if not name.startswith("hostile"):
                _read({"base": name}, data)
        self.world = _World()

    def draw(self, rng: np.random.Generator) -> Case:
        """A file and up to five mutations."""
        names = list(_bases())
        hostile = [name for name in names if name.startswith("hostile")]
        good = [name for name in names if not name.startswith("hostile")]
        base = str(rng.choice(hostile if rng.random() < 0.3 else good))
        count = int(rng.choice((1, 1, 2, 3, 5)))
        return {"base": base, "steps": [int(n) for n in rng.integers(0, 1 << 32, size=count)]}

    def run(self, case: Case, counts: Counter[str]) -> None:
        """Read the file with little memory."""
        data = built(case)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, hard))
        try:
            found = _read(case, data)
        except (pickle.UnpicklingError, CacheFormatError):
            counts["files, refused"] += 1
        else:
            counts["files, read"] += 1
            for array in _arrays(found):
                counts["arrays, read and written"] += 1
                _check_array(array)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        self.world.check()

    def smaller(self, case: Case) -> Iterator[Case]:
        """Without some of the mutations."""
        yield {**case, "steps": []}
        yield from super().smaller(case)

    def script(self, case: Case) -> str:
        """The file in hexadecimal digits, and the call."""
        how = (
            "import tempfile, functrans as ft\nfile = tempfile.NamedTemporaryFile()\n"
            "file.write(data)\nfile.flush()\nft.Jaxpr.load(file.name)"
            if case["base"].startswith("program")
            else "import io\nimport functrans.compat.torch as torch\ntorch.load(io.BytesIO(data))"
        )
        return f"data = bytes.fromhex({built(case).hex()!r})\n{how}"


KIND = Files()
