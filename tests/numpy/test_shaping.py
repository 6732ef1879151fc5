"""Shape functions, joining, splitting, padding, creation; views and copies."""

import numpy as np
import pytest
from numpy_cases import Case, check

import functrans as ft
import functrans.numpy as fnp

R = np.random.default_rng(2)
X = R.standard_normal((3, 4))
T = R.standard_normal((2, 3, 4))
V = R.standard_normal(6)
O = R.standard_normal((3, 1, 4))  # noqa: E741  # has an axis of extent 1
Z = X + 1j * R.standard_normal((3, 4))

SHAPES = (
    Case("reshape", lambda x: np.reshape(x, (2, -1)), X),
    Case("reshape F", lambda x: np.reshape(x, (6, 2), order="F"), X),
    Case("reshape A", lambda x: np.reshape(x.T, (6, 2), order="A"), X, is_staged=False),
    Case("ravel", np.ravel, X),
    Case("ravel F", lambda x: np.ravel(x, order="F"), X),
    Case("ravel K", lambda x: np.ravel(x.T, order="K"), X, is_staged=False),
    Case("transpose", np.transpose, T),
    Case("transpose axes", lambda x: np.transpose(x, (1, 2, 0)), T),
    Case("permute_dims", lambda x: np.permute_dims(x, (-1, 0, 1)), T),
    Case("matrix_transpose", np.matrix_transpose, T),
    Case("swapaxes", lambda x: np.swapaxes(x, 0, -1), T),
    Case("moveaxis", lambda x: np.moveaxis(x, (0, 1), (-1, 0)), T),
    Case("rollaxis", lambda x: (np.rollaxis(x, 2), np.rollaxis(x, 0, 3), np.rollaxis(x, 1, -1)), T),
    Case("squeeze", np.squeeze, O),
    Case("squeeze axis", lambda x: np.squeeze(x, axis=-2), O),
    Case("expand_dims", lambda x: np.expand_dims(x, (0, -1)), X),
    Case("atleast_1d", lambda x, y: np.atleast_1d(x, y), np.asarray(1.5), V),
    Case("atleast_2d", np.atleast_2d, V),
    Case("atleast_3d", lambda x, y, z: np.atleast_3d(x, y, z), np.asarray(2.0), V, X),
    Case("broadcast_to", lambda x: np.broadcast_to(x, (2, 3, 4)), X),
    Case("broadcast_arrays", lambda x, y: np.broadcast_arrays(x, y), X, T),
    Case("flip", np.flip, T),
    Case("flip axes", lambda x: np.flip(x, (0, 2)), T),
    Case("fliplr", np.fliplr, X),
    Case("flipud", np.flipud, X),
    *(Case(f"rot90 {k}", lambda x, k=k: np.rot90(x, k, (2, 0)), T) for k in range(-1, 4)),
    Case("roll", lambda x: np.roll(x, 2), X),
    Case("roll axes", lambda x: np.roll(x, (1, -2), axis=(0, 1)), X),
    Case("resize", lambda x: np.resize(x, (2, 5)), V),
    Case("sliding_window_view", lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 3)), X),
    Case("sliding axis", lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=1), T),
)
JOINS = (
    Case("concatenate", lambda x, y: np.concatenate([x, y[0], x]), X, T),
    Case("concatenate axis", lambda x: np.concatenate((x, 2 * x), axis=-1), T),
    Case("concatenate flat", lambda x, y: np.concatenate((x, y), axis=None), X, V),
    Case(
        "concatenate dtype",
        lambda x: np.concatenate((x, [1]), dtype=np.complex128),
        V,
        is_smooth=False,
    ),
    Case("concatenate mixed", lambda x: np.concatenate((x, [1, 2], np.float32([3]))), V),
    Case("stack", lambda x, y: np.stack([x, y, x], axis=1), X, X + 1),
    Case("stack scalars", lambda x: np.stack([x[0], 2.0, x[1]]), V),
    Case("vstack", lambda x, y: np.vstack((x, y[0])), X, X),
    Case("hstack", lambda x, y: np.hstack((x, y)), V, V),
    Case("hstack 2-d", lambda x, y: np.hstack((x, y)), X, X),
    Case("dstack", lambda x, y: np.dstack((x, y)), X, X),
    Case("column_stack", lambda x, y: np.column_stack((x, y, x)), V[:3], X),
    Case("append", lambda x: np.append(x, x[0]), X),
    Case("append axis", lambda x, y: np.append(x, y, axis=0), X, X),
    Case("block", lambda x, y: np.block([[x, y], [2 * y, x]]), X, X),
    Case("block ranks", lambda x: np.block([x, 1.0, x[:2]]), V),
    Case("block deep", lambda x: np.block([[[x]], [[x]]]), X),
    Case("array_split", lambda x: np.array_split(x, 4), V),
    Case("array_split at", lambda x: np.array_split(x, [1, 3], axis=1), X),
    Case("array_split falling", lambda x: np.array_split(x, [4, 2, 9]), V),
    Case("split", lambda x: np.split(x, 3), V),
    Case("vsplit", lambda x: np.vsplit(x, [1]), X),
    Case("hsplit", lambda x: np.hsplit(x, 2), X),
    Case("dsplit", lambda x: np.dsplit(x, 2), T),
    Case("unstack", lambda x: np.unstack(x, axis=1), T),
    Case("tile", lambda x: np.tile(x, 2), X),
    Case("tile ranks", lambda x: np.tile(x, (2, 1, 3)), X),
    Case("tile less", lambda x: np.tile(x, (2,)), T),
    Case("repeat", lambda x: np.repeat(x, 3), X),
    Case("repeat axis", lambda x: np.repeat(x, 2, axis=1), X),
    Case("repeat counts", lambda x: np.repeat(x, [2, 0, 1], axis=0), X),
    Case("delete", lambda x: np.delete(x, [0, 2]), V),
    Case("delete axis", lambda x: np.delete(x, slice(1, 3), axis=1), X),
    Case("insert", lambda x: np.insert(x, 2, x[0]), V),
    Case("insert many", lambda x: np.insert(x, [3, 1, 1], x[:3]), V),
    Case("insert axis", lambda x, v: np.insert(x, 1, v, axis=1), X, V[:3]),
    Case(
        "insert list axis", lambda x, v: np.insert(x, [1], v, axis=1), X, R.standard_normal((3, 2))
    ),
    Case(
        "insert several axis",
        lambda x, v: np.insert(x, [1, 4], v, axis=1),
        X,
        R.standard_normal((3, 2)),
    ),
    Case("insert row of scalars", lambda x: np.insert(x, 1, 5.0, axis=0), X),
    Case("insert scalar many", lambda x: np.insert(x, 2, [7.0, 8.0]), V),
    Case("insert slice", lambda x: np.insert(x, slice(1, 3), 2.0), V),
    Case(
        "trim_zeros",
        lambda x: np.trim_zeros(np.concatenate(([0.0], x, [0.0, 0.0]))),
        V,
        is_staged=False,
    ),
)
PADS = (
    Case("pad", lambda x: np.pad(x, 2), X),
    Case(
        "pad value", lambda x, v: np.pad(x, ((1, 2), (0, 3)), constant_values=v), X, np.asarray(2.0)
    ),
    Case("pad values", lambda x: np.pad(x, 1, constant_values=((1.0, 2.0), (3.0, 4.0))), X),
    Case("pad dict", lambda x: np.pad(x, {-1: (1, 2)}), X),
    *(
        Case(f"pad {mode}", lambda x, mode=mode: np.pad(x, ((1, 2), (3, 1)), mode), X)
        for mode in (
            "edge",
            "linear_ramp",
            "maximum",
            "mean",
            "median",
            "minimum",
            "reflect",
            "symmetric",
            "wrap",
        )
    ),
    *(
        Case(f"pad long {mode}", lambda x, mode=mode: np.pad(x, (14, 17), mode), V)
        for mode in ("reflect", "symmetric", "wrap")
    ),
    *(
        Case(
            f"pad odd {mode}", lambda x, mode=mode: np.pad(x, (13, 16), mode, reflect_type="odd"), V
        )
        for mode in ("reflect", "symmetric")
    ),
    Case("pad odd 1", lambda x: np.pad(x, 2, "reflect", reflect_type="odd"), V[:1]),
    Case("pad ramp", lambda x, v: np.pad(x, 3, "linear_ramp", end_values=v), V, np.asarray(5.0)),
    Case("pad stat", lambda x: np.pad(x, 2, "mean", stat_length=((1, 2), (3, 2))), X),
    Case("pad function", lambda x: np.pad(x, 1, _margins, padder=9.0), X),
)


