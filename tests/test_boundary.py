"""What users see of errors and warnings: whose frames, which refusal, which line."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import io
import operator
import os
import pickle
import re
import subprocess
import sys
import textwrap
import threading
import traceback
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.integrate as si
import scipy.optimize as so

import functrans as ft
import functrans.numpy as fnp
from cases import each
from functrans import lax
from functrans.core.boundary import boundary
from functrans.errors import ConcretizationError, ShapeError, UnsupportedOperationError


@pytest.fixture(autouse=True)
def filtered() -> Iterator[None]:
    with ft.config(traceback="filtered"):
        yield


def frames(error: BaseException) -> list[str]:
    return [Path(frame.filename).name for frame in traceback.extract_tb(error.__traceback__)]


# refusals -----------------------------------------------------------------------------------------

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)


def through_ctypes(a: Any) -> float:
    return float(CALLBACK(lambda x: float(a))(1.0))


SWALLOWED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "brentq": (lambda a: so.brentq(lambda x: x * x - a, 0.0, 5.0), "scipy.optimize.brentq"),
    "bisect": (lambda a: so.bisect(lambda x: x * x - a, 0.0, 5.0), "scipy.optimize.bisect"),
    "root_scalar": (
        lambda a: so.root_scalar(lambda x: x * x - a, bracket=(0.0, 5.0)).root,
        "scipy.optimize.root_scalar",
    ),
    "fsolve": (lambda a: so.fsolve(lambda x: x * x - a, 1.0)[0], "scipy.optimize.fsolve"),
    "curve_fit": (
        lambda a: so.curve_fit(lambda x, p: p * x * a, np.arange(3.0), np.arange(3.0))[0][0],
        "scipy.optimize.curve_fit",
    ),
    "minimize": (
        lambda a: so.minimize(lambda x: np.sum((x - a) ** 2), np.zeros(2)).x[0],
        "scipy.optimize.minimize",
    ),
    "differential_evolution": (
        lambda a: so.differential_evolution(lambda x: np.sum((x - a) ** 2), [(0, 3)]).x[0],
        "scipy.optimize.differential_evolution",
    ),
    "quad": (lambda a: si.quad(lambda t: a * t, 0, 1)[0], "scipy.integrate.quad"),
    "dblquad": (lambda a: si.dblquad(lambda t, u: a * t, 0, 1, 0, 1)[0], "scipy.integrate.dblquad"),
    "a callback of C": (through_ctypes, "float() of a traced value"),
}


@each("name", SWALLOWED)
def test_the_first_refusal_is_raised_whatever_came_of_it(name: str, capfd: Any) -> None:
    function, text = SWALLOWED[name]
    calls: list[Callable[[], Any]] = [
        lambda: ft.grad(function)(2.0),
        lambda: ft.jit(function)(2.0),
        lambda: ft.jvp(function, (2.0,), (1.0,)),
        lambda: ft.vmap(function)(np.full(2, 2.0)),
        lambda: ft.jit(ft.grad(function))(2.0),
        lambda: ft.grad(ft.grad(function))(2.0),
    ]
    for call in calls:
        with ft.config(plain=False), pytest.raises(ConcretizationError) as caught:
            call()
        assert text in str(caught.value)
        assert "test_boundary.py:" in str(caught.value)
        assert set(frames(caught.value)) == {"test_boundary.py"}
    out, err = capfd.readouterr()
    assert not out
    assert not err


def test_what_it_ended_in_is_a_note_and_the_context() -> None:
    with ft.config(plain=False), pytest.raises(ConcretizationError) as caught:
        ft.grad(SWALLOWED["minimize"][0])(2.0)
    assert caught.value.__notes__ == [
        "It ended in ValueError: The user-provided objective function must return a scalar value."
    ]
    assert isinstance(caught.value.__context__, ValueError)
    assert caught.value.__cause__ is None
    with ft.config(plain=False, traceback="full"), pytest.raises(ConcretizationError) as caught:
        ft.grad(SWALLOWED["minimize"][0])(2.0)
    assert isinstance(caught.value.__cause__, ValueError)


def number_or_none(x: Any) -> Any:
    try:
        return float(x)
    except TypeError:
        return None


class OwnError(Exception):
    pass


@pytest.fixture
def as_it_is() -> Iterator[None]:
    with ft.config(plain=False):
        yield


@pytest.mark.usefixtures("as_it_is")
class TestRefusalsThatAreCaught:
    def test_a_function_that_recovers_returns(self) -> None:
        assert ft.grad(lambda x: x * x if number_or_none(x) is None else x)(3.0) == 6

    def test_a_later_error_is_itself(self) -> None:
        def f(x: Any) -> Any:
            number_or_none(x)
            return {}["missing"]

        with pytest.raises(KeyError):
            ft.grad(f)(3.0)

    def test_a_later_error_of_a_library_is_itself(self) -> None:
        def f(x: Any) -> Any:
            number_or_none(x)
            return x * np.linalg.inv(np.zeros((2, 2)))[0, 0]

        with pytest.raises(np.linalg.LinAlgError):
            ft.grad(f)(3.0)

    def test_an_error_of_a_callback_is_itself(self) -> None:
        def f(a: Any) -> Any:
            def inner(x: float) -> float:
                if number_or_none(a) is None:
                    raise OwnError
                return x

            return so.brentq(inner, -1.0, 1.0)

        with pytest.raises(OwnError):
            ft.grad(f)(3.0)

    def test_an_error_that_is_raised_for_it_is_itself(self) -> None:
        def f(x: Any) -> Any:
            try:
                return float(x)
            except TypeError as error:
                raise OwnError from error

        with pytest.raises(OwnError) as caught:
            ft.grad(f)(3.0)
        assert isinstance(caught.value.__cause__, ConcretizationError)

    def test_the_second_is_raised_where_the_first_was_caught(self) -> None:
        def f(x: Any) -> Any:
            number_or_none(x)
            return so.brentq(lambda y: y * y - x, 0.0, 5.0)

        with pytest.raises(ConcretizationError, match=r"scipy\.optimize\.brentq"):
            ft.grad(f)(3.0)

    def test_hooks_of_the_interpreter_are_put_back(self) -> None:
        hooks = sys.excepthook, sys.unraisablehook
        seen = []

        def f(x: Any) -> Any:
            number_or_none(x)
            seen.append((sys.excepthook, sys.unraisablehook))
            return ft.grad(lambda y: y * x if number_or_none(y) is None else y)(x)

        ft.grad(f)(3.0)
        assert all(hook not in seen[0] for hook in hooks)
        assert (sys.excepthook, sys.unraisablehook) == hooks

    def test_what_others_report_is_reported(self, monkeypatch: Any) -> None:
        reported: list[Any] = []
        monkeypatch.setattr(sys, "unraisablehook", lambda report: reported.append(report.exc_type))

        def other() -> float:
            raise OwnError

        def f(x: Any) -> Any:
            number_or_none(x)
            CALLBACK(lambda y: other())(1.0)
            return x

        ft.grad(f)(3.0)
        assert reported == [OwnError]


def _position(seq: Any, i: Any) -> Any:
    try:
        return seq[i]
    except ft.errors.FunctransError:
        return fnp.take(np.asarray(seq), i)


def _item(seq: Any, i: Any) -> Any:
    try:
        return operator.getitem(seq, i)
    except ft.errors.FunctransError:
        return fnp.take(np.asarray(seq), i)


def _truth(x: Any) -> Any:
    try:
        return bool(x)
    except ft.errors.FunctransError:
        return True


def _length(n: Any) -> Any:
    try:
        return len(range(n))
    except ft.errors.FunctransError:
        return 5


def _in_a_loop(i: Any) -> Any:
    total = 0.0
    for at in (i, 9):
        try:
            total = total + [1.0, 2.0][at]
        except ft.errors.FunctransError:
            total = total + fnp.take(np.ones(2), at)
    return total


@pytest.mark.usefixtures("as_it_is")
@each(
    "function, kind",
    [
        (lambda i: _position([1.0, 2.0], i) + _position([1.0, 2.0], 9), IndexError),
        (lambda i: _item([1.0, 2.0], i) + _item({}, "k"), KeyError),
        (lambda x: x * _truth(x > 0) * _truth(np.ones(2)), ValueError),
        (lambda n: n * _length(n) + _length("a"), TypeError),
        (_in_a_loop, IndexError),
    ],
)
def test_an_error_of_the_same_line_is_itself_after_a_refusal_was_caught(
    function: Any, kind: type
) -> None:
    with pytest.raises(kind) as caught:
        ft.jit(function)(1)
    assert type(caught.value) is kind


def _overlapping(first: Any, second: Any) -> None:
    """Run a traced function in each of two threads; the first returns while the other runs."""
    is_in, are_in, is_out = threading.Event(), threading.Event(), threading.Event()

    def run_first(x: Any) -> Any:
        number_or_none(x)
        first()
        is_in.set()
        assert are_in.wait(10)
        return x

    def run_second(x: Any) -> Any:
        assert is_in.wait(10)
        number_or_none(x)
        are_in.set()
        assert is_out.wait(10)
        second()
        return x

    def run() -> None:
        ft.grad(run_first)(3.0)
        is_out.set()

    threads = [
        threading.Thread(target=run),
        threading.Thread(target=ft.grad(run_second), args=(3.0,)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.usefixtures("as_it_is")
class TestHooksOfSeveralThreads:
    """Whatever the order in which traces close, the interpreter is left as it was."""

    def test_they_are_put_back(self) -> None:
        hooks = sys.excepthook, sys.unraisablehook
        array = np.zeros(10)
        kept = weakref.ref(array)

        def hold(array: Any = array) -> None:
            """Keep an array alive as long as the frames of the trace live."""

        del array
        _overlapping(hold, lambda: None)
        del hold
        ft.clear_caches()
        gc.collect()
        assert (sys.excepthook, sys.unraisablehook) == hooks
        assert kept() is None

    def test_a_hook_of_someone_else_stays_and_is_asked(self, monkeypatch: Any) -> None:
        reported: list[Any] = []
        monkeypatch.setattr(sys, "unraisablehook", lambda report: reported.append("first"))

        def install() -> None:
            before = sys.unraisablehook

            def later(report: Any) -> None:
                reported.append("later")
                before(report)

            sys.unraisablehook = later

        def other() -> float:
            raise OwnError

        _overlapping(lambda: None, install)
        assert sys.unraisablehook.__name__ == "later"
        for _ in range(2):  # and traces that come after it find it there
            _overlapping(lambda: None, lambda: CALLBACK(lambda y: other())(1.0))
            assert sys.unraisablehook.__name__ == "later"
        assert reported == ["later", "first"] * 2


# tracebacks ---------------------------------------------------------------------------------------


def bare(x: Any) -> Any:
    return x if x > 0 else -x


def misfit(x: Any) -> Any:
    return np.sum(np.ones((3, 4)) @ x)


X = np.ones(3)
CALLS: dict[str, Callable[[], Any]] = {
    "jit": lambda: ft.jit(bare)(1.0),
    "vmap": lambda: ft.vmap(bare)(X),
    "grad": lambda: ft.grad(misfit)(X),
    "jit of grad": lambda: ft.jit(ft.grad(misfit))(X),
    "hessian": lambda: ft.hessian(misfit)(X),
    "vjp": lambda: ft.vjp(misfit, X),
    "jvp": lambda: ft.jvp(misfit, (X,), (X,)),
    "scan": lambda: lax.scan(lambda c, x: (bare(c), x), 1.0, X),
    "cond": lambda: lax.cond(True, bare, bare, 1.0),
    "make_jaxpr": lambda: ft.make_jaxpr(bare)(1.0),
    "eval_shape": lambda: ft.eval_shape(misfit, X),
    "checkpoint": lambda: ft.grad(ft.checkpoint(misfit))(X),
    "check_grads": lambda: ft.check_grads(misfit, (X,)),
    "sparse_jacobian": lambda: ft.sparse_jacobian(misfit)(X),
    "fixed_point": lambda: ft.fixed_point(misfit, X),
}


@each("name", CALLS)
def test_tracebacks_have_no_frames_of_functrans(name: str) -> None:
    with pytest.raises((ConcretizationError, ValueError)) as caught:
        CALLS[name]()
    assert set(frames(caught.value)) == {"test_boundary.py"}
    assert frames(caught.value)[-1] == "test_boundary.py"
    inner = traceback.extract_tb(caught.value.__traceback__)[-1].name
    assert inner in ("bare", "misfit")
    assert len(traceback.format_exception(caught.value)) <= 6
    with ft.config(traceback="full"), pytest.raises((ConcretizationError, ValueError)) as caught:
        CALLS[name]()
    assert len(set(frames(caught.value))) > 1


def test_errors_of_users_keep_their_frames_and_causes() -> None:
    def inner(x: Any) -> Any:
        try:
            raise OwnError("first")
        except OwnError as error:
            raise KeyError("second") from error

    with pytest.raises(KeyError) as caught:
        ft.grad(lambda x: inner(x))(1.0)
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)] == [
        "test_errors_of_users_keep_their_frames_and_causes", "<lambda>", "inner",
    ]  # fmt: skip
    assert isinstance(caught.value.__cause__, OwnError)
    assert frames(caught.value.__cause__) == ["test_boundary.py"]


def test_errors_of_other_libraries_keep_their_frames() -> None:
    with ft.config(plain=False), pytest.raises(np.linalg.LinAlgError) as caught:
        ft.grad(lambda x: np.linalg.inv(np.zeros((2, 2)))[0, 0] * x)(1.0)
    assert frames(caught.value)[-1] == "_linalg.py"


def test_errors_pickle_with_their_notes() -> None:
    with ft.config(plain=False), pytest.raises(ConcretizationError) as caught:
        ft.grad(SWALLOWED["minimize"][0])(2.0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.__notes__ == caught.value.__notes__


def test_pdb_goes_to_the_line_of_the_user() -> None:
    import bdb

    with pytest.raises(ShapeError) as caught:
        ft.grad(misfit)(X)
    stack, place = bdb.Bdb().get_stack(None, caught.value.__traceback__)
    assert stack[place][0].f_code is misfit.__code__


def test_other_threads_have_their_own_setting() -> None:
    found: list[int] = []

    def work() -> None:
        try:
            ft.grad(misfit)(X)
        except ShapeError as error:
            found.append(len(frames(error)))

    with ft.config(traceback="full"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(found) == 1


def script(code: str, **environment: str) -> str:
    """What a script prints to the end of an error."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "FUNCTRANS_TRACEBACK": "filtered", **environment},
        capture_output=True, text=True, check=False,
    ).stderr  # fmt: skip


