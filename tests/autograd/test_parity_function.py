"""``Function``, forward mode, transforms and checkpoints against PyTorch."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from functrans.autograd import api, checkpoint, forward_ad, func, no_grad, tensor
from functrans.autograd import function as functions

torch = pytest.importorskip("torch")
torch_function = pytest.importorskip("torch.autograd.function")
torch_checkpoint = pytest.importorskip("torch.utils.checkpoint")

X = np.array([0.5, 1.0, 2.0])
T = np.array([1.0, -2.0, 3.0])

OURS = SimpleNamespace(
    Function=functions.Function,
    once_differentiable=functions.once_differentiable,
    tensor=lambda x, g=False: tensor(x, requires_grad=g),
    grad=api.grad,
    func=func,
    fw=forward_ad,
    checkpoint=checkpoint.checkpoint,
    no_grad=no_grad,
)
THEIRS = SimpleNamespace(
    Function=torch.autograd.Function,
    once_differentiable=torch_function.once_differentiable,
    tensor=lambda x, g=False: torch.tensor(x, requires_grad=g),
    grad=torch.autograd.grad,
    func=torch.func,
    fw=torch.autograd.forward_ad,
    checkpoint=torch_checkpoint.checkpoint,
    no_grad=torch.no_grad,
)


def made(side: Any, forward: Any = None, backward: Any = None, **others: Any) -> Any:
    """A ``Function`` with these methods."""
    body = {
        "forward": staticmethod(forward or (lambda ctx, *args: args[0] * 2)),
        "backward": staticmethod(backward or (lambda ctx, *grads: grads[0])),
        **{name: staticmethod(method) for name, method in others.items()},
    }
    return type("Made", (side.Function,), body)


def plain(x: Any) -> Any:
    """Numbers instead of tensors."""
    if isinstance(x, (tuple, list)):
        return [plain(item) for item in x]
    return x.detach().numpy() if hasattr(x, "detach") else x


def outcome(case: Any, side: Any) -> Any:
    """What a case gives: numbers, or type and text of an error."""
    try:
        return "value", plain(case(side))
    except Exception as error:
        return type(error).__name__, str(error)


def assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b)
    elif isinstance(theirs, np.ndarray):
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    else:
        assert ours == theirs


def back(side: Any, *args: Any, **methods: Any) -> Any:
    """Gradients of the sum of a function's first result."""
    tensors = [a if isinstance(a, float) else side.tensor(a, True) for a in args]
    out = made(side, **methods).apply(*tensors)
    (out[0] if isinstance(out, tuple) else out).sum().backward()
    return [t.grad for t in tensors if not isinstance(t, float)]


def set_none(ctx: Any, x: Any) -> Any:
    ctx.set_materialize_grads(False)
    return x * 1, x * 2


def constant(ctx: Any, x: Any) -> Any:
    y = x * 1
    ctx.mark_non_differentiable(y)
    return x * 2, y


def dirty(ctx: Any, x: Any) -> Any:
    x.mul_(3)
    ctx.mark_dirty(x)
    return x


def written(side: Any, part: Any) -> Any:
    x = side.tensor(X, True)
    y = x * 1
    z = made(side, dirty, lambda ctx, g: g * 3).apply(part(y))
    (z * z).sum().backward(retain_graph=True)
    return [x.grad, y, z, y._version, y.grad_fn.name().split(":")[-1], z.is_leaf]


def needs(side: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, *args: Any) -> Any:
        seen.extend(ctx.needs_input_grad)
        return args[0] * 1

    made(side, forward).apply(side.tensor(X, True), side.tensor(X), 3.0)
    with side.no_grad():
        made(side, forward).apply(side.tensor(X, True), side.tensor(X), 3.0)
    return seen


