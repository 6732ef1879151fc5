"""What scripts written for torch do besides tensors: imports, switches, files, prints."""

from __future__ import annotations

import copy
import importlib
import io
import operator
import pickle
import re
import sys
import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.autograd as ag
import functrans.compat.torch as torch

PACKAGE = "functrans.compat.torch"

# torch's oldest constructors ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "shape", "values"),
    [
        ((), (0,), []),
        ((2, 1), (2, 1), [[0], [0]]),
        (([1, 2],), (2,), [1, 2]),
        (((2, 3),), (2,), [2, 3]),
        ((range(3),), (3,), [0, 1, 2]),
        ((np.array([1, 2]),), (2,), [1, 2]),
        ((torch.Size([1, 2]),), (1, 2), [[0, 0]]),
        (([torch.ones(1), torch.ones(1)],), (2,), [1, 1]),
    ],
)
def test_the_class_makes_float32_of_sizes_and_data(args, shape, values):
    x = torch.Tensor(*args)
    assert type(x) is torch.Tensor
    assert x.shape == shape
    assert x.dtype == np.float32
    assert x.tolist() == values


def test_data_are_copied_and_tensors_shared():
    data = np.ones(2, np.float32)
    x = torch.Tensor(data)
    y = torch.Tensor(x)
    x[0] = 5
    assert data.tolist() == [1, 1]
    assert y.tolist() == [5, 1]
    leaf = torch.ones(2, requires_grad=True)
    torch.Tensor(leaf).sum().backward()
    assert leaf.grad.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ((5.0,), TypeError, r"data must be a sequence \(got float\)"),
        ((None,), TypeError, r"data must be a sequence \(got NoneType\)"),
        (("ab",), TypeError, "invalid data type 'str'"),
        ((2, 3.0), TypeError, "failed to unpack the object at pos 2"),
        ((-1,), RuntimeError, "negative dimension -1"),
    ],
)
def test_what_the_class_makes_no_tensor_of(args, error, text):
    with pytest.raises(error, match=text):
        torch.Tensor(*args)


def test_subclasses_are_made_as_themselves():
    class Mine(torch.Tensor):
        pass

    assert type(Mine([1, 2])) is Mine
    assert Mine([1, 2]).dtype == np.float32
    assert type(Mine([1, 2]) * 2) is torch.Tensor


def test_legacy_types_make_know_and_convert():
    assert torch.LongTensor([1.5]).tolist() == [1]
    assert torch.DoubleTensor(2, 3).shape == (2, 3)
    assert isinstance(torch.zeros(2), torch.FloatTensor)
    assert isinstance(torch.nn.Parameter(torch.zeros(2)), torch.FloatTensor)
    assert not isinstance(torch.zeros(2), torch.DoubleTensor)
    assert not isinstance(np.zeros(2, np.float32), torch.FloatTensor)
    x = torch.tensor([1.5])
    assert x.type() == "torch.FloatTensor"
    for kind in (torch.LongTensor, "torch.LongTensor", torch.int64):
        assert x.type(kind).dtype == np.int64
    assert repr(torch.FloatTensor) == "<class 'torch.FloatTensor'>"
    assert torch.FloatTensor.dtype == torch.float32


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: x.type("foo"), ValueError, "invalid type: 'foo'"),
        (lambda x: x.type(float), ValueError, "invalid type: 'float'"),
        (lambda x: x.type(3), TypeError, "dtype must be a type, str, or dtype object"),
        (lambda x: x.to(torch.LongTensor), TypeError, "invalid combination of arguments"),
        (lambda x: torch.DoubleTensor(x), TypeError, "expected a tensor of dtype Double"),
        (lambda x: x.new(x.long()), TypeError, "expected a tensor of dtype Float"),
    ],
)
def test_what_is_no_conversion(call, error, text):
    with pytest.raises(error, match=text):
        call(torch.ones(2))


def test_new_keeps_the_dtype():
    x = torch.ones(2, dtype=torch.float64)
    assert x.new(2, 3).shape == (2, 3)
    assert x.new([1]).dtype == np.float64
    assert torch.tensor([1]).new([1.5]).tolist() == [1]


def test_the_default_dtype_by_a_legacy_type():
    try:
        torch.set_default_tensor_type(torch.DoubleTensor)
        assert torch.ones(1).dtype == torch.Tensor([1]).dtype == np.float64
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")
    with pytest.raises(TypeError, match="only floating-point types"):
        torch.set_default_tensor_type(torch.LongTensor)


