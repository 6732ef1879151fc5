"""Hand tracking of ADBench: a Jacobian by forward mode, with 26 + 2 directions.

Bones are posed by angles, their transforms move the vertices of a mesh, and points of a scan are
compared with points on its triangles: distances depend on all angles, and each point on two
coordinates of its own, whose columns are pushed forward together. Written from Šrajer, Kukelova &
Fitzgibbon, *A benchmark of selected algorithmic differentiation tools on some problems in computer
vision and machine learning*, Optimization Methods and Software 33 (2018), section 3; the data is
drawn at random in the sizes of their larger hand.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.derive import Ops, functrans_ops, jax_ops, take
from tests.benchmarks.record import Contender, Workload

if TYPE_CHECKING:
    from tests.benchmarks.record import Build, Inputs

VERTICES = 10_000
POINTS = 800
FINGERS = 5
PARENTS = (-1, 0, *(1 if i % 4 == 0 else i + 1 for i in range(4 * FINGERS)))
"""The forearm, the palm, and four bones per finger, of which three have angles."""

BONES = len(PARENTS)
ANGLES = 6 + 4 * FINGERS
NO_ANGLE = ANGLES
"""Where a zero stands behind the angles."""

DATA = ("base", "inverses", "rest", "weights", "triangles", "scan")


def _angle_numbers() -> np.ndarray:
    """Which angle each bone turns by about x, z and y: ``i64[22, 3]``."""
    numbers = np.full((BONES, 3), NO_ANGLE)
    for finger in range(FINGERS):
        first = 6 + 4 * finger
        bone = 2 + 4 * finger
        numbers[bone, :2] = first, first + 1
        numbers[bone + 1, 0] = first + 2
        numbers[bone + 2, 0] = first + 3
    numbers.flags.writeable = False  # so that it is a part of programs, and not an argument
    return numbers


ANGLE_NUMBERS = _angle_numbers()


def _matrices(xp: Any, entries: list[list[Any]]) -> Any:
    """A stack of matrices from vectors of entries."""
    return xp.stack([xp.stack(row, -1) for row in entries], -2)


def rotations(xp: Any, angles: Any) -> Any:
    """Return ``Rz Ry Rx`` for each row of ``angles: f64[n, 3]`` about x, z and y."""
    c, s = xp.cos(angles), xp.sin(angles)
    one, zero = xp.ones_like(c[:, 0]), xp.zeros_like(c[:, 0])
    about_x = [[one, zero, zero], [zero, c[:, 0], -s[:, 0]], [zero, s[:, 0], c[:, 0]]]
    about_y = [[c[:, 2], zero, s[:, 2]], [zero, one, zero], [-s[:, 2], zero, c[:, 2]]]
    about_z = [[c[:, 1], -s[:, 1], zero], [s[:, 1], c[:, 1], zero], [zero, zero, one]]
    return _matrices(xp, about_z) @ _matrices(xp, about_y) @ _matrices(xp, about_x)


def global_rotation(xp: Any, axis: Any) -> Any:
    """Return the rotation by a vector, whose length is the angle (Rodrigues)."""
    square = xp.sum(axis * axis)
    angle = xp.sqrt(square)
    x, y, z = axis[0] / angle, axis[1] / angle, axis[2] / angle
    c, s = xp.cos(angle), xp.sin(angle)
    rest = 1.0 - c
    return _matrices(
        xp,
        [
            [x * x * rest + c, x * y * rest - z * s, x * z * rest + y * s],
            [x * y * rest + z * s, y * y * rest + c, y * z * rest - x * s],
            [x * z * rest - y * s, z * y * rest + x * s, z * z * rest + c],
        ],
    )


def vertex_positions(xp: Any, theta: Any, base: Any, inverses: Any, rest: Any, weights: Any) -> Any:
    """Return the vertices ``f64[3, n]`` of the mesh in a pose."""
    angles = xp.concatenate([theta, xp.zeros_like(theta[:1])])[ANGLE_NUMBERS]
    turned = rest[:, :, :3] @ rotations(xp, angles)
    relative = xp.concatenate([turned, rest[:, :, 3:]], -1)
    absolute: list[Any] = []
    for bone, parent in enumerate(PARENTS):
        own = relative[bone]
        absolute.append(own if parent < 0 else absolute[parent] @ own)
    transforms = (xp.stack(absolute) @ inverses)[:, :3, :]
    skinned = xp.sum((transforms @ base) * weights[:, None, :], 0)
    return global_rotation(xp, theta[:3]) @ skinned + theta[3:6, None]


def residuals(
    ops: Ops, theta: Any, where: Any, base: Any, inverses: Any, rest: Any, weights: Any,
    triangles: Any, scan: Any,
) -> Any:  # fmt: skip
    """Return scan minus mesh, ``f64[3, points]``, at barycentric coordinates ``where``."""
    positions = vertex_positions(ops.xp, theta, base, inverses, rest, weights)
    corners = positions[:, triangles]
    u, v = where
    return scan - (u * corners[:, 0] + v * corners[:, 1] + (1.0 - u - v) * corners[:, 2])


def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return a pose and coordinates, and a model of 22 bones and 10,000 vertices."""
    rest = np.tile(np.eye(4), (BONES, 1, 1))
    rest[:, :3, :3] = np.linalg.qr(rng.normal(size=(BONES, 3, 3)))[0]
    rest[:, :3, 3] = rng.normal(size=(BONES, 3))
    inverses = np.linalg.inv(np.tile(np.eye(4), (BONES, 1, 1)) + 0.1 * rest)
    weights = rng.uniform(size=(BONES, VERTICES)) ** 8
    weights[rng.uniform(size=weights.shape) < 0.5] = 0.0
    weights /= weights.sum(0) + 1e-3
    return {
        "theta": 0.3 * rng.normal(size=ANGLES),
        "where": rng.uniform(0.0, 0.5, size=(2, POINTS)),
        "base": np.concatenate([rng.normal(size=(3, VERTICES)), np.ones((1, VERTICES))]),
        "inverses": inverses,
        "rest": rest,
        "weights": weights,
        "triangles": rng.integers(VERTICES, size=(3, POINTS)),
        "scan": rng.normal(size=(3, POINTS)),
    }


