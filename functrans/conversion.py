"""What to write where a plain array was asked of a traced one.

Here: the error of ``Tracer.__array__``, and of other conversions that a library asks for. It looks
at the call that asked: of a function of SciPy it names the one of ``functrans.scipy``, of other
libraries what they can be given, of a function of NumPy the recipe that fits. Not here: when it
is raised (``arrays.operators``), NumPy functions that dispatch and are refused (``numpy.tables``).
``deferred`` imports this module when the error is raised.

Layer: last.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import itertools
import linecache
import operator
import re
import sys
import textwrap
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from functrans import numpy as traced_numpy
from functrans import scipy as traced_scipy
from functrans.core.dispatch import Tracer
from functrans.core.source import LIBRARIES, attribute, capture, here, is_internal, is_own, resolve
from functrans.errors import ConcretizationError
from functrans.passes.staging import StagingTracer

_FOREIGN = (
    "make it one operation with ft.external(f, out_like), which takes a derivative rule or finite "
    "differences, or call it by ft.pure_callback if no derivative is needed"
)
_PROGRAMS = (
    " Integers and truths are known where each of them has a program: jit with specialize=True."
)
_LISTS = (
    "np.array([x, y]), np.asarray([x, y]): by np.stack([x, y]), or functrans.numpy.array([x, y])"
)
_JOINS = (
    "np.mean([x, y]), np.full(n, x), np.r_[x, y]: by functrans.numpy's function of the same name, "
    "or np.stack([x, y])"
)
_LOOPS = "np.vectorize(f)(x): by functrans.numpy.vectorize(f)(x), or ft.vmap(f)(x)"
_DOTS = "array.dot(x): by array @ x"
_READS = (
    "array[i], np.take(array, i): by functrans.numpy.take(array, i), or "
    "np.asarray(array, like=i)[i]"
)
_WRITES = "buffer[i] = x: by the same on a buffer made with like=x (np.zeros(n, like=x))"
_STRIDES = (
    "np.lib.stride_tricks.as_strided(x, shape, strides): by "
    "np.lib.stride_tricks.sliding_window_view(x, window), or x[indices]"
)
_METHODS = "array.{name}(x): by np.asarray(array, like=x).{name}(x)"
_RANGES = "np.arange(n): by the same with a static n (static_argnums of jit)"
_SCALARS = "np.float64(x), math.sin(x): by x, np.sin(x)"
_RANDOM = "rng.normal(x, s): by x + s * rng.standard_normal(np.shape(x))"
_SHIFTED = "rng.{name}(x, s): by x + s * rng.{name}(size=np.shape(x))"
_SCALED = "rng.{name}(s): by s * rng.{name}(size=np.shape(s))"
_ORDERED = "rng.{name}(x): by x[rng.permutation(len(x))]"
_KEYED = "rng.{name}(...): by ft.random.{keyed}(key, ...), with key = ft.random.key(seed)"
_MASKED = "np.ma.array(x, mask=m), np.ma.masked_where(m, x): by np.where(m, 0, x), and where=~m"
_POLYNOMIALS = "np.polynomial.legendre.legval(x, c): by functrans.numpy.polynomial.legendre.legval"
_ARRAYS = (
    "np.asarray(x), np.array(x): by x, which is an array already, or by "
    "functrans.numpy.asarray(x), which takes both"
)

_BY_CALL = {
    **dict.fromkeys(("array", "asarray", "asanyarray", "ascontiguousarray"), _LISTS),
    **dict.fromkeys(("mean", "full", "r_", "c_"), _JOINS),
    "vectorize": _LOOPS,
    "dot": _DOTS,
    "take": _READS,
    "as_strided": _STRIDES,
    "__setitem__": _WRITES,
    **dict.fromkeys(("arange", "linspace"), _RANGES),
    **dict.fromkeys(("float64", "float32", "complex128", "int64"), _SCALARS),
}

_BY_DRAW = {
    "normal": _RANDOM,
    **dict.fromkeys(("gumbel", "laplace", "logistic"), _SHIFTED),
    **dict.fromkeys(("exponential", "rayleigh"), _SCALED),
    **dict.fromkeys(("permutation", "shuffle"), _ORDERED),
    "uniform": "rng.uniform(a, b): by a + (b - a) * rng.random(np.shape(b))",
    "lognormal": "rng.lognormal(x, s): by np.exp(x + s * rng.standard_normal(np.shape(x)))",
}
_KEYED_NAMES = {
    "integers": "randint", "permuted": "permutation", "standard_gamma": "gamma", "standard_t": "t",
    "weibull": "weibull_min",
} | {
    name: name for name in (
        "beta", "binomial", "chisquare", "choice", "dirichlet", "f", "gamma", "geometric",
        "multinomial", "multivariate_normal", "pareto", "poisson", "triangular", "wald",
    )
}  # fmt: skip
"""Methods of generators, and what ``ft.random`` calls them."""


def conversion_error(tracer: Any, frame: FrameType | None) -> ConcretizationError:
    """The error for a traced array that was asked for a plain one.

    Args:
      tracer: the array.
      frame: the innermost frame of Python outside functrans at the time.
    """
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    known = library_error(tracer, frame)
    if known is not None:
        return known
    given = f"was given {tracer._describe()}{here(3)}"
    lost = f"{given} and wanted a plain array of it, which would lose the trace"
    last = _PROGRAMS if tracer.dtype.kind in "biu" else ""
    caller = frame
    while _package(caller) == "numpy":
        caller = caller.f_back  # type: ignore[union-attr]  # there is one
    called = _called_name(caller)
    who = called or "a NumPy function that does not dispatch"
    recipe = _draw(called, caller) or _recipe(frame)
    if recipe is None and called.startswith("numpy.ndarray."):
        recipe = _METHODS.format(name=called.rpartition(".")[2])
    if recipe is not None:
        guide = "" if called.startswith("numpy.random.") else " (docs/guide.md says more)"
        return ConcretizationError(f"{who} {lost}. Replace {recipe}{guide}.{last}")
    name = called.removeprefix("numpy.")
    is_numpy = name != called and bool(_offered(traced_numpy, *name.split(".")))
    find = operator.attrgetter(name)
    if is_numpy and find(traced_numpy) is not find(np):
        return ConcretizationError(f"{who} {lost}. Call functrans.{called} in its place.{last}")
    if called:
        return ConcretizationError(f"{who} {lost}: {_FOREIGN}.{last}")
    return ConcretizationError(
        f"a function that does not dispatch {lost}. If it is NumPy's, call the one of "
        f"functrans.numpy of that name in its place; if not, {_FOREIGN}.{last}"
    )


_DECISIONS = frozenset({"bool()", "int()", "index()"})

# values that are not known ----------------------------------------------------------------------


def staged_remedy(tracer: Any, what: str) -> str:
    """What to write where a value was asked that is not known: it depends on the line that asks.

    Args:
      tracer: the traced value.
      what: what was asked: ``bool()``.
    """
    trace = tracer._trace
    name = trace.var_names.get(tracer._var, "")
    is_lanes = trace.label.startswith("vmap")
    paths = "ft.vmap(ft.jit(f, specialize=True))" if is_lanes else "jit with specialize=True"
    static = f'static_argnames="{name}"' if name.isidentifier() else "static_argnums"
    out = "in_axes=None of vmap" if is_lanes else f"{static} of jit"
    is_in_parts = trace.label.startswith(("sum_over ", "shard_map ", "dask."))  # of Dask
    if is_in_parts:
        out = "functools.partial for what is no array"
    if what == "bool()" and is_in_parts:
        return (
            "Use np.where, ft.lax.cond or ft.lax.while_loop in place of Python's if/while, or keep "
            f"the argument out of the trace: {out}."
        )
    if what == "bool()":
        return (
            "Use np.where, ft.lax.cond or ft.lax.while_loop in place of Python's if/while, let "
            f"each path have a program ({paths}), or keep the argument out of the trace: {out}."
        )
    if what == "format()":
        return (
            'Print with ft.debug.print("x = {x}", x=x), which prints when the program runs, or '
            f"keep the argument out of the trace: {out}."
        )
    if what == "float()":
        return (
            "Use array operations (np.sin instead of math.sin; a buffer made with like=x, as "
            f"np.zeros(n, like=x), for buffer[i] = x), or keep the argument out: {out}."
        )
    if what not in ("int()", "index()", "a value-dependent shape"):
        return (
            "Use array operations (np.where, ft.lax.cond, ft.lax.while_loop), or keep an argument "
            f"that is no array out of the trace: {out}."
        )
    captured = capture(3)
    node = None if captured is None else _expression(*captured)
    called = _called(node)
    text = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    use = "Use array operations (np.where, ft.lax.cond, ft.lax.while_loop)"
    if called == "range":
        use = "Use ft.lax.fori_loop(0, n, body, start) for a loop of a length that is not known"
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        use = (
            "Use ft.lax.dynamic_slice(x, (start,), (length,)) for a slice of known length, or a "
            "mask and np.where for one of another"
        )
    elif isinstance(node, ast.Subscript):
        use = f"Index an array: {_READS.partition(': by ')[2]}"
    elif called.rpartition(".")[2] in ("int", "floor", "ceil", "trunc", "round"):
        use = (
            "Use x.astype(int), of np.floor(x), np.ceil(x) or np.round(x) where that is meant: it "
            "stays traced, and may be an index"
        )
    elif text.startswith("math."):
        place = "np" if hasattr(np, called) else "scipy.special"
        use = f"Use {place}.{called}, which takes traced values"
    elif text.startswith("random."):
        use = _REMEDIES["random"]
    elif called:
        use = (
            f"The shape of the result of {called} cannot depend on it: use a mask and np.where, or "
            "what the function of functrans.numpy takes for the extent (size=, length=)"
        )
    return (
        f"{use}, or keep an argument that is no array out of the trace: {out}. Or let each answer "
        f"have a program: {paths}."
    )


# other libraries --------------------------------------------------------------------------------

_REMEDIES = {
    "pandas": "pandas keeps plain numbers only. Take arrays out of it before they meet traced "
    "values: df.to_numpy() @ w, df['a'].to_numpy() * w",
    "matplotlib": "it draws plain numbers only. Draw after the transform, what the function "
    "returns (has_aux=True carries it out), or by ft.debug.callback(plt.plot, x)",
    "random": "Draw with ft.random, whose functions take traced parameters, as "
    "ft.random.randint(key, (), 0, n)",
    "numba": "compiled functions take plain arrays only. Give the function that was compiled "
    "(f.py_func), or " + _FOREIGN,
}


def library_error(
    tracer: Any, frame: FrameType | None, what: str = "__array__()"
) -> ConcretizationError | None:
    """The error for a traced value that a library asked for a plain one; ``None`` for other code.

    Args:
      tracer: the value.
      frame: the innermost frame of Python at the time.
      what: what was asked.
    """
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    given = f"was given {tracer._describe()}{here(3)}"
    called = _scipy_call(frame)
    if called is not None and what in _DECISIONS and isinstance(tracer, StagingTracer):
        path, replacement = called
        decides = (
            f"scipy.{path} {given} and decides by it, but {tracer._trace.label} traces with shapes "
            "and dtypes only, without values"
        )
        return ConcretizationError(f"{decides}. {staged_remedy(tracer, what)}")
    if called is not None:
        path, replacement = called
        remedy = (
            f"Call functrans.scipy.{replacement} in its place"
            if replacement
            else f"functrans.scipy has none of that name (docs/support.md lists what there is): "
            f"{_FOREIGN}"
        )
        return ConcretizationError(
            f"scipy.{path} {given}; SciPy's functions cannot answer for traced arrays. {remedy}."
        )
    if what in ("float()", "complex()"):
        path = _called_name(frame)
        package = path.partition(".")[0]
        if _is_standard(package):
            return ConcretizationError(
                f"{path} {given}, and takes plain values only. {_carried(package)}."
            )
    while _package(frame) == "numpy":  # np.asarray of a library
        frame = frame.f_back  # type: ignore[union-attr]  # there is one
    package = _package(frame)
    if package == "functrans" or package not in LIBRARIES:
        return None
    called_name = package
    while frame is not None and _package(frame) == package:
        called_name = _public_name(package, frame) or called_name
        frame = frame.f_back
    remedy = _REMEDIES.get(package, f"{package} takes plain arrays: {_FOREIGN}")
    return ConcretizationError(f"{called_name} {given}; {remedy}.")


def _public_name(package: str, frame: FrameType) -> str:
    """The name that users know the function of a frame by: ``pandas.DataFrame.dot``."""
    name = frame.f_code.co_qualname
    first = name.partition(".")[0]
    module: str = frame.f_globals["__name__"]
    for place in (package, module):
        is_private = re.search(r"(^|\.)_(?!_)|<", name)
        if not is_private and place.count(".") < 2 and hasattr(sys.modules.get(place), first):
            return f"{place}.{name}"
    return ""


def _package(frame: FrameType | None) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__", "")).partition(".")[0]


# SciPy ------------------------------------------------------------------------------------------


def _scipy_call(frame: FrameType | None) -> tuple[str, str] | None:
    """The public function of SciPy that is being called, and its replacement, empty if none.

    Both as ``stats.norm.logpdf``: of several nested calls the outermost one.
    """
    found: tuple[str, str] | None = None
    inside = ""
    while frame is not None:
        if is_own(frame.f_code.co_filename):  # SciPy's code as it is traced
            frame = frame.f_back
            continue
        parts = frame.f_globals.get("__name__", "").split(".")
        if parts[0] not in ("scipy", "numpy"):
            break
        if parts[0] == "scipy":
            inside = inside or ".".join(parts[1:])
            for namespace in _namespaces(parts[1:], frame):
                path, replacement = _public(namespace, frame)
                if path:
                    found = (f"{namespace}.{path}", replacement and f"{namespace}.{replacement}")
                    break
        frame = frame.f_back
    if found is not None:
        return found
    package, _, path = _called_name(frame).partition(".")  # a function in C, or a wrapper of one
    if package == "scipy":
        return path, _offered(traced_scipy, *path.split("."))
    return (".".join(_public_parts(inside.split("."))), "") if inside else None


def _namespaces(parts: list[str], frame: FrameType) -> Iterator[str]:
    """The public modules of SciPy that a frame may belong to, the longest path first."""
    if parts[0] == "_lib":  # a decorator: the decorated function says where it is
        for function in _decorated(frame):
            yield from _namespaces(function.__module__.split(".")[1:], frame)
        return
    public = _public_parts(parts)
    for n in range(len(public), 0, -1):
        yield ".".join(public[:n])


def _public_parts(parts: list[str]) -> list[str]:
    """The names of a path before the first private one."""
    return list(itertools.takewhile(lambda part: part[:1] != "_", parts))


def _decorated(frame: FrameType) -> list[FunctionType]:
    """The function that a wrapper in SciPy's library of helpers calls."""
    return [
        value
        for name in frame.f_code.co_freevars
        if isinstance(value := frame.f_locals.get(name), FunctionType)
        and value.__module__.startswith("scipy.")
    ]


