"""What libraries over torch ask of it: names at their top, ``__torch_function__``, small words."""

from __future__ import annotations

import importlib
import pickle
import warnings
from types import FunctionType

import numpy as np
import pytest

import functrans as ft
import functrans.compat.torch as torch
from functrans.autograd.methods.linear_algebra import LINALG
from functrans.compat.torch import functional_names


class Scaled:
    """A matrix that no function knows, which takes calls over."""

    shape = (2, 2)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return ("scaled", func, types, args, kwargs)


# names -------------------------------------------------------------------------------------------


def test_names_that_libraries_import():
    for name in (
        "optim.lr_scheduler._LRScheduler",
        "nn.modules.module._IncompatibleKeys",
        "nn.parallel.DataParallel",
        "distributions.utils._standard_normal",
        "quasirandom.SobolEngine",
        "random.fork_rng",
        "jit.script",
        "nn.init._calculate_fan_in_and_fan_out",
        "nn.init._calculate_correct_fan",
        "utils.data._utils.collate.default_collate",
        "sparse.FloatTensor",
    ):
        module, _, last = name.rpartition(".")
        assert hasattr(importlib.import_module(f"functrans.compat.torch.{module}"), last), name


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("batchnorm._BatchNorm", "BatchNorm1d BatchNorm2d BatchNorm3d"),
        ("instancenorm._InstanceNorm", "InstanceNorm1d InstanceNorm2d InstanceNorm3d"),
        ("batchnorm._NormBase", "BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d "
         "InstanceNorm2d InstanceNorm3d"),
        ("conv._ConvNd", "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d"),
        ("conv._ConvTransposeNd", "ConvTranspose1d ConvTranspose2d ConvTranspose3d"),
        ("dropout._DropoutNd", "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d "
         "FeatureAlphaDropout"),
        ("pooling._MaxPoolNd", "MaxPool1d MaxPool2d MaxPool3d"),
        ("loss._WeightedLoss", "BCELoss CrossEntropyLoss MultiLabelSoftMarginLoss MultiMarginLoss "
         "NLLLoss"),
        ("loss._Loss", "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss "
         "GaussianNLLLoss HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss MSELoss MarginRankingLoss "
         "MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PoissonNLLLoss "
         "SmoothL1Loss SoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss"),
    ],
)  # fmt: skip
def test_private_bases_of_modules_have_the_members_that_torchs_have(name, members):
    module, _, last = name.partition(".")
    base = getattr(importlib.import_module(f"functrans.compat.torch.nn.modules.{module}"), last)
    classes = [x for x in vars(torch.nn).values() if isinstance(x, type) and issubclass(x, base)]
    assert sorted(x.__name__ for x in classes) == members.split()


def test_losses_of_libraries_are_subclasses_of_private_bases():
    class Focal(torch.nn.modules.loss._WeightedLoss):
        def __init__(self, weight=None, gamma=2.0, reduction="mean"):
            super().__init__(weight, reduction=reduction)
            self.gamma = gamma

    loss = Focal(torch.ones(3), reduction="sum")
    assert (loss.reduction, loss.gamma, [*loss.state_dict()]) == ("sum", 2.0, ["weight"])
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert torch.nn.modules.loss._Loss(size_average=False).reduction == "sum"


def test_fans_of_weights():
    init = torch.nn.init
    weight = torch.ones(6, 4, 3, 5)
    assert init._calculate_fan_in_and_fan_out(weight) == (60, 90)
    assert init._calculate_correct_fan(weight, "fan_out") == 90


def test_marks_of_torchscript_change_nothing():
    @torch.jit.script
    def double(x):
        return 2 * x

    assert double(torch.ones(1)).item() == 2
    assert torch.jit.ignore(double) is torch.jit.unused(double) is double
    assert torch.jit.ignore(drop=True)(double) is double
    assert torch.compile(double) is torch.compile(double, mode="reduce-overhead") is double
    assert torch.compile(fullgraph=True)(double) is torch.compile()(double) is double
    assert not torch.jit.is_scripting()
    with pytest.raises(AttributeError, match=r"torch\.jit\.trace is not offered"):
        _ = torch.jit.trace


