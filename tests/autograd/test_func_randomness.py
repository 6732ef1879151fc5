"""Random operations inside ``vmap`` and ``jit``; arguments and results of transforms of tensors."""

import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import functrans as ft
from functrans import pytrees as tree
from functrans.autograd.methods.filling import METHODS
from functrans.compat import torch

F, nn, dist = torch.nn.functional, torch.nn, torch.distributions
func = torch.func
HALVES = torch.full((4,), 0.5)

# operations of one example ``x`` of shape (4,), each with its plain call for a batch ``x``
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "rand": lambda x: torch.rand(x.shape),
    "randn": lambda x: torch.randn(x.shape),
    "randint": lambda x: torch.randint(0, 1000, x.shape),
    "rand_like": torch.rand_like,
    "randn_like": torch.randn_like,
    "randint_like": lambda x: torch.randint_like(x, 1000),
    "normal": lambda x: torch.normal(0.0, 1.0, x.shape),
    "bernoulli": lambda x: torch.bernoulli(HALVES.expand(x.shape)),
    "poisson": lambda x: torch.poisson(9 * HALVES.expand(x.shape)),
    "dropout": lambda x: F.dropout(x + 1),
    "alpha_dropout": lambda x: F.alpha_dropout(x + 1, training=True),
    "rrelu": lambda x: F.rrelu(x - 1, training=True),
    "gumbel_softmax": F.gumbel_softmax,
    "bernoulli of x": lambda x: torch.bernoulli(x + 0.5),
    "bernoulli_ of x": lambda x: x.clone().bernoulli_(x + 0.5),
    "normal of x": lambda x: torch.normal(x + 1, x + 2),
    "normal about x": lambda x: torch.normal(x + 1, 2.0),
    "normal of width x": lambda x: torch.normal(1.0, x + 2),
}
PARAMETERS: dict[str, tuple[float, ...]] = {"geometric_": (0.5,)}
IN_PLACE = [name for name in METHODS if name.endswith("_") and "seed" not in name]
FILLS = [name for name in IN_PLACE if name not in ("copy_", "fill_", "zero_")]
OPERATIONS.update(
    {
        name: lambda x, name=name: getattr(x.clone(), name)(*PARAMETERS.get(name, ()))  # type: ignore[misc]  # of this name
        for name in FILLS
    }
)
OF_SETS: dict[str, Callable[[Any], Any]] = {
    "randperm": lambda x: torch.randperm(9) + 0 * x.long().sum(),
    "multinomial of x": lambda x: torch.multinomial(x + 1, 4),
    "poisson of x": lambda x: torch.poisson(x + 9),
    "binomial": lambda x: torch.binomial(99 * torch.ones(9), HALVES[0]) + 0 * x.sum(),
    "binomial of x": lambda x: torch.binomial(x + 99, HALVES),
    "multinomial": lambda x: torch.multinomial(torch.ones(9), 9) + 0 * x.long().sum(),
}
EVERY = [*OPERATIONS, *OF_SETS]
OF_PARAMETERS = [name for name in EVERY if " x" in name]  # of the example


def _x() -> Any:
    return torch.zeros(3, 4)


def _drawn(name: str, randomness: str) -> Any:
    torch.manual_seed(0)
    operation = {**OPERATIONS, **OF_SETS}[name]
    return func.vmap(operation, randomness=randomness)(_x()).numpy()


@pytest.mark.parametrize("name", EVERY)
def test_random_operations_raise_by_default(name: str) -> None:
    state = torch.get_rng_state()
    for transform in (func.vmap, func.jacfwd, lambda f: func.vmap(func.grad(f))):
        with pytest.raises(RuntimeError, match="randomness error mode"):
            transform({**OPERATIONS, **OF_SETS}[name])(_x())
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", [name for name in EVERY if name not in OF_PARAMETERS])
def test_same_is_the_draw_of_one_example(name: str) -> None:
    torch.manual_seed(0)
    one = {**OPERATIONS, **OF_SETS}[name](_x()[0]).numpy()
    assert_array_equal(_drawn(name, "same"), np.stack([one] * 3))


