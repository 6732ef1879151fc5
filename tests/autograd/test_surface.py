"""The imperative surface, clause by clause: where each is tested, and what is tested nowhere else.

``SURFACE`` is the table: a clause of the specification, its names, the tests that check it. The
tests of the table assert that the names exist and are used by those tests, and that the tests
exist. Below, in the order of the table, are the tests of what the other files do not cover.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans
import functrans.compat.torch as torch
from functrans.autograd import (
    Function,
    GradcheckError,
    Tensor,
    backward,
    from_numpy,
    grad,
    gradcheck,
    gradgradcheck,
    graph,
    no_grad,
    tensor,
)
from functrans.autograd.function import InplaceFunction, NestedIOFunction, traceable
from functrans.autograd.profiler import profile, record_function

HERE = Path(__file__).parent


class Clause(NamedTuple):
    """One clause of the surface.

    Attributes:
      text: what it promises.
      names: names by module (or ``Tensor``), separated by blanks.
      tests: tests by file, separated by blanks; ``*`` stands for all tests of the file.
    """

    text: str
    names: dict[str, str]
    tests: dict[str, str]


AUTOGRAD = "functrans.autograd"
TORCH = "functrans.compat.torch"

SURFACE = (
    Clause(
        "tensors and factories, requires_grad, seeds",
        {
            "functrans": "Tensor tensor from_numpy",
            AUTOGRAD: "Tensor tensor from_numpy",
            TORCH: "zeros ones full empty eye arange linspace rand randn randint manual_seed "
            "zeros_like ones_like full_like empty_like rand_like randn_like randint_like",
        },
        {
            "test_surface": "test_factories_take_requires_grad test_factories_like_another_tensor "
            "test_a_seed_repeats_numbers test_tensors_are_made_of_data "
            "test_where_names_of_torch_live",
            "test_operations_namespace": "test_factories test_each_namespace_has_its_default_dtype "
            "test_errors_are_those_of_torch test_generators_are_streams_of_their_own",
        },
    ),
    Clause(
        "names of torch for operations",
        {
            "Tensor": "add sub mul div pow neg exp log sin cos sqrt abs sum mean prod var std max "
            "min amax amin argmax cumsum norm matmul mm mv dot t transpose permute reshape "
            "flatten eq ne lt le gt ge sort topk gather index_select masked_select where clamp",
        },
        {
            "test_surface": "test_methods_of_tensors",
            "test_operations_namespace": "*",
            "test_operations_derivatives": "*",
            "test_operations_transformed": "*",
            "test_parity_operations": "*",
        },
    ),
    Clause(
        "in-place forms",
        {
            "Tensor": "add_ sub_ mul_ div_ pow_ sin_ exp_ neg_ clamp_ copy_ zero_ fill_ index_add_ "
            "scatter_add_ index_fill_ masked_fill_ index_copy_ scatter_ addcmul_ __setitem__",
        },
        {
            "test_surface": "test_in_place_forms_return_the_tensor_and_count",
            "test_operations_views": "test_the_in_place_form_has_the_same_value_and_derivatives "
            "test_a_write_of_a_wider_kind_is_refused_before_anything_changes",
        },
    ),
    Clause(
        "views",
        {
            "Tensor": "view view_as reshape expand transpose t narrow select split chunk unbind "
            "squeeze unsqueeze as_strided diagonal permute unfold",
        },
        {
            "test_surface": "test_views_have_their_base_and_its_memory",
            "test_operations_views": "test_a_view_shares_memory_and_version "
            "test_a_write_to_a_view_is_part_of_the_graph test_a_view_of_a_leaf_is_not_written_to "
            "test_several_views_are_results_of_one_node",
        },
    ),
    Clause(
        "conversions and what tensors say of themselves",
        {
            "Tensor": "clone detach detach_ contiguous to numpy tolist item data_ptr size stride "
            "is_floating_point is_complex element_size",
        },
        {
            "test_tensor_state": "test_what_tensors_say_of_themselves test_detach "
            "test_memory_is_shared_with_arrays_both_ways test_conversions_that_are_refused",
        },
    ),
    Clause(
        "attributes",
        {
            "Tensor": "grad requires_grad requires_grad_ is_leaf grad_fn output_nr _version data "
            "retain_grad retains_grad _base is_inference",
        },
        {
            "test_tensor_state": "test_attributes_of_leaves_results_views_and_constants "
            "test_attributes_that_cannot_be_set test_requires_grad_of_leaves test_retain_grad "
            "test_what_is_refused_changes_nothing test_data_is_replaced_without_notice "
            "test_deep_copies_are_leaves_of_their_own test_pickles_are_leaves",
            "test_grad_modes": "test_results_in_inference_mode_are_inference_tensors",
        },
    ),
    Clause(
        "backward and grad: arguments, errors before anything is changed",
        {AUTOGRAD: "backward grad", "Tensor": "backward"},
        {
            "test_surface": "test_every_argument_of_backward test_every_argument_of_grad "
            "test_errors_of_backward_and_grad_change_nothing",
            "test_backward_pass": "test_wrong_arguments_change_nothing test_a_batch_of_gradients "
            "test_zeros_in_place_of_none test_complex_and_real_do_not_mix "
            "test_only_what_leads_to_the_inputs_runs test_edges_stand_for_tensors",
            "test_tensors_and_backward": "*",
            "test_parity_graph": "*",
            "test_parity_surface": "*",
        },
    ),
    Clause(
        ".grad: accumulation and layout",
        {"Tensor": "grad"},
        {
            "test_backward_pass": "test_layout_of_the_gradient "
            "test_gradients_are_added_in_place_unless_recorded "
            "test_the_gradient_is_memory_of_its_own",
            "test_tensor_state": "test_gradients_that_the_user_sets test_gradients_that_do_not_fit",
        },
    ),
    Clause(
        "grad modes",
        {
            AUTOGRAD: "no_grad enable_grad set_grad_enabled inference_mode is_grad_enabled "
            "is_inference_mode_enabled set_multithreading_enabled is_multithreading_enabled",
        },
        {"test_grad_modes": "*"},
    ),
    Clause(
        "in-place correctness: versions, messages, writes that are refused",
        {"Tensor": "_version"},
        {
            "test_surface": "test_the_message_of_a_write_tells_both_operations",
            "test_tensors_and_backward": "test_a_saved_tensor_that_was_written_to_is_noticed "
            "test_writes_to_leaves_are_refused_before_anything_changes",
            "test_graph_saved": "test_a_write_to_what_a_derivative_needs_is_noticed "
            "test_versions_are_counted_per_storage",
            "test_imperative_hazards": "test_a_view_through_a_chain_of_views_counts_versions_of_one"
            "_storage",
            "test_graph_states": "*",
        },
    ),
    Clause(
        "Variable",
        {AUTOGRAD: "Variable variable"},
        {"test_tensor_state": "test_variables_are_tensors"},
    ),
    Clause(
        "hooks of tensors and nodes",
        {
            "Tensor": "register_hook register_post_accumulate_grad_hook",
            f"{AUTOGRAD}.graph": "register_multi_grad_hook RemovableHandle",
        },
        {
            "test_surface": "test_hooks_that_remove_hooks_while_they_run",
            "test_hooks_order": "*",
            "test_parity_graph": "test_the_same_as_torch",
        },
    ),
    Clause(
        "nodes, edges, saved tensors",
        {
            f"{AUTOGRAD}.graph": "Node saved_tensors_hooks save_on_cpu save_to_disk "
            "disable_saved_tensors_hooks allow_mutation_on_saved_tensors GradientEdge "
            "get_gradient_edge increment_version",
        },
        {
            "test_surface": "test_nodes_have_what_the_clause_names "
            "test_hooks_for_saved_tensors_around_functions_and_derivatives_of_derivatives",
            "test_graph_saved": "*",
            "test_backward_pass": "test_edges_of_several_results test_nodes_are_logged",
        },
    ),
    Clause(
        "the graph as a picture and a program",
        {f"{AUTOGRAD}.graph": "to_dot to_html"},
        {"test_graph_pictures": "*"},
    ),
    Clause(
        "Function",
        {
            AUTOGRAD: "Function",
            f"{AUTOGRAD}.function": "once_differentiable traceable InplaceFunction "
            "NestedIOFunction",
        },
        {
            "test_surface": "test_functions_of_old_kinds test_nested_functions_keep_structures "
            "test_marks_of_a_context",
            "test_function_rules": "*",
            "test_function_transforms": "*",
            "test_parity_function": "*",
            "test_imperative_hazards": "test_a_function_keeps_its_rule_under_transforms "
            "test_gradients_that_do_not_exist_are_none_or_zeros",
        },
    ),
    Clause(
        "forward_ad",
        {
            f"{AUTOGRAD}.forward_ad": "dual_level enter_dual_level exit_dual_level make_dual "
            "unpack_dual UnpackedDualTensor",
        },
        {"test_forward_ad": "*", "test_parity_function": "*"},
    ),
    Clause(
        "gradcheck",
        {AUTOGRAD: "gradcheck gradgradcheck GradcheckError"},
        {
            "test_surface": "test_every_argument_of_gradcheck test_every_argument_of_gradgradcheck",
            "test_gradcheck": "*",
        },
    ),
    Clause(
        "anomaly mode",
        {AUTOGRAD: "detect_anomaly set_detect_anomaly"},
        {
            "test_backward_pass": "test_nan_names_the_node_and_shows_where_it_was_recorded "
            "test_a_failure_in_a_derivative_shows_the_operation_that_was_differentiated "
            "test_an_operation_from_outside_has_no_stack test_the_mode_is_restored",
            "test_func_anomaly": "test_nan_in_a_gradient_raises_within_every_transform",
        },
    ),
    Clause(
        "profiler",
        {
            f"{AUTOGRAD}.profiler": "profile record_function emit_nvtx emit_itt load_nvprof",
        },
        {
            "test_surface": "test_every_option_of_the_profiler",
            "test_profiler": "*",
        },
    ),
    Clause(
        "checkpoints",
        {f"{TORCH}.utils.checkpoint": "checkpoint checkpoint_sequential"},
        {"test_imperative_checkpoint": "*"},
    ),
    Clause(
        "func",
        {
            f"{AUTOGRAD}.func": "grad vjp jvp jacrev jacfwd hessian vmap linearize functional_call",
        },
        {"test_func": "*"},
    ),
    Clause(
        "nn and optim",
        {
            f"{TORCH}.nn": "Module Parameter Linear Sequential",
            f"{TORCH}.optim": "SGD Adam LBFGS",
        },
        {
            "test_nn_modules": "*",
            "test_nn_functional": "*",
            "test_optim": "*",
            "test_parity_nn": "*",
        },
    ),
    Clause(
        "steps under jit",
        {"functrans": "jit"},
        {"test_staged": "*"},
    ),
)


# the table ---------------------------------------------------------------------------------------


@cache
def names_of_tests(name: str) -> frozenset[str]:
    """Names of the tests of a file, also those that a state machine gives."""
    tree = ast.parse((HERE / f"{name}.py").read_text())
    named = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    named += [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    return frozenset(n for n in named if n.lower().startswith("test"))


def owner_of(module: str) -> Any:
    return Tensor if module == "Tensor" else import_module(module)


@pytest.mark.parametrize("clause", SURFACE, ids=lambda clause: clause.text)
def test_every_test_of_a_clause_exists(clause: Clause) -> None:
    for file, names in clause.tests.items():
        missing = set(names.split()) - names_of_tests(file) - {"*"}
        assert not missing, file
        assert names_of_tests(file)


@pytest.mark.parametrize("clause", SURFACE, ids=lambda clause: clause.text)
def test_every_name_of_a_clause_exists_and_is_used_by_its_tests(clause: Clause) -> None:
    table = (HERE / "test_surface.py").read_text().partition("# the table ---")
    texts = [
        table[2] if file == "test_surface" else (HERE / f"{file}.py").read_text()
        for file in clause.tests
    ]
    for module, names in clause.names.items():
        for name in names.split():
            assert hasattr(owner_of(module), name), f"{module}.{name}"
            assert any(re.search(rf"\b{name}\b", text) for text in texts), name


def leaf(values: Any = (1.0, 2.0)) -> Any:
    return tensor(np.array(values), requires_grad=True)


# tensors and factories ---------------------------------------------------------------------------


def test_where_names_of_torch_live() -> None:
    """Tensors are at the top; torch's factories only in the namespace that is torch's."""
    assert functrans.tensor is tensor
    assert functrans.from_numpy is from_numpy
    assert functrans.Tensor is Tensor
    for name in ("zeros", "manual_seed", "randn", "no_grad"):
        assert not hasattr(functrans, name)
        assert hasattr(torch, name)
    assert tensor([1.0]).dtype == np.float64
    assert torch.tensor([1.0]).dtype == torch.zeros(1).dtype == np.float32


def test_tensors_are_made_of_data() -> None:
    for data in ([1.0, 2.0], (1, 2), np.array([1.0, 2.0]), [tensor(1.0), np.float64(2.0)], 1.0):
        x = tensor(data, dtype=np.float32, requires_grad=True)
        assert (x.dtype, x.requires_grad, x.is_leaf) == (np.float32, True, True)
        assert_array_equal(x.detach().numpy(), np.array(data, dtype=object).astype(np.float32))
    for wrong, message in (([[1.0], [1.0, 2.0]], "sequence of length 1"), ("text", "str")):
        with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
            tensor(wrong)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda **k: torch.zeros(2, 3, **k), np.zeros((2, 3))),
        (lambda **k: torch.ones((2, 3), **k), np.ones((2, 3))),
        (lambda **k: torch.full((2,), 7.0, **k), np.full(2, 7.0)),
        (lambda **k: torch.empty(2, 0, **k), np.zeros((2, 0))),
        (lambda **k: torch.eye(2, 3, **k), np.eye(2, 3)),
        (lambda **k: torch.arange(1.0, 4.0, 0.5, **k), np.arange(1, 4, 0.5)),
        (lambda **k: torch.linspace(0, 1, 5, **k), np.linspace(0, 1, 5)),
        (lambda **k: torch.rand(2, 3, **k), None),
        (lambda **k: torch.randn(2, 3, **k), None),
        (lambda **k: torch.randint(2, 9, (2, 3), **k), None),
    ],
    ids=["zeros", "ones", "full", "empty", "eye", "arange", "linspace", "rand", "randn", "randint"],
)
def test_factories_take_requires_grad(make: Any, expected: Any) -> None:
    x = make(dtype=torch.float64, requires_grad=True)
    assert (x.dtype, x.requires_grad, x.is_leaf) == (np.float64, True, True)
    if expected is not None:
        assert_allclose(x.detach().numpy(), expected)
    assert not make(dtype=torch.float64).requires_grad
    with pytest.raises(RuntimeError, match=r"can require gradients|not implemented for 'Long'"):
        make(dtype=torch.int64, requires_grad=True)


@pytest.mark.parametrize(
    ("make", "low", "high"),
    [
        (torch.zeros_like, 0, 0),
        (torch.ones_like, 1, 1),
        (lambda x, **k: torch.full_like(x, 3.0, **k), 3, 3),
        (torch.empty_like, None, None),
        (torch.rand_like, 0, 1),
        (torch.randn_like, -9, 9),
        (lambda x, **k: torch.randint_like(x, 2, 5, **k), 2, 4),
    ],
)
def test_factories_like_another_tensor(make: Any, low: Any, high: Any) -> None:
    x = torch.zeros(3, 2, dtype=torch.float64)
    y = make(x, requires_grad=True)
    assert (y.shape, y.dtype, y.requires_grad, y.is_leaf) == ((3, 2), np.float64, True, True)
    assert make(x, dtype=torch.float32).dtype == np.float32
    if low is not None:
        assert low <= y.detach().numpy().min() <= y.detach().numpy().max() <= high


def test_a_seed_repeats_numbers() -> None:
    torch.manual_seed(3)
    first = [torch.rand(3), torch.randn(2), torch.randint(0, 9, (4,))]
    torch.manual_seed(3)
    again = [torch.rand(3), torch.randn(2), torch.randint(0, 9, (4,))]
    for a, b in zip(first, again, strict=True):
        assert_array_equal(a.numpy(), b.numpy())
    torch.manual_seed(4)
    assert not np.array_equal(torch.rand(3).numpy(), first[0].numpy())


# operations --------------------------------------------------------------------------------------

A = np.array([[0.3, -0.8, 1.7], [2.5, 0.9, -1.1]])
P = np.abs(A) + 0.1

METHODS: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "add": (lambda x: x.add(x, alpha=2), lambda: 3 * A),
    "sub": (lambda x: x.sub(1.0), lambda: A - 1),
    "mul": (lambda x: x.mul(x), lambda: A * A),
    "div": (lambda x: x.div(2.0, rounding_mode="floor"), lambda: A // 2),
    "pow": (lambda x: x.pow(3), lambda: A**3),
    "neg": (lambda x: x.neg(), lambda: -A),
    "exp": (lambda x: x.exp(), lambda: np.exp(A)),
    "log": (lambda x: x.abs().log(), lambda: np.log(np.abs(A))),
    "sin": (lambda x: x.sin(), lambda: np.sin(A)),
    "cos": (lambda x: x.cos(), lambda: np.cos(A)),
    "sqrt": (lambda x: x.abs().sqrt(), lambda: np.sqrt(np.abs(A))),
    "abs": (lambda x: x.abs(), lambda: np.abs(A)),
    "sum": (lambda x: x.sum(1, keepdim=True), lambda: A.sum(1, keepdims=True)),
    "mean": (lambda x: x.mean(dim=0), lambda: A.mean(0)),
    "prod": (lambda x: x.prod(1), lambda: A.prod(1)),
    "var": (lambda x: x.var(1), lambda: A.var(1, ddof=1)),
    "std": (lambda x: x.std(unbiased=False), lambda: A.std()),
    "max": (lambda x: x.max(1).values, lambda: A.max(1)),
    "min": (lambda x: x.min(), lambda: A.min()),
    "amax": (lambda x: x.amax((0, 1)), lambda: A.max()),
    "amin": (lambda x: x.amin(0, keepdim=True), lambda: A.min(0, keepdims=True)),
    "argmax": (lambda x: x.argmax(1), lambda: A.argmax(1)),
    "cumsum": (lambda x: x.cumsum(1), lambda: A.cumsum(1)),
    "norm": (lambda x: x.norm(dim=1), lambda: np.linalg.norm(A, axis=1)),
    "matmul": (lambda x: x.matmul(x.t()), lambda: A @ A.T),
    "mm": (lambda x: x.t().mm(x), lambda: A.T @ A),
    "mv": (lambda x: x.mv(x[0]), lambda: A @ A[0]),
    "dot": (lambda x: x[0].dot(x[1]), lambda: A[0] @ A[1]),
    "transpose": (lambda x: x.transpose(0, 1), lambda: A.T),
    "permute": (lambda x: x.permute(1, 0), lambda: A.T),
    "reshape": (lambda x: x.reshape(3, -1), lambda: A.reshape(3, 2)),
    "flatten": (lambda x: x.flatten(), lambda: A.ravel()),
    "eq": (lambda x: x.eq(x), lambda: np.ones((2, 3), bool)),
    "ne": (lambda x: x.ne(0.3), lambda: A != 0.3),
    "lt": (lambda x: x.lt(0.0), lambda: A < 0),
    "le": (lambda x: x.le(0.3), lambda: A <= 0.3),
    "gt": (lambda x: x.gt(0.0), lambda: A > 0),
    "ge": (lambda x: x.ge(2.5), lambda: A >= 2.5),
    "sort": (lambda x: x.sort(1, descending=True)[0], lambda: -np.sort(-A, 1)),
    "topk": (lambda x: x.topk(2, 1)[0], lambda: -np.sort(-A, 1)[:, :2]),
    "gather": (lambda x: x.gather(1, torch.tensor([[2], [0]])), lambda: [[1.7], [2.5]]),
    "index_select": (lambda x: x.index_select(1, torch.tensor([2, 0])), lambda: A[:, [2, 0]]),
    "masked_select": (lambda x: x.masked_select(x > 0), lambda: A[A > 0]),
    "where": (lambda x: x.where(x > 0, 0.0), lambda: np.where(A > 0, A, 0)),
    "clamp": (lambda x: x.clamp(-0.5, 1.0), lambda: A.clip(-0.5, 1)),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_tensors(name: str) -> None:
    """The value, and that the gradient is that of central differences."""
    method, expected = METHODS[name]
    x = leaf(A)
    y = method(x)
    assert_allclose(y.detach().numpy(), expected(), rtol=1e-12)
    assert_array_equal(x.detach().numpy(), A)
    if not y.requires_grad:
        assert y.dtype.kind in "ib"
        return
    direction, seed = np.cos(np.arange(6.0)).reshape(2, 3), np.sin(1 + np.arange(float(y.numel())))
    (g,) = grad(y, x, tensor(seed.reshape(y.shape)))
    step = 1e-6 * direction
    up, down = (method(tensor(A + s)).numpy().ravel() @ seed for s in (step, -step))
    assert_allclose((g.numpy() * direction).sum(), (up - down) / 2e-6, rtol=1e-6, atol=1e-8)


IN_PLACE: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "add_": (lambda x: x.add_(1.0), lambda: P + 1),
    "sub_": (lambda x: x.sub_(1.0, alpha=3), lambda: P - 3),
    "mul_": (lambda x: x.mul_(tensor(A)), lambda: P * A),
    "div_": (lambda x: x.div_(2.0), lambda: P / 2),
    "pow_": (lambda x: x.pow_(2), lambda: P**2),
    "sin_": (lambda x: x.sin_(), lambda: np.sin(P)),
    "exp_": (lambda x: x.exp_(), lambda: np.exp(P)),
    "neg_": (lambda x: x.neg_(), lambda: -P),
    "clamp_": (lambda x: x.clamp_(max=1.0), lambda: P.clip(None, 1)),
    "copy_": (lambda x: x.copy_(tensor(A)), lambda: A),
    "zero_": (lambda x: x.zero_(), lambda: 0 * P),
    "fill_": (lambda x: x.fill_(3.0), lambda: 0 * P + 3),
    "addcmul_": (lambda x: x.addcmul_(tensor(A), tensor(A), value=2), lambda: P + 2 * A * A),
    "__setitem__": (lambda x: (x.__setitem__(0, 5.0), x)[1], lambda: [[5.0] * 3, P[1]]),
    "index_add_": (
        lambda x: x.index_add_(0, torch.tensor([1]), tensor(A[:1]), alpha=2),
        lambda: [P[0], P[1] + 2 * A[0]],
    ),
    "index_fill_": (lambda x: x.index_fill_(0, torch.tensor([1]), 4.0), lambda: [P[0], [4.0] * 3]),
    "index_copy_": (
        lambda x: x.index_copy_(0, torch.tensor([1]), tensor(A[:1])),
        lambda: [P[0], A[0]],
    ),
    "masked_fill_": (lambda x: x.masked_fill_(x > 1, 0.0), lambda: np.where(P > 1, 0, P)),
    "scatter_": (
        lambda x: x.scatter_(0, torch.tensor([[1, 1, 1]]), tensor(A[:1])),
        lambda: [P[0], A[0]],
    ),
    "scatter_add_": (
        lambda x: x.scatter_add_(0, torch.tensor([[1, 1, 1]]), tensor(A[:1])),
        lambda: [P[0], P[1] + A[0]],
    ),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_forms_return_the_tensor_and_count(name: str) -> None:
    write, expected = IN_PLACE[name]
    x = tensor(P)
    memory = x.numpy()
    assert write(x) is x
    assert x._version == 1
    assert_allclose(memory, np.array(expected()), rtol=1e-12)
    y = leaf(P)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an"):
        write(y)
    assert_array_equal(y.detach().numpy(), P)
    assert y._version == 0
    z = y * 1
    write(z)
    assert z._version == 1
    z.sum().backward()
    assert y.grad.shape == P.shape


VIEWS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "view": (lambda x: x.view(3, 2), lambda a: a.reshape(3, 2)),
    "view_as": (lambda x: x.view_as(tensor(np.zeros((3, 2)))), lambda a: a.reshape(3, 2)),
    "reshape": (lambda x: x.reshape(6), lambda a: a.reshape(6)),
    "expand": (lambda x: x.expand(4, 2, 3), lambda a: np.broadcast_to(a, (4, 2, 3))),
    "transpose": (lambda x: x.transpose(-1, 0), lambda a: a.T),
    "t": (lambda x: x.t(), lambda a: a.T),
    "narrow": (lambda x: x.narrow(1, 1, 2), lambda a: a[:, 1:]),
    "select": (lambda x: x.select(1, -1), lambda a: a[:, -1]),
    "squeeze": (lambda x: x[:1].squeeze(0), lambda a: a[0]),
    "unsqueeze": (lambda x: x.unsqueeze(-1), lambda a: a[..., None]),
    "as_strided": (
        lambda x: x.as_strided((2, 2), (1, 2), 1),
        lambda a: a.ravel()[[[1, 3], [2, 4]]],
    ),
    "diagonal": (lambda x: x.diagonal(1), lambda a: np.diagonal(a, 1)),
    "split": (lambda x: x.split([1, 2], 1)[1], lambda a: a[:, 1:]),
    "chunk": (lambda x: x.chunk(2, 0)[1], lambda a: a[1:]),
    "unbind": (lambda x: x.unbind(1)[2], lambda a: a[:, 2]),
    "permute": (lambda x: x.permute(1, 0), lambda a: a.T),
    "unfold": (lambda x: x.unfold(1, 2, 1), lambda a: np.stack([a[:, :2], a[:, 1:]], 1)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_have_their_base_and_its_memory(name: str) -> None:
    make, expected = VIEWS[name]
    x = leaf(A)
    part = make(x)
    assert part._base is x
    assert np.shares_memory(part.detach().numpy(), x.detach().numpy())
    assert_array_equal(part.detach().numpy(), expected(A))
    with no_grad():
        x.mul_(2)
    assert_array_equal(part.detach().numpy(), expected(2 * A))
    assert part._version == x._version == 1
    counts = np.zeros(6)
    for i in expected(np.arange(6).reshape(2, 3)).ravel():
        counts[i] += 1
    part.sum().backward()
    assert_array_equal(x.grad.numpy().ravel(), counts)


# backward and grad -------------------------------------------------------------------------------


def test_every_argument_of_backward() -> None:
    x, w = leaf(), leaf((3.0, 4.0))
    y = x * w
    backward(
        [y, y.sum()], [tensor([1.0, 0.0]), None], retain_graph=True, create_graph=True, inputs=[x]
    )
    assert_array_equal(x.grad.detach().numpy(), [6, 4])
    assert w.grad is None
    assert x.grad.requires_grad
    (h,) = grad(x.grad.sum(), w, retain_graph=True)
    assert_array_equal(h.numpy(), [2, 1])
    x.grad = None
    y.backward(gradient=tensor([1.0, 1.0]), retain_graph=False, create_graph=False, inputs=(w, x))
    assert_array_equal(w.grad.numpy(), [1, 2])
    with pytest.raises(RuntimeError, match="a second time"):
        y.sum().backward()


def test_every_argument_of_grad() -> None:
    x, w, unused = leaf(), leaf((3.0, 4.0)), leaf()
    y = x * w
    first, second, none = grad(
        outputs=[y, y.sum()],
        inputs=(x, w, unused),
        grad_outputs=(tensor([1.0, 0.0]), None),
        retain_graph=True,
        create_graph=True,
        allow_unused=True,
    )
    assert_array_equal(first.detach().numpy(), [6, 4])
    assert_array_equal(second.detach().numpy(), [2, 2])
    assert none is None
    assert first.requires_grad
    (batch, zeros) = grad(
        y, [x, unused], tensor(np.eye(2)), is_grads_batched=True, materialize_grads=True
    )
    assert_array_equal(batch.numpy(), np.diag([3.0, 4.0]))
    assert_array_equal(zeros.numpy(), np.zeros(zeros.shape))
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        grad((x * 2).sum(), x, only_inputs=False)
    assert x.grad is None


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x, y: y.backward(), RuntimeError, "only for scalar outputs"),
        (lambda x, y: backward([]), None, ""),
        (lambda x, y: backward(y, 5), TypeError, "not iterable"),
        (lambda x, y: backward(y, [5]), TypeError, "can be either Tensors or None, but got int"),
        (lambda x, y: backward([5]), RuntimeError, "is no tensor"),
        (lambda x, y: backward(y.detach().sum()), RuntimeError, "does not require grad and does"),
        (lambda x, y: backward(y, tensor([1j, 1j])), RuntimeError, "required to have the same dt"),
        (lambda x, y: backward(y, tensor([[1.0, 2.0]])), RuntimeError, "Mismatch in shape"),
        (lambda x, y: backward([y, y], [None]), RuntimeError, "got 2 tensors and 1 gradients"),
        (lambda x, y: backward(y.sum(), inputs=()), RuntimeError, "cannot be empty"),
        (lambda x, y: backward(y.sum(), inputs=[5]), RuntimeError, "Tensors or GradientEdges"),
        (lambda x, y: backward(y.sum(), inputs=[y.detach()]), RuntimeError, "can't retain_grad"),
        (lambda x, y: grad(y.sum(), x, is_grads_batched=True), ValueError, "leading batch axis"),
        (
            lambda x, y: grad(
                [y, y], x, [tensor(np.eye(2)), tensor(np.ones((3, 2)))], is_grads_batched=True
            ),
            ValueError,
            r"same size in the mapped dimension, got sizes \[2, 3\]",
        ),
        (
            lambda x, y: grad(y, x, tensor([1.0]), is_grads_batched=True),
            RuntimeError,
            "we interpret the first dimension of each grad_output as the batch",
        ),
        (lambda x, y: grad(y.sum(), [x, leaf()]), RuntimeError, "at index 1 appears to not have"),
        (lambda x, y: grad(y.sum(), y.detach()), RuntimeError, "does not require grad"),
        (
            lambda x, y: grad(y.sum(), x, allow_unused=False, materialize_grads=True),
            ValueError,
            "Expected allow_unused to be True or not passed when materialize_grads=True",
        ),
        (
            lambda x, y: grad(y, graph.GradientEdge(y.grad_fn, 7)),
            IndexError,
            "there is none of number 7",
        ),
    ],
)
def test_errors_of_backward_and_grad_change_nothing(call: Any, error: Any, message: str) -> None:
    x = leaf()
    y = x * x
    ran: list[int] = []
    if error is None:
        call(x, y)
    else:
        with y.register_hook(lambda g: ran.append(1)), pytest.raises(error, match=message):
            call(x, y)
    assert x.grad is None
    assert not y.retains_grad
    if "appears to not have" not in message:  # that is known only when the pass has run
        assert not ran
        y.sum().backward()
        assert_array_equal(x.grad.numpy(), [2, 4])


# in-place correctness ----------------------------------------------------------------------------


def test_the_message_of_a_write_tells_both_operations() -> None:
    x = leaf([[1.0, 2.0, 3.0]])
    y = x.exp()
    z = (y * y).sum()
    view = y[0]
    view.mul_(2)
    y.add_(1)
    with pytest.raises(RuntimeError) as caught:
        z.backward()
    text = str(caught.value)
    assert "one of the variables needed for gradient computation has been modified by" in text
    assert "[torch.DoubleTensor [1, 3]]" in text
    assert "is at version 2; expected version 0 instead" in text
    assert "output 0 of ExpBackward0" in text
    assert "MulBackward0" in text
    assert "add_" in text
    assert text.count("test_surface.py") >= 2  # the line of the saving and of the writing operation
    assert x.grad is None


# hooks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tensor", "pre", "post", "accumulate", "leaf"])
def test_hooks_that_remove_hooks_while_they_run(kind: str) -> None:
    """A hook that is removed before its turn does not run; one that is added does in the next."""
    x = leaf()
    y = x * 2
    add = {
        "tensor": y.register_hook,
        "pre": y.grad_fn.register_prehook,
        "post": y.grad_fn.register_hook,
        "accumulate": x.register_post_accumulate_grad_hook,
        "leaf": x.register_hook,
    }[kind]
    log: list[str] = []
    handles: list[Any] = []

    def first(*_: Any) -> None:
        log.append("first")
        handles[1].remove()
        if len(handles) < 4:
            handles.append(add(lambda *_: log.append("late")))

    handles.append(add(first))
    handles.append(add(lambda *_: log.append("removed")))
    handles.append(add(lambda *_: log.append("last")))
    for _ in range(2):
        y.sum().backward(retain_graph=True)
        log.append("|")
    assert "late" not in log[: log.index("|")] or kind == "accumulate"
    assert log.count("first") == log.count("last") == 2
    assert log[-2] == "late"
    # A hook that was already due when it was removed may run once, as in torch.
    assert log.count("removed") <= 1
    assert "removed" not in log[log.index("|") :]


# nodes and saved tensors -------------------------------------------------------------------------


def test_nodes_have_what_the_clause_names() -> None:
    x, w = leaf(), leaf((3.0, 4.0))
    y = x * w
    node = y.grad_fn
    assert isinstance(node, graph.Node)
    assert node.name() == "MulBackward0"
    assert node.metadata == {}
    node.metadata["key"] = 1
    assert y.grad_fn.metadata == {"key": 1}
    leaf_node, index = node.next_functions[0]
    assert (leaf_node.name(), index) == ("AccumulateGrad", 0)
    assert leaf_node.variable is x
    assert node._saved_self is x
    assert node._raw_saved_other is not None
    log: list[Any] = []
    pre = node.register_prehook(lambda g: log.append([t.tolist() for t in g]))
    post = node.register_hook(
        lambda gi, go: log.append([[t.tolist() for t in g] for g in (gi, go)])
    )
    assert isinstance(pre, graph.RemovableHandle)
    y.backward(tensor([1.0, 10.0]), retain_graph=True)
    assert log == [[[1.0, 10.0]], [[[3.0, 40.0], [1.0, 20.0]], [[1.0, 10.0]]]]
    with pre, post:
        pass
    y.backward(tensor([1.0, 10.0]))
    assert len(log) == 2


class Kept(Function):
    """``x * x`` that saves an argument and an intermediate tensor."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, x * 2)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, _ = ctx.saved_tensors
        _, double = ctx.saved_tensors  # unpacked again
        return g * (double + 0 * x)


