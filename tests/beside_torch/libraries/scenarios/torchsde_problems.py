"""The stochastic equations that the published tests of ``torchsde`` import and do not include.

``Ex`` and ``Neural`` are equations of each kind of noise, ``Basic`` those in which something does
not depend on states or parameters; the others define drift and diffusion by other methods. A prior
drift ``h`` has no parameters, so that every parameter has a gradient without it.
"""

import torch
from torch import nn
from torchsde import BaseSDE, SDEIto
from torchsde.settings import NOISE_TYPES, SDE_TYPES


def around_half(*shape):
    """A parameter of values near a half."""
    return nn.Parameter(0.4 + 0.2 * torch.rand(*shape))


def layers(inputs, outputs):
    """A small network whose values lie between zero and one."""
    return nn.Sequential(nn.Linear(inputs, 4), nn.Softplus(), nn.Linear(4, outputs), nn.Sigmoid())


def with_time(t, y):
    """States, and the time as one more channel."""
    return torch.cat([torch.as_tensor(t, dtype=y.dtype).expand(len(y), 1), y], dim=1)


class Problem(BaseSDE):
    """An equation of ``d`` states and ``m`` channels of noise; ``h`` pulls to zero."""

    noise_type = NOISE_TYPES.diagonal

    def __init__(self, d, m=1, sde_type=SDE_TYPES.ito):
        super().__init__(noise_type=type(self).noise_type, sde_type=sde_type)
        self.d, self.m = d, m

    def h(self, t, y):
        """The prior drift."""
        return -0.3 * y


class ExDiagonal(Problem):
    """Growth in proportion, and noise in proportion for each state."""

    noise_type = NOISE_TYPES.diagonal

    def __init__(self, d, m=1, sde_type=SDE_TYPES.ito):
        super().__init__(d, m, sde_type)
        self.growth, self.spread = around_half(d), around_half(d)

    def f(self, t, y):
        """The drift; one solution for both types."""
        growth = self.growth
        if self.sde_type == SDE_TYPES.stratonovich:
            growth = growth - self.spread**2 / 2
        return growth * y

    def g(self, t, y):
        """The diffusion."""
        return self.spread * y


class ExScalar(Problem):
    """States that one channel of noise moves, between zero and one half."""

    noise_type = NOISE_TYPES.scalar

    def __init__(self, d, m=1, sde_type=SDE_TYPES.ito):
        super().__init__(d, m, sde_type)
        self.spread = around_half(d)

    def f(self, t, y):
        """The drift, which is the correction of the type alone."""
        if self.sde_type == SDE_TYPES.stratonovich:
            return torch.zeros_like(y)
        return -(self.spread**2) * torch.sin(y) * torch.cos(y) ** 3

    def g(self, t, y):
        """The diffusion."""
        return (self.spread * torch.cos(y) ** 2).unsqueeze(-1)


class ExAdditive(Problem):
    """Noise that no state has an effect on, less of it later."""

    noise_type = NOISE_TYPES.additive

    def __init__(self, d, m=1, sde_type=SDE_TYPES.ito):
        super().__init__(d, m, sde_type)
        self.level, self.spread = around_half(d), around_half(d, m)

    def f(self, t, y):
        """The drift."""
        return self.level / (1 + t) ** 0.5 - y / (2 + 2 * t)

    def g(self, t, y):
        """The diffusion."""
        return (self.spread / (1 + t) ** 0.5).expand(len(y), -1, -1)


class Neural(Problem):
    """Drift and diffusion by networks of time and state."""

    def __init__(self, d, m=1, sde_type=SDE_TYPES.ito):
        super().__init__(d, m, sde_type)
        self.drift = layers(d + 1, d)
        additive, diagonal = (
            self.noise_type == kind for kind in (NOISE_TYPES.additive, NOISE_TYPES.diagonal)
        )
        # Each state's own noise depends on that state alone.
        inputs = 1 if additive else 2 if diagonal else d + 1
        self.diffusion = layers(inputs, 1 if diagonal else d * m)

    def f(self, t, y):
        """The drift."""
        return self.drift(with_time(t, y))

    def g(self, t, y):
        """The diffusion: a third of the network's, as steps of both directions part by it."""
        if self.noise_type == NOISE_TYPES.diagonal:
            return self.diffusion(with_time(t, y.reshape(-1, 1))).reshape(y.shape) / 3
        states = y[:, :0] if self.noise_type == NOISE_TYPES.additive else y
        return self.diffusion(with_time(t, states)).reshape(len(y), self.d, self.m) / 3


