"""Counts of what ran and what did not, for the runner's closing line: GLOVEBOX_TEST_REPORT names a
file to which each pytest session appends one JSON line."""

import json
import os


class Report:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            self.skipped.append((report.nodeid, str(report.longrepr[2] if isinstance(
                report.longrepr, tuple) else report.longrepr)))
        elif report.failed:
            self.failed.append(report.nodeid)
        elif report.when == "call":
            self.passed += 1

    def pytest_terminal_summary(self, terminalreporter):
        # Always said, also when there are none.
        terminalreporter.write_line(f"skipped: {len(self.skipped)}")
        for name, reason in self.skipped:
            terminalreporter.write_line(f"  {name}: {reason}")
        path = os.environ.get("GLOVEBOX_TEST_REPORT")
        if path:
            with open(path, "a", encoding="utf-8") as out:
                out.write(json.dumps({"passed": self.passed, "failed": self.failed,
                                      "skipped": self.skipped}) + "\n")
