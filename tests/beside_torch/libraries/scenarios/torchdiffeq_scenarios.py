"""Ordinary differential equations by ``torchdiffeq``: solutions, their gradients, and events.

Every method, through its steps and by the adjoint equation, for tensors and tuples of them, in both
directions of time; then the options of steps and norms, callbacks, and what is refused.
"""

import math
import warnings

import numpy as np
import pytest
import torch
import torchdiffeq
from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_event

FIXED = [
    "euler",
    "midpoint",
    "heun2",
    "heun3",
    "rk4",
    "explicit_adams",
    "implicit_adams",
    "fixed_adams",
]
ADAPTIVE = ["dopri8", "dopri5", "bosh3", "fehlberg2", "adaptive_heun"]
WAYS = {"steps": odeint, "adjoint": odeint_adjoint}
LOOSE = {"rtol": 1e-3, "atol": 1e-4}

each_method = pytest.mark.parametrize("method", [*FIXED, *ADAPTIVE])
each_adaptive = pytest.mark.parametrize("method", ADAPTIVE)
each_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture(autouse=True)
def _float64():
    """Numbers are float64 unless a test says another type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def drawn(*shape, seed=0):
    """Normal numbers by NumPy's generator."""
    return torch.tensor(np.random.default_rng([seed, *shape]).normal(size=shape))


class Swirl(nn.Module):
    """A turning flow that depends on time; ``log`` is what callbacks were told."""

    def __init__(self, dtype=torch.float64):
        super().__init__()
        matrix = torch.tensor([[-0.3, 1.2], [-0.9, -0.1]]).to(dtype)
        self.matrix = nn.Parameter(matrix * (1 + 0.2j) if dtype.is_complex else matrix)
        self.push = nn.Parameter(torch.tensor([0.4, -0.2]).to(dtype))
        self.log = []

    def forward(self, t, y):
        """The derivative of the state."""
        return torch.sin(y) @ self.matrix.T + self.push * torch.cos(2 * t)


class Coupled(nn.Module):
    """A state of three tensors of different shapes."""

    def __init__(self):
        super().__init__()
        self.rate = nn.Parameter(torch.tensor(0.7))
        self.matrix = nn.Parameter(drawn(2, 3, seed=1) * 0.5)

    def forward(self, t, state):
        """Each tensor moves by the others."""
        level, vector, table = state
        return (
            -self.rate * level + vector.sum() * t,
            torch.tanh(self.matrix @ table.sum(0)) - 0.1 * vector,
            torch.outer(vector, self.matrix[0]) * level.exp() * 0.1,
        )


class Ball(nn.Module):
    """A ball that falls: height and speed."""

    def __init__(self):
        super().__init__()
        self.gravity = nn.Parameter(torch.tensor(9.0))

    def forward(self, t, state):
        """Gravity alone acts."""
        height, speed = state
        return speed, -self.gravity * torch.ones_like(height)


def start_of(dtype=torch.float64):
    """Two states of the swirl."""
    return torch.tensor([[1.0, 0.5], [-0.4, 0.8]]).to(dtype).requires_grad_()


def compared_gradients(agree, solution, wanted, **tolerances):
    """The gradients of a sum with drawn weights."""
    weights = drawn(*solution.shape, seed=9)
    total = (solution.abs() ** 2 if solution.is_complex() else solution) * weights
    found = torch.autograd.grad(total.sum(), wanted)
    agree("gradients", found, **tolerances)


@each_way
@each_method
def test_gradients(agree, method, way):
    """With respect to the start, the times and the parameters."""
    func, start = Swirl(), start_of()
    times = torch.tensor([0.0, 0.1, 0.25, 0.5, 0.6, 0.8, 1.0], requires_grad=True)
    solution = WAYS[way](func, start, times, method=method, **LOOSE)
    agree("solution", solution)
    compared_gradients(agree, solution, [start, times, *func.parameters()])


