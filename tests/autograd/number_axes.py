"""Functions with an axis on a tensor without axes, for any library with torch's names.

``python -m tests.autograd.number_axes`` writes down what PyTorch makes of each ``D`` in ``AXES``:
shapes, numbers and dtypes of results, or the classes of the error. It is run by hand, where PyTorch
is installed.
"""

import json
import warnings
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("number_axes.json")
AXES = (0, -1, 1, -2)
FUNCTIONS = """
x.sum(D)
x.mean(D)
x.prod(D)
x.amax(D)
x.amin(D)
x.max(D)
x.min(D)
x.argmax(D)
x.argmin(D)
x.median(D)
x.nanmedian(D)
x.mode(D)
x.sort(D)
x.argsort(D)
x.topk(1,D)
x.kthvalue(1,D)
x.std(D,correction=0)
x.var(D,correction=0)
x.norm(2,D)
T.linalg.vector_norm(x,2,D)
x.logsumexp(D)
x.softmax(D)
x.log_softmax(D)
T.nn.functional.softmin(x,D)
x.cumsum(D)
x.cumprod(D)
x.cummax(D)
x.cummin(D)
x.logcumsumexp(D)
x.flip(D)
T.roll(x,1,D)
x.roll((1,),(D,))
T.repeat_interleave(x,2,D)
x.repeat_interleave(i+2,D)
x.index_select(D,i)
x.gather(D,i)
T.take_along_dim(x,i,D)
x.index_add(D,i,x)
x.index_copy(D,i,x)
x.index_fill(D,i,1.)
x.scatter(D,i,x)
x.scatter(D,i,3.)
x.scatter_add(D,i,x)
x.scatter_reduce(D,i,x,'sum')
x.index_reduce(D,i,x,'prod')
x.squeeze(D)
x.unsqueeze(D)
x.unbind(D)
x.split(1,D)
x.chunk(1,D)
x.tensor_split(1,D)
x.select(D,0)
x.narrow(D,0,1)
x.unflatten(D,(1,1))
x.flatten(D)
x.flatten(0,D)
x.transpose(D,0)
x.swapaxes(D,0)
x.movedim(D,0)
x.permute(D)
x.diff(1,D)
T.cat([x,x],D)
T.stack([x,x],D)
x.any(D)
x.all(D)
x.count_nonzero(D)
x.nansum(D)
x.nanmean(D)
x.quantile(.5,D)
x.nanquantile(.5,D)
x.aminmax(dim=D)
T.std_mean(x,D,correction=0)
T.var_mean(x,D,correction=0)
x.renorm(2,D,1.)
T.nn.functional.normalize(x,dim=D)
T.nn.functional.cosine_similarity(x,x,dim=D)
T.nn.functional.glu(x,D)
T.trapezoid(x,dim=D)
T.cumulative_trapezoid(x,dim=D)
T.unique_consecutive(x,dim=D)
T.unique(x,dim=D)
T.fft.fft(x,dim=D)
T.linalg.cross(x,x,dim=D)
T.linalg.vecdot(x,x,dim=D)
x.unfold(D,1,1)
x.cumsum(D,dtype=T.float64)
T.logcumsumexp(x,D)
T.dist(x,x)
x.gather(D,i[None])
x.index_select(D,i[None])
T.concat([x],D)
x.diagonal(0,D,D)
x.rot90(1,(D,D))
x.msort()
x.nonzero()
x.argwhere()
x.sum((D,))
x.mean((D,))
x.amax((D,))
x.std((D,),correction=0)
x.flip((D,))
x.squeeze((D,))
x.any((D,))
x.all((D,))
x.logsumexp((D,))
x.count_nonzero((D,))
x.tensor_split((0,),D)
x.split((1,),D)
x.split_with_sizes((1,),D)
x.sum(D,keepdim=True)
x.max(D,keepdim=True)
x.median(D,keepdim=True)
x.argmax(D,keepdim=True)
x.logsumexp(D,keepdim=True)
x.norm(2,D,keepdim=True)
x.select_scatter(x,D,0)
x.slice_scatter(x,D)
T.softmax(x,D)
T.nn.functional.log_softmax(x,D)
T.fft.fftshift(x,D)
T.fft.ifftshift(x,D)
T.fft.fftn(x,dim=(D,))
T.fft.rfft(x,dim=D)
T.gradient(x,dim=D)
T.nn.functional.pairwise_distance(x,x)
T.isin(x,x)
T.bucketize(x,x[None])
T.cov(x)
T.corrcoef(x)
T.vstack([x])
T.hstack([x])
T.dstack([x])
T.block_diag(x)
T.cross(x,x,dim=D)
T.tensordot(x,x,dims=0)
T.nn.functional.one_hot(i,1)
T.hsplit(x,1)
T.vsplit(x,1)
x.expand(1)
x.repeat(2)
x.tile((2,))
T.linalg.norm(x,2,D)
T.nn.functional.threshold(x,0.,0.)
"""
EXPRESSIONS = [
    (code, axis)
    for code in FUNCTIONS.split("\n")[1:-1]
    for axis in AXES
    if "D" in code or axis == 0
]


def outcome(torch: Any, code: str, axis: int) -> Any:
    """Shapes, numbers and dtypes of the results, or the classes of the error."""

    def plain(found: Any) -> Any:
        if isinstance(found, torch.Tensor):
            dtype = str(found.dtype).removeprefix("torch.")
            numbers = found.real if found.is_complex() else found
            return [list(found.shape), str(numbers.to(torch.float64).tolist()), dtype]
        return [plain(part) for part in found] if isinstance(found, (list, tuple)) else found

    scope = {"T": torch, "x": torch.tensor(2.5), "i": torch.tensor(0), "D": axis}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(eval(code, scope))
        except Exception as error:
            return " ".join(kind.__name__ for kind in type(error).__mro__)


if __name__ == "__main__":
    import torch

    rows = [
        f'"{code} {axis}": {json.dumps(outcome(torch, code, axis))}' for code, axis in EXPRESSIONS
    ]
    DATA.write_text("{\n" + ",\n".join(rows) + "\n}\n")