@pytest.mark.parametrize("name", OF_PARAMETERS)
@pytest.mark.parametrize("inner", [lambda f: f, lambda f: lambda x: func.vjp(f, x)[0]])
def test_same_refuses_parameters_of_examples(name: str, inner: Any) -> None:
    state = torch.get_rng_state()
    draw = inner({**OPERATIONS, **OF_SETS}[name])
    with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
        func.vmap(draw, randomness="same")(_x())
    assert torch.equal(torch.get_rng_state(), state)
    shared = func.vmap(lambda _: draw(_x()[0]), randomness="same")(_x())
    assert len(np.unique(shared, axis=0)) == 1


@pytest.mark.parametrize("name", [*FILLS, "init"])
def test_different_numbers_fill_no_tensor_that_examples_share(name: str) -> None:
    def fill(x: Any, p: Any = None) -> Any:
        if name == "init":
            return torch.nn.init.uniform_(x)
        return getattr(x, name)(*(PARAMETERS.get(name, ()) if p is None else (p,)))

    outside = torch.zeros(4)
    for shared in (lambda x: outside, lambda x: torch.zeros(4), lambda x: outside[1:]):
        run = func.vmap(lambda x, f=shared: fill(f(x)), randomness="different")
        with pytest.raises(RuntimeError, match="inplace randomness on an unbatched tensor"):
            run(_x())
    assert outside.tolist() == [0] * 4
    for made_like in (lambda x: x.new_empty(4), torch.zeros_like, lambda x: x.new_zeros(8)[::2]):
        made = func.vmap(lambda x, f=made_like: fill(f(x)), randomness="different")(_x())
        assert len(np.unique(made, axis=0)) > 1
    torch.manual_seed(0)
    same = func.vmap(lambda x: fill(torch.zeros(4)), randomness="same")(_x())
    torch.manual_seed(0)
    assert_array_equal(same[2], fill(torch.zeros(4)))
    if name == "bernoulli_":
        with pytest.raises(RuntimeError, match="`other` in extra_args that has more elements"):
            func.vmap(lambda x: fill(torch.zeros(4), x), randomness="different")(_x())


@pytest.mark.parametrize("name", [*OPERATIONS, "randperm"])
def test_chunks_draw_on_their_own(name: str) -> None:
    torch.manual_seed(0)
    draw = {**OPERATIONS, **OF_SETS}[name]
    chunks = [func.vmap(draw, randomness="different")(x) for x in (_x()[:2], _x()[2:])]
    torch.manual_seed(0)
    found = func.vmap(draw, randomness="different", chunk_size=2)(_x())
    assert_array_equal(found, torch.cat(chunks))


def test_chunks_keep_axes_and_write_to_arguments() -> None:
    def f(x: Any, pair: Any) -> Any:
        x.mul_(2)
        generator = torch.Generator().manual_seed(3)
        return {"a": x + pair[0], "b": (pair[1], torch.rand(2, generator=generator))}

    x, y = torch.ones(2, 5), torch.arange(5.0)
    run = func.vmap(
        f, (1, (0, None)), {"a": 1, "b": (None, 0)}, randomness="different", chunk_size=3
    )
    found = run(x, (y, torch.tensor(7.0)))
    assert_array_equal(found["a"], 2 + y.numpy() + np.zeros((2, 1)))
    assert_array_equal(x, np.full((2, 5), 2.0))
    assert found["b"][0].item() == 7
    numbers = found["b"][1]
    assert_array_equal(numbers[:2], numbers[3:])  # each chunk makes a generator
    assert len(np.unique(numbers[:3])) == 6


