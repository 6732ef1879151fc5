"""Programs of a function that is jitted anew again and again: ``ft.jit(f)(x)`` within a loop.

Here: the table of programs that functions of the same code share, and what of the surroundings of a
function they depend on. Not here: the cache of a jitted function (``jitted.jit``), which is asked
first.

Two functions share a program only if everything that staging could have read is known to be the
same. What is known is listed here, and only that: numbers and texts by value; arrays by identity
and contents; lists, tuples, dicts and sets by what is in them; functions by their code and what it
refers to; objects of plain classes by identity, class and attributes; pure functions and types of
NumPy, math and functrans by identity. Names of modules are followed from the module on. A function
that refers to anything else, or whose code could reach further, shares nothing, nor does one that
changes what it refers to.

Nothing of the user's is held but by weak references, and not more than some megabytes of what was
computed while functions were staged.

Layer: ``jitted``.
"""

from __future__ import annotations

import builtins
import dis
import functools
import hashlib
import struct
import sys
import weakref
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from threading import RLock
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

import numpy as np

from functrans import pytrees as tree
from functrans.core.caching import Recent, listed, remembered
from functrans.core.primitive import Primitive
from functrans.core.transformed import Transformed, Wrapper
from functrans.passes.programs import holds_data
from functrans.passes.staging import may_change

_MAX_PROGRAMS = 512
_MAX_VALUES = 1000
_MAX_TEXT = 4096
_MAX_BYTES = 1 << 20
"""Of the arrays that a function refers to, and of those that were computed for one program."""
_MAX_KEPT_BYTES = 1 << 24


class UnknownError(Exception):
    """A function refers to something that is not known to be the same."""


class Same:
    """An object, held weakly, that is equal to itself only."""

    __slots__ = ("_hash", "_reference")

    def __init__(self, value: Any) -> None:
        self._reference = weakref.ref(value)
        self._hash = id(value)

    @property
    def value(self) -> Any:
        """The object; ``None`` if it is gone."""
        return self._reference()

    def __eq__(self, other: object) -> bool:
        own = self._reference()
        return isinstance(other, Same) and own is not None and other._reference() is own

    def __hash__(self) -> int:
        return self._hash


class _Contents(NamedTuple):
    """An array, by identity and contents."""

    array: Same
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    flags: int
    dtype: str
    contents: bytes


class _Shared(NamedTuple):
    program: Any
    captured: tuple[Any, ...]
    n_bytes: int


_shared: Recent[Hashable, _Shared] = listed("programs by code", Recent(_MAX_PROGRAMS))
_lock = RLock()


def find(fun: object, key: Hashable) -> tuple[Any, Any]:
    """A program of a function that another ``jit`` of it staged, or ``None``.

    Returns:
      The program; without one, what the function refers to, for :func:`keep`, or ``None`` if that
      is not known.
    """
    references = _references(fun)
    found = None if references is None else _shared.used((key, references))
    if found is None:
        return None, references
    captured = tuple(
        [array() if type(array) is weakref.ref else array for array in found.captured]
    )  # each is alive, since the references are equal
    return replace(found.program, captured=captured), None


def keep(fun: object, key: Hashable, references: Any, program: Any) -> None:
    """Let other ``jit`` of a function find a program; the least used ones are forgotten.

    Args:
      fun: the function.
      key: the kind of call.
      references: what :func:`find` told before the program was staged.
      program: the program.
    """
    if references is None or not holds_data(program.jaxpr) or _references(fun) != references:
        return
    captured = _captured(program, references)
    if captured is None:
        return
    n_bytes = sum(array.nbytes for array in captured if isinstance(array, np.ndarray))
    if n_bytes > _MAX_BYTES:
        return
    with _lock:
        _shared[key, references] = _Shared(replace(program, captured=()), captured, n_bytes)
        total = sum(found.n_bytes for found in _shared.all())
        while total > _MAX_KEPT_BYTES:
            total -= _shared.popitem(last=False)[1].n_bytes