@each_way
@pytest.mark.parametrize("method", ["midpoint", "rk4", "implicit_adams", "dopri8", "dopri5"])
def test_tuples(agree, method, way):
    """Tensors of three shapes, each with tolerances of its own where steps adapt."""
    func = Coupled()
    start = (torch.tensor(0.3), drawn(2, seed=2), drawn(2, 3, seed=3))
    start = tuple(item.requires_grad_() for item in start)
    times = torch.linspace(0, 0.8, 6)
    tolerances = LOOSE
    if method.startswith("dopri") and way == "steps":
        tolerances = {"rtol": (1e-3, 1e-4, 1e-3), "atol": (1e-5, 1e-4, 1e-4)}
    solution = WAYS[way](func, start, times, method=method, **tolerances)
    assert [item.shape for item in solution] == [(6,), (6, 2), (6, 2, 3)]
    agree("solution", solution)
    flat = torch.cat([item.reshape(6, -1) for item in solution], dim=1)
    compared_gradients(agree, flat, [*start, *func.parameters()])


@each_method
def test_reversed_time(agree, method):
    """From the end to the start, in unequal steps."""
    func, start = Swirl(), start_of()
    times = torch.tensor([1.0, 0.9, 0.7, 0.4, 0.2, -0.1], requires_grad=True)
    solution = odeint(func, start, times, method=method, **LOOSE)
    agree("solution", solution)
    compared_gradients(agree, solution, [start, times, *func.parameters()])


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
@pytest.mark.parametrize("method", ["rk4", "explicit_adams", "dopri5", "bosh3", "dopri8"])
def test_types(agree, method, dtype):
    """Other types of states, over times of float64.

    No step is longer than a tenth: by single precision the errors that methods of high order
    estimate are rounding, and the length of the next step would be, too.
    """
    dtype = getattr(torch, dtype)
    func, start = Swirl(dtype), start_of(dtype)
    times = torch.linspace(0, 1, 6)
    options = {"max_step": 0.1} if method in ADAPTIVE else {}
    solution = odeint(func, start, times, method=method, options=options, **LOOSE)
    assert solution.dtype == dtype
    # Single precision: sums in another order.
    close = {} if dtype == torch.complex128 else {"rtol": 2e-5, "atol": 2e-6}
    agree("solution", solution, **close)
    compared_gradients(agree, solution, [start, *func.parameters()], **close)


GRIDS = {
    "step_size": {"step_size": 0.07},
    "cubic": {"step_size": 0.15, "interp": "cubic"},
    "perturb": {"step_size": 0.1, "perturb": True},
    "grid": {"grid_constructor": lambda func, y0, t: torch.linspace(0, 1, 9) ** 2},
}


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("method", ["euler", "midpoint", "heun3", "rk4", "implicit_adams"])
def test_grids(agree, method, grid):
    """Steps of their own between the asked times, and how states between are found."""
    func, start = Swirl(), start_of()
    times = torch.tensor([0.0, 0.33, 0.5, 1.0], requires_grad=grid != "grid")
    solution = odeint(func, start, times, method=method, options=GRIDS[grid])
    agree("solution", solution)
    leaves = [start, *func.parameters()] + ([times] if times.requires_grad else [])
    compared_gradients(agree, solution, leaves)


STEPPING = {
    "first": {"first_step": torch.tensor(0.01)},
    "largest": {"max_step": 0.05},
    "smallest": {"min_step": 0.3},
    "factors": {"safety": 0.7, "ifactor": 3.0, "dfactor": 0.5},
    "through": {"step_t": torch.tensor([0.2, 0.7])},
    "jumps": {"jump_t": torch.tensor([0.31, 0.62])},
    "both": {"step_t": torch.tensor([0.2]), "jump_t": torch.tensor([0.5])},
    "norm": {"norm": lambda y: y.abs().max()},
    "times32": {"dtype": torch.float32},
}


