"""Where autograd's names are: module below ``autograd`` to rows ``"place: name public=name"``.

Layer: ``compat``.
"""

from __future__ import annotations

_OWN = "functrans.compat.autograd"
_RULES = (
    "def_linear defjvp defjvp_argnum defjvp_argnums defvjp defvjp_argnum defvjp_argnums primitive"
    " notrace_primitive"
)
_DISTRIBUTIONS = (
    "beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t",
)  # fmt: skip

TABLE: dict[str, tuple[str, ...]] = {
    "": (
        f"{_OWN}.operators: checkpoint deriv elementwise_grad grad grad_and_aux grad_named hessian"
        " hessian_tensor_product hessian_vector_product holomorphic_grad jacobian make_ggnvp"
        " make_hvp make_jvp make_vjp multigrad_dict tensor_jacobian_product value_and_grad"
        " vector_jacobian_product",
        f"{_OWN}.rules: isinstance=is_instance primitive type=type_of",
        "builtins: dict list tuple",
    ),
    "differential_operators": (f"{_OWN}.operators: *",),
    "builtins": (
        f"{_OWN}.rules: isinstance=is_instance type=type_of",
        "builtins: dict list tuple",
    ),
    "extend": (
        f"{_OWN}.rules: {_RULES}",
        f"{_OWN}.spaces: VSpace vspace",
        "functrans: Box=Tracer",
    ),
    "core": (
        f"{_OWN}.rules: {_RULES} getval isbox",
        f"{_OWN}.spaces: VSpace vspace",
        f"{_OWN}.operators: make_jvp=pushed make_vjp=pulled",
    ),
    "tracer": (
        f"{_OWN}.rules: getval isbox notrace_primitive primitive",
        "functrans: Box=Tracer",
    ),
    "wrap_util": (f"{_OWN}.operators: unary_to_nary", "functools: wraps"),
    "test_util": (
        f"{_OWN}.tools: check_equivalent check_grads check_jvp check_vjp combo_check scalar_close",
    ),
    "misc": (f"{_OWN}.tools: flatten",),
    "misc.flatten": (f"{_OWN}.tools: flatten flatten_func",),
    "misc.optimizers": (f"{_OWN}.tools: adam rmsprop sgd",),
    "misc.fixed_points": (f"{_OWN}.tools: fixed_point",),
    "numpy": (
        f"{_OWN}.spaces: metadata",
        "numpy: float_=float64 __version__",
        "functrans.numpy: row_stack=vstack",
        "functrans.numpy: *",
    ),
    "numpy.linalg": (f"{_OWN}.tools: cholesky", "functrans.numpy.linalg: *"),
    "numpy.fft": ("functrans.numpy.fft: *",),
    "numpy.random": ("numpy.random: *",),
    "numpy.numpy_boxes": ("functrans: ArrayBox=Tracer",),
    "numpy.numpy_vspaces": (f"{_OWN}.spaces: ArrayVSpace=VSpace ComplexArrayVSpace=VSpace",),
    "scipy": (),
    "scipy.integrate": ("functrans.scipy.integrate: *",),
    "scipy.linalg": ("functrans.scipy.linalg: *",),
    "scipy.misc": ("functrans.scipy.special: logsumexp",),
    "scipy.signal": ("functrans.scipy.signal: *",),
    "scipy.special": ("functrans.scipy.special: *",),
    "scipy.stats": ("functrans.scipy.stats: *",),
    **{
        f"scipy.stats.{name}": (f"functrans.scipy.stats.{name}: *", f"scipy.stats.{name}: rvs")
        for name in _DISTRIBUTIONS
    },
}
