"""The level at which LLVM compiles a program: which lines run many times, and what it gains."""

import numpy as np

import functrans as ft
from functrans.compiler.compiled import lines_in_loops, optimisation_level
from functrans.compiler.cost import LONG_PROGRAM_LINES
from functrans.machine import engine


def test_loops_over_single_numbers_are_optimised():
    """Code without vectors is left as it is only if it has no loops."""
    index = np.arange(50)
    assert optimisation_level(ft.jit(lambda x: x[index]).llvm(np.ones(90))) == 1
    assert optimisation_level(ft.jit(lambda x: x * 2 + 1).llvm(2.0)) == 0


def test_divisions_of_numbers_in_rounds_are_put_side_by_side():
    def pulled(at, others):
        x, y = at
        for a, b in others:
            distance = np.sqrt((x - a) ** 2 + (y - b) ** 2)
            x, y = x + a / distance**3, y + b / distance**3
        return x, y

    others = [(float(k), k + 0.5) for k in range(1, 6)]
    loop = lambda x: ft.lax.scan(lambda c, _: (pulled(c, others), None), (x, x), None, 99)[0]  # noqa: E731
    text = ft.jit(loop).llvm(2.0)
    assert optimisation_level(text) == 2
    divided = engine.optimised_text(text, 2).count("fdiv <2 x double>")
    assert divided >= len(others)
    straight = ft.jit(lambda x: pulled((x, x), others)).llvm(2.0)
    assert optimisation_level(straight) == 0

    def products(x):
        for a, b in others:
            x = a * x * (x - b) + b * (x + a)
        return x / 3.0

    loop = lambda x: ft.lax.scan(lambda c, _: (products(c), None), x, None, 99)[0]  # noqa: E731
    assert optimisation_level(ft.jit(loop).llvm(2.0)) == 1


def test_lines_in_loops_are_counted_once():
    text = """\
start:
  a
if1:
  b
loop_h2:
  c
loop_b3:
scan_h4:
  d
if5:
  e
if_d6:
scan_d7:
loop_d8:
few_h9:
  f
few_d10:
  g
"""
    assert lines_in_loops(text) == 9
    assert lines_in_loops("start:\n  a\n") == 0


def test_loops_are_optimised_in_long_programs():
    """A limit of length is for code that runs once."""

    def layers(h, weights):
        for w in weights:
            h = np.tanh(h @ w) * np.exp(-h * h)
        return np.sum(h)

    text = ft.jit(ft.grad(layers, 1)).llvm(np.ones((16, 48)), [np.ones((48, 48))] * 12)
    assert text.count("\n") > LONG_PROGRAM_LINES
    assert optimisation_level(text) == 1

    def mixture(x, means, weights):
        logs = weights - np.sum((x[:, None] - means) ** 2, -1)
        highest = np.max(logs, -1, keepdims=True)
        return np.sum(highest[:, 0] + np.log(np.sum(np.exp(logs - highest), -1)))

    text = ft.jit(ft.grad(mixture, (0, 1, 2))).llvm(
        np.ones((500, 4)), np.ones((12, 4)), np.ones(12)
    )
    assert text.count(" = phi ") < 20, "a few loops with long bodies"
    assert text.count("\n") > LONG_PROGRAM_LINES
    assert optimisation_level(text) == 1

    choices = np.random.default_rng(0).integers(3, size=3000).tolist()

    def numbers(x):
        y = x
        for i in choices:  # without a period, so that it stays unrolled
            x, y = ((y + x * 1.5, x), (x / (2.0 + y * y), y), (y - x, x * 0.5))[i]
        return x

    text = ft.jit(numbers).llvm(2.0)
    scan = ft.jit(lambda x: ft.lax.scan(lambda c, _: (numbers(c), None), x, None, 3)[0]).llvm(2.0)
    for straight in (text, scan):
        assert straight.count("\n") > LONG_PROGRAM_LINES
        assert optimisation_level(straight) == 0

    for loop in (
        lambda x: ft.lax.scan(lambda c, _: (numbers(c), None), x, None, 300)[0],
        lambda x: ft.lax.while_loop(lambda c: c < 1e6, numbers, x),
    ):
        text = ft.jit(loop).llvm(2.0)
        assert text.count("\n") > LONG_PROGRAM_LINES
        assert optimisation_level(text) == 1
