"""PyTorch's files: a zip archive with a pickle and one record per memory of tensors.

Here: ``write_archive``, ``read_archive`` and how tensors are made again. Not here: ``save`` and
``load`` (``saving``), and the reader of pickles that nobody vouches for (``weights``).

The pickle is of protocol 2. A tensor is a call of one of PyTorch's functions, by name, on a
persistent id ``("storage", type, key, "cpu", size)``; the numbers are the record ``data/<key>``.
Neither side needs the other's code: names are written and read as texts.

Layer: ``compat``. Reference: PyTorch documentation, "Serialization semantics".
"""

from __future__ import annotations

import io
import operator
import pickle
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from functrans.autograd.dtypes import torch_dtype
from functrans.autograd.labels import torch_type
from functrans.autograd.methods.conversion import bfloat16_dtype, device
from functrans.autograd.methods.state import memory_part, part_of_memory, plain
from functrans.autograd.promotion import torch_tensor
from functrans.autograd.sizes import Size
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.dtypes import DTYPES, dtype
from functrans.compat.torch.nn.parameter import Buffer, Parameter
from functrans.core.dispatch import Tracer

_STORED = (
    "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool",
    "complex64", "complex128",
)  # fmt: skip
_STORAGES = {
    torch_type(np.dtype(name)).removeprefix("torch.").replace("Tensor", "Storage"): np.dtype(name)
    for name in _STORED
}
_BYTES = np.dtype(np.uint8)
ORIGIN = "functrans_origin"


class _Name:
    """A function or class of PyTorch by its name, in a pickle that is written."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self) -> None:
        """Never called: pickles hold calls of callables only."""


class _Memory:
    """What several tensors lie in."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


# writing -----------------------------------------------------------------------------------------