@pytest.mark.parametrize("stepping", STEPPING)
@pytest.mark.parametrize("method", ["dopri5", "bosh3"])
def test_stepping(agree, method, stepping):
    """What guides adaptive steps; the number of evaluations is the same."""
    calls = []

    class Kinked(Swirl):
        def forward(self, t, y):
            calls.append(t.item())
            return super().forward(t, y) + (t > 0.31) * 0.5

    func, start = Kinked(), start_of()
    times = torch.tensor([0.0, 0.4, 1.0])
    solution = odeint(func, start, times, method=method, options=STEPPING[stepping], **LOOSE)
    close = {"rtol": 1e-4, "atol": 1e-6} if stepping == "times32" else {}
    agree("solution", solution, **close)
    agree("evaluations", len(calls))
    compared_gradients(agree, solution, [start, *func.parameters()], **close)


@each_way
@each_adaptive
def test_event_of_a_fall(agree, method, way):
    """When a ball meets the ground, and how that time depends on all that is given."""
    func = Ball()
    state = (torch.tensor([2.0], requires_grad=True), torch.tensor([1.0], requires_grad=True))
    begin = torch.tensor(0.0, requires_grad=True)
    time, solution = odeint_event(
        func,
        state,
        begin,
        event_fn=lambda t, state: state[0],
        method=method,
        odeint_interface=WAYS[way],
        options={"max_step": 0.05},
    )
    agree("time", time)
    agree("solution", solution)
    known = (1 + math.sqrt(1 + 2 * 9.0 * 2)) / 9.0
    assert math.isclose(time.item(), known, rel_tol=1e-3)
    found = torch.autograd.grad(time, [*state, begin, func.gravity], retain_graph=True)
    agree("gradients of the time", found)
    found = torch.autograd.grad(solution[1][-1].sum(), [*state, func.gravity])
    agree("gradients of the speed", found)


@pytest.mark.parametrize("interp", ["linear", "cubic"])
@pytest.mark.parametrize("method", ["euler", "midpoint", "rk4", "explicit_adams"])
def test_event_on_a_grid(agree, method, interp):
    """Fixed steps up to an event of several values: the first of them ends the run."""
    func, start = Swirl(), torch.tensor([1.0, 0.5], requires_grad=True)
    time, solution = odeint_event(
        func,
        start,
        torch.tensor(0.0),
        event_fn=lambda t, y: torch.stack([y[0] - 0.2, t - 3.0]),
        method=method,
        options={"step_size": 0.05, "interp": interp},
    )
    agree("time", time)
    agree("solution", solution)
    agree("gradients", torch.autograd.grad(time, [start, *func.parameters()]))


@pytest.mark.parametrize("method", ["dopri5", "adaptive_heun"])
def test_event_backwards(agree, method):
    """An event that lies before the start."""
    func, start = Swirl(), torch.tensor([0.4, 0.5], requires_grad=True)
    time, solution = odeint_event(
        func,
        start,
        torch.tensor(1.0),
        event_fn=lambda t, y: y[0],
        reverse_time=True,
        method=method,
        **LOOSE,
    )
    assert time < 1
    agree("time", time)
    agree("solution", solution)
    agree("gradients", torch.autograd.grad(time + solution[-1].sum(), [start, func.matrix]))


def test_dense(agree):
    """A function of time from the steps of ``dopri5``."""
    func, start = Swirl(), start_of()
    solution = torchdiffeq.odeint_dense(func, start, torch.tensor(0.0), torch.tensor(1.0))
    for time in (0.05, 0.5, 0.99):
        agree(f"at {time}", solution(torch.tensor(time)))
    compared_gradients(agree, solution(torch.tensor(0.77)), [start, *func.parameters()])


@pytest.mark.parametrize("norm", ["default", "seminorm", "own"])
def test_adjoint_norm(agree, norm):
    """The error that the steps of the adjoint equation look at."""
    func, start = Swirl(), start_of()
    options = {
        "default": {},
        "seminorm": {"norm": "seminorm"},
        "own": {"norm": lambda state: max(item.abs().max() for item in state)},
    }[norm]
    times = torch.linspace(0, 1, 4)
    solution = odeint_adjoint(func, start, times, method="dopri5", adjoint_options=options, **LOOSE)
    compared_gradients(agree, solution, [start, *func.parameters()])


