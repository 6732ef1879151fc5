"""Arguments that are no tensors: numbers that scale operands, integers, extents, dtypes."""

import operator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import functrans.compat.torch as torch
from functrans.autograd.methods.rows import DEPRECATED

M = torch.arange(9.0).reshape(3, 3)
V = torch.arange(3.0)
X = torch.arange(6.0)
B = torch.arange(18.0).reshape(2, 3, 3)
OPERANDS: dict[str, tuple[Any, ...]] = {
    "add": (M, V),
    "sub": (M, V),
    "subtract": (M, V),
    "addcmul": (M, V, M),
    "addcdiv": (M, V, M + 1),
    "addmm": (M, M, M),
    "addmv": (V, M, V),
    "addr": (M, V, V),
    "addbmm": (M, B, B),
    "baddbmm": (B, B, B),
}


def test_every_function_has_operands() -> None:
    assert set(OPERANDS) == set(DEPRECATED)


@pytest.mark.parametrize("name", OPERANDS)
def test_numbers_in_front_of_the_operands_are_the_keywords(name: str) -> None:
    x, *others = OPERANDS[name]
    names = DEPRECATED[name]
    for count in range(1, len(names) + 1):
        numbers = [2.0, 3.0][:count]
        keywords = dict(zip(names, numbers, strict=False))
        expected = getattr(x, name)(*others, **keywords).numpy()
        if name == "addcmul":
            assert_array_equal(expected, (x + 2 * others[0] * others[1]).numpy())
        assert_array_equal(getattr(x, name)(*numbers, *others).numpy(), expected)
        assert_array_equal(getattr(x.clone(), f"{name}_")(*numbers, *others).numpy(), expected)
        first = (numbers[0], x, *numbers[1:]) if len(names) == 2 else (x, *numbers)
        assert_array_equal(getattr(torch, name)(*first, *others).numpy(), expected)


@pytest.mark.parametrize("name", OPERANDS)
def test_a_tensor_without_axes_is_a_number_unless_it_requires_a_gradient(name: str) -> None:
    x, *others = OPERANDS[name]
    for argument in DEPRECATED[name]:
        expected = getattr(x, name)(*others, **{argument: 2.0}).numpy()
        two = torch.tensor(2.0)
        assert_array_equal(getattr(x, name)(*others, **{argument: two}).numpy(), expected)
        for refused in (two.clone().requires_grad_(), torch.ones(1)):
            with pytest.raises(TypeError, match=f"argument '{argument}' must be Number"):
                getattr(x, name)(*others, **{argument: refused})


@pytest.mark.parametrize("name", OPERANDS)
def test_tensors_are_no_numbers_by_position(name: str) -> None:
    x, *others = OPERANDS[name]
    with pytest.raises(TypeError, match="takes"):
        getattr(x, name)(*others, M)
    with pytest.raises(TypeError, match="takes"):
        getattr(x, name)(1.0, 2.0, 3.0, *others)


KEYWORDS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("mm", (M,), {"mat2": M}),
    ("bmm", (B,), {"mat2": B}),
    ("mv", (M,), {"vec": V}),
    ("dot", (V,), {"tensor": V}),
    ("hsplit", (M,), {"sections": 3}),
    ("vsplit", (M,), {"indices": [1]}),
    ("dsplit", (B,), {"sections": 3}),
    ("tensor_split", (M,), {"sections": 2}),
    ("tensor_split", (M,), {"tensor_indices_or_sections": torch.tensor(2)}),
    ("split", (M,), {"split_size": 2}),
    ("split_with_sizes", (M,), {"split_sizes": [1, 2]}),
    ("unsafe_split", (M,), {"split_size": 2}),
    ("swapaxes", (B,), {"axis0": 0, "axis1": 2}),
    ("cholesky_solve", (M,), {"input2": torch.eye(3)}),
    ("pinverse", (M,), {"rcond": 1e-3}),
    ("arange", (), {"end": 3}),
    ("randint", (), {"high": 1, "size": (2,)}),
    ("randint_like", (M,), {"high": 1}),
    ("isin", (), {"elements": M, "test_elements": V}),
    ("resize_", (M.clone(),), {"size": (9, 1)}),
]