def test_the_environment_sets_the_default() -> None:
    code = """
    import numpy as np, functrans as ft
    ft.grad(lambda x: np.sum(x + np.ones(4)))(np.ones(3))
    """
    assert len(script(code).splitlines()) <= 6
    assert len(script(code, FUNCTRANS_TRACEBACK="full").splitlines()) > 20
    assert "FUNCTRANS_TRACEBACK must be 'filtered' or 'full'" in script(
        code, FUNCTRANS_TRACEBACK="none"
    )


# lines --------------------------------------------------------------------------------------------


def test_warnings_of_numpy_are_at_the_line_of_the_user() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.log(x))  # here

    line = f.__code__.co_firstlineno + 1
    for call in (ft.grad(f), ft.jacfwd(f), lambda x: ft.vjp(f, x)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(np.zeros(2))
        found = [w for w in caught if str(w.message) == "divide by zero encountered in log"]
        assert found[0].category is RuntimeWarning
        assert (found[0].filename, found[0].lineno) == (__file__, line)


def test_settings_of_numpy_stay_the_users() -> None:
    before = np.geterr()
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        ft.grad(lambda x: np.sum(np.log(x)))(np.zeros(2))
    with np.errstate(divide="ignore"):
        ft.grad(lambda x: np.sum(np.log(x)))(np.zeros(2))
    seen: list[tuple[str, int]] = []
    with np.errstate(divide="call", call=lambda kind, flag: seen.append((kind, flag))):
        ft.grad(lambda x: np.sum(np.log(x)))(np.zeros(2))
    assert seen[0][0] == "divide by zero"
    with np.errstate(divide="warn", invalid="ignore"), pytest.warns(RuntimeWarning) as caught:
        ft.grad(lambda x: np.sum(np.log(x)))(np.zeros(2))
    assert caught[0].filename == __file__
    assert np.geterr() == before


def test_lines_are_found_past_other_libraries() -> None:
    from functools import reduce

    with pytest.raises(ShapeError, match=r"test_boundary\.py:\d+ \("):
        ft.grad(lambda x: np.sum(reduce(lambda a, b: fnp.add(a, b), [x, np.ones(4)])))(X)
    with pytest.raises(UnsupportedOperationError, match=r"test_boundary\.py:\d+ \("):
        ft.grad(lambda x: np.vectorize(fnp.cross)(x, np.ones(3)))("x")


def test_cells_are_named_as_jupyter_names_them(monkeypatch: Any) -> None:
    """Of a shell that knows its cells; the next test has a real one, where there is one."""

    class Shell:
        compile: Any = None

    class Compiler:
        def format_code_name(self, name: str) -> tuple[str, str] | None:
            return ("Cell", "In[12]") if name == "<cell>" else None

    Shell.compile = Compiler()
    module = types.ModuleType("IPython")
    module.get_ipython = Shell  # type: ignore[attr-defined]  # as IPython has it
    monkeypatch.setitem(sys.modules, "IPython", module)
    names: dict[str, Any] = {"np": np}
    exec(compile("def f(x):\n    return np.sum(x + np.ones(4))", "<cell>", "exec"), names)
    with pytest.raises(ShapeError, match=r"\(at Cell In\[12\], line 2 \(f\)\)"):
        ft.grad(names["f"])(X)


CELLS = {
    "def relu(x):\n    return x if x > 0 else 0.0": "ft.jit(relu)(1.0)",
    "def misfit(w):\n    return np.sum(np.ones((3, 4)) @ w)": "ft.grad(misfit)(X)",
    "def square(x):\n    return x**2": "ft.grad(square)(X)",
    "def double(n):\n    return 2.0 * n": "ft.grad(double)(3)",
    "def zeros(n):\n    return np.zeros(n)": "ft.jit(zeros)(3)",
    "def select(x):\n    return x[x > 0]": "ft.jit(select)(X)",
    "def total(x):\n    return np.sum(x * 2.0)": "ft.grad(total)([1.0, 2.0])",
    "kept = []\nft.jit(lambda x: kept.append(x) or x)(1.0)": "kept[0] + 1.0",
    "def add(x, y):\n    return x + y": "ft.vmap(add)(X, np.ones(2))",
    "def step(c, x):\n    return c + x": "ft.lax.scan(step, 0.0, X)",
}
"""The ten commonest mistakes: a cell, and the next one, which raises."""


def test_tracebacks_are_short_in_a_kernel() -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    sources = ["import numpy as np\nimport functrans as ft\nX = np.ones(3)"]
    sources += [source for pair in CELLS.items() for source in pair]
    book = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, sources)))
    before = os.environ["FUNCTRANS_TRACEBACK"]
    os.environ["FUNCTRANS_TRACEBACK"] = "filtered"
    try:
        nbclient.NotebookClient(book, allow_errors=True, timeout=120).execute()
    finally:
        os.environ["FUNCTRANS_TRACEBACK"] = before
    for i, cell in enumerate(book.cells[2::2]):
        (error,) = [out for out in cell.outputs if out.output_type == "error"]
        lines = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback)).split("\n")
        assert len(lines) <= 12, lines
        assert any(f"In[{2 * i + 3}], line 1" in line for line in lines)
        assert not any("functrans/" in line for line in lines)


