"""NumPy entry points that do not dispatch, or cannot be traced: each raises with a remedy."""

import inspect
import math

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ConcretizationError, UnsupportedOperationError
from functrans.numpy.protocols import array_functions
from functrans.numpy.tables import REPLACEMENTS

pytestmark = pytest.mark.usefixtures("names_as_they_are")

BUFFER = np.zeros(3)
ARRAY = np.arange(12.0).reshape(3, 4)

CALLS = {
    "np.array([t, t])": lambda t: np.array([t, t]).sum(),
    "np.array(t)": lambda t: np.array(t).sum(),
    "np.asarray(t)": lambda t: np.asarray(t).sum(),
    "np.mean([t, t])": lambda t: np.mean([t, t]),
    "np.full(3, t)": lambda t: np.full(3, t).sum(),
    "np.full_like(buffer, t)": lambda t: np.full_like(BUFFER, t).sum(),
    "array.dot(t)": lambda t: ARRAY.dot(np.ones(4) * t).sum(),
    "buffer[0] = t": lambda t: BUFFER.__setitem__(0, t) or BUFFER.sum(),
    "buffer[:] = t": lambda t: BUFFER.__setitem__(slice(None), t * np.ones(3)) or BUFFER.sum(),
    "fill": lambda t: BUFFER.fill(t) or BUFFER.sum(),
    "buffer += t": lambda t: BUFFER.__iadd__(t).sum(),
    "np.copyto(buffer, t)": lambda t: np.copyto(BUFFER, t) or BUFFER.sum(),
    "np.put": lambda t: np.put(BUFFER, [0], t) or BUFFER.sum(),
    "np.place": lambda t: np.place(BUFFER, BUFFER == 0, [t]) or BUFFER.sum(),
    "np.putmask": lambda t: np.putmask(BUFFER, BUFFER == 0, t) or BUFFER.sum(),
    "np.put_along_axis": lambda t: np.put_along_axis(BUFFER, np.array([0]), t, 0) or BUFFER.sum(),
    "np.fill_diagonal": lambda t: np.fill_diagonal(ARRAY, t) or ARRAY.sum(),
    "np.add.at": lambda t: np.add.at(BUFFER, [0], t) or BUFFER.sum(),
    "out=": lambda t: np.multiply(t, 2.0, out=BUFFER).sum(),
    "out= of a reduction": lambda t: np.sum(t * ARRAY, axis=1, out=BUFFER).sum(),
    "out= positional": lambda t: np.clip(t * np.ones(3), 0, 1, BUFFER).sum(),
    "math.sin": lambda t: math.sin(t),
    "math.prod": lambda t: math.fsum([t, t]),
    "float": lambda t: float(t) * t,
    "masked array operand": lambda t: (np.ma.masked_array([1.0, 2.0], [True, False]) * t).sum(),
    "masked where": lambda t: np.ma.masked_where([True, False], np.ones(2) * t),
    "np.random.normal": lambda t: np.random.normal(t, 1.0),  # noqa: NPY002  # the legacy entry
    "Generator.normal": lambda t: np.random.default_rng(0).normal(t, 1.0),
    "np.vectorize": lambda t: np.vectorize(lambda v: v * v)(t),
    "np.r_": lambda t: np.r_[t, t].sum(),
    "np.arange": lambda t: np.arange(t).sum(),
    "np.poly1d": lambda t: np.poly1d([t, 1.0])(2.0),
    "np.polynomial": lambda t: np.polynomial.polynomial.polyval(2.0, [t, 1.0]),
    "np.interp list": lambda t: np.interp(0.5, [0.0, 1.0], [t, t]),
    "object array": lambda t: np.array([t, None], dtype=object),
    "save": lambda t: np.save("unused.npy", t),
    "array_repr": lambda t: np.array_repr(t),
    "packbits": lambda t: np.packbits(t),
    "min_scalar_type": lambda t: np.min_scalar_type(t),
    "isnat": lambda t: np.isnat(t),
    "datetime_as_string": lambda t: np.datetime_as_string(t),
}


