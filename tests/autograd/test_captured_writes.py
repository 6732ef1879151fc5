"""Writes inside of transforms: to captured tensors, to arguments, to duals and their views."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans.compat.torch as torch
from functrans.compat.torch.autograd import forward_ad as fw

func = torch.func
DERIVATIVES: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, x: func.grad(f)(x),
    "vjp": lambda f, x: func.vjp(f, x),
    "jvp": lambda f, x: func.jvp(f, (x,), (x,)),
    "jacrev": lambda f, x: func.jacrev(f)(x),
    "jacfwd": lambda f, x: func.jacfwd(f)(x),
    "hessian": lambda f, x: func.hessian(f)(x),
    "vmap in grad": lambda f, x: func.grad(lambda v: func.vmap(f)(v).sum())(x),
    "grad in vmap": lambda f, x: func.vmap(func.grad(f))(x),
}
WRITES: dict[str, Callable[[Any], Any]] = {
    "add_": lambda y: y.add_(1),
    "view": lambda y: y[1:].zero_(),
    "item": lambda y: y.__setitem__(0, 3.0),
    "detached": lambda y: y.detach().mul_(2),
    "data": lambda y: y.data.mul_(2),
    "shape": lambda y: y.unsqueeze_(0),
    "copy_": lambda y: y.copy_(torch.ones(3)),
    "resize_": lambda y: y.resize_(1),
    "set_": lambda y: y.set_(torch.ones(3)),
}


def x_of() -> Any:
    return torch.tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("write", WRITES)
def test_captured_tensors_are_not_written_to(name: str, write: str) -> None:
    outside = x_of()

    def f(x: Any) -> Any:
        WRITES[write](outside)
        return (x * x).sum()

    with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
        DERIVATIVES[name](f, x_of())
    assert outside.tolist() == [1, 2, 3]


SECOND: dict[str, Callable[[Any, Any, Any], Any]] = {
    "grad": lambda f, x, y: func.grad(f, argnums=1)(x, y),
    "jacrev": lambda f, x, y: func.jacrev(f, argnums=1)(x, y),
    "jacfwd": lambda f, x, y: func.jacfwd(f, argnums=1)(x, y),
    "hessian": lambda f, x, y: func.hessian(f, argnums=1)(x, y),
    "grad in vmap": lambda f, x, y: func.vmap(func.grad(f, 1), in_dims=(None, 0))(x, y),
    "vmap in grad": lambda f, x, y: func.grad(
        lambda a, b: func.vmap(f, in_dims=(None, 0))(a, b).sum(), argnums=1
    )(x, y),
}
"""With derivatives in the second argument only."""


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("name", SECOND)
@pytest.mark.parametrize("write", [name for name in WRITES if name not in ("resize_", "set_")])
def test_arguments_are_written_to_by_their_own_name_only(
    name: str, write: str, is_recorded: bool
) -> None:
    """An argument without derivatives is the tensor of the caller, but not a captured one."""

    def given() -> Any:
        return x_of().requires_grad_() * 1 if is_recorded else x_of()

    x = given()

    def captured(a: Any, b: Any) -> Any:
        WRITES[write](x)
        return (b * b).sum()

    with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
        SECOND[name](captured, x, x_of())
    assert x.tolist() == [1, 2, 3]

    def argument(a: Any, b: Any) -> Any:
        WRITES[write](a)
        return (b * b).sum()

    y = given()
    SECOND[name](argument, y, x_of())
    expected = given()
    WRITES[write](expected)
    assert (y.shape, y.tolist()) == (expected.shape, expected.tolist())


def test_what_is_written_in_the_end_is_not_read_as_an_argument_of_another_transform() -> None:
    inner: list[Callable[[Any, Any], Any]] = [
        lambda g, x: func.vmap(g)(x),
        lambda g, x: func.jvp(g, (x,), (x,))[0],
        lambda g, x: func.grad(lambda v: g(v).sum())(x),
        lambda g, x: func.grad(lambda v: func.vmap(g)(v).sum())(x),
        lambda g, x: func.grad(lambda v, w: (g(v) * w).sum(), argnums=1)(x, x_of()),
    ]
    outer: list[Callable[[Any, Any], Any]] = [
        lambda f, x: func.vmap(f)(x),
        lambda f, x: func.jvp(f, (x,), (x_of(),)),
        lambda f, x: func.jacfwd(f)(x),
    ]
    for around, inside in itertools.product(outer, inner):
        x = x_of()

        def f(v: Any, x: Any = x, inside: Any = inside) -> Any:
            v.exp_()
            return inside(lambda w: w * w, x)

        with pytest.raises(RuntimeError, match="a tensor is read that is an argument of"):
            around(f, x)


def test_arguments_of_an_inner_transform_may_be_captured_by_the_outer_one() -> None:
    """Then a write would outlive the outer one."""
    for outer, inner in itertools.product(DERIVATIVES.values(), SECOND.values()):
        x = x_of()

        def f(v: Any, x: Any = x, inner: Any = inner) -> Any:
            inner(lambda a, b: (a.mul_(2), (b * b).sum())[1], x, x_of())
            return (v * v).sum()

        with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
            outer(f, x_of())
        assert x.tolist() == [1, 2, 3]
        given = x_of()
        func.grad(f, argnums=0)(x_of(), given)  # an argument of both
        assert given.tolist() == [2, 4, 6]


def test_hooks_on_captured_arguments_are_those_of_the_outer_graph() -> None:
    seen: list[Any] = []
    x = torch.ones(3, requires_grad=True)

    def f(a: Any, b: Any) -> Any:
        x.register_hook(seen.append)
        with pytest.raises(RuntimeError, match="cannot register a hook"):
            a.register_hook(seen.append)
        return (x * b).sum()

    func.grad(f, argnums=1)(x, x_of()).sum().backward()
    assert [g.tolist() for g in seen] == [[1, 1, 1]]


LEAVES: dict[str, Callable[[Any, Any], Any]] = {
    "vmap": lambda f, x: func.vmap(f)(x),
    "vmap in vmap": lambda f, x: func.vmap(func.vmap(f))(x[None]),
    "jvp": lambda f, x: func.jvp(f, (x,), (torch.ones(3),)),
    "jacfwd": lambda f, x: func.jacfwd(f)(x),
    "jvp in vmap": lambda f, x: func.vmap(lambda v: func.jvp(f, (v,), (torch.ones_like(v),))[1])(x),
    "grad": lambda f, x: func.grad(f, argnums=1)(x, x_of()),
    "vmap, kept": lambda f, x: func.vmap(f, in_dims=(None, 0))(x, x_of()),
}


@pytest.mark.parametrize("name", LEAVES)
@pytest.mark.parametrize("write", ["add_", "part", "copy_", "unrecorded view"])
def test_writes_that_cannot_be_recorded_in_the_original_are_refused_at_once(
    name: str, write: str
) -> None:
    reached: list[str] = []

    def f(a: Any, *_: Any) -> Any:
        if write == "add_":
            a.add_(1)
        elif write == "part":
            a[...].mul_(2)
        elif write == "copy_":
            a.copy_(torch.ones(()))
        else:
            with torch.no_grad():
                part = a.view(a.shape)
            part.mul_(2)
        reached.append(write)
        return a.sum()

    x = x_of().requires_grad_()
    x = x * 1 if write == "unrecorded view" else x
    words = "created in no_grad mode" if write == "unrecorded view" else "a leaf Variable"
    with pytest.raises(RuntimeError, match=words):
        LEAVES[name](f, x)
    assert (reached, x.tolist()) == ([], [1, 2, 3])


@pytest.mark.parametrize("name", ["vmap", "vmap in vmap", "jvp", "jacfwd", "jvp in vmap"])
def test_arguments_that_are_views_are_not_detached_in_place(name: str) -> None:
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        LEAVES[name](lambda a: a.detach_().sum(), x_of())
    with fw.dual_level():
        dual = fw.make_dual(x_of(), torch.ones(3))
        with pytest.raises(RuntimeError, match="Can't detach views in-place"):
            dual.detach_()
        assert fw.unpack_dual(dual).tangent is not None
        own = dual.sin()
        assert fw.unpack_dual(own.detach_()).tangent is None
    assert func.grad(lambda a: a.detach_().sum())(x_of()).tolist() == [0, 0, 0]


def test_an_argument_that_an_inner_transform_captures_is_not_detached_in_place() -> None:
    def f(a: Any, b: Any) -> Any:
        assert a.detach_() is a
        return func.grad(lambda c: (a.detach_(), (c * c).sum())[1])(b).sum()

    with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
        func.grad(f, argnums=1)(x_of(), x_of())


def test_arguments_that_are_not_differentiated_are_written_to() -> None:
    count, x = torch.zeros(3), x_of()

    def f(x: Any, count: Any) -> Any:
        count[1:].add_(2)
        return (x * count).sum()

    assert func.grad(f)(x, count).tolist() == [0, 2, 2]
    assert func.jacrev(f)(x, count).tolist() == [0, 4, 4]
    assert func.vmap(lambda x: count.add_(1).sum() * x)(x).tolist() == [11, 22, 33]
    assert count.tolist() == [1, 5, 5]


@pytest.mark.parametrize("transform", [func.grad, func.jacfwd, func.vmap])
def test_arguments_that_share_memory_are_not_written_to(transform: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        y.add_(1)
        return (x * x).sum()

    x = x_of()
    with pytest.raises(RuntimeError, match="whose memory another argument shares"):
        transform(f)(x, x)
    with pytest.raises(RuntimeError, match="whose memory another argument shares"):
        transform(f)(x, x.view(3))


@pytest.mark.parametrize("outer", [func.vmap, func.jacfwd, lambda f: f])
@pytest.mark.parametrize("kwargs", [{}, {"chunk_size": 1}, {"chunk_size": 2}])
@pytest.mark.parametrize("other", [lambda v: v, lambda v: v.flip(0), lambda v: v[:], lambda v: v.T])
def test_arguments_share_memory_also_in_outer_transforms(
    outer: Any, kwargs: Any, other: Any
) -> None:
    def f(v: Any) -> Any:
        v = v.clone()
        own = other(v)

        def g(a: Any, b: Any) -> Any:
            b.div_(a.tanh_())
            return a.sum()

        if own._base is None and own is not v:  # a copy
            return func.vmap(g, **kwargs)(v, own)
        with pytest.raises(RuntimeError, match="whose memory another argument shares"):
            func.vmap(g, **kwargs)(v, own)
        return v

    result = outer(f)(torch.arange(1.0, 10.0).reshape(3, 3))
    assert torch.isfinite(result).all()


def test_a_captured_argument_is_not_read_before_its_new_numbers_are_there() -> None:
    x = x_of()

    def f(v: Any) -> Any:
        v.mul_(3)
        return x.sum() + v

    for run in (lambda: func.vmap(f)(x), lambda: func.jvp(f, (x,), (x.clone(),))):
        with pytest.raises(RuntimeError, match="is an argument of f on tensors, too"):
            run()
    assert (x.sum() + 1).item() == 7  # reads outside are as ever


def test_results_in_chunks_are_no_views_of_arguments() -> None:
    x = x_of()
    whole = func.vmap(lambda v: v)(x)
    assert func.vmap(lambda v: v, chunk_size=len(x))(x).data_ptr() != x.data_ptr()
    parts = func.vmap(lambda v: v, chunk_size=1)(x)
    x.zero_()
    assert parts.tolist() == [1, 2, 3]
    assert whole.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "primal",
    [lambda x: x, lambda x: x.view(2), lambda x: x.detach(), lambda x: fw.unpack_dual(x).primal],
)
def test_views_of_duals_share_their_memory(primal: Any) -> None:
    x = torch.tensor([1.0, 2.0])
    with fw.dual_level():
        dual = fw.make_dual(primal(x), torch.ones(2))
        view = dual.select(0, 1)
        dual.mul_(2)
        assert "4." in repr(view)
        part = fw.unpack_dual(view).primal
        part.mul_(2)
        assert view.item() == part.item() == x[1].item() == 8
        assert fw.unpack_dual(view).tangent.item() == 2
    view.mul_(2)  # and without the level
    assert x.tolist() == dual.tolist() == [2, 16]
    dual.mul_(2)
    assert view.item() == part.item() == 32
    x.requires_grad_()
    with fw.dual_level():
        again = fw.make_dual(x * 1, torch.ones(2)).select(0, 1)
    again.backward()
    assert x.grad.tolist() == [0, 1]


def test_what_does_not_fit_is_named() -> None:
    x, at = torch.ones(2, 3), torch.zeros(1, 1, dtype=torch.int64)
    for name, args in {
        "scatter_": (), "scatter_add_": (), "scatter_reduce_": ("sum",),
    }.items():  # fmt: skip
        with pytest.raises(RuntimeError, match="same number of dimensions as src tensor"):
            getattr(x, name)(-1, at, torch.tensor(1.0), *args)
    for name in ("index_add_", "index_copy_"):
        with pytest.raises(RuntimeError, match="source has size"):
            getattr(x, name)(0, torch.tensor([0]), torch.tensor(1.0))
    with pytest.raises(RuntimeError, match=r"Target sizes: \[2, 2\].  Tensor sizes: \[3\]"):
        x[:, 1:] = torch.ones(3)
    with pytest.raises(RuntimeError, match=r"output with shape \[1, 3\] doesn't match"):
        x[:1].add_(x)
    assert np.array_equal(x.numpy(), np.ones((2, 3)))


def test_hooks_see_tensors_of_their_namespace() -> None:
    seen: list[str] = []

    def pack(x: Any) -> Any:
        seen.append(str(x.dtype))
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        y = torch.sigmoid(torch.ones(2, requires_grad=True))
        torch.hypot(y.prod(), y)
    assert set(seen) == {"torch.float32"}


SHARED: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "vjp": (lambda x, c: func.vjp(lambda a: a, x)[0], [10, 20]),
    "vjp of a view": (lambda x, c: func.vjp(lambda a: a[1:], x)[0], [20]),
    "vjp of what is captured": (lambda x, c: func.vjp(lambda a: c, x)[0], [50, 60]),
    "jvp": (lambda x, c: func.jvp(lambda a: a, (x,), (x,))[0], [10, 20]),
    "jvp of a view": (lambda x, c: func.jvp(lambda a: a.view(2, 1)[1], (x,), (x,))[0], [20]),
    "jvp of what is captured": (lambda x, c: func.jvp(lambda a: c, (x,), (x,))[0], [50, 60]),
    "linearize": (lambda x, c: func.linearize(lambda a: a, x)[0], [10, 20]),
    "grad": (lambda x, c: func.grad(lambda a: (a.sum(), a), has_aux=True)(x)[1], [10, 20]),
    "jacrev": (lambda x, c: func.jacrev(lambda a: (a, c), has_aux=True)(x)[1], [50, 60]),
    "jacfwd": (lambda x, c: func.jacfwd(lambda a: (a, a[:1]), has_aux=True)(x)[1], [10]),
    "vmap": (lambda x, c: func.vmap(lambda a: a)(x), [10, 20]),
    "vmap of a view": (lambda x, c: func.vmap(lambda a: a.view(1, 1))(x), [[[10]], [[20]]]),
    "vmap over the last": (
        lambda x, c: func.vmap(lambda a: a[1:], in_dims=1, out_dims=1)(c.view(1, 2).expand(2, 2)),
        [[50, 60]],
    ),
    "vmap of what is captured": (lambda x, c: func.vmap(lambda a: c[1:])(x), [[60], [60]]),
    "vmap of what is not mapped": (
        lambda x, c: func.vmap(lambda a, b: b, in_dims=(0, None), out_dims=1)(x, c),
        [[50, 50], [60, 60]],
    ),
}


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("name", SHARED)
def test_results_share_memory_where_torchs_do(name: str, is_recorded: bool) -> None:
    x, c = torch.tensor([1.0, 2.0]), torch.tensor([5.0, 6.0])
    x.requires_grad_(is_recorded)
    c.requires_grad_(is_recorded)
    of, expected = SHARED[name]
    result = of(x, c)
    with torch.no_grad():
        x.mul_(10)
        c.mul_(10)
    assert result.detach().tolist() == expected
    if is_recorded:
        result.sum().backward()
        seen = [g for g in (x.grad, c.grad) if g is not None]
        assert sum(g.sum().item() for g in seen) == np.size(expected)


def test_what_is_detached_in_place_is_a_constant() -> None:
    def f(x: Any) -> Any:
        y = x * x
        y.detach_()
        return (x * y).sum()

    x = x_of()
    for found in (func.grad(f)(x), func.jacfwd(f)(x), func.jvp(f, (x,), (torch.ones(3),))[1]):
        assert found.tolist() in ([1, 4, 9], 14)
    outside = x * 1
    with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
        func.grad(lambda v: (v * outside.detach_()).sum())(x)


def test_chunks_call_the_function_anew() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(tuple(x.shape))
        x.mul_(2)
        return x.sum(), None

    x = torch.arange(10.0).reshape(5, 2)
    found, nothing = func.vmap(f, chunk_size=2, out_dims=(0, None))(x)
    assert (len(calls), nothing) == (3, None)
    assert found.tolist() == [2, 10, 18, 26, 34]
    assert x.tolist()[4] == [16, 18]
    assert torch.equal(func.vmap(lambda v: v, 1, -1, chunk_size=1)(x), x)


def test_hooks_see_gradients_of_their_namespace() -> None:
    seen: list[str] = []
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: seen.append(str(g.dtype)))
    torch.autograd.grad(x.norm(), x, create_graph=True)
    assert seen == ["torch.float32"]


QUOTIENTS: dict[str, Callable[[Any], Any]] = {
    "data": lambda y: y.data.mul_(0.5),
    "part": lambda y: y[:1].data.mul_(0.5),
    "detach": lambda y: y.detach().mul_(0.5),
    "numpy": lambda y: np.multiply(y.detach().numpy(), 0.5, out=y.detach().numpy()),
    "no_grad": torch.no_grad()(lambda y: y.mul_(0.5)),
}


@pytest.mark.parametrize("write", QUOTIENTS)
def test_what_torch_does_not_save_is_kept(write: str) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x / (x + 3)
    QUOTIENTS[write](y)
    y.backward(torch.ones(2))
    np.testing.assert_allclose(x.grad.numpy(), 3 / np.array([4.0, 5.0]) ** 2, rtol=1e-6)
    QUOTIENTS[write](y)  # also of a graph that is gone
    layer = torch.nn.functional.layer_norm(torch.arange(3.0).requires_grad_(), (3,))
    layer.sum().backward()
    QUOTIENTS[write](layer)
    assert layer.detach().tolist()[1] == 0


def test_arguments_keep_their_shapes() -> None:
    for transform in DERIVATIVES:
        with pytest.raises(RuntimeError, match=r"shape of an argument in place|leaf Variable"):
            DERIVATIVES[transform](lambda x: x.unsqueeze_(0).sum(), x_of())
    with pytest.raises(RuntimeError, match="changes the shape of an argument in place"):
        func.vmap(lambda x: x.t_())(torch.ones(2, 3, 3))


def test_tangents_that_share_memory_are_not_written_to() -> None:
    x = x_of()
    with pytest.raises(RuntimeError, match="shares memory with its tangent"):
        func.jvp(lambda v: v.mul_(2), (x,), (x.detach(),))
    with fw.dual_level(), pytest.raises(RuntimeError, match="primal and tangent share memory"):
        fw.make_dual(x, x).mul_(2)
    assert x.tolist() == [1, 2, 3]


def test_a_retained_gradient_is_not_the_one_that_was_asked_for() -> None:
    x = x_of().requires_grad_()
    y = x * 1
    y.retain_grad()
    (g,) = torch.autograd.grad((y * y).sum(), y)
    g.zero_()
    assert y.grad.tolist() == [2, 4, 6]


def test_empty_views_of_leaves_are_views() -> None:
    x = torch.ones(1, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        x[1:] = 2
    part = (x * 1)[1:]
    part.mul_(3)
    assert part.sum().item() == 0


def test_arguments_that_are_not_differentiated_take_no_hooks() -> None:
    x, y = x_of(), x_of().requires_grad_()

    def f(x: Any, y: Any) -> Any:
        y.register_hook(print)
        return (x * y).sum()

    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        func.grad(f)(x, y)


def test_detached_duals_share_memory_afterwards() -> None:
    x = x_of()
    with fw.dual_level():
        constant = fw.make_dual(x, torch.ones(3)).detach()
    x.mul_(2)
    assert constant.tolist() == [2, 4, 6]
    scalar = torch.tensor(1.0)
    assert scalar.mT is scalar
    with fw.dual_level():
        view = fw.make_dual(x, torch.ones(3)).view(3)
        with pytest.raises(RuntimeError, match="data set to a view of a traced tensor"):
            view.data = x


RESHAPES: dict[str, Callable[[Any], Any]] = {
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "swapaxes_": lambda x: x.swapaxes_(0, 1),
    "squeeze_": lambda x: x.squeeze_(),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
}


@pytest.mark.parametrize("is_view", [False, True])
@pytest.mark.parametrize("which", ["dual", "primal", "tangent"])
@pytest.mark.parametrize("reshape", RESHAPES)
def test_duals_share_memory_after_a_change_of_shape(
    reshape: str, which: str, is_view: bool
) -> None:
    numbers = torch.arange(6.0).reshape(1, 6) if is_view else torch.tensor([[1.0, 2.0, 3.0]])
    primal, tangent = numbers, numbers * 1
    shape = primal.shape
    with fw.dual_level():
        dual = fw.make_dual(primal, tangent)
        RESHAPES[reshape]({"dual": dual, "primal": primal, "tangent": tangent}[which])
        own = dual.shape
        assert (own == shape) == (which != "dual")
        assert all(part.shape == own for part in fw.unpack_dual(dual))
        for written in (dual, primal, tangent):
            written.mul_(2)
            parts = fw.unpack_dual(dual)
            assert torch.equal(parts.primal.reshape(-1), primal.reshape(-1))
            assert torch.equal(parts.tangent.reshape(-1), tangent.reshape(-1))
        squared = fw.unpack_dual(dual * dual)
        assert torch.equal(squared.tangent, 2 * parts.primal * parts.tangent)
    for written in (dual, primal):
        written.mul_(3)
        assert torch.equal(dual.reshape(-1), primal.reshape(-1))
    assert dual.shape == own


@pytest.mark.parametrize("view", [lambda d: d[1:], lambda d: d.T, lambda d: d[1:].diagonal()])
@pytest.mark.parametrize("is_computed", [False, True])
def test_views_of_duals_follow_writes_to_the_tangent(view: Any, is_computed: bool) -> None:
    tangent = torch.ones(3, 3)
    with fw.dual_level():
        dual = fw.make_dual(torch.arange(9.0).reshape(3, 3), tangent)
        if is_computed:
            dual = dual * 1
            tangent = fw.unpack_dual(dual).tangent
        part = view(dual)
        for write in (lambda: tangent.mul_(5), lambda: tangent[1:].add_(1)):
            write()
            primal = fw.unpack_dual(part).primal
            slope = fw.unpack_dual(part * part).tangent
            assert torch.equal(slope, 2 * primal * view(tangent))


def test_views_of_what_was_a_dual_leaf_are_not_written_to() -> None:
    leaf = x_of().requires_grad_()
    with fw.dual_level():
        dual = fw.make_dual(leaf, torch.ones(3))
        part = dual[1:]
    for x in (dual, part, dual[:1]):
        for write in (lambda x=x: x.mul_(2), lambda x=x: x.squeeze_()):
            with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
                write()
    assert leaf.tolist() == [1, 2, 3]


def test_a_recorded_dual_keeps_its_shape_after_a_write() -> None:
    x = x_of().requires_grad_() * 2
    with fw.dual_level():
        dual = fw.make_dual(x, torch.ones(3))
        dual.mul_(3)
        x.unsqueeze_(0)
        primal, tangent = fw.unpack_dual(dual * 1)
        assert primal.tolist() == [6, 12, 18]
        assert tangent.tolist() == [3, 3, 3]
    assert dual.shape == (3,)


def test_a_tangent_of_other_strides_along_single_axes_is_taken() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    tangent = x[::2]
    with fw.dual_level():
        assert fw.unpack_dual(fw.make_dual(x, tangent)).tangent is tangent


@pytest.mark.parametrize("is_recorded", [False, True])
def test_what_an_inner_transform_wrote_is_not_read_of_the_callers_tensor(
    is_recorded: bool,
) -> None:
    x = x_of().requires_grad_(is_recorded) * 2

    def f(a: Any) -> Any:
        def inner(p: Any, b: Any) -> Any:
            with torch.no_grad():
                b.sub_(0.5)
            return p.sum()

        func.grad(inner)(torch.ones(2), a)
        return x.sum()

    before = x.tolist()
    with pytest.raises(RuntimeError, match="a tensor is read that is an argument of f"):
        func.jvp(f, (x,), (torch.ones(3),))
    assert x.tolist() == before
    kept = torch.tensor([1.0], requires_grad=True)
    func.grad(lambda a, b: (b.detach_() * a).sum())(torch.ones(1), kept)
    assert kept.requires_grad


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("reshape", RESHAPES)
def test_a_change_of_shape_keeps_derivatives_where_nothing_is_recorded(
    reshape: str, mode: Any
) -> None:
    leaf = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    for x in (leaf * leaf, (leaf * leaf)[:]):
        with mode():
            RESHAPES[reshape](x)
        assert (x.requires_grad, x.is_leaf) == (True, False)
        weights = torch.arange(1.0, 4.0).reshape(x.shape)
        (found,) = torch.autograd.grad((weights * x).sum(), leaf)
        assert found.tolist() == [[2, 8, 18]]
    with mode():
        RESHAPES[reshape](leaf)
    assert (leaf.requires_grad, leaf.is_leaf) == (True, True)
    (leaf * leaf).sum().backward()
    assert leaf.grad.shape == leaf.shape


@pytest.mark.parametrize("n", [2, 3])
def test_axes_of_leaves_change_where_nothing_is_recorded(n: int) -> None:
    weights = torch.arange(3.0 * n).reshape(n, 3)
    for leaf in (torch.ones(n, 3), torch.ones(n * 3).view(n, 3), torch.ones(3, n).t()):
        leaf.requires_grad_()
        before = (leaf * weights).sum()
        with torch.no_grad():
            leaf.t_()
        assert (leaf.is_leaf, leaf.requires_grad, leaf.shape) == (True, True, (3, n))
        with pytest.raises(RuntimeError, match="recorded"):
            before.backward()
        assert leaf.grad is None
        (leaf * weights.t()).sum().backward()
        assert torch.equal(leaf.grad, weights.t())


def test_data_of_duals_have_no_derivative() -> None:
    leaf = x_of().requires_grad_()
    with fw.dual_level():
        dual = fw.make_dual(leaf, torch.ones(3)) * 1
        dual.data.mul_(2)
        primal, tangent = fw.unpack_dual(dual)
        assert primal.tolist() == [2, 4, 6]
        assert tangent.tolist() == [1, 1, 1]
        assert torch.autograd.grad(primal.sum(), leaf)[0].tolist() == [1, 1, 1]
        for constant in (dual.data, dual.detach()):
            found = fw.unpack_dual(constant)
            assert (found.primal.requires_grad, found.tangent) == (False, None)
        for own in (leaf, x_of()):
            dual = fw.make_dual(own, torch.ones(3)) * 1
            view = dual[1:]
            dual.data = torch.zeros(3)
            dual.add_(2)
            assert fw.unpack_dual(dual).primal.tolist() == [2, 2, 2]
            assert fw.unpack_dual(dual).tangent.tolist() == [1, 1, 1]
            assert dual.requires_grad == own.requires_grad
            assert fw.unpack_dual(view).primal.tolist() == [2, 3]
        with pytest.raises(RuntimeError, match="its tangent would not fit"):
            dual.data = torch.zeros(2)


def test_inference_mode_hides_tangents_of_levels() -> None:
    with fw.dual_level():
        dual = fw.make_dual(x_of(), torch.ones(3))
        for make in (lambda: dual * 2, dual.exp, dual.sum, lambda: dual[1:] + 1):
            with torch.inference_mode():
                constant = make()
            assert fw.unpack_dual(constant).tangent is None
            with torch.no_grad():
                assert fw.unpack_dual(make()).tangent is not None
        for written in (torch.zeros(3), torch.zeros(4)[1:]):
            written[1:].copy_(dual[1:])
            tangent = fw.unpack_dual(written).tangent
            assert tangent.dtype is torch.float32
            assert tangent.tolist() == [0, 1, 1]


def test_chunks_draw_the_same_numbers() -> None:
    def f(x: Any) -> Any:
        return x + torch.rand(())

    found = []
    for chunk_size in (None, 1, 2, 3):
        torch.manual_seed(0)
        result = func.vmap(f, randomness="same", chunk_size=chunk_size)(torch.zeros(3))
        found.append((*result.tolist(), torch.rand(()).item()))
    assert len(set(found[0])) == 2
    assert found[1:] == found[:1] * 3


def test_tangents_share_memory_where_results_do() -> None:
    for f in (lambda a: a, lambda a: a[1:], lambda a: a.mul_(2)[1:]):
        x, tangent = x_of(), torch.ones(3)
        out, slope = func.jvp(f, (x,), (tangent,))
        slope.mul_(5)
        out.add_(1)
        assert slope.tolist() == tangent[-len(slope) :].tolist()
        assert out.tolist() == x[-len(out) :].tolist()


def test_mapped_arguments_are_not_written_to_under_another_name() -> None:
    x, count = x_of(), torch.zeros(3)

    def f(a: Any) -> Any:
        v = a + a
        x.exp_()
        return v

    with pytest.raises(RuntimeError, match="is an argument of vmap, too"):
        func.vmap(f)(x)
    assert x.tolist() == [1, 2, 3]
    assert func.vmap(lambda a: count.add_(1).sum() * a)(x).tolist() == [3, 6, 9]


READ_AGAIN: dict[str, Callable[[Any], Any]] = {
    "copy_": lambda z: torch.ones(2, 3).copy_(z),
    "copy_ of a view": lambda z: torch.ones(1).copy_(z[0]),
    "item": lambda z: z[0, 0].item(),
    "bool": lambda z: bool(z[0, 0]),
    "tolist": lambda z: z.tolist(),
    "tensor": torch.tensor,
    "fill_": lambda z: torch.zeros(2).fill_(z[0, 0]),
    "full": lambda z: torch.full((2,), z[0, 0]),
    "equal": lambda z: torch.equal(z, z),
    "an operation": lambda z: 2.0 * z,
    "a write": lambda z: torch.zeros(2, 1).add_(z),
}


@pytest.mark.parametrize("name", READ_AGAIN)
def test_an_argument_that_was_written_to_is_not_read_under_another_name(name: str) -> None:
    z = torch.zeros(2, 1)

    def f(a: Any) -> Any:
        a.fill_(0.5)
        READ_AGAIN[name](z)
        return a.sum()

    with pytest.raises(RuntimeError, match="a tensor is read that is an argument of f"):
        torch.func.vmap(f)(z)
    READ_AGAIN[name](z)
