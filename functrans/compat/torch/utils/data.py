"""``torch.utils.data``: datasets, samplers, batches.

Layer: ``compat``.
"""

from functrans.compat.torch.not_offered import nothing_else as _nothing_else
from functrans.compat.torch.submodules import add_aliases as _add_aliases
from functrans.compat.torch.utils import loading as _loading
from functrans.compat.torch.utils.datasets import ChainDataset as ChainDataset
from functrans.compat.torch.utils.datasets import ConcatDataset as ConcatDataset
from functrans.compat.torch.utils.datasets import Dataset as Dataset
from functrans.compat.torch.utils.datasets import IterableDataset as IterableDataset
from functrans.compat.torch.utils.datasets import StackDataset as StackDataset
from functrans.compat.torch.utils.datasets import Subset as Subset
from functrans.compat.torch.utils.datasets import TensorDataset as TensorDataset
from functrans.compat.torch.utils.datasets import random_split as random_split
from functrans.compat.torch.utils.loading import DataLoader as DataLoader
from functrans.compat.torch.utils.loading import default_collate as default_collate
from functrans.compat.torch.utils.loading import default_convert as default_convert
from functrans.compat.torch.utils.loading import get_worker_info as get_worker_info
from functrans.compat.torch.utils.samplers import BatchSampler as BatchSampler
from functrans.compat.torch.utils.samplers import RandomSampler as RandomSampler
from functrans.compat.torch.utils.samplers import Sampler as Sampler
from functrans.compat.torch.utils.samplers import SequentialSampler as SequentialSampler
from functrans.compat.torch.utils.samplers import SubsetRandomSampler as SubsetRandomSampler
from functrans.compat.torch.utils.samplers import WeightedRandomSampler as WeightedRandomSampler

__getattr__ = _nothing_else(__name__)

_add_aliases(__name__, dict.fromkeys(("_utils", "_utils.collate"), _loading))