def test_sparse_matrices_are_multiplied_by_dense_ones():
    places = torch.tensor([[0, 1, 1, 1], [1, 0, 1, 1]])
    values = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    dense = torch.arange(6.0).reshape(3, 2).requires_grad_()
    sparse = torch.sparse_coo_tensor(places, values, (2, 3))
    whole = sparse.to_dense()
    assert whole.tolist() == [[0, 1, 0], [2, 7, 0]]
    product = whole @ dense
    expected = torch.autograd.grad(product.square().sum(), (values, dense))
    for found in (torch.dsmm(sparse, dense), sparse @ dense, torch.matmul(sparse, dense)):
        assert found.tolist() == product.tolist()
        gradients = torch.autograd.grad(found.square().sum(), (values, dense))
        for one, other in zip(gradients, expected, strict=True):
            np.testing.assert_allclose(one, other)
    assert sparse.t().to_dense().tolist() == sparse.mT.to_dense().tolist() == whole.mT.tolist()
    assert (sparse @ dense[:, 0]).tolist() == product[:, 0].tolist()
    cube = torch.sparse_coo_tensor(torch.tensor([[1], [0], [2]]), torch.ones(1), (2, 1, 3))
    assert cube.to_dense()[1, 0, 2] == cube.to_dense().sum() == 1
    assert cube.mT.shape == (2, 3, 1)


def test_sparse_tensors_have_types_by_dtype_and_refuse_the_rest():
    places, values = torch.tensor([[0], [1]]), torch.ones(1)
    sparse = torch.sparse.FloatTensor(places, values, torch.Size((2, 2)))
    assert type(sparse) is torch.sparse.FloatTensor is type(torch.sparse_coo_tensor(places, values))
    assert not isinstance(torch.ones(2), torch.sparse.FloatTensor)
    with pytest.raises(TypeError, match=r"DoubleTensor\(\) got values of dtype torch\.float32"):
        torch.sparse.DoubleTensor(places, values, (2, 2))
    with pytest.raises(RuntimeError, match="for dim 1, size is 1 but found index 1"):
        torch.sparse_coo_tensor(places, values, (2, 1))
    with pytest.raises(RuntimeError, match="have indices of shape"):
        torch.sparse_coo_tensor(places, values, (2, 1, 2))
    with pytest.raises(AttributeError, match="sparse tensors have no 'coalesce' here"):
        sparse.coalesce()
    with pytest.raises(TypeError, match=r"no implementation found for .*sin"):
        torch.sin(sparse)


@pytest.mark.parametrize("name", ["current_device", "get_rng_state", "get_device_name", "device"])
def test_what_needs_a_gpu_is_refused_when_it_is_called(name):
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        getattr(torch.cuda, name)(0)


