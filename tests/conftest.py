"""Fixtures. `platform` runs for a whole session (one file of tests, see CMakeLists.txt); when the
session ends nothing of it may be left on the host."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "lib"))

from gbx import openapi  # noqa: E402
from gbx.platform import Platform  # noqa: E402
from gbx.report import Report  # noqa: E402


def pytest_configure(config):
    config.pluginmanager.register(Report(), "gbx-report")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    for name in ("platform", "own_platform"):
        platform = item.funcargs.get(name) if hasattr(item, "funcargs") else None
        if report.failed and platform is not None and not callable(platform):
            report.sections.append((f"logs of {name}", platform.logs()))


@pytest.fixture(scope="session")
def platform(request):
    """A module may set PLATFORM = {…}, arguments of Platform."""
    p = Platform(**getattr(request.node.items[0].module, "PLATFORM", {})).start()
    p.api.observer = openapi.Observer()
    yield p
    p.end_clean()
    faults = p.api.observer.faults
    assert not faults, "answers that docs/api/openapi.yaml does not describe:\n" + "\n".join(
        f"{where}: {fault}" for fault, where in faults.items())


@pytest.fixture(scope="session")
def api(platform):
    return platform.api


@pytest.fixture(scope="module")
def box(api):
    """A sandbox that the tests of one file share; for tests that leave nothing behind in it."""
    sandbox = api.create()
    yield sandbox
    sandbox.delete()


@pytest.fixture
def fresh(api):
    """A sandbox for one test."""
    sandbox = api.create()
    yield sandbox
    sandbox.delete()


@pytest.fixture
def own_platform():
    """A platform for one test that kills or configures it: own_platform(config=...)."""
    started = []

    def start(**kwargs):
        p = Platform(**kwargs).start()
        started.append(p)
        return p

    yield start
    for p in started:
        p.end_clean()
