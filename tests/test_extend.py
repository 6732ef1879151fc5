"""``functrans.extend``: passes as functions of programs, and what authors of primitives get."""

import ast
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import extend
from functrans.extend import ShapedArray, bind
from helpers import assert_close

DOCS = Path(__file__).resolve().parent.parent / "docs"
F64 = np.dtype(np.float64)
W = np.arange(6.0).reshape(2, 3) / 7


def _elementwise(x: Any, y: Any) -> Any:
    return np.sin(x) * y, np.sum(y**2)


def _with_integers(x: Any, n: Any, y: Any) -> Any:
    return np.exp(x) * n + y[n], n + 1


def _with_constants(x: Any, y: Any) -> Any:
    return W @ x + y


def _loop(x: Any, y: Any) -> Any:
    return ft.lax.scan(lambda c, a: (np.tanh(c + a) * a, c), y, x)


def _branch(x: Any, y: Any) -> Any:
    return ft.lax.cond(np.sum(x) > 0, lambda x: x * y, lambda x: x - y, x)


def _one_is_unused(x: Any, y: Any) -> Any:
    return 2.0 * x, np.ones(2)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (_elementwise, (np.array([0.3, -0.4]), np.array([1.5, 2.5]))),
    "integers": (_with_integers, (np.array([0.3, -0.4]), 1, np.array([1.5, 2.5]))),
    "constants": (_with_constants, (np.array([0.3, -0.4, 0.1]), np.array([1.5, 2.5]))),
    "loop": (_loop, (np.array([0.3, -0.4, 0.1]), np.array(0.5))),
    "branch": (_branch, (np.array([0.3, -0.4]), np.array(0.5))),
    "call": (ft.jit(_elementwise), (np.array([0.3, -0.4]), np.array([1.5, 2.5]))),
    "unused": (_one_is_unused, (np.array([0.3, -0.4]), np.array(0.5))),
    "single": (_elementwise, (np.float32([0.3, -0.4]), np.float32([1.5, 2.5]))),
}
PARAMETERS = [pytest.param(key, id=key) for key in CASES]


def _case(key: str) -> tuple[Callable[..., Any], tuple[Any, ...], extend.Jaxpr]:
    """The function with a flat tuple of results, its arguments and its program."""
    fun, args = CASES[key]

    def flat(*args: Any) -> tuple[Any, ...]:
        return tuple(ft.tree.leaves(fun(*args)))

    return flat, args, ft.make_jaxpr(flat)(*args)


def _floating(values: Any) -> list[int]:
    return [i for i, x in enumerate(values) if np.asarray(x).dtype.kind == "f"]


def _tangents(args: tuple[Any, ...]) -> list[Any]:
    return [np.asarray(np.cos(args[i]), np.asarray(args[i]).dtype) for i in _floating(args)]


def _jvp(fun: Any, args: tuple[Any, ...], tangents: list[Any]) -> tuple[list[Any], list[Any]]:
    """Values, and tangents of floating results, by the transform of functions."""
    where = _floating(args)

    def of_floating(*given: Any) -> tuple[Any, ...]:
        full = list(args)
        for i, value in zip(where, given, strict=True):
            full[i] = value
        return tuple(fun(*full))

    outs, out_tangents = ft.jvp(of_floating, tuple(args[i] for i in where), tuple(tangents))
    return list(outs), [out_tangents[i] for i in _floating(outs)]


@pytest.mark.parametrize("key", PARAMETERS)
def test_jvp_program_is_jvp(key: str) -> None:
    fun, args, program = _case(key)
    made = extend.jvp_jaxpr(program)
    ft.check_jaxpr(made)
    tangents = _tangents(args)
    values, out_tangents = _jvp(fun, args, tangents)
    assert_close(extend.evaluate(made, [*args, *tangents]), [*values, *out_tangents])