def test_adjoint_by_another_method(agree):
    """Fixed steps there, adaptive ones back, with tolerances of their own and one parameter."""
    func, start = Swirl(), start_of()
    solution = odeint_adjoint(
        func,
        start,
        torch.linspace(0, 1, 4),
        method="rk4",
        options={"step_size": 0.1},
        adjoint_method="bosh3",
        adjoint_options={},
        adjoint_rtol=1e-4,
        adjoint_atol=1e-5,
        adjoint_params=(func.matrix,),
    )
    found = torch.autograd.grad((solution**2).sum(), [start, *func.parameters()], allow_unused=True)
    assert found[2] is None
    agree("gradients", found[:2])


@pytest.mark.parametrize("method", ["rk4", "implicit_adams", "dopri5"])
def test_hessian(agree, method):
    """Second derivatives through the steps."""
    func = Swirl()

    def outcome(start):
        times = torch.tensor([0.0, 0.2, 0.4, 0.5, 0.6])
        return (odeint(func, start, times, method=method, **LOOSE)[-1] ** 2).sum()

    agree("hessian", torch.autograd.functional.hessian(outcome, start_of().detach()[0]))


def test_exponential_of_a_matrix(agree):
    """A linear equation, whose solution is known."""
    matrix = torch.tensor([[0.1, -1.0], [1.0, -0.2]], requires_grad=True)
    start = torch.tensor([1.0, -1.0])
    solution = odeint(lambda t, y: matrix @ y, start, torch.tensor([0.0, 1.5]))[-1]
    known = torch.linalg.matrix_exp(matrix * 1.5) @ start
    agree("solution", [solution, known])
    ours, exact = (torch.autograd.grad(item.sum(), matrix)[0] for item in (solution, known))
    agree("gradients", [ours, exact])
    torch.testing.assert_close(solution, known, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(ours, exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("solver", ["LSODA", "RK45", "DOP853", "BDF"])
def test_scipy(agree, solver):
    """SciPy takes the steps, without gradients."""
    options = {"solver": solver}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy's other solvers know no smallest step
        solution = odeint(
            Swirl(), start_of(), torch.linspace(0, 1, 5), method="scipy_solver", options=options
        )
    assert not solution.requires_grad
    agree("solution", solution)


CALLBACKS = ["step", "accept_step", "reject_step"]


def noted(func, suffix=""):
    """A function whose callbacks note their name, time and step."""
    for kind in CALLBACKS:

        def note(t, y, dt, kind=kind):
            func.log.append([CALLBACKS.index(kind), t.item(), dt.item(), len(y)])

        setattr(func, f"callback_{kind}{suffix}", note)
    return func


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("method", ["euler", "bosh3", "dopri5"])
def test_callbacks(agree, method, backwards):
    """What is told of each step; methods of fixed steps warn of the kinds they do not know."""
    func = noted(Swirl())
    times = torch.tensor([0.0, 0.5, 1.0])
    arguments = (func, start_of(), times.flip(0) if backwards else times)
    if method == "euler":
        with pytest.warns(UserWarning, match="does not support callbacks"):
            odeint(*arguments, method=method)
    else:
        odeint(*arguments, method=method, rtol=1e-5, atol=1e-6)
    agree("count", len(func.log))
    agree("told", func.log)


def test_callbacks_of_the_adjoint(agree):
    """The steps back have callbacks of their own."""
    func = noted(Swirl(), "_adjoint")
    solution = odeint_adjoint(func, start_of(), torch.tensor([0.0, 1.0]), **LOOSE)
    assert not func.log
    solution.sum().backward()
    agree("count", len(func.log))
    agree("told", func.log)


def test_training(agree):
    """Parameters fitted to a curve by the adjoint equation and Adam."""
    func, start, times = Swirl(), start_of().detach(), torch.linspace(0, 1, 5)
    goal = torch.stack([torch.cos(times), torch.sin(times)], -1)[:, None]
    optimizer = torch.optim.Adam(func.parameters(), lr=0.05)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = ((odeint_adjoint(func, start, times, method="rk4") - goal) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    agree("losses", losses)
    agree("parameters", list(func.parameters()))


def asked(start=None, times=None, func=None, way=odeint, **options):
    """A run with one thing amiss."""
    start = start_of() if start is None else start
    times = torch.tensor([0.0, 1.0]) if times is None else times
    return way(Swirl() if func is None else func, start, times, **options)


REFUSED = {
    "method": (ValueError, "Invalid method", {"method": "leapfrog"}),
    "order": (AssertionError, "t must be strictly", {"times": torch.tensor([0.0, 1.0, 0.5])}),
    "repeated": (AssertionError, "t must be strictly", {"times": torch.tensor([0.0, 1.0, 1.0])}),
    "integers": (TypeError, "`t` must be a floating", {"times": torch.tensor([0, 1])}),
    "list": (AssertionError, "t must be a torch", {"times": [0.0, 1.0]}),
    "table": (AssertionError, "t must be one", {"times": torch.tensor([[0.0, 1.0]])}),
    "start": (AssertionError, "y0 must be either", {"start": [1.0, 2.0]}),
    "tolerance": (
        AssertionError,
        "rtol cannot require",
        {"rtol": torch.tensor(1e-3, requires_grad=True)},
    ),
    "tolerances": (
        AssertionError,
        "If using tupled rtol",
        {"start": (torch.ones(2), torch.ones(2)), "rtol": (1e-3,)},
    ),
    "steps": (
        AssertionError,
        "max_num_steps exceeded",
        {"method": "dopri5", "options": {"max_num_steps": 1}},
    ),
    "grid": (
        ValueError,
        "step_size and grid_constructor",
        {
            "method": "rk4",
            "options": {"step_size": 0.1, "grid_constructor": lambda func, y0, t: t},
        },
    ),
    "interpolation": (
        ValueError,
        "Unknown interpolation",
        {"method": "rk4", "options": {"interp": "quintic"}},
    ),
    "twice": (
        ValueError,
        "`step_t` and `jump_t` must",
        {
            "method": "dopri5",
            "options": {"step_t": torch.tensor([0.5]), "jump_t": torch.tensor([0.5])},
        },
    ),
    "infinite": (
        AssertionError,
        "(underflow|non-finite)",
        {"method": "dopri5", "func": lambda t, y: y * float("nan")},
    ),
    "parameters": (
        ValueError,
        "func must be an instance",
        {"way": odeint_adjoint, "func": lambda t, y: -y},
    ),
    "adjoint": (
        ValueError,
        "If `adjoint_method != method`",
        {
            "way": odeint_adjoint,
            "method": "rk4",
            "options": {"step_size": 0.1},
            "adjoint_method": "dopri5",
        },
    ),
    "event": (
        ValueError,
        "We require len",
        {"times": torch.tensor([0.0, 0.5, 1.0]), "event_fn": lambda t, y: y.sum()},
    ),
    "event grid": (
        AssertionError,
        "Event handling for fixed",
        {"method": "rk4", "event_fn": lambda t, y: y.sum() - 1},
    ),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_refused(agree, wrong):
    """The class and the first words of errors."""
    kind, words, options = REFUSED[wrong]
    with pytest.raises(kind, match=f"^{words}"):
        asked(**options)
    agree("still", asked(method="rk4"))


def test_unknown_option_is_told(agree):
    """An option that a method does not know is a warning."""
    with pytest.warns(UserWarning, match="Unexpected arguments"):
        solution = asked(method="euler", options={"colour": "red"})
    agree("solution", solution)
