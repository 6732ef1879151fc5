"""``jit`` of imperative steps: the rule for state; effects go where they belong.

Each case changes one thing between two calls, in one of the ways in which Python code can read it:
what the function names itself counts, what is declared counts, and the rest is constant.
"""

import array
import collections
import contextvars
import copy
import ctypes
import functools
import operator
import os
import sys
import types
import weakref
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
from functrans.autograd import from_numpy, no_grad, tensor
from functrans.compat.torch import nn, ones, set_default_dtype, zeros
from functrans.errors import UnsupportedOperationError

X = np.array([1.0, 2.0, 3.0])
RATE = 2.0
TENSOR = tensor(2.0)


# what a step reads --------------------------------------------------------------------------------


class Box:
    """Something with attributes."""

    shared = 2.0

    def __init__(self, k: float = 2.0) -> None:
        self.k = k
        self.unread = 0


class WithSlots:
    __slots__ = ("__hidden", "k")

    def __init__(self) -> None:
        self.k = 2.0
        self.__hidden = 2.0

    def read(self) -> float:
        return self.__hidden

    def set(self, value: float) -> None:
        self.__hidden = value


class Point:
    __match_args__ = ("k",)

    def __init__(self, k: float) -> None:
        self.k = k


class Meta(type):
    rate = 2.0


class WithMeta(metaclass=Meta):
    pass


def helper(x: Any) -> Any:
    return x * helper.rate  # type: ignore[attr-defined]  # set below


helper.rate = 2.0  # type: ignore[attr-defined]  # read by the function


def with_default(x: Any, k: float = 2.0) -> Any:
    return x * k


def by_position(point: Any, x: Any) -> Any:
    match point:
        case Point(k):
            return x * k
    return x


def in_comprehension() -> Any:
    def change(k: float) -> None:
        globals()["RATE"] = k

    return lambda x: sum([x * RATE for _ in range(1)]), change


def in_inner_function() -> Any:
    def step(x: Any) -> Any:
        def inner() -> Any:
            return x * RATE

        return inner()

    def change(k: float) -> None:
        globals()["RATE"] = k

    return step, change


def a_global_tensor() -> Any:
    def change(k: float) -> None:
        globals()["TENSOR"] = tensor(k)

    return lambda x: (lambda: x * TENSOR)(), change


def a_late_global() -> Any:
    globals().pop("LATE", None)

    def step(x: Any) -> Any:
        try:
            return x * LATE  # type: ignore[name-defined]  # defined by the change
        except NameError:
            return x * 2.0

    def change(k: float) -> None:
        globals()["LATE"] = k

    return step, change


def an_attribute_of_a_tensor() -> Any:
    w = nn.Parameter(ones(3))
    w.scale = 2.0
    return lambda x: (x * w.scale).detach(), lambda k: setattr(w, "scale", k)


def an_element_of_an_array() -> Any:
    numbers = np.array([2.0])
    return lambda x: x * float(numbers[0]), lambda k: numbers.fill(k), numbers


def an_element_of_a_large_array() -> Any:
    numbers = np.full(20_000, 2.0)
    return lambda x: x * float(numbers[-1]), lambda k: numbers.fill(k), numbers


def a_branch_on_an_array() -> Any:
    numbers = np.array([2.0])
    return lambda x: x * (2.0 if numbers[0] < 3 else 5.0), lambda k: numbers.fill(k), [numbers]


def a_copy_of_an_array() -> Any:
    numbers = np.array([2.0])
    return lambda x: x * tensor(numbers), lambda k: numbers.fill(k)


def a_copy_of_a_large_array() -> Any:
    numbers = np.full(20_000, 2.0)
    return lambda x: x * tensor(numbers)[:3], lambda k: numbers.fill(k)


def the_attribute_of_a_function() -> Any:
    return helper, lambda k: setattr(helper, "rate", k)


def defaults_of_a_function() -> Any:
    return (
        lambda x: with_default(x),
        lambda k: setattr(with_default, "__defaults__", (k,)),
        lambda: with_default.__defaults__,
    )


