"""``torch.nn``: modules, parameters, their functional forms, initial values.

Layer: ``compat``.
"""

from typing import Any as _Any

from functrans.compat.torch.nn import functional as functional
from functrans.compat.torch.nn import init as init
from functrans.compat.torch.nn import modules as modules
from functrans.compat.torch.nn import parameter as parameter
from functrans.compat.torch.nn import utils as utils
from functrans.compat.torch.nn.modules import CELU as CELU
from functrans.compat.torch.nn.modules import ELU as ELU
from functrans.compat.torch.nn.modules import GELU as GELU
from functrans.compat.torch.nn.modules import GLU as GLU
from functrans.compat.torch.nn.modules import GRU as GRU
from functrans.compat.torch.nn.modules import LSTM as LSTM
from functrans.compat.torch.nn.modules import RNN as RNN
from functrans.compat.torch.nn.modules import SELU as SELU
from functrans.compat.torch.nn.modules import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from functrans.compat.torch.nn.modules import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from functrans.compat.torch.nn.modules import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from functrans.compat.torch.nn.modules import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from functrans.compat.torch.nn.modules import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from functrans.compat.torch.nn.modules import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from functrans.compat.torch.nn.modules import AlphaDropout as AlphaDropout
from functrans.compat.torch.nn.modules import AvgPool1d as AvgPool1d
from functrans.compat.torch.nn.modules import AvgPool2d as AvgPool2d
from functrans.compat.torch.nn.modules import AvgPool3d as AvgPool3d
from functrans.compat.torch.nn.modules import BatchNorm1d as BatchNorm1d
from functrans.compat.torch.nn.modules import BatchNorm2d as BatchNorm2d
from functrans.compat.torch.nn.modules import BatchNorm3d as BatchNorm3d
from functrans.compat.torch.nn.modules import BCELoss as BCELoss
from functrans.compat.torch.nn.modules import BCEWithLogitsLoss as BCEWithLogitsLoss
from functrans.compat.torch.nn.modules import Bilinear as Bilinear
from functrans.compat.torch.nn.modules import ChannelShuffle as ChannelShuffle
from functrans.compat.torch.nn.modules import CircularPad1d as CircularPad1d
from functrans.compat.torch.nn.modules import CircularPad2d as CircularPad2d
from functrans.compat.torch.nn.modules import CircularPad3d as CircularPad3d
from functrans.compat.torch.nn.modules import ConstantPad1d as ConstantPad1d
from functrans.compat.torch.nn.modules import ConstantPad2d as ConstantPad2d
from functrans.compat.torch.nn.modules import ConstantPad3d as ConstantPad3d
from functrans.compat.torch.nn.modules import Conv1d as Conv1d
from functrans.compat.torch.nn.modules import Conv2d as Conv2d
from functrans.compat.torch.nn.modules import Conv3d as Conv3d
from functrans.compat.torch.nn.modules import ConvTranspose1d as ConvTranspose1d
from functrans.compat.torch.nn.modules import ConvTranspose2d as ConvTranspose2d
from functrans.compat.torch.nn.modules import ConvTranspose3d as ConvTranspose3d
from functrans.compat.torch.nn.modules import CosineEmbeddingLoss as CosineEmbeddingLoss
from functrans.compat.torch.nn.modules import CosineSimilarity as CosineSimilarity
from functrans.compat.torch.nn.modules import CrossEntropyLoss as CrossEntropyLoss
from functrans.compat.torch.nn.modules import CTCLoss as CTCLoss
from functrans.compat.torch.nn.modules import Dropout as Dropout
from functrans.compat.torch.nn.modules import Dropout1d as Dropout1d
from functrans.compat.torch.nn.modules import Dropout2d as Dropout2d
from functrans.compat.torch.nn.modules import Dropout3d as Dropout3d
from functrans.compat.torch.nn.modules import Embedding as Embedding
from functrans.compat.torch.nn.modules import EmbeddingBag as EmbeddingBag
from functrans.compat.torch.nn.modules import FeatureAlphaDropout as FeatureAlphaDropout
from functrans.compat.torch.nn.modules import Flatten as Flatten
from functrans.compat.torch.nn.modules import Fold as Fold
from functrans.compat.torch.nn.modules import GaussianNLLLoss as GaussianNLLLoss
from functrans.compat.torch.nn.modules import GroupNorm as GroupNorm
from functrans.compat.torch.nn.modules import GRUCell as GRUCell
from functrans.compat.torch.nn.modules import Hardshrink as Hardshrink
from functrans.compat.torch.nn.modules import Hardsigmoid as Hardsigmoid
from functrans.compat.torch.nn.modules import Hardswish as Hardswish
from functrans.compat.torch.nn.modules import Hardtanh as Hardtanh
from functrans.compat.torch.nn.modules import HingeEmbeddingLoss as HingeEmbeddingLoss
from functrans.compat.torch.nn.modules import HuberLoss as HuberLoss
from functrans.compat.torch.nn.modules import Identity as Identity
from functrans.compat.torch.nn.modules import InstanceNorm1d as InstanceNorm1d
from functrans.compat.torch.nn.modules import InstanceNorm2d as InstanceNorm2d
from functrans.compat.torch.nn.modules import InstanceNorm3d as InstanceNorm3d
from functrans.compat.torch.nn.modules import KLDivLoss as KLDivLoss
from functrans.compat.torch.nn.modules import L1Loss as L1Loss
from functrans.compat.torch.nn.modules import LayerNorm as LayerNorm
from functrans.compat.torch.nn.modules import LeakyReLU as LeakyReLU
from functrans.compat.torch.nn.modules import Linear as Linear
from functrans.compat.torch.nn.modules import LocalResponseNorm as LocalResponseNorm
from functrans.compat.torch.nn.modules import LogSigmoid as LogSigmoid
from functrans.compat.torch.nn.modules import LogSoftmax as LogSoftmax
from functrans.compat.torch.nn.modules import LPPool1d as LPPool1d
from functrans.compat.torch.nn.modules import LPPool2d as LPPool2d
from functrans.compat.torch.nn.modules import LPPool3d as LPPool3d
from functrans.compat.torch.nn.modules import LSTMCell as LSTMCell
from functrans.compat.torch.nn.modules import MarginRankingLoss as MarginRankingLoss
from functrans.compat.torch.nn.modules import MaxPool1d as MaxPool1d
from functrans.compat.torch.nn.modules import MaxPool2d as MaxPool2d
from functrans.compat.torch.nn.modules import MaxPool3d as MaxPool3d
from functrans.compat.torch.nn.modules import MaxUnpool1d as MaxUnpool1d
from functrans.compat.torch.nn.modules import MaxUnpool2d as MaxUnpool2d
from functrans.compat.torch.nn.modules import MaxUnpool3d as MaxUnpool3d
from functrans.compat.torch.nn.modules import Mish as Mish
from functrans.compat.torch.nn.modules import Module as Module
from functrans.compat.torch.nn.modules import ModuleDict as ModuleDict
from functrans.compat.torch.nn.modules import ModuleList as ModuleList
from functrans.compat.torch.nn.modules import MSELoss as MSELoss
from functrans.compat.torch.nn.modules import MultiheadAttention as MultiheadAttention
from functrans.compat.torch.nn.modules import MultiLabelMarginLoss as MultiLabelMarginLoss
from functrans.compat.torch.nn.modules import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from functrans.compat.torch.nn.modules import MultiMarginLoss as MultiMarginLoss
from functrans.compat.torch.nn.modules import NLLLoss as NLLLoss
from functrans.compat.torch.nn.modules import PairwiseDistance as PairwiseDistance
from functrans.compat.torch.nn.modules import ParameterDict as ParameterDict
from functrans.compat.torch.nn.modules import ParameterList as ParameterList
from functrans.compat.torch.nn.modules import PixelShuffle as PixelShuffle
from functrans.compat.torch.nn.modules import PixelUnshuffle as PixelUnshuffle
from functrans.compat.torch.nn.modules import PoissonNLLLoss as PoissonNLLLoss
from functrans.compat.torch.nn.modules import PReLU as PReLU
from functrans.compat.torch.nn.modules import ReflectionPad1d as ReflectionPad1d
from functrans.compat.torch.nn.modules import ReflectionPad2d as ReflectionPad2d
from functrans.compat.torch.nn.modules import ReflectionPad3d as ReflectionPad3d
from functrans.compat.torch.nn.modules import ReLU as ReLU
from functrans.compat.torch.nn.modules import ReLU6 as ReLU6
from functrans.compat.torch.nn.modules import ReplicationPad1d as ReplicationPad1d
from functrans.compat.torch.nn.modules import ReplicationPad2d as ReplicationPad2d
from functrans.compat.torch.nn.modules import ReplicationPad3d as ReplicationPad3d
from functrans.compat.torch.nn.modules import RMSNorm as RMSNorm
from functrans.compat.torch.nn.modules import RNNBase as RNNBase
from functrans.compat.torch.nn.modules import RNNCell as RNNCell
from functrans.compat.torch.nn.modules import RNNCellBase as RNNCellBase
from functrans.compat.torch.nn.modules import RReLU as RReLU
from functrans.compat.torch.nn.modules import Sequential as Sequential
from functrans.compat.torch.nn.modules import Sigmoid as Sigmoid
from functrans.compat.torch.nn.modules import SiLU as SiLU
from functrans.compat.torch.nn.modules import SmoothL1Loss as SmoothL1Loss
from functrans.compat.torch.nn.modules import SoftMarginLoss as SoftMarginLoss
from functrans.compat.torch.nn.modules import Softmax as Softmax
from functrans.compat.torch.nn.modules import Softmax2d as Softmax2d
from functrans.compat.torch.nn.modules import Softmin as Softmin
from functrans.compat.torch.nn.modules import Softplus as Softplus
from functrans.compat.torch.nn.modules import Softshrink as Softshrink
from functrans.compat.torch.nn.modules import Softsign as Softsign
from functrans.compat.torch.nn.modules import Tanh as Tanh
from functrans.compat.torch.nn.modules import Tanhshrink as Tanhshrink
from functrans.compat.torch.nn.modules import Threshold as Threshold
from functrans.compat.torch.nn.modules import Transformer as Transformer
from functrans.compat.torch.nn.modules import TransformerDecoder as TransformerDecoder
from functrans.compat.torch.nn.modules import TransformerDecoderLayer as TransformerDecoderLayer
from functrans.compat.torch.nn.modules import TransformerEncoder as TransformerEncoder
from functrans.compat.torch.nn.modules import TransformerEncoderLayer as TransformerEncoderLayer
from functrans.compat.torch.nn.modules import TripletMarginLoss as TripletMarginLoss
from functrans.compat.torch.nn.modules import (
    TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss,
)
from functrans.compat.torch.nn.modules import Unflatten as Unflatten
from functrans.compat.torch.nn.modules import Unfold as Unfold
from functrans.compat.torch.nn.modules import Upsample as Upsample
from functrans.compat.torch.nn.modules import UpsamplingBilinear2d as UpsamplingBilinear2d
from functrans.compat.torch.nn.modules import UpsamplingNearest2d as UpsamplingNearest2d
from functrans.compat.torch.nn.modules import ZeroPad1d as ZeroPad1d
from functrans.compat.torch.nn.modules import ZeroPad2d as ZeroPad2d
from functrans.compat.torch.nn.modules import ZeroPad3d as ZeroPad3d
from functrans.compat.torch.nn.parameter import Buffer as Buffer
from functrans.compat.torch.nn.parameter import Parameter as Parameter
from functrans.compat.torch.not_offered import not_offered as _not_offered
from functrans.compat.torch.submodules import add_aliases as _add_aliases


def __getattr__(name: str) -> _Any:
    """Nothing beside the names above.

    Raises:
      AttributeError: always.
    """
    raise _not_offered("torch.nn", name, __name__)


_MODULES = (
    "activation", "batchnorm", "channelshuffle", "container", "conv", "distance", "dropout",
    "flatten", "fold", "instancenorm", "linear", "loss", "module", "normalization", "padding",
    "pixelshuffle", "pooling", "rnn", "sparse", "transformer", "upsampling",
)  # fmt: skip
"""Torch's submodules of ``nn.modules``: here it has all of their names."""

_add_aliases(
    __name__,
    {
        **{f"modules.{name}": modules for name in _MODULES},
        "utils.clip_grad": utils,
        "utils.convert_parameters": utils,
    },
)
