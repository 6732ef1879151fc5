"""Keys and bits: the published vectors, JAX's numbers, independence, refusals."""

import numpy as np
import pytest

import functrans as ft
from functrans import random
from functrans.errors import ShapeError
from functrans.primitives.threefry import threefry2x32

# Random123, file kat_vectors: key, counter, block of threefry2x32 with 20 rounds.
VECTORS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]

# JAX 0.10.2, ``jax_threefry_partitionable``, 64 bits: what it gives for the seed 42.
SPLIT_OF_42 = [[1832780943, 270669613], [64467757, 2916123636]]
FOLD_OF_42 = [2547012911, 1371500959]
BITS_OF_42 = [2098992034, 2919706841]
RANDINT_OF_42 = [85, 718, 503, 271]
UNIFORM_OF_42 = [0.4267275666499091, 0.015010069515314584]
NORMAL_OF_42 = [-0.18471174528191162, -2.169824560397754]


@pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])
@pytest.mark.parametrize(("key", "counter", "block"), VECTORS)
def test_published_vectors(key, counter, block, compiled):
    fun = ft.jit(threefry2x32) if compiled else threefry2x32
    words = [np.full(5, word, np.uint32) for word in (*key, *counter)]
    assert fun(*words).tolist() == [block[0] << 32 | block[1]] * 5


def test_blocks_of_many_elements_are_those_of_few():
    key = random.key(9)
    many = random.bits(key, (70_001,), np.uint64)
    assert np.array_equal(many[:100], random.bits(key, (100,), np.uint64))
    assert np.array_equal(many, ft.jit(lambda k: random.bits(k, (70_001,), np.uint64))(key))
    assert len(np.unique(many)) == len(many)


def test_numbers_are_those_of_jax():
    """Written down from JAX 0.10 with ``jax_threefry_partitionable`` and 64 bits."""
    key = random.key(42)
    assert random.split(key, 2).tolist() == SPLIT_OF_42
    assert random.fold_in(key, 7).tolist() == FOLD_OF_42
    assert random.bits(key, (2,), np.uint32).tolist() == BITS_OF_42
    assert random.randint(key, (4,), 0, 1000).tolist() == RANDINT_OF_42
    np.testing.assert_array_equal(random.uniform(key, (2,)), UNIFORM_OF_42)
    np.testing.assert_allclose(random.normal(key, (2,)), NORMAL_OF_42, rtol=1e-13)


@pytest.mark.parametrize(
    ("seed", "words"),
    [(0, [0, 0]), (3, [0, 3]), (1 << 40, [256, 0]), (-1, [0xFFFFFFFF] * 2), (np.int32(5), [0, 5])],
)
def test_key_has_both_halves_of_the_seed(seed, words):
    assert random.key(seed).tolist() == words
    assert random.PRNGKey(seed).dtype == np.uint32


@pytest.mark.parametrize("seed", [0, 7, -3, 1 << 45])
def test_traced_seed_gives_the_same_key(seed):
    assert np.array_equal(ft.jit(random.key)(np.int64(seed)), random.key(seed))


@pytest.mark.parametrize("fun", [
    lambda key: random.split(key, 3),
    lambda key: random.split(key, (2, 3)),
    lambda key: random.fold_in(key, 5),
    lambda key: random.bits(key, (2, 3), np.uint8),
    lambda key: random.bits(key, 0, np.uint64),
])  # fmt: skip
def test_compiled_and_mapped_bits_are_the_same(fun):
    keys = random.split(random.key(1), 4)
    expected = np.stack([fun(key) for key in keys])
    assert np.array_equal(np.stack([ft.jit(fun)(key) for key in keys]), expected)
    assert np.array_equal(ft.vmap(fun)(keys), expected)
    assert np.array_equal(ft.jit(ft.vmap(fun))(keys), expected)


def test_traced_number_of_a_step():
    key = random.key(1)
    folded = ft.vmap(lambda i: random.fold_in(key, i))(np.arange(5))
    assert np.array_equal(folded, [random.fold_in(key, i) for i in range(5)])