def _captured(program: Any, references: tuple[Hashable, ...]) -> tuple[Any, ...] | None:
    """What stands for the arrays of a program: weak references to those of the user's.

    ``None`` if the program would keep something of the user's alive all the same.
    """
    theirs: set[int] = set()
    of_key: set[int] = set()
    for part in references:
        if type(part) is _Contents:
            array = part.array.value
            of_key.add(id(array))
            while array is not None:
                theirs.add(id(array))
                array = getattr(array, "base", None)
    calls_jitted = any(type(part) is tuple and part[0] is Wrapper for part in references)
    found: list[Any] = []
    for array in program.captured:
        if id(array) in of_key:
            if not may_change(array):  # planning has kept it
                return None
            found.append(weakref.ref(array))
            continue
        if calls_jitted and isinstance(array, np.ndarray):  # that one may have met it before
            return None
        found.append(array)  # computed while the function was staged
        while isinstance(array, np.ndarray):
            if id(array) in theirs:
                return None
            array = array.base
        if array is not None and not isinstance(array, np.generic):
            return None
    return tuple(found)


def forget() -> None:
    """Forget all programs."""
    _shared.clear()


# what a function refers to ------------------------------------------------------------------------


def _references(fun: object) -> tuple[Hashable, ...] | None:
    """What a function refers to, comparable; ``None`` where that is not known."""
    try:
        return _found(fun)
    except (UnknownError, TypeError, RuntimeError):  # not held weakly; changed by another thread
        return None


def _found(fun: object) -> tuple[Hashable, ...]:
    found: list[Hashable] = []
    pending: list[Any] = [fun]
    seen: dict[int, tuple[int, Any]] = {}  # with the values, so that their ids stay their own
    n_bytes = 0
    while pending:
        if len(found) + len(pending) > _MAX_VALUES:
            raise UnknownError
        value = pending.pop()
        cls = type(value)
        exact = _ATOMS.get(cls)
        if exact is not None:
            found.append((cls, exact(value)))
            continue
        known = seen.get(id(value))
        if known is not None:
            found.append(("again", known[0]))
            continue
        seen[id(value)] = len(seen), value
        if cls is np.ndarray:
            n_bytes += value.nbytes
            if n_bytes > _MAX_BYTES:
                raise UnknownError
        key, inner = KINDS.get(cls, _other)(value)
        found.append(key)
        pending += inner
    return tuple(found)


Parts = tuple[Hashable, Sequence[Any]]


def _itself(value: Any) -> Hashable:
    return value


def _text(value: Any) -> Hashable:
    if len(value) > _MAX_TEXT or (type(value) is str and "%" in value):  # which formats
        raise UnknownError
    return value


def _integer(value: int) -> Hashable:
    if value.bit_length() > _MAX_TEXT:
        raise UnknownError
    return value


_ATOMS: dict[type, Callable[[Any], Hashable]] = {
    bool: _itself,
    type(None): _itself,
    type(...): _itself,
    type(NotImplemented): repr,
    int: _integer,
    float: lambda value: struct.pack("d", value),  # tells zeros and NaN apart
    complex: lambda value: struct.pack("dd", value.real, value.imag),
    str: _text,
    bytes: _text,
    **{
        np.dtype(code).type: np.generic.tobytes
        for code in np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?"
    },
}


def _dtype(value: np.dtype) -> str:
    if value.kind not in "biufc" or value.metadata is not None or value.num > 23:
        raise UnknownError
    return value.str


def _array(value: np.ndarray) -> Parts:
    contents = value.tobytes()
    if len(contents) > _MAX_TEXT:
        contents = hashlib.sha256(contents).digest()  # which processors have
    dtype = _dtype(value.dtype)
    place = Same(value), value.shape, value.strides, value.flags.num
    return _Contents(*place, dtype, contents), ()


def _items(value: Any) -> Parts:
    """What is in a container, in its order: also that of a set, in which sums are taken."""
    if len(value) > _MAX_VALUES:
        raise UnknownError
    return (type(value), len(value)), list(value)


def _dict(value: dict[Any, Any]) -> Parts:
    return (dict, len(value)), [*value, *value.values()]


def _range(value: range | slice) -> Parts:
    return (type(value), 3), (value.start, value.stop, value.step)


def _cell(value: CellType) -> Parts:
    try:
        return (CellType, 1), (value.cell_contents,)
    except ValueError:  # not bound yet
        return (CellType, 0), ()


def _method(value: MethodType) -> Parts:
    return (MethodType, 2), (value.__func__, value.__self__)


