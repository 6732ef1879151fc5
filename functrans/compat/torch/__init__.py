"""``functrans.compat.torch``: the names of ``torch`` over functrans.

``import functrans.compat.torch as torch`` runs code that is written for torch: tensors, functions,
factories, ``nn``, ``optim``. Python floats become float32 here (``set_default_dtype``), where
``functrans.autograd`` has float64. Everything lies on the CPU.

Layer: ``compat``.
"""

from __future__ import annotations

import math as _math
import typing as _typing
from importlib import import_module as _import_module
from types import SimpleNamespace as _SimpleNamespace
from typing import Any as _Any

from functrans.autograd.func import vmap as vmap
from functrans.autograd.methods.array_protocol import MISSING as _MISSING
from functrans.autograd.methods.conversion import STRIDED as _STRIDED
from functrans.autograd.methods.conversion import device as device
from functrans.autograd.methods.conversion import layout as layout
from functrans.autograd.methods.conversion import memory_format as memory_format
from functrans.autograd.modes import enable_grad as enable_grad
from functrans.autograd.modes import inference_mode as inference_mode
from functrans.autograd.modes import is_grad_enabled as is_grad_enabled
from functrans.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
from functrans.autograd.modes import no_grad as no_grad
from functrans.autograd.modes import set_grad_enabled as set_grad_enabled
from functrans.autograd.overrides import overridable as _overridable
from functrans.autograd.random import Generator as Generator
from functrans.autograd.random import default_generator as default_generator
from functrans.autograd.random import get_rng_state as get_rng_state
from functrans.autograd.random import initial_seed as initial_seed
from functrans.autograd.random import manual_seed as manual_seed
from functrans.autograd.random import seed as seed
from functrans.autograd.random import set_rng_state as set_rng_state
from functrans.autograd.recording import namespaces as _namespaces
from functrans.autograd.tensors import Tensor as Tensor
from functrans.compat.torch import dtypes as _dtypes
from functrans.compat.torch import functional_names as _functional_names
from functrans.compat.torch import further_names as _further_names
from functrans.compat.torch.dtypes import can_cast as can_cast
from functrans.compat.torch.dtypes import dtype as dtype
from functrans.compat.torch.dtypes import finfo as finfo
from functrans.compat.torch.dtypes import get_default_dtype as get_default_dtype
from functrans.compat.torch.dtypes import iinfo as iinfo
from functrans.compat.torch.dtypes import is_complex as is_complex
from functrans.compat.torch.dtypes import is_floating_point as is_floating_point
from functrans.compat.torch.dtypes import promote_types as promote_types
from functrans.compat.torch.dtypes import result_type as result_type
from functrans.compat.torch.dtypes import set_default_dtype as set_default_dtype
from functrans.compat.torch.not_offered import no_method as _no_method
from functrans.compat.torch.not_offered import not_offered as _not_offered
from functrans.compat.torch.saving import load as load
from functrans.compat.torch.saving import save as save
from functrans.compat.torch.submodules import install as install
from functrans.compat.torch.submodules import install_finder as _install_finder
from functrans.compiler.threads import get_num_threads as get_num_threads
from functrans.compiler.threads import set_num_threads as set_num_threads
from functrans.core.boundary import guard as _guard

if _typing.TYPE_CHECKING:
    from functrans.compat.torch import amp as amp
    from functrans.compat.torch import autograd as autograd
    from functrans.compat.torch import backends as backends
    from functrans.compat.torch import cuda as cuda
    from functrans.compat.torch import distributions as distributions
    from functrans.compat.torch import fft as fft
    from functrans.compat.torch import func as func
    from functrans.compat.torch import jit as jit
    from functrans.compat.torch import linalg as linalg
    from functrans.compat.torch import nn as nn
    from functrans.compat.torch import optim as optim
    from functrans.compat.torch import overrides as overrides
    from functrans.compat.torch import quasirandom as quasirandom
    from functrans.compat.torch import random as random
    from functrans.compat.torch import return_types as return_types
    from functrans.compat.torch import sparse as sparse
    from functrans.compat.torch import special as special
    from functrans.compat.torch import testing as testing
    from functrans.compat.torch import types as types
    from functrans.compat.torch import utils as utils

inf = _math.inf
nan = _math.nan
pi = _math.pi
e = _math.e
newaxis = None
strided = _STRIDED
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
legacy_contiguous_format = contiguous_format

SUBMODULES = (
    "nn", "optim", "utils", "autograd", "func", "linalg", "special", "fft", "cuda", "backends",
    "amp", "distributions", "overrides", "types", "return_types", "jit", "quasirandom", "random",
    "sparse", "testing",
)  # fmt: skip
"""Imported when they are first used."""

FROM_FUNCTIONAL = (
    "adaptive_avg_pool1d", "adaptive_max_pool1d", "alpha_dropout", "avg_pool1d", "batch_norm",
    "bilinear", "celu", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "dropout",
    "embedding", "embedding_bag", "feature_alpha_dropout", "group_norm", "hardshrink",
    "instance_norm", "layer_norm", "max_pool1d", "max_pool1d_with_indices", "max_pool2d",
    "max_pool3d", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "prelu",
    "rms_norm", "rrelu", "rrelu_", "selu", "selu_", "threshold", "threshold_",
)  # fmt: skip
"""Functions of ``nn.functional`` that torch has here, too."""
LOSSES = (
    "binary_cross_entropy_with_logits", "cosine_embedding_loss", "ctc_loss",
    "hinge_embedding_loss", "kl_div", "margin_ranking_loss", "poisson_nll_loss",
    "triplet_margin_loss",
)  # fmt: skip
"""Those whose reduction is a number here."""
FROM_SPARSE = ("dsmm", "sparse_coo_tensor", "spmm")

__version__ = "2.13.0+functrans"
"""The version of torch whose names these are."""
version = _SimpleNamespace(__version__=__version__, cuda=None, hip=None, debug=False)

_install_finder()
_MISSING.append(_no_method)
_namespaces.has_torch = True

globals().update(_functional_names.FUNCTIONS)
globals().update(_further_names.FUNCTIONS)
globals().update(_dtypes.DTYPES)  # last: ``float``, ``int`` and ``bool`` are dtypes in torch
_guard(
    globals(),
    list(globals()),
    homes=("functrans.compat.torch", "functrans.autograd"),
    make=_overridable,
)


def __getattr__(name: str) -> _Any:
    """A submodule, or what another package is needed for, at its first use."""
    if name in SUBMODULES:
        return _import_module(f"{__name__}.{name}")
    if name in FROM_FUNCTIONAL:
        return getattr(_import_module(f"{__name__}.nn.functional"), name)
    if name in LOSSES:
        return getattr(_import_module(f"{__name__}.numbered_losses"), name)
    if name in FROM_SPARSE:
        return getattr(_import_module(f"{__name__}.sparse"), name)
    if name in ("_standard_gamma", "_sample_dirichlet"):
        return getattr(_import_module(f"{__name__}.distributions.sampling"), name)
    if name in ("autocast", "GradScaler"):
        return getattr(_import_module(f"{__name__}.amp"), name)
    if name == "bfloat16":
        try:
            return _dtypes.bfloat16()
        except ImportError as error:
            raise AttributeError(str(error), name=name) from None
    raise _not_offered("torch", name, __name__)


def __dir__() -> list[str]:
    """All names, submodules included."""
    return sorted(
        {
            *globals(),
            *SUBMODULES,
            *FROM_FUNCTIONAL,
            *LOSSES,
            *FROM_SPARSE,
            "autocast",
            "GradScaler",
            "bfloat16",
        }
    )
