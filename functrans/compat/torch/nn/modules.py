"""``torch.nn.modules``: all modules.

Re-exports what the modules beside this one define.

Layer: ``compat``.
"""

from functrans.compat.torch.nn.activation_modules import *
from functrans.compat.torch.nn.attention_modules import *
from functrans.compat.torch.nn.containers import *
from functrans.compat.torch.nn.convolution_modules import *
from functrans.compat.torch.nn.layer_modules import *
from functrans.compat.torch.nn.loss_modules import *
from functrans.compat.torch.nn.module import Module as Module
from functrans.compat.torch.nn.module_hooks import *
from functrans.compat.torch.nn.module_texts import _IncompatibleKeys as _IncompatibleKeys
from functrans.compat.torch.nn.recurrent_modules import *
from functrans.compat.torch.nn.resampling_modules import *
from functrans.compat.torch.nn.transformer_modules import *