def code_of_a_function() -> Any:
    def f(x: Any) -> Any:
        return x * 2.0

    def g(x: Any) -> Any:
        return x * 5.0

    return (lambda x: f(x)), lambda _: setattr(f, "__code__", g.__code__), lambda: id(f.__code__)


def an_import_inside() -> Any:
    module = sys.modules["made_for_the_test"] = types.ModuleType("made_for_the_test")
    module.k = 2.0  # type: ignore[attr-defined]  # made here

    def step(x: Any) -> Any:
        from made_for_the_test import k  # type: ignore[import-not-found]  # made above

        return x * k

    return step, lambda k: setattr(module, "k", k), lambda: module.k


def an_inner_jit() -> Any:
    box = Box()
    inner = ft.jit(lambda x: x * box.k)
    return lambda x: inner(x) * 1.0, lambda k: setattr(box, "k", k)


def _container(value: Any, get: Callable[[Any], float], put: Callable[[Any, float], Any]) -> Any:
    def made() -> Any:
        holder = copy.copy(value)
        return lambda x: x * get(holder), lambda k: put(holder, k), lambda: get(holder)

    return made


def _put_item(holder: Any, k: float) -> None:
    holder["k"] = k


def _put_first(holder: Any, k: float) -> None:
    holder[0] = k


def a_proxy() -> Any:
    inner = {"k": 2.0}
    proxy = types.MappingProxyType(inner)
    return lambda x: x * proxy["k"], lambda k: inner.update(k=k), inner


def a_view_of_memory() -> Any:
    view = memoryview(array.array("d", [2.0]))
    return lambda x: x * view[0], lambda k: _put_first(view, k), lambda: view.tolist()


def a_generic_function() -> Any:
    state = [2.0]

    @functools.singledispatch
    def rate(_: Any) -> float:
        return state[0]

    return lambda x: x * rate(1), lambda k: _put_first(state, k), state


def an_attribute_of_an_element() -> Any:
    element = ElementTree.fromstring("<a rate='2.0'/>")
    return (
        lambda x: x * float(element.get("rate", "")),
        lambda k: element.set("rate", str(k)),
        lambda: element.attrib,
    )


def an_attribute_of_an_object_that_a_helper_reads() -> Any:
    box = Box()
    return lambda x: read_by_a_helper(box, x), lambda k: setattr(box, "k", k), lambda: vars(box)


def read_by_a_helper(box: Any, x: Any) -> Any:
    return x * box.k


def a_global_of_a_helper() -> Any:
    def change(k: float) -> None:
        globals()["RATE"] = k

    return lambda x: by_the_rate(x), change, lambda: RATE


def by_the_rate(x: Any) -> Any:
    return x * RATE


def an_environment_variable() -> Any:
    os.environ["FUNCTRANS_TEST_RATE"] = "2.0"

    def rate() -> float:
        return float(os.environ["FUNCTRANS_TEST_RATE"])

    def change(k: float) -> None:
        os.environ["FUNCTRANS_TEST_RATE"] = str(k)

    return lambda x: x * rate(), change, rate


def a_number_of_a_method() -> Any:
    box = types.SimpleNamespace(parts=types.SimpleNamespace(k=2.0))
    return lambda x: x * box.parts.k, lambda k: setattr(box.parts, "k", k), [lambda: box.parts.k]


def a_weak_reference() -> Any:
    box = Box()
    reference = weakref.ref(box)
    return lambda x: x * reference().k, lambda k: setattr(box, "k", k), lambda: reference().k  # type: ignore[union-attr]  # alive


def a_context_variable() -> Any:
    variable: contextvars.ContextVar[float] = contextvars.ContextVar("variable")
    variable.set(2.0)
    return lambda x: x * variable.get(), lambda k: variable.set(k), variable.get


def the_length_of_a_deque() -> Any:
    items = collections.deque([1, 1])
    return lambda x: x * len(items), lambda k: items.extend([1] * (int(k) - 2)), lambda: len(items)


