"""Operations on tensors that ``torch_operations`` lacks, and which of all cannot be traced.

Here: ``MORE``, expressions as ``EXPRESSIONS`` there; ``FUNCTIONAL``, those of ``nn.functional``;
``UNTRACED``, those that a transform refuses, with the reason; ``NO_SAMPLES``, names that no
transform meets. Not here: what is tested of them (``autograd/test_operations_transformed``).
"""

from dataclasses import dataclass

from functrans.errors import ConcretizationError

MORE = """
T.subtract(A,B)
(A*1).to_dense()
(lambda y: y.subtract_(B))(A*1)
(lambda y: y.multiply_(B))(A*1)
(lambda y: y.divide_(P))(A*1)
(lambda y: y.true_divide_(P))(A*1)
T.multiply(A,B)
T.divide(A,P)
T.true_divide(A,P)
T.floor_divide(A,P)
(lambda y: y.floor_divide_(P))(A*1)
(lambda y: y.remainder_(P))(A*1)
(lambda y: y.fmod_(P))(A*1)
(lambda y: y.float_power_(Q))(P*1)
(lambda y: y.atan2_(B))(A*1)
(lambda y: y.arctan2_(B))(A*1)
T.arctan2(A,B)
(lambda y: y.hypot_(B))(A*1)
T.copysign(A,B)
(lambda y: y.copysign_(B))(A*1)
T.nextafter(A,B)
(lambda y: y.nextafter_(B))(A.detach()*1)
T.bitwise_and(K,I)
T.bitwise_or(K,I)
T.bitwise_xor(K,I)
T.bitwise_left_shift(K,I)
T.bitwise_right_shift(K,I)
(lambda y: y.bitwise_and_(I))(K*1)
(lambda y: y.bitwise_or_(I))(K*1)
(lambda y: y.bitwise_xor_(I))(K*1)
(lambda y: y.bitwise_left_shift_(I))(K*1)
(lambda y: y.bitwise_right_shift_(I))(K*1)
T.gcd(K,I)
T.lcm(K,I)
(lambda y: y.gcd_(I))(K*1)
(lambda y: y.lcm_(I))(K*1)
K//(I+1)
K%(I+1)
T.div(K,I+1,rounding_mode='trunc')
T.div(K,I+1,rounding_mode='floor')
T.fmod(K,I+1)
K**I
T.pow(K,I)
T.pow(K-4,I-1)
T.heaviside(Z,P)
(lambda y: y.heaviside_(P))(Z.detach()*1)
(lambda y: y.addcmul_(B,P))(A*1)
(lambda y: y.addcdiv_(B,P))(A*1)
(lambda y: y.clip_(0,1))(A*1)
(lambda y: y.clamp_min_(0))(A*1)
(lambda y: y.clamp_max_(0))(A*1)
(lambda y: y.xlogy_(Q))(P*1)
(lambda y: y.ldexp_(I))(A*1)
(lambda y: y.eq_(B))(A*1)
(lambda y: y.ne_(B))(A*1)
(lambda y: y.lt_(B))(A*1)
(lambda y: y.le_(B))(A*1)
(lambda y: y.gt_(B))(A*1)
(lambda y: y.ge_(B))(A*1)
(lambda y: y.not_equal_(B))(A*1)
(lambda y: y.less_(B))(A*1)
(lambda y: y.less_equal_(B))(A*1)
(lambda y: y.greater_(B))(A*1)
(lambda y: y.greater_equal_(B))(A*1)
A.ne(B)
A.not_equal(B)
A.lt(B)
A.less(B)
A.le(B)
A.less_equal(B)
A.greater(B)
A.ge(B)
A.greater_equal(B)
(lambda y: y.logical_and_(Z))(A*1)
(lambda y: y.logical_or_(Z))(A*1)
(lambda y: y.logical_xor_(Z))(A*1)
(lambda y: y.logical_not_())(Z*1)
T.logical_or(Z,MASK)
T.logical_xor(Z,MASK)
T.bitwise_not(K)
(lambda y: y.bitwise_not_())(K*1)
T.isinf(A/ZERO)
T.isfinite(A/ZERO)
T.isposinf(A/ZERO)
T.isneginf(A/ZERO)
T.isreal(CA)
T.isreal(A)
CA.conj()
(lambda y: y.conj_physical_())(CA*1)
CA.conj().resolve_conj()
CA.resolve_neg()
A.half()
A.bfloat16()
A.int()
A.short()
A.char()
P.byte()
A.cfloat()
A.cdouble()
A.new_ones(2)
A.new_full((2,),3.0)
A.new_full((2,),V.sum().detach())
T.full((2,),V.sum().detach())
T.full_like(A,V.sum().detach())
(lambda y: y.scatter_(1,I,2.0))(A*1)
(lambda y: y.scatter_reduce_(1,I,B,'amin'))(A*1)
(lambda y: y.index_copy_(0,IV[1:],B[:2]))(A*1)
(lambda y: y.index_fill_(0,IV,2.0))(A*1)
(lambda y: y.index_fill_(1,IV,2.0))(A*1)
A.index_reduce(0,IV,B,'prod')
(lambda y: y.index_reduce_(0,IV,B,'amax'))(A*1)
(lambda y: y.index_put_((IV,),B))(A*1)
(lambda y: y.masked_scatter_(MASK,B))(A*1)
A.put(IV[:2],V[:2])
(lambda y: y.put_(IV[:2],V[:2],accumulate=True))(A*1)
(lambda y: y.fill_diagonal_(2.0))(A*1)
A.flipud()
(lambda y: y.triu_())(A*1)
T.vander(V)
T.vander(V,3,True)
T.concat((A,B))
T.concatenate((A,B))
T.row_stack((V,W))
T.trapz(A)
T.atleast_1d(V.sum())
T.pinverse(A)
T.cholesky_inverse(T.linalg.cholesky(SPD))
T.cholesky_inverse(T.linalg.cholesky(SPD,upper=True),True)
T.triangular_solve(A,SPD)
T.triangular_solve(A,SPD,False,True)
A.split_with_sizes([1,2])
T.dsplit(N3,2)
T.tensor_split(A,T.tensor([1,2]),1)
(lambda y: y.exp2_())(A*1)
(lambda y: y.expm1_())(A*1)
(lambda y: y.log_())(P*1)
(lambda y: y.log2_())(P*1)
(lambda y: y.log10_())(P*1)
(lambda y: y.log1p_())(P*1)
(lambda y: y.sqrt_())(P*1)
(lambda y: y.rsqrt_())(P*1)
(lambda y: y.reciprocal_())(P*1)
(lambda y: y.cos_())(A*1)
(lambda y: y.tan_())(A*1)
(lambda y: y.asin_())(U*1)
(lambda y: y.arcsin_())(U*1)
(lambda y: y.acos_())(U*1)
(lambda y: y.arccos_())(U*1)
(lambda y: y.atan_())(U*1)
(lambda y: y.arctan_())(U*1)
(lambda y: y.sinh_())(U*1)
(lambda y: y.cosh_())(U*1)
(lambda y: y.tanh_())(U*1)
(lambda y: y.asinh_())(U*1)
(lambda y: y.arcsinh_())(U*1)
(lambda y: y.acosh_())(P+1)
(lambda y: y.arccosh_())(P+1)
(lambda y: y.atanh_())(U*1)
(lambda y: y.arctanh_())(U*1)
(lambda y: y.erf_())(U*1)
(lambda y: y.erfc_())(U*1)
(lambda y: y.erfinv_())(U*1)
(lambda y: y.lgamma_())(P*1)
(lambda y: y.digamma_())(P*1)
(lambda y: y.i0_())(P*1)
(lambda y: y.sinc_())(P*1)
(lambda y: y.deg2rad_())(P*1)
(lambda y: y.rad2deg_())(P*1)
(lambda y: y.neg_())(P*1)
(lambda y: y.negative_())(P*1)
(lambda y: y.abs_())(A*1)
(lambda y: y.absolute_())(A*1)
(lambda y: y.square_())(A*1)
(lambda y: y.sign_())(A*1)
(lambda y: y.sgn_())(CA*1)
(lambda y: y.floor_())(A*1)
(lambda y: y.ceil_())(A*1)
(lambda y: y.trunc_())(A*1)
(lambda y: y.fix_())(A*1)
(lambda y: y.round_())(A*1)
(lambda y: y.frac_())(A*1)
(lambda y: y.nan_to_num_())(A*1)
(lambda y: y.logit_(0.1))(P/3)
T.arcsin(U)
T.arccos(U)
T.arctan(U)
T.arcsinh(U)
T.arccosh(P+1)
T.arctanh(U)
T.negative(A)
T.absolute(A)
T.fix(A)
T.positive(A)
K.round()
K.sgn()
MASK.sgn()
MASK.sign()
K.nan_to_num()
K.ceil()
K.trunc()
T.matmul(A,C)
T.ger(V,W)
(lambda y: y.addmv_(A,W))(V[:3]*1)
(lambda y: y.addr_(V[:3],W))(A*1)
(lambda y: y.addbmm_(N3,M3))(S*1)
(lambda y: y.baddbmm_(N3,M3))((N3@M3)*1)
T.chain_matmul(A,C,C.t())
T.cdist(A,B)
T.cdist(A,B,1.0)
A.nanmean(0)
(A/A*MASK.double().reciprocal().nan_to_num(1.0,float('nan'))).nanmean()
(lambda y: y.renorm_(2,0,1.0))(A*1)
(lambda y: y.cumprod_(1))(A*1)
A.reshape_as(B)
N3.swapdims(0,1)
CA.adjoint()
N3.moveaxis(0,1)
CA.H
(lambda y: y.swapaxes_(0,1))(A*1)
(lambda y: y.swapdims_(0,1))(A*1)
(lambda y: y.polygamma_(1))(P*1)
T.igamma(P.detach(),Q)
T.igammac(P.detach(),Q)
(lambda y: y.igamma_(Q))(P.detach()*1)
(lambda y: y.igammac_(Q))(P.detach()*1)
T.nonzero(A)
A.cpu()
A.contiguous()
T.fill(A,2.0)
T.gradient(A)
T.gradient(A,spacing=2.0,dim=1,edge_order=2)
T.gradient(A,spacing=[T.tensor([0.0,1.0,3.0],dtype=T.float64),0.5])
T.cumulative_trapezoid(A)
T.cumulative_trapezoid(A,P.cumsum(1))
T.histogram(A.detach(),4)
T.histogram(A.detach(),4,range=(-1.0,1.0),density=True)
T.histogram(A.detach(),T.tensor([-1.0,0.0,1.0],dtype=T.float64),weight=P.detach())
T.unravel_index(I,(2,2))
T.stft(V,4,1,return_complex=True)
T.stft(V,4,1,window=W,return_complex=True)
T.nuclear_norm(A)
T.linalg.eig(SPD)
T.linalg.eig(SPD).eigenvalues.real
T.linalg.matmul(A,C)
T.linalg.solve_ex(S,A)
T.linalg.inv_ex(S.detach())
T.linalg.inv_ex(S.detach()*0)
T.linalg.cholesky_ex(SPD.detach()-9*T.eye(3))
T.linalg.solve_ex(S.detach()*0,A)[1]
T.linalg.pinv(A,atol=0.9)
T.linalg.pinv(A,atol=0.1,rtol=0.5)
T.linalg.pinv(SPD,hermitian=True)
T.linalg.lstsq(A.t(),C)
T.linalg.lstsq(A,V[:3,None])
T.linalg.lstsq(A.t(),V)
T.linalg.matrix_rank(A,tol=0.5)
T.linalg.matrix_rank(SPD,hermitian=True)
T.linalg.matrix_exp(N3@M3)
T.linalg.matrix_exp(CS)
T.linalg.matrix_exp(S.float())
T.linalg.cond(S,1)
T.linalg.cond(S,'fro')
T.linalg.qr(A.t(),'r')
T.linalg.qr(A.t(),'complete')
T.qr(A.t())
T.svd(A)[1]
T.linalg.svd(A.t(),full_matrices=False)
T.linalg.eigh(SPD)
T.linalg.lu(A)
T.linalg.lu(A.t())
T.linalg.lu(CS)
T.special.bessel_j1(A.detach())
T.special.bessel_y0(P.detach())
T.special.bessel_y1(P.detach())
T.special.chebyshev_polynomial_t(A,3)
T.special.chebyshev_polynomial_t(A,I)
T.special.chebyshev_polynomial_u(A,3)
T.special.chebyshev_polynomial_v(A,3)
T.special.chebyshev_polynomial_w(A,3)
T.special.shifted_chebyshev_polynomial_t(A,3)
T.special.shifted_chebyshev_polynomial_u(A,3)
T.special.shifted_chebyshev_polynomial_v(A,3)
T.special.shifted_chebyshev_polynomial_w(A,3)
T.special.hermite_polynomial_h(A,3)
T.special.hermite_polynomial_he(A,I)
T.special.laguerre_polynomial_l(A,3)
T.special.legendre_polynomial_p(A,3)
T.special.spherical_bessel_j0(A)
T.special.gammaln(P)
T.special.psi(P)
T.special.multigammaln(P+3,2)
T.special.zeta(P.detach()+1,Q)
T.special.modified_bessel_i0(A.detach())
T.special.modified_bessel_i1(A.detach())
T.special.modified_bessel_k0(P.detach())
T.special.modified_bessel_k1(P.detach())
T.special.scaled_modified_bessel_k0(P.detach())
T.special.scaled_modified_bessel_k1(P.detach())
T.fft.ifft2(CA)
T.fft.ifftn(CA)
T.fft.ifftshift(A)
T.fft.ihfft(A)
T.fft.irfftn(CA)
T.fft.rfftn(A)
A.nanmedian(0)
(A/MASK.double()).nan_to_num(float('nan')).median()
A.quantile(T.tensor([0.2,0.7],dtype=T.float64),1)
A.quantile(U.abs()[0],1)
T.nanquantile(A,T.tensor(0.4,dtype=T.float64),0,interpolation='nearest')
T.searchsorted(A.sort(1)[0],B)
T.searchsorted(V.sort()[0],B,right=True)
T.searchsorted(V.sort()[0],0.3)
T.bincount(IV,V[:3].detach())
T.histc(A.detach(),4,-1.0,1.0)
T.histc(A.detach().float(),5)
T.cov(A,fweights=IV.new_tensor([1,2,1,3]))
T.cov(A,aweights=P[0].detach())
A.as_strided((2,2),(1,5))
A.unsafe_split(1)
A.unsafe_split_with_sizes((1,2))
T.unsafe_chunk(A,2,1)
T.isclose(A,B,0.1,0.2)
T.isclose(A/ZERO,A/ZERO,equal_nan=True)
T.isin(K,3)
T.isin(K,IV,invert=True)
A.repeat_interleave(3,1)
A.argsort(descending=True)
A.mode()
A.aminmax(dim=0)
A[IV,IV]
A[0,IV]
A[:,0]
A[IV[:,None],IV]
(lambda y: (y.__setitem__((IV,1),5.0), y)[1])(A*1)
(lambda y: (y.__setitem__((0,IV),5.0), y)[1])(A*1)
K.view(T.float64)
T.frexp(P.detach())
K.signbit()
A.sum_to_size(3,1)
T.std_mean(A,1)
A.cummax(0)
K.cummin(1)
A.sum().cummax(0)
A.sum().median()
A.sum().quantile(0.5)
A.select(1,-1)
""".strip().splitlines()


