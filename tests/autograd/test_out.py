"""``out=``: functions write their results to tensors that are given."""

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from numpy.testing import assert_array_equal

import functrans as ft
import functrans.compat.torch as torch
from cases import each
from functrans import autograd
from functrans.autograd.methods import arithmetic, comparison, pointwise, reductions
from functrans.autograd.overrides import overridable
from functrans.core.boundary import boundary

X = torch.tensor([[0.25, 0.5], [0.75, 0.125]])
OTHERS: dict[str, Callable[..., Any]] = {
    "matmul": lambda **k: torch.matmul(X, X, **k),
    "cat": lambda **k: torch.cat([X, X], 1, **k),
    "stack": lambda **k: torch.stack([X, X], 1, **k),
    "column_stack": lambda **k: torch.column_stack([X, X[0]], **k),
    "where": lambda **k: torch.where(X > 0.4, X, 0.0, **k),
    "div": lambda **k: torch.div(X, 0.3, rounding_mode="floor", **k),
    "sum over an axis": lambda **k: torch.sum(X, 0, keepdim=True, **k),
    "sort": lambda **k: torch.sort(X, dim=0, **k),
    "max": lambda **k: torch.max(X, dim=1, **k),
    "topk": lambda **k: torch.topk(X, 1, **k),
    "erf": lambda **k: torch.special.erf(X, **k),
    "tensordot": lambda **k: torch.tensordot(X, X, 1, **k),
    "chain_matmul": lambda **k: torch.chain_matmul(X, X, X, **k),
    "hstack": lambda **k: torch.hstack([X, X], **k),
    "vstack": lambda **k: torch.vstack([X, X], **k),
    "dstack": lambda **k: torch.dstack([X, X], **k),
    "pow": lambda **k: torch.pow(X, 1.5, **k),
    "pow of a number": lambda **k: torch.pow(1.5, X, **k),
    "float_power": lambda **k: torch.float_power(X, 1.5, **k),
    "remainder": lambda **k: torch.remainder(X, 0.2, **k),
    "xlogy": lambda **k: torch.xlogy(X, X, **k),
    "zeta": lambda **k: torch.special.zeta(X + 1, X, **k),
    "polygamma": lambda **k: torch.polygamma(1, X, **k),
    "searchsorted": lambda **k: torch.searchsorted(X[0], X, right=True, **k),
    "bucketize": lambda **k: torch.bucketize(X, X[0], out_int32=True, **k),
    "isin": lambda **k: torch.isin(X, X[0], **k),
    "complex": lambda **k: torch.complex(X, X + 1, **k),
    "bernoulli": lambda **k: torch.bernoulli(X, **k),
    "multinomial": lambda **k: torch.multinomial(X, 2, **k),
    "solve_triangular": lambda **k: torch.linalg.solve_triangular(M, X, upper=True, **k),
}
M = X @ X.mT + torch.eye(2)
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
FFT = (*ONE, "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
LINALG: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        ("inv", "det", "slogdet", "pinv", "cholesky", "qr", "svd", "svdvals", "eigh", "eigvalsh",
         "eig", "eigvals", "norm", "vector_norm", "matrix_norm", "cond", "matrix_rank", "lu",
         "inv_ex", "cholesky_ex"),
        (M,),
    ),
    **dict.fromkeys(("solve", "solve_ex", "matmul", "vecdot", "tensorsolve"), (M, X[0])),
    "matrix_power": (M, 3), "multi_dot": ([M, X, X],), "tensorinv": (M, 1),
    "cross": (torch.ones(3), torch.arange(3.0)),
}  # fmt: skip