def _leaves(x: Any) -> list[Any]:
    return [part.tolist() for part in (x if isinstance(x, tuple) else (x,))]


@pytest.mark.parametrize(("name", "operands", "keywords"), KEYWORDS)
def test_arguments_go_by_the_names_of_torch(
    name: str, operands: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    values = list(keywords.values())
    expected: Any
    if name == "randint_like":
        expected = torch.zeros(3, 3)
    elif hasattr(torch.Tensor, name) and operands:
        expected = getattr(operands[0].clone(), name)(*values)
        assert _leaves(getattr(operands[0].clone(), name)(**keywords)) == _leaves(expected)
    else:
        expected = getattr(torch, name)(*values)
    if hasattr(torch, name) and name != "split":  # which has another word there
        assert _leaves(getattr(torch, name)(*operands, **keywords)) == _leaves(expected)


# integers and dtypes -----------------------------------------------------------------------------

OF_EXTENTS = {
    "zeros": torch.zeros, "ones": torch.ones, "empty": torch.empty, "rand": torch.rand,
    "reshape": X.reshape, "view": X.view, "expand": X.expand, "repeat": X.repeat,
    "tile": X.tile, "new_zeros": X.new_zeros, "new_ones": X.new_ones, "resize_": X.resize_,
    "flip": X.flip, "permute": X.permute,
}  # fmt: skip


@pytest.mark.parametrize("name", OF_EXTENTS)
@pytest.mark.parametrize("wrong", [2.0, True, "a", None, np.float64(2), len])
def test_extents_are_integers(name: str, wrong: Any) -> None:
    kind = type(wrong).__name__.removesuffix("64")  # NumPy's scalars are Python's numbers
    text = rf"^{name}\(\): argument '\w+' must be tuple of ints, not {kind}(64)?$"
    for sizes in ((wrong,), ((wrong,),), ((wrong, 3),), (wrong, 3)):
        with pytest.raises(TypeError, match=text):
            OF_EXTENTS[name](*sizes)


def test_what_counts_as_an_integer() -> None:
    for n in (2, np.int64(2), torch.tensor(2), np.array(2)):
        assert torch.zeros(n, n).shape == torch.zeros((n, n)).shape == (2, 2)
        assert X.reshape(n, 3).shape == (2, 3)
        assert X.unsqueeze(n - 1).shape == (6, 1)
        assert len(torch.linspace(0, 1, n)) == len(torch.randperm(n)) == len(torch.eye(n)) == 2
    assert torch.zeros(2, True).shape == (2, 1)  # the first one alone is looked at, as in PyTorch


NO_NUMBERS: dict[str, str] = {
    "X.sum('a')": "argument 'dim' must be int, not str",
    "X.sum(0.0)": "argument 'dim' must be int, not float",
    "X.max(True)": "argument 'dim' must be int, not bool",
    "X.softmax(None)": "argument 'dim' must be int, not NoneType",
    "X.squeeze(0.0)": "argument 'dim' must be int, not float",
    "X.chunk(2.0)": "chunk(): argument 'chunks' must be int, not float",
    "X.split(2.0)": "split(): argument 'split_size' must be int, not float",
    "X.split([2, 4.0])": "split_with_sizes(): argument 'split_sizes' must be tuple of ints",
    "X.select(0, 1.0)": "select(): argument 'index' must be int, not float",
    "X.narrow(0, 0, 2.0)": "narrow(): argument 'length' must be int, not float",
    "X.topk(2.0)": "topk(): argument 'k' must be int, not float",
    "X.roll(1.0)": "roll(): argument 'shifts' must be tuple of ints, not float",
    "X.unflatten(0, (2.0, 3))": "unflatten(): argument 'sizes' must be tuple of ints, not float",
    "torch.full((2.0,), 1)": "full(): argument 'size' must be tuple of ints, not float",
    "torch.full(2, 1)": "full(): argument 'size' must be tuple of ints, not int",
    "torch.eye(2.0)": "eye(): argument 'n' must be int, not float",
    "torch.randperm(2.0)": "randperm(): argument 'n' must be int, not float",
    "torch.randint()": "randint(): argument 'size' must be tuple of ints, not NoneType",
    "torch.randint(10)": "randint(): argument 'size' must be tuple of ints, not NoneType",
    "torch.randint(0, 10)": "randint(): argument 'size' must be tuple of ints, not int",
    "torch.randint(0.0, 10, (2,))": "randint(): argument 'low' must be int, not float",
    "torch.linspace(0, 1)": "linspace() missing 1 required positional argument: 'steps'",
    "torch.linspace(0, 1, 2.0)": "linspace(): argument 'steps' must be int, not float",
    "torch.linspace('a', 1, 2)": "linspace(): argument 'start' must be Number, not str",
    "torch.logspace(0, 1)": "logspace() missing 1 required positional argument: 'steps'",
    "torch.arange()": "arange(): argument 'end' must be Number, not NoneType",
    "torch.arange('a')": "arange(): argument 'end' must be Number, not str",
    "torch.tensor()": "tensor() missing 1 required positional argument: 'data'",
    "torch.nn.functional.one_hot(torch.tensor([1]), 2.0)": "argument 'num_classes' must be int",
    "torch.nn.functional.pad(X, (1.0, 1))": "pad(): argument 'pad' must be tuple of ints",
    "torch.zeros(2, dtype='float32')": "zeros(): argument 'dtype' must be torch.dtype, not str",
    "torch.tensor([1], dtype='float32')": "tensor(): argument 'dtype' must be torch.dtype, not",
    "torch.arange(3, dtype='float32')": "arange(): argument 'dtype' must be torch.dtype, not str",
    "torch.zeros_like(X, dtype='float32')": "zeros_like(): argument 'dtype' must be torch.dtype",
    "torch.hann_window(3, dtype='float32')": "argument 'dtype' must be torch.dtype, not str",
    "torch.frombuffer(b'1234', dtype='int32')": "argument 'dtype' must be torch.dtype, not str",
    "torch.finfo('float32')": "argument 'dtype' must be torch.dtype, not str",
    "torch.set_default_dtype('float32')": "argument 'dtype' must be torch.dtype, not str",
    "X.sum(dtype='float64')": "argument 'dtype' must be torch.dtype, not str",
    "X.softmax(0, dtype='float64')": "argument 'dtype' must be torch.dtype, not str",
    "X.new_zeros(2, dtype='float32')": "argument 'dtype' must be torch.dtype, not str",
    "X.to(dtype='float64')": "argument 'dtype' must be torch.dtype, not str",
    "X.to([1])": "to() received an invalid combination of arguments - got [1]",
    "torch.nn.Linear(2, 3).to([1])": "to(): argument 'dtype' must be torch.dtype, not list",
}


@pytest.mark.parametrize("call", NO_NUMBERS)
def test_arguments_of_other_types_are_named(call: str) -> None:
    with pytest.raises(TypeError) as caught:
        eval(call)
    text = str(caught.value)
    assert NO_NUMBERS[call] in text
    assert "()" not in NO_NUMBERS[call] or text.startswith(NO_NUMBERS[call])


F = torch.nn.functional
LINES, IMAGES, VOLUMES = torch.ones(1, 2, 6), torch.ones(1, 2, 4, 4), torch.ones(1, 2, 4, 4, 4)
COLUMNS = torch.ones(1, 8, 9)
COUNTS: dict[str, tuple[Any, int | None]] = {
    "tril, diagonal": (M.tril, None),
    "tril_, diagonal": (M.clone().tril_, None),
    "triu, diagonal": (M.triu, None),
    "diag, diagonal": (M.diag, None),
    "diag, diagonal of a vector": (V.diag, None),
    "diagonal, offset": (M.diagonal, None),
    "diag_embed, offset": (M.diag_embed, None),
    "tril_indices, row": (lambda n: torch.tril_indices(n, 3), 0),
    "tril_indices, col": (lambda n: torch.tril_indices(3, n), 0),
    "tril_indices, offset": (lambda n: torch.tril_indices(3, 3, n), None),
    "eye, n": (torch.eye, 0),
    "eye, m": (lambda n: torch.eye(3, n), 0),
    "randperm, n": (torch.randperm, 0),
    "multinomial, num_samples": (lambda n: (V + 1).multinomial(n, True), 1),
    "linspace, steps": (lambda n: torch.linspace(0, 1, n), 0),
    "logspace, steps": (lambda n: torch.logspace(0, 1, n), 0),
    "hann_window, window_length": (torch.hann_window, 0),
    "kaiser_window, window_length": (torch.kaiser_window, 0),
    "bartlett_window, window_length": (torch.bartlett_window, 0),
    "rot90, k": (M.rot90, None),
    "repeat_interleave, repeats": (M.repeat_interleave, 0),
    "new_zeros, size": (M.new_zeros, 0),
    "new_full, size": (lambda n: M.new_full((n,), 1.0), 0),
    "repeat, repeats": (M[0].repeat, 0),
    "tile, dims": (M.tile, 0),
    "unfold, size": (lambda n: M.unfold(0, n, 1), 0),
    "unfold, step": (lambda n: M.unfold(0, 2, n), 1),
    "tensor_split, sections": (M.tensor_split, 1),
    "kthvalue, k": (M.kthvalue, 1),
    "diff, n": (M.diff, 0),
    "matrix_power, n": (torch.eye(3).matrix_power, None),
    "mvlgamma, p": ((M + 9).mvlgamma, 1),
    "histc, bins": (M.histc, 1),
    "bincount, minlength": (lambda n: torch.arange(3).bincount(minlength=n), 0),
    "combinations, r": (lambda n: torch.combinations(V, n), 0),
    "vander, N": (lambda n: torch.vander(V, n), 0),
    "cov, correction": (lambda n: M.cov(correction=n), None),
    "as_strided, size": (lambda n: M.as_strided((n,), (1,)), 0),
    "as_strided, stride": (lambda n: M.as_strided((2,), (n,)), 0),
    "fft_fft, n": (lambda n: torch.fft.fft(V, n), 1),
    "fft_irfft, n": (lambda n: torch.fft.irfft(V, n), 1),
    "fft_rfftn, s": (lambda n: torch.fft.rfftn(V, (n,)), None),
    "fft_fftfreq, n": (torch.fft.fftfreq, 0),
    "stft, n_fft": (lambda n: torch.stft(X, n, 1, return_complex=True), None),
    "stft, hop_length": (lambda n: torch.stft(X, 4, n, return_complex=True), 1),
    "pixel_shuffle, upscale_factor": (lambda n: F.pixel_shuffle(torch.ones(1, 4, 2, 2), n), 1),
    "pixel_unshuffle, downscale_factor": (lambda n: F.pixel_unshuffle(IMAGES, n), 1),
    "channel_shuffle, groups": (lambda n: F.channel_shuffle(IMAGES, n), 1),
    "local_response_norm, kernel_size": (lambda n: F.local_response_norm(IMAGES, n), 1),
    "layer_norm, normalized_shape": (lambda n: F.layer_norm(M[:, :2], [n]), None),
    "group_norm, num_groups": (lambda n: F.group_norm(IMAGES, n), 1),
    "interpolate, size": (lambda n: F.interpolate(IMAGES, n), 1),
    "interpolate, size of a line": (lambda n: F.interpolate(LINES, [n], mode="linear"), 1),
    "empty, size of a layer": (lambda n: torch.nn.Linear(3, n), 0),
    "empty, size of a table": (lambda n: torch.nn.Embedding(n, 3), 0),
    "embedding, padding_idx": (
        lambda n: F.embedding(torch.arange(3), torch.ones(5, 2), padding_idx=n),
        None,
    ),
    "nll_loss, ignore_index": (
        lambda n: F.cross_entropy(M, torch.arange(3), ignore_index=n),
        None,
    ),
    "affine_grid, size": (lambda n: F.affine_grid(torch.ones(1, 2, 3), (1, 1, n, 2)), None),
    "unravel_index, shape": (lambda n: torch.unravel_index(torch.arange(2), [n]), None),
    "resize_, size": (lambda n: torch.ones(4).resize_(n), 0),
    "fold, kernel_size": (lambda n: F.fold(COLUMNS, 4, n), 1),
    "fold, stride": (lambda n: F.fold(COLUMNS[..., :4], 4, 2, stride=n), 1),
    "conv2d, groups": (lambda n: F.conv2d(IMAGES, torch.ones(4, 1, 2, 2), groups=n), 1),
}
WINDOWS = {"kernel_size": 1, "stride": 1, "dilation": 1, "padding": 0, "output_padding": 0}
OF_WINDOWS = {
    "conv1d": (F.conv1d, (LINES, torch.ones(3, 2, 2)), "stride padding dilation"),
    "conv2d": (F.conv2d, (IMAGES, torch.ones(3, 2, 2, 2)), "stride padding dilation"),
    "conv3d": (F.conv3d, (VOLUMES, torch.ones(3, 2, 2, 2, 2)), "stride padding dilation"),
    "conv_transpose1d": (
        F.conv_transpose1d,
        (LINES, torch.ones(2, 3, 2)),
        "stride padding dilation output_padding",
    ),
    "conv_transpose2d": (
        F.conv_transpose2d,
        (IMAGES, torch.ones(2, 3, 2, 2)),
        "stride padding dilation output_padding",
    ),
    "avg_pool1d": (F.avg_pool1d, (LINES, 4), "stride padding"),
    "avg_pool2d": (F.avg_pool2d, (IMAGES, 4), "stride padding"),
    "avg_pool3d": (F.avg_pool3d, (VOLUMES, 4), "stride padding"),
    "max_pool1d": (F.max_pool1d, (LINES, 2), "stride dilation"),
    "max_pool2d": (F.max_pool2d, (IMAGES, 2), "stride dilation"),
    "max_pool3d": (F.max_pool3d, (VOLUMES, 2), "stride dilation"),
    "unfold": (F.unfold, (IMAGES, 2), "stride padding dilation"),
}
for name, (function, operands, arguments) in OF_WINDOWS.items():
    for argument in arguments.split():
        COUNTS[f"{name}, {argument}"] = (
            lambda n, f=function, xs=operands, k=argument: f(*xs, **{k: n}),
            WINDOWS[argument],
        )
COUNTS |= {
    "avg_pool2d, kernel_size": (lambda n: F.avg_pool2d(IMAGES, n), 1),
    "max_pool2d, kernel_size": (lambda n: F.max_pool2d(IMAGES, n), 1),
    "lp_pool2d, kernel_size": (lambda n: F.lp_pool2d(IMAGES, 2.0, n), 1),
    "unfold, kernel_size": (lambda n: F.unfold(IMAGES, n), 1),
    "adaptive_avg_pool2d, output_size": (lambda n: F.adaptive_avg_pool2d(IMAGES, n), 0),
    "adaptive_max_pool2d, output_size": (lambda n: F.adaptive_max_pool2d(IMAGES, n), 0),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_integers_that_are_not_too_small(name: str) -> None:
    call, least = COUNTS[name]
    _, argument, *_ = name.split()
    for n in (2, np.int64(2), torch.tensor(2)):
        if argument != "output_padding":  # smaller than the stride
            call(n)
    is_word = name.startswith("conv") and argument == "padding" and "transpose" not in name
    for wrong in (2.0, 1.5, True) if is_word else (2.0, 1.5, True, "2"):
        kind = type(wrong).__name__
        with pytest.raises(TypeError) as caught:
            call(wrong)
        assert argument in str(caught.value)
        assert kind in str(caught.value)
    for n in () if least is None else (least - 1, -1, -3):
        with pytest.raises(RuntimeError):
            call(n)


WORDS: dict[str, str] = {
    "torch.randperm(-1)": "Trying to create tensor with negative dimension -1: [-1]",
    "V.new_zeros(2, -1)": "Trying to create tensor with negative dimension -1: [2, -1]",
    "torch.nn.Linear(-1, 2)": "Trying to create tensor with negative dimension -1: [2, -1]",
    "(V + 1).multinomial(-1)": "cannot sample n_sample <= 0 samples",
    "F.conv1d(LINES, torch.ones(3, 2, 2), padding=-1)": "negative padding is not supported",
    "F.conv1d(LINES, torch.ones(3, 2, 2), stride=0)": "non-positive stride is not supported",
    "F.conv1d(LINES, torch.ones(3, 2, 2), groups=0)": "non-positive groups is not supported",
    "F.conv2d(IMAGES, torch.ones(3, 2, 2, 2), stride=(1, 1, 1))": "a single integer value",
    "F.max_pool2d(IMAGES, 0)": "kernel size should be greater than zero",
    "F.avg_pool2d(IMAGES, 2, padding=-1)": "pad must be non-negative",
    "F.interpolate(IMAGES, size=-1)": "Input and output sizes should be greater than 0",
    "F.interpolate(IMAGES, scale_factor=-1)": "Input and output sizes should be greater than 0",
    "torch.cdist(M, M, -1.0)": "cdist only supports non-negative p values",
    "torch.tensordot(M, M, -1)": "tensordot expects dims >= 0",
    "torch.tensordot(M, M, 1.0)": "tensordot expects dims",
}


@pytest.mark.parametrize("call", WORDS)
def test_what_is_too_small_is_refused_with_the_words_of_pytorch(call: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        eval(call)
    assert WORDS[call] in str(caught.value)


@pytest.mark.parametrize("end", [2.0, 1.5, "2", np.float64(1.0)])
def test_the_ends_of_slices_are_integers(end: Any) -> None:
    for part in (slice(end, None), slice(None, end), slice(None, None, end)):
        for index in (part, (part, 0), (0, part), (..., part)):
            with pytest.raises(TypeError, match="slice indices must be integers or None"):
                M[index]
            with pytest.raises(TypeError, match="slice indices must be integers or None"):
                M.clone()[index] = 0.0


def test_truth_values_are_the_extents_of_layers_behind_the_first() -> None:
    assert torch.nn.Linear(True, 3).weight.shape == (3, 1)
    assert torch.nn.Embedding(3, True).weight.shape == (3, 1)
    assert torch.nn.Conv2d(2, 2, True).weight.shape == (2, 2, 1, 1)
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        assert torch.nn.Linear(0, 3).weight.shape == (3, 0)


def test_what_is_compiled_can_be_called() -> None:
    assert torch.compile(len) is len
    assert torch.compile()(len) is len
    for wrong in (5, "f", M):
        with pytest.raises(AssertionError, match="A callable function is expected"):
            torch.compile(wrong)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: F.threshold(x, 1, 7), [7, 7, 3, 9]),
        (lambda x: F.threshold(x, 1.5, 7.5), [7, 7, 3, 9]),
        (lambda x: F.threshold_(x.clone(), 1, 7), [7, 7, 3, 9]),
        (lambda x: torch.nn.Threshold(1, 7)(x), [7, 7, 3, 9]),
        (lambda x: F.hardtanh(x, 1, 3), [1, 1, 3, 3]),
        (lambda x: F.hardtanh(x, 0.5, 2.5), [0, 1, 2, 2]),
        (lambda x: torch.nn.Hardtanh(0, 2)(x), [0, 1, 2, 2]),
        (F.relu6, [0, 1, 3, 6]),
    ],
)
def test_functions_that_keep_integers(dtype: str, call: Any, expected: list[int]) -> None:
    x = torch.tensor([0, 1, 3, 9]).to(getattr(torch, dtype))
    found = call(x)
    assert (found.dtype, found.tolist()) == (x.dtype, expected)
    with pytest.raises((RuntimeError, NotImplementedError), match=r"[Bb]ool"):
        call(x.bool())


