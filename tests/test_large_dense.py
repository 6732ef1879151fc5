"""Dense Jacobians and Hessians in chunks, under a budget, with progress, in mixed directions."""

import builtins
import logging
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans import functional
from functrans.transforms.directions import cheapest_passes

X = np.linspace(0.1, 1.0, 7)
A = np.linspace(-1.0, 1.0, 35).reshape(5, 7)


def field(x: Any) -> Any:
    return np.tanh(A @ x) * x[:5]


def loss(x: Any) -> Any:
    return np.sum(np.sin(A @ x) ** 2) + np.sum(x**3)


JACOBIANS: dict[str, Any] = {
    "jacrev": (ft.jacrev, field),
    "jacfwd": (ft.jacfwd, field),
    "jacobian": (ft.jacobian, field),
    "hessian": (ft.hessian, loss),
    "hessian_diag": (ft.hessian_diag, loss),
}


# chunks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", JACOBIANS)
@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7, 50, "auto"])
def test_the_result_is_the_same_in_chunks(name: str, chunk_size: Any) -> None:
    transform, fun = JACOBIANS[name]
    whole = transform(fun)(X)
    found = transform(fun, chunk_size=chunk_size)(X)
    assert found.flags.owndata
    assert found.flags.writeable
    np.testing.assert_allclose(found, whole, rtol=1e-13)


@pytest.mark.parametrize("name", JACOBIANS)
@pytest.mark.parametrize("chunk_size", [1, 2, 3])
def test_chunks_of_a_compiled_function_are_a_loop(name: str, chunk_size: int) -> None:
    transform, fun = JACOBIANS[name]
    whole = transform(fun)(X)
    chunked = transform(fun, chunk_size=chunk_size)
    np.testing.assert_allclose(ft.jit(chunked)(X), whole, rtol=1e-12)
    np.testing.assert_allclose(ft.vmap(chunked)(np.stack([X, X]))[1], whole, rtol=1e-12)


def test_the_length_of_a_compiled_program_does_not_grow_with_the_chunks() -> None:
    lengths = [
        len(ft.make_jaxpr(ft.hessian(loss, chunk_size=1))(np.ones(n) @ np.ones((n, 7))).eqns)
        for n in (1, 2)
    ]
    assert lengths[0] == lengths[1]
    many = ft.make_jaxpr(ft.jacfwd(lambda x: np.sin(x) * x, chunk_size=2))
    assert len(many(np.ones(10)).eqns) == len(many(np.ones(200)).eqns)


def test_chunks_are_differentiable() -> None:
    def total(x: Any) -> Any:
        return np.sum(ft.jacobian(field, chunk_size=2)(x) ** 2)

    ft.check_grads(total, (X,), order=1, modes=("fwd", "rev"))
    np.testing.assert_allclose(ft.jit(ft.grad(total))(X), ft.grad(total)(X), rtol=1e-11)


def test_chunks_of_trees() -> None:
    point = {"a": X, "b": np.ones((2, 2)), "c": 0.5}

    def fun(p: Any) -> Any:
        return {"u": np.outer(p["a"], p["b"][0]) * p["c"], "v": np.sum(p["b"] ** 2)}

    whole = ft.jacobian(fun)(point)
    for transform in (ft.jacrev, ft.jacfwd, ft.jacobian):
        found = transform(fun, chunk_size=3)(point)
        ft.tree.map(np.testing.assert_allclose, found, whole)


def test_float32_and_complex_stay() -> None:
    x = X.astype(np.float32)
    assert ft.jacfwd(field, chunk_size=2)(x).dtype == np.float64  # by the matrix
    assert ft.jacfwd(np.sin, chunk_size=2)(x).dtype == np.float32
    z = ft.jacrev(np.exp, holomorphic=True, chunk_size=2)(X + 1j)
    np.testing.assert_allclose(z, np.diag(np.exp(X + 1j)))


# the budget -------------------------------------------------------------------------------------

