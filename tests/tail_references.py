"""Values and derivatives of the table of tails in mpmath: ``python -m tests.tail_references``.

Not run by the tests: it takes minutes. Derivatives are differences of five points around; digits
are doubled until two results agree to more than a double holds.
"""

import argparse
import io
import zipfile
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

from tests.tail_cases import TAILS, Tail

PATH = Path(__file__).with_name("tail_references.npz")
_DIGITS = (40, 80, 160, 320, 640, 900)


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """As ``numpy.savez``, which compresses worse."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, array in arrays.items():
            with io.BytesIO() as text:
                np.save(text, array)
                archive.writestr(f"{name}.npy", text.getvalue())


def _real(value: Any) -> Any:
    value = mp.mpmathify(value)
    if isinstance(value, mp.mpc):
        if abs(value.imag) > abs(value.real) * mp.mpf(10) ** (-mp.mp.dps // 2):
            raise ValueError("not real")
        value = value.real
    if not mp.isfinite(value):
        raise ValueError("not finite")
    return value


def _stencil(row: Tail, point: list[Any], digits: int, scale: Any) -> list[Any]:
    """The function and three derivatives."""
    x = point[row.moving]
    step = scale * mp.mpf(10) ** (-digits // 6)
    with mp.workdps(digits + 15):
        at = [
            _real(row.exact(*point[: row.moving], x + k * step, *point[row.moving + 1 :]))
            for k in (-2, -1, 0, 1, 2)
        ]
        first = (at[0] - 8 * at[1] + 8 * at[3] - at[4]) / (12 * step)
        second = (-at[0] + 16 * at[1] - 30 * at[2] + 16 * at[3] - at[4]) / (12 * step**2)
        third = (-at[0] + 2 * at[1] - 2 * at[3] + at[4]) / (2 * step**3)
        return [at[2], first, second, third]


def _agree(old: list[Any], new: list[Any]) -> bool:
    for a, b in zip(old[:3], new[:3], strict=True):
        if a == b == 0 or abs(a - b) > abs(b) * mp.mpf(10) ** -19:
            return False
    return abs(old[3] - new[3]) <= abs(new[3]) * mp.mpf("0.01")


def _converged(row: Tail, point: list[Any]) -> list[Any]:
    x = abs(point[row.moving])
    scales = {min(x, mp.mpf(1)) or mp.mpf(1), mp.mpf(1)}
    for scale in sorted(scales):  # beside a singularity at 0, and where there is none
        results: list[list[Any]] = []
        for digits in _DIGITS:
            with mp.workdps(digits + 15):
                try:
                    results.append(_stencil(row, point, digits, scale))
                except ValueError:  # an end lies between the five points
                    continue
                if len(results) > 1 and _agree(*results[-2:]):
                    return results[-1]
    if len(results) < 2:
        raise ValueError("outside of the domain")
    return _with_zeros(x, *results[-2:])


def _with_zeros(x: Any, old: list[Any], new: list[Any]) -> list[Any]:
    """The last result where only derivatives that are 0 never agreed."""
    for k in range(3):
        if abs(new[k]) <= abs(new[0]) / (abs(x) or 1) ** k * mp.mpf(10) ** -300:
            new[k] = mp.mpf(0)
        elif abs(old[k] - new[k]) > abs(new[k]) * mp.mpf(10) ** -19:
            raise ValueError(f"order {k} does not converge")
    return new


def _condition(row: Tail, point: list[Any], exact: list[Any]) -> list[float]:
    """The sum of the logarithmic derivatives of each order in all operands."""
    x = abs(point[row.moving])
    total = [x * abs(exact[k + 1] / exact[k]) if exact[k] else mp.inf for k in range(3)]
    step = mp.mpf(10) ** -8
    for j, operand in enumerate(point):
        if j == row.moving or isinstance(operand, int):
            continue
        moved = list(point)
        moved[j] = operand * (1 + step)
        with mp.workdps(100):
            other = _stencil(row, moved, 80, min(x, mp.mpf(1)) or mp.mpf(1))
        for k in range(3):
            total[k] += abs(other[k] / exact[k] - 1) / step if exact[k] else mp.inf
    return [float(x) for x in total]


def references(row: Tail) -> tuple[np.ndarray, np.ndarray]:
    """Values and two derivatives, NaN where there are none; ``4 log2(1 + condition)`` of each."""
    points = row.points()
    values = np.full((3, len(points)), np.nan)
    conditions = np.full((3, len(points)), 255, np.uint8)
    problems = []
    for i, point in enumerate(points):
        wide = [x if isinstance(x, int) else mp.mpf(x) for x in point]
        try:
            exact = _converged(row, wide)
            condition = _condition(row, wide, exact)
        except Exception as error:
            problems.append(f"{point}: {error!r}"[:100])
            continue
        with np.errstate(all="ignore"):
            values[:, i] = [float(x) for x in exact[:3]]
            log = np.ceil(4 * np.log2(1 + np.array(condition)))
        conditions[:, i] = np.where(log < 255, log, 255)
    if problems:
        print(f"{row.key}: {len(problems)} of {len(points)} points left out, {problems[:2]}")
    return values, conditions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="rows; by default those that are not kept yet")
    only = parser.parse_args().only
    kept = dict(np.load(PATH)) if PATH.exists() else {}
    rows = {row.key: row for row in TAILS}
    for key, row in rows.items():
        if (
            key in only
            if only
            else f"{key}|values" not in kept or kept[f"{key}|values"].shape[1] != len(row.points())
        ):
            print(key, flush=True)
            kept[f"{key}|values"], kept[f"{key}|conditions"] = references(row)
            names = {name for name in kept if name.split("|")[0] in rows}
            partial = PATH.with_name("tail_references.partial.npz")
            _write(partial, {name: kept[name] for name in sorted(names)})
            partial.replace(PATH)  # whole, also if it is stopped


if __name__ == "__main__":
    main()