FUNCTIONAL = """
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
F.cross_entropy(A,IV,ignore_index=2)
F.nll_loss(A.log_softmax(1),IV,V.detach())
F.multi_margin_loss(A,IV)
F.embedding(I,M3[0])**2
F.embedding(I,M3[0],padding_idx=0)
F.pad(A,(1,2),mode='replicate')**2
F.pad(A,(1,2),mode='reflect')
F.pad(A[None],(1,2),mode='circular')
F.pad(A,(1,-2))
F.cosine_similarity(A,B)
F.pairwise_distance(A,B)
F.scaled_dot_product_attention(N3,N3,N3)
F.scaled_dot_product_attention(N3,N3,N3,is_causal=True)
F.prelu(A,V)
F.adaptive_avg_pool1d(N3,2)
F.adaptive_max_pool1d(N3,2)
F.adaptive_max_pool1d_with_indices(N3,2)
F.adaptive_avg_pool2d(N3,2)
F.adaptive_max_pool2d(N3,2)
F.avg_pool1d(N3,2)
F.avg_pool2d(N3,2)
F.max_pool1d(N3,2)
F.max_pool2d(N3,2)
F.max_pool1d_with_indices(N3,2)
F.max_pool2d_with_indices(N3,2)
F.max_unpool1d(*F.max_pool1d_with_indices(N3,2),2)
F.affine_grid(N3[:,:2,:3],(2,1,3,3),align_corners=False)
F.grid_sample(N3[:,None],M3[:,None,:,:2].tanh(),align_corners=False)
F.bilinear(A,B,T.ones(2,4,4,dtype=T.float64)*V)
F.channel_shuffle(N3[:,:2,:,None],2)
F.conv2d(N3[:,None],S[None,None])
F.conv_transpose1d(N3,M3[:1].permute(2,0,1))
F.conv_transpose2d(N3[:,None],S[None,None])
F.cosine_embedding_loss(A,B,V[:3].sign())
F.ctc_loss(N3.permute(1,0,2).log_softmax(-1),IV[:2,None].clamp(1),T.tensor([3,3]),T.tensor([1,1]))
F.elu(A)
F.embedding_bag(I,M3[0])
F.embedding_bag(IV,M3[0],T.tensor([0,2]))
F.fold(N3[:,:,:4].repeat(1,2,1)[:,:4],(3,3),(2,2))
F.gaussian_nll_loss(A,B,P)
F.hardshrink(A)
F.hardsigmoid(A)
F.hardtanh(A)
F.hinge_embedding_loss(A,B.sign())
F.instance_norm(N3)
F.interpolate(N3,scale_factor=2.0)
F.interpolate(N3,6,mode='linear')
F.interpolate(N3[None],(6,8),mode='bilinear')
F.interpolate(N3[None],(6,8),mode='bicubic')
F.l1_loss(A,B)
F.leaky_relu(A)
F.local_response_norm(N3,2)
F.lp_pool1d(N3,2.0,2)
F.margin_ranking_loss(A,B,Q.sign())
F.multilabel_margin_loss(A,I)
F.multilabel_soft_margin_loss(A,P/4)
F.one_hot(I)
F.one_hot(I,3)
F.pdist(A)
F.pixel_shuffle(N3[:,None].repeat(1,4,1,1),2)
F.pixel_unshuffle(N3[:,None,:2],2)
F.relu6(A)
F.selu(A)
F.soft_margin_loss(A,B.sign())
F.softmin(A,1)
F.softshrink(A)
F.threshold(A,0.1,2.0)
F.triplet_margin_loss(A,B,P)
F.triplet_margin_with_distance_loss(A,B,P)
F.unfold(N3[:,None],2)
F.upsample(N3,scale_factor=2)
F.celu_(A*1)
F.elu_(A*1)
F.hardtanh_(A*1)
F.leaky_relu_(A*1)
F.relu_(A*1)
F.selu_(A*1)
F.threshold_(A*1,0.1,2.0)
F.dropout(A,0.5,False)
F.dropout2d(N3,0.5,False)
F.alpha_dropout(A,0.5,False)
F.conv3d(N3[:,None,None],S[None,None,None])
F.max_pool3d(N3[:,None],(1,2,2))
F.avg_pool3d(N3[:,None],(1,2,2))
F.ctc_loss(N3.permute(1,0,2).log_softmax(-1),I[:2]*0+1,(3,3),(1,2))
F.ctc_loss(N3.permute(1,0,2).log_softmax(-1),IV[:2].clamp(1),(3,3),(1,1))
F.embedding_bag(I,M3[0],mode='sum')
F.embedding_bag(I,M3[0],mode='max')
F.lp_pool2d(N3,2.0,2)
F.lp_pool3d(N3[:,None],2.0,(1,2,2))
F.upsample_bilinear(N3[None],(6,8))
F.upsample_nearest(N3,scale_factor=2)
F.adaptive_avg_pool3d(N3[:,None],(1,2,2))
F.adaptive_max_pool3d(N3[:,None],(1,2,2))
F.adaptive_max_pool2d_with_indices(N3,2)
F.adaptive_max_pool3d_with_indices(N3[:,None],(1,2,2))
F.max_pool3d_with_indices(N3[:,None],(1,2,2))
F.max_unpool2d(*F.max_pool2d_with_indices(N3,2),2)
F.max_unpool3d(*F.max_pool3d_with_indices(N3[:,None],(1,2,2)),(1,2,2))
F.conv_transpose3d(N3[:,None,None],S[None,None,None])
F.multi_head_attention_forward(A[:,None],A[:,None],A[:,None],4,2,T.cat([C.t()[:4],C.t()[:4],C.t()[:4]]),None,None,None,False,0.0,C.t()[:4],None)
F.swish(A)
F.relu(A)
F.sigmoid(A)
F.tanh(A)
""".strip().splitlines()
"""Expressions in ``F``, which is ``nn.functional``."""


