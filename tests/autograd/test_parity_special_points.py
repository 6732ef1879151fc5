"""Values and derivatives against PyTorch at special points: zeros, ties, thresholds, extremes, NaN.

Each case is an expression in ``T``, the namespace of torch or ``functrans.compat.torch``, in ``F``,
its ``nn.functional``, and in the operands ``X`` and ``Y``. Values and first derivatives are the
same everywhere; second ones where torch's are finite. What differs on purpose is in ``DIFFERENCES``
with the reason.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import functrans.compat.torch as ft

torch = pytest.importorskip("torch")

inf, nan = math.inf, math.nan

COMMON = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0, 20.0, 20.5, -20.5, 40.0, -40.0,
    100.0, -100.0, 800.0, -800.0, inf, -inf, nan, -1.5,
)  # fmt: skip
EXTREME = {
    "float64": (1e-310, -1e-310, 1e-160, 1e308, -1e308, 1e160, -1e160, 1e-20, -1e-20, 1 - 1e-16),
    "float32": (1e-40, -1e-40, 1e-25, 3e38, -3e38, 1e25, -1e25, 1e-10, -1e-10, 1 - 6e-8),
}
FEW = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, inf, -inf, nan)
FEW_EXTREME = {"float64": (1e308, -1e308), "float32": (3e38, -3e38)}
DTYPES = ("float64", "float32")

METHODS = [
    "abs",
    "neg",
    "sign",
    "sgn",
    "floor",
    "ceil",
    "trunc",
    "round",
    "frac",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "square",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "sigmoid",
    "relu",
    "erf",
    "erfc",
    "erfinv",
    "lgamma",
    "digamma",
    "i0",
    "sinc",
    "deg2rad",
    "rad2deg",
    "nan_to_num",
    "logit",
    "angle",
]

UNARY = [f"X.{name}()" for name in METHODS] + [
    "X.round(decimals=2)",
    "X.logit(0.25)",
    "X.nan_to_num(1.,2.,3.)",
    "X.clamp(-1,1)",
    "X.clamp(min=0)",
    "X.clamp(max=0)",
    "X.clamp(min=1.0,max=-1.0)",
    "X.clamp(min=nan)",
    "X.clamp(min=-inf,max=inf)",
    "X.clamp_min(0.5)",
    "X.clamp_max(0.5)",
    "T.special.erfcx(X)",
    "T.special.ndtr(X)",
    "T.special.ndtri(X)",
    "T.special.log_ndtr(X)",
    "T.special.i0e(X)",
    "T.special.i1(X)",
    "T.special.i1e(X)",
    "T.special.entr(X)",
    "T.polygamma(1,X)",
    "T.polygamma(2,X)",
    "T.mvlgamma(X.abs()+2,2)",
    "X**0",
    "X**1",
    "X**2",
    "X**2.0",
    "X**3",
    "X**0.5",
    "X**1.5",
    "X**-1",
    "X**-2",
    "X**-0.5",
    "X**0.3",
    "X**inf",
    "X**nan",
    "2**X",
    "0**X",
    "0.0**X",
    "1**X",
    "(-1)**X",
    "inf**X",
    "2/X",
    "X/0",
    "X*0",
    "X*inf",
    "X%1",
    "X%0.3",
    "X%inf",
    "T.fmod(X,1)",
    "T.fmod(X,inf)",
    "T.div(X,0.3,rounding_mode='floor')",
    "T.div(X,0.3,rounding_mode='trunc')",
    "T.hypot(X,X)",
    "T.atan2(X,X)",
    "T.frexp(X)[0]",
    "T.where(X>0,X,0)",
    "X.masked_fill(X>0,2.0)",
    "X.sub(1).abs()",
    "F.relu(X)",
    "F.relu6(X)",
    "F.hardtanh(X,-2,2)",
    "F.leaky_relu(X)",
    "F.leaky_relu(X,0.)",
    "F.elu(X)",
    "F.elu(X,0.5)",
    "F.elu(X,-0.5)",
    "F.selu(X)",
    "F.celu(X)",
    "F.celu(X,0.5)",
    "F.gelu(X)",
    "F.gelu(X,approximate='tanh')",
    "F.silu(X)",
    "F.mish(X)",
    "F.softplus(X)",
    "F.softplus(X,2.0)",
    "F.softplus(X,1.0,3.0)",
    "F.softplus(X,0.5,1.0)",
    "F.softsign(X)",
    "F.tanhshrink(X)",
    "F.hardsigmoid(X)",
    "F.hardswish(X)",
    "F.logsigmoid(X)",
    "F.softshrink(X)",
    "F.softshrink(X,1.0)",
    "F.softshrink(X,0.0)",
    "F.hardshrink(X)",
    "F.hardshrink(X,1.0)",
    "F.hardshrink(X,0.0)",
    "F.threshold(X,1.0,5.0)",
    "F.prelu(X,T.tensor([0.25],dtype=X.dtype))",
    "F.binary_cross_entropy_with_logits(X,T.ones_like(X),reduction='none')",
    "F.binary_cross_entropy_with_logits(X,X*0+0.5,reduction='none')",
    "X.softmax(0)",
    "X.cumsum(0)",
    "X.nansum()",
    "X.nanmean()",
]

BINARY = [
    "X+Y",
    "X*Y",
    "X/Y",
    "X**Y",
    "X%Y",
    "T.fmod(X,Y)",
    "T.maximum(X,Y)",
    "T.minimum(X,Y)",
    "T.fmax(X,Y)",
    "T.fmin(X,Y)",
    "T.max(X,Y)",
    "T.atan2(X,Y)",
    "T.hypot(X,Y)",
    "T.logaddexp(X,Y)",
    "T.logaddexp2(X,Y)",
    "T.copysign(X,Y)",
    "T.copysign(X,-0.0)",
    "T.xlogy(X,Y)",
    "T.special.xlog1py(X,Y)",
    "T.div(X,Y,rounding_mode='floor')",
    "T.div(X,Y,rounding_mode='trunc')",
    "T.lerp(X,Y,0.3)",
    "T.lerp(X,Y,0.7)",
    "T.lerp(X,Y,X*0+0.7)",
    "T.addcmul(X,X,Y,value=0.5)",
    "T.addcdiv(X,X,Y,value=0.5)",
    "T.clamp(X,min=Y)",
    "T.clamp(X,max=Y)",
    "T.clamp(X,Y,Y)",
    "T.clamp(X,Y,-Y)",
    "T.clamp_min(X,Y)",
    "T.where(X>Y,X,Y)",
    "T.dist(X,Y)",
    "T.dist(X,Y,1)",
    "F.mse_loss(X,Y,reduction='none')",
    "F.l1_loss(X,Y,reduction='none')",
    "F.smooth_l1_loss(X,Y,reduction='none')",
    "F.smooth_l1_loss(X,Y,reduction='none',beta=0.0)",
    "F.smooth_l1_loss(X,Y,reduction='none',beta=0.5)",
    "F.huber_loss(X,Y,reduction='none')",
    "F.huber_loss(X,Y,reduction='none',delta=2.0)",
    "F.kl_div(X,Y,reduction='none')",
    "F.kl_div(X,Y,reduction='none',log_target=True)",
    "F.binary_cross_entropy_with_logits(X,Y,reduction='none')",
    "F.poisson_nll_loss(X,Y,reduction='none')",
    "F.poisson_nll_loss(X,Y,log_input=False,reduction='none')",
    "F.hinge_embedding_loss(X,Y,reduction='none')",
    "F.margin_ranking_loss(X,Y,T.ones_like(X),reduction='none')",
    "F.margin_ranking_loss(X,Y,T.ones_like(X),margin=1.0,reduction='none')",
]

PROBABILITIES = [
    "F.binary_cross_entropy(X,Y,reduction='none')",
    "F.binary_cross_entropy(X,Y,reduction='none',weight=T.ones_like(X)*2)",
    "F.binary_cross_entropy(X,Y,reduction='sum')",
    "F.binary_cross_entropy(X,Y)",
]

VECTORS: tuple[tuple[float, ...], ...] = (
    (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (0.0, 1.0, 2.0), (0.0, 0.0, 2.0), (-1.0, 1.0, 1.0),
    (1.0, -1.0, -1.0), (nan, 1.0, 2.0), (1.0, nan, nan), (inf, 1.0, 2.0), (inf, inf, 1.0),
    (-inf, -inf, -inf), (-inf, inf, 0.0), (-inf, 1.0, 1.0), (inf, -inf, nan), (0.0, -0.0, 1.0),
    (3.0, 1.0, 3.0), (2.0, 2.0, 1.0), (-3.0, 0.0, -3.0), (inf, inf, inf), (nan, nan, nan), (1.0,),
    (0.0,), (nan,), (inf,), (2.0, 1.0, 2.0, 1.0), (1.0, 2.0, 3.0, 4.0), (800.0, -800.0, 0.0),
)  # fmt: skip

REDUCTIONS = [
    "X.sum()",
    "X.nansum()",
    "X.mean()",
    "X.nanmean()",
    "X.prod()",
    "X.prod(0)",
    "X.var()",
    "X.var(0)",
    "X.var(correction=0)",
    "X.var(correction=5)",
    "X.std()",
    "X.std(0)",
    "X.std(correction=0)",
    "T.var_mean(X)[0]",
    "T.std_mean(X,0)[0]",
    "T.std(X[:,None],1)",
    "X.norm()",
    "X.norm(1)",
    "X.norm(0)",
    "X.norm(3)",
    "X.norm(0.5)",
    "X.norm(1.5)",
    "X.norm(-1)",
    "X.norm(-2)",
    "X.norm(inf)",
    "X.norm(-inf)",
    "T.linalg.vector_norm(X,4)",
    "T.dist(X,X*1)",
    "T.dist(X,X*1,1)",
    "T.dist(X,X*1,inf)",
    "T.renorm(X[None],2,0,1.0)",
    "T.renorm(X[:,None],2,0,1.0)",
    "T.renorm(X[:,None],1,1,1.0)",
    "X.logsumexp(0)",
    "X.softmax(0)",
    "X.log_softmax(0)",
    "F.softmin(X,0)",
    "F.softmax(X,0)",
    "F.log_softmax(X,0)",
    "X.cumsum(0)",
    "X.cumprod(0)",
    "X.max()",
    "X.min()",
    "X.max(0).values",
    "X.min(0).values",
    "X.max(0).indices",
    "X.amax(0)",
    "X.amin()",
    "T.aminmax(X).min",
    "X.argmax()",
    "X.cummax(0).values",
    "X.cummin(0).indices",
    "X.sort().values",
    "X.sort(stable=True).indices",
    "X.sort(descending=True,stable=True).indices",
    "X.topk(1).values",
    "X.kthvalue(1).values",
    "X.median()",
    "X.median(0).values",
    "X.nanmedian()",
    "X.nanmedian(0).values",
    "X.mode().values",
    "X.mode(0).indices",
    "X.quantile(0.5)",
    "X.quantile(0.3)",
    "X.quantile(0.)",
    "X.quantile(1.)",
    "X.quantile(0.4,interpolation='lower')",
    "X.quantile(0.4,interpolation='higher')",
    "X.quantile(0.4,interpolation='nearest')",
    "X.quantile(0.4,interpolation='midpoint')",
    "X.nanquantile(0.5)",
    "X.nanquantile(0.3)",
    "T.cdist(X[:,None],X[:,None]*1)",
    "T.cdist(X[:,None],X[:,None]*1,3.0)",
    "T.cdist(X[:,None],X[:,None]*1,0.5)",
    "F.cosine_similarity(X,X*2,0)",
    "F.cosine_similarity(X,X*0,0)",
    "F.cosine_similarity(X,X*0+1,0)",
    "F.normalize(X,dim=0)",
    "F.normalize(X,p=1,dim=0)",
    "F.normalize(X,p=inf,dim=0)",
    "F.normalize(X,p=3,dim=0)",
    "F.max_pool1d(X[None],len(X))",
    "F.avg_pool1d(X[None],len(X))",
    "F.cross_entropy(X,T.tensor(0))",
    "F.nll_loss(X,T.tensor(0))",
    "F.cross_entropy(X,T.tensor(0),label_smoothing=0.1)",
    "F.mse_loss(X,X*1)",
    "F.l1_loss(X,X*1)",
    "F.smooth_l1_loss(X,X*1)",
    "F.huber_loss(X,X*1)",
    "F.glu(T.cat([X,X]))",
    "X.scatter_reduce(0,T.zeros(len(X),dtype=T.int64),X*1,'mean')",
    "X.clamp(X.min(),X.max())",
]

COMPLEX = (
    0j, 1 + 0j, -1 + 0j, 1j, 1 + 1j, -1 - 0j, complex(0, -0.0), 3 - 4j,
)  # fmt: skip
OF_COMPLEX = [
    f"X.{name}()"
    for name in [
        "abs",
        "angle",
        "sgn",
        "exp",
        "log",
        "reciprocal",
        "square",
        "sin",
        "cos",
        "tan",
        "atan",
        "sinh",
        "cosh",
        "tanh",
    ]
] + [
    "X**2",
    "X**0",
    "X**0.5",
    "2**X",
    "X.norm()",
    "X.norm(1)",
    "X.norm(3)",
    "X.norm(inf)",
    "X.norm(-1)",
    "X.prod()",
]

Where = Callable[..., Any]


def _anywhere(*operands: Any) -> Any:
    return True


def _has_no_number(*operands: Any) -> Any:
    """Operands with NaN or infinities."""
    return not all(np.isfinite(x).all() for x in operands)


def _poles(x: Any) -> Any:
    return (x < 0) & (x == np.floor(x))


_WITHOUT_VALUE = "the value is NaN there, and torch's slope is that of a formula"
_OVERFLOW = "an intermediate result of torch overflows or underflows; the value here does not"
_BY_PRODUCT = "torch divides the product by the element: inf / inf, nan / nan"
_NAN_RULE = "torch's result at NaN is a number, or its slope is"

DIFFERENCES: tuple[tuple[str, str, Where, str], ...] = (
    # code, kinds (v value, g first derivative, s second), where, reason
    ("X.acosh()", "gs", lambda x: x <= -1, _WITHOUT_VALUE),
    ("X.digamma()", "g", _poles, "torch computes the trigamma function at a rounded pole: 1e33"),
    ("X.lgamma()", "s", _poles, "torch computes the trigamma function at a rounded pole: 1e33"),
    ("T.polygamma(1,X)", "v", _poles, "torch computes it at a rounded pole: 1e33"),
    ("T.polygamma(1,X)", "g", np.isinf, "torch has 0 * inf where the limit is 0"),
    ("T.polygamma(2,X)", "vg", np.isinf, "torch has 0 * inf where the limit is 0"),
    ("T.special.ndtr(X)", "v", lambda x: x == -20.5, "torch underflows to 0 at 1e-93"),
    ("T.special.log_ndtr(X)", "s", lambda x: x <= -20.5, "rounding of torch's exponential"),
    ("T.special.erfcx(X)", "s", lambda x: x >= 100, "cancellation in torch"),
    ("T.special.log_ndtr(X)", "g", lambda x: x < -700, "torch's slope is 0 / 0, or rounded before"),
    ("T.special.erfcx(X)", "g", lambda x: x > 1e24, "torch has inf - inf where the limit is 0"),
    ("T.special.i1(X)", "gs", np.isnan, _NAN_RULE),
    ("T.special.i1(X)", "g", lambda x: np.abs(x) >= 100, "torch has inf - inf beyond the range"),
    ("T.special.i1e(X)", "gs", np.isnan, _NAN_RULE),
    ("T.special.i1e(X)", "s", lambda x: np.abs(x) < 1e-9, "torch's slope is constant near 0"),
    ("X.i0()", "s", np.isnan, _NAN_RULE),
    ("X.i0()", "vgs", np.isinf, "torch's value is NaN where the limit is infinite"),
    ("T.special.i1(X)", "vgs", np.isinf, "torch's value is NaN where the limit is infinite"),
    ("X.sinc()", "s", lambda x: np.abs(x) < 1e-9, "torch's slope cancels to 0 near 0"),
    ("X%0.3", "v", lambda x: np.abs(x) > 1e37, _OVERFLOW),
    ("T.hypot(X,X)", "s", lambda x: np.abs(x) < 1e-9, "a difference of large numbers"),
    ("T.atan2(X,X)", "g", lambda x: np.abs(x) < 1e-24, _OVERFLOW),
    ("T.frexp(X)[0]", "g", lambda x: np.abs(x) < 1e-37, _OVERFLOW),
    ("F.hardswish(X)", "v", lambda x: (x == -inf) | (x > 1e37), _OVERFLOW),
    ("F.hardswish(X)", "s", np.isnan, _NAN_RULE),
    ("F.gelu(X)", "v", lambda x: x > 1e37, _OVERFLOW),
    ("F.hardsigmoid(X)", "s", _anywhere, "torch has none"),
    ("X**Y", "s", lambda x, y: y == 0, "torch forgets d/dy of the slope in x where y is 0"),
    ("X**Y", "s", lambda x, y: np.abs(x) > 1e37, _OVERFLOW),
    ("T.logaddexp2(X,Y)", "v", lambda x, y: (x == -1) & (y == -1), "torch rounds 0 to 1e-8"),
    ("X%Y", "v", lambda x, y: np.abs(x) > 1e37, _OVERFLOW),
    ("T.fmod(X,Y)", "v", lambda x, y: np.abs(x) > 1e37, _OVERFLOW),
    ("T.copysign(X,Y)", "g", lambda x, y: ~np.isfinite(x), "torch divides: inf / inf"),
    ("T.copysign(X,-0.0)", "g", lambda x, y: ~np.isfinite(x), "torch divides: inf / inf"),
    ("T.clamp(X,Y,Y)", "g", lambda x, y: x < y,
     "torch gives neither bound the gradient, though its forward derivative is that of the bounds"),
    ("T.clamp(X,Y,-Y)", "g", lambda x, y: (y == 0) & (x < y), "as before: the bounds are equal"),
    ("T.addcdiv(X,X,Y,value=0.5)", "g", lambda x, y: np.abs(y) > 1e37, _OVERFLOW),
    ("F.mse_loss(X,Y,reduction='none')", "g",
     lambda x, y: np.maximum(np.abs(x), np.abs(y)) > 1e37, _OVERFLOW),
    ("F.binary_cross_entropy(*", "s", lambda x, y: x * (1 - x) < 1e-12,
     "torch's second derivative is that of the formula without its bound"),
    ("X.nanmean()", "g", _has_no_number, "torch has 0 / 0 where all elements are NaN"),
    ("X.prod()", "g", _has_no_number, _BY_PRODUCT),
    ("X.prod(0)", "g", _has_no_number, _BY_PRODUCT),
    ("X.cumprod(0)", "gs", _has_no_number, _BY_PRODUCT),
    ("X.var*", "gs", _has_no_number, _WITHOUT_VALUE),
    ("T.var_mean(X)[0]", "gs", _has_no_number, _WITHOUT_VALUE),
    ("X.norm(0.5)", "g", _has_no_number, "torch has 0 * inf at zeros beside infinities"),
    ("X.kthvalue(1).values", "g", _anywhere, "torch leaves open which of equal elements it takes"),
    ("X.mode*", "vg", _has_no_number, "torch leaves the order of NaN open"),
    ("F.normalize(X,p=inf,dim=0)", "g", _has_no_number, "torch has 0 / 0 where one is NaN"),
    ("F.normalize(X,p=3,dim=0)", "g", _has_no_number, "torch has 0 * nan beside infinities"),
    ("F.max_pool1d*", "g", _has_no_number, "torch takes the last NaN, here the first gets it"),
    ("T.linalg.vector_norm(X,4)", "g", _has_no_number, "torch has 0 * nan beside infinities"),
    ("T.dist*", "g", _has_no_number, "torch has 0 * nan beside infinities"),
)  # fmt: skip


def _is_of(code: str, pattern: str) -> bool:
    return code.startswith(pattern[:-1]) if pattern.endswith("*") else code == pattern


def _exempt(code: str, kind: str, operands: dict[str, Any], shape: Any) -> Any:
    """Where a difference is on purpose."""
    found = np.zeros(shape, bool)
    values = [np.array(value) for value in operands.values()]
    for pattern, kinds, where, _ in DIFFERENCES:
        if kind in kinds and _is_of(code, pattern):
            mask = np.asarray(where(*values))
            found = found | (mask if mask.shape in ((), tuple(shape)) else bool(mask.any()))
    return found


def _array(x: Any) -> Any:
    x = x.detach()
    if isinstance(x, torch.Tensor):
        x = torch.zeros(x.shape, dtype=x.dtype) if x._is_zerotensor() else x.resolve_conj()
    return np.asarray(x.numpy())


def _evaluate(T: Any, code: str, operands: dict[str, Any], dtype: str) -> dict[str, Any]:
    """Value, first and second derivatives; second ones are left out where there are none."""
    names = {
        name: T.tensor(list(value), dtype=getattr(T, dtype)).requires_grad_()
        for name, value in operands.items()
    }
    leaves = list(names.values())
    scope = dict(names, T=T, F=T.nn.functional, inf=inf, nan=nan, len=len)

    def made() -> Any:
        return eval(code, scope)

    out = made()
    found = {"v": [_array(out)]}
    if not out.requires_grad:
        return found
    n = max(out.numel(), 1)
    weights = (1.0 + np.arange(n).reshape(tuple(out.shape))) / n
    ct = T.tensor(weights.tolist(), dtype=out.dtype)
    zeros = [np.zeros(np.shape(value)) for value in operands.values()]
    try:
        slopes = T.autograd.grad(out, leaves, ct, create_graph=True, allow_unused=True)
    except RuntimeError:
        slopes = T.autograd.grad(made(), leaves, ct, allow_unused=True)
    found["g"] = [z if g is None else _array(g) for g, z in zip(slopes, zeros, strict=True)]
    used = [g for g in slopes if g is not None and g.requires_grad]
    if used:
        try:
            curvatures = T.autograd.grad(
                used, leaves, [T.ones_like(g) for g in used], allow_unused=True
            )
        except RuntimeError:
            return found
        found["s"] = [z if h is None else _array(h) for h, z in zip(curvatures, zeros, strict=True)]
    elif all(g is not None for g in slopes):
        found["s"] = zeros
    return found


def _tolerances(dtype: str, kind: str) -> tuple[float, float]:
    if kind == "v":
        return (1e-9, 1e-15) if dtype != "float32" else (2e-4, 1e-36)
    return (1e-7, 1e-8) if dtype != "float32" else (1e-3, 1e-5)


def _assert_same(code: str, operands: dict[str, Any], dtype: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # degrees of freedom, sizes
        theirs = _evaluate(torch, code, operands, dtype)
        ours = _evaluate(ft, code, operands, dtype)
    assert ("g" in theirs) == ("g" in ours)
    for kind in theirs:
        if kind not in ours:
            continue
        rtol, atol = _tolerances(dtype, kind)
        for name, expected, actual in zip(operands, theirs[kind], ours[kind], strict=False):
            assert actual.shape == expected.shape
            with np.errstate(all="ignore"):
                is_same = np.isclose(actual, expected, rtol, atol, equal_nan=True)
            if kind == "s":
                is_same = is_same | ~np.isfinite(expected)
            bad = ~is_same & ~_exempt(code, kind, operands, expected.shape)
            assert not bad.any(), (
                f"{kind} in {name}: torch {expected[bad]}, here {actual[bad]}, operands "
                + str(
                    [np.array(v)[bad] if np.shape(v) == bad.shape else v for v in operands.values()]
                )
            )


def _pairs(dtype: str) -> Iterator[tuple[str, list[float]]]:
    points = FEW + FEW_EXTREME[dtype]
    yield "X", [a for a in points for _ in points]
    yield "Y", [b for _ in points for b in points]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("code", UNARY)
def test_functions_of_one_number(code: str, dtype: str) -> None:
    _assert_same(code, {"X": COMMON + EXTREME[dtype]}, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("code", BINARY)
def test_functions_of_two_numbers(code: str, dtype: str) -> None:
    _assert_same(code, dict(_pairs(dtype)), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("code", PROBABILITIES)
def test_cross_entropies_of_saturated_probabilities(code: str, dtype: str) -> None:
    points = (0.0, 1.0, 0.5, EXTREME[dtype][0], EXTREME[dtype][-1], 1e-13, 1e-30)
    targets = (0.0, 1.0, 0.5)
    operands = {
        "X": [x for x in points for _ in targets],
        "Y": [y for _ in points for y in targets],
    }
    _assert_same(code, operands, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("code", REDUCTIONS)
def test_functions_of_vectors(code: str, dtype: str) -> None:
    for vector in VECTORS:
        _assert_same(code, {"X": vector}, dtype)


@pytest.mark.parametrize("code", OF_COMPLEX)
def test_functions_of_complex_numbers(code: str) -> None:
    _assert_same(code, {"X": COMPLEX}, "complex128")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("low", "high"), [(-0.3, 0.7), (2.0, 5.0), (-0.1, 0.1), (1 / 3, 1e3)])
def test_uniform_numbers_have_the_same_bits(low: float, high: float, dtype: str) -> None:
    drawn = []
    for T in (torch, ft):
        T.manual_seed(3)
        drawn.append(T.empty(500, dtype=getattr(T, dtype)).uniform_(low, high).numpy())
    np.testing.assert_array_equal(drawn[1], drawn[0])
