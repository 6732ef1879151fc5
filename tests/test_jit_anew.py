"""A function that is jitted anew at every call is staged once, as long as it means the same."""

import collections
import contextvars
import decimal
import enum
import functools
import gc
import logging
import math
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.flatten_util import ravel_pytree
from functrans.jitted import jit as module_of_jit
from functrans.jitted import shared
from functrans.jitted.caches import counted

SPACE = """
import numpy as np
def helper(x, power=2): return x ** power * scale
def f(x): return np.sum(helper(x)) + array[0] * kind
"""


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """As many items as functions were staged."""
    counted: list[int] = []
    staged_program = module_of_jit.staged_program

    def counting(*args: Any) -> Any:
        counted.append(1)
        return staged_program(*args)

    monkeypatch.setattr(module_of_jit, "staged_program", counting)
    return counted


class Space:
    """A module with a function ``f``, whose globals can be changed."""

    def __init__(self) -> None:
        own: dict[str, Any] = {"__name__": "own", "scale": 1.0, "array": np.ones(2), "kind": 1}
        exec(SPACE, own)
        self.names = own
        self.f = own["f"]


@pytest.fixture
def space() -> Space:
    return Space()


X = np.array([1.0, 2.0])


def test_jit_of_the_same_function_stages_once(space: Space, runs: list[int]) -> None:
    for _ in range(3):
        assert ft.jit(space.f)(X) == 6.0
    assert len(runs) == 1
    ft.jit(space.f)(np.ones(3))  # another kind of call
    assert ft.jit(space.f, static_argnames=())(X) == 6.0
    assert len(runs) == 2
    with ft.config(native=False):  # other settings
        ft.jit(space.f)(X)
    assert len(runs) == 3
    ft.clear_caches()
    ft.jit(space.f)(X)
    assert len(runs) == 4


def change_global(space: Space) -> None:
    space.names["scale"] = 3.0


def change_type_of_global(space: Space) -> None:
    space.names["kind"] = True


def change_helper(space: Space) -> None:
    exec("def helper(x): return 3.0 * x", space.names)


def change_default(space: Space) -> None:
    space.names["helper"].__defaults__ = (3,)


def change_array(space: Space) -> None:
    space.names["array"] = np.array([5.0, 1.0])


def write_to_array(space: Space) -> None:
    space.names["array"][0] = 7.0


def change_large_array(space: Space) -> None:
    space.names["array"] = np.ones(10000)
    ft.jit(space.f)(X)
    space.names["array"][0] = 7.0


CHANGES = [
    change_global, change_type_of_global, change_helper, change_default, change_array,
    write_to_array, change_large_array,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_the_function_refers_to_is_part_of_it(
    space: Space, change: Any, runs: list[int]
) -> None:
    ft.jit(space.f)(X)
    change(space)
    for _ in range(2):
        n_before = len(runs)
        assert ft.jit(space.f)(X) == space.f(X)
    assert len(runs) == n_before  # the second time


@pytest.mark.parametrize(
    "value",
    [[2.0], {"a": 2.0}, {2.0}, types.SimpleNamespace(a=2.0)],
    ids=lambda v: type(v).__name__,
)
def test_functions_that_refer_to_what_may_change_share_nothing(value: Any) -> None:
    runs = []

    def f(x: Any) -> Any:
        runs.append(value)
        return x

    ft.jit(f)(1.0)
    ft.jit(f)(1.0)
    assert len(runs) == 2


def test_programs_do_not_keep_their_function_alive() -> None:
    gc.collect()

    def make() -> Any:
        offset = 1.0

        def f(x: Any) -> Any:
            return x + offset

        for _ in range(2):
            assert ft.jit(f)(1.0) == 2.0
        return weakref.ref(f)

    assert make()() is None


def test_functions_with_equal_code_are_told_apart() -> None:
    for value in (1.0, 2.0, 2, True, -0.0, 0.0):
        f = eval("lambda x: x * value", {"value": value})
        found = ft.jit(f)(np.float32(3.0))
        assert found == f(3.0)
        assert np.signbit(found) == np.signbit(f(3.0))


def test_ways_back_from_equal_vectors_are_equal() -> None:
    runs = []

    @ft.jit
    def f(vector: Any, unravel: Any) -> Any:
        runs.append(1)
        return unravel(vector)["a"]

    step = ft.jit(f.function, static_argnums=1)
    for value in (1.0, 2.0):
        vector, unravel = ravel_pytree({"a": value * np.ones(2), "b": 3.0})
        np.testing.assert_allclose(step(vector, unravel), value)
    assert len(runs) == 1
    other = ravel_pytree({"a": np.ones(2, np.float32), "b": 3.0})[1]
    assert other != unravel
    assert hash(other) != hash(unravel)


# functions of other kinds -----------------------------------------------------------------------

BOX = [2.0]
TABLE = {"weights": np.array([1.0, 2.0]), "names": ("a", {"deep": 3.0})}
FIXED = np.array([5.0, 6.0])
LARGE = np.arange(2000.0)


class Colour(enum.Enum):
    RED = 1.0
    BLUE = 2.0


class Model:
    """An object whose method and call are jitted; it has no hash, and all are equal."""

    scale = 1.0
    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self.weights = np.array([1.0, 2.0])
        self.power = 2

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model)

    @property
    def factor(self) -> float:
        return self.scale

    def loss(self, x: Any) -> Any:
        return np.sum(self.weights * x**self.power) * self.factor

    def __call__(self, x: Any) -> Any:
        return self.loss(x)