def test_shape_of_split():
    key = random.key(1)
    assert random.split(key).shape == (2, 2)
    assert random.split(key, (2, 3)).shape == (2, 3, 2)
    assert random.split(key, 0).shape == (0, 2)
    assert np.array_equal(random.split(key, 6), random.split(key, (2, 3)).reshape(6, 2))


def test_each_bit_is_balanced_and_uncorrelated():
    bits = np.unpackbits(random.bits(random.key(3), (1 << 14,), np.uint32).view(np.uint8))
    bits = bits.reshape(-1, 32).astype(float)
    n = len(bits)
    assert np.abs(bits.mean(0) - 0.5).max() < 4 * 0.5 / np.sqrt(n)
    correlation = np.corrcoef(bits.T) - np.eye(32)
    assert np.abs(correlation).max() < 5 / np.sqrt(n)


def test_children_are_uncorrelated():
    first, second = random.split(random.key(0))
    x, y, z = (random.normal(k, 10_000) for k in (first, second, random.key(0)))
    assert np.abs(np.corrcoef([x, y, z]) - np.eye(3)).max() < 0.04


KEY = np.zeros(2, np.uint32)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: random.normal(3), TypeError, r"an array uint32\[2\], got int 3"),
        (lambda: random.normal(np.zeros(2)), TypeError, r"got float64\[2\]"),
        (lambda: random.split(np.zeros((3, 2), np.uint32)), TypeError, "use ft.vmap"),
        (lambda: random.key(1.5), TypeError, "one integer is needed"),
        (lambda: random.key(np.arange(2)), TypeError, "one integer is needed"),
        (lambda: random.key(1 << 64), OverflowError, "64 bits"),
        (lambda: random.bits(KEY, (), np.int32), TypeError, "unsigned"),
        (lambda: random.uniform(KEY, (-1,)), ValueError, "no negative extents"),
        (lambda: random.uniform(KEY, "ab"), TypeError, "a shape is an integer"),
        (lambda: random.uniform(KEY, 2, np.int32), TypeError, "float64"),
        (lambda: random.uniform(KEY, 2, minval=np.zeros(3)), ShapeError, "does not broadcast"),
        (lambda: random.randint(KEY, 2, 0.0, 1.0), TypeError, "ends must be integers"),
        (lambda: random.randint(KEY, 2, 0, 1, np.float64), TypeError, "must be of integers"),
        (lambda: random.gamma(KEY, np.ones(2), (3,)), ShapeError, "do not broadcast"),
        (lambda: random.gamma(KEY, np.ones(2), ()), ShapeError, "do not broadcast"),
        (lambda: random.gamma(KEY, 1j), TypeError, "must be real"),
        (lambda: random.dirichlet(KEY, 1.0), ShapeError, "needs an axis"),
        (lambda: random.categorical(KEY, 1.0), ShapeError, "need an axis"),
        (lambda: random.categorical(KEY, np.zeros((2, 0))), ValueError, "nothing to draw"),
        (lambda: random.choice(KEY, 3, (4,), replace=False), ValueError, "cannot choose 4 of 3"),
        (lambda: random.choice(KEY, 0, (4,)), ValueError, "cannot choose 4 of 0"),
        (lambda: random.choice(KEY, 3, (4,), p=np.ones(2)), ShapeError, r"needs shape \(3,\)"),
        (lambda: random.choice(KEY, 1.5), TypeError, "an array or an integer"),
        (lambda: random.multinomial(KEY, 3, 1.0), ShapeError, "last axis of outcomes"),
        (lambda: random.rademacher(KEY, (), np.uint8), TypeError, "signed"),
        (lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(3)), ShapeError, "are needed"),
        (
            lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(2), method="qr"),
            ValueError,
            "'cholesky', 'eigh' or 'svd'",
        ),
    ],
)  # fmt: skip
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("data", [-1, 2**32, np.int64(2**40)])
def test_folding_in_more_than_32_bits_is_refused(data):
    with pytest.raises(OverflowError, match=r"0 to 2\*\*32 - 1, but is "):
        random.fold_in(random.key(0), data)
