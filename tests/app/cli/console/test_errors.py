"""The errors that say themselves what is wrong are named by where they live: a name that leads nowhere would be a traceback."""

import importlib
import pkgutil

import pytest

import sim
from sim.app.cli.errors import EXIT_CODES, Code, UserError
from sim.model.text import PrintableError


@pytest.mark.parametrize("name", EXIT_CODES)
def test_every_name_is_an_error(name):
    """The class stands where its name says."""
    module, _, kind = name.rpartition(".")
    error = getattr(importlib.import_module(module), kind)

    assert issubclass(error, Exception)
    assert name == f"{error.__module__}.{error.__qualname__}"
    assert EXIT_CODES[name] in set(Code)


# Errors of one part of a file or question: who reads the whole says where they stand.
PLACED_BY_THE_READER = {
    "MonitoringError",
    "NotRecordsError",
    "TraceError",
    "MeasureError",
    "WindowError",
}


def subclasses(kind):
    for subclass in kind.__subclasses__():
        yield subclass
        yield from subclasses(subclass)


def test_every_error_for_users_has_an_exit_code():
    """A readable error without one would end as a mistake of ours, with a traceback."""
    for info in pkgutil.walk_packages(sim.__path__, "sim."):
        if "__main__" not in info.name and "spark" not in info.name:
            importlib.import_module(info.name)
    readable = [error for error in subclasses(PrintableError) if error.__module__.startswith("sim.")]
    without = [
        error.__qualname__
        for error in readable
        if not issubclass(error, UserError)
        and not any(f"{kind.__module__}.{kind.__qualname__}" in EXIT_CODES for kind in error.__mro__)
    ]

    assert len(readable) > 5
    assert sorted(PLACED_BY_THE_READER) == sorted(without)