def test_what_hardtanh_refuses() -> None:
    with pytest.raises(RuntimeError, match="cannot do hardtanh on an unsigned type with negative"):
        F.hardtanh(torch.tensor([1, 2], dtype=torch.uint8))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("dim", [None, (0, 1), (-1, 0), (1,), 0])
def test_vectors_along_several_axes_are_normalized(p: float, dim: Any) -> None:
    x = (M - 4.0).double().requires_grad_()
    found = F.normalize(x, p, dim)
    expected = x / torch.linalg.vector_norm(x, p, dim, keepdim=True)
    np.testing.assert_allclose(found.tolist(), expected.tolist())
    slopes = [torch.autograd.grad((y * M).sum(), x)[0].tolist() for y in (found, expected)]
    np.testing.assert_allclose(*slopes, atol=1e-14)


def test_axis_stands_for_dim_in_extents_and_strides() -> None:
    assert M[:2].size(axis=0) == M[:2].size(dim=0) == 2
    assert M.stride(axis=0) == M.stride(0) == 3


def test_modules_take_that_they_are_to_be_compiled() -> None:
    layer = torch.nn.Linear(2, 3)
    assert layer.compile(fullgraph=True) is None
    assert layer(torch.ones(1, 2)).shape == (1, 3)


PAIR = torch.ones(2)
OF_SEVERAL = {
    "two": [PAIR, PAIR],
    "one": [PAIR],
    "none": [torch.ones(0)],
    "in a list": [[PAIR], [PAIR]],
    "in front of a list": [PAIR, [1.0, 2.0]],
    "behind a number": [torch.tensor(1.0), PAIR],
    "a matrix": [torch.ones(1, 2)],
}


