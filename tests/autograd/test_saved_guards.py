"""What a derivative of any order reads is guarded: the right number or the version error."""

import re
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
import functrans.compat.torch as torch
import functrans.compat.torch.nn.functional as F  # noqa: N812  # the name that torch users give
import functrans.numpy as fnp
from cases import each
from functrans.autograd import Tensor, from_numpy, grad, no_grad, tensor
from functrans.autograd.graph import saved_tensors_hooks
from samples.torch_operations import EXPRESSIONS, OPERANDS

FUNCTIONS = """
F.silu(A)
F.gelu(A)
F.gelu(A,approximate='tanh')
F.mish(A)
F.celu(A)
F.softplus(A)
F.softsign(A)
F.tanhshrink(A)
F.hardswish(A)
F.logsigmoid(A)
F.glu(A)
F.softmax(A,1)
F.log_softmax(A,1)
F.normalize(A)
F.layer_norm(A,(4,),V,W)
F.rms_norm(A,(4,),V)
F.group_norm(A,2)
F.batch_norm(A,None,None,V,W,training=True)
F.linear(A,B,V[:3])
F.conv1d(N3,M3.permute(0,2,1)[:,:,:2])
F.mse_loss(A,B)
F.smooth_l1_loss(A,B)
F.huber_loss(A,B)
F.binary_cross_entropy_with_logits(A,P/4)
F.binary_cross_entropy(P/4,Q/4)
F.poisson_nll_loss(A,Q)
F.kl_div(A,P)
F.cross_entropy(A,IV)
F.cross_entropy(A,P,label_smoothing=0.1)
F.nll_loss(A.log_softmax(1),IV,V.detach())
F.multi_margin_loss(A,IV)
F.embedding(I,M3[0])**2
F.pad(A,(1,2),mode='replicate')**2
F.cosine_similarity(A,B)
F.pairwise_distance(A,B)
F.scaled_dot_product_attention(N3,N3,N3)
F.prelu(A,V)
"""
CASES = [*EXPRESSIONS, *FUNCTIONS.strip().splitlines()]
NAMES = {name: re.compile(rf"\b{name}\b") for name in OPERANDS}
NOT_WRITTEN = ("clone() the tensor", "multiple views")
"""Why a result is not written to: its elements share memory, or it is one of several views."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def number(outs: Any) -> Any:
    """A number that every element of differentiable results counts in; ``None`` without any."""
    total: Any = None
    for out in outs:
        if isinstance(out, Tensor) and out.requires_grad:
            places = np.arange(out.numel()).reshape(out.shape)
            weights = np.cos(places + 1.0)
            if out.dtype.kind == "c":
                weights = weights + 1j * np.sin(3 * places)
            part = (out * from_numpy(np.asarray(weights.astype(out.dtype)))).sum()
            part = part.real if out.dtype.kind == "c" else part
            total = part if total is None else total + part.to(total.dtype)
    return total


def write(x: Any, is_view: bool) -> None:
    """Change the elements of a tensor, or of a part of it, as an optimizer does."""
    with no_grad():
        part = x[-1:] if is_view and x.shape else x
        if x.dtype.kind == "b":
            part.logical_not_()
        else:
            part.mul_(0 if x.dtype.kind in "iu" else 1.5)


class Program:
    """An operation and its derivatives of several orders, with a write on the way.

    Attributes:
      code: the operation.
      is_leaf: whether its operands are leaves.
    """

    def __init__(self, code: str, is_leaf: bool) -> None:
        self.code = code
        self.is_leaf = is_leaf
        self.leaves: list[Any] = []
        self.scope: dict[str, Any] = {"T": torch, "F": F, "inf": np.inf, "nan": np.nan}
        for name in self.names(code):
            value = OPERANDS[name]
            self.scope[name] = x = from_numpy(np.array(value))
            if value.dtype.kind in "fc":
                self.leaves.append(x.requires_grad_())
                self.scope[name] = x if is_leaf else x * 1

    @staticmethod
    def names(code: str) -> list[str]:
        """The operands that an operation names."""
        return [name for name, pattern in NAMES.items() if pattern.search(code)]

    def derivatives(self, order: int, at: int = -1, target: str = "", is_view: bool = False) -> Any:
        """Derivatives until one is refused, since what it reads was written to.

        Args:
          order: how many.
          at: the write is after so many derivatives.
          target: what is written to; without a name the last derivatives, at first the results.
          is_view: whether a part of it is written to.
        """
        out = eval(self.code, self.scope)
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        for k in range(order):
            total = number(outs)
            if total is None:
                return
            if k == at:
                for x in [self.scope[target]] if target else outs:
                    try:
                        if isinstance(x, Tensor):
                            write(x, is_view)
                    except RuntimeError as error:
                        if not any(text in str(error) for text in NOT_WRITTEN):
                            raise
            try:
                outs = grad(total, self.leaves, create_graph=True, allow_unused=True)
            except RuntimeError as error:
                if at < 0 or not re.search(r"by an inplace operation.* by \w+_ at ", str(error)):
                    raise
                return
            yield [None if g is None else np.array(g.detach().numpy()) for g in outs]


@each("code", CASES)
def test_a_derivative_is_right_or_refused_after_a_write(code: str) -> None:
    """Each operand and result is written to before each derivative; ways and kinds take turns."""
    turn = zlib.crc32(code.encode())
    order = 3 if turn % 6 == 0 else 2
    try:
        expected = {is_leaf: list(Program(code, is_leaf).derivatives(order)) for is_leaf in (0, 1)}
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
        pytest.skip("no operation on these operands, or no derivative of it")
    for i, target in enumerate(["", *Program.names(code)]):
        for at in range(order):
            turn += 1
            if at != order - 1 and turn % 3:
                continue
            is_leaf, is_view = bool(turn >> 1 & 1), bool(turn & 1)
            found = Program(code, is_leaf).derivatives(order, at, target, is_view)
            for k, (values, right) in enumerate(zip(found, expected[is_leaf], strict=False)):
                for value, wanted in zip(values, right, strict=True):
                    assert (value is None) == (wanted is None)
                    if wanted is not None:
                        message = f"{target or 'result'} {i} written to before {at + 1}, order {k}"
                        assert_allclose(value, wanted, 1e-9, 1e-9, err_msg=message)


def _after_a_write(code: str, target: str, is_hidden: bool) -> Any:
    """First derivatives after a write to an operand, which the guards do not see if hidden."""
    program = Program(code, is_leaf=False)
    out = eval(code, program.scope)
    total = number(list(out) if isinstance(out, (tuple, list)) else [out])
    if total is None:
        return None
    with no_grad():
        x = program.scope[target]
        x.mul_(-0.7).add_(-0.3)
        x._storage.version -= 2 * is_hidden
    gradients = grad(total, program.leaves, allow_unused=True)
    return [None if g is None else g.numpy() for g in gradients]


READ_WITHOUT_EFFECT = {
    "Z**0": "0 times anything",
    "T.maximum(TIE,TIE*1)": "the same comparison afterwards",
    "A.norm(0)": "0 times anything",
    "T.linalg.solve(S,V[:3])": "the matrix is kept beside its factors, as in PyTorch",
    "T.linalg.solve(S,A)": "likewise",
    "T.linalg.solve(S,A.t(),left=False)": "likewise",
    "T.linalg.tensorsolve(SPD,V[:3])": "likewise",
}


@each("code", CASES)
def test_an_operand_that_no_derivative_reads_may_be_written_to(code: str) -> None:
    """A write is refused if the derivative would be another one after it, and only then."""
    for target in Program.names(code):
        if OPERANDS[target].dtype.kind not in "fc":
            continue
        try:
            after = _after_a_write(code, target, is_hidden=False)
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
            if "modified by an inplace operation" not in str(error):
                continue  # no operation on these operands, or no derivative of it
        else:
            for expected in Program(code, is_leaf=False).derivatives(1):
                for value, wanted in zip(after, expected, strict=True):
                    assert (value is None) == (wanted is None)
                    if wanted is not None:
                        assert_allclose(value, wanted, 1e-9, 1e-9, err_msg=target)
            continue
        found = _after_a_write(code, target, is_hidden=True)
        (expected,) = Program(code, is_leaf=False).derivatives(1)
        pairs = [(a, b) for a, b in zip(found, expected, strict=True) if a is not None]
        is_read = not all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)
        assert is_read == (code not in READ_WITHOUT_EFFECT), target


@pytest.mark.parametrize("write", [lambda x: x.mul_(3), lambda x: x.copy_(x.imag)])
def test_a_number_may_be_written_to_after_it_became_a_complex_one(write: Any) -> None:
    x = leaf([1 + 2j, 3 - 1j])
    y = 2 * x
    made = y.imag.to(y.dtype), torch.zeros_like(y).copy_(y.imag)
    write(y)
    for z in made:
        assert_array_equal(grad(z.real.sum(), x, retain_graph=True)[0].numpy(), [2j, 2j])


def leaf(values: Any = (0.4, 1.3)) -> Any:
    return tensor(np.asarray(values), requires_grad=True)


def test_the_error_after_a_step_of_an_optimizer_names_both_lines() -> None:
    w = leaf([1.0])
    (g,) = grad(w.sin().sum(), w, create_graph=True)  # saved here
    with no_grad():
        w.mul_(3.0)
    with pytest.raises(
        RuntimeError, match=r"saved by .* at test_saved.*written to by mul_ at test"
    ):
        g.sum().backward()


SAVED: dict[str, Any] = {
    "a solution": (lambda x: fnp.linalg.solve(x, np.arange(2.0)).sum(), np.eye(2) * 3 + 1),
    "a decomposition": (lambda x: fnp.linalg.qr(x)[1].sum(), np.eye(2) * 3 + 1),
    "a matrix as its transposed": (lambda x: (x.t() @ x @ x.t()).sum(), np.eye(2) + 1),
    "a gradient through a kink": (lambda x: (x.abs() * x.sin()).sum(), np.array([0.4, 1.3])),
}


@pytest.mark.parametrize("name", SAVED)
def test_a_write_to_a_gradient_or_operand_is_noticed(name: str) -> None:
    function, point = SAVED[name]

    for written in ("operand", "gradient"):
        x = leaf(point)
        (first,) = grad(function(x), x, create_graph=True)
        total = (first * first).sum()
        (expected,) = grad(total, x, retain_graph=True)
        with no_grad():
            (x if written == "operand" else first).mul_(3.0)
        if name == "a decomposition" and written == "operand":  # its factors are read
            assert_array_equal(grad(total, x)[0].numpy(), expected.numpy())
            continue
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            grad(total, x)


def test_constants_beside_operands_are_read_as_they_were() -> None:
    def curvature(changes: bool) -> Any:
        x, matrix = leaf(), np.eye(2) * 2 + 1
        total = fnp.linalg.solve(matrix, x * x).sum()
        matrix *= 7 if changes else 1
        (first,) = grad(total, x, create_graph=True)
        return grad((first * x).sum(), x)[0].numpy()

    assert_allclose(curvature(True), curvature(False), 1e-14)


@pytest.mark.parametrize(
    "move",
    [
        lambda x: fnp.reshape(x, (2, 2)),
        lambda x: fnp.transpose(fnp.reshape(x, (2, 2))),
        lambda x: fnp.flip(x),
        lambda x: fnp.broadcast_to(x, (3, 4)),
        lambda x: fnp.split(x, 2)[1],
    ],
)
@pytest.mark.parametrize("writes_to_result", [True, False])
def test_results_in_the_memory_of_an_operand_are_views(move: Any, writes_to_result: bool) -> None:
    """A write to either is seen in both with its derivative, or in neither."""
    x = leaf([0.5, 1.5, 2.5, 3.5])
    y = x * 1
    z = move(y)
    try:
        (z if writes_to_result else y).mul_(3)
    except RuntimeError as error:
        if not any(text in str(error) for text in NOT_WRITTEN):
            raise
        return
    for out in (y, z):
        if out.requires_grad:
            (g,) = grad(out.sum(), x, retain_graph=True)
            assert_allclose((g * x).sum().item(), out.sum().item(), 1e-14)
    assert y._version + z._version == 1 + np.may_share_memory(
        y.detach().numpy(), z.detach().numpy()
    )


def test_a_write_to_a_constant_in_the_memory_of_an_operand_is_noticed() -> None:
    y = leaf() * 1
    total = y.sin().sum()
    ft.stop_gradient(y).mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_a_hook_that_keeps_the_memory_does_not_hide_a_write() -> None:
    for order in (1, 2):
        x = leaf()
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            y = x * 1
            total = y.sin().sum()
        if order == 2:
            (first,) = grad(total, x, create_graph=True)
            total = first.sum()
        with no_grad():
            y.mul_(2)
        with pytest.raises(RuntimeError, match=r"saved by .* at test_saved.*by mul_ at test_saved"):
            total.backward()


def test_a_frozen_leaf_gets_no_gradient() -> None:
    for freeze in (lambda x: x.requires_grad_(False), lambda x: x.detach_()):
        x, w = leaf(), leaf()
        calls: list[str] = []
        x.register_hook(lambda g, calls=calls: calls.append("tensor"))
        x.register_post_accumulate_grad_hook(lambda x, calls=calls: calls.append("after"))
        total = (x * w).sum()
        freeze(x)
        total.backward()
        assert x.grad is None
        assert calls == ["tensor", "after"]
        assert_array_equal(w.grad.numpy(), x.numpy())
    x = leaf()
    total = (x * 2).sum()
    x.requires_grad_(False).requires_grad_(True)
    total.backward()
    assert_array_equal(x.grad.numpy(), [2, 2])
    x = leaf()
    total = (x * 2).sum()
    x.detach_().mul_(leaf())
    with pytest.raises(RuntimeError, match="moved into the graph interior"):
        total.backward()


@pytest.mark.parametrize(
    "again", [lambda v: v.mul_(0.5), lambda v: v.fill_(1.0), lambda v: v.sin_()]
)
def test_what_is_lost_is_not_found_again_by_another_write(again: Any) -> None:
    """``mul_`` reads the operand that it overwrites; nothing after it brings that back."""
    x = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    v = x.clone()
    part = v[1:]
    part.mul_(part)
    w = v * 1
    w.mul_(w)
    again(w)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (w * w).sum().backward()