def the_order_of_a_dictionary() -> Any:
    items = collections.OrderedDict(a=2.0, b=5.0)
    return lambda x: x * next_value(items), lambda _: items.move_to_end("a")


def next_value(items: Any) -> Any:
    return next(iter(items.values()))


def the_class_of_an_object() -> Any:
    class A:
        def rate(self) -> float:
            return 2.0

    class B(A):
        def rate(self) -> float:
            return 5.0

    a = A()
    return lambda x: x * a.rate(), lambda _: setattr(a, "__class__", B), lambda: a.rate()


def a_metaclass() -> Any:
    return lambda x: x * WithMeta.rate, lambda k: setattr(Meta, "rate", k)


def a_class_attribute() -> Any:
    return lambda x: x * Box.shared, lambda k: setattr(Box, "shared", k)


def a_hidden_slot() -> Any:
    box = WithSlots()
    return lambda x: x * box.read(), box.set, box.read


def a_stored_getter() -> Any:
    box = Box()
    get = operator.attrgetter("".join(["k"]))
    return lambda x: x * get(box), lambda k: setattr(box, "k", k), functools.partial(get, box)


def getattr_by_another_name() -> Any:
    box, name = Box(), "".join(["k"])
    return (
        lambda x, read=getattr: x * read(box, name),
        lambda k: setattr(box, "k", k),
        lambda: box.k,
    )


def a_pattern() -> Any:
    point = Point(2.0)
    return lambda x: by_position(point, x), lambda k: setattr(point, "k", k), lambda: point.k


def the_default_dtype() -> Any:
    def step(x: Any) -> Any:
        return x * (2.0 if ones(1).dtype == np.float32 else 5.0)

    return step, lambda _: set_default_dtype(np.dtype(np.float64))


NAMED = [
    a_class_attribute,
    a_copy_of_a_large_array,
    a_copy_of_an_array,
    a_global_tensor,
    a_late_global,
    a_metaclass,
    an_attribute_of_a_tensor,
    an_inner_jit,
    in_comprehension,
    in_inner_function,
    the_attribute_of_a_function,
    the_default_dtype,
    the_order_of_a_dictionary,
]
"""What the function names itself, and what depends on nothing that Python code reads."""

UNNAMED = [
    a_branch_on_an_array,
    a_context_variable,
    a_generic_function,
    a_global_of_a_helper,
    a_hidden_slot,
    a_number_of_a_method,
    a_pattern,
    a_proxy,
    a_stored_getter,
    a_view_of_memory,
    a_weak_reference,
    an_attribute_of_an_element,
    an_attribute_of_an_object_that_a_helper_reads,
    an_element_of_a_large_array,
    an_element_of_an_array,
    an_environment_variable,
    an_import_inside,
    code_of_a_function,
    defaults_of_a_function,
    getattr_by_another_name,
    the_class_of_an_object,
    the_length_of_a_deque,
    pytest.param(
        _container(collections.UserDict(k=2.0), lambda h: h["k"], _put_item), id="a UserDict"
    ),
    pytest.param(
        _container(collections.ChainMap({"k": 2.0}), lambda h: h["k"], _put_item), id="a ChainMap"
    ),
    pytest.param(_container(collections.deque([2.0]), lambda h: h[0], _put_first), id="a deque"),
    pytest.param(
        _container(array.array("d", [2.0]), lambda h: h[0], _put_first), id="an array.array"
    ),
    pytest.param(
        _container(bytearray(b"\x02"), lambda h: h[0], lambda h, k: _put_first(h, int(k))),
        id="a bytearray",
    ),
    pytest.param(
        _container(ctypes.c_double(2.0), lambda h: h.value, lambda h, k: setattr(h, "value", k)),
        id="a ctypes number",
    ),
]
"""What other code reads, or what is in objects that do not say what they hold."""


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    globals().update(RATE=2.0, TENSOR=tensor(2.0))
    globals().pop("LATE", None)
    helper.rate = 2.0  # type: ignore[attr-defined]  # as at first
    with_default.__defaults__ = (2.0,)
    Meta.rate = Box.shared = 2.0
    set_default_dtype(np.dtype(np.float32))
    sys.modules.pop("made_for_the_test", None)
    os.environ.pop("FUNCTRANS_TEST_RATE", None)