def test_size():
    size = torch.ones(2, 3).size()
    assert isinstance(size, torch.Size)
    assert (size.numel(), repr(size), size[1:]) == (6, "torch.Size([2, 3])", (3,))
    assert isinstance(operator.add(size, (1,)), torch.Size)
    assert repr(operator.add((4,), size)) == "torch.Size([4, 2, 3])"
    assert pickle.loads(pickle.dumps(size)) == size == torch.ones(2, 3).shape
    with pytest.raises(TypeError, match=r"takes an iterable of 'int' \(item 0 is 'float'\)"):
        torch.Size([1.5])


# copies ------------------------------------------------------------------------------------------


def test_copies_of_parameters_have_no_gradient_those_of_tensors_do():
    model = torch.nn.Linear(2, 1)
    model(torch.ones(2)).sum().backward()
    copied = copy.deepcopy(model)
    assert copied.weight.grad is None
    assert copied.weight.requires_grad
    assert model.weight.grad is not None
    leaf = torch.ones(2, requires_grad=True)
    (3 * leaf).sum().backward()
    assert copy.deepcopy(leaf).grad.tolist() == [3, 3]


# imports -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("autograd.forward_ad", "make_dual"),
        ("autograd.profiler", "profile"),
        ("autograd.graph", "saved_tensors_hooks"),
        ("autograd.function", "Function"),
        ("autograd.gradcheck", "gradcheck"),
        ("autograd.variable", "Variable"),
        ("autograd.grad_mode", "no_grad"),
        ("utils.data.dataset", "TensorDataset"),
        ("utils.data.sampler", "RandomSampler"),
        ("utils.data.dataloader", "DataLoader"),
        ("nn.modules.loss", "MSELoss"),
        ("nn.modules.linear", "Linear"),
        ("nn.utils.clip_grad", "clip_grad_norm_"),
        ("optim.adam", "Adam"),
        ("optim.sgd", "SGD"),
        ("optim.lr_scheduler", "StepLR"),
        ("backends.cudnn", "benchmark"),
        ("cuda.amp", "GradScaler"),
        ("amp", "autocast"),
    ],
)
def test_submodules_are_imported_by_torchs_names(module, name):
    assert hasattr(importlib.import_module(f"{PACKAGE}.{module}"), name)


def test_a_function_keeps_its_name_beside_a_submodule():
    importlib.import_module(f"{PACKAGE}.autograd.gradcheck")
    importlib.import_module(f"{PACKAGE}.autograd.variable")
    assert torch.autograd.gradcheck is ag.gradcheck
    assert torch.autograd.variable is ag.variable


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("import {}.hub", r"torch\.hub is not offered"),
        ("import {}.distributed.rpc", r"torch\.distributed is not offered"),
        ("from {} import compiler", r"torch\.compiler is not offered .* functrans\.jit"),
        ("from {}.optim.swa_utils import AveragedModel", r"torch\.optim\.swa_utils is not offered"),
        ("from {}.nn.utils import stateless", r"torch\.nn\.utils\.stateless is not offered"),
        ("from {}.nn.utils.parametrize import cached", r"nn\.utils\.parametrize is not offered"),
        ("from {}.linalg import ldl_solve", r"torch\.linalg\.ldl_solve is not offered"),
        ("from {}.utils.tensorboard import SummaryWriter", r"torch\.utils\.tensorboard is not"),
        ("import {}.no_such_module", "No module named"),
        ("from {} import no_such_name", "cannot import name 'no_such_name'"),
    ],
)
def test_imports_of_what_is_not_offered(statement, text):
    with pytest.raises(ImportError, match=text):
        exec(statement.format(PACKAGE), {})


def test_one_finder_looks_below_the_package_alone():
    finders = [f for f in sys.meta_path if type(f).__name__ == "NotOfferedFinder"]
    assert len(finders) == 1
    assert finders[0].find_spec("torch.quasirandom") is None
    assert finders[0].find_spec("functrans.compat.quasirandom") is None


# switches ----------------------------------------------------------------------------------------


def test_switches_of_what_is_not_there_change_nothing():
    cudnn = torch.backends.cudnn
    assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (True, False, False)
    cudnn.deterministic = True
    assert cudnn.deterministic
    cudnn.deterministic = False
    assert not torch.backends.mps.is_available()
    assert not torch.backends.cuda.matmul.allow_tf32
    torch.cuda.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    assert (torch.cuda.device_count(), torch.cuda.memory_allocated()) == (0, 0)
    with pytest.raises(AttributeError, match="functrans computes on the CPU"):
        _ = torch.cuda.current_blas_handle
    assert torch.__version__.startswith("2.")
    assert "functrans" in torch.__version__
    assert torch.version.cuda is None
    assert torch.get_num_interop_threads() == 1
    assert not torch.set_flush_denormal(True)


