"""``Jaxpr.cost``: counts against counting by hand, through control flow, and the printed table."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.core.dispatch import aval_of
from functrans.extend import Expansion, Primitive, bind
from samples import Row, each_sample

M = np.ones((4, 3))
N = np.ones((3, 5))
V = np.ones(7)


def cost(f: Any, *args: Any) -> Any:
    return ft.make_jaxpr(f)(*args).cost()


@pytest.mark.parametrize(
    ("f", "args", "flops", "functions"),
    [
        (lambda x: x + 1.0, (V,), 7, 0),
        (lambda x: x * x / 2.0, (V,), 14, 0),
        (lambda x: np.exp(x), (V,), 0, 7),
        (lambda x: np.sqrt(x), (V,), 7, 0),
        (lambda x: np.sum(x), (V,), 7, 0),
        (lambda x: np.max(x), (V,), 7, 0),
        (lambda a, b: a @ b, (M, N), 2 * 4 * 3 * 5, 0),
        (lambda a, b: a @ b, (M + 0j, N + 0j), 8 * 4 * 3 * 5, 0),
        (lambda a, b: np.einsum("bij,bjk->bik", a, b), (np.ones((2, 4, 3)), np.ones((2, 3, 5))),
         2 * 2 * 4 * 3 * 5, 0),
        (lambda x: x[::2].reshape(2, 2).T, (V,), 0, 0),
        (lambda x: x * 1j, (V + 0j,), 42, 0),
        (lambda a: np.linalg.cholesky(a), (np.eye(6),), 6**3 / 3, 0),
        (lambda x: np.fft.fft(x), (np.ones(8) + 0j,), 5 * 8 * 3, 0),
        (lambda x: x, (V,), 0, 0),
        (lambda x: np.sum(np.tanh(x)), (np.zeros(0),), 0, 0),
    ],
)  # fmt: skip
def test_operations_of_one_equation(f: Any, args: Any, flops: float, functions: float) -> None:
    found = cost(f, *args)
    assert found.flops == pytest.approx(flops)
    assert found.transcendentals == functions
    assert found.is_bounded


def test_bytes_and_peak_memory() -> None:
    def f(x: Any) -> Any:
        a = x + 1.0  # x a
        b = a * a  # x a b
        c = np.sin(b)  # x b c
        return c + x

    found = cost(f, np.zeros(1000, np.float32))
    assert [eqn.bytes_read for eqn in found.equations] == [4000, 8000, 4000, 8000]
    assert [eqn.bytes_written for eqn in found.equations] == [4000] * 4
    assert found.bytes == 40000
    assert (found.argument_bytes, found.result_bytes) == (4000, 4000)
    assert found.peak_bytes == 12000
    assert found.intensity == pytest.approx(3000 / 40000)


def test_peak_of_reverse_mode_grows_with_depth() -> None:
    def chain(n: int) -> Any:
        def f(x: Any) -> Any:
            for _ in range(n):
                x = np.sin(x)
            return np.sum(x)

        return f

    x = np.zeros(1000)
    assert cost(chain(10), x).peak_bytes == cost(chain(20), x).peak_bytes
    deep, shallow = (cost(ft.grad(chain(n)), x).peak_bytes for n in (20, 10))
    assert deep - shallow == pytest.approx(10 * 8000, rel=0.2)


def test_control_flow() -> None:
    def body(c: Any, x: Any) -> Any:
        return c * x + 1.0, np.exp(c)

    found = cost(lambda c, xs: lax.scan(body, c, xs), V, np.ones(11))
    assert found.flops == 11 * 14
    assert found.transcendentals == 11 * 7
    (eqn,) = (e for e in found.equations if e.primitive == "scan")
    assert eqn.runs == 11
    assert eqn.inner[0].flops == 14
    assert found.by_primitive()["exp"] == (1, 77.0, 11 * 2 * 56.0)

    branches = cost(lambda x: lax.cond(x[0] > 0, lambda v: v + 1.0, lambda v: v * 2.0 + v, x), V)
    (eqn,) = (e for e in branches.equations if e.primitive == "cond")
    assert eqn.flops == 14

    loop = cost(lambda x: lax.while_loop(lambda v: v[0] < 3, lambda v: v + 1.0, x), V)
    assert not loop.is_bounded
    assert loop.flops == 7 + 1
    assert "while loops count one iteration" in str(loop)

    called = cost(lambda x: ft.jit(lambda v: v * v)(x), V)
    assert called.flops == 7
    assert called.peak_bytes == 2 * 56


def test_scopes_lines_and_table() -> None:
    def f(a: Any, b: Any) -> Any:
        with ft.named_scope("product"):
            c = a @ b
        return np.sum(np.exp(c))

    found = cost(f, M, N)
    text = str(found)
    lines = text.splitlines()
    assert lines[0].startswith("f: 140 flop, 20 functions")
    assert "dot_general" in lines[2]
    assert "75.0%" in lines[2]
    assert "test_costs.py:" in lines[2]
    assert found.by_scope()["product"] == (1, 120.0, 8.0 * (12 + 15 + 20))
    assert "and 2 more equations" in found.table(limit=1)
    assert sum(found.by_scope()[s][1] for s in found.by_scope()) == 160


def test_costs_of_jitted_functions() -> None:
    f = ft.jit(lambda a, b: np.sum(a @ b))
    assert f.cost(M, N).flops == f.lower(M, N).cost().flops == 140
    assert f.cost(ft.ShapeDtypeStruct((4, 3), float), N).flops == 140


def test_it_is_computed_once_and_changes_nothing() -> None:
    jaxpr = ft.make_jaxpr(lambda x: np.sin(x))(V)
    before = str(jaxpr), jaxpr.structural_hash()
    assert jaxpr.cost() is jaxpr.cost()
    assert (str(jaxpr), jaxpr.structural_hash()) == before


@pytest.mark.parametrize(
    ("row", "label"), each_sample(lambda row, _: row.primitive.work is not None)
)
def test_work_on_the_record_is_a_count(row: Row, label: str) -> None:
    sample = row.sample(label)
    work = row.primitive.work
    assert work is not None
    flops, functions = work(*map(aval_of, sample.operands), **dict(sample.params))
    assert 0 <= flops < np.inf
    assert 0 <= functions < np.inf


def test_an_expansion_costs_what_it_consists_of() -> None:
    cube = Primitive(
        "cube_all", lambda x: (x * x * x,), lambda x: (x.strong(),), lambda *_: (),
        lower=Expansion(lambda x: (x * x * x,)),
    )  # fmt: skip
    assert cost(lambda x: bind(cube, x)[0], np.ones((10, 10))).flops == 200