def run(function, transform):
    if transform == "grad":
        return ft.grad(lambda t: function(t) * 1.0)(0.7)
    if transform == "jvp":
        return ft.jvp(function, (0.7,), (1.0,))
    return ft.make_jaxpr(function)(0.7)


@pytest.mark.parametrize("transform", ["grad", "jvp", "staged"])
@pytest.mark.parametrize("name", CALLS)
def test_entry_point_raises_our_error(name: str, transform: str) -> None:
    # NumPy turns our error into its own ValueError in ``buffer[0] = t`` and ``buffer.fill(t)``; the
    # transforms raise its cause.
    with pytest.raises((ConcretizationError, UnsupportedOperationError)) as caught:
        run(CALLS[name], transform)
    text = str(caught.value)
    assert "test_dispatch_errors.py" in text  # the user's line
    assert any(
        word in text.lower() for word in ("use ", "replace", "like=", "carry", "give", "comp")
    )
    np.testing.assert_array_equal(BUFFER, np.zeros(3))
    np.testing.assert_array_equal(ARRAY, np.arange(12.0).reshape(3, 4))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_masked_and_matrix_operands_are_refused() -> None:
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    with pytest.raises(UnsupportedOperationError, match="MaskedArray"):
        ft.grad(lambda t: np.sum(np.stack([t * np.ones(2), masked])))(1.0)
    with pytest.raises(UnsupportedOperationError, match="matrix"):
        ft.grad(lambda t: np.sum(np.append(t, np.matrix([1.0]))))(1.0)
    with pytest.raises(ConcretizationError):
        ft.grad(lambda t: np.matrix([[t]]).sum())(1.0)


@pytest.mark.parametrize("dtype", ["O", "U3", "M8[s]"])
def test_arrays_of_no_numbers_are_refused(dtype: str) -> None:
    other = np.array([1, 2]).astype(dtype) if dtype != "M8[s]" else np.zeros(2, dtype)
    with pytest.raises((UnsupportedOperationError, TypeError)):
        ft.grad(lambda t: np.concatenate([t * np.ones(2), other]).sum())(1.0)


def test_traced_integer_as_index_of_a_plain_array_names_take() -> None:
    with pytest.raises(ConcretizationError, match=r"functrans\.numpy\.take"):
        ft.make_jaxpr(lambda i: ARRAY[i])(1)
    for remedy in (lambda i: fnp.take(ARRAY, i, axis=0), lambda i: np.asarray(ARRAY, like=i)[i]):
        jaxpr = ft.make_jaxpr(remedy)(1)
        np.testing.assert_array_equal(ft.eval_jaxpr(jaxpr, None, 1)[0], ARRAY[1])


def test_every_array_function_is_traced_or_has_a_replacement() -> None:
    dispatcher = type(np.sum)
    spaces = {
        "numpy": np,
        "numpy.linalg": np.linalg,
        "numpy.fft": np.fft,
    }
    missing = [
        f"{space}.{name}"
        for space, module in spaces.items()
        for name in dir(module)
        if not name.startswith("_")
        and type(getattr(module, name)) is dispatcher
        and getattr(module, name) not in array_functions()
        and getattr(module, name) not in REPLACEMENTS
    ]
    assert missing == []


def test_signatures_are_numpys() -> None:
    for function, traced in array_functions().items():
        try:
            wanted = inspect.signature(function)
        except ValueError:  # a C function without a signature
            continue
        if function is np.arange:  # start and stop change places
            continue
        found = inspect.signature(traced).parameters
        for name, parameter in wanted.parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            if name not in found:
                assert any(p.kind is p.VAR_KEYWORD for p in found.values()), (function, name)
                continue
            own = found[name]
            assert own.kind == parameter.kind, (function.__name__, name)
            assert repr(own.default) == repr(parameter.default), (function.__name__, name)