class NeuralDiagonal(Neural):
    """A channel for each state."""

    noise_type = NOISE_TYPES.diagonal


class NeuralScalar(Neural):
    """One channel."""

    noise_type = NOISE_TYPES.scalar


class NeuralAdditive(Neural):
    """Noise by time alone."""

    noise_type = NOISE_TYPES.additive


class NeuralGeneral(Neural):
    """Each channel moves each state."""

    noise_type = NOISE_TYPES.general


class BasicSDE1(Problem):
    """One parameter of all and a frozen one."""

    def __init__(self, d):
        super().__init__(d)
        self.shared = around_half(d)
        self.frozen = nn.Parameter(torch.ones(d), requires_grad=False)

    def f(self, t, y):
        """The drift."""
        return self.shared * torch.sin(y) - t

    def g(self, t, y):
        """The diffusion."""
        return self.frozen * torch.sigmoid(self.shared * torch.cos(y))


class BasicSDE2(BasicSDE1):
    """The drift depends on a parameter and no state, the diffusion on no parameter."""

    def f(self, t, y):
        """The drift."""
        return self.shared.expand_as(y)

    def g(self, t, y):
        """The diffusion."""
        return torch.sigmoid(self.frozen * y)


class BasicSDE3(BasicSDE1):
    """The diffusion depends on a parameter and no state, the drift on no parameter."""

    def f(self, t, y):
        """The drift."""
        return -y * self.frozen

    def g(self, t, y):
        """The diffusion."""
        return torch.sigmoid(self.shared).expand_as(y)


class BasicSDE4(BasicSDE1):
    """Neither depends on a state, and the drift on nothing."""

    def f(self, t, y):
        """The drift."""
        return torch.zeros_like(y)

    def g(self, t, y):
        """The diffusion."""
        return 0.1 * self.shared.expand_as(y)


class CustomNamesSDE(SDEIto):
    """The drift has the name of a module's call."""

    def __init__(self):
        super().__init__(noise_type=NOISE_TYPES.diagonal)

    def forward(self, t, y):
        """The drift."""
        return torch.cos(y) * t

    def g(self, t, y):
        """The diffusion."""
        return 0.3 * torch.sigmoid(y)


class CustomNamesSDELogqp(CustomNamesSDE):
    """A prior drift of another name."""

    def w(self, t, y):
        """The prior drift."""
        return 0.1 * torch.sin(y) - t


class _Parts(nn.Module):
    """What equations below define their methods by; ``vector`` weighs the channels of noise."""

    noise_type = NOISE_TYPES.general

    def __init__(self, sde_type, vector):
        super().__init__()
        self.sde_type = sde_type
        self.register_buffer("vector", vector)

    def _drift(self, y):
        return torch.sin(y)

    def _diffusion(self, y):
        return torch.sigmoid(y).unsqueeze(-1) * self.vector

    def _product(self, y, v):
        return torch.bmm(self._diffusion(y), v.unsqueeze(-1)).squeeze(-1)


class FGSDE(_Parts):
    """Drift and diffusion."""

    def f(self, t, y):
        """The drift."""
        return self._drift(y)

    def g(self, t, y):
        """The diffusion."""
        return self._diffusion(y)


class FAndGSDE(_Parts):
    """Both by one method."""

    def f_and_g(self, t, y):
        """The drift and the diffusion."""
        return self._drift(y), self._diffusion(y)


class GProdSDE(_Parts):
    """The drift, and the diffusion times noise."""

    def f(self, t, y):
        """The drift."""
        return self._drift(y)

    def g_prod(self, t, y, v):
        """The product."""
        return self._product(y, v)


class FAndGProdSDE(_Parts):
    """The drift and the product by one method."""

    def f_and_g_prod(self, t, y, v):
        """The drift and the product."""
        return self._drift(y), self._product(y, v)


class FAndGGProdSDE1(FAndGSDE):
    """Drift and diffusion by one method, and the product."""

    def g_prod(self, t, y, v):
        """The product."""
        return self._product(y, v)


class FAndGGProdSDE2(FAndGSDE, GProdSDE):
    """Those, and the drift by itself."""
