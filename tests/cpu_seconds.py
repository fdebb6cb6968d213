"""What the suite costs: CPU seconds by file and by test, with those of child processes, printed at the end of a run."""

import os
from collections import Counter

import pytest

ROWS = 10
SLOW_S = 20.0
"""A test that costs more CPU seconds than this is named while the suite runs."""

START = pytest.StashKey[float]()
COST = Counter()


_added = [0.0]


def add(seconds):
    """Count what another process spent on the test that runs, of which this one only hears."""
    _added[0] += seconds


def cpu_seconds():
    """CPU seconds of this process, of the children it has waited for, and what was added."""
    return sum(os.times()[:4]) + _added[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """Fixtures belong to the test that needs them first."""
    item.stash[START] = cpu_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    """The cost travels in the report of the last phase, so that it reaches the main process of a parallel run."""
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu_seconds", round(cpu_seconds() - item.stash[START], 3)))


class Costs:
    """Collects the costs in the main process."""

    def __init__(self, config):
        self.config = config

    def pytest_runtest_logreport(self, report):
        cost = dict(report.user_properties).get("cpu_seconds", 0.0) if report.when == "teardown" else 0.0
        COST[report.nodeid] += cost
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if cost > SLOW_S and terminal is not None:
            terminal.write_line(f"  {cost:.0f} CPU s: {report.nodeid}")


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Costs(config), "cpu-costs")


def pytest_terminal_summary(terminalreporter):
    """The total, and what most of it went into."""
    if COST.total() < SLOW_S:
        return
    files = Counter()
    folders = Counter()
    for test, seconds in COST.items():
        file = test.partition("::")[0]
        files[file] += seconds
        folders[file.rpartition("/")[0]] += seconds
    terminalreporter.section("CPU seconds")
    terminalreporter.write_line(
        f"{COST.total():.0f} in all, those of child processes included; without collection and imports"
    )
    for name, seconds in folders.most_common(ROWS) + files.most_common(ROWS) + COST.most_common(ROWS):
        terminalreporter.write_line(f"{seconds:7.1f}  {name}")
