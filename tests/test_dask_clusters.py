"""Sums on the workers of a cluster: bits, faults, what travels."""

import functools
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import weakref
from contextlib import contextmanager
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster, get_client, wait

import functrans as ft
import functrans.numpy as fnp
from functrans.dask import chunks, running, scheduling, totals

RNG = np.random.default_rng(1)
X = RNG.normal(size=(300, 4)) * 10.0 ** RNG.integers(-6, 6, (300, 1))
W = RNG.normal(size=4)

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of the cluster, when it ends
    pytest.mark.xdist_group("cluster"),
]


@contextmanager
def cluster():
    """A client of two processes."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as started,
        Client(started) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def client():
    with cluster() as connected:
        yield connected


def loss(w, x):
    return fnp.sum(fnp.tanh(x @ w) * x[:, 0])


def slow_loss(w, x):
    """A part takes a while."""
    return loss(ft.lax.fori_loop(0, 200_000, lambda i, v: fnp.cos(v) * 1.0, w), x)


def data(rows=10):
    return da.from_array(X, chunks=(rows, 4))


def test_bits_are_those_of_threads_with_any_number_of_workers(client):
    summed = ft.dask.sum_over(loss)
    found = [ft.grad(summed)(W, data()).tobytes() for _ in range(3)]
    with dask.config.set(scheduler="synchronous"):
        found.append(ft.grad(summed)(W, data()).tobytes())
    workers = list(client.scheduler_info()["workers"])
    kept = client.persist(data(), workers=workers[:1])
    found.append(ft.grad(summed)(W, kept).tobytes())
    assert len(set(found)) == 1
    np.testing.assert_allclose(ft.grad(summed)(W, data()), ft.grad(loss)(W, X), 1e-9)


def test_a_program_travels_once_and_progress_shows_its_name(client):
    def named_loss(w, x):
        return loss(w, x)

    summed = ft.dask.sum_over(named_loss)
    gradient = ft.jit(ft.grad(lambda w: summed(w, data())))
    for scale in (1.0, 2.0, 3.0):
        gradient(scale * W)

    def programs():
        from functrans.dask.running import _programs

        return [program.name for program in _programs.values()]

    for names in client.run(programs).values():
        assert names.count("grad[named_loss]") == 1
    prefixes = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    assert "grad[named_loss]" in prefixes


def test_large_operands_go_to_workers_directly(client, monkeypatch):
    summed = ft.dask.sum_over(loss)
    expected = ft.grad(summed)(W, data())
    for small, large in ((0, 1 << 20), (0, 8)):
        monkeypatch.setattr(totals, "SMALL_BYTES", small)
        monkeypatch.setattr(totals, "LARGE_BYTES", large)
        assert ft.grad(summed)(W, data()).tobytes() == expected.tobytes()


def test_parts_that_lie_on_both_workers_are_evaluated_there(client, monkeypatch):
    summed = ft.dask.sum_over(loss)
    expected = ft.grad(summed)(W, data(3)).tobytes()
    kept = client.persist(data(3))
    wait(kept)
    asked = []
    old = totals.schedule

    def schedule(graph, keys):
        asked.append(sum(getattr(v, "func", None) is totals.run_parts for v in graph.values()))
        return old(graph, keys)

    monkeypatch.setattr(totals, "schedule", schedule)
    assert ft.grad(summed)(W, kept).tobytes() == expected
    assert ft.grad(summed)(W, kept * 1.0).tobytes() == expected
    assert all(8 <= count <= 11 for count in asked)
    monkeypatch.setattr(totals, "LARGE_BYTES", 8)
    assert ft.grad(summed)(W, kept).tobytes() == expected


def test_persisted_data_lives_as_long_as_it_is_asked_for(client):
    def made():
        kept = (data() * 1.0).persist()
        blocks = ft.dask.jacobian(lambda w, x: fnp.tanh(x @ w))(W, kept)
        summed = ft.dask.sum_over(loss)
        return (
            blocks,
            ft.vjp(lambda w: summed(w, kept), W)[1],
            ft.linearize(
                lambda w: ft.dask.sum_over(lambda w, x: fnp.tanh(x.T @ (x @ w)))(w, kept), W
            )[1],
        )

    blocks, pull, push = made()
    gc.collect()
    time.sleep(0.5)
    expected = ft.jacobian(lambda w: fnp.tanh(X @ w))(W)
    np.testing.assert_allclose(blocks.compute(), expected, 1e-9, 1e-12)
    np.testing.assert_allclose(pull(1.0)[0], ft.grad(loss)(W, X), 1e-9)
    assert np.isfinite(push(W)).all()


def test_exceptions_of_workers_come_back(client):
    def fails(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 7:
            raise OSError("no such disk")
        return block

    broken = data().map_blocks(fails, dtype=float, meta=X[:0])
    with pytest.raises(OSError, match="no such disk") as caught:
        ft.dask.sum_over(loss)(W, broken)
    assert caught.value.__notes__ == ["in chunk 7 of 30 (rows 70:80) of the data"]

    @ft.jit
    def checked(w, x):
        return fnp.sum(fnp.linalg.cholesky(fnp.diag(x[:2, 0])) * w[0])

    with pytest.raises(np.linalg.LinAlgError) as caught:
        ft.dask.sum_over(checked)(W, data())
    assert any("in chunk" in note for note in caught.value.__notes__)


def test_workers_of_another_version_are_refused(client, monkeypatch):
    monkeypatch.setattr(running, "_version", lambda: "0.0.7")
    with pytest.raises(ft.errors.FunctransError, match=r"the program comes from 0\.0\.7; install"):
        ft.dask.sum_over(lambda w, x: fnp.sum(x @ (w * 3.5)))(W, data())


def test_an_interrupt_cancels_what_runs(client):
    summed = ft.dask.sum_over(slow_loss)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ft.grad(summed)(W, da.concatenate([data()] * 100))
    limit = time.monotonic() + 20
    while any(client.processing().values()) and time.monotonic() < limit:
        time.sleep(0.1)
    assert not any(client.processing().values())
    assert np.isfinite(ft.dask.sum_over(loss)(W, data()))


INTERRUPTED = """
import os, signal, sys, threading, time
import dask.array as da, numpy as np
from dask.distributed import Client, LocalCluster
import functrans as ft
from functrans.dask import scheduling