def test_hooks_for_saved_tensors_around_functions_and_derivatives_of_derivatives() -> None:
    log: list[str] = []

    def hooks(name: str) -> Any:
        return graph.saved_tensors_hooks(
            lambda t: (log.append(f"pack {name}"), t)[1],
            lambda t: (log.append(f"unpack {name}"), t)[1],
        )

    x = leaf()
    with hooks("outer"):
        y = x.exp()
        with hooks("inner"):
            z = y * Kept.apply(x)
    assert log == ["pack outer"] + ["pack inner"] * 4
    log.clear()
    (g,) = grad(z.sum(), x, create_graph=True)
    assert set(log) == {"unpack outer", "unpack inner"}
    log.clear()
    at = np.array([1.0, 2.0])
    assert_allclose(g.detach().numpy(), np.exp(at) * (at * at + 2 * at))
    z = (x.exp() * x * x).sum()
    with hooks("both"):
        (g,) = grad((x.exp() * x * x).sum(), x, create_graph=True)
        assert "pack both" in log
    (h,) = grad(g.sum(), x)
    assert_allclose(h.numpy(), np.exp(at) * (at * at + 4 * at + 2))


# Function ----------------------------------------------------------------------------------------


class Written(InplaceFunction):
    """Doubles its argument, in place if asked."""

    @staticmethod
    def forward(ctx: Any, x: Any, inplace: bool) -> Any:
        if inplace:
            ctx.mark_dirty(x)
            return x.mul_(2)
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2, None