@pytest.mark.parametrize("key", PARAMETERS)
def test_linearized_program_is_jvp_at_a_point(key: str) -> None:
    fun, args, program = _case(key)
    primal, linear = extend.linearize_jaxpr(program)
    ft.check_jaxpr(primal)
    ft.check_jaxpr(linear)
    found = extend.evaluate(primal, args)
    outs, residuals = found[: len(program.outvars)], found[len(program.outvars) :]
    for scale in (1.0, -2.0):  # as often as wanted
        tangents = [np.asarray(scale * t, t.dtype) for t in _tangents(args)]
        values, out_tangents = _jvp(fun, args, tangents)
        assert_close(outs, values)
        assert_close(extend.evaluate(linear, [*residuals, *tangents]), out_tangents)


@pytest.mark.parametrize("key", PARAMETERS)
def test_transposed_linear_part_is_the_pullback(key: str) -> None:
    fun, args, program = _case(key)
    primal, linear = extend.linearize_jaxpr(program)
    where = _floating(args)
    n = len(linear.invars)
    pullback = extend.transpose_jaxpr(linear, range(n - len(where), n))
    ft.check_jaxpr(pullback)
    assert len(pullback.outvars) == len(where)
    found = extend.evaluate(primal, args)
    outs, residuals = found[: len(program.outvars)], found[len(program.outvars) :]
    cts = [np.asarray(np.sin(outs[i] + 1), np.asarray(outs[i]).dtype) for i in _floating(outs)]
    arg_cts = extend.evaluate(pullback, [*residuals, *cts])
    tangents = _tangents(args)
    _, out_tangents = _jvp(fun, args, tangents)
    assert_close(
        np.array(sum(np.sum(a * b) for a, b in zip(arg_cts, tangents, strict=True))),
        np.array(sum(np.sum(a * b) for a, b in zip(cts, out_tangents, strict=True))),
    )
    assert [ct.shape for ct in arg_cts] == [np.shape(args[i]) for i in where]
    assert [ct.dtype for ct in arg_cts] == [np.asarray(args[i]).dtype for i in where]


@pytest.mark.parametrize("key", PARAMETERS)
def test_batched_program_is_a_loop(key: str) -> None:
    fun, args, program = _case(key)
    made = extend.batch_jaxpr(program, 3)
    ft.check_jaxpr(made)
    stacked = [np.stack([np.asarray(x)] * 3) for x in args]
    stacked[0] = stacked[0] * np.array([1.0, 2.0, 3.0], stacked[0].dtype)[:, None]
    rows = [fun(*row) for row in zip(*stacked, strict=True)]
    assert_close(extend.evaluate(made, stacked), [np.stack(c) for c in zip(*rows, strict=True)])


@pytest.mark.parametrize("key", PARAMETERS)
def test_simplified_program_computes_the_same_bits(key: str) -> None:
    fun, args, program = _case(key)
    made = extend.simplify(program)
    ft.check_jaxpr(made)
    assert len(made.eqns) <= len(program.eqns)
    for found, value in zip(extend.evaluate(made, args), fun(*args), strict=True):
        np.testing.assert_array_equal(found, value)


def test_passes_compose_to_a_compiled_batched_second_derivative() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.exp(np.sin(x)))

    program = ft.make_jaxpr(f)(np.zeros(2))
    primal, linear = extend.linearize_jaxpr(program)
    pullback = extend.transpose_jaxpr(linear, -1)

    def gradient(x: Any) -> Any:
        _, *residuals = extend.evaluate(primal, [x])
        return extend.evaluate(pullback, [*residuals, 1.0])[0]

    slopes = extend.stage(gradient, [ShapedArray((2,), F64)])
    columns = extend.batch_jaxpr(extend.jvp_jaxpr(slopes), 2, argnums=[1])
    x = np.array([0.3, -0.7])
    hessian = ft.jit(lambda x: extend.evaluate(columns, [x, np.eye(2)])[1])
    assert_close(hessian(x), ft.hessian(f)(x))