def test_points_of_sobol_sequences():
    engine = torch.quasirandom.SobolEngine(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = engine.draw(5)
    expected = [[0, 0, 0], [0.5] * 3, [0.75, 0.25, 0.25], [0.25, 0.75, 0.75], [0.375, 0.375, 0.625]]
    np.testing.assert_array_equal(first.numpy(), expected)
    assert first.dtype == torch.float32
    np.testing.assert_array_equal(engine.draw(1).numpy(), [[0.875, 0.875, 0.125]])
    engine.fast_forward(3)
    np.testing.assert_array_equal(engine.draw(1).numpy(), [[0.6875, 0.8125, 0.4375]])
    assert engine.num_generated == 10
    with pytest.raises(ValueError, match="balance properties"):
        engine.draw_base2(3)
    target = torch.empty(2, 3, dtype=torch.float64)
    engine.reset().draw(2, out=target, dtype=torch.float64)
    assert target[1].tolist() == [0.5] * 3
    with pytest.raises(ValueError, match="Supported range of dimensionality"):
        torch.quasirandom.SobolEngine(30_000)


@pytest.mark.parametrize("scramble", [False, True])
def test_points_of_sobol_sequences_are_balanced(scramble):
    points = torch.quasirandom.SobolEngine(1000, scramble, seed=4).draw(64, dtype=torch.float64)
    cells = np.sort((points.numpy() * 64).astype(int), axis=0)
    np.testing.assert_array_equal(cells, np.repeat(np.arange(64)[:, None], 1000, 1))


def test_numbers_of_points_of_sobol_sequences_are_checked():
    engine = torch.quasirandom.SobolEngine(2)
    engine.fast_forward(2**30 - 1)
    for n in (-1, 2):
        with pytest.raises(RuntimeError, match=f"cannot give {n} points; expected 0 to 1"):
            engine.draw(n)
    assert engine.draw(0).shape == (0, 2)
    assert engine.draw(1).tolist() == (engine.quasi / 2**30)[None].tolist()
    assert ft.jit(lambda x: x * torch.quasirandom.SobolEngine(1, True, 1).draw(1).sum())(
        torch.ones(1)
    ) == torch.quasirandom.SobolEngine(1, True, 1).draw(1)


def test_scrambled_points_depend_on_the_seed():
    def draw(seed):
        return torch.quasirandom.SobolEngine(2, scramble=True, seed=seed).draw(4).numpy()

    np.testing.assert_array_equal(draw(1), draw(1))
    assert (draw(1) != draw(2)).any()
    torch.manual_seed(0)
    first = draw(None)
    assert (first != draw(None)).any()
    torch.manual_seed(0)
    np.testing.assert_array_equal(first, draw(None))


def test_random_numbers_of_a_fork_are_forgotten():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with torch.random.fork_rng():
        torch.rand(5)
    np.testing.assert_array_equal(torch.rand(2).numpy(), expected.numpy())


def test_modules_of_one_device():
    linear = torch.nn.Linear(2, 3)
    module = torch.nn.DataParallel(linear)
    assert list(module.state_dict()) == ["module.weight", "module.bias"]
    x = torch.ones(1, 2)
    np.testing.assert_array_equal(module(x).detach().numpy(), linear(x).detach().numpy())
    with pytest.raises(RuntimeError, match="computes on the CPU"):
        torch.nn.DataParallel(linear, device_ids=["cuda:0"])


# __torch_function__ ------------------------------------------------------------------------------

_BINARY = ("add", "sub", "mul", "div", "matmul", "mm", "isclose", "maximum", "cholesky_solve")


@pytest.mark.parametrize("name", _BINARY)
@pytest.mark.parametrize("first", [True, False])
def test_either_operand_takes_a_function_over(name, first):
    function, x, other = getattr(torch, name), torch.ones(2, 2), Scaled()
    args = (other, x) if first else (x, other)
    assert function(*args) == ("scaled", function, (Scaled,), args, {})


@pytest.mark.parametrize("name", ["add", "sub", "mul", "matmul"])
def test_an_operand_takes_a_method_over(name):
    x, other = torch.ones(2, 2), Scaled()
    found = getattr(x, name)(other)
    assert found == ("scaled", getattr(torch.Tensor, name), (Scaled,), (x, other), {})


_OF_NO_TENSOR = {
    "broadcast_shapes",
    "is_tensor",
    "set_printoptions",
    "tril_indices",
    "triu_indices",
    *functional_names.TORCH.table(),
}


@pytest.mark.parametrize("name", sorted({*functional_names.FUNCTIONS} - _OF_NO_TENSOR))
def test_an_argument_takes_every_function_over(name):
    function = functional_names.FUNCTIONS[name]
    if hasattr(function, "__code__"):  # else it is a type
        assert function(Scaled())[:2] == ("scaled", function)


@pytest.mark.parametrize("name", sorted({*LINALG} - {"LinAlgError"}))
def test_an_argument_takes_linear_algebra_over(name):
    function = getattr(torch.linalg, name)
    assert function(Scaled())[:2] == ("scaled", function)


def test_an_error_of_what_takes_over_arrives():
    class Refusing:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise NotImplementedError("not this one")

    with pytest.raises(NotImplementedError, match="not this one"):
        torch.exp(Refusing())
    with pytest.raises(TypeError, match="must be Tensor, not object"):
        torch.exp(object())


# words of arguments ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "keyword", "value"),
    [
        ("tile", "dims", (2, 1)),
        ("repeat", "repeats", (2, 1)),
        ("expand", "size", (2, 3)),
        ("reshape", "shape", (3, 1)),
        ("view", "size", (3, 1)),
        ("sum_to_size", "size", (1, 1)),
        ("flip", "dims", (0, 1)),
        ("permute", "dims", (1, 0)),
    ],
)
def test_sizes_by_keyword(name, keyword, value):
    x = torch.arange(3.0).reshape(1, 3)
    found = getattr(x, name)(**{keyword: value})
    np.testing.assert_array_equal(found.numpy(), getattr(x, name)(*value).numpy())
    if hasattr(torch, name) and name != "repeat":
        function = getattr(torch, name)
        np.testing.assert_array_equal(function(x, **{keyword: value}).numpy(), found.numpy())


def test_parts_by_keyword():
    x = torch.arange(5.0)
    assert [part.tolist() for part in x.split(split_size=3, dim=0)] == [[0, 1, 2], [3, 4]]
    for function in (torch.split_with_sizes, torch.Tensor.split_with_sizes):
        assert [len(part) for part in function(x, split_sizes=[1, 4])] == [1, 4]
    assert len(torch.split(x, split_size_or_sections=[2, 3])) == 2