def _public(namespace: str, frame: FrameType) -> tuple[str, str]:
    """The public name of the function of a frame, and that of its replacement."""
    module = sys.modules.get(f"scipy.{namespace}")
    ours: Any = traced_scipy
    for part in namespace.split("."):
        ours = getattr(ours, part, None)
    code = frame.f_code
    if module is None:
        return "", ""
    if code.co_argcount and code.co_varnames[0] == "self":
        return _of_object(module, ours, frame.f_locals.get("self"), code.co_name)
    names = [code.co_name, *(f.__name__ for f in _decorated(frame))]
    name = next((n for n in names if not n.startswith("_") and hasattr(module, n)), "")
    return name, _offered(ours, name)


def _offered(ours: object, *names: str) -> str:
    """A path of names if functrans has it, else empty."""
    for name in names:
        ours = getattr(ours, name, None) if name else None
    return ".".join(names) if ours is not None else ""


def _of_object(module: ModuleType, ours: object, instance: object, method: str) -> tuple[str, str]:
    """The same where the function is a method."""
    kind = type(instance).__name__
    own = getattr(instance, "dist", instance)  # a distribution, where parameters are frozen
    called = getattr(own, "name", None)
    name = next(
        (
            n
            for n, value in vars(module).items()
            if value is own or (n == called and type(value) is type(own))
        ),
        None,
    )
    if name is not None and not name.startswith("_"):  # a distribution, or a function as an object
        path = (name,) if method.startswith("_") else (name, method)
        text = ".".join(path) if own is instance else f"{name}(...).{method}"
        return text, _offered(ours, *path)
    if not hasattr(module, kind) or kind.startswith("_"):
        return "", ""
    called = {"__init__": "", "__call__": "(...)"}.get(method, "" if method[0] == "_" else method)
    return kind + (f"(...).{called}" if called == method else called), _offered(ours, kind)