def test_tracebacks_are_short_in_a_script(tmp_path: Path) -> None:
    head = "import numpy as np\nimport functrans as ft\nX = np.ones(3)\n"
    for i, pair in enumerate(CELLS.items()):
        file = tmp_path / f"mistake{i}.py"
        file.write_text(head + "\n".join(pair))
        printed = io.StringIO()
        try:
            exec(compile(file.read_text(), str(file), "exec"), {"__name__": "__main__"})
        except Exception as error:
            own = error.__traceback__
            with contextlib.redirect_stderr(printed):
                sys.__excepthook__(type(error), error, own and own.tb_next)
        lines = printed.getvalue().splitlines()
        assert 4 <= len(lines) <= 12, lines
        assert f"mistake{i}.py" in printed.getvalue()
        assert not any("functrans/" in line for line in lines)


SETTINGS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: ft.grad(lambda x: np.sum(f(x)))(np.ones(2)),
    "grad of grad": lambda f: ft.grad(lambda x: np.sum(ft.grad(lambda y: np.sum(f(y)))(x)))(
        np.ones(2)
    ),
    "hessian": lambda f: ft.hessian(lambda x: np.sum(f(x)))(np.ones(2)),
    "jvp": lambda f: ft.jvp(f, (np.ones(2),), (np.ones(2),)),
    "vjp": lambda f: ft.vjp(f, np.ones(2)),
    "linearize": lambda f: ft.linearize(f, np.ones(2)),
    "vmap": lambda f: ft.vmap(f)(np.ones((3, 2))),
    "vmap of grad": lambda f: ft.vmap(ft.grad(lambda x: np.sum(f(x))))(np.ones((3, 2))),
    "jit": lambda f: ft.jit(f)(np.ones(2)),
    "checkpoint": lambda f: ft.grad(ft.checkpoint(lambda x: np.sum(f(x))))(np.ones(2)),
    "scan": lambda f: lax.scan(lambda c, x: (f(c), x), np.ones(2), np.ones(3)),
    "callback of grad": lambda f: ft.grad(
        lambda x: np.sum(x * ft.pure_callback(f, np.ones(2), ft.stop_gradient(x)))
    )(np.ones(2)),
    "callback of vmap": lambda f: ft.vmap(
        lambda x: ft.pure_callback(f, np.ones(2), x, vmap_method="sequential")
    )(np.ones((3, 2))),
}


