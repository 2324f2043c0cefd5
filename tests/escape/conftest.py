import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import suite  # noqa: E402


@pytest.fixture(scope="session")
def world():
    with suite.outside() as variables:
        yield variables