def test_argnums_choose_arguments() -> None:
    program = ft.make_jaxpr(lambda x, y: x * y)(2.0, 3.0)
    assert extend.evaluate(extend.jvp_jaxpr(program, 1), [2.0, 3.0, 1.0]) == [6.0, 2.0]
    assert extend.evaluate(extend.jvp_jaxpr(program, (-2,)), [2.0, 3.0, 1.0]) == [6.0, 3.0]
    assert extend.evaluate(extend.transpose_jaxpr(program, 1), [2.0, 5.0]) == [10.0]
    assert extend.evaluate(extend.transpose_jaxpr(program, 0), [3.0, 5.0]) == [15.0]
    rows = extend.batch_jaxpr(program, 2, argnums=1)
    assert_close(extend.evaluate(rows, [2.0, np.array([1.0, 4.0])]), [np.array([2.0, 8.0])])


def test_results_that_depend_on_nothing_have_axes_and_zeros() -> None:
    program = ft.make_jaxpr(lambda x, y: (3.0 * x, np.ones(2)))(1.0, 2.0)
    assert_close(
        extend.evaluate(extend.jvp_jaxpr(program, 0), [1.0, 2.0, 1.0])[2:],
        [np.array(3.0), np.zeros(2)],
    )
    transposed = extend.transpose_jaxpr(program)
    assert_close(extend.evaluate(transposed, [1.0, np.ones(2)]), [np.array(3.0), np.array(0.0)])
    outs = extend.evaluate(extend.batch_jaxpr(program, 4, 0), [np.ones(4), 2.0])
    assert [out.shape for out in outs] == [(4,), (4, 2)]


def test_programs_of_traced_constants_are_differentiated_through() -> None:
    def f(a: Any) -> Any:
        program = ft.make_jaxpr(lambda x: a * x * x)(1.0)
        return extend.evaluate(extend.jvp_jaxpr(program), [3.0, 1.0])[1]

    assert_close(ft.grad(f)(2.0), np.array(6.0))
    assert_close(ft.jit(ft.grad(f))(2.0), np.array(6.0))


def test_collectives_know_the_axis_of_a_batch() -> None:
    program = ft.vmap(lambda x: ft.lax.psum(x, "i"), axis_name="i")
    inner: list[extend.Jaxpr] = []

    def note(x: Any) -> Any:
        inner.append(ft.make_jaxpr(lambda x: x / ft.lax.psum(x, "i"))(1.0))
        return x

    ft.vmap(note, axis_name="i")(np.ones(3))
    made = extend.batch_jaxpr(inner[0], 4, axis_name="i")
    x = np.arange(1.0, 5.0)
    assert_close(extend.evaluate(made, [x]), [x / program(x)])


# stage, evaluate ----------------------------------------------------------------------------------


def test_stage_takes_one_result_or_several() -> None:
    aval = ShapedArray((2,), F64)
    one = extend.stage(np.sin, [aval])
    several = extend.stage(lambda x, y: [x + y, (x - y)[0], 3.0], [aval, aval], name="both")
    assert (one.name, several.name) == ("sin", "both")
    ft.check_jaxpr(several)
    found = extend.evaluate(several, [np.ones(2), np.zeros(2)])
    assert_close(found, [np.ones(2), np.array(1.0), np.array(3.0)])


def test_stage_refuses_what_is_no_aval_or_no_array() -> None:
    with pytest.raises(TypeError, match=r"stage: avals\[0\] is of type ndarray, expected a Sha"):
        extend.stage(np.sin, [np.ones(2)])  # type: ignore[list-item]  # what is tested
    with pytest.raises(TypeError, match="stage: expected a function, got float"):
        extend.stage(1.0, [])  # type: ignore[arg-type]  # what is tested
    with pytest.raises(ft.errors.UnsupportedOperationError, match=r"stage of .* result"):
        extend.stage(lambda x: "x", [ShapedArray((), F64)])
    with pytest.raises(ft.errors.ConcretizationError):
        extend.stage(lambda x: x if x > 0 else -x, [ShapedArray((), F64)])