WEIGHTS = torch.tensor([1.0, 2.0, 3.0, 4.0])
SEEDED = {  # the first numbers of seed 0 in PyTorch 2.13
    "bernoulli": (lambda: torch.bernoulli(torch.full((4,), 0.5)), [1, 0, 1, 1], 0.3074),
    "bernoulli_": (lambda: torch.zeros(4).bernoulli_(0.5), [0, 0, 1, 0], 0.4556),
    "dropout": (lambda: F.dropout(torch.ones(4), 0.3), [0, 0, 1.4286, 0], 0.4556),
    "exponential_": (
        lambda: torch.zeros(4).exponential_(),
        [3.5083, 1.2304, 0.6150, 2.5351],
        0.4556,
    ),
    "cauchy_": (lambda: torch.zeros(4).cauchy_(), [10.5977, 0.7648, -0.1283, 3.9331], 0.4556),
    "geometric_": (lambda: torch.zeros(4).geometric_(0.4), [1, 1, 2, 1], 0.4556),
    "dropout of all": (lambda: F.dropout(torch.ones(4), 1.0), [0] * 4, 0.4963),
    "log_normal_": (
        lambda: torch.zeros(5).log_normal_(),
        [59.2634, 1.5116, 0.0348, 8.4728, 0.3107],
        0.0223,
    ),
    "many of log_normal_": (
        lambda: torch.zeros(20).log_normal_(0.5, 0.25)[::5],
        [2.4236, 1.1622, 1.4203, 1.7001],
        0.5263,
    ),
    "multinomial": (lambda: torch.multinomial(WEIGHTS, 3), [2, 1, 3], 0.4556),
    "multinomial of rows": (
        lambda: torch.multinomial(torch.stack([WEIGHTS, WEIGHTS.flip(0)]), 2),
        [[2, 1], [2, 0]],
        0.6977,
    ),
    "one of multinomial": (lambda: torch.multinomial(WEIGHTS, 1, True), [2], 0.4556),
    "multinomial with replacement": (
        lambda: torch.multinomial(torch.stack([WEIGHTS, WEIGHTS.flip(0)]), 5, True),
        [[3, 3, 2, 3, 3], [2, 0, 0, 1, 0]],
        0.6816,
    ),
    "multinomial with zeros": (
        lambda: torch.multinomial(torch.tensor([0.0, 1.0, 0.0, 2.0]), 2),
        [1, 3],
        0.4556,
    ),
    "trunc_normal_": (
        lambda: torch.nn.init.trunc_normal_(torch.zeros(6)),
        [1.5410, -0.2934, -0.7193, 0.5684, -1.0845, -1.3986],
        0.4194,
    ),
    "trunc_normal_ of others": (
        lambda: torch.nn.init.trunc_normal_(torch.zeros(4), 1.0, 0.5, 0.0, 1.2),
        [0.4577, 0.8533, 0.7017, 1.0910],
        0.4194,
    ),
}


@pytest.mark.parametrize("name", SEEDED)
def test_seeds_mean_the_same_numbers(name: str) -> None:
    draw, numbers, following = SEEDED[name]
    torch.manual_seed(0)
    np.testing.assert_allclose(draw().numpy(), numbers, atol=1e-4)
    np.testing.assert_allclose(torch.rand(1).item(), following, atol=1e-4)


def test_binomial_counts_successes() -> None:
    torch.manual_seed(0)
    count, prob = torch.tensor([0.0, 10.0, 1000.0])[:, None], torch.tensor([0.0, 0.5, 1.0])
    found = torch.binomial(count.expand(3, 3), prob).numpy()
    assert_array_equal(found[:, ::2], [[0, 0], [0, 10], [0, 1000]])
    assert 400 < found[2, 1] < 600
    for bad, match in (
        ((torch.tensor([1]), prob), "floating-point dtypes for count"),
        ((count, prob.double()), "Found dtype Double but expected Float"),
        ((count, torch.tensor(float("nan"))), "NaN"),
    ):
        with pytest.raises((RuntimeError, ValueError), match=match):
            torch.binomial(*bad)
    with pytest.raises(TypeError, match="'count' must be Tensor"):
        torch.binomial(3.0, prob)


@pytest.mark.parametrize("name", EVERY)
def test_different_is_the_draw_of_the_batch(name: str) -> None:
    found = _drawn(name, "different")
    assert len(np.unique(found, axis=0)) > 1  # masks of dropout may coincide
    if name in OPERATIONS:
        torch.manual_seed(0)
        whole = OPERATIONS[name](_x()).numpy()
        if name != "gumbel_softmax":  # the rounding of the softmax
            assert_array_equal(found, whole)
    elif name == "randperm":
        assert_array_equal(np.sort(found, 1), np.stack([np.arange(9)] * 3))


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (torch.bernoulli, "p_in >= 0"),
        (lambda x: torch.normal(0.0, -x), "std >= 0.0, but found std -2"),
        (lambda x: torch.multinomial(-x, 2), "element < 0"),
        (lambda x: torch.multinomial(0 * x, 2), "sum of probabilities <= 0"),
        (lambda x: torch.multinomial(x, 9), "without replacement"),
    ],
)
def test_parameters_of_examples_are_checked(draw: Any, message: str) -> None:
    for run in (func.vmap(draw, randomness="different"), ft.jit(draw)):
        with pytest.raises(RuntimeError, match=message):
            run(torch.tensor([[2.0] * 4] * 3))


