"""Where JAX's names are: module below ``jax`` to rows ``"place: name name public=name"``.

Layer: ``compat``.
"""

from __future__ import annotations

_VALUES = "functrans.compat.jax.values"
_ARRAYS = "functrans.compat.jax.arrays"
_SETTINGS = "functrans.compat.jax.settings"
_DISTRIBUTIONS = (
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma",
    "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "multinomial", "multivariate_normal",
    "nbinom", "norm", "pareto", "poisson", "t", "truncnorm", "uniform", "vonmises",
)  # fmt: skip
_OWN_TREE = "functrans.compat.jax.opaque"
_TREE_UTIL = (
    f"{_OWN_TREE}: tree_all=all tree_broadcast=broadcast tree_flatten=flatten"
    " tree_flatten_with_path=flatten_with_path tree_leaves=leaves"
    " tree_leaves_with_path=leaves_with_path tree_map=map tree_map_with_path=map_with_path"
    " tree_reduce=reduce tree_reduce_associative=reduce_associative tree_structure=structure",
    "functrans.tree: DictKey FlattenedIndexKey GetAttrKey KeyEntry KeyPath Partial PyTreeDef"
    " SequenceKey all_leaves flatten_one_level flatten_one_level_with_keys is_tree_node keystr"
    " register_dataclass register_pytree_node"
    " register_pytree_node_class register_pytree_with_keys register_pytree_with_keys_class"
    " register_static treedef_children treedef_is_leaf treedef_tuple tree_transpose=transpose"
    " tree_unflatten=unflatten",
)

