"""The comparison with differences that the published tests of ``torchsde`` import, too."""

import torch
from torch import nn


def gradcheck(func, inputs, modules=(), *, eps=1e-6, rtol=1e-3, atol=1e-5, grad_params=False):
    """Assert that the gradients of ``func(inputs, modules)``, a number, are as differences are.

    Arguments:
      func: takes the tuples of tensors and of modules.
      inputs: a tensor or several; their gradients are not looked at.
      modules: a module or several, whose parameters are moved along two drawn directions.
      eps: how far.
      rtol: the relative difference allowed.
      atol: the absolute difference allowed.
      grad_params: only parameters are supported.
    """
    assert grad_params
    inputs = (inputs,) if isinstance(inputs, torch.Tensor) else tuple(inputs)
    modules = (modules,) if isinstance(modules, nn.Module) else tuple(modules)
    parameters = [p for module in modules for p in module.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(func(inputs, modules), parameters)

    def moved(directions, size):
        with torch.no_grad():
            for parameter, direction in zip(parameters, directions, strict=True):
                parameter += size * direction
            return func(inputs, modules)

    for _ in range(2):
        directions = [torch.randn_like(parameter) for parameter in parameters]
        above, below = moved(directions, eps), moved(directions, -2 * eps)
        moved(directions, eps)
        along = sum((g * d).sum() for g, d in zip(gradients, directions, strict=True))
        torch.testing.assert_close(along, (above - below) / (2 * eps), rtol=rtol, atol=atol)
