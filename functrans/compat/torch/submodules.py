"""Torch's submodules by their names in ``import`` statements.

Here: ``add_aliases``, which gives a package of this namespace the submodules that torch has and
that are spread otherwise here (``torch.optim.adam``, ``torch.nn.modules.loss``), and the finder
that says what to use where a name that is not offered is imported; ``install``, which makes this
package what ``import torch`` finds. Not here: the names (``not_offered``).

The finder looks at names below this package (and below ``torch``, once that is this package)
alone, after all others.

Layer: ``compat``.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Mapping
from types import ModuleType

from functrans.autograd.tensors import Tensor
from functrans.compat import namespaces
from functrans.compat.torch.not_offered import NAMES, not_offered

_PACKAGE = __name__.rpartition(".")[0]


def add_aliases(package: str, modules: Mapping[str, ModuleType]) -> None:
    """Make modules importable as submodules of a package.

    An attribute of the package that has the name of one stays what it is, as in torch.

    Args:
      package: its qualified name.
      modules: name below the package to the module; a name with points comes after its parents.
    """
    for name, module in modules.items():
        parent, _, last = f"{package}.{name}".rpartition(".")
        above = sys.modules[parent]
        vars(above).setdefault("__path__", [])  # import statements ask for it
        vars(above).setdefault(last, module)
        sys.modules.setdefault(f"{parent}.{last}", module)


class NotOfferedFinder:
    """Raises the error that names the way out for torch's modules and names that are not offered.

    Example:
      >>> import functrans.compat.torch.hub
      Traceback (most recent call last):
      ModuleNotFoundError: torch.hub is not offered by functrans.compat.torch (compilers,
      TorchScript and other internals): fetch the file of weights yourself: torch.load reads it
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Nothing.

        Raises:
          ModuleNotFoundError: the name is one of torch's that is not offered.
        """
        if name.startswith("torch.") and sys.modules.get("torch") is sys.modules[_PACKAGE]:
            name = _PACKAGE + name.removeprefix("torch")
        if not name.startswith(f"{_PACKAGE}."):
            return
        own, _, last = name.rpartition(".")
        module = f"torch{own.removeprefix(_PACKAGE)}"
        if last in NAMES.get(module, ()):
            raise ModuleNotFoundError(str(not_offered(module, last, own)), name=f"{module}.{last}")


def install_finder() -> None:
    """Let import statements ask the finder, once."""
    if not any(type(finder).__qualname__ == "NotOfferedFinder" for finder in sys.meta_path):
        sys.meta_path.append(NotOfferedFinder())


def install() -> None:
    """Let ``import torch`` find ``functrans.compat.torch``, in this process.

    Libraries over torch run then as they are; those that ask the class of a tensor for its library
    are told ``torch``. ``python -m functrans.compat.torch script.py`` does
    it for a script, ``python -m functrans.compat.torch -m module`` for a module.

    Raises:
      ImportError: torch itself is imported already.

    Example:
      >>> import functrans.compat.torch
      >>> functrans.compat.torch.install()  # doctest: +SKIP
      >>> import einops  # doctest: +SKIP
    """
    for module in pkgutil.walk_packages(sys.modules[_PACKAGE].__path__, f"{_PACKAGE}."):
        if not module.name.endswith(".__main__"):
            pkgutil.resolve_name(module.name)
    namespaces.install(_PACKAGE, "torch")
    Tensor.__module__ = "torch"
    for cls in Tensor.__subclasses__():
        cls.__module__ = cls.__module__.replace(_PACKAGE, "torch")
