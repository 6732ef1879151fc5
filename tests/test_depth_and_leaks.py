"""Depth and memory: long chains, what a derivative keeps, when it lets go, and reference cycles."""

import gc
import sys
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans import functional
from functrans.compat import torch
from functrans.core.state import open_traces
from functrans.errors import NestingError, NonDifferentiableError
from functrans.passes import pullback
from functrans.passes.pullback import _derived_pullback, _Params
from functrans.passes.recording import RecordingTracer
from functrans.primitives import elementwise as ew
from functrans.scipy.integrate import odeint
from functrans.testing import random_like
from samples import Row, each_sample

X = np.array([0.5, -1.0, 2.0])
DEPTH = 100_000


# depth ------------------------------------------------------------------------------------------


def chain(x: Any) -> Any:
    for _ in range(DEPTH // 2):
        x = np.sin(x) * 1.0001
    return x


@pytest.fixture(scope="module")
def slope() -> float:
    """The derivative of the chain at 0.5, in plain NumPy."""
    x, t = np.float64(0.5), np.float64(1.0)
    for _ in range(DEPTH // 2):
        x, t = np.sin(x) * 1.0001, t * np.cos(x) * 1.0001
    return float(t)


@pytest.fixture(autouse=True)
def shallow_stack() -> Iterator[None]:
    """Recursion in the length of a chain would fail at once."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(min(limit, 600))
    yield
    sys.setrecursionlimit(limit)


def test_a_long_chain_is_differentiated_in_every_mode(slope: float) -> None:
    np.testing.assert_allclose(ft.grad(chain)(0.5), slope, rtol=1e-9)
    np.testing.assert_allclose(ft.jvp(chain, (0.5,), (1.0,))[1], slope, rtol=1e-9)
    out, pushforward = ft.linearize(chain, 0.5)
    np.testing.assert_allclose(pushforward(1.0), slope, rtol=1e-9)
    del out, pushforward
    _, pull = ft.vjp(chain, 0.5)
    np.testing.assert_allclose(pull(1.0)[0], slope, rtol=1e-9)


def test_second_derivatives_of_a_long_chain() -> None:
    forward_over_reverse = ft.hvp(chain, (0.5,), (1.0,))
    np.testing.assert_allclose(ft.grad(ft.grad(chain))(0.5), forward_over_reverse, rtol=1e-9)


def test_a_long_program_prints_and_runs() -> None:
    program = ft.make_jaxpr(chain)(0.5)
    assert len(program.eqns) == DEPTH
    assert str(program).count("\n") > DEPTH
    np.testing.assert_allclose(ft.eval_jaxpr(program, None, 0.5)[0], chain(0.5))
    np.testing.assert_allclose(ft.vmap(chain)(np.array([0.5, 0.25])), [chain(0.5), chain(0.25)])


def test_a_long_linear_program_is_transposed() -> None:
    def scaled(x: Any) -> Any:
        for _ in range(DEPTH):
            x = x * 1.00001
        return x

    (ct,) = ft.linear_transpose(scaled, 1.0)(1.0)
    np.testing.assert_allclose(ct, 1.00001**DEPTH)


def test_a_wide_sum_is_differentiated() -> None:
    def fun(x: Any) -> Any:
        return sum((x * k for k in range(20_000)), x)

    assert ft.grad(fun)(1.0) == 1 + sum(range(20_000))


# memory -----------------------------------------------------------------------------------------

N = 100_000  # elements of an array, 0.8 MB


def peak_arrays(call: Callable[[], Any]) -> float:
    """The peak of traced memory during a call, in arrays of N doubles."""
    gc.collect()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / (8 * N)
    finally:
        tracemalloc.stop()


def sines(x: Any) -> Any:
    for _ in range(40):
        x = np.sin(x)
    return np.sum(x)


def test_a_gradient_needs_the_memory_of_its_residuals() -> None:
    x = np.ones(N)
    assert peak_arrays(lambda: ft.grad(sines)(x)) < 40 + 8


def test_what_is_linear_keeps_nothing() -> None:
    def fun(x: Any) -> Any:
        for _ in range(40):
            x = x * 2.0 + 1.0 - x
        return np.sum(x)

    x = np.ones(N)
    assert peak_arrays(lambda: ft.grad(fun)(x)) < 8


def test_dead_branches_are_freed_at_once() -> None:
    def fun(x: Any) -> Any:
        for _ in range(40):
            np.exp(x * 2.0) * np.sin(x)
        return np.sum(x)

    x = np.ones(N)
    for call in (lambda: ft.grad(fun)(x), lambda: ft.jvp(fun, (x,), (x,))):
        assert peak_arrays(call) < 9


def test_forward_mode_needs_no_tape() -> None:
    x = np.ones(N)
    assert peak_arrays(lambda: ft.jvp(sines, (x,), (x,))) < 9


def test_a_pushforward_frees_tangents_after_their_last_use() -> None:
    x = np.ones(N)
    _, pushforward = ft.linearize(sines, x)
    assert peak_arrays(lambda: pushforward(x)) < 6


def test_a_pullback_frees_cotangents_after_their_last_use() -> None:
    _, pull = ft.vjp(sines, np.ones(N))
    assert peak_arrays(lambda: pull(1.0)) < 6


def test_residuals_are_freed_as_the_backward_pass_proceeds(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[float] = []
    pull = pullback.pull

    def noting(*args: Any) -> Any:
        sizes.append(tracemalloc.get_traced_memory()[0] / (8 * N))
        return pull(*args)

    monkeypatch.setattr(pullback, "pull", noting)
    x = np.ones(N)
    for transform in (ft.grad, ft.value_and_grad):
        sizes.clear()
        peak_arrays(lambda: transform(sines)(x))  # noqa: B023  # called at once
        assert sizes[0] > 35
        assert sizes[len(sizes) // 2] < 25
        assert sizes[-1] < 8


def test_a_row_that_was_read_does_not_keep_the_array() -> None:
    def fun(x: Any) -> Any:
        total = 0.0
        for _ in range(40):
            total = total + np.sin((x * 2.0)[0]) * 3.0
        return total

    x = np.ones(N)
    assert peak_arrays(lambda: ft.grad(fun)(x)) < 9


def test_intermediate_values_die_with_their_names() -> None:
    seen = []

    def fun(x: Any) -> Any:
        y = np.exp(x)  # its derivative reads it
        z = x * 2.0  # its derivative does not
        seen.extend([weakref.ref(y._value), weakref.ref(z._value)])
        z = z + 1.0
        assert seen[1]() is None
        total = np.sum(y + z)
        del y
        assert seen[0]() is not None
        return total

    ft.grad(fun)(np.ones(N))
    assert seen[0]() is None


# reference cycles -------------------------------------------------------------------------------


def fun(x: Any) -> Any:
    y = np.sin(x) * np.where(x > 0, x, np.exp(x)) * x[0]
    y[1:] += np.sort(x)[:-1]
    return np.sum(y) + np.max(x) * (x @ x) + np.linalg.norm(x)


def attempt(call: Callable[[], Any]) -> None:
    """A call that raises."""
    try:
        call()
    except Exception:
        return
    raise AssertionError("it did not raise")


BUFFER = np.zeros(3)
CALLS: dict[str, Callable[[], Any]] = {
    "grad": lambda: ft.grad(fun)(X),
    "value_and_grad with aux": lambda: ft.value_and_grad(lambda x: (fun(x), x), has_aux=True)(X),
    "vjp": lambda: ft.vjp(fun, X)[1](1.0),
    "jvp": lambda: ft.jvp(fun, (X,), (X,)),
    "linearize": lambda: ft.linearize(fun, X)[1](X),
    "linear_transpose": lambda: ft.linear_transpose(lambda x: 3 * x, X)(X),
    "vmap": lambda: ft.vmap(fun)(np.stack([X, X])),
    "jacfwd": lambda: ft.jacfwd(lambda x: np.sin(x) * x[0])(X),
    "jacrev": lambda: ft.jacrev(lambda x: np.sin(x) * x[0])(X),
    "hessian": lambda: ft.hessian(fun)(X),
    "hvp": lambda: ft.hvp(fun, (X,), (X,)),
    "nested": lambda: ft.grad(lambda x: np.sum(ft.grad(fun)(x)))(X),
    "vmap of grad": lambda: ft.vmap(ft.grad(fun))(np.stack([X, X])),
    "make_jaxpr": lambda: str(ft.make_jaxpr(fun)(X)),
    "jit": lambda: ft.jit(ft.grad(fun))(X),
    "functional": lambda: functional.hessian(fun, X),
    "views": lambda: ft.grad(lambda x: np.sum(views(x)))(X),
    "shape error": lambda: attempt(lambda: ft.grad(lambda x: np.sum(x + np.ones(4)))(X)),
    "shape error in jvp": lambda: attempt(lambda: ft.jvp(lambda x: x + np.ones(4), (X,), (X,))),
    "shape error in vmap": lambda: attempt(lambda: ft.vmap(lambda x: x + np.ones(4))(X[None])),
    "user's error": lambda: attempt(lambda: ft.grad(lambda x: {}[x[0] > 0])(X)),
    "if on a staged value": lambda: attempt(lambda: ft.vmap(lambda x: 1 if x > 0 else 2)(X)),
    "buffer": lambda: attempt(lambda: ft.grad(lambda x: BUFFER.__setitem__(0, x[0]))(X)),
    "np.array": lambda: attempt(lambda: ft.grad(lambda x: np.array([x[0], x[1]]))(X)),
    "integer": lambda: attempt(lambda: ft.grad(fun)(np.arange(3))),
    "no scalar": lambda: attempt(lambda: ft.grad(lambda x: x * 2)(X)),
    "error in a pullback": lambda: attempt(lambda: ft.vjp(fun, X)[1](X)),
    "error in an inner function": lambda: attempt(
        lambda: ft.grad(lambda x: ft.grad(lambda y: np.sum(y + np.ones(4)))(x))(X)
    ),
}  # fmt: skip


def views(x: Any) -> Any:
    y = x * 1.0
    part = y[1:]
    part[0] = 3.0
    y[:] = part[0] * x
    return y


def _is_part_of_a_type(item: Any) -> bool:
    """Whether an object belongs to a class made at run time.

    llvmlite makes a ctypes array type for each text it is given; a class refers to itself.
    """
    name = type(item).__name__
    if name == "tuple":
        return bool(item) and all(isinstance(part, type) for part in item)
    return isinstance(item, type) or name in {"StgDict", "getset_descriptor"}


@pytest.mark.parametrize("name", CALLS)
def test_no_reference_cycle_is_left(name: str) -> None:
    call = CALLS[name]
    call()  # fills caches
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        call()
        gc.collect()
        garbage = [type(item).__name__ for item in gc.garbage if not _is_part_of_a_type(item)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        if was_enabled:
            gc.enable()
    assert not garbage


def test_caches_hold_no_values() -> None:
    x = np.ones(N)
    alive = weakref.ref(x)
    for call in (
        lambda x: ft.hessian(lambda z: np.sum(np.sort(z[:5])) + np.prod(z[:3]))(x[:10]),
        lambda x: ft.grad(lambda z: np.max(z) + np.sum(np.cumsum(z)))(x),
        lambda x: ft.vmap(lambda z: z * 2)(x),
        lambda x: ft.jit(ft.grad(lambda z: np.sum(np.sort(z))))(x),
    ):
        call(x)
    del x
    gc.collect()
    assert alive() is None


def test_the_cache_of_derived_pullbacks_tells_parameters_apart() -> None:
    kinds: list[Any] = [1, 1.0, True, 0.0, -0.0, (1,), (1.0,), (True,), "1", None, (0.0,), (-0.0,)]
    keys = [_Params({"p": kind}) for kind in kinds]
    assert len(set(keys)) == len(kinds)
    assert _Params({"p": (1, 2.0)}) == _Params({"p": (1, 2.0)})
    assert _derived_pullback.cache_info().maxsize is not None


# residuals --------------------------------------------------------------------------------------


class Poison:
    """Stands for an operand that was not saved: no use of it is allowed."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a partial derivative reads what it does not save")

    __array__ = __array_ufunc__ = __array_function__ = __bool__ = __getattr__ = _refuse
    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = __truediv__ = _refuse
    __rtruediv__ = __pow__ = __rpow__ = __neg__ = __and__ = __or__ = __invert__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = None  # type: ignore[assignment]  # Python's way to refuse hashing


def is_differentiable_elementwise(row: Row, _: Any) -> bool:
    return row.primitive.elementwise is not None and row.is_differentiable


@each(("row", "label"), each_sample(is_differentiable_elementwise), by="row")
def test_partials_read_only_what_they_save(row: Row, label: str, rng: Any) -> None:
    sample = row.sample(label)
    family = row.primitive.elementwise
    assert family is not None
    with np.errstate(all="ignore"):
        out = family.function(*sample.operands)
        cotangent = random_like(rng, out)
        everything = [*sample.operands, out]
        for i, (partial, saves) in enumerate(zip(family.partials, family.saves, strict=True)):
            if i in row.fixed or not callable(partial):
                assert saves == 0
                continue
            saved = [value if saves & 1 << i else Poison() for i, value in enumerate(everything)]
            try:
                expected = partial(cotangent, *everything)
            except NonDifferentiableError:  # an order or a degree
                with pytest.raises(NonDifferentiableError):
                    partial(cotangent, *saved)
                continue
            np.testing.assert_array_equal(partial(cotangent, *saved), expected)


def test_only_what_the_differentiated_operands_need_is_saved() -> None:
    def saved(x: Any, y: Any) -> Any:
        product = x * y
        assert isinstance(product, RecordingTracer)
        return [value is not None for value in product._node.saved]  # type: ignore[union-attr]  # x has one

    def fun(x: Any, y: Any) -> Any:
        assert saved(x, 2.0) == [False, True, False]
        assert saved(2.0, y) == [True, False, False]
        assert saved(x, y) == [True, True, False]
        quotient = 2.0 / y
        assert [value is not None for value in quotient._node.saved] == [False, True, True]
        assert (x + y)._node.saved == [None, None, None]
        assert ew.floor(x)._node is None
        return np.sum(x * y)

    ft.grad(fun, (0, 1))(X, X)


def _loops(x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        return carry * row + 1.0, np.sum(carry)

    return ft.lax.fori_loop(0, 3, lambda i, c: c * x[0] + i, ft.lax.scan(step, x[0], x)[0])


def _grow(x: Any) -> Any:
    return ft.lax.while_loop(lambda c: np.any(c < 9.0), lambda c: c * 1.5, x)


def _loop_in_loop(x: Any) -> Any:
    return ft.lax.fori_loop(0, 3, lambda i, c: _grow(c), x)


def _loops_of_three_levels(x: Any) -> Any:
    return ft.lax.scan(lambda c, row: (_loop_in_loop(c * row), c), x[0], x)


def _choice_in_loop(x: Any) -> Any:
    return ft.lax.fori_loop(0, 3, lambda i, c: ft.lax.cond(i > 1, _grow, lambda y: y * 2.0, c), x)


def _no_rounds(x: Any) -> Any:
    return ft.lax.fori_loop(0, 0, lambda i, c: _grow(c), x)


def _taken_over() -> Any:
    """A loop in the memory of its argument, which must be large enough for that."""
    loop = ft.jit(lambda x: ft.lax.fori_loop(0, 3, lambda i, c: c * 2.0 + 1.0, x), donate_argnums=0)
    return lambda x: loop(np.repeat(x, 20, 0))


def _decay(x: Any) -> Any:
    return odeint(lambda y, t: -y, x[0], np.linspace(0.0, 1.0, 4))


def _sum_of(fun: Any) -> Any:
    return lambda x: np.sum(fun(x))


def _tensor_step(fun: Any) -> Any:
    """A step on tensors, given arrays."""
    step = ft.jit(fun)
    return lambda x: step(ft.tensor(x[:, :3]))


def _scaled() -> Any:
    w = ft.tensor(np.ones(3))
    return _tensor_step(lambda x: (x * w).sum())


def _training() -> Any:
    w = ft.tensor(np.ones(3), requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = ((x * w).sum() - 1.0) ** 2
        loss.backward()
        optimizer.step()
        return loss

    return _tensor_step(step)


def _writing() -> Any:
    kept = ft.tensor(np.ones(3))

    def step(x: Any) -> Any:
        kept[1:] = x.sum()
        part = kept[:2]
        part += 1.0
        return part.clone()

    return _tensor_step(step)


NEW_SHAPES: dict[str, Callable[[], Callable[[Any], Any]]] = {
    "elementwise": lambda: ft.jit(lambda x: np.sin(x) * 2.0 + np.sum(x)),
    "loops": lambda: ft.jit(_loops),
    "gradient": lambda: ft.jit(ft.grad(lambda x: np.sum(np.tanh(x @ x.T) ** 2))),
    "linear algebra": lambda: ft.jit(
        lambda x: np.linalg.eig(np.linalg.solve(x @ x.T + np.eye(len(x)), x @ x.T))[0]
    ),
    "loop in loop": lambda: ft.jit(_loop_in_loop),
    "loop in loop, gradient": lambda: ft.jit(ft.grad(_sum_of(_loop_in_loop))),
    "loop in loop, batch": lambda: ft.jit(ft.vmap(_loop_in_loop)),
    "loops of three levels": lambda: ft.jit(_loops_of_three_levels),
    "choice in loop": lambda: ft.jit(_choice_in_loop),
    "loop of no rounds": lambda: ft.jit(_no_rounds),
    "odeint": lambda: ft.jit(_decay),
    "odeint, eager": lambda: _decay,
    "odeint, gradient": lambda: ft.jit(ft.grad(_sum_of(_decay))),
    "donated": lambda: ft.jit(lambda x: np.sin(x) * 2.0, donate_argnums=0),
    "donated to a loop": _taken_over,
    "shown": lambda: lambda x: str(ft.jit(_loop_in_loop).lower(x).plan),
    "step": _scaled,
    "training": _training,
    "step with writes": _writing,
}


@pytest.mark.parametrize("name", NEW_SHAPES)
def test_new_shapes_leave_no_cycles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled for one more shape, a function leaves nothing that only the collector frees."""
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", "off")
    ft.clear_caches()  # of programs that would be dropped for new ones
    call = NEW_SHAPES[name]()
    call(np.ones((2, 3)))
    call(np.ones((3, 3)))
    gc.collect()
    gc.disable()
    try:
        for n in range(4, 7):
            call(np.ones((n, n + 1)))
        assert gc.collect() == 0
    finally:
        gc.enable()


# nesting ----------------------------------------------------------------------------------------


def _ruled(f: Any) -> Any:
    ruled = ft.custom_jvp(lambda x: f(x))
    ruled.defjvp(lambda primals, tangents: ft.jvp(f, primals, tangents))
    return ruled


def _ruled_backward(f: Any) -> Any:
    ruled = ft.custom_vjp(lambda x: f(x))
    ruled.defvjp(lambda x: ft.vjp(f, x), lambda pull, ct: pull(ct))
    return ruled


def _while(f: Any, x: Any) -> Any:
    """A loop of one round."""
    return ft.lax.while_loop(lambda c: c[1] < 1, lambda c: (f(c[0]), c[1] + 1), (x, 0))[0]


NESTS: dict[str, Callable[[Any], Any]] = {
    "cond": lambda f: lambda x: ft.lax.cond(x > 0, f, lambda y: y, x),
    "scan": lambda f: lambda x: ft.lax.scan(lambda c, _: (f(c), None), x, None, 1)[0],
    "fori_loop": lambda f: lambda x: ft.lax.fori_loop(0, 1, lambda _, y: f(y), x),
    "while_loop": lambda f: lambda x: _while(f, x),
    "switch": lambda f: lambda x: ft.lax.switch(0, [f, lambda y: y * 3.0], x),
    "vmap": lambda f: lambda x: ft.vmap(f)(np.expand_dims(x, 0))[0],
    "jit": lambda f: ft.jit(f),
    "checkpoint": ft.checkpoint,
    "custom_jvp": _ruled,
    "custom_vjp": _ruled_backward,
}


def nested(nest: Callable[[Any], Any], n: int, factor: float = 1.5) -> Any:
    """A function that stands in so many others."""
    f: Any = lambda x: x * factor  # noqa: E731
    for _ in range(n):
        f = nest(f)
    return f


OUTERS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda f: f(2.0),
    "grad": lambda f: ft.grad(f)(2.0) * 2.0,
    "jit": lambda f: ft.jit(f)(2.0),
    "tensor": lambda f: f(ft.tensor(2.0)).item(),
}
_RULED = ("custom_jvp", "custom_vjp")


@pytest.mark.parametrize(
    ("name", "outer"),
    [(name, outer) for name in NESTS for outer in OUTERS if outer != "tensor" or name in _RULED],
)
def test_nesting_works_or_is_refused_with_advice(name: str, outer: str) -> None:
    def run(n: int) -> Any:
        return OUTERS[outer](nested(NESTS[name], n))

    expected = 3.0
    assert run(10) == expected
    for n in (400, 401, 1000):
        with pytest.raises(
            NestingError, match=r"deeper than Python's stack of .*sys\.setrecursionlimit"
        ):
            run(n)
    assert open_traces.get() == ()
    assert run(10) == expected


def test_deeper_stack_allows_deeper_nesting() -> None:
    f = nested(NESTS["cond"], 60)
    limit = sys.getrecursionlimit()
    with pytest.raises(NestingError):
        ft.grad(f)(2.0)
    sys.setrecursionlimit(5000)
    try:
        assert ft.grad(f)(2.0) == 1.5
    finally:
        sys.setrecursionlimit(limit)


def test_endless_recursion_of_the_user_stays_what_it_is() -> None:
    def f(x: Any) -> Any:
        return f(x) + 1.0

    for call in (ft.jit(f), ft.grad(f), _ruled(f), ft.grad(_ruled(f))):
        with pytest.raises(RecursionError) as caught:
            call(1.0)
        assert type(caught.value) is RecursionError


def test_a_function_with_rules_that_calls_itself_for_ever_is_no_nest() -> None:
    ruled = ft.custom_jvp(lambda x: ruled(x) + 1.0)
    ruled.defjvp(lambda primals, tangents: (ruled(*primals), tangents[0]))
    for x in (1.0, ft.tensor(1.0)):
        with pytest.raises(RecursionError) as caught:
            ruled(x)
        assert type(caught.value) is RecursionError


# work -------------------------------------------------------------------------------------------


def count_calls(call: Callable[[], Any]) -> int:
    """How often functions of Python are called."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return count


def _pair(f: Any) -> Any:
    """A step that computes one value from the other."""
    return lambda c: (f(c[0]) + c[1], c[0] * 2.0)


WORK_NESTS: dict[str, Callable[[Any], Any]] = {
    **{name: NESTS[name] for name in ("while_loop", "fori_loop", "scan", "switch")},
    "cond": lambda f: lambda x: ft.lax.cond(
        x > 0, lambda y: (f(y), y), lambda y: (y * 2.0, y), x
    )[0],
    "jit": lambda f: lambda x: ft.jit(lambda y: (f(y), y * 2.0))(x)[0],
    "checkpoint": lambda f: lambda x: ft.checkpoint(lambda y: (f(y), y * 2.0))(x)[0],
    "while_loop of pairs": lambda f: lambda x: ft.lax.while_loop(
        lambda c: c[1] < 1, lambda c: (_pair(f)(c[0]), c[1] + 1), ((x, x), 0)
    )[0][0],
    "while_loop of three": lambda f: lambda x: ft.lax.while_loop(
        lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[2]), c[1] * 2.0), (0, x, x)
    )[1],
    "fori_loop with traced bounds": lambda f: lambda x: ft.lax.fori_loop(
        0, (x * 0.0 + 1.0).astype(int), lambda _, y: f(y), x
    ),
    "scan of pairs": lambda f: lambda x: ft.lax.scan(
        lambda c, _: (_pair(f)(c), c[0]), (x, x), None, 1
    )[0][0],
    "scan with results": lambda f: lambda x: ft.lax.scan(
        lambda c, _: (c * 2.0, (f(c), c)), x, None, 1
    )[1][0][0],
    "switch on a value": lambda f: lambda x: ft.lax.switch(
        (x * 0.0 + 1.0).astype(int), [lambda y: (y, y), lambda y: (f(y), y * 2.0)], x
    )[0],
}  # fmt: skip
WORK: dict[str, Callable[[Any], Any]] = {
    "make_jaxpr": lambda f: ft.make_jaxpr(f)(1.0),
    "jit": lambda f: ft.jit(f)(1.0),
    "jvp": lambda f: ft.jvp(f, (1.0,), (1.0,)),
    "grad": lambda f: ft.grad(f)(1.0),
    "staged grad": lambda f: ft.make_jaxpr(ft.grad(f))(1.0),
    "hessian": lambda f: ft.make_jaxpr(ft.grad(ft.grad(f)))(1.0),
    "vmap": lambda f: ft.vmap(f)(np.array([1.0, 2.0])),
    "vmap of grad": lambda f: ft.vmap(ft.grad(f))(np.array([1.0, 2.0])),
}


@pytest.mark.parametrize("transform", WORK)
@pytest.mark.parametrize("name", WORK_NESTS)
def test_work_is_polynomial_in_the_depth_of_a_nest(name: str, transform: str) -> None:
    """Twice as deep takes some four times as many calls at most: it is in proportion for most."""
    sys.setrecursionlimit(10_000)  # the fixture puts it back
    nest, run = WORK_NESTS[name], WORK[transform]
    run(nested(nest, 1, 1.1))  # what is done once
    few, many = (
        count_calls(lambda: run(nested(nest, n, 1.0 + n / 100)))  # noqa: B023  # called at once
        for n in (5, 10)
    )
    assert many < 5 * few
