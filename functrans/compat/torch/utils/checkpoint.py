"""``torch.utils.checkpoint``: recomputing in the backward pass.

Layer: ``compat``.
"""

from functrans.autograd.checkpoint import CheckpointError as CheckpointError
from functrans.autograd.checkpoint import CheckpointFunction as CheckpointFunction
from functrans.autograd.checkpoint import check_backward_validity as check_backward_validity
from functrans.autograd.checkpoint import checkpoint as checkpoint
from functrans.autograd.checkpoint import checkpoint_sequential as checkpoint_sequential
from functrans.autograd.checkpoint import detach_variable as detach_variable
from functrans.autograd.checkpoint import noop_context_fn as noop_context_fn
from functrans.autograd.checkpoint import (
    set_checkpoint_debug_enabled as set_checkpoint_debug_enabled,
)
from functrans.autograd.checkpoint import set_checkpoint_early_stop as set_checkpoint_early_stop
