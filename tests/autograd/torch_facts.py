"""Small programs for any library with torch's names, and what PyTorch makes of them.

``python -m tests.autograd.torch_facts`` writes PyTorch's answers down: what the expression is as
text, or the class of the error and its first words. It is run by hand, where PyTorch is installed.
A line is an expression, or statements and an expression, separated by semicolons.
"""

import contextlib
import json
import warnings
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("torch_facts.json")
PROGRAMS = {
    "sizes": """
x.shape
x.size()
x.shape.numel()
x.shape[1:]
x.shape[0]
x.shape[:1] + x.shape
(5,) + x.shape
x.shape + (5,)
2 * x.shape
x.shape == (2, 3)
x.shape == [2, 3]
hash(x.shape) == hash((2, 3))
T.zeros(()).shape
x.sum(0).shape
n, m = x.shape; (n, m)
type(x.shape[0]).__name__
T.zeros(x.shape[::-1]).shape
T.ones(x.shape).shape.numel()
isinstance(x.shape, tuple)
T.func.vmap(lambda a: a * a.shape.numel())(x)
T.func.grad(lambda a: (a * a.shape[0]).sum())(x)
x.reshape(x.shape[1:] + x.shape[:1]).shape
copy.deepcopy(x.shape)
pickle.loads(pickle.dumps(x.shape))
f"{x.shape}"
list(x.shape)
T.Size([2, 3]).count(2)
T.Size([2, 2.0])
""",
    "dtypes": """
x.dtype
x.dtype.is_floating_point, x.dtype.is_complex, x.dtype.is_signed, x.dtype.itemsize
[getattr(T, n).is_floating_point for n in NAMES]
[getattr(T, n).is_complex for n in NAMES]
[getattr(T, n).is_signed for n in NAMES]
[getattr(T, n).itemsize for n in NAMES]
[getattr(T, n).to_real() for n in NAMES]
T.float32.to_complex(), T.float64.to_complex(), T.complex64.to_complex(), T.complex128.to_real()
T.int32.to_complex()
isinstance(x.dtype, T.dtype), isinstance(3, T.dtype)
type(x.dtype) is T.dtype
x.dtype == T.float32, x.dtype is T.float32, x.dtype != T.float64, T.float is T.float32
T.float32 == "float32"
{T.float32: 1}[x.dtype]
x.to(x.dtype) is x
x.to(T.float64).dtype, x.double().dtype, x.long().dtype, x.bool().dtype, x.half().dtype
(x > 1).dtype, x.argmax().dtype, x.sum(dtype=T.float64).dtype
(w * w).dtype, (w * i).dtype, (i / i).dtype, (i + 1).dtype, (i * 1.5).dtype
z.dtype, z.real.dtype, z.abs().dtype, (z * x[0, :2]).dtype
T.zeros(2, dtype=z.dtype).dtype, T.zeros_like(x, dtype=T.int8).dtype, x.new_zeros(2).dtype
T.finfo(x.dtype).eps, T.finfo(T.float64).max, T.finfo().tiny, T.finfo(T.float16).min
type(T.finfo(T.float32).eps).__name__, T.finfo(T.float32).bits, T.finfo(T.float32).dtype
T.finfo(T.float32)
T.iinfo(T.int8)
T.iinfo(T.int64).max, T.iinfo(T.uint8).min
isinstance(T.finfo(), T.finfo), isinstance(T.iinfo(T.int8), T.iinfo)
T.finfo(T.int32)
T.iinfo(T.float32)
T.get_default_dtype(), T.promote_types(T.int64, T.float32), T.result_type(i, 1.5)
pickle.loads(pickle.dumps(T.float32)) is T.float32, copy.deepcopy(x.dtype) is T.float32
buffer = io.BytesIO(); T.save({"d": T.float64}, buffer); buffer.seek(0); T.load(buffer)["d"]
T.func.vmap(lambda a: a * a.dtype.itemsize)(x)
T.func.grad(lambda a: (a.to(T.float64) * 2).sum())(x)
x.view(T.int32).dtype
x.numpy().dtype
T.nn.Linear(2, 2).to(T.float64).weight.dtype
T.nn.Linear(2, 2).to(dtype=T.int64)
repr(x.double())
repr(T.float32), str(T.int64), f"{T.bool}"
w.sum().backward(); w.grad.dtype, w.grad.dtype.is_floating_point
T.autograd.functional.jacobian(lambda a: a**2, w).dtype.itemsize
T.from_numpy(np.zeros(2)).dtype.itemsize, T.as_tensor(np.arange(3)).dtype.is_signed
T.stack([x, x]).dtype.itemsize, T.where(x > 1, x, 0.0).dtype.itemsize, T.eye(2).dtype.itemsize
""",
    "numbers first": """
T.add(2.0, x)
T.add(2, i, alpha=3)
T.sub(2.0, w)
T.subtract(2.0, x)
T.mul(2.0, x)
T.multiply(2, i)
T.div(2.0, x)
T.div(1, i)
T.div(5.0, x, rounding_mode="floor")
T.true_divide(2, i + 1)
T.floor_divide(7, i + 1)
T.bitwise_and(2, i)
T.bitwise_left_shift(2, i)
T.add(2.0, i)
T.mul(2, T.tensor(3))
T.mul(2.5, T.tensor(3))
T.mul(2.5, T.tensor(3.0, dtype=T.float64))
T.mul(2.5, x.half())
T.mul(2j, x)
T.add(True, x)
T.sub(True, T.tensor([True]))
T.add(2.0, x, out=T.zeros(2, 3))
T.func.vmap(lambda a: T.add(2.0, a))(x)
T.func.vmap(lambda a: T.mul(2.5, a))(i)
T.func.vmap(lambda a: T.sub(1, a))(i)
T.func.grad(lambda a: T.div(2.0, a).sum())(w.detach())
T.func.jvp(lambda a: T.sub(2.0, a), (x,), (x,))
T.div(2.0, w).sum().backward(); w.grad
""",
    "numbers out of range": r"""
[op(u, n) for op in OPERATORS for n in (-3, 255, 256, 300, 2**40, 2**63) if ok(op, u, n)]
[op(n, u) for op in OPERATORS for n in (-3, 255, 256, 300, 2**40, 2**63) if ok(op, n, u)]
[op(s, n) for op in OPERATORS for n in (40000, -40000, 2**31, -(2**63)) if ok(op, s, n)]
[op(n, s) for op in OPERATORS for n in (40000, -40000, 2**31, -(2**63)) if ok(op, n, s)]
u + 2**64
s - (-(2**63) - 1)
i * 2**63
u.add_(-3), u.mul_(300), u.sub_(2**40), u.eq_(-2)
u.fill_(-3), u.masked_fill(u > 1, -3), T.full_like(u, -3), u.new_full((2,), -3)
T.where(u > 1, u, -3), T.where(u > 1, -3, u)
u.fill_(-300)
u.fill_(-0.5)
u.fill_(2.5)
u.fill_(float("nan"))
u.masked_fill(u > 1, 300)
u.index_fill(0, i, 256)
u.scatter(0, i, 256)
u[0] = -3; u
u[0] = 300; u
s[:] = 40000; s
T.full((2,), 300, dtype=T.uint8)
T.where(u > 1, u, 300)
T.where(u > 1, 300, u)
T.tensor([1, 300], dtype=T.uint8)
T.tensor([1, -300], dtype=T.uint8)
T.tensor([-3], dtype=T.uint8)
T.tensor([40000], dtype=T.int16)
u.clamp(0, 300)
s.clamp_min(40000)
u**300
s**40000
T.add(u, u, alpha=300)
T.add(u, u, alpha=-3), T.rsub(u, u, alpha=-3)
T.rsub(u, u, alpha=2.5)
T.sub(i, i, alpha=True)
T.add(b, b, alpha=3)
T.addcmul(u, u, u, value=2.5), T.addcmul(u, u, u, value=-3)
T.addcmul(s, s, s, value=40000)
T.isin(u, 256), T.bucketize(256, u), T.bucketize(2.5, i)
x.fill_(1e39)
x.fill_(3 + 1j)
z.fill_(1e39)
x.half().fill_(1e5), x.fill_(float("inf"))
x.half().masked_fill(x > 1, -1e9)
x.masked_fill(x > 1, -1e39)
""",
    "sorted sequences": """
T.searchsorted(T.tensor([3, 1, 2]), T.tensor([2, 3]), sorter=T.tensor([1, 2, 0]))
T.searchsorted(T.tensor([3, 1, 2]), T.tensor([2, 3]), sorter=T.tensor([1, 2, 0]), right=True)
T.searchsorted(x.flip(1), T.tensor([[2.5], [9]]), sorter=T.tensor([[2, 1, 0]] * 2), side="right")
T.searchsorted(x[0], T.tensor([]), sorter=T.tensor([0, 1, 2]), out_int32=True)
T.searchsorted(x[0], x[0], sorter=T.tensor([1, 2, 3]))
T.searchsorted(x[0], x[0], sorter=T.tensor([1, 2, -1]))
T.searchsorted(x[0], x[0], sorter=T.tensor([1, 2]))
T.searchsorted(x, x[0])
T.searchsorted(T.tensor([1, 2, 3]), 2.5), T.searchsorted(x[0], 2), T.searchsorted(x[0], i)
""",
    "nothing": """
[e.chunk(3), e.view(3, 0).chunk(2, 1), e.view(3, 0).chunk(2)]
[T.zeros(s).stride() for s in ((0,), (0, 3), (3, 0, 2))], (e / 2).stride(), x[:0].stride()
e.median(), e.long().median(), e.nanmedian(), e.view(0, 3).median(1).values
e.requires_grad_(); T.autograd.grad(e.median(), e)
e.requires_grad_(); T.autograd.grad(e.logsumexp(0), e), e.logsumexp(0)
T.histc(e, 3), T.cumulative_trapezoid(e)
T.unique_consecutive(e, return_inverse=True, return_counts=True)
T.combinations(e), T.combinations(w.detach(), 0), T.combinations(w.detach(), 3)
T.fft.fftn(T.tensor(1.0)), T.fft.ifftn(T.tensor(1)), T.fft.fftn(w.detach(), 3, 0)
F.scaled_dot_product_attention(e.view(3, 0), e.view(3, 0), T.zeros(3, 2))
T.nuclear_norm(T.ones(2, 2, 3), (0, 1)), T.nuclear_norm(x, True), T.nuclear_norm(x, (0, 1), True)
T.frexp(w.detach()).mantissa, T.frexp(w.detach()).exponent
""",
    "numbers of reductions": """
[T.hinge_embedding_loss(x, x - 2, 1.0, n) for n in (0, 1, 2)], T.hinge_embedding_loss(x, x)
[T.margin_ranking_loss(x, -x, x, 0.5, n) for n in (0, 1, 2)], T.margin_ranking_loss(x, x, x)
[T.kl_div(x, x, n, log_target=True) for n in (0, 1, 2)], T.kl_div(x, x)
[T.binary_cross_entropy_with_logits(x, x / 9, None, None, n) for n in (0, 1, 2)]
[T.triplet_margin_loss(x, -x, x + 1, reduction=n) for n in (0, 1, 2)]
[T.cosine_embedding_loss(x, x + 1, T.ones(2), 0.0, n) for n in (0, 1, 2)]
[T.poisson_nll_loss(x / 9, x, True, False, 1e-8, n) for n in (0, 1, 2)]
T.ctc_loss(T.zeros(3, 1, 2), T.ones(1, 1, dtype=T.int64), T.tensor([3]), T.tensor([1]), 0, 0)
T.kl_div(x, x, reduction=2.0)
""",
    "printed": """
repr(T.zeros(0)), repr(T.zeros(0, 3)), repr(T.zeros(2, 0, dtype=T.int64)), repr(T.zeros(0) > 1)
repr(T.zeros(0, 3, dtype=T.float64)), repr(T.zeros(0, dtype=T.complex64))
repr(T.zeros(0, 3, requires_grad=True)), repr(T.zeros(0, 3, requires_grad=True) * 2)
""",
    "memory": """
x.layout, T.strided, T.contiguous_format, T.preserve_format, T.channels_last
type(x.layout) is T.layout, isinstance(T.channels_last, T.memory_format)
x.layout == T.strided
x.element_size(), x.nbytes, x.itemsize
x.untyped_storage().size(), x.untyped_storage().nbytes(), len(x.untyped_storage())
x.data_ptr() == x.untyped_storage().data_ptr(), x[1].data_ptr() - x.data_ptr()
x[1].storage_offset(), x[1].untyped_storage().size(), x[1].storage().size()
x[1].untyped_storage().data_ptr() == x.data_ptr(), x[:, 1].storage().data_ptr() == x.data_ptr()
x.storage()[1], list(x.storage())
x.T.storage().size(), x.T.is_contiguous(), x.T.stride()
x.untyped_storage()
x.storage()
y = T.zeros(0); y.set_(x.storage(), 1, (2,), (1,)); y
y = T.zeros(0); y.set_(x); y.is_set_to(x), x.is_set_to(x[0])
y = T.zeros(0); y.set_(x); y.add_(1); x
y = T.zeros(0); y.set_(x); (y * w[0]).sum().backward(); w.grad
y = T.zeros(3); y.set_(); y.shape
y = T.zeros(2); y.resize_(3).shape
y = T.arange(6.0); y.resize_(2, 2)
y = T.arange(4.0); y.resize_(2).resize_(4)
y = T.arange(4.0); y.resize_as_(x).shape
T.empty(0).resize_as_(T.tensor(3.0)).shape, x.new().resize_as_(T.tensor(3.0)).fill_(2)
w.resize_(3)
T.unsafe_chunk(x, 2, 1), T.unsafe_split(x, 1)
x.unsafe_split(1, 0), x.unsafe_chunk(2)
isinstance(T.max(x, 0), T.return_types.max), isinstance(x.sort(), T.return_types.sort)
isinstance(x.topk(1), T.return_types.topk), isinstance(T.aminmax(x), T.return_types.aminmax)
isinstance(T.linalg.svd(x), T.return_types.linalg_svd)
isinstance(T.linalg.qr(x), T.return_types.linalg_qr)
T.func.vmap(lambda a: a * a.stride()[0])(x)
T.func.vmap(lambda a: a * a.is_contiguous())(x)
T.func.vmap(lambda a: a + a.storage_offset())(x)
T.func.grad(lambda a: (a * a.stride()[0]).sum())(w.detach())
T.func.grad(lambda a: a.as_strided((2,), (0,)).sum())(w.detach())
T.func.grad(lambda a: a.T.as_strided((2, 2), (1, 2)).square().sum())(x)
T.func.grad(lambda a: (a * a.is_contiguous()).sum())(x.T)
T.func.jvp(lambda a: a.as_strided((2,), (1,), 1), (x,), (x,))
""",
    "linear algebra": """
T.view_as_real(T.logdet(Z))
T.view_as_real(T.logdet(1j * Z) - T.logdet(Z))
v = Z.clone().requires_grad_(); T.logdet(v).imag.backward(); T.view_as_real(v.grad)
v = Z.clone().requires_grad_(); T.slogdet(v)[0].imag.backward(); T.view_as_real(v.grad)
T.logdet(-M[:1, :1]), T.logdet(M)
[type(f(M)).__name__ for f in (T.linalg.eigh, T.linalg.eig, T.linalg.svd, T.svd, T.linalg.qr, T.qr)]
[type(f(M)).__name__ for f in (T.slogdet, T.linalg.slogdet, T.linalg.lu, T.linalg.inv_ex)]
type(T.triangular_solve(M, M)).__name__, T.triangular_solve(M, M, transpose=True)[1]
[type(f(M, M)).__name__ for f in (T.linalg.lstsq, T.linalg.solve_ex, T.triangular_solve)]
[n for n in NAMED if not hasattr(T.return_types, n)]
""",
    "complex numbers": """
[ok(f, z, z) for f in (T.lt, T.le, T.gt, T.ge, T.eq, T.ne)]
z < z
1 >= z
T.tensor(1.0) < 1j
[ok(f, z) for f in (T.argmax, T.argmin, T.max, T.min, T.amax, T.amin, T.aminmax, T.sort, T.argsort)]
[ok(f, z) for f in (T.msort, T.median, T.nanmedian, T.mode, T.unique, T.unique_consecutive)]
[ok(f, z, 0) for f in (T.cummax, T.cummin, T.max, T.min, T.median, T.clamp, T.clamp_min, T.clip)]
[ok(f, z, 1) for f in (T.topk, T.kthvalue, T.clamp_max, T.remainder, T.fmod, T.floor_divide)]
[ok(f, z, z) for f in (T.maximum, T.fmin, T.searchsorted, T.hypot, T.copysign, T.atan2)]
[ok(f, z) for f in (T.floor, T.ceil, T.trunc, T.round, T.frac, T.signbit, T.isposinf, T.isneginf)]
[ok(f, z) for f in (F.relu, F.relu6, F.leaky_relu, F.hardtanh, F.elu, F.gelu, F.softplus)]
[ok(f, z, 0) for f in (T.softmax, T.log_softmax)], [ok(f, z, z) for f in (T.heaviside, T.xlogy)]
T.argmax(z)
T.clamp(z, 0, 1)
z // 2
2 // z
z % z
T.div(z, z, rounding_mode="trunc")
T.logaddexp2(z, z), 0
T.logaddexp(T.tensor([1, 2]), T.tensor([1, 2]))
T.view_as_real(T.logaddexp(z, z * 2)), T.view_as_real(T.logaddexp(z, T.tensor([1.0, 2.0])))
v = z.clone().requires_grad_(); T.logaddexp(v, v * 1j).imag.sum().backward(); T.view_as_real(v.grad)
v = z.clone().requires_grad_(); T.logaddexp(1j * z, v).real.sum().backward(); T.view_as_real(v.grad)
T.matrix_power(N, 3), T.linalg.matrix_power(N, 0), N.to(T.int8).matrix_power(5)
T.matrix_power(N, -1)
T.chain_matmul(M), T.chain_matmul(N), T.chain_matmul(N, N)
v = M.clone().requires_grad_(); (T.chain_matmul(v) * M).sum().backward(); v.grad
T.chain_matmul()
T.chain_matmul(w)
T.linalg.multi_dot([M])
""",
    "dtypes of results": """
[T.vander(A).dtype for A in ALL if A.dtype != T.bool], T.vander(T.ones(2))
kinds(lambda A, B: T.trapezoid(A, B))
kinds(lambda A, B: T.trapz(A))
kinds(lambda A, B: T.gradient(A)[0])
kinds(lambda A, B: T.cumulative_trapezoid(A))
kinds(lambda A, B: F.pairwise_distance(A, B))
kinds(lambda A, B: T.dist(A, B))
kinds(lambda A, B: F.cosine_similarity(A, B, 0))
kinds(lambda A, B: A.any())
kinds(lambda A, B: T.all(A, 0))
kinds(lambda A, B: F.avg_pool1d(A[None], 2, 1))
kinds(lambda A, B: F.avg_pool2d(A.reshape(1, 1, 2), (1, 2)))
[ok(F.avg_pool3d, A.reshape(1, 1, 1, 2), (1, 1, 2)) for A in ALL[1:]]
F.avg_pool1d(T.tensor([[-3, -4, 2, 7]]), 2)
F.avg_pool1d(T.tensor([[-3, 4]]), 3, 1, 1, False, False)
T.gradient(N, spacing=(i + N[0], N[1]))[0]
""",
    "indices out of bounds": """
x[[0, 5]]
x[T.tensor([0, -3])]
x[:, [0, 5]]
x[[0, 5], [0, 0]]
x[None, [7]]
x[..., [7]]
x[..., None, [7]]
x[T.tensor([True, False]), [7]]
x[[0, 1], [0, 7]]
x[[0, 5]] = 1.0; x
x.index_put((T.tensor([5]),), T.tensor(1.0))
x.index_put_((T.tensor([0]), T.tensor([-4])), T.tensor(1.0))
""",
    "states": """
n = T.nn.BatchNorm1d(2); d = dict(n.state_dict()); del d[COUNT]; n.load_state_dict(d)[0], len(d)
n = T.nn.BatchNorm1d(2); d = n.state_dict(); del d[COUNT]; len(n.load_state_dict(d)[0])
n = T.nn.BatchNorm1d(2); d = dict(n.state_dict()); del d["weight"]; len(n.load_state_dict(d)[0])
n = T.nn.InstanceNorm1d(2, 1e-5, 0.1, False, True); n.load_state_dict({MEAN: i, VAR: i}); n(x).shape
""",
    "data": """
T.fft.fftfreq(3), T.fft.fftfreq(3).dtype is T.float32, T.fft.rfftfreq(3, dtype=T.float64)
T.fft.rfftfreq(3).dtype is T.float32, T.special.legendre_polynomial_p(0.5, x)
T.tensor([1j], dtype=T.float32)
T.tensor([1, 2 + 0j], dtype=T.float64)
T.tensor([1j], dtype=T.int64)
T.as_tensor([1j], dtype=T.float32)
T.tensor([1j, 0], dtype=T.bool), T.tensor([1, 2j], dtype=T.complex128)
T.tensor(np.array([1j]), dtype=T.float32)
T.tensor(memoryview(b"abc")), T.as_tensor(memoryview(b"abc")), T.tensor(bytearray(b"abc"))
T.tensor(memoryview(np.ones(2))), T.tensor(memoryview(b"abc"), dtype=T.uint8)
T.tensor(b"abc")
T.tensor("a")
T.tensor("1", dtype=T.float32)
T.as_tensor("a")
T.tensor(["a"])
""",
    "zeros that are negative": """
[T.signbit(T.relu(-T.zeros(n))).all() for n in (1, 2, 7, 64, 1000)]
[T.signbit(T.relu(-T.zeros(9, dtype=d))).all() for d in (T.float16, T.float64)]
T.signbit(T.relu(-T.zeros(2, 9)[:, ::2])), T.signbit(T.relu(T.tensor(-0.0)))
T.signbit(T.relu(T.tensor([-0.0, 0.0, -1.0, -T.inf]))), F.relu(T.tensor([-T.inf, T.nan, -2, 3]))
T.heaviside(T.tensor([T.nan, -1, -0.0, 2, T.inf]), T.tensor(3.0))
T.heaviside(T.tensor([-1, 0, 2]), T.tensor([5])), T.heaviside(b, b)
""",
    "arguments that are none": """
refused(lambda: x.squeeze(None))
refused(lambda: T.squeeze(x, dim=None))
refused(lambda: x.max(None))
refused(lambda: x.min(dim=None))
refused(lambda: T.max(x, None))
refused(lambda: x.median(None))
refused(lambda: x.nanmedian(None))
refused(lambda: x.prod(None))
refused(lambda: x.logsumexp(None))
refused(lambda: x.logsumexp(()))
x.roll((), ())
refused(lambda: T.eye(3, None))
refused(lambda: T.eye(3, m=None))
x.amax(None), x.all(None), x.sum(None), x.var(None), x.argmax(None)
x.squeeze(), x.max(), x.min(), x.median(), x.prod(), T.eye(2), T.eye(1, 2)
refused(lambda: F.adaptive_avg_pool1d(x, None))
refused(lambda: F.adaptive_max_pool1d(x, (None,)))
refused(lambda: F.adaptive_avg_pool2d(x[None], None))
refused(lambda: F.adaptive_max_pool3d(x[None, None], None))
F.adaptive_avg_pool2d(x[None], (None, 2)), F.adaptive_max_pool2d(x[None], (1, None))
F.conv1d(x[None], T.ones(0, 2, 3))
F.conv2d(x[None, None], T.ones(0, 1, 1, 1))
F.conv_transpose1d(x[None], T.ones(2, 0, 3))
""",
    "kinds of arguments": """
refused(lambda: x.var(correction="2"))
refused(lambda: T.std_mean(x, correction="2"))
x.var(correction=True), x.var(correction=0.5), x.std(correction=T.tensor(0))
refused(lambda: T.histogram(x, bins=True))
refused(lambda: T.histogram(x, True))
refused(lambda: F.ctc_loss(T.zeros(4, 1, 3), N[:1], T.tensor([4]), T.tensor([1]), blank=True))
refused(lambda: x.flatten(True))
refused(lambda: T.nn.Flatten(True)(x))
T.nn.Flatten()(x[0])
T.nn.Flatten(0, 5)(x)
T.nn.Flatten()(x), T.nn.Flatten(0, 1)(x), T.nn.Unflatten(-1, (3, 1))(x)
T.nn.Unflatten(2, (3, 1))(x)
T.empty_strided((2,), (-1,))
x.new_empty_strided((2, 3), (3, -1))
T.empty_strided((-2,), (1,))
T.empty_strided((2,), (1, 1))
T.empty_strided((0,), (-1,)).shape
refused(lambda: T.full((2,), "a"))
refused(lambda: T.full((2,), None))
refused(lambda: T.full((2,), [1]))
T.unravel_index(T.tensor(0), True)
T.quasirandom.SobolEngine(2).draw(True)
T.quasirandom.SobolEngine(3, True, 7).draw(6)
T.quasirandom.SobolEngine(40, True, 2**40).draw(3)[:, ::9]
e = T.quasirandom.SobolEngine(2, True, -3); e.fast_forward(9); e.draw(2), e.num_generated, e.quasi
e = T.quasirandom.SobolEngine(2, True, 1); e.shift, e.sobolstate[:, :3], e.quasi
T.manual_seed(3); T.quasirandom.SobolEngine(2, True).draw(3), T.rand(1)
T.quasirandom.SobolEngine(2, True, 5).draw(1, dtype=T.float64)
refused(lambda: T.quasirandom.SobolEngine(2).draw(2.0))
""",
    "places of repeats": """
T.repeat_interleave(T.tensor([0, 2])), T.repeat_interleave(T.tensor([2, 1], dtype=T.int32))
T.repeat_interleave(T.tensor([0, 2]), output_size=2), x.repeat_interleave(i, 0, output_size=1)
T.repeat_interleave(x, 2), T.repeat_interleave(x, i, 0), T.repeat_interleave(e.to(T.int64))
x.repeat_interleave(2, 0, output_size=4)
x.repeat_interleave(i, 0, output_size=5)
T.repeat_interleave(i, output_size=7)
T.repeat_interleave(T.tensor([-1, 2]))
T.repeat_interleave(w.detach())
T.repeat_interleave(N)
T.repeat_interleave(s)
refused(lambda: x.repeat_interleave())
""",
    "dtypes of classes": """
F.cross_entropy(x, i), F.cross_entropy(x, i.to(T.uint8)), F.nll_loss(x, i.to(T.uint8))
[ok(lambda d=d: F.cross_entropy(x, i.to(getattr(T, d)))) for d in NAMES]
F.cross_entropy(x, i.to(T.int32))
F.cross_entropy(x, b)
F.cross_entropy(x[None], i[:1, None].expand(1, 3).to(T.uint8))
F.nll_loss(x, s[:2])
F.nll_loss(x[0], i[0].to(T.int32))
F.multi_margin_loss(x, i.to(T.int32))
F.multi_margin_loss(x, i.to(T.uint8))
F.multilabel_margin_loss(x, x.to(T.int32) % 3)
F.multi_margin_loss(x, i), F.multilabel_margin_loss(x, x.to(T.int64) % 3)
""",
    "sizes at fault": """
said(lambda: x[T.tensor([True])])
said(lambda: x[T.ones(2, 4, dtype=T.bool)])
said(lambda: x[:, T.ones(4, dtype=T.bool)])
said(lambda: x[0, T.ones(4, dtype=T.bool)])
said(lambda: x[[True]])
said(lambda: x[T.ones(1, 1, 1, dtype=T.bool)])
said(lambda: x.__setitem__(T.ones(3, dtype=T.bool), 0))
said(lambda: T.einsum("ij,jk", x, T.ones(4, 5)))
said(lambda: T.einsum("i j, j k -> i k", x, T.ones(4, 5)))
said(lambda: T.einsum("...j,jk", x, T.ones(4, 5)))
said(lambda: T.einsum("ii->i", x))
said(lambda: T.einsum("ii", x))
said(lambda: T.einsum("a,a,a", T.ones(1), T.ones(2), T.ones(3)))
T.einsum(T.ones(2, requires_grad=True), [0], x, [0, 1], [1])
T.einsum(T.ones(2), [0], x, [0, 1])
T.einsum(T.ones(5, 2), [1, 0], x, [0, ...], [..., 1])
T.einsum(x, (30, 2))
T.einsum(x, [30, 2], [])
T.einsum(x, (0, 1), (1, 0))
T.func.grad(lambda a: T.einsum(a, [0, 1], x, [0, 1], []))(x + 1)
w = T.ones(2, 3, requires_grad=True); T.autograd.grad(T.einsum(w, [0, 1], x, [0, 1], []), w)
said(lambda: T.einsum(x, [52, 2], []))
said(lambda: T.einsum(x, [-1, 2], []))
said(lambda: T.einsum(x))
said(lambda: T.einsum("ij"))
said(lambda: T.einsum(3, x))
said(lambda: T.einsum(x, [0, 0, 1]))
said(lambda: T.einsum(x, [0, 1], T.ones(2), [1]))
""",
    "modes": """
n = T.no_grad(); n.__enter__(); a = T.ones(2, requires_grad=True).numpy(); n.__exit__(0, 0, 0); a
w.numpy()
n = T.no_grad(); n.__enter__(); w.unsqueeze_(0); n.__exit__(0, 0, 0); w
w.unsqueeze_(0); w.is_leaf, w.requires_grad, w.shape
w.unsqueeze_(0); (w * w).sum().backward(); w.grad
w.unsqueeze_(0); v = w[0]; (v * v).sum().backward(); w.grad
""",
}