@traceable
class Marked(Function):
    """Results of all kinds."""

    seen: list[Any] = []  # noqa: RUF012  # what contexts said

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, factor: float) -> Any:
        Marked.seen.append(ctx.needs_input_grad)
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        ctx.factor = factor
        index = (x > 1).to(np.int64)
        constant = x * 0
        ctx.mark_non_differentiable(index, constant)
        ctx.set_materialize_grads(False)
        with pytest.warns(FutureWarning, match="mark_shared_storage` is deprecated"):
            ctx.mark_shared_storage((x, index))
        return x * w * factor, index, constant

    @staticmethod
    def backward(ctx: Any, g: Any, *others: Any) -> Any:
        Marked.seen.append(ctx.needs_input_grad)
        assert others == (None, None)
        (x,) = ctx.saved_tensors
        return None, g * x * ctx.factor, None


def test_marks_of_a_context() -> None:
    assert Marked.is_traceable
    Marked.seen.clear()
    x, w = tensor([1.0, 2.0]), leaf((3.0, 4.0))
    y, index, constant = Marked.apply(x, w, 5.0)
    assert [t.requires_grad for t in (y, index, constant)] == [True, False, False]
    y.sum().backward()
    assert_array_equal(w.grad.numpy(), [5, 10])
    assert Marked.seen == [(False, True, False)] * 2


