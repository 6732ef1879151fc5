"""What a report of a fault shows: ``ft.show_versions``."""

import re
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import functrans as ft


def _shown(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    ft.show_versions()
    lines = capsys.readouterr().out.splitlines()
    return {line[:21].rstrip(): line[21:] for line in lines}


def test_versions_are_those_that_are_installed(capsys: pytest.CaptureFixture[str]) -> None:
    shown = _shown(capsys)
    for package in ("numpy", "scipy", "numba", "llvmlite", "optree"):
        assert shown[package] == version(package)


def test_threads_and_settings_are_those_in_force(capsys: pytest.CaptureFixture[str]) -> None:
    before = ft.get_num_threads()
    try:
        ft.set_num_threads(3)
        with ft.config(safe_where=False):
            shown = _shown(capsys)
    finally:
        ft.set_num_threads(before)
    assert shown["threads"].startswith("3 of ")
    assert "safe_where=False" in shown["settings"]


def test_the_cache_is_named_with_its_size(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", str(tmp_path / "programs"))
    assert _shown(capsys)["cache"].startswith(f"{tmp_path / 'programs'}: 0 programs, 0.0 of")
    ft.jit(lambda x: np.sin(x) * 3.25 + x)(np.arange(3.0))
    found = re.fullmatch(r".*: (\d+) programs, .* MB", _shown(capsys)["cache"])
    assert found is not None
    assert int(found[1]) > 0
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", "off")
    assert _shown(capsys)["cache"] == "none"


def test_vector_instructions_are_those_of_the_target(capsys: pytest.CaptureFixture[str]) -> None:
    shown = _shown(capsys)
    assert re.search("sse|avx|neon|those of its kind|unknown", shown["vector instructions"])
    assert "crc32" not in shown["vector instructions"]