def _partial(value: functools.partial[Any]) -> Parts:
    if vars(value):
        raise UnknownError
    return (functools.partial, 3), (value.func, value.args, value.keywords)


def _transformed(value: Transformed) -> Parts:
    """A transformed function by its parts: the options cannot have changed since it was made."""
    fun, *rest = value._arguments
    options = value._options
    for option in (*rest, *options.values()):
        _check_fixed(option)
    return (
        (Transformed, len(rest), tuple(options)),
        (value._transform, fun, *rest, *options.values(), attributes_of(value)),
    )


def attributes_of(value: Any, own: Collection[str] = ()) -> dict[str, Any]:
    """The attributes of what stands for a function, but for its own and those that describe it."""
    return {
        name: attribute
        for name, attribute in vars(value).items()
        if name not in own and name not in _DESCRIBING
    }


_DESCRIBING = frozenset({*functools.WRAPPER_ASSIGNMENTS, "__signature__", "__wrapped__"})


def _check_fixed(value: Any) -> None:
    if type(value) is tuple or type(value) is frozenset:
        for item in value:
            _check_fixed(item)
    elif type(value) not in _ATOMS:
        raise UnknownError


def _builtin(value: BuiltinFunctionType) -> Parts:
    """A builtin function, or a method of a container or an array."""
    owner = value.__self__
    if type(owner) is not ModuleType:
        if type(owner) not in _WITH_METHODS or value.__name__ in _LEADING_OUT:
            raise UnknownError
        return (BuiltinFunctionType, value.__name__), (owner,)
    if value not in _PURE and not (owner.__name__ in _MATH and owner is _module(owner.__name__)):
        raise UnknownError
    return ("library", value), ()


_WITH_METHODS = frozenset({list, dict, tuple, np.ndarray})
_MATH = frozenset({"math", "cmath"})


def _of_library(value: Any) -> Parts:
    if not _is_of_numpy(value):
        raise UnknownError
    return ("library", value), ()


def _is_of_numpy(value: Any) -> bool:
    """Whether a function or type is one of NumPy, Python, or a ufunc of SciPy, as it was made."""
    if not isinstance(value, type) and not (getattr(value, "__dict__", {}).keys() <= _DESCRIBING):
        return False  # a user's attributes
    if value in _PURE:
        return True
    module = _LOADED_LATER.get(type(value))
    return module is not None and vars(_module(module) or object).get(value.__name__) is value


def _other(value: Any) -> Parts:
    """A class, an object of a plain class, a dtype, or something of NumPy."""
    if isinstance(value, np.dtype):
        return (np.dtype, _dtype(value)), ()
    if type(value) is _Dispatcher:
        return _of_library(value)
    if type(value) is type:
        return _of_library(value) if value in _PURE else _class(value)
    cls = type(value)
    if type(cls) is not type:
        raise UnknownError
    for base in cls.__mro__[:-1]:
        _check_plain(base)
    return (object, Same(value)), (cls, object.__getattribute__(value, "__dict__"))


_Dispatcher = type(np.sum)
_LOADED_LATER = {np.ufunc: "scipy.special._ufuncs", _Dispatcher: "numpy.fft"}
_IS_MUTABLE = 1 << 9
"""``Py_TPFLAGS_HEAPTYPE``: what classes have that can get attributes."""


# functions ----------------------------------------------------------------------------------------