def test_functions_of_old_kinds() -> None:
    x = leaf()
    y = x * 1
    assert Written.apply(y, True) is y
    assert Written.apply(y, False) is not y
    Written.apply(y, False).sum().backward()
    assert_array_equal(x.grad.numpy(), [4, 4])
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad has been used"):
        Written.apply(x, True)
    multiple = (leaf() * 1).unbind()[0]
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        Written.apply(multiple, True)
    base = leaf()
    with no_grad():
        view = base[:1]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being"):
        Written.apply(view, True)


class Tree(NestedIOFunction):
    """Nested arguments and results."""

    @staticmethod
    def forward_extended(ctx: Any, items: Any, table: Any) -> Any:
        ctx.save_for_backward(items[0])
        return [items[0] * 2, (items[1][0] * 3, {"a": table["k"] * 5})]

    @staticmethod
    def backward_extended(ctx: Any, gradients: Any) -> Any:
        first, (second, third) = gradients
        return [first * 2, (second * 3,)], {"k": third["a"] * 5}


def test_nested_functions_keep_structures() -> None:
    x, y, z = leaf(), leaf(), leaf()
    first, (second, third) = Tree.apply([x, (y,)], {"k": z})
    assert set(third) == {"a"}
    (first + second * 10 + third["a"] * 100).sum().backward()
    for t, expected in ((x, 2.0), (y, 30.0), (z, 500.0)):
        assert_array_equal(t.grad.numpy(), [expected] * 2)
    with pytest.raises(NotImplementedError):
        type("Nothing", (NestedIOFunction,), {}).apply(x)


