"""``torch.nn.functional``: activations, losses and layers as functions.

Re-exports what ``activations``, ``losses``, ``layers`` and ``convolutions`` define.

Layer: ``compat``.
"""

from typing import Any as _Any

from functrans.compat.torch.nn.activations import celu as celu
from functrans.compat.torch.nn.activations import elu as elu
from functrans.compat.torch.nn.activations import gelu as gelu
from functrans.compat.torch.nn.activations import glu as glu
from functrans.compat.torch.nn.activations import hardshrink as hardshrink
from functrans.compat.torch.nn.activations import hardsigmoid as hardsigmoid
from functrans.compat.torch.nn.activations import hardswish as hardswish
from functrans.compat.torch.nn.activations import hardtanh as hardtanh
from functrans.compat.torch.nn.activations import leaky_relu as leaky_relu
from functrans.compat.torch.nn.activations import log_softmax as log_softmax
from functrans.compat.torch.nn.activations import logsigmoid as logsigmoid
from functrans.compat.torch.nn.activations import mish as mish
from functrans.compat.torch.nn.activations import prelu as prelu
from functrans.compat.torch.nn.activations import relu as relu
from functrans.compat.torch.nn.activations import relu6 as relu6
from functrans.compat.torch.nn.activations import relu_ as relu_
from functrans.compat.torch.nn.activations import selu as selu
from functrans.compat.torch.nn.activations import sigmoid as sigmoid
from functrans.compat.torch.nn.activations import silu as silu
from functrans.compat.torch.nn.activations import softmax as softmax
from functrans.compat.torch.nn.activations import softmin as softmin
from functrans.compat.torch.nn.activations import softplus as softplus
from functrans.compat.torch.nn.activations import softshrink as softshrink
from functrans.compat.torch.nn.activations import softsign as softsign
from functrans.compat.torch.nn.activations import swish as swish
from functrans.compat.torch.nn.activations import tanh as tanh
from functrans.compat.torch.nn.activations import tanhshrink as tanhshrink
from functrans.compat.torch.nn.activations import threshold as threshold
from functrans.compat.torch.nn.attention import (
    multi_head_attention_forward as multi_head_attention_forward,
)
from functrans.compat.torch.nn.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from functrans.compat.torch.nn.convolutions import adaptive_avg_pool1d as adaptive_avg_pool1d
from functrans.compat.torch.nn.convolutions import adaptive_avg_pool2d as adaptive_avg_pool2d
from functrans.compat.torch.nn.convolutions import avg_pool1d as avg_pool1d
from functrans.compat.torch.nn.convolutions import avg_pool2d as avg_pool2d
from functrans.compat.torch.nn.convolutions import conv1d as conv1d
from functrans.compat.torch.nn.convolutions import conv2d as conv2d
from functrans.compat.torch.nn.convolutions import conv3d as conv3d
from functrans.compat.torch.nn.convolutions import conv_transpose1d as conv_transpose1d
from functrans.compat.torch.nn.convolutions import conv_transpose2d as conv_transpose2d
from functrans.compat.torch.nn.convolutions import max_pool1d as max_pool1d
from functrans.compat.torch.nn.convolutions import max_pool2d as max_pool2d
from functrans.compat.torch.nn.layers import batch_norm as batch_norm
from functrans.compat.torch.nn.layers import bilinear as bilinear
from functrans.compat.torch.nn.layers import cosine_similarity as cosine_similarity
from functrans.compat.torch.nn.layers import dropout as dropout
from functrans.compat.torch.nn.layers import dropout1d as dropout1d
from functrans.compat.torch.nn.layers import dropout2d as dropout2d
from functrans.compat.torch.nn.layers import embedding as embedding
from functrans.compat.torch.nn.layers import group_norm as group_norm
from functrans.compat.torch.nn.layers import instance_norm as instance_norm
from functrans.compat.torch.nn.layers import layer_norm as layer_norm
from functrans.compat.torch.nn.layers import linear as linear
from functrans.compat.torch.nn.layers import normalize as normalize
from functrans.compat.torch.nn.layers import one_hot as one_hot
from functrans.compat.torch.nn.layers import pad as pad
from functrans.compat.torch.nn.layers import rms_norm as rms_norm
from functrans.compat.torch.nn.losses import binary_cross_entropy as binary_cross_entropy
from functrans.compat.torch.nn.losses import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from functrans.compat.torch.nn.losses import cross_entropy as cross_entropy
from functrans.compat.torch.nn.losses import hinge_embedding_loss as hinge_embedding_loss
from functrans.compat.torch.nn.losses import huber_loss as huber_loss
from functrans.compat.torch.nn.losses import kl_div as kl_div
from functrans.compat.torch.nn.losses import l1_loss as l1_loss
from functrans.compat.torch.nn.losses import margin_ranking_loss as margin_ranking_loss
from functrans.compat.torch.nn.losses import mse_loss as mse_loss
from functrans.compat.torch.nn.losses import nll_loss as nll_loss
from functrans.compat.torch.nn.losses import poisson_nll_loss as poisson_nll_loss
from functrans.compat.torch.nn.losses import smooth_l1_loss as smooth_l1_loss
from functrans.compat.torch.nn.losses import soft_margin_loss as soft_margin_loss
from functrans.compat.torch.nn.margin_losses import cosine_embedding_loss as cosine_embedding_loss
from functrans.compat.torch.nn.margin_losses import ctc_loss as ctc_loss
from functrans.compat.torch.nn.margin_losses import gaussian_nll_loss as gaussian_nll_loss
from functrans.compat.torch.nn.margin_losses import multi_margin_loss as multi_margin_loss
from functrans.compat.torch.nn.margin_losses import multilabel_margin_loss as multilabel_margin_loss
from functrans.compat.torch.nn.margin_losses import (
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
)
from functrans.compat.torch.nn.margin_losses import pairwise_distance as pairwise_distance
from functrans.compat.torch.nn.margin_losses import pdist as pdist
from functrans.compat.torch.nn.margin_losses import triplet_margin_loss as triplet_margin_loss
from functrans.compat.torch.nn.margin_losses import (
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from functrans.compat.torch.nn.noise import alpha_dropout as alpha_dropout
from functrans.compat.torch.nn.noise import celu_ as celu_
from functrans.compat.torch.nn.noise import dropout3d as dropout3d
from functrans.compat.torch.nn.noise import elu_ as elu_
from functrans.compat.torch.nn.noise import embedding_bag as embedding_bag
from functrans.compat.torch.nn.noise import feature_alpha_dropout as feature_alpha_dropout
from functrans.compat.torch.nn.noise import gumbel_softmax as gumbel_softmax
from functrans.compat.torch.nn.noise import hardtanh_ as hardtanh_
from functrans.compat.torch.nn.noise import leaky_relu_ as leaky_relu_
from functrans.compat.torch.nn.noise import rrelu as rrelu
from functrans.compat.torch.nn.noise import rrelu_ as rrelu_
from functrans.compat.torch.nn.noise import selu_ as selu_
from functrans.compat.torch.nn.noise import threshold_ as threshold_
from functrans.compat.torch.nn.pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
from functrans.compat.torch.nn.pooling import adaptive_max_pool1d as adaptive_max_pool1d
from functrans.compat.torch.nn.pooling import (
    adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices,
)
from functrans.compat.torch.nn.pooling import adaptive_max_pool2d as adaptive_max_pool2d
from functrans.compat.torch.nn.pooling import (
    adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices,
)
from functrans.compat.torch.nn.pooling import adaptive_max_pool3d as adaptive_max_pool3d
from functrans.compat.torch.nn.pooling import (
    adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices,
)
from functrans.compat.torch.nn.pooling import avg_pool3d as avg_pool3d
from functrans.compat.torch.nn.pooling import conv_transpose3d as conv_transpose3d
from functrans.compat.torch.nn.pooling import local_response_norm as local_response_norm
from functrans.compat.torch.nn.pooling import lp_pool1d as lp_pool1d
from functrans.compat.torch.nn.pooling import lp_pool2d as lp_pool2d
from functrans.compat.torch.nn.pooling import lp_pool3d as lp_pool3d
from functrans.compat.torch.nn.pooling import max_pool1d_with_indices as max_pool1d_with_indices
from functrans.compat.torch.nn.pooling import max_pool2d_with_indices as max_pool2d_with_indices
from functrans.compat.torch.nn.pooling import max_pool3d as max_pool3d
from functrans.compat.torch.nn.pooling import max_pool3d_with_indices as max_pool3d_with_indices
from functrans.compat.torch.nn.pooling import max_unpool1d as max_unpool1d
from functrans.compat.torch.nn.pooling import max_unpool2d as max_unpool2d
from functrans.compat.torch.nn.pooling import max_unpool3d as max_unpool3d
from functrans.compat.torch.nn.resampling import affine_grid as affine_grid
from functrans.compat.torch.nn.resampling import channel_shuffle as channel_shuffle
from functrans.compat.torch.nn.resampling import fold as fold
from functrans.compat.torch.nn.resampling import grid_sample as grid_sample
from functrans.compat.torch.nn.resampling import interpolate as interpolate
from functrans.compat.torch.nn.resampling import pixel_shuffle as pixel_shuffle
from functrans.compat.torch.nn.resampling import pixel_unshuffle as pixel_unshuffle
from functrans.compat.torch.nn.resampling import unfold as unfold
from functrans.compat.torch.nn.resampling import upsample as upsample
from functrans.compat.torch.nn.resampling import upsample_bilinear as upsample_bilinear
from functrans.compat.torch.nn.resampling import upsample_nearest as upsample_nearest
from functrans.compat.torch.not_offered import not_offered as _not_offered

__path__: list[str] = []  # import statements ask for what is not here, too


def __getattr__(name: str) -> _Any:
    """Nothing beside the names above.

    Raises:
      AttributeError: always.
    """
    raise _not_offered("torch.nn.functional", name, __name__)