def test_beta_is_a_dirichlet_distribution_of_two():
    beta = torch.distributions.Beta(torch.tensor([1.0, 2.0]), 3.0)
    assert beta._dirichlet.concentration.tolist() == [[1, 3], [2, 3]]
    assert beta._dirichlet.mean[:, 0].tolist() == beta.mean.tolist()


def test_axis_is_dim():
    x = torch.ones(2)
    for name in ("cat", "stack", "concat", "concatenate"):
        found = getattr(torch, name)([x, x], axis=-1)
        assert found.shape == getattr(torch, name)([x, x], dim=-1).shape


@pytest.mark.parametrize("name", ["cholesky", "inv", "eigh", "cholesky_ex", "svd", "solve"])
def test_results_of_linear_algebra_go_to_out(name):
    a = torch.eye(3) + 0.1
    args = (a, a) if name == "solve" else (a,)
    expected = getattr(torch.linalg, name)(*args)
    many = isinstance(expected, tuple)
    given = tuple(map(torch.empty_like, expected)) if many else torch.empty_like(expected)
    found = getattr(torch.linalg, name)(*args, out=given)
    for x, target, y in zip(
        *((found, given, expected) if many else ((found,), (given,), (expected,))), strict=True
    ):
        assert x is target
        np.testing.assert_array_equal(x.numpy(), y.numpy())


# what comes back ---------------------------------------------------------------------------------


def test_common_shapes_are_sizes():
    found = torch.broadcast_shapes((2, 1), (3,))
    assert found == (2, 3)
    assert found.numel() == 6


def test_tensors_in_backward_passes_have_dtypes_of_torch():
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            seen.extend([a, b, g])
            return g * b, g * a

    a = torch.ones(2, requires_grad=True)
    y = Product.apply(a, a.detach() * 2) * 3
    y.register_hook(seen.append)
    y.sum().backward()
    assert len(seen) == 4
    assert all(x.dtype is torch.float32 for x in seen)
    assert torch.nn.functional.one_hot(torch.tensor([1])).dtype is torch.int64


@pytest.mark.parametrize("upper", [False, True])
def test_systems_with_a_factor_have_the_gradient_of_the_whole_matrix(upper):
    rng = np.random.default_rng(0)
    factor = np.tril(rng.normal(size=(3, 3))) + 3 * np.eye(3)
    given = torch.tensor(factor.T if upper else factor, requires_grad=True)
    b = torch.tensor(rng.normal(size=(2, 3, 1)), requires_grad=True)
    weight = torch.tensor(rng.normal(size=(2, 3, 1)))

    def whole(b, f):
        matrix = f.mT @ f if upper else f @ f.mT
        return torch.linalg.solve(matrix, b)

    found = torch.cholesky_solve(b, given, upper=upper)
    expected = whole(b, given)
    np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-10)
    inputs = (b, given)
    ours = torch.autograd.grad((found * weight).sum(), inputs, create_graph=True)
    theirs = torch.autograd.grad((expected * weight).sum(), inputs, create_graph=True)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.detach(), other.detach(), rtol=1e-9)
    second = [torch.autograd.grad(sum((g**2).sum() for g in gs), inputs) for gs in (ours, theirs)]
    for one, other in zip(*second, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8)


def test_parameters_that_became_attributes():
    linear = torch.nn.Linear(2, 1, bias=False)
    weight = linear.weight
    del linear._parameters["weight"], linear._parameters["bias"]
    linear.weight, linear.bias = weight.detach() * 2, torch.ones(1)
    x = torch.ones(1, 2)
    np.testing.assert_allclose(linear(x), (x @ weight.mT * 2 + 1).detach(), rtol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: a + b,
        lambda a, b: a.add_(b),
        lambda a, b: a < b,
        lambda a, b: torch.maximum(a, b),
        lambda a, b: torch.where(a > 0, a, b),
        lambda a, b: torch.xlogy(a, b),
        lambda a, b: torch.addcmul(a, b, b),
        lambda a, b: torch.isclose(a, b),
        lambda a, b: torch.special.zeta(a, b),
        lambda a, b: torch.distributions.Normal(a, a, validate_args=False).log_prob(b),
    ],
)
@pytest.mark.parametrize("records", [False, True])
def test_sizes_that_differ_are_told_in_torchs_words(call, records):
    a, b = torch.ones(2), torch.ones(3, requires_grad=records)
    with pytest.raises(
        RuntimeError, match=r"The size of tensor [ab] \([23]\) must match the size "
    ):
        call(a, b)
    assert a.tolist() == [1, 1]


