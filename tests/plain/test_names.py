"""Functions of plain NumPy are traced as they stand, and nothing outside of them changes."""

import asyncio
import builtins
import cmath
import contextlib
import copy
import dataclasses
import functools
import inspect
import itertools
import math
import operator
import pickle
import statistics
import sys
import threading
import traceback
import types
from collections.abc import Callable
from math import exp as exponential
from typing import Any, ClassVar

import numpy
import numpy as np
import numpy.linalg as la
import pytest
import scipy.linalg
from numpy import add, zeros
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.stats import norm

import functrans as ft
from functrans.errors import AliasedWriteError, FunctransError, UnsupportedOperationError
from functrans.plain.decide import needs_twin
from scipy import special, stats

OUTSIDE = np.array([1.0, 2.0, 4.0])
POINT = 0.7


def _difference(f: Callable[[float], Any], x: float) -> Any:
    h = 1e-4
    near = (np.asarray(f(x + h)) - np.asarray(f(x - h))) / (2 * h)
    far = (np.asarray(f(x + 2 * h)) - np.asarray(f(x - 2 * h))) / (4 * h)
    return (4 * near - far) / 3


def check(f: Callable[[Any], Any], x: float = POINT, *, jit: bool = True) -> None:
    """Gradient, second derivative, value and tangent of a function against the function itself."""
    expected, slope = f(x), _difference(f, x)
    with ft.config(plain=True):
        np.testing.assert_allclose(ft.grad(f)(x), slope, 1e-6, 1e-8)
        value, tangent = ft.jvp(f, (x,), (1.0,))
        np.testing.assert_allclose(value, expected, 1e-12)
        np.testing.assert_allclose(tangent, slope, 1e-6, 1e-8)
        second = _difference(lambda t: float(ft.grad(f)(t)), x)
        np.testing.assert_allclose(ft.hessian(f)(x), second, 1e-5, 1e-6)
        if jit:
            np.testing.assert_allclose(ft.jit(f)(x), expected, 1e-12)
            np.testing.assert_allclose(ft.jit(ft.grad(f))(x), slope, 1e-6, 1e-8)


# the four walls -----------------------------------------------------------------------------------


def _buffer_filled(x: Any) -> Any:
    out = np.zeros(4)
    for i in range(4):
        out[i] = x**i
    return out.sum()


def _buffer_added_to(x: Any) -> Any:
    out = zeros((2, 3))
    out += x
    out[0] *= 2
    out[1, 1:] -= x**2
    return (out**2).sum()


def _view_made_before(x: Any) -> Any:
    out = np.ones((2, 3))
    row, column, flat = out[1], out[:, 2], out.reshape(-1)
    transposed, backwards = out.T, out[::-1, ::-1]
    out[1, 2] = x
    return row[2] + column[1] * 2 + flat[5] * 3 + transposed[2, 1] * 4 + backwards[0, 0] * 5


def _written_through_views(x: Any) -> Any:
    out = np.zeros((2, 3))
    out.T[2][1] = x
    out[:, 0][:] = [x, x * x]
    out.reshape(-1)[1] = 3 * x
    return (out * np.arange(6.0).reshape(2, 3)).sum()


def _in_fortran_order(x: Any) -> Any:
    out = np.zeros((2, 3), order="F")
    column = out[:, 1]
    out[1] = x
    column[0] = x * x
    return (out * np.arange(6.0).reshape(2, 3)).sum()


def _held_by_others(x: Any) -> Any:
    held = {"a": np.zeros(2), "b": [np.zeros(2)]}
    held["b"].append(held["a"])
    held["a"][0] = x
    return held["b"][1][0] * 2


def _ufuncs_into(x: Any) -> Any:
    out, other = np.empty(3), np.zeros(3)
    np.multiply(OUTSIDE, x, out=out)
    add(out, 1.0, other)
    np.add.at(other, [0, 0, 2], x * x)
    np.subtract(other, out, out=other, where=np.array([True, False, True]))
    return other @ out