def test_parameters_of_examples_decide_what_is_drawn() -> None:
    x = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], requires_grad=True)
    found = func.vmap(lambda p: torch.bernoulli(p) * p, randomness="different")(x)
    assert found.tolist() == x.tolist()
    found.sum().backward()
    assert x.grad.tolist() == x.tolist()
    picked = func.vmap(lambda p: torch.multinomial(p, 2, replacement=True), randomness="different")
    assert picked(x.detach()).tolist() == [[1, 1], [0, 0]]
    jitted = ft.jit(lambda p: torch.normal(p, p * 0 + 1))
    first, second = jitted(x.detach()), jitted(x.detach())
    assert len(np.unique([first.numpy(), second.numpy()])) == 12


def test_modes_belong_to_levels() -> None:
    def nested(outer: str, inner: str) -> Any:
        torch.manual_seed(0)
        draw = func.vmap(lambda y: y + torch.rand(5), randomness=inner)
        return func.vmap(draw, randomness=outer)(torch.zeros(3, 2)[..., None]).numpy()

    assert len(np.unique(nested("same", "same").reshape(6, 5), axis=0)) == 1
    assert len(np.unique(nested("different", "different").reshape(6, 5), axis=0)) == 6
    rows = nested("different", "same")
    assert_array_equal(rows[:, 0], rows[:, 1])
    assert len(np.unique(rows[:, 0], axis=0)) == 3
    columns = nested("same", "different")
    assert_array_equal(columns[0], columns[1])
    for pair in (("error", "different"), ("same", "error")):
        with pytest.raises(RuntimeError, match="randomness error mode"):
            nested(*pair)
    assert torch.rand(2).shape == (2,)


def test_chunks_and_derivatives_of_different_numbers() -> None:
    x = torch.ones(4, requires_grad=True)
    found = func.vmap(lambda x: x * torch.rand(()), randomness="different", chunk_size=3)(x)
    found.sum().backward()
    assert_array_equal(x.grad.numpy(), found.detach().numpy())
    assert len(np.unique(found.detach().numpy())) == 4

    @ft.jit
    def step(x: Any) -> Any:
        return func.vmap(lambda x: x * torch.rand(()), randomness="different")(x)

    first, second = (step(torch.ones(4)).numpy() for _ in range(2))
    assert len(np.unique([first, second])) == 8


def test_evaluation_draws_nothing() -> None:
    x = _x() + 1
    for p, training in ((0.5, False), (0.0, True)):
        assert_array_equal(func.vmap(lambda x, p=p, t=training: F.dropout(x, p, t))(x), x)


def test_jacfwd_has_the_randomness_of_its_argument() -> None:
    x = torch.ones(3)
    torch.manual_seed(0)
    expected = torch.rand(3).numpy()
    torch.manual_seed(0)
    found = func.jacfwd(lambda x: x * torch.rand(3), randomness="same")(x)
    assert_array_equal(found, np.diag(expected))
    with pytest.raises(RuntimeError, match="randomness error mode"):
        func.hessian(lambda x: (x * torch.rand(3)).sum())(x)
    with pytest.raises(NotImplementedError, match="different"):
        func.jacfwd(lambda x: x, randomness="different")


# arguments and results ----------------------------------------------------------------------------


def test_keywords_of_vmap_are_passed_as_they_are() -> None:
    x, w = torch.ones(3, 3), torch.arange(3.0)
    kept: list[Any] = []

    def weighted(x: Any, *, w: Any, scale: float = 1.0) -> Any:
        kept.append(w)
        return (w * x).sum() * scale

    for in_dims in (0, (0,)):
        found = func.vmap(weighted, in_dims)(x, w=w, scale=2.0)
        assert found.tolist() == [6, 6, 6]
    assert all(given is w for given in kept)
    assert func.vmap(weighted, chunk_size=2)(x, w=torch.ones(1)).tolist() == [3, 3, 3]
    w.requires_grad_()
    func.vmap(weighted)(x, w=w).sum().backward()
    assert w.grad.tolist() == [3, 3, 3]


