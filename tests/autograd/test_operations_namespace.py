"""``functrans.compat.torch``: forms of one definition, dtypes, factories, files."""

import io
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import functrans.autograd as fa
import functrans.compat.torch as ft
from functrans import jit
from functrans.compat.torch import functional_names

X = np.arange(6.0).reshape(2, 3)


def test_function_method_and_in_place_form_agree() -> None:
    x = ft.from_numpy(X + 1)
    for name in ("exp", "sin", "sqrt", "neg", "abs", "tanh", "relu", "reciprocal"):
        expected = getattr(x, name)().numpy()
        assert_array_equal(getattr(ft, name)(x).numpy(), expected)
        assert_array_equal(getattr(ft, name)(input=x).numpy(), expected)
        assert_array_equal(getattr(x.clone(), f"{name}_")().numpy(), expected)
        assert_array_equal(getattr(ft, f"{name}_")(x.clone()).numpy(), expected)


def test_names_of_numpy_are_accepted() -> None:
    x = ft.from_numpy(X)
    assert x.sum(axis=1, keepdims=True).shape == (2, 1)
    assert ft.mean(x, axis=0).shape == (3,)
    assert x.argmax(axis=1).tolist() == [2, 2]


def test_every_name_is_documented_and_callable() -> None:
    for name, function in functional_names.FUNCTIONS.items():
        assert callable(function), name
        assert function.__doc__ or getattr(function, "__wrapped__", None), name


def test_what_is_no_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match=r"exp\(\): argument 'input' \(position 1\) must be Tensor"):
        ft.exp(1.0)
    with pytest.raises(TypeError, match='missing 1 required positional arguments: "input"'):
        ft.exp()
    with pytest.raises(TypeError, match="expected Tensor as element 1 in argument 0, but got int"):
        ft.cat((ft.zeros(1), 1))
    assert ft.ones(1, out=ft.zeros(1)).tolist() == [1.0]


def test_results_have_names() -> None:
    x = ft.tensor([[3.0, 1.0], [0.0, 2.0]])
    values, indices = x.max(1)
    pair = x.max(dim=1)
    assert pair.values.tolist() == values.tolist() == [3.0, 2.0]
    assert pair.indices.tolist() == indices.tolist() == [0, 1]
    assert x.sort().indices.dtype == np.int64
    assert ft.linalg.eigh(ft.eye(2)).eigenvalues.tolist() == [1.0, 1.0]
    assert type(pair).__name__ == "max"


def test_each_namespace_has_its_default_dtype() -> None:
    assert ft.tensor([1.0]).dtype == np.float32
    assert fa.tensor([1.0]).dtype == np.float64
    assert ft.zeros(2).dtype == ft.get_default_dtype() == ft.float32
    assert ft.tensor(np.array([1.0])).dtype == np.float64
    assert ft.tensor([1j]).dtype == np.complex64


def test_integers_become_the_default_of_where_they_were_made() -> None:
    theirs, ours = ft.arange(4), fa.tensor([0, 1, 2, 3])
    for function in (
        lambda x: x / 2,
        lambda x: x * 0.5,
        lambda x: (x + 1).sqrt(),
        lambda x: x.view(2, 2).t()[0] / 3,
        lambda x: (x > 1) / 2,
        lambda x: x.sum() / 2,
        lambda x: x.max() * 0.5,
        lambda x: ft.cat((x, x)).exp(),
        lambda x: x.clone().add_(1) / 2,
    ):
        assert function(theirs).dtype == np.float32
        assert function(ours).dtype == np.float64
    assert (ft.zeros(3).argmax() / 2).dtype == np.float32


def test_the_default_dtype_can_be_set() -> None:
    ft.set_default_dtype(ft.float64)
    try:
        assert ft.ones(1).dtype == np.float64
        assert (ft.arange(3) / 2).dtype == np.float64
    finally:
        ft.set_default_dtype(ft.float32)
    with pytest.raises(TypeError, match="only floating-point types"):
        ft.set_default_dtype(ft.int64)