def _calls(space: Any, name: str, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    return lambda **k: getattr(space, name)(*arguments, **k)


OTHERS.update({f"fft.{name}": _calls(torch.fft, name, (X,)) for name in FFT})
OTHERS.update({f"linalg.{name}": _calls(torch.linalg, name, args) for name, args in LINALG.items()})


def _of_tables() -> dict[str, Callable[..., Any]]:
    """Functions of the tables that take one tensor, or two."""
    found: dict[str, Callable[..., Any]] = {}
    for module in (arithmetic, comparison, pointwise, reductions):
        for row in module.ROWS:
            if "f" not in row.forms:
                continue
            function = getattr(torch, row.name, None)
            for operands in ((X,), (X, X)):
                try:
                    result = function(*operands)  # type: ignore[misc]  # those that are functions
                except (TypeError, RuntimeError, ValueError, NotImplementedError):
                    continue
                if isinstance(result, torch.Tensor) and result is not X:
                    found[row.name] = lambda f=function, a=operands, **k: f(*a, **k)
                break
    return found


FUNCTIONS = {**_of_tables(), **OTHERS}


def test_the_tables_were_read() -> None:
    assert len(FUNCTIONS) > 90


@each("name", FUNCTIONS)
def test_results_are_written_to_out(name: str) -> None:
    call = FUNCTIONS[name]
    torch.manual_seed(0)
    expected = call()
    torch.manual_seed(0)
    several = expected if isinstance(expected, tuple) else (expected,)
    outs = (
        tuple(torch.zeros(2 * y.numel(), dtype=y.dtype)[::2].view(y.shape) for y in several)
        if all(y.ndim < 2 for y in several)
        else tuple(torch.zeros_like(y) for y in several)
    )
    found = call(out=outs if isinstance(expected, tuple) else outs[0])
    for out, y, got in zip(
        outs, several, found if isinstance(found, tuple) else (found,), strict=True
    ):
        assert got is out
        assert out.dtype == y.dtype
        assert_array_equal(out.numpy(), y.numpy())
    if isinstance(expected, tuple):
        assert type(found) is type(expected)


def test_out_of_tensordot_may_be_positional_and_truth_values_have_none() -> None:
    out = torch.zeros(2, 2)
    assert torch.tensordot(X, X, 1, out) is out
    assert_array_equal(out.numpy(), (X @ X).numpy())
    with pytest.raises(TypeError, match=r"allclose\(\) got an unexpected keyword argument 'out'"):
        torch.allclose(X, X, out=out)


def test_forms_in_place_take_no_out_and_change_nothing() -> None:
    x, out = X.clone(), torch.ones(2, 2)
    with pytest.raises(TypeError, match=r"exp_\(\) got an unexpected keyword argument 'out'"):
        torch.exp_(x, out=out)
    assert_array_equal(x.numpy(), X.numpy())
    assert out.tolist() == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("which", ["input", "other", "out"])
def test_out_and_gradients_do_not_go_together(which: str) -> None:
    tensors = {key: torch.ones(2) for key in ("input", "other", "out")}
    tensors[which] = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"out=.* don't support automatic differentiation"):
        torch.add(tensors["input"], tensors["other"], out=tensors["out"])
    assert tensors["out"].tolist() == [1.0, 1.0]
    with torch.no_grad():
        torch.add(tensors["input"], tensors["other"], out=tensors["out"])
    assert tensors["out"].tolist() == [2.0, 2.0]


