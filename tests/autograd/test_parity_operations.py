"""Operations against PyTorch: values, dtypes, node names, gradients, second derivatives, errors.

Each case is an expression in ``T``, the namespace of torch or ``functrans.compat.torch``, and in
the operands of ``OPERANDS``. Where the two differ on purpose a case is left out: several writes to
one place by ``scatter`` (only the last one has a gradient here), second derivatives at 0 of norms
and ``sinc`` (finite here).
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import functrans.autograd as fa
import functrans.compat.torch as ft

torch = pytest.importorskip("torch")

ELEMENTWISE = """
A+B
A+1
A-B
1-A
2*A
A*B
A/B
A/2
2/A
P**2
P**0.5
P**Q
2**A
A**3
Z**0
Z**2
P**-1
A%B
A.add(B,alpha=2)
T.add(A,B)
T.sub(A,B,alpha=0.5)
A.rsub(B)
T.rsub(A,2)
T.mul(A,2)
T.div(A,B,rounding_mode='floor')
T.div(A,B,rounding_mode='trunc')
T.div(K,2)
K/2
K*1.5
K//2
K.div(3,rounding_mode='trunc')
T.div(-K,3,rounding_mode='trunc')
K%3
-K%3
T.fmod(-K,3)
T.fmod(A,0.3)
T.remainder(A,0.3)
T.pow(2,A)
T.pow(A,2)
K**2
K**-1
K-MASK
MASK-MASK
-MASK
MASK&MASK
A&B
T.float_power(K,2)
T.maximum(A,B)
T.maximum(TIE,TIE*1)
T.minimum(A,B)
T.fmax(A,B)
T.fmin(A,B)
T.atan2(A,B)
T.hypot(A,B)
T.logaddexp(A,B)
T.logaddexp2(A,B)
T.ldexp(A,K)
T.lerp(A,B,0.3)
T.lerp(A,B,0.7)
T.lerp(A,B,P)
T.addcmul(A,B,P,value=0.5)
T.addcdiv(A,B,P,value=0.5)
T.clamp(A,-0.5,0.5)
T.clamp(A,min=0)
T.clamp(A,max=0)
T.clamp(A,min=B)
T.clamp(A,B,P)
T.clamp(TIE,2.0,3.0)
T.clamp(TIE,min=ONES*2)
T.clamp(A)
T.clamp_min(A,0)
T.clamp_max(A,0)
A.clip(0,1)
K.clamp(2,5)
K.clamp(2.5,5)
T.where(MASK,A,B)
T.where(MASK,A,0.0)
T.where(MASK,1.0,0.0)
T.where(MASK,1,0)
T.where(MASK)
A.where(MASK,B)
T.where(A,A,B)
A.masked_fill(MASK,2.0)
A.masked_fill(MASK,V.sum())
A.masked_fill(K,2.0)
T.xlogy(P,Q)
T.xlogy(ZERO,P)
A.exp()
A.exp2()
A.expm1()
P.log()
P.log2()
P.log10()
P.log1p()
P.sqrt()
P.rsqrt()
P.reciprocal()
A.sin()
A.cos()
A.tan()
U.asin()
U.acos()
A.atan()
A.sinh()
A.cosh()
A.tanh()
A.asinh()
(P+1).acosh()
U.atanh()
A.sigmoid()
A.relu()
Z.relu()
A.erf()
A.erfc()
U.erfinv()
P.lgamma()
P.digamma()
A.i0()
A.sinc()
A.deg2rad()
A.rad2deg()
A.neg()
A.abs()
Z.abs()
A.square()
A.sign()
A.sgn()
A.floor()
A.ceil()
A.trunc()
A.round()
A.round(decimals=2)
A.frac()
A.nan_to_num()
(A/ZERO).nan_to_num(1.,2.,3.)
T.sigmoid(P).logit()
T.logit(P,0.01)
A.signbit()
T.frexp(A)
+A
abs(A)
~MASK
~K
~A
K.exp()
K.sqrt()
K.abs()
K.floor()
K.sign()
K.relu()
MASK.exp()
K.sigmoid()
CA.exp()
CA.abs()
CA.log()
CA.sqrt()
CA*CA
CA/CA.sin()
CA.sigmoid()
CA.tanh()
CA.sgn()
CA.sign()
CA.reciprocal()
CA**2
A*1j
A<B
A==A
A.eq(1)
T.gt(A,B)
T.logical_and(A,MASK)
T.logical_not(K)
T.isnan(A)
T.isclose(A,A+1e-9)
T.allclose(A,A)
T.equal(A,A)
T.isin(K,IV)
T.exp(3)
T.exp(A,out=B)
T.special.erfcx(A)
T.special.ndtr(A)
T.special.ndtri(T.sigmoid(A))
T.special.log_ndtr(A)
T.special.i0e(A)
T.special.i1(A)
T.special.i1e(A)
T.special.entr(P)
T.special.expit(A)
T.special.xlog1py(A,P)
T.polygamma(1,P)
T.polygamma(2,P)
A.polygamma(1)
T.mvlgamma(P+3,2)
T.special.gammainc(P.detach(),Q)
T.special.gammaincc(P.detach(),Q)
T.special.bessel_j0(A.detach())
T.special.softmax(A,0)
T.special.log_softmax(A,0)
"""

REDUCTIONS_AND_SHAPES = """
A.sum()
A.sum(0)
A.sum((0,1))
A.sum(0,keepdim=True)
A.sum(axis=1,keepdims=True)
K.sum()
MASK.sum()
A.sum(5)
A.sum((0,0))
A.nansum()
A.mean()
A.mean(0)
A.mean((0,1),keepdim=True)
K.mean()
A.prod()
Z.prod()
Z.prod(0)
Z.prod(1,keepdim=True)
K.prod()
A.var()
A.var(0)
A.var(0,unbiased=False)
A.var(False)
A.var(1,correction=0,keepdim=True)
A.std()
A.std(1)
ONES.std(0)
T.var_mean(A,0)
T.std_mean(A)
A.norm()
A.norm(1)
A.norm(3,0)
A.norm(inf,1)
A.norm(-inf,1)
A.norm(0)
A.norm(2,1,True)
Z.norm(1)
Z.norm(3)
CA.norm()
T.dist(A,B)
T.dist(A,B,1)
T.renorm(A,2,0,1.0)
A.logsumexp(0)
A.logsumexp((0,1),keepdim=True)
A.softmax(0)
A.softmax(-1)
A.log_softmax(1)
K.softmax(0)
A.cumsum(0)
K.cumsum(1)
A.cumprod(1)
Z.cumprod(1)
A.logcumsumexp(1)
A.any()
A.all(1)
MASK.any(0,keepdim=True)
A.count_nonzero()
A.count_nonzero(0)
S.trace()
A.trace()
A.max()
TIE.max()
TIE.max(1)
TIE.min(1)
TIE.min()
A.max(0,keepdim=True)
T.max(A,B)
T.min(A,1)
TIE.amax(1)
TIE.amin(0)
TIE.amax()
A.amax((0,1))
T.aminmax(A)
T.aminmax(A,dim=1)
A.argmax()
TIE.argmax(1)
A.argmin(0,keepdim=True)
A.cummax(1)
TIE.cummax(1)
A.cummin(0)
A.sort()
A.sort(0,descending=True)
A.argsort(1)
T.msort(A)
A.topk(2)
A.topk(2,0,largest=False)
A.topk(9)
A.kthvalue(2)
A.kthvalue(2,0,True)
A.median()
A.median(1)
TIE.median()
A.nanmedian()
A.nanmedian(1)
K.median()
K.mode()
A.quantile(0.3)
A.quantile(0.3,1)
A.quantile(0.5,0,keepdim=True)
A.nanquantile(0.3)
K.nonzero()
K.nonzero(as_tuple=True)
K.argwhere()
I.unique()
I.unique(return_inverse=True,return_counts=True)
T.unique(I,dim=0)
T.unique_consecutive(I)
T.unique_consecutive(I,return_inverse=True,return_counts=True)
T.searchsorted(IV.sort()[0],K)
T.bucketize(A,T.tensor([-1.,0.,1.]))
T.bincount(IV)
T.bincount(IV,minlength=6)
T.histc(A.detach(),4)
A.diff()
A.diff(2,0)
T.cov(A)
T.corrcoef(A)
V.sum(0)
A.sum().sum()
A.sum().max(0)
A.sum().softmax(0)
A.sum().cumsum(0)
A.max(3)
T.zeros(0).max()
T.zeros((0,3)).sum()
T.zeros((0,3)).mean(0)
T.zeros((0,3)).amax(0)
T.zeros(1).var()
A[0]
A[0,1]
A[:,1]
A[1:]
A[1:,::2]
A[None]
A[...,0]
A[IV]
A[MASK]
A[IV,1]
A[:,IV]
A[KB]
A[5]
A[::-1]
A[0,0,0]
A[[0,2]]
A[T.tensor(1)]
A.view(4,3)
A.view(-1)
A.view(3,4)
A.view(5)
A.view(-1,-1)
A.t().view(12)
A.reshape(2,6)
A.t().reshape(12)
A.reshape(3,4)
A.permute(1,0)
A.permute(0,0)
A.permute(0)
A.transpose(0,1)
A.t()
N3.t()
A.T
N3.mT
A.expand(2,3,4)
A.expand(3,5)
A.expand(3)
A[:1].expand(3,-1)
V.expand(3,4)
A.view_as(B)
V.expand_as(A)
N3.flatten()
N3.flatten(1)
N3.flatten(1,2)
A.unflatten(1,(2,2))
A.unflatten(1,(2,3))
A.ravel()
A.unsqueeze(0)
A.unsqueeze(-1).squeeze()
A.unsqueeze(-1).squeeze(-1)
A.unsqueeze(-1).squeeze((2,))
A.squeeze(7)
N3.movedim(0,2)
N3.movedim((0,1),(2,0))
N3.swapaxes(0,2)
A.narrow(1,1,2)
A.narrow(1,3,2)
A.select(1,2)
A.select(1,7)
A.split(2)
A.split([1,2])
A.split([1,3])
A.chunk(2,1)
A.chunk(3,1)
A.tensor_split(3,1)
A.tensor_split((1,3),1)
T.hsplit(A,2)
T.vsplit(A,3)
A.unbind()
A.unbind(1)
A.diagonal()
A.diagonal(1)
N3.diagonal(0,1,2)
V.unfold(0,2,1)
A.unfold(1,2,2)
T.as_strided(A,(2,2),(4,1),1)
T.cat((A,B))
T.cat((A,B),1)
T.cat([A,C])
T.cat([])
T.cat(A)
T.stack((A,B))
T.stack((A,B),-1)
T.stack((A,C))
T.hstack((A,B))
T.vstack((V,W))
T.dstack((A,B))
T.column_stack((V,W))
T.block_diag(A,S)
T.meshgrid(V,W,indexing='ij')
T.meshgrid(V,W,indexing='xy')
T.broadcast_tensors(A,V)
T.broadcast_to(V,(3,4))
T.cartesian_prod(V,W)
T.combinations(V,2)
A.repeat(2,1)
A.repeat(2,1,2)
A.repeat(2)
A.tile(2)
A.tile((2,1,1))
A.repeat_interleave(2)
A.repeat_interleave(2,1)
A.repeat_interleave(IV,0)
A.roll(1)
A.roll(1,0)
A.roll((1,2),(0,1))
A.flip(0)
A.flip((0,1))
T.fliplr(A)
T.rot90(A)
T.diag(V)
T.diag(V,1)
T.diag(S)
T.diag_embed(A)
T.diag_embed(A,1)
T.diag_embed(A,-1,0,2)
T.diagflat(A)
A.tril()
A.triu(1)
V.tril()
T.tril_indices(3,3)
T.atleast_2d(V)
T.atleast_3d(A)
"""

PRODUCTS_AND_WRITES = """
A.gather(1,I)
A.gather(0,IV.view(1,3))
A.gather(1,K)
A.scatter(1,I,2.0)
A.scatter_add(1,I,B)
A.scatter_reduce(1,I,B,'sum')
A.scatter_reduce(1,I,B,'mean')
A.scatter_reduce(1,I,B,'amax')
A.scatter_reduce(1,I,B,'prod',include_self=False)
A.index_select(0,IV)
A.index_select(1,IV)
A.index_select(0,T.tensor([7]))
A.index_add(0,IV,B)
A.index_add(0,IV,B,alpha=2)
A.index_copy(0,T.tensor([2,0]),B[:2])
A.index_fill(0,IV,2.0)
A.index_fill(1,IV,V.sum())
A.index_put((IV,),B,accumulate=True)
A.masked_select(MASK)
A.masked_scatter(MASK,B)
A.take(IV)
A.take_along_dim(I,1)
A.take_along_dim(IV)
A.select_scatter(V,0,1)
A.slice_scatter(B[:2],0,1)
S.diagonal_scatter(V[:3])
A@C
A@V
V@W
V@C
N3@M3
N3@C
A@B
V@T.zeros(3,dtype=T.float64)
A@A.float()
T.mm(A,C)
T.mm(A,V)
T.mv(A,V)
T.dot(V,W)
T.dot(A,V)
T.bmm(N3,M3)
T.bmm(A,B)
T.addmm(T.zeros(3,5,dtype=T.float64),A,C)
T.addmm(V.sum(),A,C,beta=0.5,alpha=2)
T.addmv(V[:3],A,W)
T.addr(A,V[:3],W)
T.baddbmm(N3.sum(),N3,M3,alpha=0.5)
T.addbmm(A[:,:3],N3,M3)
T.outer(V,W)
T.inner(A,B)
T.inner(V,W)
T.tensordot(A,C,1)
T.tensordot(A,B,([0,1],[0,1]))
T.einsum('ij,jk->ik',A,C)
T.einsum('ij,ij->i',A,B)
T.einsum('bij,bjk->bik',N3,M3)
T.kron(A,S)
T.cross(A[:,:3],B[:,:3],dim=1)
T.linalg.cross(S,S.t())
T.linalg.multi_dot([A,C,C.t()])
T.vdot(V,W)
T.linalg.vecdot(A,B)
T.linalg.inv(S)
S.inverse()
T.linalg.det(S)
S.det()
T.linalg.slogdet(S)
T.logdet(SPD)
T.linalg.pinv(A)
T.linalg.solve(S,V[:3])
T.linalg.solve(S,A)
T.linalg.solve(S,A.t(),left=False)
T.linalg.solve_triangular(SPD,A,upper=True)
T.linalg.solve_triangular(SPD,A,upper=False,unitriangular=True)
T.linalg.cholesky(SPD)
T.linalg.inv(A)
T.cholesky(SPD)
T.cholesky_solve(A,T.linalg.cholesky(SPD))
T.linalg.qr(A.t())
T.linalg.svd(A,full_matrices=False).S
T.linalg.svdvals(A)
T.linalg.eigvalsh(SPD)
T.linalg.eigh(SPD).eigenvalues
T.linalg.eigvals(SPD).abs().sum()
T.linalg.norm(A)
T.linalg.norm(A,'fro')
T.linalg.norm(A,2)
T.linalg.norm(A,1)
T.linalg.norm(A,inf)
T.linalg.norm(A,'nuc')
T.linalg.norm(V,3)
T.linalg.vector_norm(A,2,dim=1)
T.linalg.matrix_norm(N3)
T.linalg.matrix_norm(N3,-1,dim=(0,2))
T.linalg.cond(S)
T.linalg.matrix_rank(A)
T.linalg.matrix_exp(S)
T.linalg.matrix_exp(S*9)
T.linalg.matrix_power(S,3)
T.linalg.matrix_power(S,-1)
T.linalg.lstsq(A.t(),C).solution
T.fft.fft(A)
T.fft.fft(A,6,0)
T.fft.ifft(CA)
T.fft.rfft(A)
T.fft.irfft(CA)
T.fft.fft2(A)
T.fft.fftn(A,norm='ortho')
T.fft.rfft2(A)
T.fft.irfft2(CA)
T.fft.hfft(CA)
T.fft.fftshift(A)
T.fft.fftfreq(5)
CA.real
CA.imag
A.real
A.imag
CA.angle()
A.angle()
T.view_as_real(CA)
T.view_as_complex(M3[...,:2].contiguous())
T.complex(A,B)
T.polar(P,A)
CA.conj_physical()
CA@CA.mH
CA.sum()
CA.mean()
CA.prod()
CA.var()
T.linalg.inv(CS)
T.linalg.det(CS)
CA+A
A*CA
(lambda y: y.mul_(B))(A*1)
(lambda y: y.add_(B,alpha=2))(A*1)
(lambda y: y.sub_(1))(A*1)
(lambda y: y.div_(P))(A*1)
(lambda y: y.pow_(2))(A*1)
(lambda y: y.sin_())(A*1)
(lambda y: y.exp_())(A*1)
(lambda y: y.sigmoid_())(A*1)
(lambda y: y.relu_())(A*1)
(lambda y: y.clamp_(0,1))(A*1)
(lambda y: y.copy_(B))(A*1)
(lambda y: y.copy_(V))(A*1)
(lambda y: y.fill_(2))(A*1)
(lambda y: y.fill_(V.sum()))(A*1)
(lambda y: y.zero_())(A*1)
(lambda y: y.masked_fill_(MASK,3.))(A*1)
(lambda y: y.index_add_(0,IV,B))(A*1)
(lambda y: y.scatter_add_(1,I,B))(A*1)
(lambda y: y.t_())(A*1)
(lambda y: y.transpose_(0,1))(A*1)
(lambda y: y.unsqueeze_(0))(A*1)
(lambda y: y.squeeze_())((A*1).unsqueeze(0))
(lambda y: y.addmm_(A,C))(T.zeros(3,5,dtype=T.float64)*1)
(lambda y: y.lerp_(B,0.3))(A*1)
(lambda y: y.tril_())(A*1)
(lambda y: y.cumsum_(0))(A*1)
(lambda y: (y.__setitem__(IV[:2],1.), y)[1])(A*1)
(lambda y: (y.__setitem__(MASK,0.), y)[1])(A*1)
(lambda y: (y.__iadd__(B), y)[1])(A*1)
(lambda y: y.add_(1.5))(K.clone())
A.add_(1)
A[0].add_(1)
A.expand(2,3,4).clone().add_(1)
(A*1).unbind()[0].add_(1)
(A*1).add_(N3)
A.clone()
A.detach()
A.float()
A.long()
A.to(T.float32)
A.double()
A.type_as(A.float())
A.bool()
A.type()
A.new_zeros(2)
A.new_tensor([1,2])
A.sum_to_size(1,4)
T.zeros(2,3)
T.zeros((2,3),dtype=T.int64)
T.ones(2)
T.full((2,),1)
T.full((2,),1.5)
T.full((2,),True)
T.eye(3)
T.arange(5)
T.arange(0.,1.,0.25)
T.arange(5)/2
T.arange(1,10,3)*0.5
T.linspace(0,1,5)
T.logspace(0,2,3)
T.tensor([1,2])
T.tensor([1.,2.])
T.tensor([1+1j])
T.tensor([True])
T.tensor([[1.,2.],[3.,4.]])
T.tensor(3.5)
T.zeros_like(A)
T.ones_like(K)
T.full_like(A,2)
T.ones_like(A,dtype=T.int32)
(T.manual_seed(0),T.rand(3))[1]
(T.manual_seed(0),T.randn(3,7))[1]
(T.manual_seed(0),T.randint(0,9,(4,)))[1]
(T.manual_seed(0),T.randperm(6))[1]
(T.manual_seed(0),T.normal(0.,2.,(3,)))[1]
(T.manual_seed(0),T.zeros(5).uniform_(-1,1))[1]
(T.manual_seed(0),T.zeros(5).normal_(1,2))[1]
(T.manual_seed(0),T.zeros(5).random_())[1]
T.zeros(-1)
T.arange(3,0)
T.randint(5,3,(2,))
T.zeros(2,dtype=T.int64,requires_grad=True)
T.tensor(None)
T.tensor([[1],[1,2]])
A.numel()
A.size(0)
A.dim()
A.is_floating_point()
T.is_tensor(A)
T.numel(A)
A.stride()
A.t().stride()
A[1:].storage_offset()
A[0].tolist()==A[0].tolist()
len(A)
A.element_size()
"""

FURTHER = """
T.linalg.lu(S)
T.linalg.lu(N3)
T.linalg.inv_ex(S)
T.linalg.inv_ex(S.detach()*0)[1]
T.linalg.cholesky_ex(SPD)
T.linalg.tensorinv(SPD.view(3,3),1)
T.linalg.tensorsolve(SPD,V[:3])
T.trapezoid(A)
T.trapezoid(A,V)
T.constant_pad_nd(A,(1,2))
T.selu(A)
T.dropout(A,0.0,True)
"""

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


def _operands() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    s = rng.normal(size=(3, 3))
    with_zeros = a.copy()
    with_zeros[[0, 1, 1], [1, 2, 0]] = 0
    return {
        "A": a,
        "B": b,
        "C": rng.normal(size=(4, 5)),
        "S": s,
        "V": rng.normal(size=4),
        "W": rng.normal(size=4),
        "P": np.abs(a) + 0.3,
        "Q": np.abs(b) + 0.4,
        "U": rng.uniform(-0.9, 0.9, (3, 4)),
        "N3": rng.normal(size=(2, 3, 4)),
        "M3": rng.normal(size=(2, 4, 3)),
        "Z": with_zeros,
        "SPD": s @ s.T + 3 * np.eye(3),
        "TIE": np.array([[1.0, 2.0, 2.0, 0.0], [3.0, 3.0, 3.0, 1.0], [0.0, 0.0, 0.0, 0.0]]),
        "ONES": np.ones((3, 4)),
        "ZERO": np.zeros((3, 4)),
        "CA": a + 1j * b,
        "CS": s + 1j * s.T,
        "I": np.array([[0, 2, 1, 1], [1, 1, 0, 2], [2, 0, 0, 1]]),
        "IV": np.array([2, 0, 2]),
        "MASK": a > 0,
        "K": np.arange(12).reshape(3, 4),
        "KB": np.array([True, False, True]),
    }


OPERANDS = _operands()


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
CASES = [
    code
    for table in (ELEMENTWISE, REDUCTIONS_AND_SHAPES, PRODUCTS_AND_WRITES, FURTHER, DTYPES)
    for code in table.strip().splitlines()
]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Neither NumPy's warnings nor torch's about what it deprecates."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("code", CASES)
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