# the standard library ---------------------------------------------------------------------------

_CARRIED = (
    "Return the value from the function (has_aux=True carries extra results out) and use the "
    "result, or let ft.debug.callback(f, x) have it when the program runs"
)
_OF_NUMBERS = frozenset(
    {"builtins", "contextlib", "copy", "functools", "itertools", "math", "numbers", "operator"}
)
"""Modules whose functions take traced values as they take numbers."""
_OF_BYTES = frozenset({"bytes", "bytearray", "memoryview", "fromhex", "from_bytes", "to_bytes"})


def traced_note(error: Exception) -> str:
    """What to say of an error that the standard library raised for a traced value; or nothing."""
    entry, below = error.__traceback__, None
    user = None
    while entry is not None:
        if not is_internal(entry.tb_frame.f_code.co_filename):
            user, below = entry, entry.tb_next
        entry = entry.tb_next
    if user is None:
        return ""
    source = resolve((user.tb_frame.f_code, user.tb_lasti))
    if below is not None:
        frame = below.tb_frame
        called = f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_qualname}"
        given = list(frame.f_locals.values())
    else:
        called = _called_name(user.tb_frame, user.tb_lasti)
        given = _arguments(user.tb_frame, user.tb_lasti)
    tracer = _first_tracer(given)
    package = called.partition(".")[0]
    is_known = _is_standard(package)
    is_bytes = package == "builtins" and called.rpartition(".")[2] in _OF_BYTES
    if tracer is None or not (is_known or is_bytes or type(tracer).__name__ in str(error)):
        return ""
    called = called.removeprefix("builtins.").removesuffix(".__new__") or "what is called"
    given_what = f"{tracer._describe()} (at {source})"
    return f"{called} was given {given_what}, and takes plain values only. {_carried(package)}."


