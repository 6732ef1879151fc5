"""Functions in files: ``jit(f).save(file, *args)`` and ``load``.

Here: what a file holds of a function beside its program (the containers of arguments and result,
names), and ``LoadedFunction``, what comes out of one. Not here: programs in files
(``ir.serialize``), code for programs without Python (``compiler.export``).

A file is that of ``Jaxpr.save`` with one more entry, ``"function"``. Containers are written as the
data that they are: tuples, lists, dicts, ``None``, sparse arrays. A class of the user's has no
place in it, since whoever reads a file must run none of its code.

Rules of users (``custom_jvp`` and its kin) are Python functions. What they are rules of is written,
and its derivative is refused where it is asked for.

Layer: ``jitted``.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.arrays.sparse import SparseArray
from functrans.control.custom_calls import without_rules
from functrans.control.custom_rules import custom_jvp
from functrans.control.native import call_program
from functrans.core.boundary import boundary
from functrans.core.dispatch import Tracer
from functrans.core.jaxpr import Jaxpr
from functrans.core.source import here
from functrans.errors import CacheFormatError, UnsupportedOperationError
from functrans.ir.serialize import load_document, save_document
from functrans.passes.programs import fitted, hoist

_LEAF = "*"
_DAMAGE = (LookupError, TypeError, ValueError, RecursionError)


def save_function(
    jaxpr: Jaxpr, names: Sequence[str], arguments: Any, result: Any, path: Any
) -> None:
    """Write a function to a file.

    Args:
      jaxpr: its program, whose constants are what it captures.
      names: of the positional arguments.
      arguments: structure of ``(args, kwargs)``.
      result: structure of its result.
      path: file name, or a file that is open for writing bytes.

    Raises:
      UnsupportedOperationError: it needs Python, or has containers of classes of the user's.
    """
    program, has_rules = without_rules(jaxpr)
    function = {
        "names": list(names),
        "arguments": _encoded(arguments, "an argument"),
        "result": _encoded(result, "the result"),
        "has_rules": has_rules,
    }
    save_document(program, path, {"function": function})


@boundary
def load(path: Any) -> LoadedFunction:
    """Read a function from a file, and check it.

    The file holds data only: nothing in it is run but operations of functrans.

    Args:
      path: name of a file written by ``ft.jit(f).save(file, *args)`` or ``Jaxpr.save``, or a file
        that is open for reading bytes.

    Returns:
      The function, of arguments like those that it was saved for; it can be transformed. That of a
      ``Jaxpr`` takes arrays and gives a tuple.

    Raises:
      CacheFormatError: the file is damaged, of another kind or of a newer version.

    Example:
      >>> import io
      >>> import functrans as ft
      >>> import numpy as np
      >>> file = io.BytesIO()
      >>> ft.jit(lambda p, x: p["scale"] * np.sin(x)).save(file, {"scale": 2.0}, np.ones(3))
      >>> function = load(io.BytesIO(file.getvalue()))
      >>> function
      <loaded <lambda>: p['scale'] f64*[], x f64[3] -> f64[3]>
      >>> function({"scale": 2.0}, np.zeros(3))
      array([0., 0., 0.])
    """
    jaxpr, document = load_document(path)
    function = document.get("function")
    if function is None:
        leaves = [_LEAF] * len(jaxpr.invars)
        function = {
            "names": [],
            "arguments": {"tuple": [{"tuple": leaves}, {"dict": []}]},
            "result": {"tuple": [_LEAF] * len(jaxpr.outvars)},
            "has_rules": False,
        }
    try:
        return LoadedFunction(jaxpr, function)
    except CacheFormatError:
        raise
    except _DAMAGE as error:
        raise CacheFormatError(
            f"load: the file cannot be read: what it says of arguments and result makes no sense "
            f"({type(error).__name__}: {error}); write it again from the function"
        ) from error


class LoadedFunction:
    """A function that was read from a file, for arguments of one kind.

    Attributes:
      jaxpr: its program.
    """

    def __init__(self, jaxpr: Jaxpr, function: dict[str, Any]) -> None:
        names, has_rules = function["names"], function["has_rules"]
        if type(has_rules) is not bool or not all(type(name) is str for name in names):
            raise CacheFormatError("load: the file cannot be read: names in it are no texts")
        self.jaxpr = jaxpr
        self.__name__ = jaxpr.name or "function"
        self._function = function
        self._names = tuple(names)
        self._has_rules = has_rules
        example = _decoded(function["arguments"])
        leaves, self._arguments = tree.flatten(example)
        outs, self._result = tree.flatten(_decoded(function["result"]))
        args, kwargs = example
        self._n_args, self._keywords = len(args), frozenset(kwargs)
        if (len(leaves), len(outs)) != (len(jaxpr.invars), len(jaxpr.outvars)):
            raise CacheFormatError(
                f"load: the file cannot be read: its program has {len(jaxpr.invars)} arguments and "
                f"{len(jaxpr.outvars)} results, its function {len(leaves)} and {len(outs)}"
            )
        paths = list(jaxpr.arg_names)
        own = len(paths) == len(leaves)
        self._paths = paths if own else [f"args[{i}]" for i in range(len(leaves))]
        self._hoisted, self._captured = hoist(jaxpr)
        self.__signature__ = _signature(self._names, self._n_args, list(kwargs))

    def __reduce__(self) -> Any:
        """Pickled as what the file holds."""
        return LoadedFunction, (self.jaxpr, self._function)

    def __repr__(self) -> str:
        """Name, arguments and results with their types."""
        pairs = zip(self._paths, self.jaxpr.in_avals, strict=True)
        given = ", ".join(f"{path} {aval}" for path, aval in pairs)
        made = ", ".join(map(str, self.jaxpr.out_avals))
        return f"<loaded {self.__name__}: {given} -> {made}>"

    @boundary
    def __call__(self, *args: object, **kwargs: Any) -> Any:
        """Call the function.

        Raises:
          ShapeError: an argument has another shape, or a dtype that does not fit into the one that
            the function was saved for.
          TypeError: the arguments have another structure.
        """
        named = self._names[len(args) : self._n_args]
        if named and all(name in kwargs for name in named):  # given by name
            args = (*args, *(kwargs.pop(name) for name in named))
        leaves, treedef = tree.flatten_folded((args, kwargs))
        if treedef != self._arguments:
            raise TypeError(
                f"{self.__name__}: the function was saved for arguments of structure "
                f"{tree.describe(self._arguments)}, got {tree.describe(treedef)}{here()}"
            )
        values = fitted(self.__name__, self._paths, leaves, self.jaxpr.in_avals)
        if self._has_rules and any(isinstance(value, Tracer) for value in values):
            outs: Any = self._without_derivative(*values)
        else:
            outs = self._flat(*values)
        return tree.unflatten(self._result, outs)

    def _flat(self, *values: Any) -> tuple[Any, ...]:
        operands = (*self._captured, *values)
        return tuple(call_program(self._hoisted, operands, self.__name__))

    def _without_derivative(self, *values: Any) -> Any:
        """The results, of which a derivative is refused."""

        def refuse(primals: object, tangents: object) -> Any:
            raise UnsupportedOperationError(
                f"{self.__name__}: it was saved without the rules for its derivative (custom_jvp, "
                f"custom_vjp and the like), which are Python functions{here()}; save the "
                "derivative too: ft.jit(ft.grad(f)).save(file, *args)"
            )

        flat: Any = custom_jvp(self._flat)
        flat.defjvp(refuse)
        return flat(*values)


def _signature(names: Sequence[str], n_args: int, keywords: Sequence[str]) -> inspect.Signature:
    """Parameters of the names that a file gives; any number of them where it gives none."""
    if len(names) != n_args or not all(map(str.isidentifier, (*names, *keywords))):
        return inspect.signature(lambda *args, **kwargs: None)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in names]
    parameters += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in keywords]
    return inspect.Signature(parameters)


# containers --------------------------------------------------------------------------------------


def _encoded(treedef: Any, what: str) -> Any:
    """A structure as JSON."""
    if treedef is tree.LEAF or treedef.is_leaf():
        return _LEAF
    cls = treedef.type
    children = tree.children_of(treedef)
    if cls in (tuple, list):
        return {cls.__name__: [_encoded(child, what) for child in children]}
    if cls is type(None):
        return None
    if cls is dict:
        keys = treedef.entries()
        _check_keys(keys, what)
        pairs = dict(zip(keys, children, strict=True))
        ordered = tree.unflatten(treedef.one_level(), keys)  # in the order of the dict itself
        return {"dict": [[key, _encoded(pairs[key], what)] for key in ordered]}
    if cls is SparseArray and all(child is tree.LEAF for child in children):
        sparse = tree.unflatten(treedef, children)
        return {"sparse": [*sparse.shape, sparse.format]}
    if not treedef.num_leaves:
        made: Any = tree.unflatten(treedef, [])
        if tree.is_float0(made):
            return {"float0": list(made.shape)}
    raise UnsupportedOperationError(
        f"save: {what} is a {cls.__qualname__}, or has one in it, and a file takes tuples, lists "
        "and dicts: whoever reads it may not have the class. Save a function of its fields"
    )


def _check_keys(keys: Sequence[Any], what: str) -> None:
    for key in keys:
        if type(key) not in (str, int):
            raise UnsupportedOperationError(
                f"save: {what} has a dict with a key of type {type(key).__qualname__}; keys in a "
                "file are texts and integers"
            )


def _decoded(encoded: Any) -> Any:
    """A container of the structure that JSON describes, with texts as leaves."""
    if encoded is None or encoded == _LEAF:
        return encoded
    ((kind, content),) = encoded.items()
    if kind in ("tuple", "list"):
        items = [_decoded(item) for item in content]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        if not all(type(key) in (str, int) for key, _ in content):
            raise TypeError("a key is neither text nor integer")
        return {key: _decoded(item) for key, item in content}
    if kind == "sparse":
        rows, columns, layout = content
        if layout not in ("csr", "csc"):
            raise ValueError(f"{layout!r} is no layout of a sparse array")
        return SparseArray(_LEAF, _LEAF, _LEAF, (int(rows), int(columns)), layout)
    if kind == "float0":
        return tree.fold_float0(np.zeros([int(extent) for extent in content], tree.FLOAT0))
    raise ValueError(f"{kind!r} is no container")
