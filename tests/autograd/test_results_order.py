"""How results lie in memory: what PyTorch has in row-major order may be viewed here, too."""

import re
from typing import Any

import numpy as np
import pytest

from functrans.autograd import recording
from functrans.compat import torch
from samples.torch_operations import EXPRESSIONS, OPERANDS
from samples.torch_transformed import FUNCTIONAL, MORE

CODES = [
    code
    for code in dict.fromkeys([*EXPRESSIONS, *MORE, *FUNCTIONAL])
    if not re.search(r"\w_\(", code) and ".expand(" not in code
]
"""Operations that write to nothing."""


def _reversed(value: np.ndarray) -> Any:
    return torch.from_numpy(np.array(value.T, order="C")).permute(*range(value.ndim)[::-1])


def _apart(value: np.ndarray) -> Any:
    if not value.ndim:
        return torch.tensor(value)
    return torch.from_numpy(np.repeat(value, 2, -1))[..., ::2]


@pytest.mark.parametrize("order", [_reversed, _apart])
@pytest.mark.parametrize("code", CODES)
def test_results_are_dense_and_those_of_other_shapes_in_rows(code: str, order: Any) -> None:
    names = [name for name in OPERANDS if re.search(rf"\b{name}\b", code)]
    operands = {name: order(OPERANDS[name]) for name in names}
    scope = {"T": torch, "F": torch.nn.functional, "inf": np.inf, "nan": np.nan, **operands}
    try:
        made = eval(code, scope)
    except Exception:  # refused: other tests say what
        return
    arrays = [x._value for x in operands.values()]
    for x in made if isinstance(made, (tuple, list)) else [made]:
        if not isinstance(x, torch.Tensor) or x._view is not None:
            continue
        value = x._value
        if not value.size or any(np.may_share_memory(value, other) for other in arrays):
            continue
        assert recording.is_dense(value)
        if value.shape not in [other.shape for other in arrays]:
            assert value.flags.c_contiguous


A = [[0.3, -1.2, 0.8, 1.5], [2.0, 0.1, -0.7, 0.4], [-0.2, 0.6, 1.1, -1.4]]
IN_ROWS = """
A.cumsum(0) A.cumprod(1) A.logcumsumexp(1) A.cummax(1)[0] A.cummin(0)[1] A.softmax(0)
A.log_softmax(-1) A.masked_fill(A>0,2.) A.roll(1,0) A.gather(1,I) A.index_select(1,V)
A[:,V] A.index_copy(0,V[:2],A[:2]) A.scatter(1,I,2.) T.fft.fft(A) T.cat((A,A),1) T.hstack((A,A))
T.stack((A,A)) F.layer_norm(A,(4,)) F.group_norm(A,2) F.logsigmoid(A) A.sort(0,descending=True)[1]
A.argsort(descending=True) A.topk(2)[1] (A>0).nonzero(as_tuple=True)[0] F.one_hot(I) A.ravel()
T.cat((A[None].expand(5,3,4),T.ones(5,1,4)),1) A.expand(2,3,4).clone()
"""


@pytest.mark.parametrize("code", IN_ROWS.split())
def test_results_that_pytorch_has_in_rows_can_be_viewed(code: str) -> None:
    a, index = _reversed(np.array(A)), _reversed(np.arange(12).reshape(3, 4) % 3)
    scope = {"A": a, "I": index, "V": torch.tensor([0, 2, 1, 2]), "T": torch}
    x = eval(code, {**scope, "F": torch.nn.functional})
    assert x.is_contiguous()
    assert x.view(-1).tolist() == x.reshape(-1).tolist()