def test_evaluate_checks_its_arguments() -> None:
    program = ft.make_jaxpr(lambda x: W @ x)(np.ones(3))
    with pytest.raises(TypeError, match="evaluate: the program takes 1 arguments, got 2"):
        extend.evaluate(program, [np.ones(3), 1.0])
    with pytest.raises(ft.errors.ShapeError, match=r"evaluate: args\[0\] is f64\[2\]"):
        extend.evaluate(program, [np.ones(2)])
    with pytest.raises(TypeError, match="evaluate: the program has 1 constants, got 2"):
        extend.evaluate(program, [np.ones(3)], consts=[W, W])
    assert_close(extend.evaluate(program, [np.ones(3)], consts=[2 * W]), [2 * W.sum(1)])


PASSES = (
    extend.evaluate, extend.simplify, extend.jvp_jaxpr, extend.linearize_jaxpr,
    extend.transpose_jaxpr, extend.batch_jaxpr,
)  # fmt: skip


@pytest.mark.parametrize("one", PASSES, ids=lambda one: one.__name__)
def test_passes_refuse_what_is_no_program(one: Any) -> None:
    more = {extend.evaluate: ([1.0],), extend.batch_jaxpr: (2,)}.get(one, ())
    message = rf"{one.__name__}: expected a Jaxpr, got function; functrans\.make_jaxpr"
    with pytest.raises(TypeError, match=message):
        one(lambda x: x, *more)


@pytest.mark.parametrize("one", PASSES[2:], ids=lambda one: one.__name__)
def test_passes_refuse_arguments_that_are_not_there(one: Any) -> None:
    program = ft.make_jaxpr(lambda x, n: x * n)(1.0, 2)
    more = (2,) if one is extend.batch_jaxpr else ()
    for argnums, error, message in (
        (2, ValueError, "asks for argument 2, but the program takes 2"),
        ((0, -3), ValueError, "asks for argument -3, but the program takes 2"),
        ((0, -2), ValueError, "names an argument twice"),
        ((), ValueError, "argnums is empty"),
        ("x", TypeError, "argnums must be an int or a tuple of ints, got 'x'"),
        (1.0, TypeError, "argnums must be an int or a tuple of ints"),
    ):
        with pytest.raises(error, match=f"{one.__name__}: .*{message}"):
            one(program, *more, argnums)
    if one is not extend.batch_jaxpr:
        with pytest.raises(ft.errors.NonDifferentiableError, match=r"argument 1 is i64\*?\[\]"):
            one(program, (0, 1))


def test_programs_that_are_not_linear_are_not_transposed() -> None:
    with pytest.raises(ft.errors.NonDifferentiableError, match="sin is not linear in operand 0"):
        extend.transpose_jaxpr(ft.make_jaxpr(np.sin)(1.0))
    with pytest.raises(ft.errors.NonDifferentiableError, match="multiply is not linear"):
        extend.transpose_jaxpr(ft.make_jaxpr(lambda x, y: x * y)(1.0, 2.0))


def test_batches_have_a_size() -> None:
    program = ft.make_jaxpr(lambda x: 2.0 * x)(1.0)
    assert extend.evaluate(extend.batch_jaxpr(program, 0), [np.zeros(0)])[0].shape == (0,)
    with pytest.raises(ValueError, match="batch_jaxpr: size must not be negative, got -1"):
        extend.batch_jaxpr(program, -1)
    with pytest.raises(TypeError):
        extend.batch_jaxpr(program, 1.5)  # type: ignore[arg-type]  # what is tested


def test_programs_without_floating_arguments_have_no_tangents() -> None:
    program = ft.make_jaxpr(lambda n: n + 1)(1)
    for one in (extend.jvp_jaxpr, extend.linearize_jaxpr, extend.transpose_jaxpr):
        with pytest.raises(ft.errors.NonDifferentiableError, match="no floating argument"):
            one(program)