def test_out_of_another_kind_is_refused_and_left_alone() -> None:
    numbers = torch.zeros(2, 2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        torch.exp(X, out=numbers)
    with pytest.raises(TypeError, match="argument 'out' must be Tensor"):
        torch.exp(X, out=X.numpy())
    with pytest.raises(TypeError, match="out= takes 2 tensors, 1 were given"):
        torch.sort(X, out=(torch.zeros(2, 2),))
    with pytest.raises(TypeError, match="argument 'out' must be Tensor, not tuple"):
        torch.exp(X, out=(torch.zeros(2, 2),))
    with pytest.raises(TypeError, match="argument 'out' must be tuple of Tensors, not Tensor"):
        torch.sort(X, out=torch.zeros(2, 2))
    with pytest.raises(RuntimeError, match="dtype Double does not match dtype of out"):
        torch.zeros(2, 2, dtype=torch.float64, out=numbers)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        torch.fft.fft(X, out=torch.zeros(2, 2))
    assert numbers.tolist() == [[0, 0], [0, 0]]


def test_out_may_be_the_operand_a_part_of_it_or_in_a_jitted_step() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    assert torch.mul(x, x, out=x) is x
    assert x.tolist() == [1.0, 4.0, 9.0]
    torch.add(x[1:], x[:-1], out=x[1:])
    assert x.tolist() == [1.0, 5.0, 13.0]
    version = x._version
    torch.flip(x, (0,)).copy_(x)
    ft.jit(lambda factor: torch.mul(x, factor, out=x))(torch.tensor(2.0))
    assert x.tolist() == [2.0, 10.0, 26.0]
    assert x._version > version


# every function that is public --------------------------------------------------------------------

NAMESPACES: dict[str, Any] = {
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.autograd": torch.autograd,
    "torch.fft": torch.fft,
    "torch.func": torch.func,
    "torch.linalg": torch.linalg,
    "torch.nn.functional": torch.nn.functional,
    "torch.nn.init": torch.nn.init,
    "torch.special": torch.special,
    "functrans.autograd": autograd,
    "functrans.autograd.func": autograd.func,
}


WRAPPERS = (boundary(len).__code__, overridable(lambda: None).__code__)


def _may_take_out(function: Any) -> bool:
    """Whether its signature, or that of what it wraps, lets ``out=`` through."""
    if getattr(function, "__code__", None) in WRAPPERS:
        function = function.__wrapped__
    return any(
        parameter.name == "out" or parameter.kind is parameter.VAR_KEYWORD
        for follow in (True, False)
        for parameter in inspect.signature(function, follow_wrapped=follow).parameters.values()
    )


def _public() -> Iterator[tuple[str, Any]]:
    for prefix, space in NAMESPACES.items():
        for name in dir(space):
            function = getattr(space, name, None)
            if (
                not name.startswith("_")
                and callable(function)
                and not isinstance(function, type)
                and _may_take_out(function)
            ):
                yield f"{prefix}.{name}", function


PUBLIC = dict(_public())
PUBLIC["torch.linalg.solve_triangular"] = lambda *operands, **k: torch.linalg.solve_triangular(
    *operands, upper=True, **k
)
ALWAYS_RAISE = ("torch.Tensor.cuda", "torch.autograd.variable", "functrans.autograd.variable")


def _arguments() -> list[tuple[Any, ...]]:
    """Arguments with which something can be called; new ones each time, since some are changed."""
    x, n, i = X.clone(), torch.tensor([[1, 0], [0, 1]]), torch.tensor([0, 1])
    v, m, c, cube = x[0].clone(), n > 0, torch.complex(x, x + 1), torch.stack([x, x])
    return [
        (x,), (x, x), (n,), (n, n), (x, 0.5), (x, 1), (x, x, x), (v,), (v, v), (x, v), (v, x, x),
        (x, x, v), (x, v, v), (i,), (i, i), (c,), (x @ x.mT + torch.eye(2),), (cube,), (cube, 2),
        (cube, cube), (x, cube, cube), (cube, cube, cube), (x, i), (x, m), (x, m, 0.5), (x, m, v),
        (x, (0,)), (x, (1, 0)), (x, (0, 1)), (x, (2, 2)), (x, (2, 2), (2, 1)), (x, 0, 1),
        (x, 0, n), (x, 0, i), (x, 0, (1, 2)), (x, 0, 0, 1), (x, 0, i, x), (x, 0, i, 0.5),
        (x, 0, n, x), (x, 0, n, x, "sum"), (x, 0, i, x, "prod"), (x, (i,), v), (x, i, v),
        (x, v, 0), (x, v, 0, 0), (x, 2, 0, 1.0), (m, x, x), (torch.ones(4), 0, (2, 2)),
        (torch.ones(3), torch.ones(3)), ([x, x],), (v.numpy(),), (3,), (3, 4), (0, 3, 4),
        ((2, 2),), ((2, 2), 0.5), ((2, 2), (2, 1)), (2.0, 1.0, (2,)), (3, (2,)),
    ]  # fmt: skip


def _tensors(result: Any) -> list[Any]:
    several = result if isinstance(result, (tuple, list)) else (result,)
    return [y for y in several if isinstance(y, torch.Tensor)]


def _works(call: Callable[..., Any]) -> tuple[int, Any]:
    """Which arguments a function takes, and its result."""
    for k, arguments in enumerate(_arguments()):
        torch.manual_seed(0)
        try:
            return k, call(*arguments)
        except (TypeError, RuntimeError, ValueError, AttributeError, IndexError):
            continue
    raise AssertionError("add arguments with which it can be called")


@pytest.mark.filterwarnings("ignore")  # of what is deprecated in torch, too
@each("name", [name for name in PUBLIC if name not in ALWAYS_RAISE])
def test_out_is_written_or_refused_and_never_ignored(name: str) -> None:
    k, result = _works(PUBLIC[name])
    expected = [y.detach().clone() for y in _tensors(result)] or [torch.zeros(())]
    outs = [~y if y.dtype == bool else y + 1 for y in expected]
    before = [out.clone() for out in outs]
    torch.manual_seed(0)
    refused = ""
    try:
        found = PUBLIC[name](
            *_arguments()[k], out=tuple(outs) if isinstance(result, tuple) else outs[0]
        )
    except (TypeError, NotImplementedError) as error:
        refused = str(error)
    if refused:
        assert "out= is not supported" in refused or "argument 'out'" in refused
        assert_same(outs, before)
    else:
        assert [id(y) for y in _tensors(found)] == [id(out) for out in outs]
        assert_same(outs, expected)


def assert_same(some: list[Any], others: list[Any]) -> None:
    for one, other in zip(some, others, strict=True):
        assert_array_equal(one.numpy(), other.numpy())


def test_of_public_functions_many_may_take_out_and_some_always_raise() -> None:
    assert len(PUBLIC) > 700
    for name in ALWAYS_RAISE:
        with pytest.raises((RuntimeError, TypeError)):
            PUBLIC[name](X, out=X.clone())


def test_out_is_resized_if_it_has_other_extents() -> None:
    empty = torch.empty(0)
    assert torch.exp(X, out=empty) is empty
    assert_array_equal(empty.numpy(), torch.exp(X).numpy())
    out = torch.ones(3)
    with pytest.warns(UserWarning, match=r"resized since it had shape \[3\], .* shape \[2, 2\]"):
        torch.exp(X, out=out)
    assert_array_equal(out.numpy(), torch.exp(X).numpy())
    part = torch.ones(3)[:2]
    with (
        pytest.warns(UserWarning, match="resized"),
        pytest.raises(RuntimeError, match=r"resize_: the tensor is a view"),
    ):
        torch.exp(X, out=part)
    assert part.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match=r"shape \[2\] doesn't match .* \[2, 2\]: it is an arg"):
        torch.add(part, X, out=part)
    assert part.tolist() == [1.0, 1.0]


