"""Operations against PyTorch: values, dtypes, node names, gradients, second derivatives, errors.

The cases are those of ``samples.torch_operations``, and some of dtypes. Where the two differ on
purpose a case is left out: several writes to one place by ``scatter`` (only the last one has a
gradient here), second derivatives at 0 of norms and ``sinc`` (finite here).
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import functrans.autograd as fa
import functrans.compat.torch as ft
from samples.torch_operations import EXPRESSIONS, OPERANDS

torch = pytest.importorskip("torch")

DTYPES = """
K+A.float()
K*T.tensor(2.0)
A.float()*T.tensor(2.0,dtype=T.float64)
A.float()*K
A.float()+2.5
K+True
MASK+1
MASK*2.5
T.cat((A.float(),A))
T.cat((K,A.float()))
T.stack((K,MASK))
T.where(MASK,K,A.float())
T.maximum(K,A.float())
(A.float()+A)
A.half()+A.float()
T.tensor(1,dtype=T.uint8)+T.tensor(1,dtype=T.int8)
T.tensor([1],dtype=T.uint8)+T.tensor([1],dtype=T.int8)
K.to(T.int32)*K
K.to(T.int8).sum()
K.to(T.int32)/2
K.float().mean()
(K>3).float().mean()
(K>3).sum()/2
(A.float()>0).sum()/3
A.float().var()
A.float().softmax(0)
A.float().norm()
A.float().std(0)
A.float().logsumexp(0)
A.float().pow(2.5)
2**A.float()
A.float().sigmoid()
A.float().erf()
P.float().lgamma()
P.float().digamma()
A.float().quantile(0.5)
A.float().cumsum(0)
A.float()@C.float()
T.einsum('ij,jk->ik',A.float(),C.float())
T.linalg.inv(S.float())
T.linalg.norm(A.float())
T.fft.fft(A.float())
T.fft.rfft(A.float())
A.float().clamp(0.,1.)
T.lerp(A.float(),B.float(),0.3)
A.float().median()
A.float().sinc()
A.float().nan_to_num()
T.cdist(A.float().detach(),B.float().detach())
A.float().deg2rad()
A.float().angle()
T.polar(P.float(),A.float())
A.float().masked_fill(MASK,2.)
A.float().addcmul(A.float(),A.float(),value=0.3)
A.float().round(decimals=1)
T.linalg.matrix_exp(S.float())
A.float().kthvalue(2)
T.special.zeta(P.float().detach(),Q.float().detach())
T.polygamma(1,P.float())
A.float().renorm(2,0,1.)
T.arange(3)*0.1
T.arange(3).float()
T.ones(3,dtype=T.int64)/3
T.tensor([1,2,3]).sqrt()
T.tensor([True,False]).logical_not()/2
T.zeros(3)+T.zeros(3,dtype=T.float64)
"""


class Side:
    """One of the two libraries."""

    def __init__(self, namespace: Any, grad: Any) -> None:
        self.namespace = namespace
        self.grad = grad

    def tensor(self, value: np.ndarray, requires_grad: bool) -> Any:
        made = self.namespace.from_numpy(np.array(value))
        return made.requires_grad_() if requires_grad else made

    def weighted(self, outs: list[Any]) -> Any:
        """A number that every element of differentiable results counts in."""
        total = None
        for out in outs:
            if not out.requires_grad:
                continue
            places = np.arange(out.numel()).reshape(tuple(out.shape))
            weights = np.cos(places + 1.0).astype(_dtype(out))
            if weights.dtype.kind == "c":
                weights = weights + 1j * np.sin(3 * places)
            part = (out * self.tensor(weights.astype(_dtype(out)), False)).sum()
            part = part.real if weights.dtype.kind == "c" else part
            total = part if total is None else total + part.to(total.dtype)
        return total

    def evaluate(self, code: str) -> dict[str, Any]:
        """Results of a case with their derivatives; or the error."""
        leaves = {}
        scope: dict[str, Any] = {"T": self.namespace, "inf": np.inf, "nan": np.nan}
        for name, value in OPERANDS.items():
            scope[name] = self.tensor(value, value.dtype.kind in "fc")
            if scope[name].requires_grad:
                leaves[name] = scope[name]
        try:
            out = eval(code, scope)
        except Exception as error:
            return {"error": [cls.__name__ for cls in type(error).__mro__]}
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        tensors = [x for x in outs if hasattr(x, "detach")]
        found: dict[str, Any] = {"plain": [x for x in outs if not hasattr(x, "detach")]}
        found["dtypes"] = [_dtype(x) for x in tensors]
        found["names"] = [x.grad_fn.name() if x.grad_fn is not None else None for x in tensors]
        found["values"] = dict(enumerate(map(_numpy, tensors)))
        found["first"] = found["second"] = _arrays(leaves, [None] * len(leaves))
        total = self.weighted(tensors)
        if total is None:
            return found
        inputs = list(leaves.values())
        first = self.grad(total, inputs, create_graph=True, allow_unused=True)
        found["first"] = _arrays(leaves, first)
        total = self.weighted([g for g in first if g is not None])
        if total is not None:
            second = self.grad(total, inputs, allow_unused=True)
            found["second"] = _arrays(leaves, second)
        return found


def _dtype(x: Any) -> str:
    return str(x.dtype).replace("torch.", "")


def _numpy(x: Any) -> np.ndarray:
    return np.asarray(x.detach().numpy(force=True))


def _arrays(leaves: dict[str, Any], gradients: Any) -> dict[str, np.ndarray]:
    """Gradients; those that are missing are zeros."""
    return {
        name: np.zeros(tuple(leaf.shape)) if gradient is None else _numpy(gradient)
        for (name, leaf), gradient in zip(leaves.items(), gradients, strict=True)
    }


THEIRS = Side(torch, torch.autograd.grad)
OURS = Side(ft, fa.grad)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Neither NumPy's warnings nor torch's about what it deprecates."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("code", [*EXPRESSIONS, *DTYPES.strip().splitlines()])
def test_the_same_as_torch(code: str) -> None:
    theirs, ours = THEIRS.evaluate(code), OURS.evaluate(code)
    if "error" in theirs:
        assert "error" in ours, f"torch raises {theirs['error'][0]}"
        assert theirs["error"][0] in ours["error"]
        return
    assert "error" not in ours, ours["error"]
    for key in ("dtypes", "names", "plain"):
        assert ours[key] == theirs[key], key
    is_narrow = any(d in ("float32", "complex64", "float16") for d in theirs["dtypes"])
    tolerance = 2e-5 if is_narrow or "float()" in code or "half()" in code else 1e-7
    for key in ("values", "first", "second"):
        assert ours[key].keys() == theirs[key].keys(), key
        for name, value in theirs[key].items():
            assert ours[key][name].shape == value.shape, (key, name)
            np.testing.assert_allclose(
                ours[key][name], value, tolerance, tolerance, err_msg=f"{key} {name}"
            )


def test_a_seed_means_the_same_numbers() -> None:
    for count in (3, 20, 37):
        for dtype in ("float32", "float64"):
            draws = []
            for side in (torch, ft):
                side.manual_seed(7)
                kind = getattr(side, dtype)
                draws.append(
                    [
                        side.rand(count, dtype=kind).numpy(),
                        side.randn(count, dtype=kind).numpy(),
                        side.randint(0, 10, (count,)).numpy(),
                        side.randperm(count).numpy(),
                    ]
                )
            for theirs, ours in zip(*draws, strict=True):
                np.testing.assert_allclose(ours, theirs, 1e-6, 1e-6)
    ft.set_rng_state(ft.from_numpy(torch.get_rng_state().numpy()))
    assert ft.rand(3).tolist() == torch.rand(3).tolist()
    torch.set_rng_state(torch.from_numpy(ft.get_rng_state().numpy()))
    assert ft.rand(3).tolist() == torch.rand(3).tolist()