kind, notes = sys.argv[1:]
scheduling.is_shown = lambda: kind == "bars"


def noted(block):
    open(notes, "a").write("made\\n")
    return block


def made():
    return len(open(notes).readlines()) if os.path.exists(notes) else 0


def slow(w, x):
    return np.sum(ft.lax.fori_loop(0, 3_000_000, lambda i, v: np.cos(v) * 1.0, w) * x)


def interrupt():
    while made() < 4:
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)


def idle(client):
    if client is None:
        from dask import threaded
        threaded.default_pool.shutdown()
        return True
    def n_active(dask_worker):
        return len(dask_worker.active_threads)
    return not any(client.run(n_active).values()) and not any(client.processing().values())


def run(client):
    x = da.ones((400, 4), chunks=(1, 4)).map_blocks(noted, dtype=float, meta=np.ones((0, 4)))
    threading.Thread(target=interrupt).start()
    try:
        ft.grad(ft.dask.sum_over(slow))(np.ones(4), x)
    except KeyboardInterrupt as error:
        caught = error  # with its traceback, as a shell keeps the last one
        while not idle(client):
            time.sleep(0.1)
        print("interrupted after", made())


if __name__ == "__main__":
    if kind == "threads":
        run(None)
    else:
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            run(client)
"""


@pytest.mark.parametrize("kind", ["cluster", "bars", "threads"])
def test_what_runs_ends_at_the_next_part_after_an_interrupt(kind, tmp_path):
    """Each of the tasks that run has fifty parts, or more."""
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    command = [sys.executable, script, kind, tmp_path / "notes"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("interrupted after")
    assert int(last.split()[-1]) < 40
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("is_shown", [False, True])
def test_what_fails_is_raised_before_the_others_end(client, monkeypatch, tmp_path, is_shown):
    def waits(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 1:
            raise OSError("no such disk")
        limit = time.monotonic() + 60
        while not (tmp_path / "raised").exists() and time.monotonic() < limit:
            time.sleep(0.01)
        (tmp_path / "ended").touch()
        return block

    monkeypatch.setattr(scheduling, "is_shown", lambda: is_shown)
    x = data(150).map_blocks(waits, dtype=float, meta=X[:0])
    with pytest.raises(OSError, match="no such disk"):
        ft.dask.sum_over(loss)(W, x)
    assert not (tmp_path / "ended").exists()
    (tmp_path / "raised").touch()
    assert np.isfinite(ft.dask.sum_over(loss)(W, data()))


def test_closed_clients_are_forgotten():
    found = []
    for _ in range(3):
        with (
            LocalCluster(
                n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
            ) as started,
            Client(started) as connected,
        ):
            found.append(weakref.ref(connected))
            assert np.isfinite(ft.dask.sum_over(loss)(W, data()))
            assert len(running._sent) <= 2  # this one and, of another fixture, an open one
        del started, connected
    gc.collect()
    assert [reference() for reference in found[:2]] == [None, None]


def test_what_workers_hold_is_asked_again_while_it_is_made(client, tmp_path):
    def waits(block):
        while not (tmp_path / "asked").exists():
            time.sleep(0.01)
        return block

    kept = client.persist(data().map_blocks(waits, dtype=float, meta=X[:0]))
    parts = chunks.chunks_of("sum", [kept], ["x"], chunks.KnownParts())
    assert totals._places(parts, client)[0] == [None] * 30
    (tmp_path / "asked").touch()
    wait(kept)
    assert set(totals._places(parts, client)[0]) <= set(client.nthreads())


def test_a_task_that_calls_lends_its_thread(client):
    def called(scale):
        import functrans as ft

        get_client()
        return ft.dask.map(lambda x: x * scale, np.arange(40.0)).sum()

    found = client.gather([client.submit(called, scale) for scale in range(6)])
    assert found == [780.0 * scale for scale in range(6)]


def test_a_worker_that_is_killed_costs_time_only():
    """``FUNCTRANS_KILLS=50`` runs as many, each on a cluster of its own."""
    summed, x = ft.dask.sum_over(slow_loss), data()
    with dask.config.set(scheduler="synchronous"):
        expected = ft.grad(summed)(W, x)
    for seed in range(int(os.environ.get("FUNCTRANS_KILLS", "2"))):
        draw = random.Random(seed)
        with cluster() as client:
            pid = draw.choice(sorted(client.run(os.getpid).values()))
            timer = threading.Timer(draw.uniform(0.0, 0.6), os.kill, (pid, signal.SIGKILL))
            timer.start()
            found = ft.grad(summed)(W, x)
            timer.join()
        assert found.tobytes() == expected.tobytes()


def test_items_and_shards_have_the_bits_of_threads(client):
    P = ft.dask.P

    def fit(scale, key):
        start = ft.random.normal(key, (4,))

        def step(_, w):
            return w - 0.01 * ft.grad(lambda w: fnp.sum((X @ w - scale) ** 2))(w)

        return ft.lax.fori_loop(0, 20, step, start)

    def mapped():
        return ft.dask.map(fit, np.arange(11.0), key=ft.random.key(0))

    def body(w, x):
        def step(v, _):
            v = ft.lax.psum(x.T @ (x @ v), "i")
            return v / fnp.sqrt(v @ v), ft.lax.pmax(fnp.max(x @ v), "i")

        v, tops = ft.lax.scan(step, w, None, length=5)

        def halve(c):
            return (c[0] / 2, c[1] + 1)

        below = ft.lax.while_loop(
            lambda c: ft.lax.psum(fnp.sum(c[0] ** 2), "i") > 1.0, halve, (x @ v, 0)
        )
        return fnp.sum(tops) + v @ w, below[1]

    sharded = ft.dask.shard_map(body, (P(), P("i")), P(), "i", axis_size=10)

    def results():
        x = X * 1e-3
        steps = ft.jvp(lambda w: sharded(w, x)[0], (W,), (W,))
        return [mapped(), *sharded(W, x), *steps]

    found = results()
    with dask.config.set(scheduler="threads"):
        expected = results()
    assert [a.tobytes() for a in found] == [b.tobytes() for b in expected]
    gc.collect()
    limit = time.monotonic() + 20

    def held(dask_scheduler):
        return [str(key) for key in dask_scheduler.tasks]

    while time.monotonic() < limit:
        left = [key for key in client.run_on_scheduler(held) if "program-" not in key]
        if not left:
            break
        time.sleep(0.1)
    assert not left


def spread(client, x, extents, draw):
    """A Dask array of chunks of these extents, and where they lie is drawn, too."""
    whole = da.from_array(x, chunks=(extents, x.shape[1]))
    kind = draw.choice(["made", "persisted", "derived", "uneven"])
    if kind == "made":
        return whole
    workers = sorted(client.nthreads())
    if kind == "uneven":
        ends = np.cumsum(extents)
        parts = [
            client.scatter(part, workers=[draw.choice(workers[:1] * 4 + workers)], hash=False)
            for part in np.split(x, ends[:-1])
        ]
        whole = da.concatenate(
            [
                da.from_delayed(part, (extent, x.shape[1]), float)
                for part, extent in zip(parts, extents, strict=True)
            ]
        )
    kept = client.persist(whole)
    if draw.random() < 0.5:
        wait(kept)
    return kept * 1.0 if kind == "derived" else kept


def calls(width):
    """Calls ``(w, items, data) -> results`` of all kinds: sums, stacks, and both."""
    summed = ft.dask.sum_over(loss)

    def wide(w, x):
        return loss(w, x), fnp.tanh(x.T @ x)[..., None] * fnp.ones(width) * w[0]

    both = ft.dask.sum_over(wide)

    def mapped(w, items):
        return ft.dask.map(lambda item: fnp.sin(item * w)[..., None] * fnp.ones(width), items)

    def of_items(w, items):
        return fnp.sum(fnp.tanh(mapped(w, items)))

    return {
        "sum": lambda w, items, x: summed(w, x),
        "gradient": lambda w, items, x: ft.value_and_grad(summed)(w, x),
        "hessian": lambda w, items, x: ft.hessian(summed)(w, x),
        "batch": lambda w, items, x: ft.vmap(lambda w: ft.grad(summed)(w, x))(items[:2]),
        "wide sums": lambda w, items, x: both(w, x),
        "pushed": lambda w, items, x: ft.jvp(lambda w: both(w, x), (w,), (w,)),
        "map": lambda w, items, x: mapped(w, items),
        "stacks and sums": lambda w, items, x: ft.grad(of_items, (0, 1))(w, items),
        "blocks": lambda w, items, x: ft.dask.jacobian(lambda w, x: fnp.tanh(x @ w))(
            w, x
        ).compute(),
    }


@pytest.mark.parametrize("seed", range(int(os.environ.get("FUNCTRANS_CALLS", "8"))))
def test_bits_are_those_without_a_client_for_all_calls(client, monkeypatch, seed):
    """Any kind of call, data lying anywhere, and tasks cut in any way. ``FUNCTRANS_CALLS=300``."""
    draw = random.Random(seed)
    rng = np.random.default_rng(seed)
    count = draw.choice([1, 2, 7, 8, 9, 63, 65, 200])
    extents = draw.choice([(2,) * count, tuple(draw.randint(1, 4) for _ in range(count))])
    x = rng.normal(size=(sum(extents), 4)) * 10.0 ** rng.integers(-6, 6, (sum(extents), 1))
    items, w = rng.normal(size=(draw.randint(2, 60), 4)), rng.normal(size=4)
    monkeypatch.setattr(totals, "LARGE_BYTES", draw.choice([8, 1 << 20]))
    monkeypatch.setattr(totals, "SMALL_BYTES", draw.choice([0, 1 << 12]))
    monkeypatch.setattr(totals, "tasks_per_thread", lambda *_: draw.randint(1, 4))
    made = da.from_array(x, chunks=(extents, 4))
    anywhere = spread(client, x, extents, draw)
    known = calls(draw.choice([1, 300]))
    for name in draw.sample(sorted(known), 4):

        def of(data, is_jitted, name=name):
            call = functools.partial(known[name], x=data)
            return ft.jit(call) if is_jitted and name != "blocks" else call

        for is_jitted in (False, True):  # then, parts are the same objects in each call
            with dask.config.set(scheduler="synchronous"):
                expected = bits(of(made, is_jitted)(w, items))
            call = of(anywhere, is_jitted)
            for _ in range(1 + 2 * is_jitted):
                assert bits(call(w, items)) == expected, name


def bits(results):
    return [np.asarray(leaf).tobytes() for leaf in ft.tree.leaves(results)]


def test_the_example_fits_on_a_cluster(tmp_path):
    """It checks itself: slope, NumPy's numbers, distance from the truth."""
    pytest.importorskip("matplotlib")
    example = Path(__file__).parent.parent / "examples" / "dask_logistic.py"
    figure = tmp_path / "figure.png"
    command = [sys.executable, example, "--rows", "250_000", "--output", figure]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passes over 0.02 GB" in done.stdout
    assert figure.stat().st_size > 50_000


def test_results_of_parts_that_lie_on_several_workers_are_in_order(client):
    P = ft.dask.P
    x, w = np.arange(40.0), np.arange(40.0)[::-1].copy()
    workers = sorted(client.scheduler_info()["workers"])
    parts = [client.scatter(x[i : i + 1], workers=[workers[i % 2]], hash=False) for i in range(40)]
    spread = da.concatenate([da.from_delayed(part, (1,), float) for part in parts])

    def double(w, x):
        return 2.0 * x * w

    mapped = ft.dask.shard_map(double, (P("i"), P("i")), P("i"), "i")
    for held in (spread, client.persist(spread)):
        wait(held)
        assert np.array_equal(mapped(w, held), 2.0 * x * w)
        slope = ft.grad(lambda w, held=held: np.sum(mapped(w, held) * x))(w)
        assert np.array_equal(slope, 2.0 * x * x)