def jacobian(module: str, ops: Ops) -> Callable[..., Any]:
    """The Jacobian ``f64[28, 3, points]``: in the coordinates first, then in the angles."""
    library = importlib.import_module(module)
    xp = ops.xp

    def evaluate(theta: Any, where: Any, *data: Any) -> Any:
        def of_theta(angles: Any) -> Any:
            return residuals(ops, angles, where, *data)

        def of_where(coordinates: Any) -> Any:
            return residuals(ops, theta, coordinates, *data)

        def along(direction: Any) -> Any:
            return library.jvp(of_where, (where,), (direction,))[1]

        own = np.zeros((2, 2, POINTS))
        own[0, 0] = own[1, 1] = 1.0
        angles = library.jacfwd(of_theta)(theta)
        return xp.concatenate([library.vmap(along)(own), xp.moveaxis(angles, -1, 0)])

    return evaluate


def _functrans(inputs: Inputs) -> Callable[[], Any]:
    import functrans as ft

    function = ft.jit(jacobian("functrans", functrans_ops()))
    arrays = take(inputs, ("theta", "where", *DATA))
    return lambda: function(*arrays)


def _jax(inputs: Inputs) -> Callable[[], Any]:
    import jax

    function = jax.jit(jacobian("jax", jax_ops()))
    arrays = [jax.numpy.asarray(array) for array in take(inputs, ("theta", "where", *DATA))]
    return lambda: function(*arrays).block_until_ready()


def _by_hand(inputs: Inputs) -> Callable[[], Any]:
    from tests.benchmarks.hand import hand_tracking

    numbers = np.array(PARENTS), ANGLE_NUMBERS
    arrays = take(inputs, ("theta", "where", *DATA))
    return lambda: hand_tracking.jacobian(*arrays, *numbers)


CONTENDERS: tuple[tuple[str, str, Build], ...] = (
    ("functrans", "jit", _functrans),
    ("jax", "jit", _jax),
    ("numba", "hand", _by_hand),
)

WORKLOADS = (
    Workload(
        name="hand_tracking_jacobian",
        description="Jacobian of hand tracking, 28 directions, 10,000 vertices, 800 points",
        make_inputs=make_inputs,
        contenders=tuple(Contender(*each) for each in CONTENDERS),
        rtol=1e-10,
        first_call_timeout_s=120.0,
    ),
)
