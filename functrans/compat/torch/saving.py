"""``save`` and ``load``: objects with tensors in files, through pickle.

Not here: the format (``archives``), and what is read of files that nobody vouches for
(``weights``).

Layer: ``compat``.
"""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

from functrans.compat.torch.archives import read_archive, read_trusted, write_archive
from functrans.compat.torch.weights import read_weights

_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, LookupError, TypeError, ValueError,
    AttributeError, OverflowError, RuntimeError, OSError,
)  # fmt: skip
_MAGIC = 0x1950A86A20F9469CFC6C
"""What files of PyTorch begin with that are no archives."""


def save(obj: object, f: Any, pickle_module: Any = None, pickle_protocol: int = 2) -> None:
    """Write an object to a file, in PyTorch's format.

    Tensors that share memory do so again when the file is read. PyTorch reads files of tensors,
    parameters, numbers and containers.

    Args:
      obj: anything that can be pickled: tensors, dictionaries of them, modules.
      f: a path, or a file open for writing bytes.
      pickle_module: its ``dump`` is used, and no archive is made.
      pickle_protocol: for that; archives are of protocol 2.

    Example:
      >>> buffer = io.BytesIO()
      >>> save({"step": 3}, buffer)
      >>> _ = buffer.seek(0)
      >>> load(buffer)
      {'step': 3}
    """
    buffer = io.BytesIO()
    if pickle_module is None:
        write_archive(obj, buffer)
    else:
        pickle_module.dump(obj, buffer, protocol=pickle_protocol)
    if hasattr(f, "write"):
        f.write(buffer.getbuffer())
    else:
        Path(f).write_bytes(buffer.getbuffer())


def load(
    f: Any,
    map_location: object = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
) -> dict[Any, Any]:
    """Read an object that ``save`` or PyTorch wrote, or a pickle.

    Args:
      f: a path, or a file open for reading bytes.
      map_location: accepted and ignored.
      pickle_module: its ``load`` is used.
      weights_only: whether only tensors, arrays, numbers and containers are made; if not given, it
        is so unless there is a ``pickle_module``. The file may then come from anywhere. Switch it
        off for files whose origin you trust: a pickle can run any code.

    Raises:
      UnpicklingError: the file holds something else, or is damaged.
      RuntimeError: ``weights_only`` is asked of a ``pickle_module``.
    """
    if weights_only and pickle_module is not None:
        raise RuntimeError(
            "Can not safely load weights when explicit pickle_module is specified: leave out "
            "pickle_module, or, for files that you trust, use weights_only=False"
        )
    if not hasattr(f, "read"):
        with Path(f).open("rb") as file:
            return load(file, map_location, pickle_module, weights_only=weights_only)
    if pickle_module is not None:
        return pickle_module.load(f)
    if weights_only is False:
        return _load_trusted(f)
    try:
        return _load_weights(f)
    except _DAMAGE as error:
        raise pickle.UnpicklingError(
            "Weights only load failed: the file was not written by torch.save, or is damaged "
            f"({type(error).__name__}: {error})"
        ) from error


def _load_weights(f: Any) -> dict[str, Any]:
    start = f.tell()
    if _is_archive(f):
        return read_archive(f, lambda data, memory: read_weights(data, memory)[0], False)
    found, length = read_weights(f.read())
    f.seek(start + length)  # another pickle may follow
    return _refuse_old(found)


def _load_trusted(f: Any) -> dict[str, Any]:
    if _is_archive(f):
        return read_archive(f, read_trusted, True)
    return _refuse_old(pickle.Unpickler(f).load())


def _is_archive(f: Any) -> bool:
    start = f.tell()
    is_archive: bool = f.read(4) == b"PK\x03\x04"
    f.seek(start)
    return is_archive


def _refuse_old(found: object) -> Any:
    if type(found) is int and found == _MAGIC:
        raise pickle.UnpicklingError(
            "the file is of PyTorch before 1.6: load it with PyTorch and save it again"
        )
    return found
