"""``save`` and ``load``: objects with tensors in files, through pickle.

Here: what may be read of a file that nobody vouches for. Not here: the format (``archives``).

Layer: ``compat``.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from functrans.compat.torch.archives import read_archive, write_archive

_SAFE = {
    "builtins": {"set", "frozenset", "complex", "slice", "range", "bytearray"},
    "collections": {"OrderedDict", "defaultdict", "deque"},
    "_codecs": {"encode"},
    "numpy": {"ndarray", "dtype"},
    "ml_dtypes": {"bfloat16"},
    "functrans.autograd.tensors": {"Tensor"},
    "functrans.autograd.methods.state": {"_unpickled"},
    "functrans.compat.torch.nn.parameter": {"Parameter", "Buffer"},
    "functrans.autograd.sizes": {"Size"},
    "functrans.compat.torch.functional_names": {"Size"},
}
_NUMPY_HELPERS = {"_reconstruct", "scalar", "_frombuffer"}


class _Restricted(pickle.Unpickler):
    """Makes tensors, arrays, numbers and containers only."""

    def find_class(self, module: str, name: str) -> Any:
        """A class or function that a file names.

        Raises:
          UnpicklingError: it could do anything.
        """
        is_numpy = module.startswith("numpy.") and (
            name in _NUMPY_HELPERS or (module == "numpy.dtypes" and hasattr(np.dtypes, name))
        )
        if name in _SAFE.get(module, ()) or is_numpy:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(
            f"Weights only load failed: the file names {module}.{name}, which is neither a tensor "
            "nor a container. If you trust where the file comes from, use "
            "load(f, weights_only=False)."
        )


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2) -> None:
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
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool = True
) -> Any:
    """Read an object that ``save`` or PyTorch wrote, or a pickle.

    Args:
      f: a path, or a file open for reading bytes.
      map_location: accepted and ignored.
      pickle_module: its ``load`` is used.
      weights_only: whether only tensors, arrays, numbers and containers are made. Switch it off for
        files whose origin you trust: a pickle can run any code.

    Raises:
      UnpicklingError: the file holds something else.
    """
    if not hasattr(f, "read"):
        with Path(f).open("rb") as file:
            return load(file, map_location, pickle_module, weights_only=weights_only)
    if pickle_module is not None:
        return pickle_module.load(f)
    unpickler = _Restricted if weights_only else pickle.Unpickler
    start = f.tell()
    is_archive = f.read(4) == b"PK\x03\x04"
    f.seek(start)
    if is_archive:
        return read_archive(f, unpickler)
    found = unpickler(f).load()
    if found == _MAGIC:
        raise pickle.UnpicklingError(
            "the file is of PyTorch before 1.6: load it with PyTorch and save it again"
        )
    return found


_MAGIC = 0x1950A86A20F9469CFC6C
"""What files of PyTorch begin with that are no archives."""
