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
from functrans.compat.torch.nn.recurrent_modules import GRU as GRU
from functrans.compat.torch.nn.recurrent_modules import LSTM as LSTM
from functrans.compat.torch.nn.recurrent_modules import RNN as RNN
from functrans.compat.torch.nn.recurrent_modules import GRUCell as GRUCell
from functrans.compat.torch.nn.recurrent_modules import LSTMCell as LSTMCell
from functrans.compat.torch.nn.recurrent_modules import RNNBase as RNNBase
from functrans.compat.torch.nn.recurrent_modules import RNNCell as RNNCell
from functrans.compat.torch.nn.recurrent_modules import RNNCellBase as RNNCellBase
