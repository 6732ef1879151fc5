"""Classes of a user below those of ``nn``.

``mypy --strict`` reads this file as it reads the library (``pyproject.toml``): it fails here if the
library's classes are no classes to a type checker.
"""

from typing import Any

from functrans.autograd import Tensor
from functrans.compat.torch import nn, ones
from functrans.compat.torch.utils.data import DataLoader, Dataset


class Steep(nn.LeakyReLU):
    def __init__(self, slope: float = 2.0) -> None:
        super().__init__(slope, inplace=False)


class Negated(nn.MSELoss):
    def forward(self, input: Tensor, target: Tensor) -> Any:
        return -super().forward(input, target)


class Framed(nn.ZeroPad2d):
    def __init__(self, padding: int, name: str) -> None:
        super().__init__(padding)
        self.name = name


class Halved(nn.MaxPool2d):
    pass


class Rare(nn.Dropout, shown="p={0.p}"):
    pass


def _made(kind: type[nn.ReLU | nn.Tanh]) -> list[nn.Module]:
    return [kind(), Steep(), Framed(1, "frame"), Halved(2), Rare(0.25)]


def test_they_show_their_settings() -> None:
    assert [repr(module) for module in _made(nn.Tanh)] == [
        "Tanh()", "Steep(negative_slope=2.0)", "Framed((1, 1, 1, 1))",
        "Halved(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
        "Rare(p=0.25)",
    ]  # fmt: skip


def test_they_compute_what_their_bases_do() -> None:
    assert Steep()(-ones(1)).item() == -2.0
    assert Negated()(ones(2), -ones(2)).item() == -4.0
    assert Framed(1, "frame")(ones(1, 1, 1, 1)).sum().item() == 1.0


def test_zero_padding_is_padding_with_a_number() -> None:
    assert issubclass(nn.ZeroPad2d, nn.ConstantPad2d)


class Numbers(Dataset[tuple[Tensor, int]]):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return ones(2), index


def _loaded(loader: DataLoader[tuple[Tensor, int]] | DataLoader[int]) -> int:
    return len(loader)


def test_loaders_say_what_they_load() -> None:
    loader = DataLoader(Numbers(), batch_size=2)
    assert _loaded(loader) == _loaded(DataLoader([1, 2], 1)) == 2
