"""What methods of a ``Function`` get and have to return in transforms, and how it is told."""

from collections.abc import Callable
from typing import Any

import pytest
from numpy.testing import assert_allclose

import functrans as ft
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
        generate_vmap_rule = True
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


# missing rules ------------------------------------------------------------------------------------

RAN: list[str] = []


class Bare(Function):
    """Reverse mode alone."""

    @staticmethod
    def forward(x: Any) -> Any:
        RAN.append("forward")
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g * ctx.saved_tensors[0]


class Batched(Bare):
    generate_vmap_rule = True


class Twice(Batched):
    @staticmethod
    def vmap(info: Any, dims: Any, x: Any) -> Any:
        return x * x, dims[0]


class Forward(Bare):
    generate_vmap_rule = True
    backward = Function.backward

    @staticmethod
    def jvp(ctx: Any, dx: Any) -> Any:
        return 2 * dx * ctx.saved_tensors[0]


NO_BATCH = (RuntimeError, "does not have vmap support")
TWO_BATCH = (RuntimeError, "both generate_vmap_rule=True and an overridden vmap")
NO_JVP = (NotImplementedError, "must implement the jvp function")
NO_BACKWARD = (NotImplementedError, "must implement either the backward or vjp method")


def _dual_level(f: Any) -> Any:
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(X, X))).tangent


def _recorded(f: Any) -> Any:
    x = X.clone().requires_grad_()
    return torch.autograd.grad(f(x).sum(), x)[0]


CALLS: dict[str, Any] = {
    "grad": lambda f: func.grad(lambda x: f(x).sum())(X),
    "vjp": lambda f: func.vjp(f, X)[1](torch.ones(3))[0],
    "jacrev": lambda f: func.jacrev(f)(X).sum(0),
    "recorded": _recorded,
    "jvp": lambda f: func.jvp(f, (X,), (torch.ones(3),))[1],
    "linearize": lambda f: func.linearize(f, X)[1](torch.ones(3)),
    "dual": lambda f: _dual_level(f) / X,
    "jacfwd": lambda f: func.jacfwd(f)(X).sum(0),
    "vmap": lambda f: func.vmap(f)(X) / X * 2,
    "vmap of grad": lambda f: func.vmap(func.grad(f))(X),
    "grad of vmap": lambda f: func.grad(lambda x: func.vmap(f)(x).sum())(X),
    "jvp of vmap": lambda f: func.jvp(lambda x: func.vmap(f)(x), (X,), (torch.ones(3),))[1],
}
BY_REVERSE = ("grad", "vjp", "jacrev", "recorded")
BY_FORWARD = ("jvp", "linearize", "dual")
BY_BATCH = ("jacfwd", "vmap", "vmap of grad", "grad of vmap", "jvp of vmap")
MISSING: dict[Any, dict[str, Any]] = {
    Bare: {**dict.fromkeys(BY_FORWARD, NO_JVP), **dict.fromkeys(BY_BATCH, NO_BATCH)},
    Batched: {**dict.fromkeys((*BY_FORWARD, "jacfwd", "jvp of vmap"), NO_JVP)},
    Twice: {**dict.fromkeys(BY_FORWARD, NO_JVP), **dict.fromkeys(BY_BATCH, TWO_BATCH)},
    Forward: dict.fromkeys((*BY_REVERSE, "vmap of grad", "grad of vmap"), NO_BACKWARD),
}


@pytest.mark.parametrize("cls", MISSING)
@pytest.mark.parametrize("call", CALLS)
def test_missing_rules_are_refused_and_never_guessed(call: str, cls: Any) -> None:
    refusal = MISSING[cls].get(call)
    RAN.clear()
    if refusal is None:
        assert_allclose(CALLS[call](cls.apply), 2 * X)
        return
    error, words = refusal
    with pytest.raises(error, match=words):
        CALLS[call](cls.apply)
    assert error is NotImplementedError or not RAN  # before forward runs


def test_rules_of_arrays_follow_from_backward() -> None:
    x = X.numpy()
    assert_allclose(ft.vmap(Bare.apply)(x), x * x)
    assert_allclose(ft.jvp(Bare.apply, (x,), (x,))[1], 2 * x * x)


def test_tensors_by_keyword_alone_are_refused_in_batches() -> None:
    class Keyword(Function):
        forward = staticmethod(lambda x, *, k=None: x)
        setup_context = staticmethod(lambda ctx, inputs, output: None)

    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        func.vmap(lambda x: Keyword.apply(x, k=x))(X)


