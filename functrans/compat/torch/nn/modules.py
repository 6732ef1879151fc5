"""``torch.nn.modules``: all modules.

Re-exports what the modules beside this one define.

Layer: ``compat``.
"""

from functrans.compat.torch.nn.activation_modules import CELU as CELU
from functrans.compat.torch.nn.activation_modules import ELU as ELU
from functrans.compat.torch.nn.activation_modules import GELU as GELU
from functrans.compat.torch.nn.activation_modules import GLU as GLU
from functrans.compat.torch.nn.activation_modules import SELU as SELU
from functrans.compat.torch.nn.activation_modules import Hardshrink as Hardshrink
from functrans.compat.torch.nn.activation_modules import Hardsigmoid as Hardsigmoid
from functrans.compat.torch.nn.activation_modules import Hardswish as Hardswish
from functrans.compat.torch.nn.activation_modules import Hardtanh as Hardtanh
from functrans.compat.torch.nn.activation_modules import LeakyReLU as LeakyReLU
from functrans.compat.torch.nn.activation_modules import LogSigmoid as LogSigmoid
from functrans.compat.torch.nn.activation_modules import LogSoftmax as LogSoftmax
from functrans.compat.torch.nn.activation_modules import Mish as Mish
from functrans.compat.torch.nn.activation_modules import PReLU as PReLU
from functrans.compat.torch.nn.activation_modules import ReLU as ReLU
from functrans.compat.torch.nn.activation_modules import ReLU6 as ReLU6
from functrans.compat.torch.nn.activation_modules import Sigmoid as Sigmoid
from functrans.compat.torch.nn.activation_modules import SiLU as SiLU
from functrans.compat.torch.nn.activation_modules import Softmax as Softmax
from functrans.compat.torch.nn.activation_modules import Softmin as Softmin
from functrans.compat.torch.nn.activation_modules import Softplus as Softplus
from functrans.compat.torch.nn.activation_modules import Softshrink as Softshrink
from functrans.compat.torch.nn.activation_modules import Softsign as Softsign
from functrans.compat.torch.nn.activation_modules import Tanh as Tanh
from functrans.compat.torch.nn.activation_modules import Tanhshrink as Tanhshrink
from functrans.compat.torch.nn.activation_modules import Threshold as Threshold
from functrans.compat.torch.nn.attention_modules import MultiheadAttention as MultiheadAttention
from functrans.compat.torch.nn.containers import ModuleDict as ModuleDict
from functrans.compat.torch.nn.containers import ModuleList as ModuleList
from functrans.compat.torch.nn.containers import ParameterDict as ParameterDict
from functrans.compat.torch.nn.containers import ParameterList as ParameterList
from functrans.compat.torch.nn.containers import Sequential as Sequential
from functrans.compat.torch.nn.convolution_modules import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from functrans.compat.torch.nn.convolution_modules import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from functrans.compat.torch.nn.convolution_modules import AvgPool1d as AvgPool1d
from functrans.compat.torch.nn.convolution_modules import AvgPool2d as AvgPool2d
from functrans.compat.torch.nn.convolution_modules import Conv1d as Conv1d
from functrans.compat.torch.nn.convolution_modules import Conv2d as Conv2d
from functrans.compat.torch.nn.convolution_modules import Conv3d as Conv3d
from functrans.compat.torch.nn.convolution_modules import ConvTranspose1d as ConvTranspose1d
from functrans.compat.torch.nn.convolution_modules import ConvTranspose2d as ConvTranspose2d
from functrans.compat.torch.nn.convolution_modules import CosineSimilarity as CosineSimilarity
from functrans.compat.torch.nn.convolution_modules import MaxPool1d as MaxPool1d
from functrans.compat.torch.nn.convolution_modules import MaxPool2d as MaxPool2d
from functrans.compat.torch.nn.layer_modules import BatchNorm1d as BatchNorm1d
from functrans.compat.torch.nn.layer_modules import BatchNorm2d as BatchNorm2d
from functrans.compat.torch.nn.layer_modules import Bilinear as Bilinear
from functrans.compat.torch.nn.layer_modules import Dropout as Dropout
from functrans.compat.torch.nn.layer_modules import Dropout1d as Dropout1d
from functrans.compat.torch.nn.layer_modules import Dropout2d as Dropout2d
from functrans.compat.torch.nn.layer_modules import Embedding as Embedding
from functrans.compat.torch.nn.layer_modules import Flatten as Flatten
from functrans.compat.torch.nn.layer_modules import GroupNorm as GroupNorm
from functrans.compat.torch.nn.layer_modules import Identity as Identity
from functrans.compat.torch.nn.layer_modules import LayerNorm as LayerNorm
from functrans.compat.torch.nn.layer_modules import Linear as Linear
from functrans.compat.torch.nn.layer_modules import RMSNorm as RMSNorm
from functrans.compat.torch.nn.layer_modules import Unflatten as Unflatten
from functrans.compat.torch.nn.loss_modules import BCELoss as BCELoss
from functrans.compat.torch.nn.loss_modules import BCEWithLogitsLoss as BCEWithLogitsLoss
from functrans.compat.torch.nn.loss_modules import CrossEntropyLoss as CrossEntropyLoss
from functrans.compat.torch.nn.loss_modules import HingeEmbeddingLoss as HingeEmbeddingLoss
from functrans.compat.torch.nn.loss_modules import HuberLoss as HuberLoss
from functrans.compat.torch.nn.loss_modules import KLDivLoss as KLDivLoss
from functrans.compat.torch.nn.loss_modules import L1Loss as L1Loss
from functrans.compat.torch.nn.loss_modules import MarginRankingLoss as MarginRankingLoss
from functrans.compat.torch.nn.loss_modules import MSELoss as MSELoss
from functrans.compat.torch.nn.loss_modules import NLLLoss as NLLLoss
from functrans.compat.torch.nn.loss_modules import PoissonNLLLoss as PoissonNLLLoss
from functrans.compat.torch.nn.loss_modules import SmoothL1Loss as SmoothL1Loss
from functrans.compat.torch.nn.loss_modules import SoftMarginLoss as SoftMarginLoss
from functrans.compat.torch.nn.margin_loss_modules import CosineEmbeddingLoss as CosineEmbeddingLoss
from functrans.compat.torch.nn.margin_loss_modules import CTCLoss as CTCLoss
from functrans.compat.torch.nn.margin_loss_modules import GaussianNLLLoss as GaussianNLLLoss
from functrans.compat.torch.nn.margin_loss_modules import (
    MultiLabelMarginLoss as MultiLabelMarginLoss,
)
from functrans.compat.torch.nn.margin_loss_modules import (
    MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss,
)
from functrans.compat.torch.nn.margin_loss_modules import MultiMarginLoss as MultiMarginLoss
from functrans.compat.torch.nn.margin_loss_modules import PairwiseDistance as PairwiseDistance
from functrans.compat.torch.nn.margin_loss_modules import TripletMarginLoss as TripletMarginLoss
from functrans.compat.torch.nn.margin_loss_modules import (
    TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss,
)
from functrans.compat.torch.nn.module import Module as Module
from functrans.compat.torch.nn.module_hooks import (
    register_module_forward_hook as register_module_forward_hook,
)
from functrans.compat.torch.nn.module_hooks import (
    register_module_forward_pre_hook as register_module_forward_pre_hook,
)
from functrans.compat.torch.nn.module_hooks import (
    register_module_full_backward_hook as register_module_full_backward_hook,
)
from functrans.compat.torch.nn.noise_modules import AlphaDropout as AlphaDropout
from functrans.compat.torch.nn.noise_modules import BatchNorm3d as BatchNorm3d
from functrans.compat.torch.nn.noise_modules import Dropout3d as Dropout3d
from functrans.compat.torch.nn.noise_modules import EmbeddingBag as EmbeddingBag
from functrans.compat.torch.nn.noise_modules import FeatureAlphaDropout as FeatureAlphaDropout
from functrans.compat.torch.nn.noise_modules import InstanceNorm1d as InstanceNorm1d
from functrans.compat.torch.nn.noise_modules import InstanceNorm2d as InstanceNorm2d
from functrans.compat.torch.nn.noise_modules import InstanceNorm3d as InstanceNorm3d
from functrans.compat.torch.nn.noise_modules import RReLU as RReLU
from functrans.compat.torch.nn.noise_modules import Softmax2d as Softmax2d
from functrans.compat.torch.nn.pooling_modules import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from functrans.compat.torch.nn.pooling_modules import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from functrans.compat.torch.nn.pooling_modules import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from functrans.compat.torch.nn.pooling_modules import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from functrans.compat.torch.nn.pooling_modules import AvgPool3d as AvgPool3d
from functrans.compat.torch.nn.pooling_modules import ConvTranspose3d as ConvTranspose3d
from functrans.compat.torch.nn.pooling_modules import LocalResponseNorm as LocalResponseNorm
from functrans.compat.torch.nn.pooling_modules import LPPool1d as LPPool1d
from functrans.compat.torch.nn.pooling_modules import LPPool2d as LPPool2d
from functrans.compat.torch.nn.pooling_modules import LPPool3d as LPPool3d
from functrans.compat.torch.nn.pooling_modules import MaxPool3d as MaxPool3d
from functrans.compat.torch.nn.pooling_modules import MaxUnpool1d as MaxUnpool1d
from functrans.compat.torch.nn.pooling_modules import MaxUnpool2d as MaxUnpool2d
from functrans.compat.torch.nn.pooling_modules import MaxUnpool3d as MaxUnpool3d
from functrans.compat.torch.nn.recurrent_modules import GRU as GRU
from functrans.compat.torch.nn.recurrent_modules import LSTM as LSTM
from functrans.compat.torch.nn.recurrent_modules import RNN as RNN
from functrans.compat.torch.nn.recurrent_modules import GRUCell as GRUCell
from functrans.compat.torch.nn.recurrent_modules import LSTMCell as LSTMCell
from functrans.compat.torch.nn.recurrent_modules import RNNBase as RNNBase
from functrans.compat.torch.nn.recurrent_modules import RNNCell as RNNCell
from functrans.compat.torch.nn.recurrent_modules import RNNCellBase as RNNCellBase
from functrans.compat.torch.nn.resampling_modules import ChannelShuffle as ChannelShuffle
from functrans.compat.torch.nn.resampling_modules import CircularPad1d as CircularPad1d
from functrans.compat.torch.nn.resampling_modules import CircularPad2d as CircularPad2d
from functrans.compat.torch.nn.resampling_modules import CircularPad3d as CircularPad3d
from functrans.compat.torch.nn.resampling_modules import ConstantPad1d as ConstantPad1d
from functrans.compat.torch.nn.resampling_modules import ConstantPad2d as ConstantPad2d
from functrans.compat.torch.nn.resampling_modules import ConstantPad3d as ConstantPad3d
from functrans.compat.torch.nn.resampling_modules import Fold as Fold
from functrans.compat.torch.nn.resampling_modules import PixelShuffle as PixelShuffle
from functrans.compat.torch.nn.resampling_modules import PixelUnshuffle as PixelUnshuffle
from functrans.compat.torch.nn.resampling_modules import ReflectionPad1d as ReflectionPad1d
from functrans.compat.torch.nn.resampling_modules import ReflectionPad2d as ReflectionPad2d
from functrans.compat.torch.nn.resampling_modules import ReflectionPad3d as ReflectionPad3d
from functrans.compat.torch.nn.resampling_modules import ReplicationPad1d as ReplicationPad1d
from functrans.compat.torch.nn.resampling_modules import ReplicationPad2d as ReplicationPad2d
from functrans.compat.torch.nn.resampling_modules import ReplicationPad3d as ReplicationPad3d
from functrans.compat.torch.nn.resampling_modules import Unfold as Unfold
from functrans.compat.torch.nn.resampling_modules import Upsample as Upsample
from functrans.compat.torch.nn.resampling_modules import (
    UpsamplingBilinear2d as UpsamplingBilinear2d,
)
from functrans.compat.torch.nn.resampling_modules import UpsamplingNearest2d as UpsamplingNearest2d
from functrans.compat.torch.nn.resampling_modules import ZeroPad1d as ZeroPad1d
from functrans.compat.torch.nn.resampling_modules import ZeroPad2d as ZeroPad2d
from functrans.compat.torch.nn.resampling_modules import ZeroPad3d as ZeroPad3d
from functrans.compat.torch.nn.transformer_modules import Transformer as Transformer
from functrans.compat.torch.nn.transformer_modules import TransformerDecoder as TransformerDecoder
from functrans.compat.torch.nn.transformer_modules import (
    TransformerDecoderLayer as TransformerDecoderLayer,
)
from functrans.compat.torch.nn.transformer_modules import TransformerEncoder as TransformerEncoder
from functrans.compat.torch.nn.transformer_modules import (
    TransformerEncoderLayer as TransformerEncoderLayer,
)