# primitives ---------------------------------------------------------------------------------------


def test_a_primitive_from_outside_composes() -> None:
    square_p = extend.unary(
        "own_square",
        lambda x: x * x,
        lambda t, x, y: t * (2.0 * x),
        "x",
        ufunc=np.square,
        lower=extend.Expansion(lambda x: (x * x,)),
    )
    square = extend.user_function(square_p)
    x = np.array([1.0, -2.0])
    assert_close(square(x), x * x)
    assert_close(ft.jit(ft.vmap(ft.grad(square)))(x), 2 * x)
    assert_close(ft.hessian(lambda x: np.sum(square(x)))(x), 2 * np.eye(2))
    program = ft.make_jaxpr(square)(x)
    assert [eqn.primitive for eqn in program.eqns] == [square_p]
    assert_close(extend.evaluate(extend.jvp_jaxpr(program), [x, x]), [x * x, 2 * x * x])


def _primitives() -> tuple[Callable[..., Any], ...]:
    """An elementwise operation, a movement and a sum, as an author of all three writes them."""
    softsign_p = extend.unary(
        "own_softsign",
        lambda x: x / (1 + np.abs(x)),
        lambda t, x, y: t / (1 + abs(x)) ** 2,
        "x",
        ufunc=np.sqrt,
        lower=extend.Expansion(lambda x: (x / (1 + np.abs(x)),)),
        work=extend.arithmetic,
    )

    def shift_batch(size: int, operands: Any, dims: Any, *, axis: int) -> Any:
        outs = bind(shift_p, *operands, axis=axis + (axis >= dims[0]))
        return outs, dims

    def shift_lower(index: Any, avals: Any, output: int, *, axis: int) -> Any:
        n = avals[0].shape[axis]
        before = tuple(i - 1 if k == axis else i for k, i in enumerate(index))
        wrapped = tuple(n - 1 if k == axis else i for k, i in enumerate(index))
        return extend.Read(0, before, ((index[axis] - 1, n),)), extend.Read(0, wrapped)

    def shift_transpose(cts: Any, operands: Any, *, axis: int) -> Any:
        back = cts[0]
        for _ in range(operands[0].shape[axis] - 1):
            (back,) = bind(shift_p, back, axis=axis)
        return (back,)

    shift_p = extend.Primitive(
        "own_shift",
        impl=lambda x, *, axis: (np.roll(x, 1, axis),),
        abstract_eval=lambda x, *, axis: (x.strong(),),
        jvp=extend.linear,
        transpose=shift_transpose,
        batch=shift_batch,
        lower=extend.IndexMap(shift_lower),
    )

    def total_batch(size: int, operands: Any, dims: Any, *, axes: Any) -> Any:
        (dim,) = dims
        moved = tuple(axis + (axis >= dim) for axis in axes)
        return bind(total_p, *operands, axes=moved), (dim - sum(axis < dim for axis in moved),)

    def total_aval(x: ShapedArray, *, axes: Any) -> Any:
        return (ShapedArray(tuple(n for k, n in enumerate(x.shape) if k not in axes), x.dtype),)

    def total_transpose(cts: Any, operands: Any, *, axes: Any) -> Any:
        (x,) = operands
        return (np.broadcast_to(np.expand_dims(cts[0], axes), x.shape),)

    total_p = extend.Primitive(
        "own_total",
        impl=lambda x, *, axes: (np.sum(x, axis=axes),),
        abstract_eval=total_aval,
        jvp=extend.linear,
        transpose=total_transpose,
        batch=total_batch,
        lower=extend.Reduction("sum"),
        moves=True,
    )

    def shift(x: Any, axis: int) -> Any:
        return bind(shift_p, x, axis=axis)[0]

    def total(x: Any, axes: Any) -> Any:
        return bind(total_p, x, axes=axes)[0]

    return extend.user_function(softsign_p), shift, total