def _is_standard(package: str) -> bool:
    """Whether it is a module of the standard library that takes no traced values for numbers."""
    return package in sys.stdlib_module_names and package not in _OF_NUMBERS


def _carried(package: str) -> str:
    """What to do with a value that a module of the standard library cannot take."""
    return _REMEDIES.get(package, _CARRIED)


def _arguments(frame: FrameType, offset: int) -> list[Any]:
    """What a call is given, as far as it is names, and lists of them."""
    node = _expression(frame.f_code, offset)
    if not isinstance(node, ast.Call):
        return []
    pending = [*node.args, *(keyword.value for keyword in node.keywords)]
    lists = [item for x in pending if isinstance(x, (ast.List, ast.Tuple)) for item in x.elts]
    return [_value(x, frame) for x in pending + lists]


def _first_tracer(values: list[Any]) -> Any:
    """The first traced value among some, or in lists, tuples and dictionaries of them."""
    for value in values:
        inside = list(value.values()) if type(value) is dict else value
        for x in inside if type(inside) in (list, tuple) else (value,):
            if isinstance(x, Tracer) and not x._trace.is_root:
                return x
    return None


# functions in C ---------------------------------------------------------------------------------


def _called_name(frame: FrameType | None, offset: int | None = None) -> str:
    """The public name of what the line of a frame calls: ``scipy.spatial.cKDTree.query``.

    Functions in C have no frame. Empty if it is not known; nothing of the user's is run.
    """
    node = None
    if frame is not None:
        node = _expression(frame.f_code, frame.f_lasti if offset is None else offset)
    if frame is None or not isinstance(node, ast.Call):
        return ""
    function = node.func
    value = _value(function, frame)
    path = _public_path(value)
    if path:
        return path
    owner, name = attribute(value, "__self__"), str(attribute(value, "__name__", ""))
    if isinstance(function, ast.Attribute):
        owner, name = _value(function.value, frame), function.attr
    if isinstance(owner, ModuleType):
        return ".".join([*_public_parts(owner.__name__.split(".")), name])
    place = _public_path(owner if isinstance(owner, type) else type(owner))
    return place and f"{place}.{name}"