@pytest.mark.parametrize("data", OF_SEVERAL.values(), ids=OF_SEVERAL)
@pytest.mark.parametrize(
    "make",
    [
        torch.tensor,
        torch.as_tensor,
        torch.asarray,
        PAIR.new_tensor,
        torch.Tensor,
        torch.FloatTensor,
    ],
)
def test_tensors_of_several_elements_are_no_numbers(make: Any, data: Any) -> None:
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python sca"):
        make(data)


@pytest.mark.parametrize("what", [X, torch.nn.Linear(1, 1)])
def test_the_name_of_a_dtype_is_no_device(what: Any) -> None:
    with pytest.raises(RuntimeError, match=r"device 'float64' .*; the dtype is torch\.float64$"):
        what.to("float64")
    with pytest.raises(RuntimeError, match=r"computes on the CPU$"):
        what.to("cuda:0")


def test_nested_data_have_the_common_dtype_of_torch() -> None:
    half = torch.tensor(2.0, dtype=torch.float16)
    for first, second, dtype in (
        (torch.tensor(2.0), 0.1, torch.float32),
        (torch.tensor(2.0), 1, torch.float32),
        (torch.tensor(2), 1.5, torch.float32),
        (torch.tensor(2, dtype=torch.int32), 1, torch.int64),
        (torch.tensor(2, dtype=torch.int32), True, torch.int32),
        (torch.tensor(2), half, torch.float16),
        (half, 1.5, torch.float32),
        (half, 1j, torch.complex64),
        (np.float32(1), 2, torch.float32),
        (np.float64(1), 2, torch.float64),
        (np.bool_(True), 1.5, torch.float32),
        (np.int64(2), 1.5, torch.float32),
        (np.int64(2), 1j, torch.complex64),
    ):
        assert torch.tensor([first, second]).dtype == dtype, (first, second)
        assert torch.as_tensor([[second], [first]]).dtype == dtype, (first, second)
    assert torch.tensor([torch.tensor(2.0), 0.1]).tolist() == [2.0, torch.tensor(0.1).item()]


