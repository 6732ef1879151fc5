"""Functions in files: what is saved is what is loaded, without source, and nothing else is read."""

import dataclasses
import io
import json
import pickle
import random
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.errors import CacheFormatError, ShapeError, UnsupportedOperationError
from helpers import assert_close

WEIGHTS = np.arange(6.0).reshape(2, 3)


def layer(params: Any, x: Any, scale: float = 2.0) -> Any:
    y = np.tanh(WEIGHTS @ x) * params["scale"][0] + scale
    return {"y": y, "more": (np.sum(y), None, [x > 0])}


DTYPES = (
    "bool", "int8", "int32", "int64", "uint8", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip
PARAMS = {"scale": [np.array([1.0, -2.0]), 3]}
X = np.array([0.5, -1.0, 2.0])


def saved(fun: Any, *args: Any, **kwargs: Any) -> bytes:
    file = io.BytesIO()
    ft.jit(fun).save(file, *args, **kwargs)
    return file.getvalue()


def loaded(data: bytes) -> Any:
    return ft.load(io.BytesIO(data))


def assert_equal(found: Any, expected: Any) -> None:
    assert ft.tree.structure(found) == ft.tree.structure(expected)
    for a, b in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


# results -----------------------------------------------------------------------------------------


def test_a_loaded_function_gives_the_bits_of_the_saved_one() -> None:
    function = loaded(saved(layer, PARAMS, X))
    assert_equal(function(PARAMS, X), ft.jit(layer)(PARAMS, X))
    assert list(function(PARAMS, X)) == ["y", "more"]
    assert repr(function) == (
        "<loaded layer: params['scale'][0] f64[2], params['scale'][1] i64*[], x f64[3] -> "
        "f64[], bool[3], f64[2]>"
    )


def test_it_can_be_transformed() -> None:
    function = loaded(saved(layer, PARAMS, X, scale=1.0))

    def total(f: Any) -> Any:
        return lambda x: np.sum(f(PARAMS, x, scale=1.0)["y"] ** 2)

    assert_close(ft.grad(total(function))(X), ft.grad(total(layer))(X), rtol=1e-14)
    assert_close(ft.hessian(total(function))(X), ft.hessian(total(layer))(X), rtol=1e-12)
    batch = ft.vmap(total(function))(np.stack([X, 2 * X]))
    assert_close(batch, np.stack([total(layer)(X), total(layer)(2 * X)]), rtol=1e-14)
    assert_close(ft.jit(total(function))(X), total(layer)(X), rtol=1e-14)


def test_arguments_have_their_names() -> None:
    function = loaded(saved(layer, PARAMS, X))
    assert_equal(function(x=X, params=PARAMS), function(PARAMS, X))
    assert_equal(function(PARAMS, x=X), function(PARAMS, X))
    static = ft.jit(lambda n, x, k: x**n + k, static_argnums=0)
    file = io.BytesIO()
    static.save(file, 3, X, k=1.0)
    cubes = loaded(file.getvalue())
    assert_equal(cubes(x=X, k=2.0), X**3 + 2.0)


def test_derivatives_and_sparse_results() -> None:
    def energy(x: Any) -> Any:
        return np.sum(x[1:] * x[:-1] ** 2)

    x = np.linspace(0.0, 1.0, 5)
    assert_equal(loaded(saved(ft.grad(energy), x))(x), ft.jit(ft.grad(energy))(x))
    hess = loaded(saved(ft.sparse_hessian(energy, format="csc"), x))(x)
    assert (hess.format, hess.shape) == ("csc", (5, 5))
    assert_close(hess.toarray(), ft.hessian(energy)(x), rtol=1e-14)


def test_loops_dtypes_and_captured_arrays() -> None:
    table = np.arange(4, dtype=np.float32)

    def walk(x: Any, n: Any) -> Any:
        last, seen = lax.scan(lambda c, y: (c * y + 1, c > y), np.float32(1), x)
        return lax.while_loop(lambda s: s < n, lambda s: s * 2 + 1, n * 0), last, seen, table

    args = np.ones(3, np.float32), np.array(9, np.int16)
    data = saved(walk, *args)
    expected = ft.jit(walk)(*args)
    table[:] = 0
    found = loaded(data)(*args)
    assert_equal(found, expected)
    found[3][...] = 7  # results are the caller's
    assert_equal(loaded(data)(*args), expected)


def test_another_process_needs_no_source(tmp_path: Path) -> None:
    source, file = tmp_path / "model.py", tmp_path / "model.ft"
    source.write_text("import numpy as np\ndef f(x): return {'y': np.sin(x) @ x}\n")
    making = "import sys, numpy as np, functrans as ft, model; ft.jit(model.f).save(sys.argv[1], "
    root = str(Path(ft.__file__).parents[1])
    run = [sys.executable, "-c"]
    options: dict[str, Any] = {"cwd": tmp_path, "check": True, "capture_output": True}
    path = f"import sys; sys.path.insert(0, {root!r}); "
    subprocess.run([*run, f"{path}{making}np.ones(3))", str(file)], **options)
    source.unlink()
    using = "import numpy as np, functrans as ft; f = ft.load(sys.argv[1]); print(f(np.ones(3)))"
    found = subprocess.run([*run, f"{path}{using}", str(file)], **options).stdout.decode()
    assert found.strip() == repr({"y": np.array(np.sin(1.0) * 3)})


def test_pickles_and_programs() -> None:
    function = loaded(saved(layer, PARAMS, X))
    assert_equal(pickle.loads(pickle.dumps(function))(PARAMS, X), function(PARAMS, X))
    file = io.BytesIO(saved(layer, PARAMS, X))
    assert ft.Jaxpr.load(file).structurally_equal(function.jaxpr)
    program = io.BytesIO()
    ft.make_jaxpr(lambda x, y: (x + y, x * y))(X, X).save(program)
    assert_equal(loaded(program.getvalue())(X, X), (X + X, X * X))


# refusals ----------------------------------------------------------------------------------------


def test_other_arguments_are_refused() -> None:
    function = loaded(saved(layer, PARAMS, X))
    with pytest.raises(TypeError, match=r"layer: .* structure \(\(\{'scale': \[\*, \*\]\}, \*\)"):
        function(X)
    with pytest.raises(ShapeError, match=r"layer: x is f64\[4\] .* made for f64\[3\]"):
        function(PARAMS, np.ones(4))
    with pytest.raises(ShapeError, match=r"x is c128\[3\]"):
        function(PARAMS, X + 0j)
    with pytest.raises(UnsupportedOperationError, match="layer: x is of type"):
        function(PARAMS, "abc")
    assert_equal(function(PARAMS, X.astype(np.float32)), ft.jit(layer)(PARAMS, X))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("given", DTYPES)
def test_arguments_are_converted_where_nothing_is_lost(dtype: str, given: str) -> None:
    function = loaded(saved(lambda x: (x, x + x), np.ones(3, dtype)))
    x = np.array([1, 0, 1], given)
    if np.can_cast(given, dtype, "safe"):
        y = x.astype(dtype)
        assert_equal(function(x), (y, y + y))
        return
    message = rf"x is .*\.astype\('{dtype}'\)"
    with pytest.raises(ShapeError, match=message):
        function(x)
    with pytest.raises(ShapeError, match="made for"):
        ft.jit(function)(x)


def test_numbers_of_python_take_the_dtype() -> None:
    function = loaded(saved(lambda x, n: x * n, np.float32(1.0), np.int8(1)))
    assert_equal(function(0.5, 3), np.array(1.5, np.float32))
    assert_equal(function(2, True), np.array(2.0, np.float32))
    for wrong in (1.5, 1j):
        with pytest.raises(ShapeError, match=r"n is .* made for i8\[\]"):
            function(0.5, wrong)
    for wrong in (300, -129):
        with pytest.raises(OverflowError, match=r"n is -?\d+ .*out of bounds for int8"):
            function(0.5, wrong)


def test_derivatives_without_their_rules_are_refused() -> None:
    @ft.custom_jvp
    def clipped(x: Any) -> Any:
        return np.clip(x, 0.0, 1.0)

    clipped.defjvp(lambda primals, tangents: (clipped(*primals), tangents[0]))

    def steps(x: Any) -> Any:
        return lax.scan(lambda c, y: (clipped(c + y), c), 0.0, clipped(x))[0]

    function = loaded(saved(steps, X))
    assert_equal(function(X), ft.jit(steps)(X))
    assert_equal(ft.vmap(function)(np.stack([X, X]))[0], ft.jit(steps)(X))
    with pytest.raises(UnsupportedOperationError, match=r"steps: it was saved without the rules"):
        ft.grad(function)(X)
    assert_equal(loaded(saved(ft.grad(steps), X))(X), ft.jit(ft.grad(steps))(X))


@dataclasses.dataclass
class Point:
    x: Any


REFUSED: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "callback": (
        lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct((3,), "f8"), x), (X,),
        r"pure_callback \(at test_saved_functions\.py:\d+",
    ),
    "argument": (lambda p: p.x, (Point(X),), "an argument is a Point"),
    "result": (lambda x: [Point(x)], (X,), "the result is a Point, or has one in it"),
    "key": (lambda d: d[1.5], ({1.5: X},), "key of type float"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_data_is_not_written(tmp_path: Path, name: str) -> None:
    fun, args, message = REFUSED[name]
    with pytest.raises(UnsupportedOperationError, match=message):
        ft.jit(fun).save(tmp_path / "file", *args)
    assert not list(tmp_path.iterdir())


def test_values_of_a_transform_are_not_written(tmp_path: Path) -> None:
    def outer(y: Any) -> Any:
        ft.jit(lambda x: x * y).save(tmp_path / "file", X)
        return y

    with pytest.raises(UnsupportedOperationError, match="captured one of its values"):
        ft.grad(outer)(2.0)
    assert not list(tmp_path.iterdir())


# files -------------------------------------------------------------------------------------------


def test_altered_and_truncated_files_are_refused() -> None:
    data = saved(layer, PARAMS, X)
    function = loaded(data)
    chosen = random.Random(0)
    n_refused, messages = 0, set()
    for place in range(len(data)):
        altered = bytearray(data)
        altered[place] ^= 1 << chosen.randrange(8)
        try:
            found = loaded(bytes(altered))
        except CacheFormatError as error:
            messages.add(str(error).partition(":")[0])
            n_refused += 1
        else:  # dates, flags and the like
            assert found.jaxpr.structurally_equal(function.jaxpr)
            assert found._function == function._function
    assert n_refused > 0.7 * len(data)
    assert messages == {"load"}
    for length in range(0, len(data), 7):
        with pytest.raises(CacheFormatError, match="load: the file cannot be read"):
            loaded(data[:length])


def rewritten(data: bytes, change: Any) -> bytes:
    """The file with another document."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "program.json":
                document = json.loads(content)
                change(document)
                content = json.dumps(document).encode()
            new.writestr(name, content)
    return out.getvalue()


def nested(depth: int) -> Any:
    inner: Any = "*"
    for _ in range(depth):
        inner = {"list": [inner]}
    return inner


ONE: Any = {"tuple": [{"tuple": ["*"]}, {"dict": []}]}
HOSTILE: dict[str, Any] = {
    "another version": lambda d: d.update(version=10**6),
    "another format": lambda d: d.update(format="pickle"),
    "no containers": lambda d: d["function"].pop("result"),
    "another number of arguments": lambda d: d["function"].update(arguments=ONE),
    "another number of results": lambda d: d["function"].update(result="*"),
    "unknown container": lambda d: d["function"].update(result={"os.system": ["true"]}),
    "unhashable key": lambda d: d["function"].update(result={"dict": [[["a"], "*"]]}),
    "deep": lambda d: d["function"].update(result=nested(400)),
    "text for a flag": lambda d: d["function"].update(has_rules="no"),
    "numbers for names": lambda d: d["function"].update(names=[1, 2]),
    "no function": lambda d: d.update(function=3),
    "arguments that are none": lambda d: d["function"].update(arguments="*"),
    "unknown primitive": lambda d: d.update(primitives=["eval"] * len(d["primitives"])),
    "layout": lambda d: d["function"].update(result={"sparse": [2, 2, "dia"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_files_that_make_no_sense_are_refused(name: str) -> None:
    data = rewritten(saved(layer, PARAMS, X), HOSTILE[name])
    with pytest.raises(CacheFormatError, match=r"load: the file cannot be read"):
        loaded(data)


def test_pickles_are_no_files_of_functions(tmp_path: Path) -> None:
    class Harmful:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "harm",)

    for content in (pickle.dumps(Harmful()), b"", b"PK\x03\x04", b"{}"):
        with pytest.raises(CacheFormatError, match=r"load: .* cannot be read"):
            loaded(content)
    assert not (tmp_path / "harm").exists()
    with pytest.raises(FileNotFoundError):
        ft.load(tmp_path / "nothing")