ONE = torch.ones(2)
WITH_AUX: dict[str, Callable[[Any], Any]] = {
    "grad": lambda aux: func.grad(lambda x: (x.sum(), aux), has_aux=True)(ONE),
    "vjp": lambda aux: func.vjp(lambda x: (x, aux), ONE, has_aux=True),
    "jvp": lambda aux: func.jvp(lambda x: (x, aux), (ONE,), (ONE,), has_aux=True),
    "jacrev": lambda aux: func.jacrev(lambda x: (x, aux), has_aux=True)(ONE),
    "jacfwd": lambda aux: func.jacfwd(lambda x: (x, aux), has_aux=True)(ONE),
}
OF_RESULT: dict[str, Callable[[Any], Any]] = {
    "vjp": lambda out: func.vjp(lambda x: out, ONE),
    "jvp": lambda out: func.jvp(lambda x: out, (ONE,), (ONE,)),
    "linearize": lambda out: func.linearize(lambda x: out, ONE),
    "jacrev": lambda out: func.jacrev(lambda x: out)(ONE),
    "jacfwd": lambda out: func.jacfwd(lambda x: out)(ONE),
}


@pytest.mark.parametrize("name", WITH_AUX)
def test_auxiliary_results_are_tensors(name: str) -> None:
    WITH_AUX[name]({"a": (ONE, [ONE])})
    for aux in (3, "a", (ONE, 1.0)):
        with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type"):
            WITH_AUX[name](aux)


@pytest.mark.parametrize("name", OF_RESULT)
@pytest.mark.parametrize("out", [None, (), [], {}], ids=repr)
def test_results_are_not_empty(name: str, out: Any) -> None:
    with pytest.raises(RuntimeError, match="non-empty output"):
        OF_RESULT[name](out)


def test_strict_jvp_refuses_results_that_depend_on_nothing() -> None:
    for f in (lambda x: ONE, lambda x: (x, ONE), lambda x: x.detach()):
        func.jvp(f, (ONE,), (ONE,))
        with pytest.raises(RuntimeError, match="independent of the inputs"):
            func.jvp(f, (ONE,), (ONE,), strict=True)
    out, tangent, aux = func.jvp(lambda x: (x * x, ONE), (ONE,), (ONE,), strict=True, has_aux=True)
    assert (out.tolist(), tangent.tolist(), aux.tolist()) == ([1, 1], [2, 2], [1, 1])

    def inner(x: Any) -> Any:  # it depends on the outer argument only
        return func.jvp(lambda y: x, (ONE,), (ONE,), strict=True)[1]

    with pytest.raises(RuntimeError, match="independent of the inputs"):
        func.jvp(inner, (ONE,), (ONE,))


def test_numbers_are_squeezed_of_the_axes_they_could_have() -> None:
    number = torch.tensor(1.0)
    for dim in (0, -1, (0,), ()):
        assert number.squeeze(dim).shape == ()
    for dim in (1, -2, (0, 1)):
        with pytest.raises(IndexError, match=r"range of \[-1, 0\]"):
            number.squeeze(dim)


@pytest.mark.parametrize("name", ["_standard_gamma", "_sample_dirichlet"])
def test_gamma_variables_are_drawn_in_each_mode(name: str) -> None:
    draw, alpha = getattr(torch, name), torch.full((4000, 2), 3.0)
    torch.manual_seed(0)
    np.testing.assert_allclose(draw(alpha).mean(0), 3.0 if name == "_standard_gamma" else 0.5, 0.05)
    x = torch.full((3, 2), 3.0)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        func.vmap(draw)(x)
    with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
        func.vmap(draw, randomness="same")(x)
    found = func.vmap(draw, randomness="different")(x)
    assert len({tuple(row) for row in found.tolist()}) == 3
    leaf = x.clone().requires_grad_()
    (draw(leaf)[:, 0]).sum().backward()
    assert (leaf.grad[:, 0] > 0).all()


# steps of ``jit``: each call draws anew, as without it --------------------------------------------


