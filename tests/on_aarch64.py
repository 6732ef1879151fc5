"""``python -m tests.on_aarch64 PLACE``: the compiler's tests on an emulated 64-bit ARM processor.

Needs Debian, or a system made of it, on another processor, and a package index. Nothing is
installed, and no rights are needed. PLACE gets the emulator (``qemu-user``), a Python for ARM with
the libraries that it needs, unpacked from Debian's packages, the wheels of our requirements, and
the cache of machine code; what is there is used again. Processes that tests start are emulated too:
Python takes a script for its own executable. Everything takes twenty to thirty times as long as on
the processor itself.

What comes after PLACE goes to ``pytest``; without it, the tests that run machine code do.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent

TESTS = (
    "tests/compiler", "tests/emitter", "tests/kernels", "tests/sparsity", "tests/test_jit.py",
    "tests/test_jit_anew.py", "tests/test_jit_native.py", "tests/test_jit_of_grad.py",
    "tests/test_reroll.py", "tests/test_staged.py",
)  # fmt: skip

NOT_EMULATED = {
    "tests/compiler/test_engine.py::test_memory_is_flat_over_2000_cycles": (
        "the emulator keeps what it translated of code that was unloaded"
    ),
}
"""Tests that the emulator cannot pass, and why."""

PROCESSOR = "neoverse-n1"
"""What is emulated. Of the emulator's own, with all extensions, OpenBLAS takes those for matrices,
after which NumPy warns of divisions by zero in products of matrices."""

PACKAGES = ("python3", "libstdc++6")
"""Debian's packages; those that they need come with them."""


def run(*command: str | Path, cwd: Path | None = None) -> None:
    """Run a command, which must succeed."""
    print("$", shlex.join(map(str, command)), flush=True)
    subprocess.run(list(map(str, command)), cwd=cwd, check=True)


def emulator(place: Path) -> Path:
    """The program that emulates a processor: one that is there, or that of a package."""
    known = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if known:
        return Path(known)
    program = place / "emulator/usr/bin/qemu-aarch64-static"
    if not program.exists():
        run("apt-get", "download", "qemu-user-static", cwd=place)
        for package in place.glob("qemu-user-static_*.deb"):
            run("dpkg", "-x", package, place / "emulator")
    return program


def unpack_system(place: Path) -> None:
    """Unpack Debian's packages for ARM; the lists and archives of this system stay as they are."""
    for directory in ("apt/state/lists/partial", "apt/cache/archives/partial"):
        (place / directory).mkdir(parents=True, exist_ok=True)
    (place / "apt/status").touch()  # nothing is installed
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "Dir::State": place / "apt/state",
        "Dir::State::status": place / "apt/status",
        "Dir::Cache": place / "apt/cache",
    }
    apt = ["apt-get", "--yes", *(f"--option={name}={value}" for name, value in settings.items())]
    run(*apt, "update")
    run(*apt, "install", "--download-only", "--no-install-recommends", *PACKAGES)
    for package in sorted((place / "apt/cache/archives").glob("*.deb")):
        run("dpkg", "-x", package, place / "system")


def requirements() -> list[str]:
    """What functrans and its tests need, without functrans itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["test"], *extras["bfloat16"], *extras["threads"]]
    return [each for each in needed if not each.startswith("functrans")]


def install_wheels(python: Path) -> None:
    """Install wheels for ARM beside its Python."""
    version = python.name.removeprefix("python")
    platforms = [f"manylinux_2_{minor}_aarch64" for minor in range(36, 16, -1)]
    run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-compile"),
        *("--only-binary=:all:", "--implementation=cp", f"--python-version={version}"),
        *(f"--platform={name}" for name in (*platforms, "manylinux2014_aarch64")),
        *("--target", python.parents[1] / f"local/lib/{python.name}/dist-packages"),
        *requirements(),
    )


def emulated_python(place: Path) -> Path:
    """A script that runs Python in the emulator, made with all that it needs."""
    script = place / "system/usr/bin/python-emulated"
    if not script.exists():
        unpack_system(place)
        (python,) = (place / "system/usr/bin").glob("python3.*[0-9]")
        install_wheels(python)
        # Named by ``-0``, the script is what Python starts for a process of its own kind.
        command = [emulator(place), "-cpu", PROCESSOR, "-L", place / "system", "-0", script, python]
        script.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, command))} "$@"\n')
        script.chmod(0o755)
    return script


def main() -> int:
    """Make what is missing, run the tests, and return the status."""
    parser = argparse.ArgumentParser(prog="python -m tests.on_aarch64", description=__doc__)
    parser.add_argument("place", type=Path, help="a directory for all that is fetched")
    parser.add_argument("tests", nargs=argparse.REMAINDER, help="arguments of pytest")
    arguments = parser.parse_args()
    place = arguments.place.resolve()
    place.mkdir(parents=True, exist_ok=True)
    command = [str(emulated_python(place)), "-m", "pytest", "-n=0", "-o", "faulthandler_timeout=0"]
    command += ["-o", f"cache_dir={place / 'pytest'}"]
    command += [f"--deselect={name}" for name in NOT_EMULATED]
    environment = {**os.environ, "FUNCTRANS_CACHE_DIR": str(place / "programs")}
    tests = arguments.tests or list(TESTS)
    return subprocess.run([*command, *tests], cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