def _of_numpy() -> tuple[Callable[..., Any], ...]:
    def softsign(x: Any) -> Any:
        return x / (1 + np.abs(x))

    def shift(x: Any, axis: int) -> Any:
        return np.roll(x, 1, axis)

    def total(x: Any, axes: Any) -> Any:
        return np.sum(x, axis=axes)

    return softsign, shift, total


def _chain(functions: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    softsign, shift, total = functions

    def chain(x: Any) -> Any:
        return total(shift(softsign(x * 2.0), 1) * shift(x, 0), (1,))

    return chain


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_on_the_records_of_new_primitives_is_all_that_passes_ask() -> None:
    own, known = _chain(_primitives()), _chain(_of_numpy())
    softsign, shift, total = _primitives()
    x = np.linspace(-1.0, 2.0, 12).reshape(3, 4)
    for transform in (
        lambda f: f,
        ft.jacfwd,
        ft.jacrev,
        lambda f: ft.hessian(lambda x: np.sum(f(x))),
        lambda f: ft.laplacian(lambda x: np.sum(f(x) ** 2)),
        lambda f: lambda x: ft.jet(f, (x,), ([np.cos(x), x, x],))[1],
    ):
        expected = transform(known)(x)
        assert_close(transform(own)(x), expected)
        assert_close(ft.jit(transform(own))(x), expected)
    batch = np.stack([x, -x], 1)
    assert_close(ft.vmap(own, in_axes=1)(batch), np.stack([known(x), known(-x)]))

    # sparsity: as exact as that of NumPy's
    first = [ft.sparsity_pattern(f, x).toarray() for f in (own, known)]
    np.testing.assert_array_equal(*first)
    assert not first[0].all()
    sums = [functools.partial(lambda f, x: np.sum(f(x)), f) for f in (own, known)]
    np.testing.assert_array_equal(*[ft.sparsity_pattern(f, x, order=2).toarray() for f in sums])

    # masks of selections go through movement and sums
    x_of_zero = np.array([0.0, 2.0])
    moved = ft.grad(lambda x: np.sum(np.where(x > 0, shift(shift(np.log(x), 0), 0), 0.0)))
    assert_close(moved(x_of_zero), np.array([0.0, 0.5]))
    summed = ft.grad(lambda x: np.where(x[0] > 0, total(np.log(x), (0,)), 0.0))
    assert_close(summed(x_of_zero), np.zeros(2))

    # costs
    def cost(f: Any) -> Any:
        found = ft.make_jaxpr(f)(x).cost()
        return found.flops, found.transcendentals

    assert cost(softsign) == (12, 0)
    assert cost(lambda x: shift(x, 0)) == (0, 0)
    assert cost(lambda x: total(x, (1,))) == (12, 0)

    # memory: results of the sum are written to, operands of the movement are not
    big = np.ones((200, 300))

    def reused(x: Any) -> Any:
        y = shift(x, 0)
        return total(y, (1,)) * 2.0 + x[:, 0], y

    program = ft.make_jaxpr(reused)(big)
    for _ in range(3):
        first, second = extend.evaluate(program, [big])
        assert_close(first, np.full(200, 601.0))
        assert_close(second, big)
        assert_close(big, np.ones((200, 300)))


PRIVATE = ("ir", "passes", "primitives", "control", "trace", "traces", "transforms", "staging")


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_pages_import_public_modules_only(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    lines = [line[4:].strip() for line in text.splitlines() if line.startswith((">>> ", "... "))]
    for line in lines:
        if line.startswith(("from functrans", "import functrans")):
            (node,) = ast.parse(line).body
            module = getattr(node, "module", None) or node.names[0].name  # type: ignore[attr-defined]  # an import
            assert [*module.split("."), ""][1] not in PRIVATE, line