def _functions_that_write(x: Any) -> Any:
    a, b, c = np.zeros((3, 3)), np.zeros(3), np.arange(3.0)
    np.fill_diagonal(a, x)
    np.copyto(b, x * OUTSIDE)
    np.put(c, [0, 2], [x, x * x])
    np.putmask(b, b > 2, x)
    np.place(c, c > 100, [x])
    np.put_along_axis(c, np.array([1]), x**3, 0)
    b.fill(x)
    return (a @ b) @ c


def _identity_with_entries(x: Any) -> Any:
    k = np.eye(3)
    k[0, 1] = x
    k[2] = np.full(3, x)
    return la.det(k) + np.linalg.inv(k + np.eye(3)).sum()


def _copied(x: Any) -> Any:
    a = OUTSIDE.copy()
    a[1] = x
    b = a.copy()
    b[0] = 5 * x
    c = copy.deepcopy(a)
    c[:] = x
    d = np.array(OUTSIDE)
    d[2] += x
    return a @ b + c.sum() * d.sum()


def _arrays_of_values(x: Any) -> Any:
    a = np.array([x, 2 * x, [1.0, x][1]])
    b = np.asarray([[x, 1], [2, x]])
    rows = np.r_[0, x, a]
    columns = np.c_[a, a]
    full = np.full((2, 2), x)
    return (
        a.sum() + np.trace(b @ full) + rows.sum() + columns.prod()
        + np.mean([x, 3.0]) + np.diag([x, x])[1, 1] + np.linspace(0, x, 5).sum()
        + np.block([[b, b], [b, b]]).sum() + np.fromiter((x * k for k in range(3)), float).sum()
        + np.dot([x, 1.0], [2.0, x]) + np.stack([x, x]).sum() + np.float64(x) + np.max([x, 0.1])
    )  # fmt: skip


def _vectorized(x: Any) -> Any:
    f = np.vectorize(lambda t: t * x if t > 1.5 else t + x)
    return f(OUTSIDE).sum()


@np.vectorize
def _of_element(t: float, scale: float) -> float:
    return scale * math.sin(t) if t > 1.5 else scale


def _vectorized_outside(x: Any) -> Any:
    return _of_element(OUTSIDE, x).sum()


def _numbers(x: Any) -> Any:
    y = float(x) + float(np.array([x]).sum()) + np.array([x, 2 * x]).max().item()
    y = y + max(x, 0.1) + min([x, 5.0]) + sum([x, x]) + abs(-x) + pow(x, 2) + round(3.2)
    return y + sum(map(float, [x, x])) + complex(x, 2 * x).imag


def _math(x: Any) -> Any:
    y = math.exp(x) + math.sqrt(x) * math.erf(x) + exponential(x) + math.pow(x, 3) + math.log(x, 2)
    y = y + math.atan2(x, 2.0) + math.hypot(x, 1.0, 2.0) + math.lgamma(x + 3) + math.fsum([x, x])
    y = y + math.prod([x, 2.0]) + math.dist([x, 0.0], [0.0, 1.0]) + math.floor(2.5)
    return (
        y
        + abs(cmath.exp(1j * x) + cmath.sqrt(x))
        + statistics.mean([x, 1.0]) * statistics.stdev([x, 1.0, 4.0])
    )


def _printed(x: Any) -> Any:
    text = f"{float(x):.3f} {x}"
    return x * len(text[:2])


def _scipy(x: Any) -> Any:
    a = np.array([[3.0, x], [x, 2.0]])
    y = scipy.linalg.cholesky(a, lower=True)[1, 0] + scipy.linalg.solve(a, [1.0, 2.0]).sum()
    y = y + norm.cdf(x) + stats.norm(loc=x, scale=2.0).logpdf(0.3) + special.gammaln(x)
    spline = CubicSpline([0.0, 1.0, 2.0, 3.0], np.array([x, 1.0, 0.5, x * x]))
    return y + spline(1.3)


