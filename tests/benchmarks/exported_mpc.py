"""Exported derivatives of a control problem beside CasADi's C code.

Run ``python -m tests.benchmarks.exported_mpc``. The gradient and the sparse Hessian of the
Lagrangian of ``examples/export_mpc``, 154 unknowns. CasADi writes C for expressions of scalars
(``SX``), with and without common subexpressions, and for a function that is mapped over the steps
(``MX``); ``cc -O3 -march=native`` compiles it. All are called from one C program, block by block in
turns; times are minima. Results are compared. Nothing happens where CasADi or ``cc`` is not there.
"""

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import functrans as ft

EXAMPLE = Path(__file__).parents[2] / "examples/export_mpc/export_mpc.py"
BLOCKS, CALLS = 300, 50

MAIN = """
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <time.h>
#include "derivatives.h"

enum {{ PLAN = DERIVATIVES_OUT_HESSIAN_ROWS, NNZ = DERIVATIVES_OUT_HESSIAN_NNZ }};
typedef int casadi(const double **, double **, long long *, double *, int);
extern casadi {names};
static casadi *const functions[] = {{{names}}};
static double plan[PLAN], multipliers[{n_multipliers}], gradient[{n}][PLAN], hessian[{n}][NNZ];
static double own_gradient[PLAN], own_hessian[NNZ], memory[100000], best[{n} + 1];
static long long integers[100000];
static unsigned char workspace[DERIVATIVES_WORKSPACE_BYTES];

static double difference(const double *x, const double *y, int n)
{{
    double largest = 0.0;
    for (int k = 0; k < n; k++) largest = fmax(largest, fabs(x[k] - y[k]) / (1.0 + fabs(y[k])));
    return largest;
}}

static double seconds(void)
{{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}}

int main(void)
{{
    if (fread(plan, sizeof plan, 1, stdin) != 1) return 1;
    if (fread(multipliers, sizeof multipliers, 1, stdin) != 1) return 1;
    for (int i = 0; i <= {n}; i++) best[i] = INFINITY;
    for (int block = 0; block < {blocks}; block++)
        for (int i = 0; i <= {n}; i++) {{
            const double *given[1000] = {{plan, multipliers}};
            double *made[1000] = {{i < {n} ? gradient[i] : 0, i < {n} ? hessian[i] : 0}};
            const double start = seconds();
            for (int call = 0; call < {calls}; call++)
                if (i < {n}) functions[i](given, made, integers, memory, 0);
                else derivatives(plan, multipliers, own_gradient, own_hessian, workspace);
            best[i] = fmin(best[i], (seconds() - start) / {calls});
        }}
    for (int i = 0; i <= {n}; i++) {{
        double error = 0.0;
        if (i < {n}) error = fmax(difference(gradient[i], own_gradient, PLAN),
                                  difference(hessian[i], own_hessian, NNZ));
        printf("%.9g %.3g\\n", best[i], error);
    }}
    return 0;
}}
"""


def example() -> Any:
    """The module of the example."""
    found = importlib.util.spec_from_file_location("export_mpc", EXAMPLE)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