def _value(node: ast.expr, frame: FrameType) -> Any:
    """What an expression of names and dots is; ``None`` for another one."""
    if isinstance(node, ast.Name):
        names = getattr(frame.f_globals, "original", frame.f_globals)  # of a twin (``plain``)
        return frame.f_locals.get(node.id, names.get(node.id, vars(builtins).get(node.id)))
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, frame)
        found = inspect.getattr_static(owner, node.attr, None)
        return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else found
    return None


def _public_path(value: Any) -> str:
    """The module and name that a class or function is known by; empty if there is none."""
    for kind in value.__mro__[:-1] if isinstance(value, type) else (value,):
        name = str(attribute(kind, "__qualname__") or attribute(kind, "__name__", ""))
        parts = str(attribute(kind, "__module__", "")).split(".")
        public = _public_parts(parts)
        places = [".".join(public[:n]) for n in range(len(public), 0, -1)]
        known = (kind, attribute(kind, "__wrapped__", kind))  # ``plain`` wraps functions
        for place in itertools.chain(places, _modules(parts[0])):
            found = attribute(sys.modules.get(place), "__dict__", {}).get(name)
            if found is not None and any(found is one for one in known):
                return f"{place}.{name}"
    return ""


def _modules(package: str) -> Iterator[str]:
    """The public modules of a package that are loaded, the shortest names first."""
    for place in sorted(sys.modules, key=len):
        parts = place.split(".")
        if parts[0] == package and parts == _public_parts(parts):
            yield place