DTYPES = "float16 float32 float64 complex64 complex128 uint8 int8 int16 int32 int64 bool"


def names(T: Any) -> dict[str, Any]:  # as in the programs
    """What the programs read."""
    import copy
    import io
    import operator
    import pickle

    import numpy as np

    words = "add sub mul floordiv mod and_ or_ xor lshift rshift eq ne lt le gt ge"
    operators = [getattr(operator, word) for word in words.split()]

    def ok(op: Any, *operands: Any) -> bool:
        try:
            op(*operands)
        except (RuntimeError, ValueError):
            return False
        return True

    every = [T.tensor([1, 3]).to(getattr(T, name)) for name in DTYPES.split()]

    def kinds(function: Any) -> str:
        """The dtypes that a function of tensors of two dtypes gives; "-" where it refuses."""
        found = []
        for a in every:
            for b in every:
                try:
                    found.append(str(function(a, b).dtype).replace("torch.", ""))
                except (RuntimeError, ValueError):
                    found.append("-")
        return " ".join(found)

    def said(function: Any) -> str:
        """All that an error says."""
        try:
            return str(function())
        except (IndexError, RuntimeError) as error:
            return str(error)

    def refused(function: Any) -> str:
        """The class of an error in PyTorch, where the words are other ones."""
        try:
            return str(function())
        except (TypeError, RuntimeError) as error:
            return (TypeError if isinstance(error, TypeError) else RuntimeError).__name__

    return {
        "kinds": kinds, "ALL": every, "said": said, "refused": refused,
        "T": T, "np": np, "io": io, "NAMES": DTYPES.split(), "copy": copy,
        "pickle": pickle, "F": T.nn.functional, "ok": ok, "e": T.zeros(0),
        "OPERATORS": operators,
        "u": T.tensor([1, 2, 0], dtype=T.uint8), "s": T.tensor([1, -2, 300], dtype=T.int16),
        "x": T.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        "w": T.tensor([1.0, 2.0], requires_grad=True),
        "Z": T.tensor([[1 + 2j, 0.5], [0.3j, 1 - 1j]]), "M": T.tensor([[3.0, 1.0], [2.0, 5.0]]),
        "N": T.tensor([[3, 1], [2, 5]]),
        "NAMED": ["linalg_eigh", "linalg_qr", "linalg_inv_ex", "slogdet", "qr", "svd", "max"],
        "COUNT": "num_batches_tracked", "MEAN": "running_mean", "VAR": "running_var",
        "i": T.tensor([1, 0]), "z": T.tensor([1 + 2j, 3 - 1j]), "b": T.tensor([True, False]),
    }  # fmt: skip


def outcome(T: Any, program: str) -> str:
    """What a program makes."""
    *statements, expression = program.split("; ")
    scope = names(T)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for statement in statements:
                exec(statement, scope)
            return text(eval(expression, scope))
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split()[:6])}"


def text(found: Any) -> str:
    """A result, without what printing is free to choose."""
    if type(found) in (tuple, list):
        return f"{type(found).__name__}({', '.join(map(text, found))})"
    if isinstance(getattr(found, "requires_grad", None), bool):
        with contextlib.suppress(Exception):
            found = found.resolve_conj()
        values = [round(v, 4) for v in found.detach().double().flatten().tolist()] if (
            not found.is_complex()
        ) else found.detach().flatten().tolist()  # fmt: skip
        return f"{found.dtype} {list(found.shape)} {values} {found.requires_grad}"
    return str(found)


def all_programs() -> list[tuple[str, str]]:
    """Topic and program."""
    return [
        (topic, program) for topic, lines in PROGRAMS.items() for program in lines.split("\n")[1:-1]
    ]


if __name__ == "__main__":
    import torch

    answers = {program: outcome(torch, program) for _, program in all_programs()}
    DATA.write_text(json.dumps(answers, indent=1) + "\n")