def test_kinds_count_before_sizes_in_promotion() -> None:
    long, single = ft.ones(2, dtype=ft.int64), ft.ones(2)
    assert (long + single).dtype == np.float32
    assert (single + ft.tensor(1.0, dtype=ft.float64)).dtype == np.float32
    assert (single * 1j).dtype == np.complex64
    assert (long + True).dtype == np.int64
    assert ft.promote_types(ft.int64, ft.float16) == np.float16
    assert ft.result_type(long, 1.5) == np.float32
    assert not ft.can_cast(ft.float32, ft.int32)


def test_factories() -> None:
    assert ft.zeros(2, 3).shape == ft.zeros((2, 3)).shape == (2, 3)
    assert ft.full((2,), 7).dtype == np.int64
    assert ft.full((2,), 7.0).dtype == np.float32
    assert ft.arange(1, 10, 3).tolist() == [1, 4, 7]
    assert ft.arange(0.0, 1.0, 0.25).tolist() == [0, 0.25, 0.5, 0.75]
    assert ft.linspace(0, 1, 3).tolist() == [0, 0.5, 1]
    assert ft.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    like = ft.ones(2, 3, dtype=ft.float64).t()
    assert ft.zeros_like(like).stride() == like.stride()
    assert ft.ones(2, requires_grad=True).requires_grad
    assert ft.tensor([ft.tensor(1.0), ft.tensor(2.0)]).tolist() == [1.0, 2.0]
    assert ft.zeros(2).new_full((2,), 3).dtype == np.float32


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ft.zeros(-1), RuntimeError, "must be non-negative"),
        (lambda: ft.arange(3, 0), RuntimeError, "inconsistent with step sign"),
        (lambda: ft.randint(5, 3, (2,)), RuntimeError, "'from' to be less than 'to'"),
        (lambda: ft.ones(1, dtype=ft.int64, requires_grad=True), RuntimeError, "Only Tensors of"),
        (lambda: ft.tensor(None), RuntimeError, "Could not infer dtype of NoneType"),
        (lambda: ft.tensor([[1], [1, 2]]), ValueError, "expected sequence of length 1 at dim 1"),
        (lambda: ft.tensor(["a"]), ValueError, "too many dimensions 'str'"),
        (lambda: ft.rand(2, dtype=ft.int64), NotImplementedError, "check_uniform_bounds"),
        (lambda: ft.device("disk"), RuntimeError, "Expected one of cpu, cuda"),
        (lambda: ft.stack([ft.zeros(1), ft.zeros(2)]), RuntimeError, "to be equal size"),
        (lambda: ft.zeros(2, 3) @ ft.zeros(2, 3), RuntimeError, r"\(2x3 and 2x3\)"),
        (lambda: ft.linalg.inv(ft.zeros(2, 2)), ft.linalg.LinAlgError, "singular"),
        (lambda: ft.zeros(3)[5], IndexError, "out of bounds for dimension 0 with size 3"),
        (lambda: ft.zeros(3).gather(0, ft.tensor([4])), RuntimeError, "index 4 is out of bounds"),
        (lambda: ft.arange(3) // 0, RuntimeError, "ZeroDivisionError"),
        (lambda: ft.arange(3).mean(), RuntimeError, "could not infer output dtype"),
    ],
)
def test_errors_are_those_of_torch(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_conversions() -> None:
    x = ft.tensor([1.5, 0.0], requires_grad=True)
    assert x.double().dtype == np.float64
    assert x.long().tolist() == [1, 0]
    assert x.bool().tolist() == [True, False]
    assert x.float() is x
    assert x.type() == "torch.FloatTensor"
    assert x.type("torch.DoubleTensor").dtype == np.float64
    assert x.type_as(ft.zeros(1, dtype=ft.float64)).dtype == np.float64
    x.double().sum().backward()
    assert x.grad.dtype == np.float32
    assert str(x.device) == "cpu"
    assert x.ndim == 1
    assert 1.5 in x


def test_submodules_are_imported_at_first_use() -> None:
    assert ft.fft.fft(ft.ones(4)).dtype == np.complex64
    assert ft.special.expit(ft.zeros(1)).item() == 0.5
    assert not ft.cuda.is_available()
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        ft.absent  # noqa: B018  # the access is what is tested
    assert "nn" in dir(ft)


def test_tensors_are_saved_and_loaded(tmp_path: Any) -> None:
    state = {"w": ft.ones(2, 2, requires_grad=True), "n": 3, "names": ["a"]}
    path = tmp_path / "state.pt"
    ft.save(state, path)
    found = ft.load(path)
    assert found["w"].tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert found["w"].requires_grad
    assert (found["n"], found["names"]) == (3, ["a"])


def test_a_file_that_could_run_code_is_refused() -> None:
    buffer = io.BytesIO()
    ft.save({"f": np.linalg.norm}, buffer)
    buffer.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        ft.load(buffer)
    buffer.seek(0)
    assert ft.load(buffer, weights_only=False)["f"] is np.linalg.norm


def test_generators_are_streams_of_their_own() -> None:
    first, second = ft.Generator().manual_seed(5), ft.Generator().manual_seed(5)
    assert_array_equal(ft.rand(4, generator=first).numpy(), ft.rand(4, generator=second).numpy())
    ft.randn(1, generator=first)  # the second one of its pair is a part of the state
    state = first.get_state()
    drawn = [ft.randn(n, generator=first).tolist() for n in (1, 20, 700)]
    assert second.set_state(state.clone()) is second
    assert second.initial_seed() == 5
    assert [ft.randn(n, generator=second).tolist() for n in (1, 20, 700)] == drawn
    first.set_state(state)
    assert [ft.randn(n, generator=first).tolist() for n in (1, 20, 700)] == drawn
    for wrong, error in (
        (3, TypeError),
        (ft.zeros(5056), TypeError),
        (state[:9], RuntimeError),
        (state * 0, RuntimeError),
    ):
        with pytest.raises(error, match=r"RNG state|ByteTensor|mt19937"):
            first.set_state(wrong)
    with pytest.raises(ValueError, match="Overflow"):
        first.manual_seed(1 << 64)
    assert first.manual_seed(-1).initial_seed() == (1 << 64) - 1
    assert sorted(ft.randperm(9, generator=first).tolist()) == list(range(9))
    weights = ft.tensor([0.0, 1.0, 0.0])
    assert ft.multinomial(weights, 1).tolist() == [1]
    assert ft.bernoulli(ft.ones(3)).tolist() == [1, 1, 1]


@pytest.mark.parametrize("draw", [lambda: ft.rand(3), lambda: ft.zeros(3).normal_()])
def test_a_traced_step_draws_anew_in_each_call(draw: Any) -> None:
    scale = ft.ones(3)
    step = jit(lambda: draw() * scale)
    ft.manual_seed(0)
    found = [step().tolist() for _ in range(3)]
    assert found[0] != found[1] != found[2]


LINES = [
    ((0.0, np.inf, 1), [0.0]),
    ((2.0, np.nan, 1), [2.0]),
    ((-3e38, 3e38, 1), [-3e38]),
    ((-1.2190476190476192, 1.2190476190476192, 128), None),
    ((5.0, -2.0, 7), [5.0, 3.83333333, 2.66666667, 1.5, 0.33333333, -0.83333333, -2.0]),
]


@pytest.mark.parametrize(("arguments", "expected"), LINES)
def test_numbers_at_even_distances_are_counted_from_the_nearer_end(
    arguments: tuple[float, float, int], expected: list[float] | None
) -> None:
    start, end, steps = arguments
    found = ft.linspace(*arguments).numpy()
    assert found.dtype == np.float32
    first, last = np.float32(start), np.float32(end)
    assert found[0] == first
    assert steps == 1 or found[-1] == last
    if expected is not None:
        np.testing.assert_allclose(found, np.array(expected, np.float32), rtol=1e-6)
    else:  # each is one rounding of the number at its place, seen from its end
        step = (last - first) / np.float32(steps - 1)
        half = first + np.float64(step) * np.arange(steps // 2)
        np.testing.assert_array_equal(found[: steps // 2], half.astype(np.float32))
        np.testing.assert_array_equal(found, -found[::-1])


def test_ends_that_a_dtype_does_not_have_are_refused() -> None:
    assert ft.linspace(0.7, 5.9, 3, dtype=ft.int64).tolist() == [0, 2, 5]
    for dtype, end in ((ft.uint8, 300), (ft.float32, 1e39), (ft.int64, np.nan)):
        with pytest.raises(RuntimeError, match="without overflow"):
            ft.linspace(0, end, 3, dtype=dtype)