def test_functions_pickle_by_their_names():
    for place in (
        torch,
        torch.Tensor,
        torch.linalg,
        torch.special,
        torch.fft,
        torch.nn.functional,
        torch.nn.init,
        torch.distributions,
    ):
        names = vars(place) if place is torch.Tensor else dir(place)
        functions = [getattr(place, name) for name in names if not name.startswith("_")]
        found = [f for f in functions if isinstance(f, FunctionType)]
        assert found
        for function in found:
            assert pickle.loads(pickle.dumps(function)) is function, function


# modules -----------------------------------------------------------------------------------------


class _Bounds(torch.nn.Module):
    """Loads itself, as constraints and priors of GPyTorch do."""

    def __init__(self):
        super().__init__()
        self.register_buffer("lower", torch.zeros(1))
        self.seen = None

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, *lists):
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)
        self.seen = self.lower.item()


def test_modules_load_themselves():
    module = torch.nn.Sequential(_Bounds(), torch.nn.Linear(1, 1))
    state = module.state_dict()
    state["0.lower"] = torch.full((1,), 3.0)
    assert not module.load_state_dict(state).missing_keys
    assert module[0].seen == 3
    del state["0.lower"]
    assert module.load_state_dict(state).missing_keys == []  # it says that it is not strict
    state["1.bias"] = torch.ones(2)
    with pytest.raises(RuntimeError, match=r"size mismatch for 1\.bias"):
        module.load_state_dict(state)


def test_hooks_before_loading_get_the_module_or_not():
    module, calls = torch.nn.Linear(1, 1), []

    def hook(*given):
        calls.append(given)

    module._register_load_state_dict_pre_hook(hook)
    module._register_load_state_dict_pre_hook(hook, with_module=True)
    module.load_state_dict(module.state_dict(), strict=False)
    assert [len(given) for given in calls] == [7, 8]
    assert calls[1][0] is module
    assert calls[0][3] is True


def test_conversions_of_modules_go_through_apply():
    class Bounded(torch.nn.Linear):
        def __init__(self):
            super().__init__(2, 1)
            self.bound = torch.ones(1)

        def _apply(self, fn):
            self.bound = fn(self.bound)
            return super()._apply(fn)

    module = torch.nn.Sequential(Bounded())
    module[0].weight.grad = torch.ones(1, 2)
    weight = module[0].weight
    module.double()
    assert module[0].bound.dtype is torch.float64
    assert module[0].weight is weight
    assert weight.dtype is weight.grad.dtype is torch.float64
    module._apply(lambda x: x * 2)
    assert weight.grad.tolist() == [[2.0, 2.0]]
    weight.sum().backward()
    assert weight.grad.tolist() == [[3.0, 3.0]]
    assert torch.ones(2).to_dense().tolist() == [1, 1]


def test_tensors_of_pytorch_are_told_from_ours():
    def hook(cls, func, types, args=(), kwargs=None):  # PyTorch's calls the function again
        return func(*args, **(kwargs or {}))

    hook.__module__ = "torch._tensor"
    theirs = type("Tensor", (), {"__torch_function__": classmethod(hook), "__module__": "torch"})()
    ours = torch.ones(2)
    for call in (
        lambda: torch.sin(theirs),
        lambda: ours + theirs,
        lambda: theirs * ours,
        lambda: ours.add(theirs),
        lambda: torch.nn.Linear(2, 2)(theirs),
        lambda: torch.nn.Parameter(theirs),
        lambda: torch.matmul(theirs, ours),
        lambda: torch.matmul(ours, theirs),
        lambda: ours.matmul(theirs),
        lambda: ours @ theirs,
        lambda: theirs @ ours,
        lambda: torch.cdist(theirs, ours),
        lambda: torch.cdist(ours, theirs),
        *(
            lambda join=join, parts=parts: join(parts)
            for join in (torch.stack, torch.cat, torch.hstack, torch.vstack, torch.column_stack)
            for parts in ([theirs], [ours, theirs])
        ),
        lambda: torch.block_diag(ours, theirs),
    ):
        with pytest.raises(TypeError, match=r"(not|got) torch\.Tensor: it is a tensor of PyTorch"):
            call()
