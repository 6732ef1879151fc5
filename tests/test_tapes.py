"""Operations on whole tapes, entry by entry, and their transposes."""

import pickle
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.core.avals import ShapedArray, Tape
from functrans.core.dispatch import bind
from functrans.core.primitive import LinearOperand
from functrans.core.tapes import TapeValue
from functrans.primitives.tapes import (
    PRIMITIVES,
    empty_tape_p,
    tape_add_p,
    tape_broadcast_to_p,
    tape_reshape_p,
    tape_sum_to_p,
)


def _tape(shape: tuple[int, ...], entries: list[Any], is_nested: bool = False) -> TapeValue:
    aval: Any = Tape(ShapedArray(shape, np.dtype(np.float64)))
    if is_nested:
        aval = Tape(aval)
    tape = TapeValue(aval)
    for entry in entries:
        tape.append(entry)
    return tape


def _random(rng: np.random.Generator, shape: tuple[int, ...], length: int) -> TapeValue:
    return _tape(shape, [rng.standard_normal(shape) for _ in range(length)])


def _inner(first: TapeValue, second: TapeValue) -> float:
    n = max(first.length, second.length)
    return float(sum(np.sum(first.read(i) * second.read(i)) for i in range(n)))


# primitive, shape of entries, parameters, shape of the result's entries
CASES: tuple[tuple[Any, tuple[int, ...], dict[str, Any], tuple[int, ...]], ...] = (
    (tape_broadcast_to_p, (3,), {"shape": (2, 3)}, (2, 3)),
    (tape_broadcast_to_p, (), {"shape": (2,)}, (2,)),
    (tape_sum_to_p, (2, 3), {"shape": (3,)}, (3,)),
    (tape_sum_to_p, (2, 3), {"shape": (2, 1)}, (2, 1)),
    (tape_reshape_p, (2, 3), {"shape": (3, 2)}, (3, 2)),
)
NUMPY = {
    "tape_broadcast_to": np.broadcast_to,
    "tape_sum_to": lambda x, shape: (
        x.reshape(-1, *shape).sum(0) if len(shape) == 1 else x.sum(1, keepdims=True)
    ),
    "tape_reshape": np.reshape,
}


def test_all_records_are_here() -> None:
    tested = {primitive.name for primitive, *_ in CASES} | {"tape_add", "empty_tape"}
    assert tested == {primitive.name for primitive in PRIMITIVES}


@pytest.mark.parametrize(("primitive", "shape", "params", "out_shape"), CASES)
def test_entries_are_mapped(
    primitive: Any, shape: Any, params: Any, out_shape: Any, rng: np.random.Generator
) -> None:
    tape = _random(rng, shape, 20)
    (out,) = bind(primitive, tape, **params)
    assert primitive.abstract_eval(tape.aval, **params) == (out.aval,)
    assert out.aval == Tape(ShapedArray(out_shape, np.dtype(np.float64)))
    assert out.length == 20
    for i in range(20):
        expected = NUMPY[primitive.name](tape.read(i), params["shape"])
        np.testing.assert_allclose(out.read(i), expected, rtol=1e-14)
    assert not np.any(out.read(25))


@pytest.mark.parametrize(("primitive", "shape", "params", "out_shape"), CASES)
def test_transpose_is_adjoint(
    primitive: Any, shape: Any, params: Any, out_shape: Any, rng: np.random.Generator
) -> None:
    tape, ct = _random(rng, shape, 5), _random(rng, out_shape, 4)
    (out,) = bind(primitive, tape, **params)
    (pulled,) = primitive.transpose((ct,), (LinearOperand(tape.aval),), **params)
    assert pulled.aval == tape.aval
    np.testing.assert_allclose(_inner(pulled, tape), _inner(ct, out), rtol=1e-12)


@pytest.mark.parametrize(("primitive", "shape", "params", "out_shape"), CASES)
def test_batch_is_the_loop(
    primitive: Any, shape: Any, params: Any, out_shape: Any, rng: np.random.Generator
) -> None:
    batch = _random(rng, (3, *shape), 4)
    outs, dims = primitive.batch(3, (batch,), (0,), **params)
    assert dims == (0,)
    for lane in range(3):
        one = _tape(shape, [batch.read(i)[lane] for i in range(4)])
        (expected,) = bind(primitive, one, **params)
        for i in range(4):
            np.testing.assert_allclose(outs[0].read(i)[lane], expected.read(i), rtol=1e-14)


def test_sum_of_tapes_of_different_length(rng: np.random.Generator) -> None:
    long, short = _random(rng, (2,), 5), _random(rng, (2,), 3)
    for first, second in ((long, short), (short, long)):
        (out,) = bind(tape_add_p, first, second)
        assert tape_add_p.abstract_eval(first.aval, second.aval) == (out.aval,)
        for i in range(6):
            np.testing.assert_array_equal(out.read(i), long.read(i) + short.read(i))


def test_transpose_of_a_sum_goes_to_both(rng: np.random.Generator) -> None:
    ct = _random(rng, (2,), 3)
    operand = LinearOperand(ct.aval)
    first, second = tape_add_p.transpose((ct,), (operand, operand))  # type: ignore[misc]  # it has one
    assert _inner(first, ct) == _inner(second, ct) == _inner(ct, ct)


def test_tapes_of_tapes(rng: np.random.Generator) -> None:
    nested = _tape((2,), [_random(rng, (2,), n) for n in (3, 0, 2)], is_nested=True)
    (out,) = bind(tape_broadcast_to_p, nested, shape=(4, 2))
    assert out.aval == tape_broadcast_to_p.abstract_eval(nested.aval, shape=(4, 2))[0]
    np.testing.assert_array_equal(out.read(0).read(1), np.stack([nested.read(0).read(1)] * 4))
    (total,) = bind(tape_add_p, nested, nested)
    np.testing.assert_array_equal(total.read(2).read(1), 2 * nested.read(2).read(1))


def test_empty_tape_reads_as_zero() -> None:
    aval = Tape(ShapedArray((2,), np.dtype(np.float64)))
    (tape,) = bind(empty_tape_p, aval=aval)
    assert tape.aval == aval
    assert tape.read(5).tolist() == [0.0, 0.0]


def test_branch_without_a_loop_leaves_an_empty_tape() -> None:
    def f(x: Any) -> Any:
        return lax.cond(
            x > 0,
            lambda x: lax.while_loop(lambda y: y < 3.0, lambda y: y * 1.5 + np.sin(y), x),
            lambda x: x * x,
            x,
        )

    jaxpr = ft.make_jaxpr(ft.grad(f))(1.0)
    assert "empty_tape" in str(jaxpr)
    again = pickle.loads(pickle.dumps(jaxpr))
    for x in (1.0, -1.0):
        assert ft.eval_jaxpr(again, None, x) == [ft.grad(f)(x)]