@dataclass(frozen=True, slots=True)
class Untraced:
    """Expressions that some transforms refuse.

    Attributes:
      reason: why.
      transforms: which.
      error: with what.
      message: a part of it.
      codes: the expressions.
    """

    reason: str
    transforms: tuple[str, ...]
    error: type[Exception]
    message: str
    codes: frozenset[str]


def _untraced(
    reason: str, transforms: str, error: type[Exception], message: str, codes: str
) -> Untraced:
    return Untraced(
        reason, tuple(transforms.split()), error, message, frozenset(codes.strip().splitlines())
    )


UNTRACED = (
    _untraced(
        "how many elements the result has depends on values",
        "jit vmap",
        ConcretizationError,
        "shapes and dtypes only|How many elements|value-dependent shape|without their values",
        """
T.where(MASK)
K.nonzero()
K.nonzero(as_tuple=True)
K.argwhere()
T.nonzero(A)
I.unique()
I.unique(return_inverse=True,return_counts=True)
T.unique(I,dim=0)
T.unique_consecutive(I)
T.unique_consecutive(I,return_inverse=True,return_counts=True)
T.bincount(IV)
T.bincount(IV,minlength=6)
T.bincount(IV,V[:3].detach())
A[MASK]
A[KB]
A.repeat_interleave(IV,0)
A.masked_select(MASK)
""",
    ),
    _untraced(
        "where the parts end depends on values",
        "jit",
        ConcretizationError,
        "shapes and dtypes only",
        """
T.tensor_split(A,T.tensor([1,2]),1)
F.embedding_bag(IV,M3[0],T.tensor([0,2]))
""",
    ),
    _untraced(
        "where the sequences end depends on values",
        "jit vmap",
        ConcretizationError,
        "shapes and dtypes only",
        "F.ctc_loss(N3.permute(1,0,2).log_softmax(-1),IV[:2].clamp(1),(3,3),(1,1))",
    ),
    _untraced(
        "how many classes there are depends on values",
        "jit vmap",
        RuntimeError,
        "give num_classes where the classes are traced",
        "F.one_hot(I)",
    ),
    _untraced(
        "it reads the layout of memory, which traced values have none of",
        "jit vmap grad jvp",
        ConcretizationError,
        "the value of a tensor",
        "K.view(T.float64)",
    ),
    _untraced(
        "it reads the layout of memory, which values of a batch or a program have none of",
        "jit vmap",
        ConcretizationError,
        "the value of a tensor",
        """
T.as_strided(A,(2,2),(4,1),1)
A.as_strided((2,2),(1,5))
""",
    ),
    _untraced(
        "it takes a number, so that the tensor is asked for its item",
        "jit vmap",
        ConcretizationError,
        "the value of a tensor",
        """
A.new_full((2,),V.sum().detach())
T.full((2,),V.sum().detach())
T.full_like(A,V.sum().detach())
""",
    ),
    _untraced(
        "how many steps the recurrence has depends on values",
        "jit vmap",
        ConcretizationError,
        "the value of a tensor",
        """
T.special.chebyshev_polynomial_t(A,I)
T.special.hermite_polynomial_he(A,I)
""",
    ),
    _untraced(
        "it writes to a leaf",
        "grad",
        RuntimeError,
        "a (view of a )?leaf Variable that requires grad",
        """
A.add_(1)
A[0].add_(1)
""",
    ),
)