_MODULES = frozenset({
    "cmath", "functools", "functrans", "functrans.lax", "functrans.nn", "functrans.numpy",
    "functrans.random", "functrans.scipy", "functrans.tree", "math", "numpy", "numpy.fft",
    "numpy.linalg", "scipy", "scipy.special",
})  # fmt: skip
"""Modules whose names are followed."""
_WITH_MODULES = ("functrans.lax.", "functrans.nn.", "functrans.numpy.", "functrans.scipy.")
_OF_FUNCTRANS = tuple(
    f"functrans.{name}"
    for name in (
        "control", "core.boundary", "core.transformed", "functional", "higher", "jitted.jit",
        "lax", "linalg", "nn", "numpy", "ops", "primitives", "pytrees", "random", "scipy",
        "solvers", "transforms", "tree",
    )
)  # fmt: skip
"""Where functions of functrans stand that read nothing but their arguments and the settings."""
_NAMES_OF_NUMPY = """
    abs absolute all allclose any append apply_along_axis arange argmax argmin argpartition argsort
    argwhere around array array_equal array_split asanyarray asarray ascontiguousarray atleast_1d
    atleast_2d atleast_3d average bincount block broadcast_arrays broadcast_shapes broadcast_to
    choose clip column_stack compress concat concatenate convolve copy copyto corrcoef correlate
    count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum deg2rad delete diag
    diag_indices diagflat diagonal diff digitize dot dsplit dstack ediff1d einsum einsum_path empty
    empty_like errstate expand_dims extract eye fill_diagonal finfo flatnonzero flip fliplr flipud
    full full_like gradient heaviside histogram hsplit hstack i0 identity iinfo imag indices inner
    insert interp intersect1d isclose iscomplexobj isin isrealobj isscalar ix_ kron lexsort linspace
    logspace geomspace matrix_transpose max mean median meshgrid min moveaxis nan_to_num nanargmax
    nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar ndim
    nonzero ones ones_like outer pad partition percentile permute_dims piecewise place polyadd
    polyder polyfit polyint polymul polysub polyval prod promote_types ptp put put_along_axis
    putmask quantile ravel ravel_multi_index real repeat reshape resize result_type roll rollaxis
    roots rot90 round searchsorted select setdiff1d setxor1d shape sinc size sort split squeeze
    stack std sum swapaxes take take_along_axis tensordot tile trace transpose trapezoid tri tril
    tril_indices trim_zeros triu triu_indices union1d unique unravel_index unstack unwrap vander var
    vdot vsplit vstack where zeros zeros_like
""".split()  # noqa: SIM905
_BUILTINS = {
    name: getattr(builtins, name)
    for name in """
        abs all any bool bytes complex dict divmod enumerate filter float frozenset int isinstance
        issubclass iter len list map max min next object pow range reversed round set slice sorted
        sum super tuple zip Ellipsis NotImplemented ArithmeticError AssertionError Exception
        IndexError KeyError NotImplementedError OverflowError RuntimeError StopIteration TypeError
        ValueError ZeroDivisionError
    """.split()  # noqa: SIM905
}
"""Names of Python that lead to nothing but their arguments; texts of arrays depend on settings."""


def _public(module: ModuleType) -> list[Any]:
    return [value for name, value in vars(module).items() if not name.startswith("_")]


_PURE: frozenset[Any] = frozenset({
    *(getattr(np, name) for name in _NAMES_OF_NUMPY if hasattr(np, name)),
    *(value for value in _public(np) if type(value) is np.ufunc),
    *(value for value in _public(np.linalg) if type(value) is _Dispatcher),
    *(value for value in _BUILTINS.values() if callable(value)),
    *(cls for cls in _ATOMS if cls is not str and cls is not bytes),
    np.complexfloating, np.floating, np.generic, np.inexact, np.integer, np.ndarray, np.number,
    np.signedinteger, np.unsignedinteger, functools.partial, functools.reduce,
})  # fmt: skip
"""Functions and types, as they were when this was imported, that read nothing but arguments."""

_LEADING_OUT = frozenset({
    "ag_frame", "base", "cache_size", "cr_frame", "ctypes", "decode", "explain", "f_back",
    "f_builtins", "f_globals", "f_locals", "format", "format_map", "gi_frame", "kept",
    "kept_programs", "tb_frame",
})  # fmt: skip
"""Attributes that lead from known values to others, to caches, or to the settings of printing."""
_ALLOWED = frozenset({"__call__", "__init__", "__post_init__"})
_NAMING = frozenset({
    "LOAD_ATTR", "LOAD_GLOBAL", "LOAD_METHOD", "LOAD_SUPER_ATTR", "STORE_ATTR",
})  # fmt: skip
_REFUSED = frozenset({
    "CONVERT_VALUE", "FORMAT_SIMPLE", "FORMAT_VALUE", "FORMAT_WITH_SPEC", "LOAD_BUILD_CLASS",
    "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_LOCALS",
})  # fmt: skip