@each("name", SETTINGS)
@each("around", [{}, {"over": "raise"}, {"divide": "warn", "invalid": "ignore"}])
def test_functions_see_the_settings_of_numpy_that_are_the_users(name: str, around: Any) -> None:
    """What NumPy tells of its settings within a function is what it tells outside."""
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append((np.geterr(), np.geterrcall(), np.getbufsize()))
        y = np.exp(x) * x
        seen.append((np.geterr(), np.geterrcall(), np.getbufsize()))
        return y

    with np.errstate(**around):
        outside = np.geterr(), np.geterrcall(), np.getbufsize()
        SETTINGS[name](f)
        assert outside == (np.geterr(), np.geterrcall(), np.getbufsize())
    assert seen
    assert all(found == outside for found in seen)
    with np.errstate(**seen[0][0]), pytest.warns(RuntimeWarning, match="divide by zero"):
        np.log(np.zeros(1))


@each("name", [name for name in SETTINGS if "callback" not in name])
def test_settings_that_a_function_makes_stay(name: str) -> None:
    def f(x: Any) -> Any:
        np.seterr(divide="ignore")
        return np.exp(x) * x

    with np.errstate(divide="warn"):
        SETTINGS[name](f)
        assert np.geterr()["divide"] == "ignore"


@each("transform", [ft.grad, ft.jacfwd, ft.hessian])
def test_settings_in_a_function_hold_for_what_it_evaluates(transform: Any) -> None:
    def quiet(x: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.sum(np.log(x * 0.0))

    def loud(x: Any) -> Any:
        with np.errstate(divide="raise"):
            return np.sum(np.log(x * 0.0))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        transform(quiet)(np.ones(2))
    with pytest.raises(FloatingPointError):
        transform(loud)(np.ones(2))


# every public function ----------------------------------------------------------------------------

NAMESPACES = (
    "functrans", "functrans.autograd", "functrans.autograd.func", "functrans.autograd.graph",
    "functrans.compat.torch", "functrans.compat.torch.fft", "functrans.compat.torch.linalg",
    "functrans.compat.torch.nn.functional", "functrans.compat.torch.special",
    "functrans.flatten_util", "functrans.functional", "functrans.lax", "functrans.nn",
    "functrans.nn.initializers", "functrans.numpy", "functrans.numpy.fft", "functrans.numpy.linalg",
    "functrans.ops", "functrans.random", "functrans.scipy.fft", "functrans.scipy.integrate",
    "functrans.scipy.interpolate", "functrans.scipy.linalg", "functrans.scipy.ndimage",
    "functrans.scipy.optimize", "functrans.scipy.signal", "functrans.scipy.sparse",
    "functrans.scipy.special", "functrans.scipy.stats", "functrans.sparse", "functrans.testing",
    "functrans.tree",
)  # fmt: skip
WRONG: tuple[tuple[Any, ...], ...] = (
    (), (object(),), ("a",), ({"a": 1}, {"b": 2}), (np.ones((2, 3)), np.ones((4, 5))),
    (np.ones(3), "x"), (None, None, None),
)  # fmt: skip
PACKAGE = str(Path(ft.__file__).parent)
LASTING = re.compile(r"set_|(manual_)?seed|clear_|save|config")
"""Names of what leaves something behind."""


def leaves_frames(function: Callable[..., Any]) -> list[str]:
    """Places of functrans in the tracebacks of calls with wrong arguments."""
    found = []
    for args in WRONG:
        try:
            function(*args)
        except Exception as error:
            entries = traceback.extract_tb(error.__traceback__)
            found += [str(entry) for entry in entries if entry.filename.startswith(PACKAGE)]
    return found


def public_callables(space: Any) -> Iterator[tuple[str, Any]]:
    for name in getattr(space, "__all__", None) or dir(space):
        value = getattr(space, name, None)
        is_error = isinstance(value, type) and issubclass(value, BaseException)
        if callable(value) and not (is_error or name.startswith("_") or LASTING.match(name)):
            yield name, value


@each("space", NAMESPACES)
@pytest.mark.filterwarnings("ignore")
def test_no_frame_of_functrans_is_left_by_a_wrong_argument(
    space: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    functions = dict(public_callables(importlib.import_module(space)))
    assert functions
    assert not {name: left for name, f in functions.items() if (left := leaves_frames(f))}


@pytest.mark.filterwarnings("ignore")
def test_no_frame_of_functrans_is_left_by_a_wrong_argument_of_a_method() -> None:
    for requires_grad in (False, True):
        t = ft.tensor([1.0, 2.0], requires_grad=requires_grad)
        for name, method in public_callables(ft.Tensor):
            if not isinstance(method, property):
                assert not leaves_frames(getattr(t, name)), name


def test_boundaries_stand_in_the_modules_that_they_come_from() -> None:
    """Else they would not pickle."""
    for space in NAMESPACES:
        for name, value in public_callables(importlib.import_module(space)):
            if getattr(value, "__code__", None) is boundary(len).__code__:
                home = vars(sys.modules[value.__module__])
                assert home.get(value.__qualname__) is not value.__wrapped__, (space, name)


# warnings of functions of arrays ------------------------------------------------------------------

POINTS = (0.0, -2.0, 1e308, np.inf, -np.inf, np.nan, 1000.0)


ELEMENTWISE = sorted(
    name
    for name in fnp.__all__
    if isinstance(getattr(np, name, None), np.ufunc) and getattr(np, name).signature is None
)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_functions_of_plain_arrays_warn_at_the_users_line(name: str) -> None:
    ours, numpys = getattr(fnp, name), getattr(np, name)
    for x in POINTS:
        for make in (float, np.asarray):
            args = [make(x)] * numpys.nin
            with warnings.catch_warnings(record=True) as expected:
                warnings.simplefilter("always")
                result = fails(numpys, args)
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                assert fails(ours, args) == result
            assert [str(w.message) for w in found] == [str(w.message) for w in expected]
            assert {Path(w.filename).name for w in found} <= {"test_boundary.py"}
            assert {w.category for w in found} <= {RuntimeWarning}


def fails(function: Callable[..., Any], args: list[Any]) -> bool:
    try:
        function(*args)
    except TypeError:
        return True
    return False


def test_what_numpy_was_told_of_errors_holds_for_plain_arrays() -> None:
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        fnp.log(-1.0)
    with np.errstate(all="ignore"):
        assert np.isnan(fnp.log(-1.0))
    before = np.geterr()
    fnp.exp(1.0)
    assert np.geterr() == before