def _integral(x: Any) -> Any:
    return quad(lambda t: math.exp(-x * t), 0, 2)[0]


def _root(x: Any) -> Any:
    return brentq(lambda t: t**3 - x, 0.0, 2.0)


def _imported_inside(x: Any) -> Any:
    import math as m
    from math import cos

    import numpy.linalg as l
    from scipy.special import erf

    return m.sin(x) + cos(x) + l.norm(np.array([x, 1.0])) + erf(x)


ORDINARY = [
    _buffer_filled, _buffer_added_to, _view_made_before, _written_through_views, _in_fortran_order,
    _held_by_others, _ufuncs_into, _functions_that_write, _identity_with_entries, _copied,
    _arrays_of_values, _numbers, _math, _scipy, _imported_inside, _integral, _root,
]  # fmt: skip


@pytest.mark.parametrize("f", ORDINARY, ids=lambda f: f.__name__.strip("_"))
def test_ordinary_code_is_traced_as_it_stands(f: Callable[[Any], Any]) -> None:
    assert needs_twin(f)
    check(f, jit=f not in (_functions_that_write, _root))


ASKING = [_vectorized, _vectorized_outside, _printed]


@pytest.mark.parametrize("f", ASKING, ids=lambda f: f.__name__.strip("_"))
def test_code_that_asks_for_values_has_derivatives(f: Callable[[Any], Any]) -> None:
    check(f, jit=False)


# the language -------------------------------------------------------------------------------------


class Shape:
    """A class with what classes have."""

    scale = 2.0
    weights = np.array([1.0, 2.0])
    made = 0

    def __init__(self, size: Any) -> None:
        self.size = size
        self.buffer = np.zeros(2)

    def fill(self) -> Any:
        """Write to an array that ``__init__`` made."""
        self.buffer[0] = self.size
        self.buffer[1] = math.exp(self.size)
        return self.buffer

    @property
    def area(self) -> Any:
        """A property."""
        return math.pow(self.size, 2) * self.scale

    @functools.cached_property
    def cached(self) -> Any:
        """A property that is computed once."""
        return math.sin(self.size)

    @staticmethod
    def law(x: Any) -> Any:
        """A static method."""
        return math.sqrt(x)

    @classmethod
    def of(cls, x: Any) -> Any:
        """A class method."""
        cls.made += 1
        return cls(x)

    def __call__(self, x: Any) -> Any:
        return np.array([x, self.size]) @ self.weights

    def __add__(self, other: Any) -> Any:
        return type(self)(self.size + other.size)

    def __getitem__(self, k: int) -> Any:
        return self.fill()[k]


class Square(Shape):
    """A class whose methods call those of its base."""

    scale = 1.0

    def fill(self) -> Any:
        """See the base."""
        out = super().fill()
        out *= 2
        return out

    @property
    def area(self) -> Any:
        """See the base."""
        return super().area + 1


class Counted:
    """A class that counts how often it is made, in two ways of calling a base."""

    made: ClassVar[list[str]] = []

    def __init__(self, x: Any) -> None:
        super().__init__()
        self.made.append("base")
        self.x = x

    def __init_subclass__(cls) -> None:
        Counted.made.append(cls.__name__)

    def law(self) -> Any:
        """To be extended."""
        return math.exp(self.x)


class Explicit(Counted):
    """Names the class in ``super``."""

    def __init__(self, x: Any) -> None:
        super(Explicit, self).__init__(x)  # noqa: UP008
        self.made.append("explicit")

    def law(self) -> Any:
        """See the base."""
        return super(Explicit, self).law() * self.x  # noqa: UP008


class Old(Explicit):
    """Calls the base by its name."""

    def __init__(self, x: Any) -> None:
        Explicit.__init__(self, x)
        self.made.append("old")


class Pair(np.ndarray):
    """A subclass of arrays."""

    def __new__(cls, x: Any) -> Any:
        """Makes one."""
        self = super(Pair, cls).__new__(cls, (2,), float)  # noqa: UP008
        self[:] = 1.0
        return self

    def total(self, x: Any) -> Any:
        """Of its numbers."""
        return math.exp(x) * np.asarray(self).sum()


