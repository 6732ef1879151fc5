"""``jax.config``: which of JAX's settings work here, and what others say.

A setting either works, by a setting of functrans; or it is known and changes nothing, of which
other values than JAX's default warn where they would change results; or it is refused.

Layer: ``compat``.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from functrans.core.boundary import boundary, shorten, warn
from functrans.core.state import config as functrans_config
from functrans.debugging.watching import Watch

Function = TypeVar("Function", bound=Callable[..., Any])

_WORKING: dict[str, object] = {
    "jax_debug_nans": False,
    "jax_debug_infs": False,
    "jax_disable_jit": False,
    "jax_enable_checks": False,
    "jax_explain_cache_misses": False,
    "jax_log_compiles": False,
    "jax_traceback_filtering": "auto",
}
_REASONS: dict[str, tuple[object, str]] = {
    "jax_enable_x64": (True, "dtypes are those that are asked for, float64 by default"),
    "jax_explicit_x64_dtypes": ("warn", "dtypes are those that are asked for"),
    "jax_numpy_dtype_promotion": ("standard", "promotion is NumPy's"),
    "jax_numpy_rank_promotion": ("allow", "arrays broadcast as NumPy's"),
    "jax_check_tracer_leaks": (False, "a traced value that escaped raises where it is used"),
    "jax_debug_key_reuse": (False, "keys are arrays, whose uses are not counted"),
    "jax_default_prng_impl": ("threefry2x32", "keys are those of threefry2x32"),
    "jax_enable_custom_prng": (False, "keys are uint32[2]"),
    "jax_legacy_prng_key": ("allow", "keys are uint32[2]"),
    "jax_threefry_partitionable": (True, "random numbers are those of the default"),
    "jax_random_seed_offset": (0, "random numbers are those of the default"),
    "jax_high_dynamic_range_gumbel": (False, "random numbers are those of the default"),
    "jax_error_checking_behavior_divide": ("ignore", "use jax_debug_infs"),
    "jax_error_checking_behavior_nan": ("ignore", "use jax_debug_nans"),
    "jax_error_checking_behavior_oob": ("ignore", "an index out of bounds raises"),
    "jax_no_tracing": (False, "functions are traced when they are"),
    "jax_num_cpu_devices": (-1, "there is one device, the CPU"),
    "jax_transfer_guard": (None, "there is one memory"),
}
"""Default, and why other values change nothing."""
_UNUSED = (
    "array_garbage_collection_guard captured_constants_report_frames captured_constants_warn_bytes"
    " check_static_indices compilation_cache_check_contents compilation_cache_dir"
    " compilation_cache_include_metadata_in_key compilation_cache_max_size"
    " compiler_detailed_logging_min_ops compiler_enable_remat_pass cpu_collectives_implementation"
    " cpu_enable_async_dispatch cuda_visible_devices debug_log_modules default_matmul_precision"
    " disable_bwd_checks disable_most_optimizations disable_vmap_shmap_error dump_ir_modes"
    " dump_ir_to embedded_constants_max_bytes enable_compilation_cache enable_pgle"
    " exec_time_optimization_effort hlo_source_file_canonicalization_regex"
    " include_debug_info_in_dumps include_full_tracebacks_in_locations log_checkpoint_residuals"
    " logging_level memory_fitting_effort memory_fitting_level optimization_level"
    " persistent_cache_enable_xla_caches persistent_cache_min_compile_time_secs"
    " persistent_cache_min_entry_size_bytes pprint_use_color raise_persistent_cache_errors"
    " rocm_visible_devices softmax_custom_jvp traceback_in_locations_limit"
    " tracer_error_num_traceback_frames use_direct_linearize use_magma use_shardy_partitioner"
)
"""Settings of speed, caches, memory, devices and diagnostics: any value is kept."""
_OF_DEVICES = ("jax_platforms", "jax_platform_name", "jax_default_device", "jax_xla_backend")

_DEFAULTS: Mapping[str, object] = {
    **_WORKING,
    **{name: default for name, (default, _) in _REASONS.items()},
    **{f"jax_{name}": None for name in _UNUSED.split()},
    **dict.fromkeys(_OF_DEVICES),
    "jax_platforms": "cpu",
    "jax_platform_name": "cpu",
}

_within: ContextVar[Mapping[str, object]] = ContextVar("functrans_jax_settings", default={})  # noqa: B039  # never changed
"""Values of the ``with`` blocks around."""


class Config:
    """``jax.config``: settings by name.

    Example:
      >>> import functrans.compat.jax as jax
      >>> jax.config.update("jax_debug_nans", True)
      >>> jax.config.jax_debug_nans
      True
      >>> jax.config.update("jax_debug_nans", False)
    """

    def __init__(self) -> None:
        object.__setattr__(self, "_given", {})

    @property
    def values(self) -> dict[str, object]:
        """All settings."""
        return {**_DEFAULTS, **self._given, **_within.get()}

    def __getattr__(self, name: str) -> Any:
        """A setting."""
        key = "jax_enable_x64" if name == "x64_enabled" else name
        if key not in _DEFAULTS:
            raise AttributeError(
                f"jax.config has no setting {name!r}; jax.config.values has all",
                name=name,
                obj=self,
            )
        return self.values[key]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"settings are changed by jax.config.update({name!r}, {value!r})")

    def __dir__(self) -> list[str]:
        """Methods and settings."""
        return sorted({*super().__dir__(), *_DEFAULTS})

    @boundary
    def update(self, name: str, value: object) -> None:
        """Change a setting, for the process.

        Raises:
          AttributeError: there is none of this name.
          RuntimeError: it asks for another device than the CPU.
          ValueError: the value is none that the setting has.
        """
        value = _checked(name, value)
        if name == "jax_enable_x64":
            return
        self._given[name] = value
        _log(self.values)

    def read(self, name: str) -> object:
        """A setting."""
        return getattr(self, name)

    def parse_flags_with_absl(self) -> None:
        """Nothing: there are no flags of a command line."""

    def is_changed(self) -> bool:
        """Whether a setting was given."""
        return bool(self._given or _within.get())

    def in_force(self) -> dict[str, Any]:
        """Settings of functrans that those of JAX ask for."""
        values = {**self._given, **_within.get()}
        if not values:
            return values
        found: dict[str, Any] = {}
        nan, inf = values.get("jax_debug_nans", False), values.get("jax_debug_infs", False)
        if nan or inf:
            found["nan_watch"] = Watch(bool(nan), bool(inf))
        if values.get("jax_disable_jit"):
            found["jit"] = False
        if values.get("jax_enable_checks"):
            found["check_jaxprs"] = True
        if values.get("jax_traceback_filtering") == "off":
            found["traceback"] = "full"
        return found


def _checked(name: str, value: object) -> object:
    """A value that a setting may have; warns if it changes nothing that it would change in JAX."""
    if name not in _DEFAULTS:
        raise AttributeError(f"Unrecognized config option: {name}")
    default = _DEFAULTS[name]
    if isinstance(default, bool):
        if value is not None and not isinstance(value, (bool, int)):
            raise ValueError(f"jax.config: {name} must be True or False, got {value!r}")
        value = default if value is None else bool(value)
    if name in _OF_DEVICES and value and "cpu" not in str(value).lower():
        raise RuntimeError(f"jax.config: {name}={value!r}: functrans computes on the CPU")
    if name in _REASONS and value != default:
        warn(f"{name}={value!r} changes nothing: {_REASONS[name][1]}")
    return value


_handler = logging.StreamHandler()


def _log(values: Mapping[str, object]) -> None:
    """Write records of compilations to the standard error, or no more."""
    logger = logging.getLogger("functrans.jit")
    is_on = bool(values["jax_log_compiles"] or values["jax_explain_cache_misses"])
    if is_on == (_handler in logger.handlers):
        return
    if is_on:
        logger.addHandler(_handler)
        logger.setLevel(logging.INFO)
    else:
        logger.removeHandler(_handler)
        logger.setLevel(logging.NOTSET)


config = Config()


def shorten_as_set(error: Exception) -> None:
    """``shorten``, as ``jax_traceback_filtering`` says."""
    with functrans_config(**config.in_force()):
        shorten(error)


def edge(function: Function) -> Function:
    """A function whose errors are shortened."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            shorten_as_set(error)
            raise

    return call  # type: ignore[return-value]  # it has the signature of Function


