"""Waiting for a condition of another process, always with a deadline."""

import time


def until(condition, within_s=10.0, what="condition", every_s=0.02):
    """Returns the first true value of condition(); AssertionError after within_s."""
    end = time.monotonic() + within_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {within_s} s: {what}")
        time.sleep(every_s)


class Stopwatch:
    def __init__(self):
        self.start = time.monotonic()

    @property
    def s(self):
        return time.monotonic() - self.start