def test_scalars_of_numpy_are_the_numbers_of_python() -> None:
    operators = (
        operator.add, operator.mul, operator.truediv, operator.floordiv, operator.mod,
        operator.pow, operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge,
    )  # fmt: skip
    functions = (
        torch.add, torch.mul, torch.div, torch.floor_divide, torch.remainder, torch.fmod,
        torch.pow, torch.xlogy, torch.float_power, torch.eq, torch.lt, torch.clamp,
    )  # fmt: skip
    tensors = (torch.arange(1, 4), torch.arange(1.0, 4.0), torch.tensor(2.0), torch.tensor(2))
    for scalar in (np.float64(2), np.float32(2), np.int64(2), np.uint8(2), np.bool_(True)):
        for x in tensors:
            for f in (*operators, *functions):
                told = (f.__name__, scalar, x)
                found, expected = f(x, scalar), f(x, scalar.item())
                assert found.dtype == expected.dtype, told
                assert_array_equal(found.numpy(), expected.numpy())
                if f in operators:
                    found, expected = f(scalar, x), f(scalar.item(), x)
                    assert found.dtype == expected.dtype, told
                    assert_array_equal(found.numpy(), expected.numpy())
    assert (np.float64(0.1) == torch.tensor([0.1])).tolist() == [True]