@pytest.mark.parametrize("case", NAMED)
def test_what_the_function_names_is_seen(case: Callable[[], Any]) -> None:
    function, change = case()
    step = ft.jit(function)
    assert_allclose(step(tensor(X)).numpy(), 2.0 * X)
    change(5.0)
    assert_allclose(step(tensor(X)).numpy(), 5.0 * X)
    assert_allclose(step(tensor(X)).numpy(), 5.0 * X)


@pytest.mark.parametrize("case", UNNAMED)
def test_what_is_declared_is_seen(case: Callable[[], Any]) -> None:
    function, change, state = case()
    step = ft.jit(function, state=state)
    for _ in range(2):
        assert_allclose(step(tensor(X)).numpy(), 2.0 * X)
    assert step.cache_size == 1
    change(5.0)
    for _ in range(2):
        assert_allclose(step(tensor(X)).numpy(), 5.0 * X)
    assert step.cache_size == 2


@pytest.mark.parametrize("case", UNNAMED)
def test_what_is_neither_named_nor_declared_is_a_constant(case: Callable[[], Any]) -> None:
    function, change, _ = case()
    step = ft.jit(function)
    for k in (2.0, 5.0):
        change(k)
        step.clear_cache()
        expected = step(tensor(X)).numpy()
        change(7.0)
        assert_allclose(step(tensor(X)).numpy(), expected)


def test_the_sign_of_zero_counts() -> None:
    box = Box(0.0)
    step = ft.jit(lambda x: x / (x * box.k))
    assert_array_equal(step(tensor(X)).numpy(), np.full(3, np.inf))
    box.k = -0.0
    assert_array_equal(step(tensor(X)).numpy(), np.full(3, -np.inf))


def test_attributes_of_arguments_count() -> None:
    step = ft.jit(lambda x: x * x.scale)
    a, b = tensor(X), tensor(X)
    a.scale, b.scale = 2.0, 5.0
    assert_allclose(step(a).numpy(), 2.0 * X)
    assert_allclose(step(b).numpy(), 5.0 * X)
    a.scale = 3.0
    assert_allclose(step(a).numpy(), 3.0 * X)


def _generator() -> Iterator[float]:
    while True:
        yield 2.0


@pytest.mark.parametrize("make", [_generator, lambda: iter([1.0, 2.0]), lambda: enumerate([1.0])])
def test_iterators_are_refused(make: Callable[[], Any]) -> None:
    items = make()
    step = ft.jit(lambda x: x * next(items))
    with pytest.raises(UnsupportedOperationError, match="can reach items, an iterator"):
        step(tensor(X))


def test_what_is_not_read_does_not_count() -> None:
    box = Box()
    step = ft.jit(lambda x: x * box.k)
    for _ in range(4):
        assert_allclose(step(tensor(X)).numpy(), 2.0 * X)
        box.unread += 1
    assert step.cache_size == 1


# where effects go ---------------------------------------------------------------------------------


def test_arguments_are_written_to_each_in_its_call() -> None:
    step = ft.jit(lambda e, p: e.mul_(0.5).add_(p, alpha=0.5))
    averages = [tensor(np.zeros(3)) for _ in range(3)]
    for i, average in enumerate(averages, 1):
        assert step(average, tensor(i * X)) is average
    for i, average in enumerate(averages, 1):
        assert_allclose(average.numpy(), 0.5 * i * X)
    step(tensor(np.ones(3)), tensor(X))  # a temporary
    last = tensor(np.zeros(3))
    step(last, tensor(X))
    assert_allclose(last.numpy(), 0.5 * X)


