"""The page of supported functions: what it says is what is there, and there is enough of it."""

import importlib.util
import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
DATA = json.loads((DOCS / "support.json").read_text(encoding="utf-8"))["modules"]


def _script(name: str):
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _count(prefix: str) -> int:
    counts = _script("generate").tested_derivatives(DATA)
    return sum(number for path, number in counts.items() if path.startswith(prefix))


def test_at_least_400_functions_have_tested_derivatives() -> None:
    """Names of different functions, each called by a case that is compared with differences."""
    assert _count("numpy") >= 380
    assert _count("scipy") >= 330
    core = ("numpy", "numpy.linalg", "numpy.fft")
    assert sum(_script("generate").tested_derivatives({p: DATA[p] for p in core}).values()) >= 250


def test_what_is_measured_is_up_to_date() -> None:
    """Functions that the installed NumPy or SciPy does not have are left out."""
    pytest.importorskip("scipy")
    measure = _script("measure_support")
    names = {}
    for path, listed in DATA.items():
        there = set(measure.public_names(path))
        names[path] = [name for name in listed if name in there]
    found = measure.found(names)
    for path, facts in found.items():
        for name, one in facts.items():
            expected = DATA[path][name]
            assert one == expected, f"{path}.{name}: run python docs/measure_support.py"


def test_every_supported_function_of_the_core_has_a_case() -> None:
    """Of those that compute with arrays; the rest makes, reads or asks about arrays."""
    without = {
        name
        for path in ("numpy", "numpy.linalg", "numpy.fft")
        for name, facts in DATA[path].items()
        if facts["status"] == "traced"
        and not any(facts.get(field) for field in ("forward", "reverse", "discrete"))
    }
    makes = (
        "arange empty empty_like eye fftfreq rfftfreq fromfunction full identity indices ones tri"
    )
    reads = "frombuffer fromfile fromiter fromstring genfromtxt loadtxt"
    asks = """asarray_chkfinite can_cast common_type einsum_path iscomplexobj isrealobj
    may_share_memory ndim require result_type shape shares_memory size"""
    assert without <= set(f"{makes} {reads} {asks}".split())


def test_reasons_name_what_is_missing() -> None:
    """No pattern of the reasons is out of date."""
    import fnmatch

    reasons = json.loads((DOCS / "support_reasons.json").read_text(encoding="utf-8"))
    for path, groups in reasons.items():
        missing = [name for name, facts in DATA[path].items() if facts["status"] == "missing"]
        for patterns in groups.values():
            for pattern in patterns:
                assert fnmatch.filter(missing, pattern), f"{path}: {pattern}"
