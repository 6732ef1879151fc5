"""Generators of random numbers in twins: their arrays are buffers, and they shuffle traced ones.

Here: NumPy's two classes of generators. Not here: ``functrans.random``, whose functions are as any
others.

Layer: ``plain``.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import functrans.numpy as fnp
from functrans.core.dispatch import Tracer
from functrans.plain.memory import given, settled
from functrans.plain.twins import makers_by_name, register


def _giving(kind: type) -> type:
    """A class of random number generators whose arrays can be written to."""

    def method(name: str) -> Callable[..., Any]:
        plain = getattr(kind, name)

        @functools.wraps(plain)
        def draw(self: Any, *args: object, **kwargs: object) -> Any:
            return given(plain(self, *settled(args), **settled(kwargs)))

        return _shuffle(plain) if name == "shuffle" else draw

    names = [n for n in dir(kind) if not n.startswith("_") and callable(getattr(kind, n))]
    own = type(kind.__name__, (kind,), {name: method(name) for name in names})
    register(kind, own)
    return own


def _shuffle(plain: Callable[..., Any]) -> Callable[..., Any]:
    """The method ``shuffle`` of a generator: the rows of a traced array in the order of numbers.

    NumPy would exchange rows of what is no array, two at a time, which are views of each other.
    """

    @functools.wraps(plain)
    def shuffle(*args: Any, **kwargs: Any) -> None:
        *own, x = settled(args)[: 1 + (len(args) > 0 and not isinstance(args[0], Tracer))]
        if not isinstance(x, Tracer):
            plain(*settled(args), **settled(kwargs))
            return
        rest = settled(args)[len(own) + 1 :]
        axis = operator.index(kwargs.get("axis", rest[0] if rest else 0))
        order = np.arange(np.shape(x)[axis])
        plain(*own, order)
        operator.setitem(x, ..., fnp.take(x, order, axis=axis))  # type: ignore[call-overload]  # tracers have operators

    return shuffle


def install() -> None:
    """Make the classes."""
    generator = _giving(np.random.Generator)
    state = _giving(np.random.RandomState)
    make = functools.wraps(np.random.default_rng)(
        lambda *args, **kwargs: generator(
            np.random.default_rng(*settled(args), **settled(kwargs)).bit_generator
        )
    )
    register(np.random.default_rng, make)
    makers_by_name["numpy.random.mtrand.RandomState"] = lambda rng: state(rng._bit_generator)
    register(np.random.shuffle, _shuffle(np.random.shuffle))
    makers_by_name["numpy.random._generator.Generator"] = lambda rng: generator(rng.bit_generator)
