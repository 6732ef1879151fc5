"""``python -m tests.beside_torch.libraries PLACE [library ...]``: libraries, by both sides.

``PLACE`` holds the unpacked source distributions (``pip download --no-deps --no-binary :all:``);
the environment has PyTorch and the libraries. Each suite runs twice, with PyTorch and after
``functrans.compat.torch.install()``; what passes with PyTorch and does not here is printed, and a
row for ``docs/torch_libraries.json``. Suites of scenarios write down the numbers of PyTorch, which
the second run must meet. ``--jobs`` runs parts of a suite side by side; times need one.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).parent
SCENARIOS = HERE / "scenarios"


@dataclass(frozen=True, slots=True)
class Suite:
    """Where the tests of a library lie.

    Attributes:
      tests: below the source distribution; below the installed package where ``installed``.
      installed: the tests come with the package.
      scenarios: ours, for packages that ship none.
      missing: modules that the published tests import and that are not published, by name: ours.
      deselected: what is not counted, as arguments of pytest (CUDA, TorchScript, ``torch.compile``,
        sparse tensors).
      environment: variables that the tests want.
    """

    tests: str = ""
    installed: bool = False
    scenarios: str = ""
    missing: tuple[tuple[str, str], ...] = ()
    deselected: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


PARTS = (
    *("device1", "True-none", "True-space-time", "True-davie", "None-0.001", "determinism_large"),
    *("entropy_determinism", "normality_conditional", "test_consistency"),
)
METHODS = ("ito-milstein", "ito-srk", "stratonovich-midpoint", "stratonovich-reversible_heun")
TORCHSDE = (
    "-k",
    " and ".join(f"not {part}" for part in PARTS),
    "--deselect=tests/test_adjoint.py::test_basic[False",
    *(
        f"--deselect=tests/test_adjoint.py::test_against_numerical[False-{method}-None-{problem}]"
        for method in METHODS
        for problem in ("ExDiagonal", "ExScalar", "NeuralGeneral")
    ),
)
"""A sample: the whole takes minutes on either side."""

SUITES = {
    "opt_einsum": Suite("opt_einsum/tests"),
    "einops": Suite(
        "einops/tests",
        deselected=(
            "--deselect=einops/tests/test_layers.py::test_torch_layer",  # TorchScript
            "--deselect=einops/tests/test_ops.py::test_torch_compile_with_dynamic_shape",
        ),
        environment=(("EINOPS_TEST_BACKENDS", "numpy,torch"),),
    ),
    "tensorly": Suite(".", installed=True, environment=(("TENSORLY_BACKEND", "pytorch"),)),
    "higher": Suite(scenarios="higher_scenarios.py"),
    "linear_operator": Suite("test"),
    "gpytorch": Suite("test"),
    "botorch": Suite(scenarios="botorch_scenarios.py"),
    "torch-optimizer": Suite("tests"),
    "torchsde": Suite(
        "tests",
        missing=(("problems.py", "torchsde_problems.py"), ("utils.py", "torchsde_utils.py")),
        deselected=TORCHSDE,
    ),
    "torchquad": Suite("tests"),
    "torchdiffeq": Suite(scenarios="torchdiffeq_scenarios.py"),
    "samplers": Suite(scenarios="samplers_scenarios.py"),
}


def unpacked(place: Path, name: str) -> Path:
    """The folder of a library's source distribution."""
    found = sorted(place.glob(f"{name}-*/")) + sorted(place.glob(f"{name.replace('-', '_')}-*/"))
    if not found:
        sys.exit(f"{place} holds no source distribution of {name}")
    return found[-1]


def tests_of(name: str, place: Path) -> tuple[Path, Path]:
    """The folder to run in and the tests of a library."""
    suite = SUITES[name]
    if suite.installed:
        origin = (importlib.util.find_spec(name) or sys.exit(f"{name} is not installed")).origin
        return place, Path(str(origin)).parent / suite.tests
    if not suite.tests:
        return SCENARIOS, SCENARIOS / suite.scenarios
    folder = unpacked(place, name)
    for missing, own in suite.missing:
        (folder / suite.tests / missing).write_text((SCENARIOS / own).read_text())
        (folder / suite.tests / "__init__.py").touch()
    return folder, folder / suite.tests


def outcomes(
    name: str, place: Path, *, ours: bool, numbers: Path, arguments: list[str]
) -> dict[str, tuple[str, float, str]]:
    """How each test ended, its seconds, and the first line of a failure."""
    suite = SUITES[name]
    folder, tests = tests_of(name, place)
    root = HERE.parents[2]
    environment = {
        **os.environ,
        **dict(suite.environment),
        "PYTHONPATH": os.pathsep.join([str(folder), str(root)]),
        "FUNCTRANS_SCENARIOS": f"{'read' if ours else 'write'}:{numbers}",
        "OMP_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory() as kept:
        report = Path(kept) / "report.xml"
        command = [sys.executable, "-m"]
        command += ["functrans.compat.torch", "-m"] if ours else []
        command += ["pytest", str(tests), "-q", "-p", "no:cacheprovider", "-rN"]
        command += ["-c", os.devnull, f"--rootdir={folder}", f"--junitxml={report}"]
        command += [*suite.deselected, *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if not report.exists():
            sys.exit(f"{' '.join(command)}\n{(done.stdout + done.stderr)[-3000:]}")
        found = {}
        for case in ElementTree.parse(report).iter("testcase"):
            bad = [item for item in case if item.tag in {"failure", "error", "skipped"}]
            told = (bad[0].get("message") or "").strip().splitlines() if bad else []
            key = f"{case.get('classname')}::{case.get('name')}"
            seconds = float(case.get("time") or 0)
            found[key] = (bad[0].tag if bad else "passed", seconds, told[0][:150] if told else "")
        return found


def compared(name: str, place: Path, arguments: list[str]) -> None:
    """Run a suite on both sides and print what differs, and the row of the table."""
    with tempfile.TemporaryDirectory() as kept:
        theirs, ours = (
            outcomes(name, place, ours=side, numbers=Path(kept), arguments=arguments)
            for side in (False, True)
        )
    passed = [key for key, (outcome, _, _) in theirs.items() if outcome == "passed"]
    both = [key for key in passed if ours.get(key, ("", 0, ""))[0] == "passed"]
    for key in passed:
        outcome, _, told = ours.get(key, ("not found", 0, ""))
        if outcome != "passed":
            print(f"  {key}: {outcome}, {told}")
    there, here = (sum(side[key][1] for key in both) for side in (theirs, ours))
    ratio = f"{here / there:.1f}" if there > 1 else ""
    own = "" if name == "samplers" else version(name)
    print(f'["{name}", "{own}", {len(passed)}, {len(both)}, "{ratio}", ""]', flush=True)


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.beside_torch.libraries")
    parser.add_argument("place", type=Path)
    parser.add_argument("library", nargs="*", choices=[[], *SUITES], default=[])
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    arguments = ["-n", str(options.jobs)] if options.jobs > 1 else ["-p", "no:xdist"]
    for name in options.library or SUITES:
        compared(name, options.place.resolve(), arguments)


if __name__ == "__main__":
    main()
