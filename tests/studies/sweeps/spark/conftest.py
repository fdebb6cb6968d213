"""Spark as far as our driver calls it, without Java: contexts note what is asked of them, and tasks run where they are sent from."""

import sys
from types import ModuleType, SimpleNamespace

import pytest


class PythonException(Exception):
    """What PySpark raises where a worker's Python failed."""


class Conf:
    """The settings of a context."""

    def __init__(self, loadDefaults):
        self.defaults, self.settings = loadDefaults, {}

    def setMaster(self, master):
        return self.setAll([("spark.master", master)])

    def setAppName(self, name):
        return self.setAll([("spark.app.name", name)])

    def setAll(self, pairs):
        self.settings.update(pairs)
        return self

    def set(self, key, value):
        return self.setAll([(key, value)])


class Lines:
    """An accumulator."""

    def __init__(self, value):
        self.value = value

    def add(self, lines):
        self.value.extend(lines)


class Java:
    """The Java side of a context: its executors, and whether it runs."""

    def __init__(self):
        self.members, self.local, self.stopped, self.looks = 1, False, False, 0

    def sc(self):
        return self

    def isLocal(self):
        self.looks += 1
        return self.local

    def isStopped(self):
        return self.stopped

    def getExecutorMemoryStatus(self):
        return SimpleNamespace(size=lambda: self.members)


class Context:
    """A context of `slots` slots.  `calls`: what was asked of it; `jobs`: the tasks of each job, by their items."""

    def __init__(self, slots=2):
        self.defaultParallelism, self._jsc = slots, Java()
        self.calls, self.jobs, self.descriptions = [], [], []

    def accumulator(self, zero, merge):
        return Lines(merge.zero(zero))

    def broadcast(self, value):
        self.calls.append(("broadcast", value))
        return SimpleNamespace(value=value)

    def setJobDescription(self, text):
        self.descriptions.append(text)

    def parallelize(self, items, count):
        self.jobs.append((len(items), count))
        return SimpleNamespace(
            mapPartitions=lambda run: SimpleNamespace(collect=lambda: [list(run(iter([item]))) for item in items])
        )

    def __getattr__(self, name):
        return lambda *arguments: self.calls.append((name, *arguments))


@pytest.fixture
def pyspark(monkeypatch):
    """Its modules.  `contexts`: those that were started; `attempt`: that of all tasks; `start`: called before a context is there."""
    library = ModuleType("pyspark")
    library.__version__ = "4.1.0"
    library.contexts, library.attempt, library.start = [], 0, lambda conf: None
    library.by_value = []
    library.cloudpickle = SimpleNamespace(register_pickle_by_value=library.by_value.append)
    library.TaskContext = SimpleNamespace(get=lambda: SimpleNamespace(attemptNumber=lambda: library.attempt))
    library.SparkFiles = SimpleNamespace(get=lambda name: name)
    library.SparkConf = Conf

    def context_of(conf):
        library.contexts.append(Context())
        library.contexts[-1].conf = conf.settings
        return library.contexts[-1]

    def initialized(conf):
        library.start(conf)

    library.SparkContext = SimpleNamespace(_ensure_initialized=initialized, getOrCreate=context_of)
    errors, sql = ModuleType("pyspark.errors"), ModuleType("pyspark.sql")
    errors.PythonException = PythonException
    sql.SparkSession = SimpleNamespace(builder=SimpleNamespace(getOrCreate=Context))
    for name, module in (("pyspark", library), ("pyspark.errors", errors), ("pyspark.sql", sql)):
        monkeypatch.setitem(sys.modules, name, module)
    return library
