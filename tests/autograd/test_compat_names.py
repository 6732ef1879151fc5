"""Names of torch in ``functrans.compat.torch``: what is offered is there, what is not says so."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import functrans.compat.torch as torch
from functrans.autograd.methods.conversion import bfloat16_dtype
from functrans.compat.torch.not_offered import GROUPS, INSTEAD, NAMES

DATA = Path(__file__).resolve().parents[2] / "docs" / "torch_names.json"
MODULES = json.loads(DATA.read_text(encoding="utf-8"))["modules"]


def _module(name):
    found = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("module", MODULES)
def test_every_name_is_offered_or_listed_as_not_offered(module):
    own = _module(module)
    listed = NAMES.get(module, {})
    lacking = {name for name in MODULES[module] if not hasattr(own, name)}
    assert lacking == set(listed)
    assert set(listed.values()) <= set(GROUPS)


@pytest.mark.parametrize("name", INSTEAD)
def test_what_to_use_instead_is_of_names_that_are_not_offered(name):
    module, _, last = name.rpartition(".")
    assert last in NAMES[module]


@pytest.mark.parametrize("name", INSTEAD)
def test_names_to_use_instead_are_offered(name):
    for other in re.findall(r"\btorch(?:\.\w+)+", INSTEAD[name]):
        module, _, last = other.rpartition(".")
        assert hasattr(_module(module), last)


def test_duplicates_have_an_offered_function_of_the_plain_name():
    for module, names in NAMES.items():
        for name in (n for n, group in names.items() if group == "duplicates"):
            plain = re.sub("_copy$|^unsafe_|^native_", "", name)
            known = any(hasattr(_module(m), plain) for m in (module, "torch.Tensor"))
            assert f"{module}.{name}" in INSTEAD or (known and plain != name)


@pytest.mark.parametrize(
    ("module", "name", "text"),
    [
        ("torch", "hub", r"torch\.load reads it"),
        ("torch.nn.utils", "clip_grad_norm", r"use torch\.nn\.utils\.clip_grad_norm_$"),
        ("torch", "compiler", r"torch\.compiler is not offered .* compiled by functrans\.jit"),
        ("torch", "sparse_csr_tensor", r"\(sparse and nested tensors\): tensors are dense"),
        ("torch.nn", "LazyLinear", r"\(lazy modules\): give the numbers of input features"),
        ("torch.optim", "Muon", r"torch\.optim\.Muon is not offered .* use torch\.optim\.AdamW"),
        ("torch.optim", "swa_utils", r"average in no_grad"),
        ("torch.nn.utils", "parametrize", r"compute the weight from a parameter in forward\(\)"),
        ("torch.nn.utils", "spectral_norm", r"divide by torch\.linalg\.matrix_norm"),
        ("torch.nn.utils", "prune", r"multiply the weight by a mask"),
        ("torch.nn.modules", "lazy", r"Linear\(3, 5\) for LazyLinear\(5\)"),
        ("torch.utils", "benchmark", r"use timeit of the standard library"),
        ("torch.linalg", "ldl_solve", r"torch\.linalg\.ldl_solve is not offered"),
        ("torch.func", "functionalize", r"torch\.func\.functionalize is not offered"),
    ],
)
def test_a_name_that_is_not_offered_says_what_to_use(module, name, text):
    with pytest.raises(AttributeError, match=text):
        getattr(_module(module), name)


@pytest.mark.parametrize("module", sorted({*NAMES} - {"torch.Tensor", "torch.autograd.graph"}))
def test_each_name_that_is_not_offered_says_so(module):
    for name in NAMES[module]:
        with pytest.raises(AttributeError, match=rf"{module}\.{name} is not offered by functrans"):
            getattr(_module(module), name)


@pytest.mark.parametrize("module", sorted({*NAMES, "torch.nn.functional"} - {"torch.Tensor"}))
def test_an_unknown_name_is_an_ordinary_error(module):
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = _module(module).no_such_name


# dtypes of all results ---------------------------------------------------------------------------

X = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
AT, MASK = torch.tensor([0, 1]), torch.tensor([True, False])
ARGUMENTS = [
    (), (3,), (2, 2), (3, 1, 1), (0.0, 1.0, 3), ((2, 2), 1.0), ((2, 2), 1), (0, 3, (2,)),
    ((3,), (1,)), (X,), (X, 1), (X, 1.0), (X, X), (X, AT), (AT,), (MASK,), (X + 0j,), (AT, 2),
    (X, 0, AT), (X, MASK), (X, X, X), (X, MASK, 1.0), (MASK, X, X), ([1, 2],), ([AT, AT],),
    ([X, X],), (X, 0, 0), ([1.5],), (np.ones(2),), (1.0,), (X, 0, 1), (X[0],), (X[0], X[0]),
    (4, 0.5), (AT, (2, 2)), (AT, 3), (X, 5), (1.0, X), ("ij->ji", X), (X[None, None], 2), (X, (0,)),
    (X[None, None], X[None, None]), (X, 0, AT[:1], X[:1]), (X, 0, AT[None], X), (AT, X), (X, X[0]),
    (X[None], X[None]), (X[None], X[None], X[None]), (X[0], X[0], X[0]), (X, X[0], X[0]),
]  # fmt: skip
TAKES_ARRAYS = "alpha_dropout feature_alpha_dropout gumbel_softmax norm spherical_bessel_j0 trapz"
TAKES_NUMBERS = "isin gammainc gammaincc tensorinv tensorsolve xlog1py xlogy zeta"
REFUSED = f"{TAKES_ARRAYS} trapezoid vector_norm {TAKES_NUMBERS}".split()
"""Functions of tensors that take arrays or numbers alone, too, which torch refuses."""


def _tensors(found):
    if isinstance(found, torch.Tensor):
        yield found
    elif isinstance(found, (tuple, list)):
        for part in found:
            yield from _tensors(part)


def _results(function, name):
    for arguments in ARGUMENTS:
        if name in REFUSED and not any(True for _ in _tensors(arguments)):
            continue
        try:
            yield from _tensors(function(*arguments))
        except Exception:  # what the function does not take
            continue


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("module", "least"),
    [("torch", 400), ("torch.fft", 16), ("torch.special", 50), ("torch.linalg", 24),
     ("torch.nn.functional", 90)],
)  # fmt: skip
def test_results_have_dtypes_of_torch(module, least):
    makes = set()
    for name in MODULES[module]:
        function = getattr(_module(module), name, None)
        is_setting = name.startswith(("set_", "seed", "manual_seed", "save", "load", "autocast"))
        if not callable(function) or isinstance(function, type) or is_setting:
            continue
        for result in _results(function, name):
            makes.add(name)
            assert type(result.dtype) is torch.dtype, name
    assert len(makes) >= least


# what the names do -------------------------------------------------------------------------------


def test_vmap_is_that_of_func():
    x = torch.arange(6.0).reshape(2, 3)
    rows = torch.vmap(lambda row: row.sum())(x)
    np.testing.assert_array_equal(rows.numpy(), [3.0, 12.0])
    columns = torch.vmap(torch.dot, in_dims=(1, 1))(x, x)
    np.testing.assert_array_equal(columns.numpy(), [9.0, 17.0, 29.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.ones(2).to("cuda"),
        lambda: torch.ones(2).to(device="cuda:0"),
        lambda: torch.zeros(2, device="cuda"),
        lambda: torch.tensor([1.0], device="cuda"),
        lambda: torch.randn(2, device="cuda"),
        lambda: torch.ones(2).new_zeros(2, device="cuda"),
        lambda: torch.nn.Linear(2, 2).to("cuda"),
        lambda: torch.nn.Linear(2, 2, device="cuda"),
        lambda: torch.nn.Transformer(4, 2, 1, 1, 4, device="cuda"),
        lambda: torch.nn.Linear(2, 2).cuda(),
        lambda: torch.ones(2).cuda(),
        lambda: torch.ones(2).to(torch.device("cuda")),
        lambda: torch.zeros(2, device=torch.device("mps")),
        lambda: torch.device("cuda").__enter__(),
        lambda: torch.hann_window(3, device="cuda"),
        lambda: torch.set_default_device("cuda"),
    ],
)
def test_other_devices_are_refused(call):
    for kind in (RuntimeError, AssertionError):  # of torch without CUDA, too
        with pytest.raises(kind, match="functrans computes on the CPU"):
            call()


def test_devices_have_names():
    assert repr(torch.device("cuda:1")) == "device(type='cuda', index=1)"
    assert str(torch.device("cuda", 1)) == "cuda:1"
    for name, words in (("disk", "Expected one of cpu"), ("cuda:x", "Invalid device string")):
        with pytest.raises(RuntimeError, match=words):
            torch.device(name)


def test_the_cpu_is_accepted():
    x = torch.ones(2, device="cpu").to(torch.device("cpu"), torch.float64)
    assert x.device == torch.device("cpu")
    assert x.dtype == np.float64
    assert torch.nn.Linear(2, 2, device="cpu").to("cpu").weight.device == torch.device("cpu")
    assert not torch.cuda.is_available()


def test_settings():
    assert torch.get_default_device() == torch.device("cpu")
    torch.use_deterministic_algorithms(False)
    assert torch.are_deterministic_algorithms_enabled()
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "highest"
    with pytest.raises(RuntimeError, match="is not one of 'highest', 'high', 'medium'"):
        torch.set_float32_matmul_precision("low")
    assert torch.typename(torch.ones(1)) == "torch.FloatTensor"
    assert torch.is_signed(torch.ones(1))
    assert not torch.is_signed(torch.ones(1) > 0)


def test_tensors_of_other_memory():
    data = bytearray(np.array([1.0, 2.0, 3.0]).tobytes())
    assert torch.frombuffer(data, dtype=torch.float64, offset=8).tolist() == [2.0, 3.0]
    array = np.arange(3.0)
    shared = torch.from_dlpack(array)
    array[0] = 5
    assert shared[0] == 5


@pytest.mark.parametrize("degree", range(7))
def test_orthogonal_polynomials(degree):
    x = np.linspace(-0.9, 1.4, 7)
    special = torch.special
    one = [0] * degree + [1]
    cases = [
        (special.chebyshev_polynomial_t, np.polynomial.chebyshev.chebval),
        (special.hermite_polynomial_h, np.polynomial.hermite.hermval),
        (special.hermite_polynomial_he, np.polynomial.hermite_e.hermeval),
        (special.laguerre_polynomial_l, np.polynomial.laguerre.lagval),
        (special.legendre_polynomial_p, np.polynomial.legendre.legval),
    ]
    for ours, theirs in cases:
        np.testing.assert_allclose(ours(torch.from_numpy(x), degree).numpy(), theirs(x, one))


def test_the_derivative_of_a_polynomial():
    x = torch.tensor([0.3, -0.7], dtype=torch.float64, requires_grad=True)
    torch.special.chebyshev_polynomial_t(x, 3).sum().backward()  # 4 x^3 - 3 x
    np.testing.assert_allclose(x.grad.numpy(), 12 * x.detach().numpy() ** 2 - 3)


def test_methods_that_are_not_offered_say_so() -> None:
    x = torch.ones(2)
    assert x.is_cpu
    for name, hint in {"stft": "torch.stft", "lu_solve": "linalg.solve", "smm": "scipy"}.items():
        with pytest.raises(AttributeError, match=f"torch.Tensor.{name} is not offered .*{hint}"):
            getattr(x, name)
        assert not hasattr(x, name)
    with pytest.raises(AttributeError, match="object has no attribute 'smmm'"):
        x.smmm  # noqa: B018  # is no statement without effect: reading the name raises


def test_numbers_are_repeated_for_axes() -> None:
    from functrans.compat.torch.nn.modules.utils import _ntuple, _pair, _single, _triple

    assert (_single(3), _pair((1, 2)), _triple("ab"), _ntuple(4)(0)) == (
        (3,), (1, 2), ("a", "b"), (0,) * 4,
    )  # fmt: skip


def test_bfloat16_without_its_package_says_that_autocast_does_not_take_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ImportError, match=r"ml_dtypes.*autocast\('cpu'\) is not offered with it"):
        bfloat16_dtype()