class _ArchiveWriter(pickle._Pickler):  # the one that can be extended
    """Pickles objects; tensors as PyTorch does, their memory apart from them."""

    dispatch: ClassVar[Any] = dict(pickle._Pickler.dispatch)

    def __init__(self, file: Any) -> None:
        super().__init__(file, 2)
        self.memories: dict[Any, tuple[str, np.ndarray]] = {}
        self._kept: list[Any] = []

    def _save_name(self, obj: _Name) -> None:
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())  # type: ignore[attr-defined]  # not in the stubs

    def _save_dtype(self, obj: dtype) -> None:
        self._save_name(_Name("torch", obj.name))

    dispatch[_Name] = _save_name
    dispatch[dtype] = _save_dtype

    def persistent_id(self, obj: object) -> tuple[Any, ...] | None:
        """What PyTorch writes for a memory; ``None`` for all else."""
        if type(obj) is not _Memory:
            return None
        array = obj.array
        place = (array.__array_interface__["data"][0], array.nbytes, array.dtype)
        if not array.nbytes:
            place = (id(array), 0, array.dtype)
        key, _ = self.memories.setdefault(place, (str(len(self.memories)), array))
        if array.dtype.name in _STORED or array.dtype.name == "bfloat16":
            name = torch_type(array.dtype).removeprefix("torch.").replace("Tensor", "Storage")
            return "storage", _Name("torch", name), key, "cpu", array.size
        return "storage", _Name("torch.storage", "UntypedStorage"), key, "cpu", array.nbytes

    def reducer_override(self, obj: object) -> tuple[Any, ...]:
        """How PyTorch makes tensors, sizes and devices again."""
        if isinstance(obj, Tensor):
            reduced = self._parameter(obj) if isinstance(obj, Parameter) else self._tensor(obj)
        elif type(obj) is Size:
            reduced = _Name("torch", "Size"), (tuple(obj),)
        elif type(obj) is device:
            reduced = _Name("torch", "device"), (obj.type,)
        else:
            return NotImplemented
        self._kept.append((obj, reduced))  # pickle knows objects by identity
        return reduced

    def _parameter(self, x: Tensor) -> Any:
        data = Tensor.of(x._memory())
        args: Any = (data, bool(x.requires_grad), OrderedDict())
        state = _attributes(x)
        if state:
            return _Name("torch._utils", "_rebuild_parameter_with_state"), (*args, state)
        return _Name("torch._utils", "_rebuild_parameter"), args

    def _tensor(self, x: Tensor) -> tuple[Any, ...]:
        value = np.asarray(plain(x, "save"))
        strides, offset, whole = value.strides, 0, value
        if not isinstance(x._value, Tracer):
            whole, part = part_of_memory(x)
            offset = 0 if part is None else part[2]
        flat = whole.ravel("K")
        if not np.may_share_memory(flat, whole):  # gaps, or reversed: the file has a copy
            flat = value.ravel()
            strides, offset = np.empty(value.shape, value.dtype).strides, 0
        size = value.itemsize
        args: tuple[Any, ...] = (
            _Memory(flat),
            offset // size,
            value.shape,
            tuple([stride // size for stride in strides]),
            bool(x.requires_grad),
            OrderedDict(),
        )
        make = _Name("torch._utils", "_rebuild_tensor_v2")
        if value.dtype.name not in _STORED and value.dtype.name != "bfloat16":
            make = _Name("torch._utils", "_rebuild_tensor_v3")
            args = (*args, _Name("torch", value.dtype.name))
        state = _attributes(x)
        if not x._follows and value.dtype.kind in "iub":
            state[ORIGIN] = "autograd"  # other floating results than integers of this namespace
        if type(x) in (Tensor, Buffer) and not state:
            return make, args
        kind = _Name("torch", "Tensor") if type(x) in (Tensor, Buffer) else type(x)
        return _Name("torch._tensor", "_rebuild_from_type_v2"), (make, kind, args, state)


def _attributes(x: Tensor) -> dict[str, Any]:
    """What users put on a tensor."""
    return {name: value for name, value in x.__dict__.items() if not name.startswith("_")}


def write_archive(obj: object, file: Any) -> None:
    """Write an object as PyTorch does.

    Args:
      obj: anything that can be pickled.
      file: open for writing bytes.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        with archive.open("archive/data.pkl", "w") as record:
            writer = _ArchiveWriter(record)
            writer.dump(obj)
        archive.writestr("archive/byteorder", sys.byteorder)
        for key, array in writer.memories.values():
            archive.writestr(f"archive/data/{key}", array.tobytes())
        archive.writestr("archive/version", "3\n")


# reading -----------------------------------------------------------------------------------------


def tensor_of(
    memory: np.ndarray,
    offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    hooks: object = None,
    metadata: object = None,
) -> Tensor:
    """A tensor on a part of a memory; all but the dtype is counted in its elements."""
    return tensor_of_bytes(memory, offset, size, stride, requires_grad, hooks, memory.dtype)


def tensor_of_bytes(
    memory: np.ndarray, offset: int, size: Any, stride: Any, requires_grad: bool, hooks: object,
    dtype: Any, metadata: object = None,
) -> Tensor:  # fmt: skip
    """A tensor on a part of a memory of bytes."""
    width = dtype.itemsize
    steps = tuple([operator.index(n) * width for n in stride])
    part = memory_part(memory, tuple(size), dtype, operator.index(offset) * width, steps)
    return torch_tensor(part).requires_grad_(requires_grad)


def parameter_of(data: Tensor, requires_grad: bool, hooks: object, state: object = None) -> Any:
    """A parameter on the memory of a tensor, with what users put on it."""
    result = Parameter(data, requires_grad)
    result.__dict__.update(state or {})
    return result


def of_type(make: Callable[..., Any], kind: type, args: Any, state: object) -> Any:
    """A tensor of another class, or with what users put on it."""
    result = make(*args)
    if kind is not Tensor:
        made: Any = object.__new__(kind)
        made.__dict__.update(result.__dict__)
        result = made
    if isinstance(state, dict):
        result._follows = state.pop(ORIGIN, None) is None
        result.__dict__.update(state)
    return result


_MADE: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): tensor_of,
    ("torch._utils", "_rebuild_tensor_v3"): tensor_of_bytes,
    ("torch._utils", "_rebuild_parameter"): parameter_of,
    ("torch._utils", "_rebuild_parameter_with_state"): parameter_of,
    ("torch._tensor", "_rebuild_from_type_v2"): of_type,
    ("torch.storage", "UntypedStorage"): _BYTES,
    ("torch", "UntypedStorage"): _BYTES,
    ("torch", "Size"): Size,
    ("torch", "device"): device,
    ("torch", "Tensor"): Tensor,
    ("torch.nn.parameter", "Parameter"): Parameter,
    ("torch.nn.parameter", "Buffer"): Buffer,
    **{("torch", name): dtype for name, dtype in _STORAGES.items()},
    **{("torch", name): dtype for name, dtype in DTYPES.items()},
}
"""What stands for names of PyTorch in a file."""


def known(module: str, name: str) -> Any:
    """What stands for a name of PyTorch.

    Raises:
      UnpicklingError: nothing does.
    """
    if module == "torch" and name in ("BFloat16Storage", "bfloat16"):
        own = bfloat16_dtype()
        return torch_dtype(own) if name == "bfloat16" else own
    found = _MADE.get((module, name))
    if found is None:
        raise pickle.UnpicklingError(
            f"the file names {module}.{name} of PyTorch, for which there is nothing here: load it "
            "with PyTorch, and save model.state_dict(), a dictionary of dense tensors"
        )
    return found


def read_archive(
    file: Any, read: Callable[[bytes, Callable[[Any], np.ndarray]], Any], is_trusted: bool
) -> dict[str, Any]:
    """Read an object that PyTorch or ``write_archive`` wrote.

    Args:
      file: open for reading bytes.
      read: makes the object of the pickle, and of a function that finds the memory which a
        persistent id stands for.
      is_trusted: whether records may be compressed, or overlap, so that they are together larger
        than the file.

    Raises:
      UnpicklingError: the archive holds something else.
    """
    memories: dict[str, np.ndarray] = {}
    left = file.seek(0, 2)

    def record(name: str) -> bytes:
        nonlocal left
        info = records[name]
        left -= info.file_size
        if not is_trusted and (left < 0 or info.file_size != info.compress_size):
            raise pickle.UnpicklingError(
                f"Weights only load failed: record {name} of the archive is compressed, or shares "
                "its place with others, which torch.save never does. If you trust where the file "
                "comes from, use load(f, weights_only=False)."
            )
        return archive.read(info)

    def memory(pid: Sequence[Any]) -> np.ndarray:
        kind, dtype, key, _, count = pid
        if kind != "storage" or type(key) is not str or not isinstance(dtype, np.dtype):
            raise pickle.UnpicklingError(f"the archive has no memory {key!r} of kind {kind!r}")
        if key not in memories:
            data = bytearray(record(f"{prefix}data/{key}"))
            if operator.index(count) * dtype.itemsize != len(data):
                raise pickle.UnpicklingError(
                    f"memory {key} of the archive has {len(data)} bytes, not {count} elements of "
                    f"{dtype}: the file is damaged"
                )
            stored = np.frombuffer(data, dtype.newbyteorder(">" if is_big else "<"))
            if dtype.kind == "b":  # NumPy and compiled code rely on 0 and 1
                stored = stored.view(np.uint8) != 0
            memories[key] = stored.astype(dtype, copy=False)
        return memories[key]

    with zipfile.ZipFile(file) as archive:
        records = {info.filename: info for info in archive.infolist()}
        found = [name for name in records if name.endswith("data.pkl")]
        if len(found) != 1 or any(name.endswith("constants.pkl") for name in records):
            raise pickle.UnpicklingError(
                "the file is an archive without the pickle of torch.save, or one of TorchScript: "
                "load it with PyTorch, and save model.state_dict()"
            )
        if len(records) != len(archive.infolist()):
            raise pickle.UnpicklingError("the archive has two records of one name: it is damaged")
        prefix = found[0].removesuffix("data.pkl")
        order = f"{prefix}byteorder"
        is_big = order in records and record(order) == b"big"
        return read(record(found[0]), memory)


def read_trusted(data: bytes, memory: Callable[[Any], np.ndarray]) -> dict[str, Any]:
    """What a pickle makes; it can run any code."""

    class Reader(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if module.partition(".")[0] == "torch":
                return known(module, name)
            return super().find_class(module, name)

        def persistent_load(self, pid: object) -> np.ndarray:
            return memory(pid)

    return Reader(io.BytesIO(data)).load()