def _bases(x: Any) -> Any:
    Counted.made.clear()
    old = Old(x)
    assert Counted.made == ["base", "explicit", "old"]
    return old.law() + Pair(x).total(x)


@dataclasses.dataclass
class Record:
    """A dataclass."""

    x: Any
    offset: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(2))

    def total(self) -> Any:
        """Written to its own array."""
        self.offset[1] = self.x
        return self.offset.sum() * self.x


@dataclasses.dataclass(frozen=True)
class Frozen:
    """A frozen dataclass."""

    x: Any

    def total(self) -> Any:
        """Of its field."""
        return math.exp(self.x)


class Slotted:
    """A class with slots."""

    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x

    def total(self) -> Any:
        """Of its slot."""
        return max(self.x, 0.1) ** 2


def _classes(x: Any) -> Any:
    made = Square.made
    square = Square.of(x)
    assert Square.made == made + 1
    assert isinstance(square, Shape)
    assert type(square) is Square
    assert issubclass(Square, Shape)
    assert square.__class__.__name__ == "Square"
    both = square + Shape(x)
    assert type(both) is Square
    return (
        square.fill().sum() + square.area + square.cached * square.cached + Shape.law(x)
        + square(x) + square[1] + both.size + Record(x).total() + Frozen(x).total()
        + Slotted(x).total() + dataclasses.replace(Frozen(x), x=2 * x).total()
    )  # fmt: skip


MODEL = Square(1.5)
MODELS = {"first": [MODEL, Shape(0.5)], "law": math.exp}


def _objects_from_outside(x: Any) -> Any:
    total = MODEL.area * x + MODEL(x)
    for model in MODELS["first"]:
        total = total + model(x) * model.law(x)
    return total + MODELS["law"](x) + (MODEL is MODELS["first"][0])


def _inner_functions(x: Any) -> Any:
    count = 0
    total = x * 0

    def add_up(y: Any) -> Any:
        nonlocal count, total
        count += 1
        total = total + math.sin(y)
        return [add_up(y / 2)] if count < 4 else []

    add_up(x)
    scaled = functools.partial(operator.mul, math.exp(x))
    return total * count + scaled(2.0) + (lambda t: np.array([t, x]).prod())(3.0)


def _generator(x: Any) -> Any:
    for k in range(3):
        yield math.cos(k * x)


def _generators(x: Any) -> Any:
    weights = dict(enumerate(_generator(x)))
    return (
        sum(_generator(x))
        + weights[1]
        + max(*_generator(x), 0.0)
        + sum(itertools.islice(_generator(x), 2))
    )


async def _awaited(x: Any) -> Any:
    await asyncio.sleep(0)
    return math.exp(x)


def _coroutines(x: Any) -> Any:
    async def both() -> Any:
        return sum(await asyncio.gather(_awaited(x), _awaited(2 * x)))

    return asyncio.run(both())


