"""``functrans.compat.jax``: the names of ``jax`` over functrans.

``import functrans.compat.jax as jax`` and ``import functrans.compat.jax.numpy as jnp`` run code
that is written for JAX; after ``functrans.compat.jax.install()`` libraries that import ``jax``
find these modules. Nothing is computed here: ``table`` says where each name is.

Arrays are NumPy's, dtypes are those that are asked for: ``jnp.zeros(3)`` is float64, as with
``jax_enable_x64``. Keys are ``uint32[2]``.

Layer: ``compat``.
"""

import typing as _typing

from functrans.compat import namespaces as _namespaces
from functrans.compat.jax.arrays import adapted as _adapted
from functrans.compat.jax.table import DROPPED as _DROPPED
from functrans.compat.jax.table import TABLE as _TABLE

if _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> _typing.Any:
        """A name of the table, submodules included."""


def install() -> None:
    """Let ``import jax`` find these modules, in this process.

    Raises:
      ImportError: JAX itself is imported already.

    Example:
      >>> import functrans.compat.jax
      >>> functrans.compat.jax.install()  # doctest: +SKIP
      >>> import optax  # doctest: +SKIP
    """
    _namespaces.install(__name__, "jax")


_namespaces.build(__name__, "jax", _TABLE, _DROPPED, _adapted)
