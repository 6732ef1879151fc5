"""Settings: in force within a ``with`` block, for one thread or task; each does what it says."""

import asyncio
import collections
import contextlib
import functools
import gc
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.core.state import Config, current_config

X = np.array([0.5, -1.0, 2.0])


def test_settings_are_restored() -> None:
    before = current_config.get()
    with ft.config(safe_where=False) as outer:
        assert current_config.get() is outer
        assert not outer.safe_where
        with ft.config(copy_residuals=False) as inner:
            assert not inner.safe_where
            assert not inner.copy_residuals
        assert current_config.get() is outer
    assert current_config.get() is before


def test_settings_are_restored_after_an_error() -> None:
    with pytest.raises(KeyError), ft.config(jit=False):
        raise KeyError
    assert current_config.get() == Config()


@pytest.mark.parametrize("name", ["speed", "safe-where", "SAFE_WHERE", ""])
def test_unknown_settings_are_refused(name: str) -> None:
    with (
        pytest.raises(TypeError, match=r"unknown setting.*safe_where.*jacobian_memory_bytes"),
        ft.config(**{name: True}),
    ):
        pass


@pytest.mark.parametrize("field", fields(Config), ids=lambda field: field.name)
def test_values_of_settings_are_checked(field: Any) -> None:
    if field.name == "nan_watch":
        return  # an object, set by debug_nans
    bad: dict[Any, Any] = {"x": TypeError, None: TypeError}
    if isinstance(field.default, str):
        bad = {"x": ValueError, None: TypeError, True: TypeError}
    elif isinstance(field.default, bool):
        bad |= {1: TypeError, np.nan: TypeError}
    else:
        bad |= {True: TypeError, -1: ValueError, np.nan: ValueError, -np.inf: ValueError}
    for value, error in bad.items():
        with (
            pytest.raises(error, match=f"config: {field.name} must be"),
            ft.config(**{field.name: value}),
        ):
            pass
    assert current_config.get() == Config()


def test_every_setting_is_documented() -> None:
    assert ft.config.__doc__ is not None
    for field in fields(Config):
        assert f"{field.name}:" in ft.config.__doc__


def test_settings_belong_to_a_thread() -> None:
    with ft.config(safe_where=False), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: current_config.get().safe_where).result()
        assert not current_config.get().safe_where


def test_settings_belong_to_a_task() -> None:
    async def other() -> bool:
        with ft.config(safe_where=False):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return current_config.get().safe_where

    async def main() -> list[bool]:
        task = asyncio.ensure_future(other())
        await asyncio.sleep(0)
        seen = current_config.get().safe_where
        return [seen, await task, current_config.get().safe_where]

    assert asyncio.run(main()) == [True, False, True]


def test_settings_in_force_when_the_derivative_is_taken_count() -> None:
    def fun(x: Any) -> Any:
        return np.where(x < 1, np.arcsin(x), x**2)

    with np.errstate(all="ignore"):
        gradient = ft.grad(fun)
        with ft.config(safe_where=False):
            assert np.isnan(gradient(2.0))
            _, pullback = ft.vjp(fun, 2.0)
        assert gradient(2.0) == 4
        assert pullback(1.0)[0] == 4


def test_jit_off_calls_the_function_as_it_is() -> None:
    @ft.jit
    def fun(x: Any) -> Any:
        return x if x > 0 else -x

    with ft.config(jit=False):
        assert fun(-2.0) == 2
        assert ft.grad(fun)(-2.0) == -1
    with ft.disable_jit():
        assert fun(-2.0) == 2
    with pytest.raises(ft.errors.ConcretizationError):
        fun(-2.0)


def test_programs_are_checked_on_request() -> None:
    with ft.config(check_jaxprs=True):
        np.testing.assert_allclose(
            ft.jit(ft.hessian(lambda x: np.sum(np.sin(x) * x[0])))(X)[1, 1], np.sin(1.0) * 0.5
        )
        np.testing.assert_allclose(
            ft.vmap(ft.grad(lambda x: np.sum(np.sort(x) ** 2)))(X[None])[0], 2 * X
        )


def test_the_memory_budget_of_jacobians() -> None:
    with ft.config(jacobian_memory_bytes=8 * 9):
        np.testing.assert_allclose(ft.jacobian(np.sin)(X), np.diag(np.cos(X)))
    with ft.config(jacobian_memory_bytes=8 * 9 - 1), pytest.raises(MemoryError):
        ft.jacobian(np.sin)(X)


def test_copies_of_residuals() -> None:
    w = np.ones(3)

    def fun(x: Any) -> Any:
        y = x * w
        w[:] = 2.0
        return np.sum(y)

    np.testing.assert_array_equal(ft.grad(fun)(X), [1, 1, 1])
    w[:] = 1.0
    with ft.config(copy_residuals=False):
        np.testing.assert_array_equal(ft.grad(fun)(X), [2, 2, 2])


# blocks that are not entered ----------------------------------------------------------------------


def dropped_config() -> None:
    ft.config(native=False)


def dropped_debug_nans() -> None:
    ft.debug_nans()


def dropped_disable_jit() -> None:
    for _ in range(1):
        ft.disable_jit()
    assert True


def dropped_named_scope() -> None:
    ft.named_scope("part")


def dropped_partial() -> None:
    functools.partial(ft.config, jit=False)()


@pytest.mark.parametrize(
    ("function", "name", "line"),
    [
        (dropped_config, "config", 1), (dropped_debug_nans, "debug_nans", 1),
        (dropped_disable_jit, "disable_jit", 2), (dropped_named_scope, "named_scope", 1),
        (dropped_partial, "config", 1),
    ],
)  # fmt: skip
def test_a_block_that_is_called_and_dropped_is_told_of(function: Any, name: str, line: int) -> None:
    with pytest.warns(UserWarning, match=rf"functrans\.{name}\(\.\.\.\) was called") as caught:
        function()
    (warning,) = caught
    assert warning.filename == __file__
    assert warning.lineno == function.__code__.co_firstlineno + line


@ft.config(jit=False)
def decorated() -> bool:
    return current_config.get().jit


def returned() -> Any:
    return ft.config(jit=False)


def test_blocks_that_are_used_otherwise_are_not_told_of() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert not decorated()
        later = ft.config(jit=False)
        with later:
            assert not current_config.get().jit
        with contextlib.ExitStack() as stack:
            stack.enter_context(ft.config(jit=False))
            collections.deque(map(stack.enter_context, map(ft.debug_nans, [True, False])), 0)
            assert not current_config.get().jit
        with returned(), ft.named_scope("a"), ft.disable_jit(), ft.debug_nans():
            assert not current_config.get().jit
        kept = [ft.config(jit=False) for _ in range(2)]
        made = (lambda: ft.config(jit=False))()
        unused = returned()
        del kept, made, unused
        ft.config(jit=False)(decorated)()
        gc.collect()
    assert not caught
