"""Bundle adjustment of ADBench: the entries of a sparse Jacobian, two rows per observation.

A camera of 11 parameters (rotation, centre, focal length, principal point, two radial distortions)
sees a point; each observation has a weight. Rows are the weighted errors of all observations and
then the errors of the weights; columns are cameras, points and weights. Every contender returns the
entries by rows. Written from Šrajer, Kukelova & Fitzgibbon, *A benchmark of selected algorithmic
differentiation tools on some problems in computer vision and machine learning*, Optimization
Methods and Software 33 (2018); data is drawn at random in the sizes of two of their problems, which
are of Agarwal et al., *Bundle adjustment in the large* (2010).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.derive import take
from tests.benchmarks.record import Contender, Workload

if TYPE_CHECKING:
    from tests.benchmarks.record import Build, Inputs

NAMES = ("cameras", "points", "weights", "seen_by", "seen", "features")


def project(xp: Any, camera: Any, point: Any) -> list[Any]:
    """Return where a camera sees points; arguments are lists of 11 and 3 arrays."""
    rx, ry, rz, cx, cy, cz, focal, u, v, first, second = camera
    x, y, z = point[0] - cx, point[1] - cy, point[2] - cz
    angle = xp.sqrt(rx * rx + ry * ry + rz * rz)
    cos, sin = xp.cos(angle), xp.sin(angle)
    ax, ay, az = rx / angle, ry / angle, rz / angle
    along = (ax * x + ay * y + az * z) * (1.0 - cos)
    turned_x = x * cos + (ay * z - az * y) * sin + ax * along
    turned_y = y * cos + (az * x - ax * z) * sin + ay * along
    turned_z = z * cos + (ax * y - ay * x) * sin + az * along
    px, py = turned_x / turned_z, turned_y / turned_z
    square = px * px + py * py
    factor = focal * (1.0 + first * square + second * square * square)
    return [px * factor + u, py * factor + v]


def errors(xp: Any, camera: Any, point: Any, weight: Any, feature: Any) -> Any:
    """Return the weighted errors of one observation, ``f64[2]``."""
    found = project(xp, [camera[i] for i in range(11)], [point[i] for i in range(3)])
    return weight * (xp.stack(found) - feature)


def all_errors(xp: Any, cameras: Any, points: Any, weights: Any, *data: Any) -> Any:
    """Return all errors: ``f64[observations, 2]`` and those of weights, as one vector."""
    seen_by, seen, features = data
    camera, point = cameras[seen_by], points[seen]
    found = project(xp, [camera[:, i] for i in range(11)], [point[:, i] for i in range(3)])
    rows = weights[:, None] * (xp.stack(found, -1) - features)
    return xp.concatenate([rows.reshape(-1), 1.0 - weights * weights])


def inputs_of(
    n_cameras: int, n_points: int, n: int
) -> Callable[[np.random.Generator], dict[str, np.ndarray]]:
    """Cameras that look at points around the origin from some distance."""

    def make_inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {
            "cameras": np.concatenate(
                [
                    0.2 * rng.normal(size=(n_cameras, 3)),
                    rng.normal(size=(n_cameras, 3)) - [0.0, 0.0, 10.0],
                    rng.uniform(1.0, 2.0, size=(n_cameras, 1)),
                    0.1 * rng.normal(size=(n_cameras, 4)),
                ],
                axis=1,
            ),
            "points": rng.normal(size=(n_points, 3)),
            "weights": rng.uniform(0.5, 1.5, size=n),
            "seen_by": rng.integers(n_cameras, size=n),
            "seen": np.sort(rng.integers(n_points, size=n)),
            "features": rng.normal(size=(n, 2)),
        }

    return make_inputs


def entries(module: str, xp: Any, direction: str) -> Callable[..., Any]:
    """The entries by dense Jacobians of single observations."""
    library = importlib.import_module(module)

    def jacobian(*args: Any) -> Any:
        cameras, points, weights, seen_by, seen, features = args
        one = getattr(library, direction)(
            lambda row, feature: errors(xp, row[:11], row[11:14], row[14], feature)
        )
        rows = xp.concatenate([cameras[seen_by], points[seen], weights[:, None]], 1)
        blocks = library.vmap(one)(rows, features)
        return xp.concatenate([blocks.reshape(-1), -2.0 * weights])

    return jacobian


def _functrans(direction: str) -> Build:
    def build(inputs: Inputs) -> Callable[[], Any]:
        import functrans as ft
        import functrans.numpy as fnp

        function = ft.jit(entries("functrans", fnp, direction))
        arrays = take(inputs, NAMES)
        return lambda: function(*arrays)

    return build


def _functrans_sparse(inputs: Inputs) -> Callable[[], Any]:
    import functrans as ft

    *moving, seen_by, seen, features = take(inputs, NAMES)

    def fun(cameras: Any, points: Any, weights: Any) -> Any:
        return all_errors(np, cameras, points, weights, seen_by, seen, features)

    sparse = ft.sparse_jacobian(fun, argnums=(0, 1, 2))
    return lambda: sparse.values(*moving)


def _with_zeros(entries: Any) -> tuple[np.ndarray]:
    """All entries of each row: a pattern has none of an error in the other principal coordinate."""
    n = len(entries) // 29
    rows = entries[: 28 * n].reshape(n, 2, 14)
    first = np.insert(rows[:, 0], 8, 0.0, axis=1)
    second = np.insert(rows[:, 1], 7, 0.0, axis=1)
    return (np.concatenate([np.stack([first, second], 1).ravel(), entries[28 * n :]]),)


def _jax(direction: str) -> Build:
    def build(inputs: Inputs) -> Callable[[], Any]:
        import jax

        function = jax.jit(entries("jax", jax.numpy, direction))
        arrays = [jax.numpy.asarray(array) for array in take(inputs, NAMES)]
        return lambda: function(*arrays).block_until_ready()

    return build


def _by_hand(inputs: Inputs) -> Callable[[], Any]:
    from tests.benchmarks.hand import bundle_adjustment

    arrays = take(inputs, NAMES)
    return lambda: bundle_adjustment.entries(*arrays)


def _workload(name: str, *sizes: int) -> Workload:
    return Workload(
        name=f"bundle_adjustment_{name}",
        description="entries of the Jacobian of bundle adjustment, {} cameras, {} points, {} "
        "observations".format(*sizes),
        make_inputs=inputs_of(*sizes),
        contenders=(
            Contender("functrans", "sparse", _functrans_sparse, _with_zeros),
            Contender("functrans", "jacfwd", _functrans("jacfwd")),
            Contender("functrans", "jacrev", _functrans("jacrev")),
            Contender("jax", "jacfwd", _jax("jacfwd")),
            Contender("jax", "jacrev", _jax("jacrev")),
            Contender("numba", "hand", _by_hand),
        ),
        rtol=1e-11,
        first_call_timeout_s=120.0,
    )


WORKLOADS = (_workload("small", 49, 7776, 31_843), _workload("large", 257, 65_132, 225_911))