def _margins(vector, widths, axis, options):
    vector[: widths[0]] = options["padder"] * (axis + 1)
    vector[-widths[1] :] = 2.0 * vector[widths[0]]


CREATION = (
    Case("array", lambda x: np.array(x, like=x), X),
    Case("array list", lambda x: np.array([x[0], [1.0, 2.0, 3.0, 4.0]], like=x), X),
    Case("asarray", lambda x: np.asarray(x, like=x) * 1.0, X),
    Case("full", lambda x: np.full((2, 3), x[1], like=x), V),
    Case("full_like", lambda x: np.full_like(x, 2.0) * x, V),
    Case("zeros_like", lambda x: np.zeros_like(x) + x, V),
    Case("ones_like", lambda x: np.ones_like(x, shape=(2, 6)) * x, V),
    Case("zeros", lambda x: np.zeros(6, like=x) + x, V),
    Case("eye", lambda x: np.eye(3, like=x) @ x, X),
    Case("linspace", lambda a, b: np.linspace(a, b, 7), np.asarray(0.3), np.asarray(2.0)),
    Case("linspace axis", lambda a: np.linspace(a, 2 * a, 5, endpoint=False, axis=1), X),
    Case("linspace step", lambda a: np.linspace(a, 3.0, 4, retstep=True), np.asarray(0.5)),
    Case("logspace", lambda a, b: np.logspace(a, b, 5, base=3.0), np.asarray(0.3), np.asarray(2.0)),
    Case("geomspace", lambda a, b: np.geomspace(a, b, 5), np.asarray(0.3), np.asarray(7.0)),
    Case("meshgrid", lambda x, y: np.meshgrid(x, y), V, X[0]),
    Case("meshgrid ij", lambda x, y: np.meshgrid(x, y, y, indexing="ij"), V, X[0]),
    Case("meshgrid sparse", lambda x, y: np.meshgrid(x, y, sparse=True), V, X[0]),
    Case("vander", lambda x: np.vander(x, 4), V),
    Case("vander up", lambda x: np.vander(x, increasing=True), V),
    Case("copy", np.copy, X),
    Case("astype", lambda x: np.astype(x, np.complex128), X),
)