class Problem:
    """The Lagrangian in CasADi, step by step."""

    def __init__(self, casadi: Any, model: Any) -> None:
        self.casadi, self.model = casadi, model

    def rates(self, state: Any, force: Any) -> Any:
        """How a state changes."""
        ca, model = self.casadi, self.model
        angle, speed, turning = state[1], state[2], state[3]
        sine, cosine = ca.sin(angle), ca.cos(angle)
        push = force + model.POLE * model.LENGTH * turning**2 * sine
        mass = model.CART + model.POLE * sine**2
        return ca.vertcat(
            speed,
            turning,
            (push - model.POLE * model.GRAVITY * sine * cosine) / mass,
            (model.GRAVITY * (model.CART + model.POLE) * sine - cosine * push)
            / (model.LENGTH * mass),
        )

    def advance(self, state: Any, force: Any) -> Any:
        """The state a period later."""
        period = self.model.PERIOD
        a = self.rates(state, force)
        b = self.rates(state + period / 2 * a, force)
        c = self.rates(state + period / 2 * b, force)
        d = self.rates(state + period * c, force)
        return state + period / 6 * (a + 2 * b + 2 * c + d)

    def cost(self, x: Any) -> Any:
        """What a state costs."""
        return 2 * x[0] ** 2 + 10 * (1 - self.casadi.cos(x[1])) + 0.1 * x[2] ** 2 + 0.1 * x[3] ** 2

    def stage(self, x: Any, u: Any, ahead: Any, multipliers: Any) -> Any:
        """The terms of a step."""
        log, model = self.casadi.log, self.model
        barrier = -model.BARRIER * (log(model.LIMIT - u) + log(model.LIMIT + u))
        gap = self.advance(x, u) - ahead
        return self.cost(x) + 1e-3 * u**2 + barrier + self.casadi.dot(multipliers, gap)

    def derivatives(self, kind: Any, name: str, is_shared: bool) -> Any:
        """A function that gives the gradient and the Hessian of the Lagrangian."""
        ca, steps = self.casadi, self.model.STEPS
        plan = kind.sym("plan", 5 * steps + 4)
        multipliers = kind.sym("multipliers", 4 * steps)
        rows, by_step = ca.reshape(plan[: 5 * steps], 5, steps), ca.reshape(multipliers, 4, steps)
        states, forces = ca.horzcat(rows[:4, :], plan[5 * steps :]), rows[4, :]
        if kind is ca.MX:
            sizes = {"x": 4, "u": 1, "ahead": 4, "multipliers": 4}
            symbols = [ca.SX.sym(key, size) for key, size in sizes.items()]
            stage = ca.Function("stage", symbols, [self.stage(*symbols)]).map(steps)
            terms = stage(states[:, :-1], forces, states[:, 1:], by_step)
            total = ca.sum2(terms)
        else:
            columns = zip(range(steps), range(1, steps + 1), strict=True)
            total = sum(
                self.stage(states[:, i], forces[i], states[:, j], by_step[:, i]) for i, j in columns
            )
        hessian, gradient = ca.hessian(total + 20 * self.cost(states[:, steps]), plan)
        return ca.Function(name, [plan, multipliers], [gradient, hessian], {"cse": is_shared})


def main() -> int:
    """Build, run and print; 1 if results differ."""
    if importlib.util.find_spec("casadi") is None or shutil.which("cc") is None:
        print("CasADi or a C compiler is not installed; nothing was measured")
        return 0
    import casadi

    model = example()
    problem = Problem(casadi, model)
    kinds = {"sx": (casadi.SX, False), "sx_cse": (casadi.SX, True), "mx_map": (casadi.MX, False)}
    rng = np.random.default_rng(0)
    states = model.HANGING + rng.normal(size=(model.STEPS + 1, 4))
    plan = model.joined(states, rng.uniform(-5, 5, model.STEPS))
    multipliers = rng.normal(size=(model.STEPS, 4))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        own = ft.jit(model.derivatives).export(folder, plan, multipliers, name="derivatives")
        objects = {}
        for name, (kind, is_shared) in kinds.items():
            generator = casadi.CodeGenerator(f"{name}.c")
            generator.add(problem.derivatives(kind, name, is_shared))
            generator.generate(f"{folder}/")
            objects[name] = folder / f"{name}.o"
            command = ["cc", "-O3", "-march=native", "-c", f"{name}.c"]
            subprocess.run(command, check=True, cwd=folder)
        source = MAIN.format(
            names=", ".join(kinds), n=len(kinds), n_multipliers=multipliers.size, blocks=BLOCKS,
            calls=CALLS,
        )  # fmt: skip
        (folder / "main.c").write_text(source)
        files = ["main.c", *(file.name for file in objects.values()), own.code.name]
        subprocess.run(["cc", "-O2", "-o", "main", *files, "-lm"], check=True, cwd=folder)
        given = plan.tobytes() + multipliers.tobytes()
        run = subprocess.run([folder / "main"], input=given, capture_output=True, check=True)
        sizes = [file.stat().st_size for file in (*objects.values(), own.code)]
    rows = [tuple(map(float, line.split())) for line in run.stdout.splitlines()]
    for name, (time_s, error), size in zip([*kinds, "functrans"], rows, sizes, strict=True):
        print(f"{name:10} {1e6 * time_s:7.2f} us  object {size:,} bytes  error {error:.1e}")
    best = min(time_s for time_s, _ in rows[:-1])
    print(f"functrans takes {rows[-1][0] / best:.2f} of the fastest of CasADi's")
    return 0 if max(error for _, error in rows) < 1e-9 else 1


if __name__ == "__main__":
    sys.exit(main())
