"""``torch.nn.modules``: all modules.

Re-exports what the modules beside this one define, and the private names that libraries import.

Layer: ``compat``.
"""

from functrans.compat.torch.nn.activation_modules import *
from functrans.compat.torch.nn.attention_modules import *
from functrans.compat.torch.nn.containers import *
from functrans.compat.torch.nn.convolution_modules import *
from functrans.compat.torch.nn.convolution_modules import _ConvNd as _ConvNd
from functrans.compat.torch.nn.convolution_modules import _ConvTransposeNd as _ConvTransposeNd
from functrans.compat.torch.nn.convolution_modules import _MaxPoolNd as _MaxPoolNd
from functrans.compat.torch.nn.layer_modules import *
from functrans.compat.torch.nn.layer_modules import _BatchNorm as _BatchNorm
from functrans.compat.torch.nn.layer_modules import _DropoutNd as _DropoutNd
from functrans.compat.torch.nn.layer_modules import _InstanceNorm as _InstanceNorm
from functrans.compat.torch.nn.layer_modules import _NormBase as _NormBase
from functrans.compat.torch.nn.loss_modules import *
from functrans.compat.torch.nn.loss_modules import _Loss as _Loss
from functrans.compat.torch.nn.loss_modules import _WeightedLoss as _WeightedLoss
from functrans.compat.torch.nn.module import Module as Module
from functrans.compat.torch.nn.module_hooks import *
from functrans.compat.torch.nn.module_texts import _IncompatibleKeys as _IncompatibleKeys
from functrans.compat.torch.nn.recurrent_modules import *
from functrans.compat.torch.nn.resampling_modules import *
from functrans.compat.torch.nn.transformer_modules import *
from functrans.compat.torch.not_offered import nothing_else as _nothing_else

__getattr__ = _nothing_else(__name__)