@pytest.mark.parametrize("case", [*SHAPES, *JOINS, *PADS, *CREATION], ids=repr)
def test_agrees_with_numpy_and_differences(case: Case) -> None:
    check(case)


def test_functrans_array_of_lists() -> None:
    def f(x):
        return fnp.array([[x, 2.0, x * x], [1, x, 3]]).sum() + fnp.asarray((x, x)).sum()

    np.testing.assert_allclose(ft.grad(f)(3.0), 2 + 2 * 3.0 + 2)
    with pytest.raises(ValueError, match="different shapes"):
        ft.grad(lambda x: fnp.array([[x, x], [x]]).sum())(1.0)
    assert fnp.array([np.float32(1), 2.0]).dtype == np.float64
    assert ft.make_jaxpr(lambda x: fnp.array([x, 1]))(np.float32(1)).out_avals[0].dtype == float


def test_array_of_many_scalars_is_one_equation_and_linear() -> None:
    n = 20_000
    jaxpr = ft.make_jaxpr(lambda x: fnp.array([x[0]] * n))(np.ones(2))
    assert len(jaxpr.eqns) <= 3
    g = ft.grad(lambda x: fnp.array([x] * n).sum())(1.0)
    np.testing.assert_allclose(g, n)


def test_functrans_arange_with_traced_bounds() -> None:
    g = ft.grad(lambda x: fnp.arange(x, 3.0, 0.5).sum())(0.7)
    np.testing.assert_allclose(g, 5.0)
    with pytest.raises(ft.errors.ConcretizationError):
        ft.make_jaxpr(lambda x: fnp.arange(x))(3)