def node(side: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.note = 5
        return x * 1

    x = side.tensor(X, True)
    found = made(side, forward).apply(x).grad_fn
    return [found.name(), found.note, found.saved_tensors, found.needs_input_grad]


def returned(side: Any) -> Any:
    x = side.tensor(X, True)
    y = made(side, lambda ctx, x: x, lambda ctx, g: g * 2).apply(x)
    y.sum().backward()
    return [y is x, y._base is x, x.grad, y.grad_fn.name()]


def once(side: Any, again: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @side.once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g * ctx.saved_tensors[0]

    x, w = side.tensor(X, True), side.tensor(T, True)
    (first,) = side.grad((made(side, forward, backward).apply(x) * w).sum(), x, create_graph=True)
    return again(first)


def with_setup(side: Any) -> Any:
    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y, g * x

    def jvp(ctx: Any, a: Any, b: Any) -> Any:
        return a * 2 + b * 3

    return made(
        side, lambda x, y: x * y, backward, jvp=jvp, setup_context=setup,
    )  # fmt: skip


def batched_function(side: Any) -> Any:
    cls = with_setup(side)
    cls.generate_vmap_rule = True
    return cls


def dual(side: Any, f: Any) -> Any:
    with side.fw.dual_level():
        primal, tangent = side.fw.unpack_dual(
            f(side.fw.make_dual(side.tensor(X, True), side.tensor(T)))
        )
        return [primal, tangent]


def hvp(side: Any) -> Any:
    x = side.tensor(X, True)
    with side.fw.dual_level():
        d = side.fw.make_dual(x, side.tensor(T))
        (g,) = side.grad((d.sin() * d).sum(), d, create_graph=True)
        primal, tangent = side.fw.unpack_dual(g)
    return [primal, tangent, *side.grad(tangent.sum(), x)]


def after(side: Any) -> Any:
    x = side.tensor(X, True)
    with side.fw.dual_level():
        y = side.fw.make_dual(x, side.tensor(T)) * 2
    (y * y).sum().backward()
    return [y, side.fw.unpack_dual(y).tangent, x.grad]


def over(side: Any, f: Any) -> Any:
    x, w = side.tensor(X, True), side.tensor(T, True)
    value = f(side.func, x, w)
    return [value, *side.grad(value.sum(), [x, w])]


def rerun(side: Any, use_reentrant: bool) -> Any:
    x = side.tensor(X, True)
    y = side.checkpoint(lambda x: (x.sin() * x).exp(), x, use_reentrant=use_reentrant)
    y.sum().backward()
    return [y, x.grad, y.is_leaf]


CASES = {
    "too many gradients": lambda s: back(s, X, backward=lambda ctx, g: (g, g)),
    "more None": lambda s: back(s, X, backward=lambda ctx, g: (g, None)),
    "too few gradients": lambda s: back(s, X, X, backward=lambda ctx, g: g),
    "no tensor": lambda s: back(s, X, backward=lambda ctx, g: 1.0),
    "other shape": lambda s: back(s, X, backward=lambda ctx, g: g[:2]),
    "wider shape": lambda s: back(s, X, backward=lambda ctx, g: g.expand(4, 3)),
    "no variable": lambda s: back(s, X, 2.0, backward=lambda ctx, g: (g, g)),
    "nothing": lambda s: back(s, X, backward=lambda ctx, g: None),
    "no materialized gradients": lambda s: back(
        s, X, forward=set_none, backward=lambda ctx, a, b: a if b is None else b * 7
    ),
    "materialized gradients": lambda s: back(
        s, X, forward=lambda ctx, x: (x * 1, x * 2), backward=lambda ctx, a, b: a + b * 7
    ),
    "constant result": lambda s: back(
        s, X, forward=constant, backward=lambda ctx, a, b: a + b * 7
    ),
    "result that is no tensor": lambda s: back(
        s, X, forward=lambda ctx, x: (x * 2, 3), backward=lambda ctx, a, b: a if b is None else b
    ),
    "saves a number": lambda s: back(
        s, X, forward=lambda ctx, x: (ctx.save_for_backward(3), x * 1)[1]
    ),
    "dirty and not returned": lambda s: back(
        s, X, forward=lambda ctx, x: (ctx.mark_dirty(x), x * 1)[1]
    ),
    "dirty leaf": lambda s: back(s, X, forward=lambda ctx, x: (ctx.mark_dirty(x), x)[1]),
    "dirty": lambda s: written(s, lambda y: y),
    "dirty view": lambda s: written(s, lambda y: y[:2]),
    "needs_input_grad": needs,
    "node": node,
    "returned argument": returned,
    "write to a returned argument": lambda s: (
        made(s, lambda ctx, x: x).apply(s.tensor(X, True) * 1).add_(1)
    ),
    "once": lambda s: once(s, lambda g: g),
    "once, twice": lambda s: once(s, lambda g: g.sum().backward()),
    "second backward": lambda s: (
        lambda y: (y.backward(), y.backward())
    )(
        made(
            s,
            lambda ctx, x: (ctx.save_for_backward(x), x * 1)[1],
            lambda ctx, g: g * ctx.saved_tensors[0],
        ).apply(s.tensor(X, True)).sum()
    ),
    "no forward": lambda s: type("Made", (s.Function,), {}).apply(s.tensor(X, True)),
    "jvp": lambda s: s.func.jvp(
        with_setup(s).apply, (s.tensor(X), s.tensor(T)), (s.tensor(T), s.tensor(X))
    ),
    "grad of Function": lambda s: s.func.grad(
        lambda x, y: with_setup(s).apply(x, y).sum(), (0, 1)
    )(s.tensor(X), s.tensor(T)),
    "second grad of Function": lambda s: s.func.grad(
        lambda x: s.func.grad(lambda y: (with_setup(s).apply(y, y) * y).sum())(x).sum()
    )(s.tensor(X)),
    "vmap of Function": lambda s: s.func.vmap(batched_function(s).apply)(
        s.tensor(X), s.tensor(T)
    ),
    "vmap of grad of Function": lambda s: s.func.vmap(
        s.func.grad(batched_function(s).apply)
    )(s.tensor(X), s.tensor(T)),
    "dual": lambda s: dual(s, lambda d: (d.sin() * d).sum()),
    "dual Function": lambda s: dual(s, lambda d: with_setup(s).apply(d, s.tensor(T))),
    "dual hvp": hvp,
    "dual afterwards": after,
    "no level": lambda s: s.fw.make_dual(s.tensor(X), s.tensor(T)),
    "no level to leave": lambda s: s.fw.exit_dual_level(),
    "grad over tensors": lambda s: over(
        s, lambda f, x, w: f.grad(lambda v: (v * w).sin().sum())(x)
    ),
    "vmap over tensors": lambda s: over(s, lambda f, x, w: f.vmap(lambda v: (v * w).sum())(x)),
    "jacrev over tensors": lambda s: over(
        s, lambda f, x, w: f.jacrev(lambda v: (v * w).sin() * v.sum())(x)
    ),
    "hessian over tensors": lambda s: over(
        s, lambda f, x, w: f.hessian(lambda v: (v * w).sin().sum())(x)
    ),
    "autograd.grad in grad": lambda s: s.func.grad(
        lambda x: s.grad((x**3).sum(), x, create_graph=True)[0].sum()
    )(s.tensor(X)),
    "complex grad": lambda s: s.func.grad(lambda x: (x * x.conj()).real.sum())(
        s.tensor(X + 1j * T)
    ),
    "grad of a vector": lambda s: s.func.grad(lambda x: x)(s.tensor(X)),
    "grad of no tensor": lambda s: s.func.grad(lambda x: 3)(s.tensor(X)),
    "grad at a number": lambda s: s.func.grad(lambda x: x)(3.0),
    "jvp without tuples": lambda s: s.func.jvp(lambda x: x, s.tensor(X), s.tensor(X)),
    "vmap of different sizes": lambda s: s.func.vmap(lambda x, y: x * y)(
        s.tensor(X), s.tensor(X[:2])
    ),
    "vmap at a number": lambda s: s.func.vmap(len)(3.0),
    "checkpoint": lambda s: rerun(s, False),
    "reentrant checkpoint": lambda s: rerun(s, True),
    "checkpoint with a keyword": lambda s: s.checkpoint(
        abs, s.tensor(X, True), use_reentrant=True, other=1
    ),
    "checkpoint and grad": lambda s: (
        lambda x: s.grad(s.checkpoint(lambda x: x * 1, x, use_reentrant=True).sum(), x)
    )(s.tensor(X, True)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", CASES)
def test_same_as_torch(name: str) -> None:
    ours, theirs = outcome(CASES[name], OURS), outcome(CASES[name], THEIRS)
    assert ours[0] == theirs[0], (ours, theirs)
    assert_same(ours[1], theirs[1])
