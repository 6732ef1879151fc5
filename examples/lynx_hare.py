"""Fit the Lotka-Volterra equations to twenty years of hare and lynx pelts.

The model is the differential equation, written down as it is; ``odeint`` solves it. The posterior
mode is found with exact gradients through the solver, the uncertainty is the inverse of the exact
Hessian there (reverse mode through the solver, then forward mode through that), and the bands of
the populations are the delta method with the exact Jacobian of the solution.

    python examples/lynx_hare.py                # figure in ./lynx_hare.png
    python examples/lynx_hare.py --no-figure    # table only

The exit status is 1 if the gradient at the mode is not zero, or if an estimate is further from the
published posterior means than two of its standard deviations. Data and source:
``data/lynx_hare``. Reference: Carpenter, Predator-prey population dynamics: the Lotka-Volterra
model in Stan (2018), whose model and priors these are.
"""

import argparse
import csv
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize

import functrans as ft
import functrans.numpy as fnp
from functrans.scipy.integrate import odeint

DATA = Path(__file__).resolve().parent / "data" / "lynx_hare" / "pelts.csv"
NAMES = ("alpha", "beta", "gamma", "delta", "hare 1900", "lynx 1900", "sigma hare", "sigma lynx")
PUBLISHED = (0.55, 0.028, 0.80, 0.024, 34.0, 5.9, 0.25, 0.25)
# normal priors of the rates, log-normal ones of the rest (location of the logarithm, scale)
RATE_MEANS, RATE_SCALES = np.array([1.0, 0.05, 1.0, 0.05]), np.array([0.5, 0.05, 0.5, 0.05])
OTHER_MEANS, OTHER_SCALES = np.array([np.log(10.0), np.log(10.0), -1.0, -1.0]), 1.0
HARE, LYNX, INK, MUTED = "#b5651d", "#2a6f97", "#22303c", "#7d8a96"


def read() -> tuple[np.ndarray, np.ndarray]:
    """Years ``f64[21]`` and pelts of hare and lynx ``f64[21, 2]``."""
    with DATA.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    years = np.array([float(row["year"]) for row in rows])
    return years, np.array([[float(row["hare"]), float(row["lynx"])] for row in rows])


def slope(state: Any, t: Any, rates: Any) -> Any:
    """Hares grow and are eaten; lynxes grow by eating and die."""
    hare, lynx = state[0], state[1]
    alpha, beta, gamma, delta = rates
    return fnp.stack([(alpha - beta * lynx) * hare, (-gamma + delta * hare) * lynx])


def populations(p: Any, years: Any) -> Any:
    """Hares and lynxes at times; ``p`` are the logarithms of the parameters."""
    values = np.exp(p)
    return odeint(slope, values[4:6], years, values[:4], rtol=1e-9, atol=1e-9)


def loss(p: Any, years: Any, pelts: Any) -> Any:
    """Minus the logarithm of the posterior density, up to a constant."""
    values = np.exp(p)
    sigma = values[6:]
    errors = (np.log(pelts) - np.log(populations(p, years))) / sigma
    likelihood = 0.5 * np.sum(errors**2) + len(years) * np.sum(p[6:])
    rates = 0.5 * np.sum(((values[:4] - RATE_MEANS) / RATE_SCALES) ** 2)
    # the density of the logarithm of a rate has the rate itself as a factor
    return (
        likelihood
        + rates
        - np.sum(p[:4])
        + 0.5 * np.sum(((p[4:] - OTHER_MEANS) / OTHER_SCALES) ** 2)
    )


def fit(years: np.ndarray, pelts: np.ndarray) -> tuple[np.ndarray, np.ndarray, Any]:
    """The mode in logarithms, the covariance, and the optimizer's report."""
    value_and_grad = ft.jit(ft.value_and_grad(loss))
    hessian = ft.jit(ft.hessian(loss))
    start = np.log([0.8, 0.04, 0.8, 0.04, 30.0, 5.0, 0.5, 0.5])
    found = scipy.optimize.minimize(
        value_and_grad, start, (years, pelts), "trust-exact", jac=True, hess=hessian,
        options={"gtol": 1e-9},
    )  # fmt: skip
    return found.x, np.linalg.inv(hessian(found.x, years, pelts)), found


def bands(p: np.ndarray, covariance: np.ndarray, times: np.ndarray) -> tuple[Any, Any]:
    """Logarithms of the populations and their standard deviations, ``f64[m, 2]`` each."""

    def logs(p: np.ndarray) -> Any:
        return np.log(populations(p, times))

    jacobian = ft.jit(ft.jacfwd(logs))(p)
    return logs(p), np.sqrt(np.einsum("mki,ij,mkj->mk", jacobian, covariance, jacobian))


