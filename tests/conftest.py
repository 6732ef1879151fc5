"""What holds for every test: fixed seeds, one BLAS thread, a cache, no state left behind.

Warnings are errors and expected failures are strict by ``pyproject.toml``.
"""
# ruff: noqa: E402  # the environment is read when NumPy and functrans are imported

import os

# Parallel BLAS in parallel test processes is slower than none.
for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("FUNCTRANS_NUM_THREADS", str(os.cpu_count() or 1))

# What fails in a test may be functrans itself.
os.environ.setdefault("FUNCTRANS_TRACEBACK", "full")

from pathlib import Path

# Machine code of the tests is kept from run to run, by the text of functrans's sources, beside
# pytest's own cache: it neither fills nor clears the user's.
_CACHE = Path(__file__).parents[1] / ".pytest_cache" / "functrans"
os.environ.setdefault("FUNCTRANS_CACHE_DIR", str(_CACHE))
os.environ.setdefault("FUNCTRANS_CACHE_SIZE_MB", "512")

import gc
import zlib
from collections import Counter
from collections.abc import Generator, Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import cases
import functrans as ft
from functrans.core import state

settings.register_profile(
    "functrans",
    # The same examples in every run, on every machine.
    derandomize=True,
    database=None,
    # The time of an example depends on the machine; pytest's timeout guards against hangs.
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("functrans")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Without the garbage collector, for all of it is kept."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


_LONG = frozenset((Path(__file__).parent / "long_sweeps.txt").read_text().splitlines())
_ONE_OF = {"0": 12, "1": 6}
"""Items of a long sweep for each that is run, by ``FUNCTRANS_TEST_FULL``."""
_SHARE = int(os.environ.get("FUNCTRANS_TEST_SHARE") or "0")
"""Which of them; every other number runs other ones."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run a share of each long sweep, but all that is asked for by name."""
    one_of = _ONE_OF.get(cases.LEVEL, 1)
    by_name = config.option.keyword or config.option.case or any("::" in x for x in config.args)
    if one_of == 1 or by_name:
        return
    seen: Counter[str] = Counter()
    kept, left = [], []
    for item in items:
        sweep = item.nodeid.partition("[")[0]
        phase = seen[sweep] + zlib.crc32(sweep.encode()) + _SHARE
        seen[sweep] += 1
        (left if sweep in _LONG and phase % one_of else kept).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def pytest_collection_finish() -> None:
    """The garbage collector need not go through thousands of tests: that takes seconds."""
    gc.set_threshold(10_000, 20, 20)
    gc.freeze()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Nor through what the tests of a file leave in caches, from then on."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Chooses among the cases of tests that loop over them, as ``-k`` does among tests."""
    parser.addoption("--case", default="", help="run the cases with this text in their name only")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded by the test's own name."""
    return cases.generator(request.node.nodeid)


@pytest.fixture(autouse=True)
def no_state_left_behind() -> Iterator[None]:
    """Every test starts from the same seed, and leaves the global state as it found it."""
    assert state.current_config.get() == state.Config(), "the configuration was changed before"
    with cases.no_state_left_behind():
        yield


@pytest.fixture
def names_as_they_are() -> Iterator[None]:
    """No twins of functions of plain code: what is refused without them."""
    with ft.config(plain=False):
        yield