MODEL = """
import tracemalloc
import numpy as np
import functrans as ft
from functrans import functional

rng = np.random.default_rng(0)
data, target = rng.normal(size=(100, 20)), rng.normal(size=100)
sizes = (20, 35, 35, 1)


def unpacked(p):
    layers, at = [], 0
    for a, b in zip(sizes, sizes[1:]):
        layers.append((p[at : at + a * b].reshape(a, b), p[at + a * b : at + a * b + b]))
        at += a * b + b
    return layers


def loss(layers):
    h = data
    for w, b in layers[:-1]:
        h = np.tanh(h @ w + b)
    w, b = layers[-1]
    return np.mean(((h @ w + b)[:, 0] - target) ** 2)


n = sum(a * b + b for a, b in zip(sizes, sizes[1:]))
point = 0.1 * rng.normal(size=n)
flat = lambda p: loss(unpacked(p))
ft.hessian(lambda x: np.sum(np.tanh(data[:4, :4] @ x)))(np.ones(4))  # imports
calls = []
options = dict(memory_bytes=BUDGET, progress=lambda done, total: calls.append((done, total)))
def memory(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


before = memory("VmRSS")
if TRACED:
    tracemalloc.start()
"""

RUNS = {
    "hessian": "H = ft.hessian(flat, **options)(point)",
    "functional": "H = functional.hessian(flat, point, **options)",
    "layers": "H = ft.hessian(loss, **options)(unpacked(point))[1][0][1][0].reshape(1225, 1225)",
    "rows": "H = ft.jacrev(ft.grad(flat), **options)(point)",
}