FACTORIES: list[Callable[..., Any]] = [
    lambda **k: torch.zeros(3, **k),
    lambda **k: torch.full((3,), 2.0, **k),
    lambda **k: torch.eye(1, 3, **k),
    lambda **k: torch.range(0, 2, **k),
    lambda **k: torch.arange(3, **k),
    lambda **k: torch.linspace(0, 1, 3, **k),
    lambda **k: torch.rand(3, **k),
    lambda **k: torch.randn(3, **k),
    lambda **k: torch.randint(3, (3,), **k),
    lambda **k: torch.randperm(3, **k),
    lambda **k: torch.normal(torch.zeros(3), 1.0, **k),
    lambda **k: torch.fft.fftfreq(3, **k),
]


@pytest.mark.parametrize("call", FACTORIES)
def test_factories_write_to_out_in_its_dtype(call: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    expected = call(dtype=torch.float64)
    out = torch.full_like(expected, -1.0)
    torch.manual_seed(0)
    assert call(out=out) is out
    assert_array_equal(out.numpy(), expected.numpy())
    with pytest.raises(TypeError, match="unexpected keyword argument 'oute'"):
        call(oute=out)


@pytest.mark.parametrize(
    "call",
    [
        lambda **k: torch.hann_window(3, **k),
        lambda **k: torch.kaiser_window(3, True, 3.0, **k),
    ],
)
def test_windows_refuse_out_and_keywords_that_they_do_not_have(call: Callable[..., Any]) -> None:
    out = torch.ones(3)
    with pytest.raises(NotImplementedError, match=r"out= is not supported; write result = "):
        call(out=out)
    assert out.tolist() == [1.0] * 3
    with pytest.raises(TypeError, match="unexpected keyword argument 'oute'"):
        call(oute=out)


@pytest.mark.parametrize(
    "call",
    [
        lambda **k: torch.unsqueeze(X, 0, **k),
        lambda **k: torch.reshape(X, (4,), **k),
        lambda **k: torch.zeros_like(X, **k),
        lambda **k: torch.tensor([1.0], **k),
    ],
)
def test_views_and_copies_take_no_out(call: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
        call(out=torch.ones(1, 2, 2))


@each("name", FUNCTIONS)
def test_out_of_another_shape_is_resized_with_a_warning(name: str) -> None:
    torch.manual_seed(0)
    expected = FUNCTIONS[name]()
    several = expected if isinstance(expected, tuple) else (expected,)
    for n in (0, 7):
        outs = tuple(torch.zeros(n, dtype=y.dtype) for y in several)
        torch.manual_seed(0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            FUNCTIONS[name](out=outs if isinstance(expected, tuple) else outs[0])
        told = [w for w in caught if "An output with one or more elements was resized" in str(w)]
        assert len(told) == (n > 0) * len(outs)
        assert_same(outs, several)


def test_results_without_derivative_may_be_written_while_recording() -> None:
    x = X.clone().requires_grad_()
    assert torch.argmax(x, out=torch.tensor(0)) == 2
    assert torch.eq(x, x, out=torch.zeros(2, 2, dtype=torch.bool)).all()
    for call in (lambda **k: torch.linalg.inv(x, **k), lambda **k: torch.fft.fft(x, **k)):
        out = torch.zeros_like(call().detach())
        with pytest.raises(
            RuntimeError, match=r"functions with out=\.\.\. arguments don't support"
        ):
            call(out=out)
        assert (out == 0).all()
    with pytest.raises(RuntimeError, match="functions with out="):
        torch.zeros(2, 2, out=x)


def test_tangents_and_draws_of_batches_are_not_written_to_out() -> None:
    forward_ad, func = torch.autograd.forward_ad, torch.func
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, X)
        for operands in ((dual, X), (X, X)):
            with pytest.raises(NotImplementedError, match="because it is an out= function"):
                torch.add(*operands, out=torch.zeros(2, 2) if operands[0] is dual else dual)
    with pytest.raises(NotImplementedError, match="because it is an out= function"):
        func.jvp(lambda x: torch.add(x, x, out=torch.zeros(2, 2)), (X,), (X,))
    for name, args in {"rand": (2,), "randperm": (2,), "bernoulli": (X,)}.items():
        with pytest.raises(RuntimeError, match="calling out variants of random operations"):
            func.vmap(
                lambda x, name=name, args=args: getattr(torch, name)(*args, out=torch.zeros(2)),
                randomness="different",
            )(X)


def test_inference_tensors_are_written_inside_alone() -> None:
    with torch.inference_mode():
        out = torch.zeros(2, 2)
        assert torch.add(X, X, out=out) is out
    for call in (lambda: torch.add(X, X, out=out), lambda: torch.zeros(2, 2, out=out)):
        with pytest.raises(RuntimeError, match="inference tensor outside InferenceMode"):
            call()
