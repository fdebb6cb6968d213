"""Errors that a user can correct have an exit code."""

import importlib
import pkgutil

import sim
from sim.app.cli.errors import Code, UserError
from sim.app.verbs.common import OptionError
from sim.model.text import PrintableError

OF_EXTRAS = ("spark", "app.verbs.explore")
"""Parts of the names of modules that an extra has the libraries of."""
# Errors of one part of a file or question: who reads the whole says where they stand.
PLACED_BY_THE_READER = {"MonitoringError", "NotRecordsError", "TraceError", "MeasureError"}


def subclasses(kind):
    for subclass in kind.__subclasses__():
        yield subclass
        yield from subclasses(subclass)


def test_every_error_for_users_has_an_exit_code():
    """A readable error without one would end as a mistake of ours, with a traceback."""
    for info in pkgutil.walk_packages(sim.__path__, "sim."):
        if not any(part in info.name for part in ("__main__", *OF_EXTRAS)):
            importlib.import_module(info.name)
    found = {
        error.__qualname__: getattr(error, "exit_code", None)
        for error in subclasses(PrintableError)
        if error.__module__.startswith("sim.") and not issubclass(error, UserError | OptionError)
    }

    assert set(PLACED_BY_THE_READER) == {name for name, code in found.items() if code is None}
    assert {Code.USAGE, Code.INVALID_INPUT, Code.CELLS_FAILED} == {Code(code) for code in found.values() if code}