def _twice(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return 2 * function(*args, **kwargs)

    return wrapper


@_twice
def _decorated_inner(x: Any, *, power: int = 2) -> Any:
    return math.pow(x, power)


@functools.cache
def _cached(n: Any) -> Any:
    return n if np.ndim(n) or n < 2 else _cached(n - 1) + _cached(n - 2)


@contextlib.contextmanager
def _scope(x: Any) -> Any:
    yield np.array([x, x])


def _decorated(x: Any) -> Any:
    with _scope(x) as both:
        return _decorated_inner(x, power=3) + _cached(10) * math.sin(x) + both.sum()


def _recursive(x: Any, n: int = 5) -> Any:
    return max(x, 0.1) if n == 0 else math.sin(_recursive(x, n - 1)) + x


def _exceptions(x: Any) -> Any:
    try:
        raise KeyError(x)
    except (KeyError, ValueError) as error:
        return math.exp(error.args[0])
    finally:
        math.sqrt(x)


def _matched(x: Any) -> Any:
    match {"kind": "sin", "value": x}:
        case {"kind": "sin", "value": value}:
            return math.sin(value)
        case _:
            return 0.0


def _threads(x: Any) -> Any:
    found = [0.0]

    def work() -> None:
        found[0] = math.exp(x)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


LANGUAGE = [
    _classes, _bases, _objects_from_outside, _inner_functions, _generators, _coroutines, _decorated,
    _recursive, _exceptions, _matched, _threads,
]  # fmt: skip


@pytest.mark.parametrize("f", LANGUAGE, ids=lambda f: f.__name__.strip("_"))
def test_the_language_means_the_same(f: Callable[[Any], Any]) -> None:
    check(f, jit=False)


# nothing changes outside --------------------------------------------------------------------------

COUNTER = 0
STATE: dict[str, Any] = {}


def _with_global(x: Any) -> Any:
    global COUNTER
    COUNTER += 1
    return math.exp(x) * COUNTER


def test_globals_are_written_to() -> None:
    global COUNTER
    COUNTER = 0
    ft.grad(_with_global)(POINT)
    assert COUNTER == 1
    assert type(COUNTER) is int
    assert globals()["COUNTER"] == 1


def _of_modules() -> dict[str, Any]:
    modules = (numpy, numpy.linalg, math, cmath, statistics, builtins, scipy.linalg, stats, special)
    return {module.__name__: dict(vars(module)) for module in modules}


def test_modules_are_as_before_during_and_after() -> None:
    before = _of_modules()
    seen: list[Any] = []
    look, looked = threading.Event(), threading.Event()

    def elsewhere() -> None:
        look.wait(10)
        seen.append(_of_modules())
        looked.set()

    thread = threading.Thread(target=elsewhere)
    thread.start()

    def f(x: Any) -> Any:
        look.set()
        looked.wait(10)
        out = np.zeros(2)
        out[0] = math.exp(x)
        return out.sum()

    ft.grad(f)(POINT)
    thread.join()
    for now in (seen[0], _of_modules()):
        for name, names in before.items():
            assert now[name].keys() == names.keys()
            assert all(now[name][key] is value for key, value in names.items())


def test_objects_from_outside_are_as_before() -> None:
    model = Square(2.0)
    attributes = dict(vars(model))

    def f(x: Any) -> Any:
        return model(x) + model.area * x

    ft.grad(f)(POINT)
    assert vars(model) == attributes
    assert type(model) is Square
    assert type(model.buffer) is np.ndarray


def test_attributes_that_are_written_are_the_objects_own() -> None:
    model = Square(2.0)

    def f(x: Any) -> Any:
        model.count = getattr(model, "count", 0) + 1
        model.scratch = np.zeros(3)
        model.inner = Shape(1.0)
        return model.area * x

    ft.grad(f)(POINT)
    assert model.count == 1
    assert type(model.scratch) is np.ndarray
    assert type(model.inner) is Shape
    assert type(model.inner.buffer) is np.ndarray
    pickle.loads(pickle.dumps(model))


def test_results_are_of_the_classes_of_outside() -> None:
    def f(x: Any) -> Any:
        return math.exp(x), (np.zeros(2), Shape(1.0), Square, _twice)

    _, aux = ft.grad(f, has_aux=True)(POINT)
    assert type(aux[0]) is np.ndarray
    assert type(aux[1]) is Shape
    assert aux[2] is Square
    assert aux[3] is _twice


def test_arrays_of_the_caller_are_not_changed() -> None:
    outside = np.array([1.0, 2.0])

    def f(x: Any) -> Any:
        outside[0] = x
        return outside.sum()

    with pytest.raises(UnsupportedOperationError, match=r"test_names\.py:\d+ .*a = a\.copy\(\)"):
        ft.grad(f)(POINT)
    np.testing.assert_array_equal(outside, [1.0, 2.0])


class Held:
    """An object that has no twin, and an array."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = np.array([1.0, 2.0])


HELD = Held()
WAYS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda a: a,
    "asarray": np.asarray,
    "a view": lambda a: np.asarray(a)[:],
    "reshape": lambda a: np.reshape(a, (1, 2))[0],
    "atleast_2d": lambda a: np.atleast_2d(a)[0],
    "split": lambda a: np.split(a, 1)[0],
    "array without copy": lambda a: np.array(a, copy=None),
    "broadcast": lambda a: np.broadcast_arrays(a)[0],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", ["global", "slot"])
def test_memory_of_the_caller_is_not_changed_by_any_way_to_it(way: str, where: str) -> None:
    def f(x: Any) -> Any:
        a = WAYS[way](OUTSIDE if where == "global" else HELD.data)
        a[0] = x
        return a.sum()

    before = OUTSIDE.copy(), HELD.data.copy()
    with pytest.raises((FunctransError, TypeError, ValueError)):
        ft.grad(f)(POINT)
    np.testing.assert_array_equal(OUTSIDE, before[0])
    np.testing.assert_array_equal(HELD.data, before[1])


@pytest.mark.parametrize("way", WAYS)
def test_own_memory_is_one_by_any_way_to_it(way: str) -> None:
    def f(x: Any) -> Any:
        a = np.zeros(2)
        b = WAYS[way](a)
        c = WAYS[way](a)
        b[0] = x
        c[1] = x * x
        return (a * [1.0, 2.0]).sum() + b.sum() + c[0]

    check(f, jit=False)


def test_arrays_that_functions_make_may_be_filled() -> None:
    def f(x: Any) -> Any:
        values, vectors = np.linalg.eigh(np.diag(OUTSIDE))
        first, second = np.split(np.zeros(4), 2)
        grid, _ = np.meshgrid(OUTSIDE, OUTSIDE)
        for a in (values, vectors[0], first, second, grid[1]):
            a[0] = x * a[1]
        return values.sum() + vectors.sum() + first.sum() + grid.sum()

    check(f, jit=False)


def test_arrays_of_integers_take_no_fractions() -> None:
    def f(x: Any) -> Any:
        out = np.zeros(3, int)
        out[0] = x
        return out.sum()

    with pytest.raises(TypeError, match=r"int64.*test_names\.py"):
        ft.grad(f)(POINT)


def test_arrays_of_an_outer_function_are_not_written_to_inside() -> None:
    def f(x: Any) -> Any:
        out = np.zeros(2)

        def inner(y: Any) -> Any:
            out[0] = y
            return y * x

        return ft.grad(inner)(x) + out.sum()

    with pytest.raises(AliasedWriteError):
        ft.grad(f)(POINT)


def test_tracebacks_name_the_lines_of_the_code() -> None:
    def f(x: Any) -> Any:
        out = np.zeros(2)
        out[0] = x
        raise ValueError("no")

    with pytest.raises(ValueError, match="no") as info:
        ft.grad(f)(POINT)
    last = traceback.extract_tb(info.value.__traceback__)[-1]
    assert last.name == "f"
    assert last.filename == __file__
    assert last.line == 'raise ValueError("no")'


def test_signatures_and_names_are_those_of_the_function() -> None:
    def f(x: Any, *, power: int = 2) -> Any:
        """A text."""
        return math.pow(x, power)

    gradient = ft.grad(f)
    assert inspect.signature(gradient) == inspect.signature(f)
    assert gradient.__doc__ == "A text."
    np.testing.assert_allclose(gradient(3.0, power=3), 27.0)


def test_code_that_needs_no_twin_has_none() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(x) * OUTSIDE) + np.dot(x, x[::-1])

    assert not needs_twin(f)
    assert not needs_twin(np.sin)
    assert not needs_twin(ft.grad(f))


class Plain:
    """What a function may be given besides arrays."""

    scale = 3.0

    def applied(self, x: Any) -> Any:
        return np.exp(x)


class Buffered(Plain):
    def applied(self, x: Any) -> Any:
        out = np.zeros(2)
        out[0] = x[0]
        return out

    @property
    def made(self) -> Any:
        return np.zeros(2)


def _by_module(model: Any, x: Any) -> Any:
    xp = model.library
    return xp.exp(x) + model.library.linalg.norm(x)


def _by_field(model: Any, x: Any) -> Any:
    return model.scale * x


def _makes_array(model: Any, x: Any) -> Any:
    xp = model.library
    return xp.zeros(2) + x


def _makes_array_inside(model: Any, x: Any) -> Any:
    def inner(t: Any) -> Any:
        return model.library.zeros(2) * t

    return inner(x)


def _by_method(model: Any, x: Any) -> Any:
    return model.applied(x)


def _by_property(model: Any, x: Any) -> Any:
    return model.made


def _of_another(model: Any, x: Any) -> Any:
    model = x
    return model.library


def _kept_for_inside(model: Any, x: Any) -> Any:
    xp = model.library

    def inner(t: Any) -> Any:
        def innermost(s: Any) -> Any:
            return xp.exp(s)

        return innermost(t)

    return inner(x)


def _kept_and_makes_array(model: Any, x: Any) -> Any:
    xp = model.library

    def inner(t: Any) -> Any:
        return xp.zeros(2) * t

    return inner(x)


def _kept_twice(model: Any, x: Any) -> Any:
    xp = model.library

    def inner(t: Any) -> Any:
        return xp.exp(t)

    y = inner(x)
    xp = model
    return y


def _kept_and_changed_inside(model: Any, x: Any) -> Any:
    xp = model.library

    def inner(t: Any) -> Any:
        nonlocal xp
        xp = t
        return t

    def other(t: Any) -> Any:
        return xp.exp(t)

    return other(inner(x))


def _kept_of_argument(model: Any, x: Any) -> Any:
    model = model.library

    def inner(t: Any) -> Any:
        return model.exp(t)

    return inner(x)


def _kept_by_name_of_global(model: Any, x: Any) -> Any:
    np = model

    def inner(t: Any) -> Any:
        library = np

        def innermost(s: Any) -> Any:
            return library.exp(s)

        return innermost(t)

    return inner(x)


def _kept_global(model: Any, x: Any) -> Any:
    xp = np

    def inner(t: Any) -> Any:
        return xp.exp(t)

    return inner(x)


@pytest.mark.parametrize(
    ("function", "model", "expected"),
    [
        (_by_module, types.SimpleNamespace(library=np), False),
        (_by_field, types.SimpleNamespace(scale=3.0), False),
        (_by_field, Plain(), False),
        (_makes_array, types.SimpleNamespace(library=np), True),
        (_makes_array_inside, types.SimpleNamespace(library=np), True),
        (_by_method, Plain(), False),
        (_by_method, Buffered(), True),
        (_by_property, Buffered(), True),
        (_of_another, types.SimpleNamespace(library=np), True),
        (_kept_for_inside, types.SimpleNamespace(library=np), False),
        (_kept_and_makes_array, types.SimpleNamespace(library=np), True),
        (_kept_twice, types.SimpleNamespace(library=np), True),
        (_kept_and_changed_inside, types.SimpleNamespace(library=np), True),
        (_kept_of_argument, types.SimpleNamespace(library=np), True),
        (_kept_by_name_of_global, types.SimpleNamespace(library=np), True),
        (_kept_by_name_of_global, np, False),
        (_kept_global, None, False),
    ],
)
def test_what_is_known_of_arguments_decides(function: Any, model: Any, expected: bool) -> None:
    assert needs_twin(functools.partial(function, model)) is expected


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum([v**2 for v in x]), lambda x: np.mean([v for v in x]),  # noqa: C416
        lambda x: np.sqrt([v for v in x if v > 0]).sum(), lambda x: np.dot(list(x), list(x)),
        lambda x: np.max(sorted(x)), lambda x: np.linalg.norm([2 * v for v in x]),
    ],
)  # fmt: skip
def test_lists_that_are_made_inside_are_arrays(f: Any) -> None:
    x = np.array([0.7, 1.3, 0.2])
    assert needs_twin(f)
    value, slope = ft.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x))
    steps = [(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(slope, steps, 1e-7, 1e-8)


def test_functions_that_call_each_other_are_decided_alike() -> None:
    def even(n: int, x: Any) -> Any:
        return x if n == 0 else odd(n - 1, x)

    def odd(n: int, x: Any) -> Any:
        return third(n, x) if n == 1 else even(n - 1, x)

    def third(n: int, x: Any) -> Any:
        return math.exp(x) if n == 1 else even(n, x)

    assert all(map(needs_twin, (even, odd, third)))
    assert all(map(needs_twin, (third, odd, even)))


def test_a_program_may_switch_it_off() -> None:
    with ft.config(plain=False), pytest.raises(ft.errors.FunctransError):
        ft.grad(_buffer_filled)(POINT)


def _reads_globals(x: Any) -> Any:
    return globals()["OUTSIDE"][0] * math.exp(x) + eval("math.sin(x)")


def test_globals_are_the_modules_own() -> None:
    check(_reads_globals, jit=False)


def test_a_patched_module_is_asked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return _decorated_inner(x) + math.exp(0.0)

    first = ft.grad(f)(POINT)
    monkeypatch.setattr(sys.modules[__name__], "_decorated_inner", lambda x: 5 * math.sin(x))
    np.testing.assert_allclose(ft.grad(f)(POINT), 5 * math.cos(POINT))
    monkeypatch.undo()
    np.testing.assert_allclose(ft.grad(f)(POINT), first)


KEPT: dict[str, Any] = {"law": math.exp, "list": [math.sin], "weights": np.ones(2)}


def test_containers_from_outside_are_written_to() -> None:
    def f(x: Any) -> Any:
        KEPT["count"] = KEPT.get("count", 0) + 1
        KEPT["list"].append(math.cos)
        KEPT["scratch"] = np.zeros(2)
        return KEPT["law"](x) + sum(g(x) for g in KEPT["list"]) + KEPT["weights"].sum()

    try:
        value = ft.vjp(f, POINT)[0]
        np.testing.assert_allclose(value, math.exp(POINT) + math.sin(POINT) + math.cos(POINT) + 2)
        assert KEPT["count"] == 1
        assert KEPT["law"] is math.exp
        assert KEPT["list"] == [math.sin, math.cos]
        assert type(KEPT["scratch"]) is np.ndarray
        assert type(KEPT["weights"]) is np.ndarray
    finally:
        KEPT["list"][:] = [math.sin]


def test_pytrees_stay_what_they_are() -> None:
    weights = {"w": np.ones(2), "b": [np.zeros(2)]}

    def f(x: Any, weights: Any) -> Any:
        doubled = ft.tree.map(lambda leaf: 2 * leaf, weights)
        out = np.zeros(2)
        out[0] = x
        return (out * doubled["w"] + doubled["b"][0]).sum()

    assert ft.grad(f)(POINT, weights) == 2.0
    gradient = ft.grad(f, argnums=1)(POINT, weights)
    np.testing.assert_array_equal(gradient["w"], [2 * POINT, 0.0])


_helper: Any = np.sin


def _uses_the_helper() -> Any:
    return lambda x: _helper(x)


@pytest.mark.parametrize("kind", ["function", "array"])
def test_functions_of_one_code_are_looked_at_anew_where_a_name_stands_for_something_else(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plain(x: Any) -> Any:
        return x * x

    def solved(x: Any) -> Any:
        return scipy.linalg.solve(x, x)

    first: Any = {"function": plain, "array": np.ones(2)}[kind]
    for value, expected in ((first, False), (solved, True), (first, False)):
        monkeypatch.setitem(globals(), "_helper", value)
        for _ in range(2):
            assert needs_twin(_uses_the_helper()) is expected
