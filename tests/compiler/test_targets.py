"""Programs give the same bits on smaller processors, as without AVX-512, AVX2 or FMA."""

import os
import subprocess
import sys

import pytest

from processors import SMALL

PROGRAMS = """
import hashlib, sys
import numpy as np
import functrans as ft
from functrans import lax
from functrans.machine import engine

rng = np.random.default_rng(0)
x = rng.normal(size=(40, 70))
v = rng.normal(size=1000)
f4 = v.astype(np.float32)


def softmax_loss(w):
    z = x @ w
    return np.mean(np.log(np.sum(np.exp(z - np.max(z)))) - z)


def walk(c):
    def step(state, k):
        state = state + 0.01 * np.stack([np.sin(state[1]), -np.tanh(state[0])]) * k
        return state, state

    return lax.scan(step, c, v[:50])[1].sum()


calls = (
    (ft.grad(softmax_loss), rng.normal(size=(70, 3))),
    (ft.hessian(lambda y: np.sum(100 * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2)), v[:20]),
    (ft.grad(walk), np.array([0.3, -0.2])),
    (lambda y: (np.exp(y), np.log(np.abs(y)), np.power(np.abs(y), y), np.arctan2(y, 2.0)), v),
    (lambda y: (np.exp(y), np.tanh(y), np.sin(1e3 * y), np.cumsum(y), np.sort(y)), f4),
    (lambda y: (np.sum(y), np.prod(1 + 0.01 * y), np.max(y), np.floor_divide(y, 0.3)), v),
    (lambda y: (y // 3, y % -7, y << 2, np.bitwise_count(y)), rng.integers(-99, 99, 77)),
    (lambda y: (y * y, np.exp(y), np.abs(y), y / (1 + y)), v[:64] + 1j * v[64:128]),
)
digest = hashlib.sha256()
for fun, arg in calls:
    outs = ft.jit(fun)(arg)
    for out in outs if isinstance(outs, tuple) else (outs,):
        digest.update(np.ascontiguousarray(out).tobytes())
print(engine.target().cpu, digest.hexdigest())
"""


def run(cpu: str | None) -> tuple[str, str]:
    """The target and the digest of all results, from a process of its own."""
    env = {**os.environ, "FUNCTRANS_CACHE_DIR": "off", "OPENBLAS_CORETYPE": "Haswell"}
    env.pop("FUNCTRANS_TARGET_CPU", None)
    if cpu is not None:
        env["FUNCTRANS_TARGET_CPU"] = cpu
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAMS],
        env=env, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    target, digest = done.stdout.split()
    return target, digest


@pytest.fixture(scope="module")
def native() -> str:
    return run(None)[1]


@pytest.mark.parametrize("cpu", [SMALL[2], SMALL[0]])
def test_same_bits_on_smaller_processors(cpu: str, native: str) -> None:
    target, digest = run(cpu)
    assert target == cpu
    assert digest == native
