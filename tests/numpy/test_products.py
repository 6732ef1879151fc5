"""Products and einsum against NumPy's values and differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy_cases import Case, check

import functrans as ft
from cases import each
from functrans import numpy as fnp

R = np.random.default_rng(4)
V = R.standard_normal(3)
W = R.standard_normal(5)
X = R.standard_normal((3, 4))
Y = R.standard_normal((4, 5))
T = R.standard_normal((2, 3, 4))
S = R.standard_normal((3, 3))
Z = X + 1j * R.standard_normal((3, 4))

PRODUCTS = (
    Case("dot", np.dot, X, Y),
    Case("dot vectors", np.dot, V, V + 1),
    Case("dot scalar", np.dot, X, np.asarray(2.0)),
    Case("dot tensors", np.dot, T, np.stack([Y, Y])),
    Case("dot integers", lambda x: np.dot(x, np.arange(4)), X),
    Case("vdot", np.vdot, X, X + 1),
    Case("vdot complex", np.vdot, Z, Z * 2 + 1),
    Case("inner", np.inner, T, X),
    Case("inner scalar", np.inner, X, np.asarray(3.0)),
    Case("outer", np.outer, X, V),
    Case("tensordot", lambda x, y: np.tensordot(x, y, 1), T, Y),
    Case("tensordot 2", np.tensordot, T, X),
    Case("tensordot axes", lambda x, y: np.tensordot(x, y, axes=([0, 2], [1, 0])), T, Y[:, :2]),
    Case("tensordot 0", lambda x, y: np.tensordot(x, y, 0), V, X),
    Case("kron", np.kron, X, Y),
    Case("kron ranks", np.kron, V, X),
    Case("cross", np.cross, S, V),
    Case("cross axes", lambda x, y: np.cross(x, y, axisa=0, axisc=0), X, X.T),
    Case("cross axis", lambda x: np.cross(x, x[:, ::-1], axis=0), X),
    Case("convolve", np.convolve, V, W),
    Case("convolve same", lambda x, y: np.convolve(x, y, "same"), V, W),
    Case("convolve valid", lambda x, y: np.convolve(x, y, "valid"), W, V),
    Case("correlate", np.correlate, W, V),
    Case("correlate full", lambda x, y: np.correlate(x, y, "full"), V, W),
    Case("correlate complex", lambda x, y: np.correlate(x, y, "same"), Z[0], Z[1, :3]),
    Case("float32", np.dot, X.astype(np.float32), Y.astype(np.float32), is_smooth=False),
    Case("empty", np.dot, np.zeros((0, 4)), Y),
)

EINSUM = (
    ("ij->ji", (X,)),
    ("ij", (X,)),
    ("ji", (X,)),
    ("ij->", (X,)),
    ("ij->j", (X,)),
    ("ii", (S,)),
    ("ii->i", (S,)),
    ("iii->i", (R.standard_normal((3, 3, 3)),)),
    ("iij->j", (R.standard_normal((3, 3, 2)),)),
    ("...ij->...ji", (T,)),
    ("i...->...", (T,)),
    ("...", (T,)),
    ("ij,jk", (X, Y)),
    ("ij,jk->ik", (X, Y)),
    ("ij,jk->ki", (X, Y)),
    ("ij,jk->", (X, Y)),
    ("ij,jk->ijk", (X, Y)),
    ("i,j->ij", (V, W)),
    ("i,i->i", (V, V)),
    ("i,i", (V, V)),
    ("bij,jk->bik", (T, Y)),
    ("...ij,jk->...ik", (T, Y)),
    ("bij,bik->bjk", (T, T)),
    ("bij,bij->b", (T, T)),
    ("i...,i...", (X, X)),
    ("...,...", (X, X)),
    ("ij,->ij", (X, np.asarray(2.0))),
    ("ii,ij->j", (S, X)),
    ("ij,ij->i", (X, X[:1])),
    ("ij,jk->ik", (X[:, :1], Y)),
    ("ij,kj->ik", (X, X[:, :1])),
    ("ij,jk,kl->il", (X, Y, Y.T)),
    ("ij,jk,kl,l->i", (X, Y, Y.T, Y[:, 0])),
    ("i,i,i->i", (V, V, V)),
    ("i,j,k->kji", (V, W, V)),
    ("bij,jk,bi->bk", (T, Y, T[:, :, 0])),
    ("...i,...i->...", (T, X)),
    ("ab...,b...c->a...c", (T, R.standard_normal((3, 4, 2)))),
    ("Ab,bC->CA", (X, Y)),
    (" i j , j k -> i k", (X, Y)),
    (
        "ijk,ilm,njm,nlk,abc->",
        tuple(
            R.standard_normal(s) for s in ((2, 3, 4), (2, 5, 3), (2, 3, 3), (2, 5, 4), (2, 1, 2))
        ),
    ),
)


@pytest.mark.parametrize("case", PRODUCTS, ids=repr)
def test_product_agrees_with_numpy_and_differences(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    ("subscripts", "operands"), EINSUM, ids=lambda x: x if isinstance(x, str) else ""
)
def test_einsum_agrees_with_numpy_and_differences(subscripts: str, operands) -> None:
    check(Case(subscripts, lambda *xs: np.einsum(subscripts, *xs), *operands))


def test_einsum_with_lists_of_labels_options_and_paths() -> None:
    check(Case("lists", lambda x, y: np.einsum(x, [0, 1], y, [1, 2]), X, Y))
    check(Case("lists out", lambda x, y: np.einsum(x, [0, 5], y, [5, 2], [2, 0]), X, Y))
    check(Case("lists ...", lambda x: np.einsum(x, [..., 0, 1], [..., 1, 0]), T))
    check(
        Case("optimize", lambda x, y: np.einsum("ij,jk,lk->il", x, y, y.T @ y, optimize=True), X, Y)
    )
    path = ["einsum_path", (1, 2), (0, 1)]
    check(Case("path", lambda x, y: np.einsum("ij,jk,kl->il", x, y, y.T, optimize=path), X, Y))
    check(Case("dtype", lambda x: np.einsum("ij,jk", x, Y.astype(np.float32), dtype=float), X))
    shown = ft.vjp(lambda x: np.einsum_path("ij,jk,kl->il", x, Y, Y.T)[0] and x, X)
    np.testing.assert_array_equal(shown[0], X)


@pytest.mark.parametrize(
    ("subscripts", "operands", "message"),
    [
        ("ij,jk", (X, X), "extents"),
        ("ij", (T,), "subscripts"),
        ("ij->ik", (X,), "does not appear"),
        ("ij->ii", (X,), "more than once"),
        ("i1", (X,), "invalid subscript"),
        ("i.j", (X,), "ellipsis"),
        ("ij,jk->ik", (X,), "operands"),
        ("...i->i", (X,), "ellipsis"),
        ("ij->i->j", (X,), "one '->'"),
    ],
)
def test_einsum_errors(subscripts: str, operands, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ft.vjp(lambda *xs: np.einsum(subscripts, *xs), *operands)


@pytest.mark.parametrize("subscripts", ["ii->i", "ii", "ii,i->i", "jii->j"])
@pytest.mark.parametrize("shape", [(2, 3), (1, 3), (3, 1), (0, 3), (3, 0), (0, 1)])
def test_a_diagonal_needs_equal_extents(subscripts: str, shape) -> None:
    """NumPy refuses all but (0, n), whose "diagonal" it reads from foreign memory."""
    first = np.ones((2, *shape) if subscripts.startswith("j") else shape)
    operands = [first, np.ones(3)] if "," in subscripts else [first]
    for run in (ft.jit, lambda f: lambda *xs: ft.vjp(f, *xs)):
        with pytest.raises(ft.errors.ShapeError, match="no diagonal"):
            run(lambda *xs: np.einsum(subscripts, *xs))(*operands)


@each("subscripts", ["ij,jk->ki", "ij,k->k", "ij,ij->j", "i,jk->", "ii,j->j"], by="subscripts")
@each("second", ["?", "b", "H", "q", "e", "f", "d", "F", "D"])
@each("first", ["?", "b", "H", "q", "e", "f", "d", "F", "D"])
def test_einsum_sums_in_the_dtype_of_the_result(first: str, second: str, subscripts: str) -> None:
    """Also where an operand is summed alone: labels of its own, or of extent 1 elsewhere."""
    one = np.array([[100, 3, 90], [77, 1, 120], [99, 127, 5]]).astype(first)
    x = one[:, :1] if subscripts == "ij,jk->ki" else one if "ij" in subscripts else one[0]
    x = one if subscripts.startswith("ii") else x
    y = (np.array([[101, 2, 93], [44, 111, 12], [7, 88, 61]]) / 2).astype(second)
    y = y if len(subscripts.split(",")[1].split("-")[0]) == 2 else y[1]
    expected = np.einsum(subscripts, x, y)
    found = ft.jit(lambda x, y: np.einsum(subscripts, x, y))(x, y)
    assert found.dtype == expected.dtype
    kind = expected.dtype.kind
    rtol = {"e": 1e-2, "f": 1e-5, "F": 1e-5}.get(expected.dtype.char, 1e-12) if kind in "fc" else 0
    np.testing.assert_allclose(found, expected, rtol=rtol)


@st.composite
def random_einsum(draw):
    sizes = {label: draw(st.integers(1, 3)) for label in "abcd"}
    labels = st.lists(st.sampled_from("abcd"), min_size=0, max_size=3)
    terms = ["".join(draw(labels)) for _ in range(draw(st.integers(1, 3)))]
    used = sorted(set("".join(terms)))
    output = "".join(draw(st.permutations(used))[: draw(st.integers(0, len(used)))])
    arrays = [R.standard_normal([sizes[label] for label in term]) for term in terms]
    return ",".join(terms) + "->" + output, arrays


@settings(max_examples=60)
@given(random_einsum())
def test_random_einsum_agrees_with_numpy(drawn) -> None:
    subscripts, arrays = drawn
    case = Case(subscripts, lambda *xs: np.einsum(subscripts, *xs), *arrays)
    check(case)


def test_einsum_of_two_operands_is_one_product() -> None:
    names = [
        e.primitive.name for e in ft.make_jaxpr(lambda x: np.einsum("bij,jk->bik", x, Y))(T).eqns
    ]
    assert names == ["dot_general"]


OF_SVD = {
    "svd": np.linalg.svd,
    "pinv": np.linalg.pinv,
    "lstsq": lambda a: fnp.linalg.lstsq(a, a[0], rcond=1e-9)[0],
    "nuclear norm": lambda a: np.linalg.norm(a, "nuc"),
    "cond": np.linalg.cond,
}


@pytest.mark.parametrize("name", OF_SVD)
def test_singular_vectors_of_infinities_are_refused(name: str) -> None:
    """LAPACK would look for them without an end."""
    a = np.array([[np.inf, 0.0, 0.0], [0.0, 1.0, 2.0], [0.0, 2.0, 1.0]])
    for wrap in (lambda f: f, ft.jit):
        pushed = wrap(lambda a: ft.jvp(OF_SVD[name], (a,), (np.ones((3, 3)),))[1])
        with pytest.raises(np.linalg.LinAlgError, match="SVD did not converge"):
            pushed(a)


def test_cross_products_have_numpys_dtype() -> None:
    for left, right in (("i4", "?"), ("?", "u1"), ("f4", "i2"), ("u1", "F")):
        for shape in ((2,), (3,)):
            a, b = np.ones((0, 3), left), np.ones(shape, right)
            assert ft.make_jaxpr(np.cross)(a, b).out_avals[0].dtype == np.result_type(a, b)