def test_views_as_arguments_are_written_to() -> None:
    step = ft.jit(lambda x: x.mul_(2.0).sum())
    for _ in range(2):
        base = tensor(np.ones(4))
        step(base[1:3])
        assert_array_equal(base.numpy(), [1.0, 2.0, 2.0, 1.0])


def test_gradients_of_arguments() -> None:
    step = ft.jit(lambda x: (x * x).sum().backward())
    tensors = [tensor(i * X, requires_grad=True) for i in range(1, 4)]
    for x in tensors:
        step(x)
    for i, x in enumerate(tensors, 1):
        assert_allclose(x.grad.numpy(), 2 * i * X)
    for x in tensors:
        step(x)  # added to
    for i, x in enumerate(tensors, 1):
        assert_allclose(x.grad.numpy(), 4 * i * X)
    clear = ft.jit(lambda x: setattr(x, "grad", None))
    for x in tensors:
        clear(x)
        assert x.grad is None


def test_gradients_of_arguments_are_read() -> None:
    read = ft.jit(lambda x: x.grad * 2.0)
    for i in (1.0, 2.0):
        x = tensor(X, requires_grad=True)
        x.grad = tensor(i * X)
        assert_allclose(read(x).numpy(), 2 * i * X)


def test_hooks_of_arguments() -> None:
    step = ft.jit(lambda x: (x * x).sum().backward())
    a, b = tensor(X, requires_grad=True), tensor(X, requires_grad=True)
    b.register_hook(lambda g: 10.0 * g)
    step(a)
    step(b)
    assert_allclose(a.grad.numpy(), 2 * X)
    assert_allclose(b.grad.numpy(), 20 * X)


def test_gradients_are_added_to_in_their_memory() -> None:
    flat = tensor(np.zeros(6))
    a, b = tensor(np.ones(3), requires_grad=True), tensor(np.ones(3), requires_grad=True)
    a.grad, b.grad = flat[:3], flat[3:]

    def step(x: Any) -> Any:
        (a * x + 2.0 * b * x).sum().backward()
        return flat.norm()

    fast = ft.jit(step)
    for n in (1, 2, 3):
        assert_allclose(fast(tensor(X)).item(), n * np.linalg.norm([*X, *(2 * X)]))
        assert_allclose(flat.numpy(), n * np.array([*X, *(2 * X)]))


def test_one_tensor_as_two_gradients() -> None:
    total = tensor(np.zeros(3))
    a, b = tensor(np.ones(3), requires_grad=True), tensor(np.ones(3), requires_grad=True)
    a.grad = b.grad = total
    step = ft.jit(lambda x: (a * x + 2.0 * b * x).sum().backward())
    for n in (1, 2):
        step(tensor(X))
        assert a.grad is total
        assert b.grad is total
        assert_allclose(total.numpy(), 3 * n * X)


def test_a_gradient_that_is_held_elsewhere() -> None:
    w = tensor(np.ones(3), requires_grad=True)
    held = w.grad = tensor(np.zeros(3))
    step = ft.jit(lambda x: (w * x).sum().backward())
    step(tensor(X))
    step(tensor(X))
    assert w.grad is held
    assert_allclose(held.numpy(), 2 * X)
    clear = ft.jit(lambda: w.grad.zero_())
    clear()
    assert_array_equal(held.numpy(), np.zeros(3))