def _of_modules(make: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda x: [p.detach() for p in make().parameters()]


INITS = [
    name
    for name, function in inspect.getmembers(nn.init, inspect.isfunction)
    if name[0] != "_" and "generator" in inspect.signature(function).parameters
]
MODULES: dict[str, Callable[[], Any]] = {
    "Linear": lambda: nn.Linear(3, 2),
    "Bilinear": lambda: nn.Bilinear(2, 3, 2),
    "Conv2d": lambda: nn.Conv2d(2, 2, 2),
    "ConvTranspose1d": lambda: nn.ConvTranspose1d(2, 2, 2),
    "Embedding": lambda: nn.Embedding(4, 3, padding_idx=1),
    "EmbeddingBag": lambda: nn.EmbeddingBag(4, 3),
    "LSTM": lambda: nn.LSTM(3, 2),
    "GRUCell": lambda: nn.GRUCell(3, 2),
    "MultiheadAttention": lambda: nn.MultiheadAttention(4, 2),
    "Transformer": lambda: nn.Transformer(4, 2, 1, 1, 8),
    "PReLU": lambda: nn.PReLU(2),
    "BatchNorm1d": lambda: nn.BatchNorm1d(3),
    "deepcopy": lambda: copy.deepcopy(nn.Linear(3, 2)),
}
PARAMETERS_OF: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    name: make
    for names, make in {
        "Beta Cauchy FisherSnedecor Gamma Gumbel InverseGamma Kumaraswamy Laplace LogNormal "
        "LogisticNormal Normal Pareto VonMises Weibull": lambda p: (p, p),
        "Categorical Chi2 Dirichlet Exponential HalfCauchy HalfNormal OneHotCategorical "
        "OneHotCategoricalStraightThrough Poisson StudentT": lambda p: (p,),
        "Bernoulli ContinuousBernoulli": lambda p: (p / 2,),
        "Binomial NegativeBinomial": lambda p: (5, p / 2),
        "Geometric": lambda p: (p / 2, None, False),
        "Multinomial": lambda p: (5, p),
        "ExpRelaxedCategorical RelaxedBernoulli RelaxedOneHotCategorical": lambda p: (p[0, 0], p),
        "LogitRelaxedBernoulli": lambda p: (p[0, 0], p),
        "Uniform": lambda p: (0 * p, p),
        "GeneralizedPareto": lambda p: (p, p, p / 9),
        "LKJCholesky": lambda p: (3, p[0, 0]),
        "MultivariateNormal": lambda p: (p[0], torch.eye(4)),
        "LowRankMultivariateNormal": lambda p: (p[0], torch.ones(4, 1), p[0]),
        "Wishart": lambda p: (5 * p[0, 0], torch.eye(4)),
        "Independent": lambda p: (dist.Normal(p, p), 1),
        "MixtureSameFamily": lambda p: (dist.Categorical(p[0]), dist.Normal(p[0], p[0])),
        "TransformedDistribution": lambda p: (dist.Normal(p, p), [dist.ExpTransform()]),
    }.items()
    for name in names.split()
}


def _seeded(x: Any) -> Any:
    torch.manual_seed(7)
    return torch.rand(3), torch.rand(2, generator=torch.Generator())


def _forked(x: Any) -> Any:
    with torch.random.fork_rng():
        first = torch.rand(3)
    return first, torch.rand(3), torch.get_rng_state()


def _trained(x: Any) -> Any:
    layer = nn.Linear(4, 2)
    F.dropout(layer(x + 1)).sum().backward()
    return layer.weight.grad, layer.bias.detach()


def _reset(x: Any) -> Any:
    LAYER.reset_parameters()
    return LAYER(x + 1).detach()


def _checkpointed(x: Any, reentrant: bool) -> Any:
    leaf = (x + 1).detach().requires_grad_()
    run = torch.utils.checkpoint.checkpoint
    run(lambda y: F.dropout(y * y), leaf, use_reentrant=reentrant).sum().backward()
    return leaf.grad, torch.rand(2)