# NumPy ------------------------------------------------------------------------------------------


def _draw(called: str, frame: FrameType | None) -> str | None:
    """The recipe for a function of random numbers."""
    module, _, name = called.rpartition(".")
    if not called and frame is not None:
        node = _expression(frame.f_code, frame.f_lasti)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            module, name = "numpy.random", node.func.attr
    if not module.startswith("numpy.random"):
        return None
    if name in _KEYED_NAMES:
        return _KEYED.format(name=name, keyed=_KEYED_NAMES[name])
    return _BY_DRAW[name].format(name=name) if name in _BY_DRAW else None


def _recipe(frame: FrameType | None) -> str | None:
    """The recipe for the call that asked, if its line can be read."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("numpy.ma"):
            return _MASKED
        if name.startswith("numpy.polynomial"):
            return _POLYNOMIALS
        if not name.startswith("numpy"):
            break
        called = frame.f_code.co_qualname.partition(".")[0]
        if called in _BY_CALL:
            return _BY_CALL[called]
        frame = frame.f_back
    if frame is None:
        return None
    code, offset = frame.f_code, frame.f_lasti
    operation = dis.opname[code.co_code[offset]]
    if operation == "STORE_SUBSCR":
        return _WRITES
    node = _expression(code, offset)
    if isinstance(node, ast.Subscript):
        node = node.value
        if not (isinstance(node, ast.Attribute) and node.attr in ("r_", "c_")):
            return _READS
        return _JOINS
    name = _called(node)
    if isinstance(node, ast.Call):
        recipe = _BY_CALL.get(name)
        is_list = bool(node.args) and isinstance(node.args[0], (ast.List, ast.Tuple))
        return _ARRAYS if recipe is _LISTS and not is_list else recipe
    return None


def _called(node: ast.expr | None) -> str:
    """The name of the function that an expression calls, without its module."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func.func if isinstance(node.func, ast.Call) else node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _expression(code: CodeType, offset: int) -> ast.expr | None:
    """The expression that an instruction stands for, read from the file."""
    for index, position in enumerate(code.co_positions()):
        if 2 * index == offset:
            first, last, start, end = position
            break
    else:
        return None
    if first is None or last is None or start is None or end is None:
        return None
    lines = [linecache.getline(code.co_filename, number) for number in range(first, last + 1)]
    cut = [line.encode() for line in lines]
    cut[-1] = cut[-1][:end]  # positions count bytes
    cut[0] = cut[0][start:]
    try:
        return ast.parse(f"({textwrap.dedent(b''.join(cut).decode())})", mode="eval").body
    except (SyntaxError, UnicodeDecodeError):
        return None
