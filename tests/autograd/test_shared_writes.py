"""Writes to one of several views, to views of such views, and to elements that share memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.compat.torch as torch
from cases import each
from functrans.compat.torch import func

WRITES: dict[str, Callable[[Any], Any]] = {
    "mul_": lambda p: p.mul_(2),
    "zero_": lambda p: p.zero_(),
    "fill_": lambda p: p.fill_(3.0),
    "copy_": lambda p: p.copy_(torch.ones_like(p)),
    "normal_": lambda p: p.normal_(),
    "setitem": lambda p: p.__setitem__(..., 1.0),
    "masked": lambda p: p.__setitem__(torch.ones_like(p, dtype=torch.bool), 1.0),
    "element": lambda p: p[..., 0].add_(1.0),
}
SEVERAL: dict[str, Callable[[Any], Any]] = {
    "unbind": lambda y: y.unbind(1),
    "split": lambda y: y.split(1),
    "split sizes": lambda y: torch.split(y, [1, 2]),
    "split_with_sizes": lambda y: y.split_with_sizes([1, 2]),
    "chunk": lambda y: y.chunk(2),
}
APART: dict[str, Callable[[Any], Any]] = {
    "tensor_split": lambda y: y.tensor_split(2),
    "vsplit": lambda y: y.vsplit(3),
    "hsplit": lambda y: torch.hsplit(y, 2),
    "dsplit": lambda y: [part[..., 0] for part in y[..., None].dsplit(1)],
}
PARTS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda p: p,
    "view": lambda p: p.view(p.shape),
    "slice": lambda p: p[:1],
    "transposed": lambda p: p.t(),
}


def leaf() -> Any:
    return torch.arange(6.0).reshape(3, 2).requires_grad_()


@each("write", WRITES)
@each("part", PARTS)
@each("split", SEVERAL, by="split")
def test_one_of_several_views_is_written_to_outside_of_the_graph_only(
    split: str, part: str, write: str
) -> None:
    x = leaf()
    y = x * 1
    with pytest.raises(RuntimeError, match="function that returns multiple views"):
        WRITES[write](PARTS[part](SEVERAL[split](y)[0]))
    assert y.tolist() == x.tolist()
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0]] * 3
    plain = leaf().detach()
    written = PARTS[part](SEVERAL[split](plain)[0])
    WRITES[write](written)
    assert PARTS[part](SEVERAL[split](plain)[0]).tolist() == written.tolist()


@pytest.mark.parametrize("part", ["itself", "view", "slice"])
@pytest.mark.parametrize("split", APART)
def test_views_that_were_made_one_by_one_are_written_to_in_the_graph(split: str, part: str) -> None:
    x = leaf()
    y = x * 1
    PARTS[part](APART[split](y)[0]).mul_(3.0)
    y.sum().backward()
    expected = torch.ones(3, 2)
    PARTS[part](APART[split](expected)[0]).mul_(3.0)
    assert x.grad.tolist() == expected.tolist()


class _Shared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 10


def test_a_view_of_a_view_that_a_function_made_is_not_written_to() -> None:
    x = leaf()
    y = _Shared.apply(x * 1)
    with pytest.raises(RuntimeError, match="created inside a custom Function"):
        y[:1].mul_(2)
    y[:1].sum().backward()
    assert x.grad.tolist() == [[10.0, 10.0], [0.0, 0.0], [0.0, 0.0]]


EXPANDED: dict[str, Callable[[Any], Any]] = {
    "expand": lambda y: y.expand(3, 2),
    "expand_as": lambda y: y.expand_as(torch.zeros(3, 2)),
    "broadcast_to": lambda y: torch.broadcast_to(y, (3, 2)),
    "as_strided": lambda y: y.as_strided((3, 2), (0, 1)),
    "meshgrid": lambda y: torch.meshgrid(torch.zeros(3), y, indexing="ij")[1],
    "slice": lambda y: y.expand(5, 2)[1:4],
}
METADATA = {
    "as_strided_", "detach_", "requires_grad_", "resize_", "resize_as_", "set_", "share_memory_",
    "squeeze_",
    "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_",
}  # fmt: skip
CONSTANT = {"zero_", "fill_"}
IN_PLACE = sorted(
    {name for name in dir(torch.Tensor) if name.endswith("_") and not name.startswith("_")}
    - METADATA
    - CONSTANT
)
ONES, ROW, ZEROS = torch.ones(3, 4), torch.ones(1, 4), torch.zeros(1, 4, dtype=torch.int64)
PLACES = torch.tensor([0])
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "addmm_": (torch.ones(3, 2), torch.ones(2, 4)),
    "addbmm_": (torch.ones(1, 3, 2), torch.ones(1, 2, 4)),
    "addmv_": (torch.ones(4, 2), torch.ones(2)),
    "addr_": (torch.ones(3), torch.ones(4)),
    "apply_": (lambda x: x + 1,),
    "baddbmm_": (torch.ones(2, 3, 2), torch.ones(2, 2, 4)),
    **dict.fromkeys(("heaviside_", "logical_and_", "logical_or_", "logical_xor_"), (ONES,)),
    "index_add_": (0, PLACES, ROW),
    "index_copy_": (0, PLACES, ROW),
    "index_fill_": (0, PLACES, 2.0),
    "index_put_": ((PLACES,), torch.tensor(2.0)),
    "index_reduce_": (0, PLACES, ROW, "prod"),
    "masked_fill_": (ONES > 0, 2.0),
    "masked_scatter_": (ONES > 0, ONES),
    "put_": (PLACES, torch.tensor([2.0])),
    "renorm_": (2, 0, 1.0),
    "scatter_": (0, ZEROS, ROW),
    "scatter_add_": (0, ZEROS, ROW),
    "scatter_reduce_": (0, ZEROS, ROW, "sum"),
}
SHAPES = {"addmv_": (4,), "baddbmm_": (2, 3, 4)}
GENERIC: list[tuple[Any, ...]] = [(), (0.5,), (0,), (1,), (ONES,), (ONES, ONES), (ONES, 0.5)]
SHARED: dict[str, Callable[[Any], Any]] = {
    "rows": lambda y: y[..., :1, :].expand(y.shape) if y.ndim > 1 else y[:1].expand(y.shape),
    "columns": lambda y: y[..., :1].expand(y.shape),
    "windows": lambda y: y.as_strided(y.shape, (int(y.ndim > 1),) * y.ndim),
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("expand", EXPANDED)
def test_elements_that_share_memory_are_written_to_where_they_get_one_number(
    expand: str, write: str, recorded: bool
) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=recorded)
    y = x * 1
    p = EXPANDED[expand](y)
    if write in ("zero_", "fill_"):
        WRITES[write](p)
        assert p.tolist() == [y.tolist()] * 3 == [[0.0 if write == "zero_" else 3.0] * 2] * 3
        if recorded:
            (p.sum() + y.sum()).backward()
            assert x.grad.tolist() == [0.0, 0.0]
        return
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        WRITES[write](p)
    assert y.tolist() == [1.0, 2.0]
    p[1].mul_(3.0)  # these two elements do not overlap
    p[0, 0] = 5.0
    assert p.tolist() == [[5.0, 6.0]] * 3
    if recorded:
        (p * p).sum().backward()
        np.testing.assert_allclose(x.grad, [0.0, 3 * 2 * 6 * 3])


def _call_of(name: str) -> tuple[Any, tuple[Any, ...]]:
    """A tensor and further operands with which an operation in place works."""
    shape = SHAPES.get(name, (3, 4))
    given = [ARGUMENTS[name]] if name in ARGUMENTS else GENERIC
    for dtype in (torch.float32, torch.int64):
        for arguments in given:
            own = [
                a.to(dtype) if isinstance(a, torch.Tensor) and a is ONES else a for a in arguments
            ]
            x = torch.arange(1, np.prod(shape) + 1, dtype=dtype).reshape(shape)
            try:
                getattr(x.clone(), name)(*own)
            except (RuntimeError, TypeError, ValueError):
                continue
            return x, tuple(own)
    raise AssertionError(f"no operands for {name}")


@each("name", IN_PLACE)
def test_no_operation_writes_several_numbers_to_one_place(name: str) -> None:
    x, arguments = _call_of(name)
    before = x.tolist()
    for share in SHARED.values():
        with pytest.raises(RuntimeError, match="refers to a single memory location"):
            getattr(share(x), name)(*arguments)
        with pytest.raises(RuntimeError, match="refers to a single memory location"):
            getattr(share(x).detach(), name)(*arguments)
        assert x.tolist() == before


@pytest.mark.parametrize("share", SHARED)
def test_no_function_writes_several_numbers_to_one_place(share: str) -> None:
    y = torch.arange(1.0, 13.0).reshape(3, 4)
    x, other, before = SHARED[share](y), torch.zeros(3, 4), y.tolist()
    init = torch.nn.init
    parameter = torch.nn.Parameter(x)
    parameter.grad = torch.ones(3, 4)
    calls: dict[str, Callable[[], Any]] = {
        "setitem": lambda: x.__setitem__(slice(None), ONES),
        "mask": lambda: x.__setitem__(ONES > 0, 1.0),
        "out": lambda: torch.add(ONES, 1, out=x),
        "one of several outs": lambda: torch.frexp(ONES, out=(other, x)),
        "numpy": lambda: np.copyto(x, np.ones((3, 4))),
        "uniform_": lambda: init.uniform_(x),
        "eye_": lambda: init.eye_(x),
        "xavier_normal_": lambda: init.xavier_normal_(x),
        "orthogonal_": lambda: init.orthogonal_(x),
        "trunc_normal_": lambda: init.trunc_normal_(x),
        "sparse_": lambda: init.sparse_(x, 0.5),
        "embedding": lambda: torch.nn.functional.embedding(PLACES, x, max_norm=0.5),
        "relu": lambda: torch.nn.functional.relu(x, inplace=True),
        "SGD": lambda: torch.optim.SGD([parameter], lr=0.1).step(),
        "Adam": lambda: torch.optim.Adam([parameter], lr=0.1).step(),
        "Adagrad": lambda: torch.optim.Adagrad([parameter], lr=0.1).step(),
    }
    for name, call in calls.items():
        with pytest.raises(RuntimeError, match="refers to a single memory location"):
            call()
        assert y.tolist() == before, name
        assert not other.any(), name
    assert init.constant_(x, 2.0).tolist() == [[2.0] * 4] * 3


@pytest.mark.parametrize("share", SHARED)
def test_no_jitted_step_writes_several_numbers_to_one_place(share: str) -> None:
    y = torch.arange(1.0, 13.0).reshape(3, 4)
    x, before = SHARED[share](y), y.tolist()
    state = torch.nn.Parameter(x)

    def step(p: Any, factor: Any) -> Any:
        with torch.no_grad():
            return (state if p is None else p).mul_(factor).sum()

    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        ft.jit(step)(None, ONES * 2)
    jitted = ft.jit(step)
    jitted(torch.ones(3, 4), ONES)  # the program is the same for any layout
    for p in (x, x.detach()):
        with pytest.raises(RuntimeError, match="refers to a single memory location"):
            jitted(p, ONES * 2)
    assert y.tolist() == before
    ft.jit(lambda p: p.fill_(2.0))(x.detach())
    assert x.tolist() == [[2.0] * 4] * 3


def test_elements_of_strided_views_that_lie_apart_are_written_to() -> None:
    y = torch.zeros(24)
    for shape, strides in [((2, 3), (1, 2)), ((3, 2), (4, 2)), ((2, 3), (3, 2)), ((2, 2), (9, 4))]:
        x = y.as_strided(shape, strides)
        x.copy_(torch.arange(1.0, x.numel() + 1).reshape(shape))
        assert sorted(y[y != 0].tolist()) == sorted(x.flatten().tolist())
        y.zero_()


@pytest.mark.parametrize("transform", [func.grad, func.jacrev, func.jacfwd])
def test_elements_that_share_memory_are_refused_in_transforms_too(transform: Any) -> None:
    def written(x: Any) -> Any:
        y = x * 1
        y.expand(3, 2).copy_(torch.ones(3, 2))
        return y.sum()

    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        transform(written)(torch.tensor([1.0, 2.0]))


# conjugates, which are copies ---------------------------------------------------------------------

SHARING: dict[str, Callable[[Any], Any]] = {
    "expand": lambda z: z.expand(3, 2),
    "windows": lambda z: z.as_strided((2, 2), (0, 1)),
    "unfold": lambda z: torch.cat([z, z]).unfold(0, 2, 1),
}
CONJUGATED: dict[str, Callable[[Any], Any]] = {
    "conj": lambda z: z.conj(),
    "conj twice": lambda z: z.conj().conj(),
    "conj, then imag": lambda z: z.conj().imag,
    "transposed conj": lambda z: z.mH,
}


@pytest.mark.parametrize("runs", ["eager", "jit", "func.grad"])
@pytest.mark.parametrize("conjugate", CONJUGATED)
@pytest.mark.parametrize("share", SHARING)
def test_conjugates_of_shared_elements_take_one_number_only(
    share: str, conjugate: str, runs: str
) -> None:
    def write(z: Any, value: Any) -> Any:
        z = z.clone()
        part = CONJUGATED[conjugate](SHARING[share](z))
        if value is None:
            part.add_(torch.ones(part.shape))
        else:
            part.fill_(value)
        return z

    def run(value: Any) -> Any:
        z = torch.tensor([1 + 2j, 3 - 4j])
        if runs == "jit":
            return ft.jit(lambda z: write(z, value))(z)
        if runs == "func.grad":
            return func.grad(lambda z: write(z, value).abs().sum())(z)
        return write(z, value)

    if share == "windows" and runs != "eager":
        pytest.skip("as_strided needs memory")
    with pytest.raises(RuntimeError, match="single memory location"):
        run(None)
    if share != "unfold":  # windows of a tensor of its own
        found = run(0.5)
        assert found.shape == (2,)
        if runs != "func.grad":
            assert found.imag.abs().tolist() == ([0.5, 0.5] if "imag" in conjugate else [0, 0])