@dataclass(frozen=True)
class Scale:
    a: float
    colour: Colour = Colour.RED

    def __call__(self, x: Any) -> Any:
        return self.a * np.sum(x) * self.colour.value


class Slotted:
    __slots__ = ("__weakref__", "a")

    def __init__(self, a: float) -> None:
        self.a = a


def of_box(x: Any) -> Any:
    return np.sum(x) * BOX[0] * TABLE["names"][1]["deep"] * TABLE["weights"][1]


def two(a: Any, x: Any) -> Any:
    return np.sum(a * x)


def of_large(x: Any) -> Any:
    return np.sum(LARGE) * np.sum(x)


def tagged(x: Any) -> Any:
    return np.sum(x) * tagged.scale


tagged.scale = 2.0  # type: ignore[attr-defined]


class Heir(Model):
    """Its call is that of its base."""


def scaled(v: float) -> float:
    return v * BOX[0]


@functools.lru_cache
def remembered(v: float) -> float:
    return v * TABLE["names"][1]["deep"]


JITTED = ft.jit(of_large)
MODEL, SLOTTED, HEIR = Model(), Slotted(3.0), Heir()
item = BOX.__getitem__
CONTEXT = contextvars.ContextVar("context", default=2.0)
VECTOR = np.vectorize(scaled, otypes=[float])
LOGGER = logging.getLogger("a test")


def closed(value: Any) -> Any:
    def f(x: Any) -> Any:
        return np.sum(x) * value

    return f


ANEW: dict[str, Callable[[], Any]] = {
    "a list and a dict": lambda: ft.jit(of_box)(X),
    "a function with attributes": lambda: ft.jit(tagged)(X),
    "a large array": lambda: ft.jit(of_large)(X),
    "a method": lambda: ft.jit(MODEL.loss)(X),
    "an object": lambda: ft.jit(MODEL)(X),
    "a lambda": lambda: ft.jit(lambda x: np.sum(x * FIXED))(X),
    "a closure": lambda: ft.jit(closed(3.0))(X),
    "a partial": lambda: ft.jit(functools.partial(two, 3.0))(X),
    "a partial of an array": lambda: ft.jit(functools.partial(two, FIXED))(X),
    "grad": lambda: ft.jit(ft.grad(closed(3.0)))(X),
    "grad of a lambda": lambda: ft.jit(ft.grad(lambda x: np.sum(x * FIXED)))(X),
    "vmap of grad": lambda: ft.jit(ft.vmap(ft.grad(closed(3.0)), in_axes=0))(X),
    "hessian of a method": lambda: ft.jit(ft.hessian(MODEL.loss))(X),
    "static numbers": lambda: ft.jit(two, static_argnums=0)(3, X),
    "an object whose class inherits its call": lambda: ft.jit(HEIR)(X),
    "a method of a list": lambda: ft.jit(lambda x: x * item(0))(X),
    "functions of NumPy": lambda: ft.jit(lambda x: np.dot(x, np.where(x > 0, FIXED, 0.0)))(X),
    "functions of libraries": lambda: ft.jit(lambda x: ft.lax.sin(ft.nn.relu(math.pi * x)))(X),
    "a jitted function": lambda: ft.jit(lambda x: JITTED(x) * x)(X),
    "within another": lambda: ft.jit(lambda x: ft.jit(two)(3.0, x))(X),
}
SCALE = Scale(2.0, Colour.BLUE)
TRACED: dict[str, Callable[[], Any]] = {
    "a dataclass": lambda: ft.jit(SCALE)(X),
    "an object with slots": lambda: ft.jit(lambda x: x * SLOTTED.a)(X),
    "specialised": lambda: ft.jit(of_box, specialize=True)(X),
    "a context variable": lambda: ft.jit(lambda x: x * CONTEXT.get())(X),
    "vectorize": lambda: ft.jit(lambda x: x * VECTOR(2.0))(X),
    "a cached function": lambda: ft.jit(lambda x: x * remembered(2.0))(X),
    "a logger": lambda: ft.jit(lambda x: (LOGGER.debug("staged"), 2 * x)[1])(X),
}
"""What refers to something that is not known to stay the same."""
ALL = ANEW | TRACED