MASKED = frozenset(
    """
(A/ZERO).nan_to_num(1.,2.,3.)
(A/A*MASK.double().reciprocal().nan_to_num(1.0,float('nan'))).nanmean()
(A/MASK.double()).nan_to_num(float('nan')).median()
""".strip().splitlines()
)
"""Derivatives that are 0 by transforms, which know what was not taken, and NaN by ``backward``."""

NO_SAMPLES = {
    "made of numbers, sizes or memory": """
as_tensor asarray from_numpy scalar_tensor empty empty_strided range empty_like new_empty Size
new_empty_strided
DoubleTensor FloatTensor HalfTensor LongTensor IntTensor ShortTensor CharTensor ByteTensor
BoolTensor new frombuffer from_dlpack triu_indices hann_window hamming_window blackman_window
bartlett_window kaiser_window rfftfreq
""",
    "random: test_func_randomness": """
rrelu rrelu_ dropout1d dropout3d feature_alpha_dropout gumbel_softmax
bernoulli_ exponential_ geometric_ cauchy_ log_normal_ bernoulli binomial multinomial poisson
rand_like randn_like randint_like normal
rand randn randint randperm normal_ random_ uniform_
""",
    "no tensor comes of it: a truth, a number, a shape, a word": """
is_conj is_neg is_nonzero is_signed is_same_size device is_cpu is_cuda is_sparse is_quantized is_mps
is_meta names itemsize nbytes ndim get_device is_shared is_pinned has_names is_leaf grad_fn
output_nr retains_grad item data_ptr ndimension nelement is_complex is_contiguous numpy
broadcast_shapes equal is_storage typename is_inference LinAlgError allclose element_size
is_floating_point is_tensor numel requires_grad size storage_offset stride tolist type
""",
    "of the graph, of memory, or of Python": """
copy apply_ cuda to_dense pin_memory share_memory_ requires_grad_ grad data
untyped_storage storage set_ resize_ resize_as_ as_strided_ is_set_to layout name volatile
backward retain_grad detach_ register_hook register_post_accumulate_grad_hook
""",
    "settings": """
set_printoptions compile get_default_device set_default_device use_deterministic_algorithms
are_deterministic_algorithms_enabled get_float32_matmul_precision set_float32_matmul_precision
is_anomaly_enabled get_num_interop_threads set_num_interop_threads set_flush_denormal
set_warn_always is_warn_always_enabled
set_default_tensor_type
""",
}
