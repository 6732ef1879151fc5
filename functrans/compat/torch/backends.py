"""``torch.backends``: switches of libraries that compute for torch and not here.

They can be read and set, as programs do at their beginning, and change nothing: results are the
same in each run, and products are not rounded more than their dtype.

Layer: ``compat``.
"""

from __future__ import annotations

from types import ModuleType

from functrans.compat.torch.submodules import add_aliases


def _backend(name: str, **switches: object) -> ModuleType:
    """A module of switches for what is not there."""
    module = ModuleType(
        f"{__name__}.{name}", f"``torch.backends.{name}``: switches without effect."
    )
    vars(module).update(is_available=lambda: False, is_built=lambda: False, **switches)
    return module


_precision = {
    "allow_tf32": False,
    "allow_fp16_reduced_precision_reduction": False,
    "allow_bf16_reduced_precision_reduction": False,
}

add_aliases(
    __name__,
    {
        "cudnn": _backend(
            "cudnn",
            enabled=True,
            benchmark=False,
            benchmark_limit=None,
            deterministic=False,
            allow_tf32=True,
            version=lambda: None,
        ),
        "cuda": _backend("cuda", matmul=_backend("cuda.matmul", **_precision)),
        "mps": _backend("mps"),
        "mkl": _backend("mkl"),
        "mkldnn": _backend("mkldnn", enabled=True),
        "openmp": _backend("openmp"),
    },
)