REPORT = """
if TRACED:
    peak = tracemalloc.get_traced_memory()[1]
else:
    peak = memory("VmHWM") - before
v = rng.normal(size=len(H))
assert len(calls) > 1 and calls[-1] == (n, n) and n > 2000, calls
assert [done for done, _ in calls] == sorted({done for done, _ in calls})
assert np.max(np.abs(H - H.T)) < 1e-12
if len(H) == n:
    product = ft.hvp(flat, (point,), (v,))
    assert np.max(np.abs(H @ v - product)) < 1e-11 * np.max(np.abs(product))
print(peak)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@each("traced", [True, False], one_of=2)
@each("name", RUNS, by="name")
def test_a_hessian_of_two_thousand_parameters_within_200_megabytes(name: str, traced: bool) -> None:
    code = MODEL.replace("BUDGET", "200_000_000").replace("TRACED", str(traced)) + RUNS[name]
    code += REPORT.replace("TRACED", str(traced))
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert not run.returncode, run.stderr
    peak = int(run.stdout)
    assert 4 * 1225**2 < peak < 200_000_000


def test_a_budget_too_small_for_the_result() -> None:
    with pytest.raises(MemoryError, match=r"20 x 20 entries needs 3200 bytes.*memory_bytes=\.\.\."):
        ft.jacfwd(np.sin, memory_bytes=3199)(np.ones(20))
    with pytest.raises(MemoryError, match=r"functional.hessian of .* 3200 bytes"):
        functional.hessian(lambda x: np.sum(np.sin(x)), np.ones(20), memory_bytes=3199)


@pytest.mark.parametrize("name", JACOBIANS)
def test_a_budget_too_small_for_one_row_or_column_says_what_is_needed(name: str) -> None:
    transform, fun = JACOBIANS[name]
    with pytest.raises(MemoryError, match=r"Give (\d+) bytes at least") as caught:
        transform(fun, memory_bytes=500)(X)
    needed = int(str(caught.value).split("Give ")[1].split()[0])
    np.testing.assert_allclose(transform(fun, memory_bytes=needed)(X), transform(fun)(X))
    with pytest.raises(MemoryError, match=f"Give {needed} bytes"):
        transform(fun, memory_bytes=needed - 1)(X)


def test_what_a_column_needs_is_estimated_from_the_program() -> None:
    def needed(width: int) -> int:
        with pytest.raises(MemoryError) as caught:
            ft.jacfwd(lambda x: np.sum(np.sin(np.outer(x, np.ones(width)))), memory_bytes=60)(X)
        return int(str(caught.value).split("Give ")[1].split()[0])

    assert needed(1000) - needed(500) >= 500 * 7 * 8


# progress ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", JACOBIANS)
def test_progress_reports_each_chunk(name: str) -> None:
    transform, fun = JACOBIANS[name]
    calls: list[tuple[int, int]] = []
    found = transform(fun, chunk_size=2, progress=lambda *call: calls.append(call))(X)
    total = 5 if name in ("jacrev", "jacobian") else 7
    assert calls == [(min(k, total), total) for k in range(2, total + 2, 2)]
    np.testing.assert_allclose(found, transform(fun)(X))


def test_nothing_is_printed_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    ft.hessian(loss, chunk_size=1)(X)
    assert capsys.readouterr() == ("", "")


def test_a_bar_of_tqdm(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    ft.hessian(loss, chunk_size=2, progress=True)(X)
    assert "hessian: 100%" in capsys.readouterr().err


def test_without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("tqdm"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"hessian: progress=True.*pip install tqdm.*function of"):
        ft.hessian(loss, progress=True)


@pytest.mark.parametrize("name", ["jacrev", "jacfwd", "jacobian"])
def test_progress_comes_to_its_end_where_nothing_depends(name: str) -> None:
    calls: list[tuple[int, int]] = []
    transform = JACOBIANS[name][0]
    transform(
        lambda x, y: (np.ones(3), x**2, x[:0]),
        (0, 1),
        chunk_size=2,
        progress=lambda *call: calls.append(call),
    )(X, X)
    done, total = calls[-1]
    assert done == total
    assert sorted(set(calls)) == calls


@pytest.mark.parametrize("name", JACOBIANS)
@pytest.mark.parametrize("chunk_size", [2, "auto"])
@pytest.mark.parametrize("transform", [ft.jit, ft.vmap])
def test_progress_of_staged_programs_is_refused(name: str, chunk_size: Any, transform: Any) -> None:
    jacobian, fun = JACOBIANS[name]
    chunked = jacobian(fun, chunk_size=chunk_size, progress=lambda done, total: None)
    with pytest.raises(ft.errors.UnsupportedOperationError, match=r"progress.*staged"):
        transform(chunked)(X if transform is ft.jit else np.stack([X, X]))


def test_progress_of_a_staged_gradient_is_refused() -> None:
    chunked = ft.jacrev(loss, progress=lambda done, total: None)
    with pytest.raises(ft.errors.UnsupportedOperationError, match=r"progress.*staged"):
        ft.jit(chunked)(X)


@pytest.mark.parametrize("name", JACOBIANS)
def test_options_are_integers_of_any_kind(name: str) -> None:
    transform, fun = JACOBIANS[name]
    found = transform(fun, chunk_size=np.int64(2), memory_bytes=np.int32(10**9))(X)
    np.testing.assert_allclose(found, transform(fun)(X), rtol=1e-13)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"chunk_size": 0}, ValueError, "chunk_size must be 'auto' or a positive integer, got 0"),
        ({"chunk_size": 2.0}, ValueError, "got 2.0"),
        ({"chunk_size": True}, ValueError, "got True"),
        ({"memory_bytes": 0}, ValueError, "memory_bytes must be .* number of bytes, got 0"),
        ({"memory_bytes": float("inf")}, ValueError, "number of bytes, got inf"),
        ({"memory_bytes": "1"}, ValueError, "memory_bytes must be None or a positive number"),
        ({"progress": "yes"}, TypeError, "progress must be a bool or a function.*got str"),
    ],
)
@pytest.mark.parametrize("name", JACOBIANS)
def test_bad_options(name: str, options: Any, error: type[Exception], match: str) -> None:
    transform, fun = JACOBIANS[name]
    with pytest.raises(error, match=f"^{name}: .*{match}"):
        transform(fun, **options)
    with pytest.raises(error, match=f"^functional.hessian: .*{match}"):
        functional.hessian(loss, X, **options)


# directions -------------------------------------------------------------------------------------


def _mode(caplog: pytest.LogCaptureFixture, fun: Any, *args: Any) -> str:
    caplog.clear()
    numbers = tuple(range(len(args)))
    with caplog.at_level(logging.DEBUG, "functrans"):
        found = ft.jacobian(fun, numbers)(*args)
    expected = ft.jacrev(fun, numbers)(*args)
    ft.tree.map(np.testing.assert_allclose, found, expected)
    (record,) = caplog.records
    return record.getMessage().split(": ")[1].split()[0]


def test_the_direction_is_chosen_by_leaves(caplog: pytest.LogCaptureFixture) -> None:
    big, small = np.linspace(0.1, 1.0, 50), 0.3

    def arrow(x: Any, t: Any) -> Any:
        """A scalar of all of ``x``, and a vector that depends on ``t`` only."""
        return np.sum(x**2) * t, t * np.arange(1.0, 60.0)

    assert _mode(caplog, arrow, big, small) == "mixed"
    assert _mode(caplog, lambda x, t: (np.sum(x) * t, t**2), big, small) == "reverse"
    assert _mode(caplog, lambda t, s: (t * big, s * big), small, small) == "forward"
    assert _mode(caplog, lambda x, t: (np.ones(3), np.zeros(2)), big, small) == "reverse"


@pytest.mark.parametrize("seed", range(20))
def test_the_cheapest_passes_against_all_choices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 5, 2)
    edges = [[j for j in range(m) if rng.random() < 0.5] for _ in range(n)]
    rows, columns = rng.integers(0, 10, n).tolist(), rng.integers(0, 10, m).tolist()

    def cost(own_rows: Any, own_columns: Any) -> Any:
        is_covered = all(i in own_rows or j in own_columns for i in range(n) for j in edges[i])
        total = sum(rows[i] for i in own_rows) + sum(columns[j] for j in own_columns)
        return total if is_covered else np.inf

    best = min(
        cost({i for i in range(n) if a >> i & 1}, {j for j in range(m) if b >> j & 1})
        for a in range(2**n)
        for b in range(2**m)
    )
    assert cost(*cheapest_passes(rows, columns, edges)) == best


# products ---------------------------------------------------------------------------------------

NESTINGS = ("auto", "forward-over-reverse", "reverse-over-forward", "reverse-over-reverse")


@pytest.mark.parametrize("nesting", NESTINGS)
def test_the_nestings_of_hvp_agree(nesting: str) -> None:
    def looped(p: Any, y: Any) -> Any:
        carry, _ = ft.lax.scan(lambda c, a: (np.sin(c) * a + y, None), np.sum(p["w"] ** 2), X)
        return carry * np.sum(p["w"])

    args = ({"w": X}, 0.4)
    vectors = ({"w": X[::-1].copy()}, 0.7)
    expected = ft.jvp(ft.grad(looped, (0, 1)), args, vectors)[1]
    for transform in (ft.hvp, ft.vhp):
        found = transform(looped, args, vectors, nesting=nesting)
        ft.tree.map(np.testing.assert_allclose, found, expected)
        compiled = ft.jit(lambda a, v, t=transform: t(looped, a, v, nesting=nesting))(args, vectors)
        ft.tree.map(np.testing.assert_allclose, compiled, expected)


def test_an_unknown_nesting() -> None:
    with pytest.raises(ValueError, match=r"hvp: nesting must be one of.*got 'inside out'"):
        ft.hvp(loss, (X,), (X,), nesting="inside out")


def test_hvp_of_a_custom_vjp_inside_jit_skips_the_nesting_without_a_rule() -> None:
    @ft.custom_vjp
    def sine(x: Any) -> Any:
        return np.sum(np.sin(x))

    sine.defvjp(lambda x: (np.sum(np.sin(x)), x), lambda x, ct: (np.cos(x) * ct,))
    found = ft.jit(lambda x, v: ft.hvp(sine, (x,), (v,)))(X, X)
    np.testing.assert_allclose(found, -np.sin(X) * X)