TABLE: dict[str, tuple[str, ...]] = {
    "": (
        f"{_ARRAYS}: Array=AnyArray custom_jvp custom_vjp",
        "functrans: ShapeDtypeStruct checkpoint checkpoint_policies clear_caches"
        " closure_convert"
        " custom_gradient eval_shape float0 grad"
        " hessian hvp jacfwd jacobian jacrev jvp linear_transpose linearize make_jaxpr"
        " named_scope pure_callback remat value_and_grad vjp vmap"
        " print_environment_info=show_versions",
        f"{_VALUES}: Device NamedSharding P=PartitionSpec __version__ __version_info__"
        " block_until_ready default_backend device_count device_get device_put devices"
        " effects_barrier ensure_compile_time_eval jit local_device_count=device_count"
        " local_devices=devices named_call process_index"
        " host_id=process_index process_count=device_count host_count=device_count"
        " pmap shard_map typeof",
        f"{_SETTINGS}: check_tracer_leaks checking_leaks config debug_infs debug_key_reuse"
        " debug_nans default_device default_matmul_precision default_prng_impl disable_jit"
        " enable_checks enable_x64 explain_cache_misses legacy_prng_key log_compiles no_tracing"
        " numpy_dtype_promotion numpy_rank_promotion threefry_partitionable transfer_guard",
        f"{_OWN_TREE}: tree_map=map",
    ),
    "numpy": (
        f"{_VALUES}: matmul dot vdot inner outer tensordot einsum convolve correlate vecdot"
        " all amax amin any fill_diagonal max mean min place prod put put_along_axis std sum var",
        f"{_ARRAYS}: ndarray=AnyArray",
        "numpy: float_=float64 complex_=complex128 character object_ frompyfunc",
        "numpy.exceptions: ComplexWarning",
        "ml_dtypes: bfloat16",
        "functrans.numpy: *",
    ),
    "numpy.linalg": (f"{_VALUES}: cholesky eigh", "functrans.numpy.linalg: *"),
    "numpy.fft": ("functrans.numpy.fft: *",),
    "lax": (f"{_VALUES}: cond", "functrans.lax: *"),
    "lax.linalg": ("functrans.lax.linalg: *",),
    "nn": ("functrans.nn: *",),
    "nn.initializers": ("functrans.nn.initializers: *",),
    "random": (
        f"{_VALUES}: clone key_data key_impl wrap_key_data",
        "functrans.random: *",
    ),
    "tree": (
        f"{_OWN_TREE}: all broadcast flatten flatten_with_path leaves leaves_with_path map"
        " map_with_path reduce reduce_associative structure",
        "functrans.tree: *",
    ),
    "tree_util": _TREE_UTIL,
    "flatten_util": ("functrans.flatten_util: *",),
    "ops": ("functrans.ops: *",),
    "debug": ("functrans.debug: *",),
    "test_util": ("functrans.testing: *",),
    "typing": (f"{_VALUES}: ArrayLike DTypeLike",),
    "dtypes": (
        f"{_VALUES}: canonicalize_dtype extended prng_key scalar_type_of",
        "functrans: float0",
        "functrans.numpy: finfo iinfo issubdtype result_type",
        "ml_dtypes: bfloat16",
    ),
    "errors": (
        "functrans.errors: ConcretizationTypeError=ConcretizationError"
        " NonConcreteBooleanIndexError=ConcretizationError"
        " TracerArrayConversionError=ConcretizationError"
        " TracerBoolConversionError=ConcretizationError"
        " TracerIntegerConversionError=ConcretizationError"
        " UnexpectedTracerError=EscapedTracerError JaxRuntimeError=FunctransError",
        "builtins: JAXTypeError=TypeError JAXIndexError=IndexError",
    ),
    "core": (
        "functrans: Tracer Jaxpr ClosedJaxpr=Jaxpr",
        "functrans.core.avals: ShapedArray AbstractValue=ShapedArray",
        f"{_VALUES}: ensure_compile_time_eval",
    ),
    "custom_batching": ("functrans: custom_vmap sequential_vmap",),
    "custom_derivatives": (
        f"{_ARRAYS}: custom_jvp custom_vjp",
        "functrans: SymbolicZero closure_convert custom_gradient zero_from_primal",
        "functrans.control.rule_conventions: CustomVJPPrimal",
    ),
    "ad_checkpoint": ("functrans: checkpoint checkpoint_name checkpoint_policies remat",),
    "stages": ("functrans.jitted.jit: Wrapped=JitFunction",),
    "sharding": (f"{_VALUES}: Mesh NamedSharding PartitionSpec Sharding",),
    "version": (f"{_VALUES}: __version__ __version_info__",),
    "_src": (),
    "_src.flatten_util": ("functrans.flatten_util: *",),
    "experimental": (f"{_SETTINGS}: enable_x64", "functrans: io_callback"),
    "experimental.checkify": (),
    "experimental.jet": ("functrans: jet",),
    "experimental.ode": ("functrans.scipy.integrate: odeint",),
    "scipy": (),
    "scipy.fft": ("functrans.scipy.fft: *",),
    "scipy.integrate": ("functrans.scipy.integrate: trapezoid",),
    "scipy.interpolate": ("functrans.scipy.interpolate: *",),
    "scipy.linalg": ("functrans.scipy.linalg: *",),
    "scipy.ndimage": ("functrans.scipy.ndimage: *",),
    "scipy.optimize": ("functrans.scipy.optimize: *",),
    "scipy.signal": ("functrans.scipy.signal: *",),
    "scipy.sparse": (),
    "scipy.sparse.linalg": ("functrans.scipy.sparse.linalg: *",),
    "scipy.special": ("functrans.nn: logsumexp", "functrans.scipy.special: *"),
    "scipy.stats": ("functrans.scipy.stats: *",),
    **{f"scipy.stats.{name}": (f"functrans.scipy.stats.{name}: *",) for name in _DISTRIBUTIONS},
}

DROPPED = {
    "numpy.linalg": ("method", "numpy_resid"),
    "random": ("out_sharding", "impl"),
    "scipy.linalg": ("max_squarings", "method", "tol", "upper_triangular"),
}
"""Keywords that functions of a module take and that change nothing here."""