@pytest.mark.parametrize("name", ALL)
def test_what_is_written_anew_is_staged_once(name: str, runs: list[int]) -> None:
    found = [ALL[name]()]
    n_first = len(runs)
    found += [ALL[name]() for _ in range(3)]
    assert len(runs) == n_first * (1 if name in ANEW else 4)
    with ft.disable_jit():
        expected = ALL[name]()
    for value in found:
        np.testing.assert_allclose(value, expected)


def set_item(place: Any, key: Any, value: Any) -> Callable[[], Callable[[], None]]:
    """A change, which gives what undoes it."""

    def change() -> Callable[[], None]:
        old = place[key] if isinstance(key, int) or not hasattr(place, str(key)) else None
        place[key] = value
        return lambda: place.__setitem__(key, old)

    return change


def set_attribute(place: Any, name: str, value: Any) -> Callable[[], Callable[[], None]]:
    def change() -> Callable[[], None]:
        old = getattr(place, name)
        setattr(place, name, value)
        return lambda: setattr(place, name, old)

    return change


CHANGED: dict[str, tuple[str, Callable[[], Callable[[], None]]]] = {
    "item of a list": ("a list and a dict", set_item(BOX, 0, 7.0)),
    "array in a dict": ("a list and a dict", set_item(TABLE["weights"], 1, 7.0)),
    "dict in a tuple in a dict": ("a list and a dict", set_item(TABLE["names"][1], "deep", 7.0)),
    "attribute of a function": ("a function with attributes", set_attribute(tagged, "scale", 7.0)),
    "element of a large array": ("a large array", set_item(LARGE, 7, -1.0)),
    "attribute of an object": ("a method", set_attribute(MODEL, "power", 3)),
    "array of an object": ("a method", set_item(MODEL.weights, 0, 7.0)),
    "another array of an object": ("an object", set_attribute(MODEL, "weights", np.ones(2))),
    "attribute of a class": ("an object", set_attribute(Model, "scale", 7.0)),
    "method of a class": ("an object", set_attribute(Model, "loss", lambda self, x: 5.0 * x[0])),
    "property of a class": ("a method", set_attribute(Model, "factor", 5.0)),
    "slot": ("an object with slots", set_attribute(SLOTTED, "a", 7.0)),
    "captured array": ("a lambda", set_item(FIXED, 0, 7.0)),
    "array of a partial": ("a partial of an array", set_item(FIXED, 0, 7.0)),
    "inherited attribute": (
        "an object whose class inherits its call",
        set_attribute(Model, "scale", 7.0),
    ),
    "list behind a method": ("a method of a list", set_item(BOX, 0, 7.0)),
    "context variable": (
        "a context variable",
        lambda: functools.partial(CONTEXT.reset, CONTEXT.set(7.0)),
    ),
    "what a vectorized function refers to": ("vectorize", set_item(BOX, 0, 7.0)),
    "array under grad": ("grad of a lambda", set_item(FIXED, 0, 7.0)),
}