class Setting:
    """A setting as a name of ``jax``: ``with jax.debug_nans(True): ...``, or a decorator.

    Args:
      name: the setting.
      default: the value of a call without one.
    """

    def __init__(self, name: str, default: object = None) -> None:
        self._name = name
        self._default = default

    @property
    def value(self) -> object:
        """The value in force."""
        return config.values[self._name]

    @boundary
    def __call__(self, *values: object, **named: object) -> AbstractContextManager[None]:
        """A ``with`` block in which the setting has a value."""
        given = (*values, *named.values())
        if not given and self._default is None:
            raise TypeError(f"with {self._name[4:]}(value): the value is missing")
        (value,) = given or (self._default,)
        return self._set(_checked(self._name, value))

    @contextmanager
    def _set(self, value: object) -> Iterator[None]:
        token = _within.set({**_within.get(), self._name: value})
        try:
            _log(config.values)
            with functrans_config(**config.in_force()):
                yield
        finally:
            _within.reset(token)
            _log(config.values)

    def __repr__(self) -> str:
        """``<jax_debug_nans: False>``."""
        return f"<{self._name}: {self.value!r}>"


check_tracer_leaks = Setting("jax_check_tracer_leaks", True)
checking_leaks = check_tracer_leaks
debug_infs = Setting("jax_debug_infs")
debug_key_reuse = Setting("jax_debug_key_reuse")
debug_nans = Setting("jax_debug_nans")
default_device = Setting("jax_default_device")
default_matmul_precision = Setting("jax_default_matmul_precision")
default_prng_impl = Setting("jax_default_prng_impl")
disable_jit = Setting("jax_disable_jit", True)
enable_checks = Setting("jax_enable_checks")
enable_x64 = Setting("jax_enable_x64", True)
explain_cache_misses = Setting("jax_explain_cache_misses")
legacy_prng_key = Setting("jax_legacy_prng_key")
log_compiles = Setting("jax_log_compiles")
no_tracing = Setting("jax_no_tracing", True)
numpy_dtype_promotion = Setting("jax_numpy_dtype_promotion")
numpy_rank_promotion = Setting("jax_numpy_rank_promotion")
threefry_partitionable = Setting("jax_threefry_partitionable")
transfer_guard = Setting("jax_transfer_guard")