LAYER = nn.Linear(4, 2)
STEPS: dict[str, Callable[[Any], Any]] = {
    **OPERATIONS,
    **{name: lambda x, f=OF_SETS[name]: f(x[0]) for name in OF_SETS},  # type: ignore[misc]  # of this name
    **{f"init.{name}": lambda x, n=name: getattr(nn.init, n)(  # type: ignore[misc]
        torch.empty(3, 4), *((0.5,) if n == "sparse_" else ())) for name in INITS},
    **{f"nn.{name}": _of_modules(make) for name, make in MODULES.items()},
    **{f"dist.{name}": lambda x, n=name: getattr(dist, n)(*PARAMETERS_OF[n](x + 1)).sample((2,))  # type: ignore[misc]
       for name in PARAMETERS_OF},
    "multinomial with replacement": lambda x: torch.multinomial(x + 1, 5, True),
    "one of multinomial": lambda x: torch.multinomial(x + 1, 1),
    "feature_alpha_dropout": lambda x: F.feature_alpha_dropout(x + 1, training=True),
    "dropout2d": lambda x: F.dropout2d((x + 1)[..., None, None]),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None] + 1, None, 0.5),
    "seeded": _seeded, "forked": _forked, "trained": _trained, "reset": _reset,
    "checkpoint": lambda x: _checkpointed(x, False),
    "reentrant checkpoint": lambda x: _checkpointed(x, True),
    "jit": lambda x: (ft.jit(lambda y: nn.init.uniform_(torch.empty(3)))(x), torch.rand(3)),
    "grad": lambda x: func.grad(lambda y: nn.Linear(4, 2)(y + torch.rand(4)).sum())(x),
    "jacrev": lambda x: func.jacrev(lambda y: torch.rand(4) * y)(x[0]),
    **{f"{kind} of {name}": lambda x, f=operation, k=kind: func.vmap(f, randomness=k)(x)  # type: ignore[misc]
       for name, operation in {**OPERATIONS, **OF_SETS, "seed": _seeded}.items()
       for kind in ("different", "same") if kind == "different" or name not in OF_PARAMETERS},
    "vmap of vmap": lambda x: func.vmap(
        func.vmap(lambda y: torch.rand(2) + y, randomness="different"), randomness="same")(x),
    "chunks": lambda x: func.vmap(torch.rand_like, randomness="same", chunk_size=2)(x),
}  # fmt: skip


def _calls(step: Callable[[Any], Any]) -> tuple[list[Any], Any]:
    torch.manual_seed(0)
    found = [tree.leaves(step(_x())) for _ in range(4)]
    return found, torch.get_rng_state()


def test_distributions_are_all_drawn_from() -> None:
    abstract = {"Distribution", "ExponentialFamily"}
    names = {n for n, kind in inspect.getmembers(dist, inspect.isclass) if hasattr(kind, "sample")}
    assert names - abstract == set(PARAMETERS_OF)


@pytest.mark.parametrize("name", STEPS)
def test_jitted_steps_draw_in_each_call_what_they_draw_without(name: str) -> None:
    (expected, state), (found, own) = _calls(STEPS[name]), _calls(ft.jit(STEPS[name]))
    for one, other in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one.detach(), other.detach(), 1e-5, 1e-6)
    assert torch.equal(own, state)


@pytest.mark.parametrize(
    "ask",
    [
        torch.initial_seed,
        torch.seed,
        lambda: list(torch.utils.data.RandomSampler(range(9))),
        lambda: list(torch.utils.data.SubsetRandomSampler(range(9))),
        lambda: next(iter(torch.utils.data.DataLoader(torch.arange(9), shuffle=True))),
        lambda: torch.utils.data.random_split(range(9), [4, 5]),
        lambda: torch.quasirandom.SobolEngine(2, scramble=True),
    ],
)
def test_jitted_steps_refuse_random_numbers_of_python(ask: Callable[[], Any]) -> None:
    state = torch.get_rng_state()
    with pytest.raises(ft.errors.UnsupportedOperationError, match="would be the same in each call"):
        ft.jit(lambda x: (ask(), x)[1])(_x())
    assert torch.equal(torch.get_rng_state(), state)


# memory: numbers are placed in its order ----------------------------------------------------------

PERMUTED = ((2, 0, 1), (1, 0, 2), (2, 1, 0))
BY_MEMORY: dict[str, Callable[[Any], Any]] = {
    "rand_like": torch.rand_like,
    "randint_like": lambda x: torch.randint_like(x, 1000),
    "dropout": lambda x: F.dropout(x + 1),
    "dropout of product": lambda x: F.dropout(2 * x + x + 1),
    "alpha_dropout": lambda x: F.alpha_dropout(x + 1, training=True),
    **{name: OPERATIONS[name] for name in FILLS if name != "normal_"},
    "bernoulli_ of halves": lambda x: x.clone().bernoulli_(torch.full(x.shape, 0.5)),
    "init.uniform_": lambda x: nn.init.uniform_(x.clone()),
}
IN_ROWS: dict[str, Callable[[Any], Any]] = {
    "bernoulli": lambda x: torch.bernoulli(x + 0.5),
    "normal": lambda x: torch.normal(x, 1.0),
    "dropout of softmax": lambda x: F.dropout(x.softmax(-1)),
    "dropout of rows": lambda x: F.dropout(x.contiguous() + 1),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x, dim=-1),
    "rrelu": lambda x: F.rrelu(x - 1, training=True),
}