@remembered(1024)
def _reads(code: CodeType) -> tuple[tuple[bool, tuple[str, ...]], ...] | None:
    """Names that code and code within it begins at, and attributes that it asks for at once.

    Each with whether it is a global name. ``None`` if the code imports, changes global names or
    asks for attributes that lead elsewhere.
    """
    if not all(map(_is_known, code.co_names)):
        return None
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    found: dict[tuple[bool, tuple[str, ...]], None] = {}
    for i, step in enumerate(steps):
        name = step.opname
        if name in _REFUSED or (step.opcode in dis.hasname and name not in _NAMING):
            return None
        if name == "PUSH_EXC_INFO" and steps[i + 1].opname != "WITH_EXCEPT_START":
            return None  # what is an error depends on settings
        if name != "LOAD_GLOBAL" and name != "LOAD_DEREF":
            continue
        chain = [step.argval]
        for following in steps[i + 1 :]:
            if following.opname != "LOAD_ATTR" and following.opname != "LOAD_METHOD":
                break
            chain.append(following.argval)
        found[name == "LOAD_GLOBAL", tuple(chain)] = None
    for constant in code.co_consts:
        if type(constant) is str and "%" in constant:
            return None
        if isinstance(constant, CodeType):
            inner = _reads(constant)
            if inner is None:
                return None
            found |= dict.fromkeys(inner)
    return tuple(found)


def _is_known(name: str) -> bool:
    is_special = name.startswith("__") and name.endswith("__")
    return name in _ALLOWED or not (is_special or name in _LEADING_OUT)


def _module(name: Any) -> ModuleType | None:
    return sys.modules.get(name) if type(name) is str else None


def _function(value: FunctionType) -> Parts:
    """A function, by its code, defaults, attributes, and the values that its code names."""
    own = value.__globals__
    module = own.get("__name__")
    if type(module) is not str:
        raise UnknownError
    if vars(_module(module) or object) is own and module.partition(".")[0] == "functrans":
        if not _is_pure(value):
            raise UnknownError
        return ("library", value), ()
    if value in _PURE:
        return _of_library(value)
    code = value.__code__
    reads = _reads(code)
    given = value.__builtins__  # type: ignore[attr-defined,unused-ignore]  # no cache of mypy has it
    is_usual = type(own) is dict and given is vars(builtins)
    if reads is None or not is_usual:
        raise UnknownError
    free = dict(zip(code.co_freevars, value.__closure__ or (), strict=True))
    found: dict[Any, Any] = {
        name: cell for name, cell in free.items() if type(_contents(cell)) is not ModuleType
    }
    for is_global, chain in reads:
        name = chain[0]
        if not is_global:
            if name in free and name not in found:
                found[chain] = _followed(free[name].cell_contents, chain[1:])
        elif name not in own:
            if name not in _BUILTINS or vars(builtins).get(name) is not _BUILTINS[name]:
                raise UnknownError
        elif type(own[name]) is ModuleType:
            found[is_global, chain] = _followed(own[name], chain[1:])
        else:
            found[is_global, name] = own[name]
    inner = [value.__defaults__, value.__kwdefaults__, vars(value), *found.values()]
    return (FunctionType, Same(code), tuple(found)), inner


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _followed(value: Any, attributes: Sequence[str]) -> Any:
    """What attributes of a module lead to, which is no module itself."""
    for name in attributes:
        if type(value) is not ModuleType:
            return value
        own = vars(value).get("__name__")
        is_known = type(own) is str and (own in _MODULES or own.startswith(_WITH_MODULES))
        if not is_known or _module(own) is not value:
            raise UnknownError
        try:
            value = getattr(value, name)
        except AttributeError:
            raise UnknownError from None
    if type(value) is ModuleType:
        raise UnknownError
    return value


_OF_FUNCTIONS = frozenset({
    "__signature__", "__wrapped__", "numpy_functions", "own", "traced", "ufunc",
})  # fmt: skip
"""Attributes of functions of functrans."""
_OF_NUMPY = frozenset({np.ufunc, _Dispatcher, BuiltinFunctionType})


