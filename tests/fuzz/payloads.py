"""Hostile files: each asks a reader for what data cannot need.

Here: an assembler of pickles and archives, and ``HOSTILE``. Not here: mutations (``files``).
"""

from __future__ import annotations

import io
import pickle
import zipfile
from typing import Any

Code = bytes


def lit(value: Any) -> Code:
    """Instructions that push plain data."""
    return pickle.dumps(value, 2)[2:-1]


def named(module: str, name: str) -> Code:
    """Instructions that push what a name stands for."""
    return f"c{module}\n{name}\n".encode()


def call(function: Code, *args: Code) -> Code:
    """Instructions that call something."""
    return function + b"(" + b"".join(args) + b"tR"


def build(target: Code, state: Code) -> Code:
    """Instructions that set a state."""
    return target + state + b"b"


def whole(code: Code, protocol: int = 2) -> bytes:
    """A complete pickle."""
    return b"\x80" + bytes([protocol]) + code + b"."


def archive(
    code: Code, records: dict[str, bytes] | None = None, compression: int = zipfile.ZIP_STORED
) -> bytes:
    """A file as ``torch.save`` writes it."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        file.writestr("archive/data.pkl", whole(code))
        for name, data in (records or {}).items():
            file.writestr(f"archive/{name}", data)
    return stream.getvalue()


def storage(count: int, kind: str = "FloatStorage", key: str = "0") -> Code:
    """Instructions that push the memory of a record."""
    parts = (lit("storage"), named("torch", kind), lit(key), lit("cpu"), lit(count))
    return b"(" + b"".join(parts) + b"tQ"


REBUILD = named("torch._utils", "_rebuild_tensor_v2")
TENSOR = named("functrans.autograd.tensors", "Tensor")
PARAMETER = named("functrans.compat.torch.nn.parameter", "Parameter")
UNPICKLED = named("functrans.autograd.methods.state", "unpickled")
NDARRAY = named("numpy", "ndarray")
RECONSTRUCT = call(named("numpy._core.multiarray", "_reconstruct"), NDARRAY, lit((0,)), b"C\x01b")
ORDERED = call(named("collections", "OrderedDict"))
EIGHT = b"C\x08" + bytes(range(8))


def dtype(name: str, state: Code | None = None) -> Code:
    """Instructions that push a dtype."""
    made = call(named("numpy", "dtype"), lit(name), lit(False), lit(True))
    return made if state is None else build(made, state)


def array(shape: Code, kind: Code, raw: Code) -> Code:
    """Instructions that push an array."""
    return build(RECONSTRUCT, b"(" + lit(1) + shape + kind + lit(False) + raw + b"t")


def view(count: int, offset: Any, size: Any, stride: Any) -> Code:
    """Instructions that push a tensor on a part of a memory."""
    return call(REBUILD, storage(count), lit(offset), lit(size), lit(stride), lit(False), ORDERED)


def part(shape: Any, offset: int, strides: Any, kind: str = "f8") -> Code:
    """Instructions that push a tensor on a part of an array of eight bytes."""
    of_array = b"(" + lit(shape) + dtype(kind) + lit(offset) + lit(strides) + b"t"
    whole_array = array(lit((1,)), dtype("f8"), EIGHT)
    return call(UNPICKLED, TENSOR, whole_array, lit(False), lit({}), lit(False), of_array)


def _deep(count: int) -> Code:
    return lit(1) + b"\x85" * count


_F4 = {"data/0": bytes(16)}
_BIG = 1 << 20

HOSTILE: dict[str, bytes] = {
    **{
        f"{name} of an empty memory": archive(view(0, *args), {"data/0": b""})
        for name, args in {
            "many elements": (0, (4000,), (1,)),
            "one element": (0, (1,), (1,)),
            "an offset": (4, (0,), (1,)),
            "very many elements": (0, (50_000_000,), (1,)),
        }.items()
    },
    **{
        f"{name} of a memory": archive(view(4, *args), _F4)
        for name, args in {
            "five elements": (0, (5,), (1,)),
            "a negative offset": (-1, (1,), (1,)),
            "an offset at the end": (4, (1,), (1,)),
            "a long stride": (0, (2,), (4,)),
            "a negative stride": (0, (2,), (-1,)),
            "a negative extent": (0, (-1,), (1,)),
            "two negative extents": (0, (-2, -2), (1, 1)),
            "an overflowing stride": (0, (5,), (1 << 62,)),
            "an overflowing extent": (0, (1 << 62, 4), (1, 1)),
            "an overflowing offset": (1 << 62, (1,), (1,)),
            "more strides": (0, (2,), (1, 1)),
            "a text as offset": ("a", (2,), (1,)),
            "texts as strides": (0, (2,), ("a",)),
            "infinite extents": (0, (float("inf"),), (1,)),
        }.items()
    },
    "a memory larger than its record": archive(view(8, 0, (8,), (1,)), _F4),
    "a memory smaller than its record": archive(view(-1, 0, (4,), (1,)), _F4),
    "a memory without record": archive(view(4, 0, (4,), (1,))),
    "a memory by a path": archive(storage(4, key="../../etc/passwd"), _F4),
    "a memory of another kind": archive(lit(("module", "a", "0", "cpu", 4)) + b"Q", _F4),
    "a memory whose dtype is a text": archive(lit(("storage", "f4", "0", "cpu", 4)) + b"Q", _F4),
    "a memory outside of archives": whole(storage(4)),
    **{
        f"a part with {name}": whole(part(*args))
        for name, args in {
            "two elements": ((2,), 0, (8,)),
            "an offset": ((1,), 8, (8,)),
            "a negative offset": ((1,), -8, (8,)),
            "a negative stride": ((2,), 0, (-8,)),
            "a wide dtype": ((1,), 0, (16,), "c16"),
            "objects": ((1,), 0, (8,), "O"),
            "truth values of other bytes": ((8,), 0, (1,), "b1"),
        }.items()
    },
    "a dtype of objects": whole(dtype("O")),
    "an array of objects": whole(array(lit((1,)), dtype("O"), EIGHT)),
    "an array of a list": whole(array(lit((1,)), dtype("f8"), lit([1]))),
    "an array of fewer bytes": whole(array(lit((2,)), dtype("f8"), EIGHT)),
    "an array of no bytes": whole(array(lit((1 << 40,)), dtype("f8"), b"C\x00")),
    "an array of negative extents": whole(array(lit((-1, -1)), dtype("f8"), EIGHT)),
    "an array of empty texts": whole(array(lit((1 << 40,)), dtype("S0"), b"C\x00")),
    "an array built twice": whole(
        array(lit((1,)), dtype("f8"), EIGHT)
        + b"("
        + lit(1)
        + lit((0,))
        + dtype("f8")
        + lit(False)
        + b"C\x00tb"
    ),
    "a tensor on an array that is built later": whole(
        RECONSTRUCT + b"q\x63" + call(UNPICKLED, TENSOR, b"h\x63", lit(False), lit({})) + b"\x86"
    ),
    "a dtype with fields": whole(
        dtype("f8", lit((3, "|", None, ("a",), {"a": ("f8", 0)}, 8, 1, 27)))
    ),
    "a dtype of parts": whole(dtype("f8", lit((3, "<", ("f8", (1 << 40,)), None, None, 8, 8, 0)))),
    "a dtype of a shared name": whole(
        build(named("torch", "float32"), lit((3, ">", None, None, None, -1, -1, 0)))
    ),
    "a number of other bytes": whole(
        call(named("numpy._core.multiarray", "scalar"), dtype("c16"), EIGHT)
    ),
    "a number that is an object": whole(
        call(named("numpy._core.multiarray", "scalar"), dtype("O"), EIGHT)
    ),
    "an attribute of Tensor": whole(build(TENSOR, lit({"item": 0}))),
    "an attribute of Tensor by slots": whole(build(TENSOR, lit((None, {"item": 0})))),
    "an attribute of Parameter": whole(build(PARAMETER, lit({"backward": 0}))),
    "an attribute of OrderedDict": whole(build(named("collections", "OrderedDict"), lit({"a": 0}))),
    "defaults of a function": whole(build(UNPICKLED, lit({"__defaults__": ()}))),
    "a method of an ordered dictionary": whole(build(ORDERED, lit({"items": 0}))),
    "the value of a tensor": whole(
        call(
            UNPICKLED, TENSOR, array(lit((1,)), dtype("f8"), EIGHT), lit(False), lit({"_value": 0})
        )
    ),
    "the state of a tensor": whole(
        build(
            call(UNPICKLED, TENSOR, array(lit((1,)), dtype("f8"), EIGHT), lit(False), lit({})),
            lit({"_value": 0}),
        )
    ),
    "a value that is no array": whole(call(UNPICKLED, TENSOR, lit("x"), lit(False), lit({}))),
    "a tensor of another class": whole(
        call(UNPICKLED, NDARRAY, array(lit((1,)), dtype("f8"), EIGHT), lit(False), lit({}))
    ),
    "a maker of types": whole(
        call(
            named("torch._tensor", "_rebuild_from_type_v2"),
            named("builtins", "bytearray"),
            TENSOR,
            lit((1 << 40,)),
            lit({}),
        )
    ),
    **{
        f"the name {module}.{name}": whole(named(module, name))
        for module, name in (
            ("os", "system"),
            ("posix", "system"),
            ("builtins", "eval"),
            ("builtins", "getattr"),
            ("numpy.f2py.__main__", "_reconstruct"),
            ("numpy.testing", "scalar"),
            ("numpy.core.multiarray", "fromfile"),
            ("numpy", "load"),
            ("numpy.dtypes", "object_"),
            ("torch.storage", "_load_from_bytes"),
            ("functrans.autograd.tensors", "Tensor.of"),
            ("functrans.ir.serialize", "_unpickle"),
            ("antigravity", "this"),
            ("collections.OrderedDict", "fromkeys"),
            ("", ""),
        )
    },
    "a class called by INST": b"(ibuiltins\nset\n.",
    "an extension": whole(b"\x82\x01"),
    "a function that is called through a class": whole(call(named("builtins", "list"), lit([1]))),
    "a call with a list": whole(named("builtins", "set") + lit([[1]]) + b"R"),
    "keyword arguments": whole(named("builtins", "set") + b")" + lit({"a": 1}) + b"\x92", 4),
    "a large bytearray": whole(call(named("builtins", "bytearray"), lit(1 << 40))),
    "a set of a large range": whole(
        call(named("builtins", "set"), call(named("builtins", "range"), lit(1 << 40)))
    ),
    "a default that is called": whole(
        call(named("collections", "defaultdict"), named("_codecs", "encode"))
    ),
    "copies of one text": whole(
        lit("x" * _BIG)
        + b"q\x630("
        + call(named("_codecs", "encode"), b"h\x63", lit("latin1")) * 1000
        + b"l"
    ),
    "copies of one list": whole(
        lit([1] * 1000) + b"q\x630(" + call(named("builtins", "frozenset"), b"h\x63") * 1000 + b"l"
    ),
    "copies of one record": archive(
        b"(" + b"".join(storage(_BIG // 4, key=str(i)) for i in range(64)) + b"l",
        {f"data/{i}": bytes(_BIG) for i in range(64)},
        zipfile.ZIP_DEFLATED,
    ),
    "a memo of four thousand million": whole(lit(1) + b"r\xff\xff\xff\x7f" + b"j\xff\xff\xff\xff"),
    "a long text that is not there": whole(b"\x8d" + (1 << 60).to_bytes(8, "little"), 4),
    "a long bytearray that is not there": whole(b"\x96" + (1 << 40).to_bytes(8, "little"), 5),
    "a long number that is not there": whole(b"\x8b" + (1 << 30).to_bytes(4, "little")),
    "a negative length": whole(b"\x8b" + b"\xff" * 4),
    "a deep key": whole(b"}" + _deep(20_000) + lit(1) + b"s"),
    "a wide key": whole(b"}" + lit(1) + b"2\x86" * 60 + lit(1) + b"s"),
    "a deep element of a set": whole(b"\x8f(" + _deep(20_000) + b"\x90", 4),
    "a list as key": whole(b"}" + lit([]) + lit(1) + b"s"),
    "deep slices": whole(
        lit(1) + b"q\x000" + (named("builtins", "slice") + b"h\x00N\x86Rq\x000") * 1000 + b"h\x00"
    ),
    "an empty stack": whole(b"R"),
    "no mark": whole(b"t"),
    "nothing": b"",
    "an end before the end": b"\x80\x02]q\x00",
    "protocol 200": whole(lit(1), 200),
    "an archive that ends": archive(view(4, 0, (4,), (1,)), _F4)[:-30],
}
"""Files that must be refused, by what is wrong with them."""