@pytest.mark.parametrize(
    "read",
    [
        lambda v: v.detach().clone(),
        lambda v: v.data * 1.0,
        lambda v: v,
        lambda v: v * 1.0,
        lambda v: v[0:].detach() + 0.0,
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_views_follow_what_is_written_to_their_base(read: Any, inside: bool) -> None:
    state = tensor(np.ones(3))

    def step(x: Any) -> Any:
        w = x * 0.0 + 1.0 if inside else state
        v = w[1:]
        w.add_(x)
        return read(v)

    for n in (1, 2):
        times = 1 if inside else n
        assert_allclose(ft.jit(step)(tensor(X)).numpy(), (1.0 + times * X)[1:])


@pytest.mark.parametrize(
    "update",
    [
        lambda p, g: p.data.sub_(0.5 * g),
        lambda p, g: p.detach().sub_(0.5 * g),
        lambda p, g: p.data.copy_(p.data - 0.5 * g),
        lambda p, g: p.data.mul_(1.0).add_(g, alpha=-0.5),
    ],
)
def test_updates_through_data(update: Any) -> None:
    w = tensor(np.ones(3), requires_grad=True)

    def step(x: Any) -> None:
        w.grad = None
        (w * w * x).sum().backward()
        update(w, w.grad)

    fast = ft.jit(step)
    expected = np.ones(3)
    for _ in range(3):
        fast(tensor(0.1 * X))
        expected = expected - 0.5 * 2 * expected * 0.1 * X
        assert_allclose(w.numpy(force=True), expected, rtol=1e-14)
    assert w.requires_grad
    assert w.is_leaf


@pytest.mark.parametrize(
    ("step", "state"),
    [
        (lambda st, x: st.update(h=st["h"] * 0.5 + x), {"h": tensor(np.zeros(3))}),
        (lambda st, x: st.append(x * 2.0), [tensor(np.zeros(3))]),
        (lambda st, x: st.clear(), {"h": tensor(np.zeros(3))}),
    ],
)
def test_what_a_step_stores_in_an_argument_is_refused(step: Any, state: Any) -> None:
    before = copy.copy(state)
    with pytest.raises(UnsupportedOperationError, match="container among its arguments"):
        ft.jit(step)(state, tensor(X))
    assert list(state) == list(before)


def test_memory_that_arguments_share_is_noticed_in_later_calls() -> None:
    def step(x: Any, y: Any) -> Any:
        x.mul_(2.0)
        return x + y

    fast = ft.jit(step)
    fast(tensor(X), tensor(X))
    a = tensor(X)
    with pytest.raises(UnsupportedOperationError, match="shares"):
        fast(a, a[:])
    assert_array_equal(a.numpy(), X)
    w = tensor(X, requires_grad=True)
    recorded = ft.jit(lambda x, y: (x.mul_(2.0) * 1.0, (w * y).sum())[1])
    recorded(tensor(X), tensor(X))
    with pytest.raises(UnsupportedOperationError, match="shares"):
        recorded(a, a[:])


def test_what_requires_a_gradient_is_not_changed_by_a_step() -> None:
    x = tensor(X)
    with pytest.raises(UnsupportedOperationError, match="requires a gradient; do it outside"):
        ft.jit(lambda x: x.requires_grad_().sum())(x)
    assert not x.requires_grad
    state, w = tensor(np.zeros(3)), tensor(X, requires_grad=True)
    with pytest.raises(UnsupportedOperationError, match=r"state that requires a gradient"):
        ft.jit(lambda x: state.add_(w * x).sum())(x)
    assert_array_equal(state.numpy(), np.zeros(3))


# results ------------------------------------------------------------------------------------------


def test_results_require_gradients_one_by_one() -> None:
    w = tensor(X, requires_grad=True)

    def step(x: Any) -> Any:
        out = w * x
        made = zeros(3).requires_grad_()
        twice = x * 2.0
        return out, out.detach(), x * 1.0, made, twice, twice

    out, detached, constant, made, one, two = ft.jit(step)(tensor(X))
    assert out.requires_grad
    assert not detached.requires_grad
    assert not constant.requires_grad
    assert made.requires_grad
    assert made.is_leaf
    assert one is two
    out.sum().backward()
    assert_allclose(w.grad.numpy(), X)


def test_parameters_made_inside() -> None:
    def step(x: Any) -> Any:
        p = nn.Parameter(x * 1.0)
        (p * p).sum().backward()
        return p.grad

    assert_allclose(ft.jit(step)(tensor(X)).numpy(), 2 * X)


def test_jit_inside_jit() -> None:
    w = tensor(X, requires_grad=True)

    @ft.jit
    def loss(x: Any) -> Any:
        return (w * x).pow(2).sum()

    @ft.jit
    def step(x: Any) -> Any:
        w.grad = None
        value = loss(x)
        value.backward()
        with no_grad():
            w.sub_(0.1 * w.grad)
        return value

    expected = X.copy()
    for _ in range(3):
        assert_allclose(step(tensor(X)).item(), ((expected * X) ** 2).sum())
        expected = expected - 0.1 * 2 * expected * X * X
        assert_allclose(w.numpy(force=True), expected)


def test_arrays_shared_by_tensors_of_a_step() -> None:
    memory = np.ones(3)
    step = ft.jit(lambda x: from_numpy(memory).mul_(2.0).sum() + x.sum())
    assert step(tensor(X)).item() == 12.0
    assert step(tensor(X)).item() == 18.0
    assert_array_equal(memory, np.full(3, 4.0))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x.gather(1, i),
        lambda x, i: x.scatter(1, i, 0.5),
        lambda x, i: x.scatter_add(1, i, x * 2.0),
        lambda x, i: x.index_select(1, i[0]),
        lambda x, i: x.index_add(1, i[0], x),
        lambda x, i: x.take(i),
        lambda x, i: x.take_along_dim(i, 1),
        lambda x, i: x * nn.functional.one_hot(i[:, 0], 3),
    ],
)
def test_indices_are_arguments(function: Any) -> None:
    x = tensor(np.arange(9.0).reshape(3, 3) + 0.5, requires_grad=True)
    fast = ft.jit(function)
    for seed in (0, 1):
        i = tensor(np.random.default_rng(seed).permuted(np.tile(np.arange(3), (3, 1)), axis=1))
        expected, found = function(x, i), fast(x, i)
        assert_allclose(found.numpy(force=True), expected.numpy(force=True))
        expected.sin().sum().backward()
        wanted, x.grad = x.grad, None
        found.sin().sum().backward()
        assert_allclose(x.grad.numpy(), wanted.numpy())
        x.grad = None
    assert fast.cache_size == 1