# gradcheck ---------------------------------------------------------------------------------------


class Wrong(Function):
    """``x * x`` whose backward forgets a factor; ``jvp`` is right."""

    factor = 1.0
    narrow = False

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x * Wrong.factor

    @staticmethod
    def jvp(ctx: Any, x_dot: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * x_dot


class Undefined(Function):
    """``x * 2`` whose backward makes ones of a gradient that does not exist."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        if a is None and b is None:
            return tensor([1.0, 1.0])
        return b * 3 if a is None else a * 2 if b is None else a * 2 + b * 3


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ({"atol": 10.0}, {}),
        ({"rtol": 10.0, "atol": 10.0}, {"rtol": 1e-3, "atol": 1e-3}),
        ({"check_forward_ad": True, "check_backward_ad": False}, {"check_forward_ad": True}),
        ({"eps": 1e-3, "atol": 10.0, "fast_mode": True}, {"eps": 1e-3, "fast_mode": True}),
        ({"atol": 10.0, "check_batched_grad": True}, {"check_batched_grad": True}),
        (
            {"check_forward_ad": True, "check_backward_ad": False,
             "check_batched_forward_grad": True},
            {"check_forward_ad": True, "check_batched_forward_grad": True},
        ),
        ({"atol": 10.0, "check_grad_dtypes": True}, {"check_grad_dtypes": True}),
        ({"atol": 10.0, "nondet_tol": 1.0}, {"nondet_tol": 1.0}),
        ({"atol": 10.0, "masked": False}, {"masked": False}),
    ],
)  # fmt: skip
def test_every_argument_of_gradcheck(right: dict[str, Any], wrong: dict[str, Any]) -> None:
    x = leaf()
    assert gradcheck(Wrong.apply, (x,), **right)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(Wrong.apply, (x,), **wrong)
    assert gradcheck(Wrong.apply, (x,), raise_exception=False, **wrong) is False


def test_gradients_that_are_undefined_are_checked_unless_it_is_declined() -> None:
    assert gradcheck(Undefined.apply, leaf(), check_undefined_grad=False)
    with pytest.raises(GradcheckError, match="undefined or zero when all output grads"):
        gradcheck(Undefined.apply, leaf(), check_undefined_grad=True)


@pytest.mark.parametrize(
    "options",
    [
        {"eps": 1e-5, "atol": 1e-4, "rtol": 1e-4},
        {"gen_non_contig_grad_outputs": True},
        {"nondet_tol": 1e-9, "check_undefined_grad": False},
        {"check_grad_dtypes": True, "check_batched_grad": True},
        {"check_fwd_over_rev": True, "check_rev_over_rev": False},
        {"fast_mode": True},
        {"masked": False},
    ],
)
def test_every_argument_of_gradgradcheck(options: dict[str, Any]) -> None:
    def cube(x: Any) -> Any:
        return x**3

    seed = tensor([1.0, -2.0], requires_grad=True)
    assert gradgradcheck(cube, leaf(), **options)
    assert gradgradcheck(cube, (leaf(),), (seed,), **options)

    class Half(Function):
        """A backward whose own derivative is wrong."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * (x + x.detach())

    if options.get("check_rev_over_rev", True):
        with pytest.raises(GradcheckError, match="mismatch"):
            gradgradcheck(Half.apply, leaf(), **options)
        assert gradgradcheck(Half.apply, leaf(), raise_exception=False, **options) is False


# profiler ----------------------------------------------------------------------------------------


def test_every_option_of_the_profiler(tmp_path: Path) -> None:
    with profile(
        enabled=True, record_shapes=True, with_flops=True, profile_memory=True, with_stack=True,
        with_modules=True, use_cuda=False,
    ) as prof:  # fmt: skip
        with record_function("range", "with a text"):
            x = leaf(np.ones((4, 5)))
            loss = (x @ x.t()).exp().sum()
        loss.backward()
    names = {event.name for event in prof.function_events}
    assert {"range", "aten::mm", "aten::exp", "ExpBackward0"} <= names
    for key in ("cpu_time", "cpu_time_total", "self_cpu_time_total", "count", "cpu_memory_usage",
                "self_cpu_memory_usage"):  # fmt: skip
        averages = prof.key_averages(group_by_input_shape=True, group_by_stack_n=2)
        text = averages.table(sort_by=key, row_limit=3, header="HEAD")
        assert "HEAD" in text
        assert text.count("\n") < prof.table(row_limit=-1).count("\n") + 3
    total = prof.total_average()
    assert total.count == len(prof.function_events)
    assert total.self_cpu_time_total == pytest.approx(prof.self_cpu_time_total)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    prof.export_stacks(str(tmp_path / "stacks.txt"), "self_cpu_time_total")
    assert (tmp_path / "trace.json").stat().st_size > 100