def _drawn_from_seed(f: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    torch.manual_seed(0)
    return f(x), torch.rand(1)


@pytest.mark.parametrize("axes", PERMUTED)
@pytest.mark.parametrize("name", [*BY_MEMORY, *IN_ROWS])
def test_numbers_are_placed_as_pytorch_fills_memory(name: str, axes: tuple[int, ...]) -> None:
    draw = {**BY_MEMORY, **IN_ROWS}[name]
    dense = torch.zeros(2, 3, 4)
    permuted = dense.permute(axes)
    found, after = _drawn_from_seed(draw, permuted)
    plain, like = _drawn_from_seed(draw, dense if name in BY_MEMORY else permuted.contiguous())
    assert_array_equal(found, plain.permute(axes) if name in BY_MEMORY else plain)
    assert_array_equal(after, like)
    if name in BY_MEMORY:
        assert found.stride() == permuted.stride()
    for step, x in ((draw, permuted), (lambda x: draw(x.permute(axes)), dense)):
        jitted = _drawn_from_seed(ft.jit(step), x)
        np.testing.assert_allclose(jitted[0], found, 1e-6)
        assert_array_equal(jitted[1], after)


@pytest.mark.parametrize("fill", [torch.randn_like, lambda x: nn.init.normal_(torch.empty_like(x))])
def test_normal_numbers_of_other_memory_come_one_by_one(fill: Callable[[Any], Any]) -> None:
    found, after = _drawn_from_seed(fill, torch.zeros(6, 4).t())
    ones, like = _drawn_from_seed(lambda _: [torch.randn(1).item() for _ in range(24)], None)
    np.testing.assert_allclose(found.t().reshape(-1), ones, 1e-6)
    assert_array_equal(after, like)


@pytest.mark.parametrize(
    ("part", "strides"),
    [  # PyTorch's
        (lambda: torch.ones(6, 8).t()[::2], (1, 4)),
        (lambda: torch.ones(12, 4).t()[:, ::2], (1, 4)),
        (lambda: torch.ones(8, 6)[::2], (6, 1)),
        (lambda: torch.ones(1, 6).expand(4, 6), (6, 1)),
        (lambda: torch.ones(4, 1).expand(4, 6), (6, 1)),
        (lambda: torch.ones(6, 1, 4).permute(2, 1, 0).expand(4, 3, 6), (1, 4, 12)),
        (lambda: torch.ones(3, 1, 2).permute(2, 1, 0), (1, 2, 2)),
    ],
)
def test_tensors_like_others_have_their_order_of_axes(part: Any, strides: Any) -> None:
    x = part()
    for name in ("empty", "zeros", "ones", "rand", "randn"):
        assert getattr(torch, f"{name}_like")(x).stride() == strides
        assert getattr(torch, f"{name}_like")(x, dtype=torch.float64).stride() == strides
    assert torch.full_like(x, 2).stride() == torch.randint_like(x, 9).stride() == strides
    assert F.dropout(x).stride() == strides


def test_numbers_of_a_seed_are_pytorchs() -> None:
    shares = torch.rand(6, 4, generator=torch.Generator().manual_seed(0)).t()
    torch.manual_seed(0)
    expected = [[5, 4, 2], [4, 2, 5], [5, 1, 2], [1, 2, 5]]
    assert torch.multinomial(shares, 3).tolist() == expected
    torch.manual_seed(0)
    assert ft.jit(lambda x: torch.multinomial(x, 3))(shares).tolist() == expected
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.1, batch_first=True)
    np.testing.assert_allclose(
        layer(torch.ones(2, 3, 4)).detach()[0, 0], [-1.467053, 0.720915, -0.351369, 1.097507], 1e-5
    )
    torch.manual_seed(0)
    layer = nn.TransformerDecoderLayer(4, 2, 8, 0.1, batch_first=True)
    np.testing.assert_allclose(
        layer(torch.ones(2, 3, 4), torch.ones(2, 5, 4)).detach()[0, 1, :2],
        [-1.646093, 0.303281],
        1e-5,
    )
    for fill, first in (
        (nn.init.orthogonal_, [0.5222306, -0.0994406, -0.7383734]),
        (lambda x: nn.init.sparse_(x, 0.3), [0.0154100, -0.0029343, -0.0217879]),
    ):
        torch.manual_seed(0)
        np.testing.assert_allclose(fill(torch.empty(3, 5))[0, :3], first, 1e-5)