def test_transforms_of_a_jitted_function_on_tensors() -> None:
    w = tensor([3.0, 4.0])
    f = ft.jit(lambda u: (w * u).sum())
    for _ in range(2):
        assert_allclose(np.asarray(ft.grad(f)(np.array([1.0, 2.0]))), [3.0, 4.0])
        assert f(tensor([1.0, 2.0])).item() == 11.0
    assert_allclose(np.asarray(ft.vmap(f)(np.eye(2))), [3.0, 4.0])


def test_hooks_of_all_modules_count() -> None:
    layer = nn.Linear(3, 3, bias=False)
    layer.weight.data = tensor(np.eye(3, dtype=np.float32))
    step = ft.jit(lambda x: layer(x).detach())
    x = tensor(X.astype(np.float32))
    assert_allclose(step(x).numpy(), X)
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, out: out * 2.0)
    assert_allclose(step(x).numpy(), 2 * X)
    handle.remove()
    assert_allclose(step(x).numpy(), X)


def test_views_that_would_lose_their_memory_are_not_kept() -> None:
    box = types.SimpleNamespace(a=None, b=None)

    def step(x: Any) -> None:
        box.a = x * 2.0
        box.b = box.a[:2]

    with pytest.raises(UnsupportedOperationError, match="keeps tensors on the same memory in box"):
        ft.jit(step)(tensor(X))
    assert box.a is None


def test_a_step_that_changes_the_shape_of_what_was_there_is_refused() -> None:
    x = tensor([[1.0, 2.0, 3.0]])
    for turn in (lambda: x.t_(), lambda: (x[0], x.t_())):
        with pytest.raises(UnsupportedOperationError, match=r"shape .* from \(1, 3\) to \(3, 1\)"):
            ft.jit(turn)()
        assert x.shape == (1, 3)
    assert ft.jit(lambda: (x.t_(), x.t_(), x * 2)[2])().shape == (1, 3)