def test_jvp_returns_tangents_of_what_has_them_in_the_memory_of_the_arguments() -> None:
    class Nothing(Batched):
        jvp = staticmethod(lambda ctx, dx: None)

    class Copied(Function):
        forward = staticmethod(lambda ctx, x: x.view(3, 1))
        jvp = staticmethod(lambda ctx, dx: dx.clone().view(3, 1))

    with pytest.raises(RuntimeError, match="jvp of Nothing returned None for result 0"):
        _dual_level(Nothing.apply)
    with pytest.raises(RuntimeError, match="jvp is not returning a view"):
        _dual_level(Copied.apply)


def test_jvp_reads_what_was_saved_for_it_and_forward_saves_tensors() -> None:
    counts: list[int] = []

    class Counted(Function):
        forward = staticmethod(lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1])
        jvp = staticmethod(lambda ctx, dx: (counts.append(len(ctx.saved_tensors)), dx * 2)[1])

    class Number(Function):
        forward = staticmethod(lambda ctx, x: ctx.save_for_forward(2.0))

    assert_allclose(_dual_level(Counted.apply), 2 * X)
    assert counts == [0]
    with pytest.raises(AssertionError, match="expects all arguments to be tensors"):
        Number.apply(X)


@pytest.mark.parametrize("fills", [True, False])
@pytest.mark.parametrize("call", BY_REVERSE)
def test_gradients_of_results_without_derivative_are_filled_if_asked(
    call: str, fills: bool
) -> None:
    seen: list[bool] = []

    class Marked(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * x, x * 3

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.mark_non_differentiable(output[1])
            if not fills:
                ctx._materialize_non_diff_grads = False

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            seen.append(h is None)
            return 2 * g * ctx.saved_tensors[0]

    assert_allclose(CALLS[call](lambda x: Marked.apply(x)[0]), 2 * X)
    assert set(seen) == {not fills}


def test_an_argument_that_is_returned_keeps_its_namespace() -> None:
    class Same(Function):
        forward = staticmethod(lambda ctx, x: x)

    assert repr(Same.apply(X).dtype) == repr(X.dtype)


def test_results_in_memory_of_arguments_are_outside_of_the_graph_under_no_grad() -> None:
    class Doubled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class Same(Function):
        forward = staticmethod(lambda ctx, x: x)

    for cls, factor in ((Doubled, 2), (Same, 1)):
        for mode in (torch.no_grad, torch.inference_mode):
            x = torch.tensor([1.0, 2.0], requires_grad=True)
            y = x * 1
            with mode():
                z = cls.apply(y)
            assert z is not y
            y.mul_(3)
            assert not z.requires_grad
            assert z._version == y._version
            (y * z).sum().backward()
            assert x.grad.tolist() == [9 * factor, 18 * factor]


def test_an_argument_that_is_returned_takes_nothing_that_is_recorded() -> None:
    class Same(Function):
        forward = staticmethod(lambda ctx, x: x)

    w = torch.tensor([1.0, 2.0], requires_grad=True)
    plain = torch.ones(2)
    with pytest.raises(RuntimeError, match="created inside a custom Function"):
        Same.apply(plain).mul_(w)
    Same.apply(plain).mul_(3)
    assert plain.tolist() == [3, 3]


class Negated(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return -g

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t.view_as(t)


def _in_a_dual_level(f: Callable[[Any], Any]) -> Any:
    with forward_ad.dual_level():
        return f(forward_ad.make_dual(X.clone(), ONES))


LEVELS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "grad": lambda f: func.grad(lambda x: f(x * 1).sum())(X),
    "jvp": lambda f: func.jvp(f, (X.clone(),), (ONES,)),
    "vmap": lambda f: func.vmap(f)(torch.stack([X, X])),
    "dual": _in_a_dual_level,
}


@pytest.mark.parametrize("level", LEVELS)
def test_a_result_that_is_a_view_and_its_argument_are_not_written_to_in_levels(level: str) -> None:
    def of_result(x: Any) -> Any:
        return Negated.apply(x).mul_(2)

    def of_argument(x: Any) -> Any:
        y = Negated.apply(x)
        x.mul_(2)
        return y

    for f in (of_result, of_argument):
        with pytest.raises(RuntimeError, match="created inside a custom Function"):
            LEVELS[level](f)
    LEVELS[level](lambda x: Negated.apply(x) * 2)


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[1:]])
def test_a_function_does_not_write_to_a_leaf_by_its_dual_tensor(part: Any) -> None:
    class Doubled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t.mul_(2)

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones(2))
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            Doubled.apply(part(dual))
        dual = forward_ad.make_dual(X * 1, torch.ones(3))
        Doubled.apply(part(dual))
        assert forward_ad.unpack_dual(dual).primal[1].item() == 4
