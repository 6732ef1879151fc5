"""Views, in-place forms and fillers: memory, versions, the graph."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import functrans as functional
import functrans.compat.torch as ft
from functrans.autograd import grad, gradcheck, no_grad, tensor

BASE = np.arange(12.0).reshape(3, 4)

VIEWS: dict[str, Callable[[Any], Any]] = {
    "view": lambda x: x.view(2, 6),
    "same_shape": lambda x: x.view(3, 4),
    "reshape": lambda x: x.reshape(-1),
    "t": lambda x: x.t(),
    "permute": lambda x: x.permute(1, 0),
    "transpose": lambda x: x.transpose(0, 1),
    "identity_transpose": lambda x: x.transpose(0, 0),
    "movedim": lambda x: x.movedim(0, 1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x.squeeze(),
    "expand_same": lambda x: x.expand(3, 4),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "select": lambda x: x.select(0, 1),
    "slice": lambda x: x[1:, ::2],
    "ellipsis": lambda x: x[...],
    "diagonal": lambda x: x.diagonal(1),
    "flatten": lambda x: x.flatten(),
    "unflatten": lambda x: x.unflatten(1, (2, 2)),
    "as_strided": lambda x: x.as_strided((2, 2), (4, 1), 1),
    "unfold": lambda x: x.unfold(1, 2, 2),
    "detach": lambda x: x.detach(),
    "mT": lambda x: x.mT,
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shares_memory_and_version(name: str) -> None:
    x = tensor(BASE)
    part = VIEWS[name](x)
    part.fill_(-1.0)
    assert x._version == part._version == 1
    expected = BASE.copy()
    VIEWS[name](tensor(BASE))
    reference = tensor(np.arange(12).reshape(3, 4))
    expected.reshape(-1)[VIEWS[name](reference).numpy().reshape(-1)] = -1.0
    assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("name", [n for n in VIEWS if n != "detach"])
def test_a_write_to_a_view_is_part_of_the_graph(name: str) -> None:
    x = tensor(BASE, requires_grad=True)
    y = x * 1
    part = VIEWS[name](y)
    part.mul_(3.0)
    (found,) = grad(y.sum(), x)
    reference = VIEWS[name](tensor(np.arange(12).reshape(3, 4))).numpy().reshape(-1)
    expected = np.ones(12)
    expected[reference] = 3.0
    assert_array_equal(found.numpy(), expected.reshape(3, 4))


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_a_leaf_is_not_written_to(name: str) -> None:
    x = tensor(BASE, requires_grad=True)
    part = VIEWS[name](x)
    if name == "detach":
        assert not part.requires_grad
        return
    with pytest.raises(RuntimeError, match="view of a leaf Variable that requires grad"):
        part.add_(1.0)
    assert_array_equal(x.detach().numpy(), BASE)


def test_an_expanded_tensor_is_not_written_to() -> None:
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        tensor([1.0]).expand(3).add_(1.0)


@pytest.mark.parametrize(
    "cut", [lambda x: x.split(2), lambda x: x.unbind(), lambda x: x.chunk(2, 1)]
)
def test_several_views_are_results_of_one_node(cut: Any) -> None:
    x = tensor(BASE, requires_grad=True)
    parts = cut(x * 1)
    assert len({id(part.grad_fn) for part in parts}) == 1
    assert [part.output_nr for part in parts] == list(range(len(parts)))
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        parts[0].add_(1.0)
    (found,) = grad(parts[1].sum(), x)
    expected = np.zeros(12)
    expected[cut(tensor(np.arange(12).reshape(3, 4)))[1].numpy().reshape(-1)] = 1.0
    assert_array_equal(found.numpy().reshape(-1), expected)


def test_results_that_are_no_views_have_memory_of_their_own() -> None:
    x = tensor(BASE)
    scalar = tensor(2.0)
    pairs = [
        (x, x.sum(1, keepdim=True)),
        (x, x.roll(0)),
        (x, x.flip(())),
        (x, x.tile(1)),
        (x, x.tril(9)),
        (x, ft.cat((x,))),
        (scalar, scalar.sum()),
        (scalar, scalar.cumsum(0)),
        (scalar, scalar.max()),
        (scalar, scalar.sort().values),
    ]
    for source, result in pairs:
        before = source.numpy().copy()
        result.add_(1.0)
        assert_array_equal(source.numpy(), before)


def test_a_sum_of_one_number_leaves_the_node_of_its_operand() -> None:
    x = tensor(3.0, requires_grad=True)
    y = x * 2
    total = y.sum()
    assert y.grad_fn.name() == "MulBackward0"
    assert total.grad_fn.name() == "SumBackward0"


IN_PLACE: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "add_": (lambda y: y.add_(2.0), lambda y: y + 2.0),
    "sub_": (lambda y: y.sub_(tensor(BASE), alpha=3), lambda y: y - 3 * tensor(BASE)),
    "mul_": (lambda y: y.mul_(tensor(BASE)), lambda y: y * tensor(BASE)),
    "sin_": (lambda y: y.sin_(), lambda y: y.sin()),
    "exp_": (lambda y: y.exp_(), lambda y: y.exp()),
    "clamp_": (lambda y: y.clamp_(1.0, 5.0), lambda y: y.clamp(1.0, 5.0)),
    "softplus": (lambda y: y.logit_(0.1), lambda y: y.logit(0.1)),
    "copy_": (lambda y: y.copy_(y.flip(0)), lambda y: y.flip(0)),
    "cumsum_": (lambda y: y.cumsum_(1), lambda y: y.cumsum(1)),
    "masked_fill_": (lambda y: y.masked_fill_(y > 5, 0.0), lambda y: y.masked_fill(y > 5, 0.0)),
    "t_": (lambda y: y.t_(), lambda y: y.t()),
    "transpose_": (lambda y: y.transpose_(0, 1), lambda y: y.transpose(0, 1)),
    "unsqueeze_": (lambda y: y.unsqueeze_(0), lambda y: y.unsqueeze(0)),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_the_in_place_form_has_the_same_value_and_derivatives(name: str) -> None:
    in_place, plain = IN_PLACE[name]
    found = []
    for function in (in_place, plain):
        x = tensor(BASE / 7, requires_grad=True)
        y = x * x
        out = function(y)
        assert (out is y) == (function is in_place)
        (first,) = grad((out * out).sum(), x, create_graph=True)
        (second,) = grad((first * first).sum(), x)
        found.append((out.detach().numpy(), first.detach().numpy(), second.numpy()))
    for ours, expected in zip(*found, strict=True):
        assert_array_equal(ours, expected)


RESHAPED: dict[str, Callable[[Any], Any]] = {
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "swapaxes_": lambda x: x.swapaxes_(1, 0),
    "swapdims_": lambda x: x.swapdims_(0, 1),
    "unsqueeze_": lambda x: x.unsqueeze_(1),
    "squeeze_": lambda x: x.unsqueeze_(0).squeeze_(),
    "twice": lambda x: x.t_().unsqueeze_(0),
}
AFTER: dict[str, Callable[[Any, Any], Any]] = {
    "nothing": lambda x, v: None,
    "the earlier view": lambda x, v: v.mul_(2),
    "the tensor": lambda x, v: x.mul_(3),
    "a later view": lambda x, v: x[0].mul_(v.sum()),
    "all": lambda x, v: (v.mul_(2), x.add_(v.sum()), x[-1].mul_(x.mean()), v.sin_()),
}


@pytest.mark.parametrize("name", RESHAPED)
@pytest.mark.parametrize("written", AFTER)
def test_views_of_a_tensor_that_is_reshaped_in_place_stay_its_views(
    name: str, written: str
) -> None:
    def function(leaf: Any) -> Any:
        x = leaf * leaf
        view = x[0]
        AFTER[written](x, view)
        assert RESHAPED[name](x) is x
        AFTER[written](x, view)
        assert x._base is None
        weights = tensor(np.arange(1.0, 1 + x.numel())).view(x.shape)
        return (x * weights).sum() + (view**3).sum()

    point = np.array([[0.4, 0.9], [0.7, 1.2], [1.1, -0.3]])
    assert gradcheck(function, tensor(point, requires_grad=True))
    leaf = tensor(point, requires_grad=True)
    (expected,) = grad(function(leaf), leaf)
    staged = ft.func.grad(function)(tensor(point))
    np.testing.assert_allclose(staged.numpy(), expected.numpy(), rtol=1e-13)


# Strides are unknown where values are; what is detached has no gradient to compare with.
@pytest.mark.parametrize("name", [name for name in VIEWS if name not in ("as_strided", "detach")])
def test_unrecorded_views_are_constants_in_jitted_steps_and_transforms(name: str) -> None:
    leaf = tensor(BASE / 7, requires_grad=True)

    def loss(x: Any) -> Any:
        with no_grad():
            constant = VIEWS[name](x)
        return (VIEWS[name](x) * constant).sum()

    (expected,) = grad(loss(leaf), leaf)

    @functional.jit
    def step() -> Any:
        leaf.grad = None
        value = loss(leaf)
        value.backward()
        return value.detach()

    step()
    assert_array_equal(leaf.grad.numpy(), expected.numpy())
    assert_array_equal(ft.func.grad(loss)(leaf.detach()).numpy(), expected.numpy())


def test_a_write_of_a_wider_kind_is_refused_before_anything_changes() -> None:
    x = tensor([1, 2])
    with pytest.raises(RuntimeError, match="result type Double can't be cast to the desired"):
        x.add_(0.5)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(tensor([[1, 2], [3, 4]]))
    assert_array_equal(x.numpy(), [1, 2])
    assert x._version == 0


def test_overwriting_cuts_the_graph() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    for write in (lambda y: y.zero_(), lambda y: y.fill_(3.0), lambda y: y.normal_()):
        y = x * 2
        write(y)
        (found,) = grad((y * x).sum(), x)
        assert_array_equal(found.numpy(), y.detach().numpy())


@pytest.mark.parametrize(
    ("fill", "low", "high"),
    [
        (lambda x: x.uniform_(2.0, 3.0), 2.0, 3.0),
        (lambda x: x.normal_(10.0, 0.1), 9.0, 11.0),
        (lambda x: x.random_(5), 0.0, 4.0),
        (lambda x: x.bernoulli_(0.5), 0.0, 1.0),
        (lambda x: x.exponential_(), 0.0, 100.0),
        (lambda x: x.geometric_(0.5), 1.0, 100.0),
        (lambda x: x.log_normal_(), 0.0, 1e9),
        (lambda x: x.cauchy_(), -1e9, 1e9),
    ],
)
def test_fillers_draw_from_their_distribution(fill: Any, low: float, high: float) -> None:
    ft.manual_seed(1)
    x = fill(tensor(np.full(200, -77.0)))
    values = x.numpy()
    assert np.all((values >= low) & (values <= high))
    assert len(np.unique(values)) > 1
    ft.manual_seed(1)
    assert_array_equal(fill(tensor(np.zeros(200))).numpy(), values)


def test_a_leaf_is_filled_under_no_grad_only() -> None:
    x = tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.normal_()
    assert x.item() == 1.0
    with no_grad():
        x.fill_(4.0)
    assert x.is_leaf
    assert x.item() == 4.0


@pytest.mark.parametrize(
    ("index", "shape"),
    [
        ((1, slice(None), [0, 2]), (3, 2)),
        ((0, None, [0, 2]), (1, 2, 4)),
        ((0, slice(None), [True, False, True, False]), (3, 2)),
        ((slice(None), 0, [0, 1]), (2, 2)),
        ((Ellipsis, [0, 1], 2), (2, 2)),
        (([0, 1], slice(None), [0, 1]), (2, 3)),
        ((None, [[True, False, True], [False, False, True]]), (1, 3, 4)),
    ],
    ids=str,
)
def test_integers_beside_arrays_select_first(index: Any, shape: tuple[int, ...]) -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    x = tensor(values, requires_grad=True)
    part = x[index]
    assert part.shape == shape
    # the places that were read are those that are written to, in the same order
    y = tensor(values)
    y[index] = tensor(np.arange(100.0, 100.0 + part.numel()).reshape(shape))
    np.testing.assert_array_equal(y[index].numpy().ravel(), np.arange(100.0, 100.0 + part.numel()))
    part.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy() != 0, y.numpy() >= 100)


REFORMED: dict[str, Callable[[Any], Any]] = {
    "t_": lambda y: y.t_() if isinstance(y, ft.Tensor) else y.T,
    "transpose_": lambda y: y.transpose_(0, 1) if isinstance(y, ft.Tensor) else y.T,
    "unsqueeze_": lambda y: y.unsqueeze_(1) if isinstance(y, ft.Tensor) else y[:, None],
    "squeeze_": lambda y: y.squeeze_() if isinstance(y, ft.Tensor) else y.squeeze(),
    "two": lambda y: (
        y.unsqueeze_(0).transpose_(0, 2) if isinstance(y, ft.Tensor) else y[None].swapaxes(0, 2)
    ),
}


@pytest.mark.parametrize("write", [lambda y, part: None, lambda y, part: y.mul_(3.0),
                                   lambda y, part: part.mul_(3.0)])  # fmt: skip
@pytest.mark.parametrize("name", REFORMED)
def test_earlier_views_depend_on_a_tensor_whose_shape_changed_in_place(
    name: str, write: Callable[[Any, Any], Any], rng: np.random.Generator
) -> None:
    """As it is the same memory, so are the elements; a second change does not part them."""
    for times in (1, 2):
        x = tensor(BASE[:, :3], requires_grad=True)
        y = x * 1
        row, column = y[1], y[:, 2:]
        weights, others = rng.normal(size=3), rng.normal(size=(3, 1))
        expected = np.zeros((3, 3))
        expected[1] += weights
        expected[:, 2:] += others
        for _ in range(times):
            REFORMED[name](y)
            expected = REFORMED[name](expected)
            write(y, row)
        total = (row * tensor(weights)).sum() + (column * tensor(others)).sum()
        found, of_row = grad(total, [y, row], allow_unused=True)
        assert_array_equal(found.numpy(), expected)
        assert_array_equal(of_row.numpy(), weights)


@pytest.mark.parametrize("name", REFORMED)
def test_a_tensor_whose_shape_changed_in_place_is_as_one_without_earlier_views(name: str) -> None:
    """Hooks after the change, ``detach_`` and ``requires_grad_``, with an earlier view or without.

    What writes to the tensor, or to the view, is seen by hooks as by those of a tensor made anew.
    """
    for write in (lambda y: y.mul_(2), lambda y: y[-1].mul_(y.sum()), lambda y: y[0].zero_()):
        found = []
        for has_view in (True, False):
            x = tensor(BASE[:, :3], requires_grad=True)
            y = x * 1.5
            kept = y[0] if has_view else None
            REFORMED[name](y)
            seen: list[Any] = []
            y.register_hook(seen.append)
            write(y)
            (y * y).sum().backward()
            assert y._base is None
            assert kept is None or kept._base is y
            found.append([x.grad.numpy(), *[g.numpy() for g in seen]])
        assert [len(each) for each in found] == [2, 2]
        for ours, expected in zip(*found, strict=True):
            assert_array_equal(ours, expected)
    y = tensor(BASE[:, :3], requires_grad=True) * 1.5
    view = y[0]
    REFORMED[name](y).detach_()
    assert not y.requires_grad
    y.requires_grad_()
    y.sum().backward()
    assert view._base is y
    assert_array_equal(y.grad.numpy(), np.ones(y.shape))


@pytest.mark.parametrize("name", REFORMED)
def test_a_leaf_with_views_changes_its_axes_without_recording(name: str) -> None:
    leaf = tensor(BASE[:2, :3], requires_grad=True)
    row = leaf[0]
    with no_grad():
        constant = leaf[1]
        REFORMED[name](leaf)
    assert leaf.requires_grad
    assert leaf.is_leaf
    assert leaf.shape == REFORMED[name](BASE[:2, :3]).shape
    weights = tensor(BASE[0, :3])
    ((leaf * leaf).sum() + (row * weights).sum()).backward()
    expected = 2 * BASE[:2, :3]
    expected[0] += BASE[0, :3]
    assert_array_equal(leaf.grad.numpy(), REFORMED[name](expected))
    with no_grad():
        leaf.mul_(2)
        assert_array_equal(constant.numpy(), 2 * BASE[1, :3])


@pytest.mark.parametrize("through", [lambda d: d, lambda d: d[0]])
@pytest.mark.parametrize("name", REFORMED)
def test_what_is_detached_inside_of_a_transform_changes_its_shape(
    name: str, through: Callable[[Any], Any]
) -> None:
    """Writes to it reach the memory that it was taken of, which keeps its derivatives."""

    def f(x: Any) -> Any:
        c = x * 1
        before = c[0]
        d = c.detach()
        first = d[1]
        REFORMED[name](d)
        through(d).mul_(2)
        return (c * c).sum() + (before * first).sum() + d.sum()

    x = BASE[:, :3]
    leaf = tensor(x, requires_grad=True)
    assert_array_equal(ft.func.grad(f)(tensor(x)).numpy(), grad(f(leaf), leaf)[0].numpy())
    (tangent,) = ft.func.jvp(f, (tensor(x),), (tensor(np.ones_like(x)),))[1:]
    np.testing.assert_allclose(tangent.item(), grad(f(leaf), leaf)[0].sum().item(), rtol=1e-13)


@pytest.mark.parametrize("through", [lambda c: c, lambda c: c[0]])
@pytest.mark.parametrize("name", REFORMED)
def test_a_change_of_shape_without_recording_keeps_derivatives_in_transforms(
    name: str, through: Callable[[Any], Any]
) -> None:
    """As outside of transforms: elements are what they were."""

    def f(x: Any) -> Any:
        c = x * 1
        first, changed = c[0], through(c)
        with no_grad():
            REFORMED[name](changed if changed.ndim == 2 else changed.unsqueeze_(0))
        return (c * c).sum() + (first * first).sum()

    x = ft.tensor(BASE[:, :3])
    expected = 2 * BASE[:, :3]
    expected[0] *= 2
    assert_array_equal(ft.func.grad(f)(x).numpy(), expected)
    assert ft.func.hessian(f)(x).sum().item() == 2 * 9 + 2 * 3


@pytest.mark.parametrize(
    "name", ["view", "reshape", "expand", "permute", "repeat", "tile", "flip", "broadcast_to"]
)
def test_sizes_are_needed(name: str) -> None:
    with pytest.raises(TypeError, match="must be tuple of ints, not NoneType"):
        getattr(ft.ones(1), name)()


@pytest.mark.parametrize("other", [None, "a", [1.0], (1.0,)], ids=repr)
def test_what_is_no_tensor_is_not_copied(other: Any) -> None:
    x = ft.ones(1)
    with pytest.raises(TypeError, match=r"argument 'other'.*must be Tensor"):
        x.copy_(other)
    assert x.tolist() == [1]