def test_index_tricks_of_traced_values() -> None:
    def f(x):
        return (fnp.r_[x, 2.0, x[:2] * 2].sum() + fnp.c_[x, x * x][2]).sum()

    x = np.array([1.0, 2.0, 3.0])
    expected = lambda x: (np.r_[x, 2.0, x[:2] * 2].sum() + np.c_[x, x * x][2]).sum()  # noqa: E731  # the expression is what matters
    np.testing.assert_allclose(ft.vjp(f, x)[0], expected(x))
    np.testing.assert_array_equal(fnp.r_[1:3, 0], np.r_[1:3, 0])


# views ------------------------------------------------------------------------------------------


def mutate(view, write=lambda y: y.__setitem__(0, 5.0)):
    """A function that makes a view of its array, writes to one and returns both."""

    def f(x):
        x = x * 1.0
        y = view(x)
        write(y)
        x[..., -1] *= 2.0
        return x, y

    return f


VIEWS = (
    Case("view transpose", mutate(lambda x: x.T), X),
    Case("view swapaxes", mutate(lambda x: np.swapaxes(x, 0, 2)), T),
    Case("view moveaxis", mutate(lambda x: np.moveaxis(x, 0, -1)), T),
    Case("view reshape split", mutate(lambda x: x.reshape(2, 3)), V),
    Case("view squeeze", mutate(np.squeeze), O),
    Case("view expand_dims", mutate(lambda x: np.expand_dims(x, 1)), X),
    Case("view flip", mutate(np.flip), X),
    Case("view rot90", mutate(np.rot90), X),
    Case("view split", mutate(lambda x: np.split(x, 2, axis=1)[0]), X),
    Case("view unstack", mutate(lambda x: np.unstack(x, axis=1)[-1]), X),
    Case("view of view", mutate(lambda x: x.T[1:].T[::-1]), X),
    Case("view atleast_2d", mutate(np.atleast_2d), V),
    Case("view real", mutate(lambda x: x.real), Z),
    Case("view imag", mutate(lambda x: x.imag), Z),
    Case("view einsum", mutate(lambda x: np.einsum("ijk->kji", x)), T),
    Case(
        "view einsum diagonal", mutate(lambda x: np.einsum("ii->i", x)), R.standard_normal((3, 3))
    ),
    Case("view reshape same", mutate(lambda x: x.reshape(3, 4)), X),
    Case("copy reshape of transpose", mutate(lambda x: x.T.reshape(-1)), X, is_staged=False),
    Case("view reshape merge", mutate(lambda x: x.reshape(-1)), X, is_staged=False),
    Case("view ravel", mutate(np.ravel), X, is_staged=False),
    Case("copy ravel of strided", mutate(lambda x: x[::2].ravel()), V, is_staged=False),
    Case("copy flatten", mutate(lambda x: x.flatten()), X),
    Case("copy copy", mutate(lambda x: x.copy()), X),
    Case("copy astype", mutate(lambda x: x.astype(float)), X),
    Case("copy array", mutate(lambda x: np.array(x, like=x)), X),
    Case("copy sum", mutate(lambda x: np.sum(x, axis=())), X),
    Case("copy positive", mutate(np.positive), X),
    Case("copy plus", mutate(lambda x: +x), X),
    Case("copy conjugate", mutate(np.conjugate), X),
    Case("copy roll", mutate(lambda x: np.roll(x, 0)), V),
    Case("copy clip", mutate(lambda x: np.clip(x, None, None)), V),
    Case("copy tile", mutate(lambda x: np.tile(x, 1)), V),
    Case("copy concatenate", mutate(lambda x: np.concatenate([x])), V),
    Case("copy broadcast", mutate(lambda x: np.where(True, x, 0)), V),
    Case("same asarray", mutate(lambda x: np.asarray(x, like=x)), V),
)