def draw_figure(
    p: np.ndarray, covariance: np.ndarray, years: np.ndarray, pelts: np.ndarray, path: Path
) -> None:
    """Populations in time, and against each other, with pelts and bands."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    times = np.linspace(years[0], years[-1] + 10.0, 621)
    logs, deviations = bands(p, covariance, times)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12, 4.6), width_ratios=(1.9, 1), layout="constrained"
    )
    figure.suptitle(
        "Lynx and hare at Hudson Bay: predator and prey, fitted through the solver",
        x=0.012, ha="left", fontsize=13, weight="bold", color=INK,
    )  # fmt: skip
    sigma = np.exp(p[6:])
    for k, (name, color) in enumerate((("hare", HARE), ("lynx", LYNX))):
        total = np.sqrt(deviations[:, k] ** 2 + sigma[k] ** 2)
        for width, alpha in ((total, 0.10), (deviations[:, k], 0.28)):
            low, high = (np.exp(logs[:, k] + z * width) for z in (-1.96, 1.96))
            left.fill_between(times, low, high, color=color, alpha=alpha, lw=0)
        left.plot(times, np.exp(logs[:, k]), color=color, lw=1.8, label=f"{name}, fitted")
        left.plot(years, pelts[:, k], "o", ms=4.5, color=color, mec="white", mew=0.6,
                  label=f"{name}, pelts")  # fmt: skip
    left.axvline(years[-1], color=MUTED, lw=0.8, ls=":")
    left.text(years[-1] + 0.2, 129, "forecast", color=MUTED, fontsize=9, va="top")
    left.set(xlim=(times[0], times[-1]), ylim=(0, 132), ylabel="thousands of pelts")
    left.set_title("95 % bands: of the population (dark), of the pelts (light)", fontsize=10,
                   color=INK, loc="left")  # fmt: skip
    left.legend(frameon=False, ncols=2, fontsize=9, loc="upper left")
    rates = np.exp(p)
    rng = np.random.default_rng(0)
    cycle = np.linspace(years[0], years[0] + 12.0, 300)
    draws = rng.multivariate_normal(p, covariance, size=60)
    for orbit in ft.jit(ft.vmap(populations, (0, None)))(draws, cycle):
        right.plot(orbit[:, 0], orbit[:, 1], color=MUTED, lw=0.5, alpha=0.25)
    mode = populations(p, cycle)
    right.plot(mode[:, 0], mode[:, 1], color=INK, lw=1.8, label="fitted cycle")
    right.plot(rates[2] / rates[3], rates[0] / rates[1], "+", ms=9, color=INK, label="equilibrium")
    marks = right.scatter(pelts[:, 0], pelts[:, 1], c=years, cmap="viridis", s=24, zorder=3)
    figure.colorbar(marks, ax=right, label="year", ticks=[1900, 1905, 1910, 1915, 1920])
    right.set(xlabel="hare", ylabel="lynx", xlim=(0, 110), ylim=(0, 85))
    right.set_title("60 draws of the approximate posterior", fontsize=10, color=INK, loc="left")
    right.legend(frameon=False, fontsize=9, loc="upper right")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=140)


def main() -> int:
    """Fit, print, draw; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("lynx_hare.png"), help="PNG to write")
    parser.add_argument("--no-figure", action="store_true", help="print only")
    options = parser.parse_args()
    if not options.no_figure and find_spec("matplotlib") is None:
        parser.error("the figure needs matplotlib: pip install 'functrans[viz]', or --no-figure")
    years, pelts = read()
    begin = time.perf_counter()
    p, covariance, found = fit(years, pelts)
    elapsed = time.perf_counter() - begin
    deviations = np.exp(p) * np.sqrt(np.diag(covariance))
    print(f"{'':12}{'estimate':>10}{'deviation':>11}{'published':>11}")
    for name, value, deviation, known in zip(NAMES, np.exp(p), deviations, PUBLISHED, strict=True):
        print(f"{name:12}{value:10.4f}{deviation:11.4f}{known:11.3f}")
    size = np.max(np.abs(found.jac))
    print(f"{found.nit} Newton steps, largest slope {size:.1e}, {elapsed:.1f} s with compilation")
    if not options.no_figure:
        draw_figure(p, covariance, years, pelts, options.output)
        print(f"figure: {options.output}")
    is_near = np.all(np.abs(np.exp(p) - PUBLISHED) < 2 * deviations)
    return 0 if is_near and size < 1e-6 else 1


if __name__ == "__main__":
    sys.exit(main())
