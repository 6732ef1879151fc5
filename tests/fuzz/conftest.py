"""One process for the cases of all tests that leave it as they found it."""

from collections.abc import Iterator

import pytest

from .common import Sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A sandbox that is started once."""
    with Sandbox() as started:
        yield started