def test_mixed_precision_that_is_off():
    x = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([x], 0.5)
    scaler = torch.amp.GradScaler(enabled=False)
    with torch.autocast("cuda", enabled=False), torch.amp.autocast("cpu", enabled=False):
        loss = torch.autocast("cpu", enabled=False)(lambda: (x * x).sum())()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert x.tolist() == [0, 0]
    assert (scaler.get_scale(), scaler.is_enabled(), scaler.state_dict()) == (1.0, False, {})


@pytest.mark.parametrize(
    ("call", "kinds", "text"),
    [
        (lambda: torch.autocast("cuda"), [UserWarning], "CUDA is not available"),
        (lambda: torch.autocast("cpu", torch.float32), [UserWarning], "In CPU autocast, but"),
        (lambda: torch.amp.GradScaler(), [UserWarning], "GradScaler is enabled, but CUDA"),
        (lambda: torch.cuda.amp.autocast(False), [FutureWarning], "is deprecated"),
        (
            lambda: torch.cuda.amp.GradScaler(),
            [FutureWarning, UserWarning],
            r"`torch.cuda.amp.GradScaler\(args...\)` is deprecated",
        ),
    ],
)
def test_mixed_precision_warns_at_the_users_line(call, kinds, text):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert re.search(text, str(caught[0].message))
    assert [w.category for w in caught] == kinds
    assert {w.filename for w in caught} == {__file__}


def test_mixed_precision_on_the_cpu_is_refused():
    with pytest.raises(NotImplementedError, match=r"convert with tensor\.to\(dtype\)"):
        torch.autocast("cpu")
    with pytest.raises(NotImplementedError, match="gradients are not scaled"):
        torch.amp.GradScaler("cpu")
    with pytest.raises(RuntimeError, match="Expected one of"):
        torch.autocast("foo")


def test_a_loss_warns_of_shapes_at_the_users_line():
    for call in (torch.nn.MSELoss(), torch.nn.functional.mse_loss):
        with pytest.warns(UserWarning, match="Using a target size") as caught:
            call(torch.ones(2, 1), torch.ones(1, 2))
        assert caught[0].filename == __file__


# learning rates ----------------------------------------------------------------------------------


def _schedule():
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], 0.5)
    return w, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 1)


def test_a_schedule_before_the_optimizer_warns_once():
    _, _, schedule = _schedule()
    with pytest.warns(UserWarning, match="before `optimizer.step") as caught:
        schedule.step()
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()


@pytest.mark.parametrize("jits", [False, True])
def test_a_schedule_after_the_optimizer_does_not_warn(jits):
    w, optimizer, schedule = _schedule()

    def step():
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()

    call = ft.jit(step) if jits else step
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            call()
            schedule.step()
    np.testing.assert_allclose(optimizer.param_groups[0]["lr"], 0.5e-3)
    np.testing.assert_allclose(w.detach().numpy(), 0 * np.ones(2), atol=1e-6)


# loading -----------------------------------------------------------------------------------------


def test_workers_are_this_thread_with_one_warning():
    with pytest.warns(UserWarning, match="num_workers=2 starts no processes") as caught:
        loader = torch.utils.data.DataLoader(
            [1, 2, 3], 2, num_workers=2, prefetch_factor=4, persistent_workers=True, timeout=3
        )
    assert [w.filename for w in caught] == [__file__]
    assert [batch.tolist() for batch in loader] == [[1, 2], [3]]


# files -------------------------------------------------------------------------------------------


def _again(obj, **options):
    buffer = io.BytesIO()
    torch.save(obj, buffer)
    buffer.seek(0)
    return torch.load(buffer, **options)


def test_files_keep_values_layout_memory_and_attributes():
    x = torch.arange(6.0).reshape(2, 3)
    p = torch.nn.Parameter(x)
    p.tag = "bias"
    found = _again({"x": x, "t": x.t(), "row": x[1], "p": p, "other": [1, (2.5, None), x.size()]})
    assert found["t"].stride() == (1, 3)
    assert found["p"].requires_grad
    assert isinstance(found["p"], torch.nn.Parameter)
    assert found["p"].tag == "bias"
    assert found["other"] == [1, (2.5, None), torch.Size([2, 3])]
    found["row"][0] = 9
    assert found["x"][1, 0] == found["t"][0, 1] == found["p"][1, 0] == 9
    assert x[1, 0] == 3


