"""Blocks of temporary memory that are kept for the next call."""

import ctypes
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import functrans as ft
from functrans.compiler import threads
from functrans.emitter.spare import GIVE_BLOCK, KEPT_BYTES, LARGE_BYTES, TAKE_BLOCK


def _pair() -> tuple:
    runtime = threads._runtime()
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(runtime.address(TAKE_BLOCK))
    give = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(runtime.address(GIVE_BLOCK))
    return take, give


@pytest.mark.parametrize("size", [LARGE_BYTES, (4 << 20) + 8, KEPT_BYTES, KEPT_BYTES + 64])
def test_a_block_is_aligned_writable_and_kept_up_to_a_size(size: int) -> None:
    take, give = _pair()
    block = take(size)
    assert block % 64 == 0
    ctypes.memset(block, 7, size)
    other = take(size)
    assert abs(other - block) >= size
    give(other)
    give(block)  # the last one is kept
    again = take(LARGE_BYTES)
    if size <= KEPT_BYTES:
        assert again == block
        assert ctypes.string_at(again + size - 1, 1) == b"\x07"
    give(again)


def test_a_block_that_is_too_small_gives_way() -> None:
    take, give = _pair()
    give(take(LARGE_BYTES))
    block = take(4 * LARGE_BYTES)
    ctypes.memset(block, 1, 4 * LARGE_BYTES)
    give(block)
    assert take(2 * LARGE_BYTES) == block
    give(block)


def test_there_may_be_no_memory() -> None:
    take, give = _pair()
    assert take(1 << 60) is None
    give(take(LARGE_BYTES))


def test_blocks_of_threads_are_their_own() -> None:
    take, give = _pair()

    def use(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        for turn in range(50):
            size = int(rng.integers(LARGE_BYTES, 3 * LARGE_BYTES))
            block = take(size)
            memory = np.ctypeslib.as_array(
                ctypes.cast(block, ctypes.POINTER(ctypes.c_uint8)), (size,)
            )
            memory[::4096] = mark = (seed * 50 + turn) % 256
            if not (memory[::4096] == mark).all():
                return False
            give(block)
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(16)))


def test_programs_with_large_temporaries_agree_however_they_follow_each_other() -> None:
    rng = np.random.default_rng(0)

    def f(x: np.ndarray, index: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.tanh(x[index] @ w).sum(0)

    jitted = ft.jit(f)
    for n in (3000, 60_000, 20_000, 3000, 60_000):
        x, index, w = rng.normal(size=(n, 8)), rng.integers(0, n, n), rng.normal(size=(8, 8))
        for _ in range(2):
            np.testing.assert_allclose(jitted(x, index, w), f(x, index, w), rtol=1e-10)
