"""What methods of a ``Function`` get and have to return in transforms, and how it is told."""

from collections.abc import Callable
from typing import Any

import pytest

from functrans.compat import torch

func, forward_ad = torch.func, torch.autograd.forward_ad
Function = torch.autograd.Function
X = torch.tensor([1.0, 2.0, 3.0])
ONES = torch.ones(3)


# batches ------------------------------------------------------------------------------------------


def _scaled(seen: list[Any]) -> Any:
    """A function that multiplies by the first tensor of a container."""

    def product(held: Any, y: Any) -> Any:
        while not isinstance(held, torch.Tensor):
            held = held["a"] if isinstance(held, dict) else held[0]
        return held * y

    class Scaled(Function):
        @staticmethod
        def forward(held: Any, y: Any) -> Any:
            return product(held, y)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def vmap(info: Any, in_dims: Any, held: Any, y: Any) -> Any:
            seen.append((info.batch_size, info.randomness, in_dims, type(held)))
            return product(held, y), 0

    return Scaled


HELD: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "tensor": (lambda x: x, 0),
    "list": (lambda x: [x, x], [0, 0]),
    "tuple": (lambda x: (x, 3), (0, None)),
    "dict": (lambda x: {"a": x, "b": "word"}, {"a": 0, "b": None}),
    "nested": (lambda x: [{"a": (x,)}], [{"a": (0,)}]),
}


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("randomness", ["error", "same", "different"])
def test_batches_come_in_the_containers_of_the_call(name: str, randomness: str) -> None:
    hold, dims = HELD[name]
    seen: list[Any] = []
    scaled = _scaled(seen)

    def f(x: Any, y: Any) -> Any:
        return scaled.apply(hold(x), y)

    found = func.vmap(f, randomness=randomness)(X, 2 * X)
    assert found.tolist() == [2, 8, 18]
    assert seen == [(3, randomness, (dims, 0), type(hold(X)))]
    seen.clear()
    assert func.vmap(f, (0, None))(X, torch.tensor(2.0)).tolist() == [2, 4, 6]
    assert [entry[2] for entry in seen] == [(dims, None)]
    assert f(X, X).tolist() == [1, 4, 9]