def test_scalars_of_numpy_do_not_change_the_dtype_of_functions() -> None:
    two = np.float64(2)
    for result in (
        torch.lerp(V, V, two),
        V.lerp(V, two),
        torch.addcdiv(V, V, V + 1, value=two),
        torch.addmm(M, M, M, beta=two, alpha=two),
        torch.renorm(M, two, 0, two),
        torch.trapezoid(V, dx=two),
        torch.round(V, decimals=np.int64(1)),
        torch.polygamma(np.int64(1), V + 1),
        torch.where(V > 1, V, two),
        torch.where(V > 1, two, 0),
        V.mean() / two,
        torch.nn.functional.elu(V, two),
        torch.nn.functional.avg_pool2d(M[None], 2, divisor_override=np.int64(2)),
        torch.fft.fftfreq(np.uint8(2)),
    ):
        assert result.dtype == torch.float32
    assert torch.tensor(two).dtype == torch.as_tensor(two).dtype == torch.float64


def test_small_integers_of_numpy_do_not_wrap() -> None:
    assert torch.diag(torch.arange(3), np.uint8(2)).shape == (5, 5)
    assert torch.diagflat(torch.arange(3), np.uint8(2)).shape == (5, 5)
    assert torch.fft.fftfreq(np.uint8(2)).tolist() == [0.0, -0.5]
    assert torch.lerp(V, V + 1, np.uint8(2)).tolist() == [2.0, 3.0, 4.0]
    assert torch.nn.functional.group_norm(torch.ones(1, 200, 2), np.uint8(200)).shape == (1, 200, 2)