@pytest.mark.parametrize("case", VIEWS, ids=repr)
def test_writes_reach_what_they_reach_in_numpy(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: np.broadcast_to(x, (2, 3, 4)),
        np.diagonal,
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=0),
    ],
    ids=["broadcast_to", "diagonal", "sliding_window_view"],
)
def test_read_only_views_follow_their_base_and_refuse_writes(view) -> None:
    def f(x):
        x = x * 1.0
        y = view(x)
        x[0] = 7.0
        return y

    check(Case("read", f, X))
    with pytest.raises(ValueError, match="read-only"):
        ft.vjp(mutate(view), X)


def test_staged_write_through_uncertain_reshape_raises() -> None:
    for f in (mutate(lambda x: x.reshape(-1)), mutate(np.ravel), mutate(lambda x: x.reshape(12))):
        with pytest.raises(ft.errors.UnsupportedOperationError, match="layout"):
            ft.make_jaxpr(f)(X)
    jaxpr = ft.make_jaxpr(lambda x: x.reshape(-1) * 2)(X)  # reading is fine
    assert len(jaxpr.eqns) == 2
    with pytest.raises(ft.errors.UnsupportedOperationError, match="layout"):
        ft.make_jaxpr(lambda x: np.ravel(x, order="K"))(X)


def test_in_place_operators_after_identity_reshapes_do_not_leak() -> None:
    def f(x):
        y = x.flatten()
        y += 1.0
        return x, y

    check(Case("flatten", f, V))


def test_argument_is_never_changed() -> None:
    x = V.copy()

    def f(x):
        x[0] = 5.0
        x.sort()
        x.reshape(2, 3)[0] = 1.0
        return x.sum()

    ft.grad(f)(x)
    np.testing.assert_array_equal(x, V)


LIKE = {
    "zeros": lambda x: fnp.zeros(3, like=x),
    "np.zeros": lambda x: np.zeros(3, like=x),
    "ones": lambda x: fnp.ones(3, like=x) - 1,
    "empty": lambda x: fnp.empty(3, like=x) * 0,
    "full": lambda x: fnp.full(3, 0.0, like=x),
    "array": lambda x: fnp.array([0.0, 0.0, 0.0], like=x),
    "np.array": lambda x: np.array([0.0, 0.0, 0.0], like=x),
    "asarray": lambda x: fnp.asarray(np.zeros(3), like=x),
    "arange": lambda x: fnp.arange(3.0, like=x) * 0,
    "zeros_like": lambda x: np.zeros_like(x, shape=3),
    "empty_like": lambda x: np.empty_like(np.broadcast_to(x, 3)),
}


@pytest.mark.parametrize("name", LIKE)
def test_new_array_like_a_traced_one_can_be_written_to(name: str) -> None:
    def f(x):
        y = LIKE[name](x)
        for i in range(3):
            y[i] = x * i
        return y

    for out in (ft.jacobian(f)(2.0), ft.jacfwd(f)(2.0), ft.vmap(f)(np.ones(1))[0]):
        np.testing.assert_allclose(out, [0.0, 1.0, 2.0])


def test_buffer_like_an_outer_array_is_filled_in_an_inner_function() -> None:
    def outer(x):
        def inner(y):
            buffer = np.zeros_like(x)
            buffer[0] = y * x[1]
            return buffer.sum()

        return ft.grad(inner)(2.0) * x[0]

    np.testing.assert_allclose(ft.grad(outer)(np.array([3.0, 5.0])), [5.0, 3.0])


def test_copy_of_an_outer_array_belongs_to_the_inner_function() -> None:
    matrix = np.eye(2)

    def outer(a):
        def inner(t):
            b = a.copy()
            b[0, 0] = t * b[1, 1]
            return np.sum(b * b)

        return ft.vmap(ft.grad(inner))(np.array([2.0, 3.0])).sum() + ft.grad(inner)(4.0)

    np.testing.assert_allclose(ft.grad(outer)(matrix), [[0, 0], [0, 4 * 9.0]])