def _returning(result: Callable[[Any], Any], count: int = 1) -> Any:
    class Doubled(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2 if count == 1 else tuple(x * 2 for _ in range(count))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return result(x)

    return func.vmap(Doubled.apply)


@pytest.mark.parametrize(
    ("result", "count", "error", "message"),
    [
        (lambda x: x * 2, 1, RuntimeError, "two returns, .* Got a <class"),
        (lambda x: (x, 0, 1), 1, RuntimeError, "two returns, .* Got 3 returns"),
        (lambda x: [x, 0], 1, RuntimeError, "two returns, .* Got a <class 'list'>"),
        (lambda x: (x, (0,)), 1, RuntimeError, r"Expected out_dims=\(0,\) to be compatible"),
        (lambda x: (x, "a"), 1, RuntimeError, "Expected out_dims=a to be compatible"),
        (lambda x: ((x, x), (0, 0, 0)), 2, RuntimeError, r"Expected out_dims=\(0, 0, 0\)"),
        (lambda x: (x, 5), 1, IndexError, r"range of \[-1, 0\], but got 5"),
        (lambda x: (3, None), 1, RuntimeError, "returned 0 tensors, and forward returns 1"),
        (lambda x: ((x, x), 0), 1, RuntimeError, "returned 2 tensors, and forward returns 1"),
    ],
)
def test_wrong_batches_are_refused(result: Any, count: int, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        _returning(result, count)(X)


def test_places_of_batch_axes() -> None:
    assert _returning(lambda x: (x * 2, -1))(X).tolist() == [2, 4, 6]
    assert _returning(lambda x: (x.sum(), None))(X).tolist() == [6, 6, 6]
    for dims, second in ((0, X), ((0, None), X.sum()), ([0, None], X.sum())):
        out = _returning(lambda x, d=dims, s=second: ((x * 2, s), d), 2)(X)
        assert out[0].tolist() == [2, 4, 6]
        assert out[1].shape == (3,)


def test_two_rules_for_batches_are_refused() -> None:
    class Both(Function):
        generate_vmap_rule = True
        forward = staticmethod(lambda x: x)
        setup_context = staticmethod(lambda ctx, inputs, output: None)
        vmap = staticmethod(lambda info, in_dims, x: (x, 0))

    with pytest.raises(RuntimeError, match="both generate_vmap_rule=True and an overridden vmap"):
        func.vmap(Both.apply)(X)


# gradients ----------------------------------------------------------------------------------------


def _pair(seen: list[Any], materialize: bool) -> Any:
    class Pair(Function):
        @staticmethod
        def forward(a: Any, b: Any) -> Any:
            return a * 2, b * 3

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.set_materialize_grads(materialize)

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            seen.append((g is None, h is None, ctx.needs_input_grad))
            return None if g is None else g * 2, None if h is None else h * 3

    return Pair


@pytest.mark.parametrize("materialize", [True, False])
@pytest.mark.parametrize(("argnum", "which"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_gradients_that_do_not_come_are_none_or_zeros(
    materialize: bool, argnum: int, which: int
) -> None:
    seen: list[Any] = []
    pair = _pair(seen, materialize)
    run = func.grad(lambda a, b: pair.apply(a, b)[which].sum(), argnums=argnum)
    assert run(X, X).tolist() == [(2, 3)[which] if which == argnum else 0] * 3
    missing = [not materialize] * 2
    missing[which] = False
    assert seen == [(*missing, (argnum == 0, argnum == 1))]


def test_names_of_nodes() -> None:
    names = []
    pair = _pair([], True)

    def f(x: Any) -> Any:
        y = pair.apply(x, x)[0]
        names.append(y.grad_fn.name())
        return y.sum()

    func.grad(f)(X)
    f(X.clone().requires_grad_())
    assert names == ["PairGeneratedBackward", "PairBackward"]


def test_only_tensors_are_saved_in_transforms() -> None:
    class Saves(Function):
        forward = staticmethod(lambda x: x * 2)
        setup_context = staticmethod(lambda ctx, inputs, output: ctx.save_for_backward(3))
        backward = staticmethod(lambda ctx, g: g * 2)

    for run in (func.grad(lambda x: Saves.apply(x).sum()), func.vmap(Saves.apply)):
        with pytest.raises(TypeError, match="can only save variables, but argument 0 is of type"):
            run(X)


# tangents -----------------------------------------------------------------------------------------


def _dual(cls: Any) -> tuple[Any, ...]:
    primal, tangent = X.clone(), ONES.clone()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(primal, tangent)
        result = cls.apply(dual)
        outs = result if isinstance(result, tuple) else (result,)
        return primal, tangent, dual, result, [forward_ad.unpack_dual(out) for out in outs]


def _with(forward: Any, jvp: Any) -> Any:
    class Made(Function):
        pass

    Made.forward = staticmethod(forward)
    Made.jvp = staticmethod(jvp)
    Made.backward = staticmethod(lambda ctx, *g: g[0])
    return Made


def _double(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2)


def _marked(ctx: Any, x: Any) -> Any:
    constant = (x > 1).float()
    ctx.mark_non_differentiable(constant)
    return constant, x * 2


def test_writes_reach_primal_and_tangent() -> None:
    primal, tangent, dual, result, _ = _dual(_with(_double, lambda ctx, t: t.mul_(2)))
    assert result is dual
    assert primal.tolist() == [2, 4, 6]
    assert tangent.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("forward", "jvp", "message"),
    [
        (_double, lambda ctx, t: t * 2, "not modifying the forward mode gradients inplace"),
        (_double, lambda ctx, t: t.mul_(2).clone(), "not modifying the forward mode gradients"),
        (lambda ctx, x: x.view(3, 1), lambda ctx, t: t.view(3, 1).clone(), "not returning a view"),
        (lambda ctx, x: x[1:], lambda ctx, t: t[1:] * 1, "not returning a view"),
        (lambda ctx, x: x, lambda ctx, t: t, "not returning a view"),
        (_marked, lambda ctx, t: (t, t * 2), "position 0, but .* not a differentiable Tensor"),
        (lambda ctx, x: ((x > 1).long(), x * 2), lambda ctx, t: (t, t * 2), "position 0, but"),
    ],
)
def test_tangents_that_do_not_fit_are_refused(forward: Any, jvp: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        _dual(_with(forward, jvp))


def test_tangents_that_fit() -> None:
    views = _dual(_with(lambda ctx, x: x.view(3, 1), lambda ctx, t: t.view(3, 1)))[-1][0]
    assert views.tangent.shape == (3, 1)
    same = _dual(_with(lambda ctx, x: x, lambda ctx, t: t.view_as(t)))[-1][0]
    assert same.tangent.tolist() == [1, 1, 1]
    constant, doubled = _dual(_with(_marked, lambda ctx, t: (None, t * 2)))[-1]
    assert constant.tangent is None
    assert doubled.tangent.tolist() == [2, 2, 2]