def test_strides_of_pooling_are_integers_of_numpy() -> None:
    one, two = np.int64(1), np.int64(2)
    F = torch.nn.functional
    assert F.max_pool1d(X[None], two, stride=one).tolist() == [[1.0, 2.0, 3.0, 4.0, 5.0]]
    assert F.avg_pool1d(X[None], 2, stride=two).shape == (1, 3)
    assert F.max_pool2d(M[None], 2, stride=one).shape == (1, 2, 2)
    assert torch.nn.MaxPool1d(two)(X[None]).shape == (1, 3)


def test_factors_of_products_of_integers_are_integers() -> None:
    i, v = torch.arange(4).reshape(2, 2), torch.arange(2)
    product = torch.addmm(i, i, i, beta=2.7, alpha=1.5)
    assert product.dtype == torch.int64
    assert product.tolist() == [[2, 5], [10, 17]]
    assert torch.addmv(v, i, v, alpha=1.5).tolist() == [1, 4]
    with pytest.raises(RuntimeError, match="must not be floating"):
        torch.addr(i, v, v, alpha=1.5)


def test_random_numbers_and_choices_have_the_default_dtype() -> None:
    two, mask = torch.tensor(2), V > 1
    assert torch.normal(two, two, (2,)).dtype == torch.float32
    with pytest.raises(NotImplementedError, match="normal_kernel_cpu"):
        torch.normal(two, 2.0)
    assert torch.distributions.Normal(two, 1.0).log_prob(V).dtype == torch.float32
    assert torch.where(mask, np.int32(2), 0).dtype == torch.int64
    assert torch.where(mask, 2 + 0j, 0).dtype == torch.complex64


def test_tensors_without_axes_stand_for_numbers_of_any_dtype() -> None:
    one, half = torch.tensor(1), torch.tensor(0.5, dtype=torch.float64)
    assert torch.fft.fftfreq(torch.tensor(2)).tolist() == [0.0, -0.5]
    assert_array_equal(torch.polygamma(one, V + 1).numpy(), torch.polygamma(1, V + 1).numpy())
    assert_array_equal((V + 1).polygamma(one).numpy(), torch.polygamma(1, V + 1).numpy())
    for weight in (half, half.to(torch.float16)):
        found = torch.lerp(V, V + 1, weight)
        assert (found.dtype, found.tolist()) == (torch.float32, [0.5, 1.5, 2.5])
    assert [len(x) for x in torch.tensor_split(V, np.int64(2))] == [2, 1]
