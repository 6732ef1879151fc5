"""What is declared is what is tested: lower bounds, extras, messages that name extras."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement  # comes with pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_lowest_versions_are_those_that_ci_installs() -> None:
    lines = (ROOT / ".ci/lowest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    extras = PROJECT["optional-dependencies"]
    declared = [*PROJECT["dependencies"], *extras["bfloat16"], *extras["test"]]
    for text in declared:
        requirement = Requirement(text)
        if requirement.name == "functrans":
            continue
        (bound,) = requirement.specifier
        assert bound.operator == ">="
        lowest = pinned.pop(requirement.name)
        assert f"{lowest}.0".startswith(f"{bound.version}."), (text, lowest)
    assert not pinned


def test_messages_name_extras_that_there_are() -> None:
    named = set()
    for path in (ROOT / "functrans").rglob("*.py"):
        named |= set(re.findall(r"functrans\[(\w+)\]", path.read_text(encoding="utf-8")))
    assert named
    assert named <= PROJECT["optional-dependencies"].keys()