@pytest.mark.parametrize(
    "dtype",
    [
        "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool",
        "complex64", "complex128", "uint16", "uint32", "uint64",
    ],
)  # fmt: skip
def test_files_keep_dtypes(dtype):
    x = torch.from_numpy(np.arange(4).astype(dtype))
    found = _again([x, x[:0]])
    assert [y.dtype for y in found] == [np.dtype(dtype)] * 2
    assert found[0].tolist() == x.tolist()


def test_files_of_steps_in_memory_with_gaps():
    x = torch.arange(8.0)
    base, part = _again([x, x[::2]])
    part[1] = 7
    assert base[2] == 7
    assert _again(torch.from_numpy(np.arange(4.0)[::-1])).tolist() == [3, 2, 1, 0]


def test_models_need_trust_and_old_pickles_are_read():
    model = torch.nn.Linear(2, 1)
    with pytest.raises(pickle.UnpicklingError, match="neither a tensor nor a container"):
        _again(model)
    again = _again(model, weights_only=False)
    np.testing.assert_array_equal(again.weight.detach().numpy(), model.weight.detach().numpy())
    old = io.BytesIO(pickle.dumps({"w": torch.ones(2)}))
    assert torch.load(old)["w"].tolist() == [1, 1]


def test_what_cannot_be_pickled_leaves_the_file(tmp_path):
    path = tmp_path / "kept.pt"
    torch.save(1, path)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        torch.save([torch.ones(2), lambda: 0], path)
    assert torch.load(path) == 1


# arrays in place of tensors ----------------------------------------------------------------------


def test_an_array_says_how_to_make_a_tensor_of_it():
    model = torch.nn.Linear(2, 1)
    array = np.ones((3, 2), np.float32)
    text = r"must be Tensor, not numpy\.ndarray: make a tensor of it with torch\.as_tensor"
    with pytest.raises(TypeError, match=text):
        model(array)
    text = "not numpy.ndarray: an array came into the function that jit of .* traces"
    with pytest.raises(TypeError, match=text):
        ft.jit(lambda x: model(x))(array)


@pytest.mark.parametrize("make", ["from_numpy", "as_tensor", "tensor", "asarray"])
def test_arrays_become_tensors_inside_a_jitted_step(make):
    model = torch.nn.Linear(2, 1)
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    out = ft.jit(lambda x: model(getattr(torch, make)(x)))(array)
    expected = model(torch.from_numpy(array))
    np.testing.assert_allclose(out.detach().numpy(), expected.detach().numpy(), rtol=1e-6)
    out.sum().backward()
    np.testing.assert_allclose(model.weight.grad.numpy(), [array.sum(0)], rtol=1e-6)


def test_arrays_are_converted_inside_a_jitted_step():
    kept = torch.zeros(2)
    made = ft.jit(lambda x: torch.tensor(x, dtype=torch.float64) + kept)(np.arange(2))
    assert made.dtype == np.float64


@pytest.mark.parametrize("transform", [ft.grad, ft.vmap])
def test_arrays_of_a_transform_around_the_step_are_refused(transform):
    with pytest.raises(ft.errors.UnsupportedOperationError, match="derivative would be lost"):
        transform(ft.jit(lambda x: (torch.tensor(x) * 2).sum()))(np.ones(2))


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda x: torch.relu(x[x > 0]), TypeError),
        (lambda x: torch.nn.functional.softmax(x[x > 0], 0), TypeError),
        (lambda x: x[x > 0].sum(), ft.errors.ConcretizationError),
    ],
)
def test_a_selection_by_values_under_jit_names_the_remedy(use, error):
    with pytest.raises(error, match=r"torch\.where.*mask\.sum\(\)"):
        ft.jit(use)(torch.tensor([1.0, -2.0]))


# prints ------------------------------------------------------------------------------------------


