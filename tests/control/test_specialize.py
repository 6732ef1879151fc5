"""Python control flow under ``jit(f, specialize=True)``: one program for each path."""

import functools
import pickle
import threading

import numpy as np
import pytest

import functrans as ft
from functrans.errors import ConcretizationError, PathLimitError


class Counted:
    """A function with the number of times that it ran."""

    def __init__(self, fun):
        self.fun = fun
        self.count = 0
        functools.update_wrapper(self, fun)

    def __call__(self, *args, **kwargs):
        self.count += 1
        return self.fun(*args, **kwargs)


def pieces(x):
    if x > 1:
        y = np.sin(x) * x
    elif x > 0:
        y = x**3
    else:
        y = np.exp(x)
    if y > 0.5 and x < 2:
        return y * 2.0
    return y - x * x


def newton(x, tol):
    y, rounds = x, 0
    while abs(y * y - x) > tol:
        y = 0.5 * (y + x / y)
        rounds += 1
    return y, rounds


def bisection(target):
    low, high = 0.0 * target, 4.0 + 0.0 * target
    for _ in range(6):
        middle = 0.5 * (low + high)
        if middle * middle < target:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high) * target


def power(x, n):
    """Recursion by an integer that is traced."""
    if n == 0:
        return x * 0.0 + 1.0
    half = power(x, n // 2)
    return half * half * x if n % 2 else half * half


def tree_depth(n):
    return n if n < 2 else tree_depth(n - 1) + tree_depth(n - 2)


def by_order(x):
    order = np.argsort(x)
    if order[0] == 0:
        return x[int(order[-1])] * x[0]
    return x[int(order[0])] + x.sum()


def masked(x):
    return x[np.flatnonzero(x > 0)].prod()


def repeated(x, n):
    total = x
    for i in range(int(n)):
        total = np.sin(total) + i
    return total


SCALARS = np.random.default_rng(3).normal(size=12) * 1.7


@pytest.mark.parametrize("fun", [pieces, lambda x: bisection(np.abs(x) + 0.1)])
def test_values_and_derivatives_are_those_of_the_function(fun):
    special = ft.jit(fun, specialize=True)
    for x in SCALARS:
        assert np.allclose(special(x), fun(x))
        assert np.allclose(ft.grad(special)(x), ft.grad(fun)(x))
        assert np.allclose(ft.jvp(special, (x,), (1.5,))[1], ft.jvp(fun, (x,), (1.5,))[1])
        assert np.allclose(ft.hessian(special)(x), ft.hessian(fun)(x))


def test_derivative_inside():
    special = ft.jit(ft.value_and_grad(pieces), specialize=True)
    twice = ft.jit(ft.grad(ft.grad(pieces)), specialize=True)
    for x in SCALARS:
        assert np.allclose(special(x), ft.value_and_grad(pieces)(x))
        assert np.allclose(twice(x), ft.grad(ft.grad(pieces))(x))


@pytest.mark.parametrize("fun", [by_order, masked])
def test_arrays(fun):
    special = ft.jit(fun, specialize=True)
    rng = np.random.default_rng(0)
    for _ in range(10):
        x = rng.normal(size=3)
        assert np.allclose(special(x), fun(x))
        assert np.allclose(ft.grad(special)(x), ft.grad(fun)(x))
        assert np.allclose(ft.jacobian(special)(x), ft.jacobian(fun)(x))


def test_the_function_runs_once_per_path():
    counted = Counted(pieces)
    special = ft.jit(counted, specialize=True)
    paths = set()
    for x in np.linspace(-3.0, 3.0, 60):
        special(x)
        y = np.sin(x) * x if x > 1 else x**3 if x > 0 else np.exp(x)
        paths.add((x > 1, x > 0, y > 0.5, x < 2 if y > 0.5 else None))
    assert counted.count == special.cache_size == len(paths)


def test_loops_that_end_by_a_tolerance():
    counted = Counted(newton)
    special = ft.jit(counted, specialize=True)
    numbers = set()
    for x in np.geomspace(0.01, 1000.0, 30):
        expected = newton(x, 1e-6)
        assert np.allclose(special(x, 1e-6), expected)
        numbers.add(expected[1])
    assert counted.count == len(numbers)
    root = ft.grad(lambda x: special(x, 1e-6)[0])
    assert np.allclose(root(2.0), ft.grad(lambda x: newton(x, 1e-6)[0])(2.0))


def test_recursion():
    special = ft.jit(power, specialize=True)
    for n in range(9):
        assert np.allclose(special(1.3, n), 1.3**n)
        assert np.allclose(ft.grad(special)(1.3, n), n * 1.3 ** (n - 1))
    assert ft.jit(tree_depth, specialize=True)(7) == 13


def test_range_of_a_traced_number():
    counted = Counted(repeated)
    special = ft.jit(counted, specialize=True)
    for n in (3, 0, 3, 5, 3.7, 5.2, -1.0):
        assert np.allclose(special(0.5, n), repeated(0.5, n))
    assert counted.count == 6  # three integers; of the floats, 3, 5 and -1


@pytest.mark.parametrize(("value", "error"), [(np.nan, ValueError), (np.inf, OverflowError)])
def test_int_of_no_number_raises_as_in_plain_code(value, error):
    special = ft.jit(repeated, specialize=True)
    with pytest.raises(error):
        special(1.0, value)
    assert np.allclose(special(0.5, 2.0), repeated(0.5, 2.0))
    with pytest.raises(error):
        special(1.0, value)


def test_an_answer_of_an_error_that_is_caught_is_a_path():
    def fun(x):
        try:
            return x * int(x)
        except (ValueError, OverflowError) as error:
            return -1.0 if isinstance(error, ValueError) else -2.0

    special = ft.jit(fun, specialize=True)
    for x in (2.5, np.nan, np.inf, 3.5, -np.inf, np.nan, 0.5):
        assert special(x) == fun(x)


def test_negative_zero_and_nan_are_truths_as_in_python():
    special = ft.jit(lambda x: 1.0 if x else 2.0, specialize=True)
    assert [float(special(x)) for x in (0.0, -0.0, 3.0, np.nan)] == [2.0, 2.0, 1.0, 1.0]


def test_integers_of_all_widths():
    special = ft.jit(lambda n: np.arange(int(n)).sum(), specialize=True)
    for dtype in (np.int8, np.uint8, np.int32, np.uint64):
        assert special(np.array(4, dtype)) == 6


def test_index_of_a_sequence():
    table = [np.sin, np.cos, np.exp]
    special = ft.jit(lambda i, x: table[i](x), specialize=True)
    for i in (0, 2, 1, -1, 0):
        assert np.allclose(special(i, 0.3), table[i](0.3))
    with pytest.raises(IndexError):
        special(5, 0.3)


# what comes after a guard that fails ------------------------------------------------------------


def test_errors_of_another_path_are_not_seen():
    def solve(a, b):
        if a[0, 0] > 0:
            return np.linalg.inv(a) @ b
        return b

    special = ft.jit(solve, specialize=True)
    b = np.ones(2)
    assert np.allclose(special(2 * np.eye(2), b), b / 2)
    assert np.allclose(special(np.zeros((2, 2)), b), b)
    with pytest.raises(np.linalg.LinAlgError):
        special(np.ones((2, 2)), b)
    assert np.allclose(special(2 * np.eye(2), b), b / 2)


def test_indices_of_another_path_are_not_read():
    special = ft.jit(lambda x, i: x[i] if 0 <= i < 3 else x.sum(), specialize=True)
    x = np.arange(3.0)
    for i in (1, 7, 2, -9, 0):
        assert special(x, i) == (x[i] if 0 <= i < 3 else x.sum())


def test_a_loop_of_another_path_does_not_run_for_ever():
    def fun(x):
        if x < 10:
            return ft.lax.while_loop(lambda y: y < 10, lambda y: y + x, x)
        return x

    special = ft.jit(lambda x: fun(x) if x > 0 else -x, specialize=True)
    assert special(3.0) == 12.0
    assert special(-1.0) == 1.0
    assert special(11.0) == 11.0


def test_powers_of_integers_of_another_path():
    special = ft.jit(lambda n: np.power(2, n) if n >= 0 else n, specialize=True)
    assert [int(special(np.array(n))) for n in (3, -2, 5, -1)] == [8, -2, 32, -1]


def test_large_work_waits_for_its_guard():
    def fun(x, flag):
        if flag > 0:
            return np.sin(x).sum() + (x @ x.T).sum()
        return x[0, 0]

    special = ft.jit(fun, specialize=True)
    x = np.random.default_rng(0).normal(size=(50, 50))
    for flag in (1.0, -1.0, 2.0, -2.0):
        assert np.allclose(special(x, flag), fun(x, flag))


def test_arguments_are_left_as_they_are():
    def fun(x):
        x[0] = 5.0
        if x[1] > 0:
            x[1] = 7.0
        return x

    special = ft.jit(fun, specialize=True)
    for second in (1.0, -1.0, 2.0):
        x = np.array([0.0, second, 3.0])
        result = special(x)
        assert list(x) == [0.0, second, 3.0]
        assert list(result) == [5.0, 7.0 if second > 0 else second, 3.0]


def test_results_are_arrays_of_their_own():
    special = ft.jit(lambda x: (x, x) if x.sum() > 0 else (x, 2 * x), specialize=True)
    for sign in (1.0, -1.0, 1.0):
        x = sign * np.ones(2)
        first, second = special(x)
        first[0] = 9.0
        assert x[0] == sign
        assert second[0] != 9.0


# effects ----------------------------------------------------------------------------------------


def recorded(x, log):
    def note(value, text):
        ft.debug.callback(lambda v: log.append((text, float(v))), value)

    note(x, "start")
    if x > 0:
        note(x, "positive")
        x = x + 1.0
    else:
        note(x, "negative")
        x = x - 1.0
    if x > 3:
        note(x, "large")
    note(x, "end")
    return x


def test_effects_happen_once_and_in_order():
    log: list = []
    special = ft.jit(lambda x: recorded(x, log), specialize=True)
    for x in (1.0, -1.0, 5.0, 2.5, -4.0, 1.5, 5.0):
        log.clear()
        assert special(x) == recorded_plainly(x)[0]
        assert log == recorded_plainly(x)[1]


def recorded_plainly(x):
    log: list = []
    return recorded(x, log), log


def test_effects_before_an_error_happen():
    log: list = []

    def fun(x):
        ft.debug.callback(lambda v: log.append(float(v)), x)
        if x < 0:
            raise ValueError("negative")
        ft.debug.callback(lambda v: log.append(float(v)), 2 * x)
        return x

    special = ft.jit(fun, specialize=True)
    special(1.0)
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            special(-1.0)
    special(3.0)
    assert log == [1.0, 2.0, -1.0, -1.0, 3.0, 6.0]


def test_a_choice_by_the_result_of_an_effect_is_refused():
    def fun(x):
        y = ft.io_callback(lambda v: v, ft.ShapeDtypeStruct((), np.float64), x)
        return x if y > 0 else -x

    with pytest.raises(ConcretizationError, match=r"io_callback.*has an effect"):
        ft.jit(fun, specialize=True)(1.0)


def test_an_error_leaves_nothing_behind():
    def fun(x):
        if x > 10:
            raise KeyError("large")
        return 1.0 / (0 if x > 5 else 1) * x

    special = ft.jit(fun, specialize=True)
    for x, error in ((11.0, KeyError), (6.0, ZeroDivisionError)):
        with pytest.raises(error):
            special(x)
    assert special(2.0) == 2.0
    assert special.cache_size == 1


# questions that are refused ---------------------------------------------------------------------


@pytest.mark.parametrize("ask", [float, complex, lambda x: x.item(), lambda x: f"{x:.2f}"])
def test_the_value_of_a_float_is_refused(ask):
    with (
        ft.config(plain=False),
        pytest.raises(ConcretizationError, match=r"test_specialize.py:\d+.*of a float"),
    ):
        ft.jit(lambda x: x * len(str(ask(x))), specialize=True)(1.5)


def halvings(x):
    n = 0
    while x > 1:
        x, n = x / 2, n + 1
    return n


def many_choices(x):
    total = 0.0
    for i in range(8):
        if x[i] > 0:
            total = total + x[i]
    return total


@pytest.mark.parametrize(
    ("fun", "arguments", "line", "advice"),
    [
        (halvings, [2.0**k for k in range(10)], halvings.__code__.co_firstlineno + 2, "while_loop"),
        (
            many_choices,
            [np.array([(n >> i & 1) - 0.5 for i in range(8)]) for n in range(10)],
            many_choices.__code__.co_firstlineno + 3,
            "np.where",
        ),
        (
            lambda n: np.zeros(int(n)),
            list(range(10)),
            None,
            r"int\(\)",
        ),
    ],
)
def test_too_many_paths_name_the_line(fun, arguments, line, advice):
    special = ft.jit(fun, specialize=True, max_paths=4)
    where = rf"test_specialize.py:{line}" if line else "test_specialize.py"
    with pytest.raises(PathLimitError, match=rf"4 paths(?s:.*){where}(?s:.*){advice}"):
        list(map(special, arguments))
    assert special.cache_size == 4
    assert np.allclose(special(arguments[0]), fun(arguments[0]))
    special.clear_cache()
    assert special.cache_size == 0
    assert np.allclose(special(arguments[-1]), fun(arguments[-1]))


def test_a_loop_that_does_not_end_names_the_line():
    def fun(x):
        while x > 0:
            x = x + 1
        return x

    line = fun.__code__.co_firstlineno + 1
    with pytest.raises(PathLimitError, match=rf"test_specialize.py:{line}.*while_loop"):
        ft.jit(fun, specialize=True)(1.0)


@pytest.mark.parametrize("limit", [0, True, 2.0])
def test_the_limit_is_a_number_from_one_on(limit):
    with pytest.raises(ValueError, match="max_paths"):
        ft.jit(pieces, specialize=True, max_paths=limit)


def test_arguments_cannot_be_donated():
    with pytest.raises(ValueError, match="donated with specialize"):
        ft.jit(pieces, specialize=True, donate_argnums=0)


# among other transforms -------------------------------------------------------------------------


def test_nested_functions_that_are_specialised_share_their_questions():
    inner = Counted(pieces)
    special = ft.jit(inner, specialize=True)
    outer = ft.jit(lambda x: special(x) * (2.0 if x > 0 else 3.0), specialize=True)
    for x in SCALARS:
        assert np.allclose(outer(x), pieces(x) * (2.0 if x > 0 else 3.0))
    assert special.cache_size == 0
    assert inner.count == outer.cache_size


def test_inside_a_plain_jit_the_line_is_named():
    special = ft.jit(pieces, specialize=True)
    with pytest.raises(ConcretizationError, match=r"test_specialize.py:\d+ \(pieces\).*jit of"):
        ft.jit(lambda x: special(x) + 1.0)(1.0)


def test_known_arguments_inside_a_plain_jit():
    special = ft.jit(pieces, specialize=True)
    assert np.allclose(ft.jit(lambda x: x * special(1.5))(2.0), 2 * pieces(1.5))


def test_plain_jit_inside():
    inner = ft.jit(lambda x: np.sin(x) * 2.0)
    special = ft.jit(lambda x: inner(x) if inner(x) > 0 else -x, specialize=True)
    for x in SCALARS:
        assert np.allclose(special(x), 2 * np.sin(x) if np.sin(x) > 0 else -x)


def test_vmap_groups_elements_by_their_paths():
    special = ft.jit(pieces, specialize=True)
    expected = [pieces(x) for x in SCALARS]
    slopes = [ft.grad(pieces)(x) for x in SCALARS]
    assert np.allclose(ft.vmap(special)(SCALARS), expected)
    assert np.allclose(ft.vmap(ft.grad(special))(SCALARS), slopes)
    assert np.allclose(ft.grad(lambda x: ft.vmap(special)(x).sum())(SCALARS), slopes)
    assert np.allclose(ft.jacobian(ft.vmap(special))(SCALARS), np.diag(slopes))


def test_vmap_with_axes_and_shared_arguments():
    def fun(x, c):
        if x.sum() > c["limit"]:
            return {"a": x * c["scale"], "b": x[0]}
        return {"a": -x, "b": x[1]}

    special = ft.jit(fun, specialize=True)
    x = np.random.default_rng(1).normal(size=(2, 5))
    c = {"limit": 0.1, "scale": 2.0}
    batched = ft.vmap(special, in_axes=(1, None), out_axes={"a": 1, "b": 0})(x, c)
    rows = [fun(x[:, i], c) for i in range(5)]
    assert np.allclose(batched["a"], np.stack([row["a"] for row in rows], 1))
    assert np.allclose(batched["b"], [row["b"] for row in rows])


def test_vmap_of_loops():
    xs = np.geomspace(0.5, 100.0, 7)
    special = ft.jit(lambda x: newton(x, 1e-8)[0], specialize=True)
    assert np.allclose(ft.vmap(special)(xs), np.sqrt(xs))


def test_plain_vmap_refuses_as_before():
    with pytest.raises(ConcretizationError, match="vmap of pieces"):
        ft.vmap(pieces)(SCALARS)
    special = ft.jit(pieces, specialize=True)
    with pytest.raises(ConcretizationError, match="bool"):
        ft.vmap(lambda x: special(x) if x > 0 else x)(SCALARS)


def test_collectives_over_elements_of_different_paths_are_refused():
    special = ft.jit(lambda x: x if x > 0 else ft.lax.psum(x, "i"), specialize=True)
    with pytest.raises(ft.errors.UnsupportedOperationError, match="paths"):
        ft.vmap(special, axis_name="i")(np.array([1.0, -1.0]))


def test_the_setting_specialises_all_functions():
    plain = ft.jit(pieces)
    with ft.config(specialize=True):
        for x in SCALARS:
            assert np.allclose(plain(x), pieces(x))
    for x in (1.0, np.float64(1.0)):
        with pytest.raises(ConcretizationError):
            plain(x)


@pytest.mark.parametrize("settings", [{"native": False}, {"jit": False}, {"compiler_math": True}])
def test_other_settings(settings):
    special = ft.jit(pieces, specialize=True)
    with ft.config(**settings):
        for x in SCALARS:
            assert np.allclose(special(x), pieces(x))


# a jitted function as others --------------------------------------------------------------------


def test_captured_arrays_are_read_anew():
    weights = np.array([1.0, 2.0])
    special = ft.jit(lambda x: (x * weights).sum() if (x * weights)[0] > 0 else x, specialize=True)
    x = np.array([1.0, 1.0])
    assert special(x) == 3.0
    weights[1] = 5.0
    assert special(x) == 6.0
    weights[0] = -1.0
    assert list(special(x)) == [1.0, 1.0]


def test_captured_values_of_a_transform():
    def outer(c):
        special = ft.jit(lambda x: x * c if x * c > 0 else -x, specialize=True)
        return special(2.0) + special(-3.0)

    assert np.allclose(ft.grad(outer)(1.5), ft.grad(lambda c: 2.0 * c + 3.0)(1.5))


def test_decorator_method_keywords_and_static_arguments():
    @ft.jit(specialize=True, static_argnames="mode")
    def fun(x, mode, *, shift):
        y = x["k"] * 2 if mode == "a" else x["k"]
        return {"y": y + shift} if y > 0 else {"z": y}

    for k in (1.0, -1.0, 2.0, -3.0):
        for mode in "ab":
            y = k * 2 if mode == "a" else k
            assert fun({"k": k}, mode, shift=1.0) == ({"y": y + 1.0} if y > 0 else {"z": y})


def test_bound_methods():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @functools.partial(ft.jit, static_argnums=0, specialize=True)
        def apply(self, x):
            return x * self.scale if x > 0 else x

    model = Model(3.0)
    assert [float(model.apply(x)) for x in (1.0, -1.0, 2.0)] == [3.0, -1.0, 6.0]


@ft.jit(specialize=True)
def decorated(x):
    """Pickled by its name."""
    return x if x > 0 else -x


def test_pickled_with_its_options():
    copy = pickle.loads(pickle.dumps(ft.jit(pieces, specialize=True, max_paths=2)))
    assert np.allclose(copy(1.5), pieces(1.5))
    copy(-1.0)
    with pytest.raises(PathLimitError):
        copy(0.1)
    assert pickle.loads(pickle.dumps(decorated)) is decorated


def test_jitted_anew_it_finds_its_paths():
    counts = []

    def fun(x):
        counts.append(1)  # not shared: the list may change
        return x if x > 0 else -x

    def pure(x):
        return x if x > 0 else -x

    for x in (1.0, -1.0, 2.0):
        assert ft.jit(pure, specialize=True)(x) == abs(x)
        assert ft.jit(fun, specialize=True)(x) == abs(x)
    assert ft.jit(pure, specialize=True, max_paths=3)(1.0) == 1.0
    assert len(counts) == 3


def test_explain_names_lines_and_counts():
    special = ft.jit(halvings, specialize=True)
    for x in (1.0, 8.0, 8.0, 4.0):
        special(x)
    report = special.explain()
    assert [program.taken for program in report] == [1, 2, 1]
    line = halvings.__code__.co_firstlineno + 2
    assert f"bool() at test_specialize.py:{line} (halvings): True 3 times, False" in str(report)
    assert "(another path)" in str(report)
    assert ft.cache_statistics().programs >= 3


def test_inspection_is_of_the_path_of_the_arguments():
    special = ft.jit(pieces, specialize=True)
    assert "sin" in str(special.jaxpr(1.5))
    assert "exp" in str(special.jaxpr(-1.5))
    assert "guard" not in str(special.jaxpr(1.5))
    assert "sin" in str(special.plan(1.5))
    for run in (special.lower(1.5).compile, functools.partial(special.as_cfunc, 1.5)):
        with pytest.raises(ft.errors.UnsupportedOperationError, match="one path"):
            run()
    straight = ft.jit(lambda x: x * 2.0, specialize=True)
    assert straight.lower(1.5).compile()(1.5) == 3.0
    with pytest.raises(ConcretizationError):
        special.jaxpr(ft.ShapeDtypeStruct((), np.float64))


def test_kinds_of_arguments_have_paths_of_their_own():
    special = ft.jit(lambda x: x.sum() if x[0] > 0 else x[0], specialize=True)
    for n in (2, 3):
        for sign in (1.0, -1.0):
            assert special(sign * np.ones(n)) == (n if sign > 0 else -1.0)
            assert special(sign * np.ones(n, np.float32)).dtype == np.float32
    assert special.cache_size == 8


def test_threads():
    special = ft.jit(lambda x: newton(x, 1e-9)[0] * (1.0 if x > 3 else 2.0), specialize=True)
    failures = []

    def work(seed):
        for x in np.random.default_rng(seed).uniform(0.1, 90.0, 60):
            expected = np.sqrt(x) * (1.0 if x > 3 else 2.0)
            if not np.allclose(special(x), expected):
                failures.append(x)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_of_choices(seed):
    rng = np.random.default_rng(seed)
    limits = tuple(rng.normal(size=4))
    kinds = tuple(rng.integers(0, 4, size=4))

    def fun(x):
        y = x
        for limit, kind in zip(limits, kinds, strict=True):
            if kind == 0 and y[0] > limit:
                y = np.sin(y) + x
            elif kind == 1 and np.any(y > limit):
                y = y * y[int(np.argmax(y))]
            elif kind == 2:
                while y.sum() > abs(limit) + 2:
                    y = y * 0.7
            elif bool(np.all(y < 1)):
                y = np.sort(y) - limit
        return (y * y).sum()

    counted = Counted(fun)
    special = ft.jit(counted, specialize=True)
    for _ in range(8):
        x = rng.normal(size=3)
        assert np.allclose(special(x), fun(x))
        assert np.allclose(ft.grad(special)(x), ft.grad(fun)(x))
        assert np.allclose(ft.hessian(special)(x), ft.hessian(fun)(x))
    assert counted.count == special.cache_size


# arrays that change while the function is traced --------------------------------------------------


def _reused(x, ask):
    buffer = np.ones(3)
    first = x * buffer  # captures ones
    buffer[:] = -5.0
    return ask(np.sum(first)) * np.sum(x * buffer)


def _becomes_traced(x, ask):
    buffer = np.zeros(3)
    first = x + buffer  # captures zeros
    buffer += x[0]
    return ask(np.sum(first)) * np.sum(buffer)


def _by_a_list(x, ask):
    weights = [np.ones(3), np.zeros(3)]
    losses = []
    for _ in range(4):
        losses.append(np.sum((weights[0] * x + weights[1]) ** 2))
        weights[0] *= 0.5
        weights[1] -= 0.1 * x
        if len(losses) > 1 and losses[-1] < losses[-2]:
            weights[1] += 0.3
    return ask(losses[0]) * losses[-1]


def _by_an_object(x, ask):
    class Model:
        def __init__(self):
            self.state = np.arange(3.0)

        def step(self, x):
            out = np.sum(self.state * x)
            self.state[1:] = self.state[:-1] * x[:2]
            return out

    model = Model()
    outs = [model.step(x) for _ in range(3)]
    return ask(outs[0]) * outs[-1] if outs[0] > outs[1] else outs[-1]


QUESTIONS = {
    "truth": lambda value: 2.0 if value > 1.0 else 3.0,
    "whole part": lambda value: 1.0 + int(value),
    "index": lambda value: [1.0, 2.0, 3.0][int(value > 1.0)],
    "mask": lambda value: np.sum(np.array([1.0, 2.0])[np.array([value > 1.0, True])]),
    "last": lambda value: value,
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("change", [_reused, _becomes_traced, _by_a_list, _by_an_object])
def test_answers_come_from_arrays_as_they_were_captured(change, question):
    ask = QUESTIONS[question]
    point = np.array([0.7, 0.95, 0.42])

    def f(x):
        return change(x, ask)

    compiled = ft.jit(f, specialize=True)
    for x in (point, -point, 3 * point):
        np.testing.assert_allclose(compiled(x), f(x), 1e-13)
        slope = [(f(x + e) - f(x - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(ft.grad(compiled)(x), slope, 1e-6, 1e-8)
    batch = np.stack([point, -point, 3 * point])
    mapped = ft.vmap(compiled)
    np.testing.assert_allclose(mapped(batch), [f(x) for x in batch], 1e-13)


# selections by masks that are known by values ---------------------------------------------------


def _written(x, mask, value):
    y = x * 1.0
    y[mask] = value
    return y


SELECTIONS = {
    "sum": lambda x: np.sum(x[x > 0.5]),
    "method": lambda x: x[x > 0.5].mean() * x[0],
    "length": lambda x: len(x[x > 0.5]) * x.sum(),
    "loop": lambda x: sum(v * v for v in x[x > 0.5]),
    "index": lambda x: x[x > 0.5][0],
    "joined": lambda x: np.concatenate([x[x > 0.5], x[x <= 0.5]]) * np.arange(3.0),
    "result": lambda x: x[x > 0.5],
    "two masks": lambda x: np.sum(x[x > 0.5]) * x[x <= 0.5][:1],
    "combined": lambda x: x[x > 0.5] * (1.0 + np.arange(np.sum(x > 0.5))),
    "of columns": lambda x: np.outer(x, x)[:, x > 0.5].sum(axis=0),
    "sorted": lambda x: np.sort(x[x > 0.5])[-1],
    "written": lambda x: _written(x, x > 0.5, 1.0 * np.arange(np.sum(x > 0.5))),
    "by another": lambda x: _written(x, x > 0.5, (x * 2)[x > 0.5]),
    "reduce": lambda x: np.add.reduce(x[x > 0.5]),
    "added": lambda x: np.add(x[x > 0.5], 1.0).sum(),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_selections_by_masks_are_those_of_numpy(name):
    f = SELECTIONS[name]
    compiled = ft.jit(f, specialize=True)
    for x in (np.array([0.7, 0.2, 0.9]), np.array([0.1, 0.2, 0.6]), np.array([0.3, 0.8, 0.4])):
        np.testing.assert_allclose(compiled(x), f(x), 1e-13)
        found = ft.jacobian(compiled)(x)
        slope = np.stack([(f(x + e) - f(x - e)) / 2e-6 for e in 1e-6 * np.eye(3)], -1)
        np.testing.assert_allclose(found, slope, 1e-6, 1e-8)
        np.testing.assert_allclose(ft.jit(ft.jacobian(f), specialize=True)(x), slope, 1e-6, 1e-8)


def test_selections_that_fit_need_no_path_of_their_own():
    def f(x):
        y = x * 1.0
        y[y > 0.5] *= 2.0
        small = y < 0.1
        y[small] = np.log(y[small] + 2.0)
        return y.sum()

    compiled = ft.jit(f, specialize=True, max_paths=1)
    for x in (np.array([0.7, 0.2, 0.05]), np.array([0.1, 0.9, 0.6])):
        np.testing.assert_allclose(compiled(x), f(x), 1e-13)


def _sorted_in_place(x):
    z = x[x > 0]
    z.sort()
    return z[0] * z[1]


def _by_a_function(x):
    def norm(v):
        v -= 1.0

    z = x[x > 0]
    norm(z)
    return (z**2).sum()


def _aliases_and_views(x):
    z = x[x > 0]
    w = z
    z *= 2
    v = z[1:]
    v[0] = 9 * x[0]
    z[0] += 5
    return (w * np.arange(3.0)).sum() + w[0]


def _by_functions_of_numpy(x):
    z = x[x > 0]
    np.put(z, [0], x[1])
    np.add.at(z, [0, 0], x[0])
    np.clip(z[1:2], 0.0, 0.25, out=z[1:2])
    total = z.sum()
    z.fill(3.0 * x[0])
    return total + z.sum()


def _stored_after_a_change(x):
    m = x > 0
    y = np.zeros(4)
    z = x[m]
    w = z
    z *= 2
    y[m] = w
    return (y**2).sum()


def _mask_changes(x):
    m = x > 0
    z = x[m]
    m[0] = False
    return (z * 2).sum()


def _source_changes(x):
    y = x * 1.0
    b = x > 0.5
    m = x > 0
    z, u = b[m], y[m]
    b[0] = False
    y[0] = 0.0
    return (z.sum() * x).sum() + u.sum()


@pytest.mark.parametrize(
    "f",
    [
        _sorted_in_place, _by_a_function, _aliases_and_views, _by_functions_of_numpy,
        _stored_after_a_change, _mask_changes, _source_changes,
    ],
)  # fmt: skip
def test_selections_are_arrays_of_their_own(f):
    x = np.array([1.7, 0.3, -0.4, 0.8])
    slope = [(f(x + e) - f(x - e)) / 2e-6 for e in 1e-6 * np.eye(4)]
    compiled = ft.jit(f, specialize=True)
    np.testing.assert_allclose(compiled(x), f(x), 1e-13)
    np.testing.assert_allclose(ft.grad(compiled)(x), slope, 1e-6, 1e-8)
    np.testing.assert_allclose(ft.grad(f)(x), slope, 1e-6, 1e-8)
    np.testing.assert_allclose(ft.vmap(compiled)(x[None])[0], f(x), 1e-13)
    if f is _stored_after_a_change:
        np.testing.assert_allclose(ft.jit(f)(x), f(x), 1e-13)