def _is_pure(value: Any, around: tuple[Any, ...] = ()) -> bool:
    """Whether a function of functrans reads nothing but its arguments and the settings."""
    if any(value is function for function in around):  # it refers to itself
        return True
    cls = type(value)
    if cls is Primitive:
        return True
    if cls is tuple or cls is list or cls is frozenset:
        return all(type(item) in _ATOMS for item in value)
    if cls is not FunctionType:
        return cls in _ATOMS or (cls in _OF_NUMPY and _is_of_numpy(value))
    if value in _PURE:
        return True
    place = value.__globals__.get("__name__", "")
    return (
        vars(_module(place) or object) is value.__globals__
        and f"{place}.".startswith(tuple([f"{known}." for known in _OF_FUNCTRANS]))
        and not place.startswith("functrans.control.callbacks")
        and not value.__name__.startswith("register")
        and vars(value).keys() <= _OF_FUNCTIONS
        and all(_is_pure(_contents(cell), (*around, value)) for cell in value.__closure__ or ())
    )


# classes and objects ------------------------------------------------------------------------------

_SAYING_NOTHING = frozenset({
    "__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__", "__doc__",
    "__firstlineno__", "__module__", "__qualname__", "__static_attributes__",
})  # fmt: skip
"""Attributes of classes that code which names no special ones does not see."""
_NOT_PLAIN = frozenset({
    "__class__", "__delete__", "__exit__", "__get__", "__getattr__", "__getattribute__", "__set__",
    "__set_name__", "__slots__",
})  # fmt: skip


def _check_plain(cls: type) -> None:
    """Refuse a class unless attributes of its objects are what their dictionaries hold."""
    own = vars(cls)
    special = [own[name] for name in ("__dict__", "__weakref__") if name in own]
    if (
        type(cls) is not type
        or not cls.__flags__ & _IS_MUTABLE
        or not _NOT_PLAIN.isdisjoint(own)
        or any(type(value) is not GetSetDescriptorType for value in special)
        or tree.is_registered(cls)  # functions that nobody names take its objects apart
    ):
        raise UnknownError


_BINDING = frozenset({classmethod, property, staticmethod})


def _class(cls: type) -> Parts:
    """A plain class, by identity and its attributes and those of its bases."""
    found: list[Any] = []
    bases: list[Hashable] = []
    for base in cls.__mro__[:-1]:
        _check_plain(base)
        bases.append(Same(base))
        for name, value in vars(base).items():
            if name in _SAYING_NOTHING or name == "__dict__" or name == "__weakref__":
                continue
            kind = type(value)
            bases.append((name, kind if kind in _BINDING else None))
            if kind is property:
                found += (value.fget, value.fset, value.fdel)
            else:
                found.append(value.__func__ if kind in _BINDING else value)
    return (type, *bases), found


KINDS: dict[type, Callable[[Any], Parts]] = {
    np.ndarray: _array,
    np.ufunc: _of_library,
    FunctionType: _function,
    BuiltinFunctionType: _builtin,
    CellType: _cell,
    MethodType: _method,
    functools.partial: _partial,
    Transformed: _transformed,
    tuple: _items,
    list: _items,
    set: _items,
    frozenset: _items,
    dict: _dict,
    range: _range,
    slice: _range,
}


def jitted(value: Any) -> Parts:
    """A jitted function, by identity, since its programs stay, its function and its attributes."""
    if value._specialize or value._state is not None:
        raise UnknownError
    return (Wrapper, Same(value)), (value._fun, attributes_of(value, _OF_JITTED))


_OF_JITTED = frozenset({
    "_direct", "_fun", "_imperative", "_max_paths", "_options", "_positional", "_programs",
    "_specialize", "_state", "signature",
})  # fmt: skip


# what a function is called with -------------------------------------------------------------------


def is_plain(treedef: Any, static: object) -> bool:
    """Whether arguments are tuples, lists and dicts of leaves, numbers and texts.

    Others would bring along code of their own.
    """
    return _is_of_containers(treedef) and _holds_atoms(static)


def _is_of_containers(treedef: Any) -> bool:
    if type(treedef) is int:
        return True
    if treedef.type not in (None, type(None), tuple, list, dict):
        return False
    if treedef.type is dict and any(type(key) is not str for key in treedef.entries()):
        return False  # equal keys may be of several types
    return all(map(_is_of_containers, treedef.children()))


def _holds_atoms(value: object) -> bool:
    """Whether static values are numbers and texts, and tuples of such, with their types."""
    if type(value) is tuple:
        return all(map(_holds_atoms, value))
    return type(value) in _STATIC or any(value is cls for cls in _STATIC)


_STATIC = (int, float, complex, bool, str, bytes, type(None), tuple)