def test_a_dtype_is_printed_unless_it_is_the_default_of_its_namespace():
    x = torch.tensor([0.5, 2.0], requires_grad=True)
    assert repr(x * 2) == "tensor([1., 4.], grad_fn=<MulBackward0>)"
    assert repr(x.detach() * 2) == "tensor([1., 4.])"
    assert repr(x.detach().double() + 1) == "tensor([1.5, 3. ], dtype=torch.float64)"
    x.sum().backward()
    assert repr(x.grad) == "tensor([1., 1.])"
    assert repr(torch.autograd.grad(x.sum(), x)) == "(tensor([1., 1.]),)"
    assert repr(torch.stack([x.detach(), x.detach()])[0]) == "tensor([0.5, 2. ])"
    assert repr(torch.nn.functional.softmax(x[:1].detach(), 0)) == "tensor([1.])"
    assert repr(torch.func.grad(torch.sum)(x.detach())) == "tensor([1., 1.])"
    assert repr(ag.tensor([1.0, 2.0]) * 2) == "tensor([2., 4.])"
    assert repr(ag.tensor([1.0], dtype=np.float32) * 2) == "tensor([2.], dtype=float32)"
    assert repr(torch.ones(1, dtype=torch.int32)) == "tensor([1], dtype=torch.int32)"
    assert repr(torch.zeros(0, requires_grad=True)) == "tensor([], requires_grad=True)"
    assert repr(torch.zeros(0, 3)) == "tensor([], size=(0, 3))"
    assert repr(torch.zeros(0, dtype=torch.int64)) == "tensor([], dtype=torch.int64)"


def test_the_default_dtype_decides_what_is_printed():
    x, y = torch.ones(1), torch.ones(1, dtype=torch.float64)
    try:
        torch.set_default_dtype(torch.float64)
        assert repr([x, y]) == "[tensor([1.], dtype=torch.float32), tensor([1.])]"
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"precision": 2}, "tensor([0.33, 0.67, 1.  ])"),
        ({"precision": 2, "sci_mode": True}, "tensor([3.33e-01, 6.67e-01, 1.00e+00])"),
        ({"sci_mode": False}, "tensor([0.3333, 0.6667, 1.0000])"),
        ({"threshold": 2, "edgeitems": 1}, "tensor([0.3333, ..., 1.    ])"),
        ({"profile": "short"}, "tensor([0.33, 0.67, 1.  ])"),
    ],
)
def test_printoptions(options, text):
    try:
        torch.set_printoptions(**options)
        assert repr(torch.arange(1.0, 4.0) / 3) == text
    finally:
        torch.set_printoptions(profile="default")
    with pytest.raises(ValueError, match="profile must be one of"):
        torch.set_printoptions(profile="long")


_INF, _NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("values", "fixed", "scientific"),
    [
        ([1, -2.5, 300], "[  1.0000,  -2.5000, 300.0000]",
         "[ 1.0000e+00, -2.5000e+00,  3.0000e+02]"),
        ([1, 2e10], "[          1., 20000000000.]", "[1.0000e+00, 2.0000e+10]"),
        ([0.0, 0], "[0., 0.]", "[0., 0.]"),
        ([10, _NAN, -_INF], "[10., nan, -inf]", "[1.0000e+01,        nan,       -inf]"),
        ([1e-6, 0.5], "[0.0000, 0.5000]", "[1.0000e-06, 5.0000e-01]"),
        ([1 + 2j, -3.5 - 1e-5j], "[ 1.0000+2.0000j, -3.5000-0.0000j]",
         "[ 1.0000e+00+2.0000e+00j, -3.5000e+00-1.0000e-05j]"),
        ([1 - 2j, complex(_NAN, _INF)], "[1.-2.j, nan+infj]",
         "[1.0000e+00-2.0000e+00j,        nan+infj]"),
        ([], "[]", "[]"),
        ([[1, _NAN], [2, 5e3]], "[[   1.,   nan],\n        [   2., 5000.]]",
         "[[1.0000e+00,        nan],\n        [2.0000e+00, 5.0000e+03]]"),
    ],
)  # fmt: skip
def test_a_mode_of_exponents_holds_for_all_numbers_alike(values, fixed, scientific):
    try:
        for mode, text in ((False, fixed), (True, scientific)):
            torch.set_printoptions(sci_mode=mode)
            assert repr(torch.tensor(values)) == f"tensor({text})"
    finally:
        torch.set_printoptions(profile="default")


def test_lists_of_modules_print_neighbours_together():
    linear = torch.nn.Linear(2, 2)
    modules = torch.nn.ModuleList([linear, torch.nn.Linear(2, 2), torch.nn.ReLU(), linear])
    line = "Linear(in_features=2, out_features=2, bias=True)"
    assert repr(modules) == f"ModuleList(\n  (0-1): 2 x {line}\n  (2): ReLU()\n  (3): {line}\n)"