@pytest.mark.parametrize("name", CHANGED)
def test_what_changed_is_seen(name: str) -> None:
    call, change = CHANGED[name]
    before = ALL[call]()
    undo = change()
    try:
        after = ALL[call]()
        with ft.disable_jit():
            np.testing.assert_allclose(after, ALL[call]())
    finally:
        undo()
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(ALL[call](), before)


# what code can read that it does not show ---------------------------------------------------------

CASES: dict[str, tuple[str, str, str]] = {
    # what is there before, the function, what changes
    "a module, twice": ("def h(): return cfg.x", "lambda x: x * h() * cfg.x", "cfg.x = 3."),
    "a module in an object": (
        "class A:\n def __init__(self): self.b = cfg\n def __call__(self, x): return self.b.k * x\n"
        "a = A()",
        "a",
        "cfg.k = 3.",
    ),
    "a module in a partial": ("", "functools.partial(lambda m, x: m.k * x, cfg)", "cfg.k = 3."),
    "a module in a closure": ("def make(m): return lambda x: m.k * x", "make(cfg)", "cfg.k = 3."),
    "a module in a class": (
        "class A:\n b = cfg\n def __call__(self, x): return self.b.k * x\na = A()",
        "a",
        "cfg.k = 3.",
    ),
    "a module passed on": ("def h(m, x): return m.k * x", "lambda x: h(cfg, x)", "cfg.k = 3."),
    "an import": ("def f(x):\n import cfg\n return cfg.k * x", "f", "cfg.k = 3."),
    "an import of a name": ("def f(x):\n from cfg import k\n return k * x", "f", "cfg.k = 3."),
    "a module with __getattr__": (
        "box = [1.]\ncfg.__getattr__ = lambda name: box[0]",
        "lambda x: x * cfg.y",
        "box[0] = 3.",
    ),
    "getattr": ("", "lambda x: x * getattr(cfg, 'k')", "cfg.k = 3."),
    "globals": ("K = 1.", "lambda x: x * globals()['K']", "K = 3."),
    "globals of a function": ("K = 1.\ndef h(): 0", "lambda x: x * h.__globals__['K']", "K = 3."),
    "eval": ("K = 1.", "lambda x: x * eval('K')", "K = 3."),
    "sys.modules": ("import sys", "lambda x: x * sys.modules['cfg'].k", "cfg.k = 3."),
    "vars": ("", "lambda x: x * cfg.__dict__['k']", "cfg.k = 3."),
    "a name in builtins": (
        "import builtins\nbuiltins.KK = 1.",
        "lambda x: x * KK",
        "builtins.KK = 3.",
    ),
    "a builtin that is replaced": (
        "import builtins\nold = builtins.abs",
        "lambda x: x + abs(-1.)",
        "builtins.abs = lambda v: 7.",
    ),
    "builtins of its own": (
        "own = {'__builtins__': {'KK': 1.}}\nexec('def f(x): return x * KK', own)",
        "own['f']",
        "own['__builtins__']['KK'] = 3.",
    ),
    "Partial of a function": (
        "K = 1.\ndef h(a, x): return K * x * a[0]\np = ft.tree.Partial(h, np.ones(2))",
        "lambda x: p(x)",
        "K = 3.",
    ),
    "Partial of an array": (
        "a = np.ones(2)\np = ft.tree.Partial(lambda a, x: float(a[0]) * x, a)",
        "lambda x: p(x)",
        "a[0] = 3.",
    ),
    "a default under a label": (
        "def make(s):\n def f(x, *, scale=s): return x * scale\n f.scale = 'label'\n return f\n"
        "K = 1.",
        "make(K)",
        "K = 3.",
    ),
    "wraps of a library's function": (
        "K = 1.\n@functools.wraps(np.sum)\ndef h(x): return K * x",
        "lambda x: h(x)",
        "K = 3.",
    ),
    "a function in NumPy": (
        "K = 1.\n@functools.wraps(np.sum)\ndef h(x): return K * x\nnp.mine = h",
        "lambda x: np.mine(x)",
        "K = 3.",
    ),
    "a function of a module of a known name": (
        "own = {'__name__': 'functrans.lax', 'K': 1.}\nexec('def h(x): return K * x', own)",
        "lambda x: own['h'](x)",
        "own['K'] = 3.",
    ),
    "a module of a known name": (
        "m = types.ModuleType('numpy')\nm.k = 1.",
        "lambda x: m.k * x",
        "m.k = 3.",
    ),
    "a class without a name of its module": (
        "exec('class A:\\n v = 1.\\n def __call__(self, x): return self.v * x', own := {})\n"
        "a = own['A']()",
        "a",
        "own['A'].v = 3.",
    ),
    "slots of a library": (
        "import fractions\nq = fractions.Fraction(1, 2)",
        "lambda x: x * q.numerator",
        "q._numerator = 3",
    ),
    "a spline": (
        "from scipy.interpolate import CubicSpline\nc = CubicSpline([0., 1., 2.], [0., 1., 4.])",
        "lambda x: x * float(c(1.5))",
        "c.c *= 2",
    ),
    "a number of C": (
        "import ctypes\nc = ctypes.c_double(1.)",
        "lambda x: x * c.value",
        "c.value = 3.",
    ),
    "mapped memory": (
        "import mmap\nm = mmap.mmap(-1, 8)\nm[0] = 1",
        "lambda x: x * m[0]",
        "m[0] = 3",
    ),
    "a transposed function": (
        "w = np.ones(1)\nt = ft.linear_transpose(lambda x: w * x, np.ones(1))",
        "lambda x: float(t(np.ones(1))[0][0]) * x",
        "w[0] = 3.",
    ),
    "frompyfunc": (
        "K = 1.\nh = np.frompyfunc(lambda v: K * v, 1, 1)",
        "lambda x: x * h(1.)",
        "K = 3.",
    ),
    "frompyfunc in NumPy": (
        "K = 1.\nnp.sin2 = np.frompyfunc(lambda v: K * v, 1, 1)",
        "lambda x: x * np.sin2(1.)",
        "K = 3.",
    ),
    "an element of XML": (
        "import xml.etree.ElementTree as et\ne = et.Element('a', v='1')",
        "lambda x: x * float(e.get('v'))",
        "e.set('v', '3')",
    ),
    "a property of a metaclass": (
        "K = 1.\nclass M(type):\n @property\n def v(cls): return K\nclass A(metaclass=M): 0",
        "lambda x: x * A.v",
        "K = 3.",
    ),
    "__getattr__": (
        "box = [1.]\nclass A:\n def __getattr__(self, name): return vars()['name'] and box[0]\n"
        "a = A()",
        "lambda x: x * a.v",
        "box[0] = 3.",
    ),
    "a descriptor": (
        "class D:\n v = 1.\n def __get__(self, a, b): return D.v\nclass A: d = D()\na = A()",
        "lambda x: x * a.d",
        "D.v = 3.",
    ),
    "an attribute of a float": (
        "class F(float): 0\na = F(1.)\na.k = 1.",
        "lambda x: x * a.k",
        "a.k = 3.",
    ),
    "an attribute of a text": (
        "class F(str): 0\na = F('a')\na.k = 1.",
        "lambda x: x * a.k",
        "a.k = 3.",
    ),
    "a member of an IntEnum": (
        "import enum\nclass E(enum.IntEnum): A = 1\nE.A.k = 1.",
        "lambda x: x * E.A.k",
        "E.A.k = 3.",
    ),
    "a list in an enum": (
        "import enum\nclass E(enum.Enum): A = [1.]",
        "lambda x: x * E.A.value[0]",
        "E.A.value[0] = 3.",
    ),
    "an array of objects": (
        "l = [1.]\na = np.array([None]); a[0] = l; a.flags.writeable = False",
        "lambda x: x * a[0][0]",
        "l[0] = 3.",
    ),
    "an array that was locked again": (
        "a = np.ones(2); a.flags.writeable = False",
        "lambda x: x * float(a[0])",
        "a.flags.writeable = True; a[0] = 3.; a.flags.writeable = False",
    ),
    "an array on a buffer": (
        "b = bytearray(np.ones(2).tobytes()); a = np.frombuffer(b); a.flags.writeable = False",
        "lambda x: x * float(a[0])",
        "b[:8] = np.full(1, 3.).tobytes()",
    ),
    "Python's random": ("import random\nrandom.seed(0)", "lambda x: x + random.random()", ""),
    "a generator of its own": ("", "lambda x: x + np.random.default_rng().normal()", ""),
    "os.urandom": ("import os", "lambda x: x + sum(os.urandom(16))", ""),
    "the time": ("import time", "lambda x: x + time.perf_counter()", ""),
    "a name that was imported": ("from time import perf_counter as t", "lambda x: x + t()", ""),
    "the environment": (
        "import os\nos.environ['KK'] = '1'",
        "lambda x: x * float(os.environ['KK'])",
        "os.environ['KK'] = '3'",
    ),
    "decimals": (
        "import decimal as d\nd.getcontext().prec = 20",
        "lambda x: x * float(d.Decimal(1) / d.Decimal(3))",
        "d.getcontext().prec = 3",
    ),
    "NumPy's errors": (
        "np.seterr(over='warn')",
        "lambda x: x * (1. if np.geterr()['over'] == 'warn' else 3.)",
        "np.seterr(over='ignore')",
    ),
    "NumPy's printing": (
        "a = np.array([1.23456])",
        "lambda x: x * float(f'{a}'[1:-1])",
        "np.set_printoptions(2)",
    ),
    "a text of an array": (
        "a = np.array([1.23456])",
        "lambda x: x * float(('%s' % a)[1:-1])",
        "np.set_printoptions(2)",
    ),
    "errors that are caught": (
        "def f(x):\n try: return x * np.exp(np.float64(1e9) * 0 + 1e3 * np.float64(1.))\n"
        " except FloatingPointError: return x * 3.\nnp.seterr(over='ignore')",
        "f",
        "np.seterr(over='raise')",
    ),
    "an attribute of a function of NumPy": (
        "np.sum.k = 1.",
        "lambda x: x * np.sum.k",
        "np.sum.k = 3.",
    ),
    "bases of a class": (
        "class A: k = 1.\nclass B: k = 3.\nclass C(A): 0\nc = C()",
        "lambda x: x * c.k * (2. if isinstance(c, A) else 1.)",
        "C.__bases__ = (B,)",
    ),
    "an abstract class": (
        "import abc\nclass A(abc.ABC): 0\nclass B: 0\nb = B()",
        "lambda x: x * (3. if isinstance(b, A) else 1.)",
        "A.register(B)",
    ),
    "annotations": (
        "class A: k: 1.0",
        "lambda x: x * A.__annotations__['k']",
        "A.__annotations__['k'] = 3.",
    ),
    "metadata of a dtype": (
        "d = np.dtype('f8', metadata={'k': 1.})",
        "lambda x: x * d.metadata['k']",
        "d = np.dtype('f8', metadata={'k': 3.})",
    ),
    "metadata of an array": (
        "m = {'k': 1.}; a = np.zeros(1, np.dtype('f8', metadata=m))",
        "lambda x: x * dict(a.dtype.metadata)['k']",
        "a = np.zeros(1, np.dtype('f8', metadata={'k': 3.}))",
    ),
    "an empty tuple where the function was": (
        "def make():\n def f(x): return x * (1. if type(v) is type(f) else 3.)\n v = f\n"
        " def put(w):\n  nonlocal v\n  v = w\n return f, put\nf, put = make()",
        "f",
        "put(())",
    ),
    "modules that change places": (
        "import math\nclass A:\n def sin(self, v): return 5.\n"
        "def make(a, b): return lambda x: x * a.sin(1.) - b.sin(1.)\nu, v = math, A()",
        "make(u, v)",
        "u, v = v, u",
    ),
    "the order of a set": ("s = {0, 8}", "lambda x: x * (1. + list(s)[0])", "s = {8, 0}"),
    "a sign of NaN": ("n = float('nan')", "lambda x: x * float(np.copysign(1., n))", "n = -n"),
    "options of a transform": (
        "o = [0]\ndef h(a, b): return a * a + 3. * b\ng = ft.grad(h, argnums=o)",
        "lambda x: g(x, x)[0]",
        "o[0] = 1; g = ft.grad(h, argnums=o)",
    ),
    "attributes of a jitted function": (
        "j = ft.jit(lambda x: x)\nj.k = 1.",
        "lambda x: j(x) * j.k",
        "j.k = 3.",
    ),
    "attributes of a partial": (
        "p = functools.partial(abs)\np.k = 1.",
        "lambda x: x * p.k",
        "p.k = 3.",
    ),
    "a container of one's own": (
        "class L(list): 0\nl = L()\nl.k = 1.",
        "lambda x: x * l.k",
        "l.k = 3.",
    ),
    "a generator": (
        "def g():\n while True: yield len(n.append(1) or n)\nn = []\ni = g()",
        "lambda x: x * next(i)",
        "",
    ),
}


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A namespace for code that changes what it likes."""
    cfg = types.ModuleType("cfg")
    cfg.x = cfg.k = 1.0  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cfg", cfg)
    monkeypatch.setenv("KK", "1")
    monkeypatch.setattr("builtins.abs", abs)
    for name in ("mine", "sin2"):
        monkeypatch.setattr(np, name, None, raising=False)
    monkeypatch.setattr("builtins.KK", None, raising=False)
    monkeypatch.setattr(np.sum, "k", None, raising=False)
    with np.errstate(), np.printoptions(), decimal.localcontext():
        yield {"cfg": cfg, "ft": ft, "np": np, "functools": functools, "types": types}


@pytest.mark.filterwarnings("ignore:.*(random|generator)")
@pytest.mark.parametrize("name", CASES)
def test_what_code_reads_secretly_is_seen(name: str, place: dict[str, Any]) -> None:
    first, function, change = CASES[name]
    exec(first, place)
    call = compile(f"ft.jit({function})(1.0)", "<call>", "eval")
    before = eval(call, place)
    exec(change, place)
    after = eval(call, place)
    assert after != before
    if change:
        assert after == eval(f"({function})(1.0)", place)


def test_paths_belong_to_one_jitted_function() -> None:
    k = [1.0]

    def f(x: Any) -> Any:
        return x * k[0] if x > 0 else x * k[0] * 10

    first = ft.jit(f, specialize=True)
    first(1.0)
    k[0] = 2.0
    first(-1.0)
    k[0] = 1.0
    assert ft.jit(f, specialize=True)(-1.0) == -10.0


def test_functions_of_arguments_that_are_objects_share_nothing(runs: list[int]) -> None:
    pair = collections.namedtuple("pair", "a b")  # whose methods could be anything
    for _ in range(2):
        ft.jit(lambda p: p.a * p.b)(pair(1.0, 2.0))
    assert len(runs) == 2
    for _ in range(2):
        ft.jit(lambda d: d[1])({1: 2.0})  # equal to a dict of True
    assert len(runs) == 4


def test_few_bytes_of_what_was_computed_are_kept() -> None:
    ft.clear_caches()

    def held(n: int) -> int:
        found = []
        for i in range(61):
            w = np.full(n, float(i))
            ft.jit(lambda x, w=w: x + np.outer(w, w))(1.0)
        for entry in shared._shared.all():
            found += [a for a in entry.captured if isinstance(a, np.ndarray)]
        return sum(array.nbytes for array in found)

    assert held(1000) == 0  # eight megabytes each
    assert 0 < held(300) <= 1 << 24


def test_what_a_jitted_function_met_before_is_not_kept_alive() -> None:
    own: dict[str, Any] = {"__name__": "own", "ft": ft, "c": np.ones(3)}
    reference = weakref.ref(own["c"])
    exec("j = ft.jit(lambda x: x * c)\nf = lambda x: j(x)", own)
    own["j"](np.ones(3))
    own["c"] = np.zeros(3)
    ft.jit(own["f"])(np.ones(3))
    del own["j"], own["f"]
    gc.collect()
    assert reference() is None


def test_views_keep_nothing_alive() -> None:
    big = np.zeros(100_000)
    reference = weakref.ref(big)
    view = big[:3]
    other = view[1:]
    ft.jit(lambda x: x * view)(1.0)
    ft.jit(lambda x: x * view[1:])(1.0)
    ft.jit(lambda x: x * other)(1.0)
    big = view = other = None
    gc.collect()
    assert reference() is None


def test_many_bytes_are_not_compared(runs: list[int]) -> None:
    few, many = [np.ones(60_000)] * 3, [np.ones(60_000) for _ in range(3)]
    for arrays in (few, many):
        for _ in range(2):
            ft.jit(lambda x, arrays=arrays: x * arrays[0][0] * len(arrays))(1.0)
    assert len(runs) == 1 + 2


def test_closures_take_turns(runs: list[int]) -> None:
    values = (1.0, 2.0, 2, True, -1.0)
    for _ in range(3):
        for value in values:
            assert ft.jit(closed(value))(X) == 3.0 * value
    assert len(runs) == len(values)


def test_objects_are_told_apart() -> None:
    """Also those that are equal, or have nothing in them, or come where another one was."""

    class Mark:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    marks = [Mark(), Mark()]

    def scaled(mark: Any) -> Any:
        return ft.jit(lambda x: x if mark is marks[0] else 2.0 * x)(1.0)

    assert [scaled(mark) for mark in (*marks, *marks)] == [1.0, 2.0, 1.0, 2.0]
    found = []
    for i in range(30):
        model = Model()
        model.weights = np.full(2, float(i))
        found.append(float(ft.jit(model.loss)(np.ones(2))))
        del model
    assert found == [2.0 * i for i in range(30)]


def test_functions_that_change_or_draw_something_share_nothing(runs: list[int]) -> None:
    counter = [0]

    def counts(x: Any) -> Any:
        counter[0] += 1
        return x * counter[0]

    assert [float(ft.jit(counts)(1.0)) for _ in range(3)] == [1.0, 2.0, 3.0]
    numbers = iter(range(10))
    assert [float(ft.jit(lambda x: x + next(numbers))(0.0)) for _ in range(3)] == [0.0, 1.0, 2.0]
    generator = np.random.default_rng(0)
    with pytest.warns(UserWarning, match="the generator generator"):
        assert len({float(ft.jit(lambda x: x + generator.normal())(0.0)) for _ in range(3)}) == 3

    def draws(x: Any) -> Any:
        return x + np.random.normal()  # noqa: NPY002  # the global one

    with pytest.warns(UserWarning, match="global generator"):
        assert len({float(ft.jit(draws)(0.0)) for _ in range(3)}) == 3


class Big:
    """Something that says when it is gone."""

    def __init__(self) -> None:
        self.values = np.ones(3)
        self.fixed = np.ones(3)
        self.fixed.flags.writeable = False

    def method(self, x: Any) -> Any:
        return np.sum(self.values * x)

    def constant(self, x: Any) -> Any:
        return np.sum(self.fixed * x)


def _closed_over(big: Big) -> Any:
    values = big.values
    return lambda x: np.sum(values * x)


def _ruled(big: Big) -> Any:
    @ft.custom_jvp
    def f(x: Any) -> Any:
        return np.sum(big.values * x)

    f.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
    return lambda x: f(x)


HELD: dict[str, Callable[[Big], Any]] = {
    "method": lambda big: big.method,
    "method with a constant": lambda big: big.constant,
    "closure": lambda big: lambda x: np.sum(big.values * x),
    "closure over an array": _closed_over,
    "partial": lambda big: functools.partial(Big.method, big),
    "grad": lambda big: ft.grad(big.method),
    "rule": _ruled,
}


@pytest.mark.parametrize("name", HELD)
def test_nothing_is_kept_alive(name: str) -> None:
    def use() -> tuple[Any, Any]:
        big = Big()
        for _ in range(3):
            ft.jit(HELD[name](big))(np.ones(3))
        return weakref.ref(big), weakref.ref(big.values)

    for reference in use():
        gc.collect()
        assert reference() is None


def test_programs_of_code_that_is_gone_are_few_and_forgotten() -> None:
    with ft.config(native=False):
        for i in range(600):
            exec(f"def f(x): return x + {i}", names := {"np": np})
            ft.jit(names["f"])(1.0)
            assert counted()["programs by code"] <= 512
    ft.clear_caches()
    assert counted()["programs by code"] == 0


def test_a_function_forgets_its_programs(runs: list[int]) -> None:
    for _ in range(2):
        ft.jit(of_box)(X)
        ft.jit(of_box).clear_cache()
    assert len(runs) == 2
