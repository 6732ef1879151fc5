"""``functrans.compat.autograd``: the names of HIPS autograd over functrans.

``import functrans.compat.autograd.numpy as np`` and ``from functrans.compat.autograd import grad``
run code that is written for autograd; after ``functrans.compat.autograd.install()`` libraries that
import ``autograd`` find these modules. ``table`` says where each name is.

Not offered are autograd's boxes and nodes (``Box`` is the class of traced values, for
``isinstance``), and rules for functions of NumPy, whose derivatives functrans has.

Layer: ``compat``.
"""

import typing as _typing

from functrans.compat import namespaces as _namespaces
from functrans.compat.autograd.operators import adapted as _adapted
from functrans.compat.autograd.table import TABLE as _TABLE

if _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> _typing.Any:
        """A name of the table, submodules included."""


def install() -> None:
    """Let ``import autograd`` find these modules, in this process.

    Raises:
      ImportError: autograd itself is imported already.

    Example:
      >>> import functrans.compat.autograd
      >>> functrans.compat.autograd.install()  # doctest: +SKIP
      >>> import pymanopt  # doctest: +SKIP
    """
    _namespaces.install(__name__, "autograd")


_namespaces.build(__name__, "autograd", _TABLE, adapt=_adapted)
