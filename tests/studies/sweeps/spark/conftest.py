"""Spark as far as our driver calls it, without Java: contexts note what is asked of them, and tasks run where they are sent from."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from sim.studies.plan import CellPlan, SeededScenarios
from sim.studies.sweeps.packed_cells import unpack


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


class Rows:
    """An accumulator."""

    def __init__(self, value):
        self.value = value

    def add(self, rows):
        self.value.extend(rows)


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


class Future:
    """A job, which may end by an error."""

    def __init__(self, ends):
        self.error, self.ends, self.looks = None, ends, 0

    def isDone(self):
        self.looks += 1
        return self.ends

    def get(self):
        if self.error:
            raise self.error


class Context:
    """A context of `slots` slots.  `calls`: what was asked of it; `jobs`: the ids of cells in each task of each job.

    Tasks run as they are sent, by `work`, which gets the function of the task, what it is applied to, and the ids of its cells.
    `jobs_end`: whether their job has ended then.
    """

    jobs_end = True

    def __init__(self, slots=2, work=lambda run, task, names: list(run(iter([task])))):
        self.defaultParallelism, self._jsc, self.work = slots, Java(), work
        self.calls, self.jobs, self.descriptions, self.futures = [], [], [], []

    def accumulator(self, zero, merge):
        self.sent = Rows(merge.zero(zero))
        return self.sent

    def broadcast(self, value):
        self.calls.append(("broadcast", value))
        return SimpleNamespace(value=value)

    def setJobDescription(self, text):
        self.descriptions.append(text)

    def parallelize(self, tasks, count):
        assert len(tasks) == count
        return SimpleNamespace(
            mapPartitions=lambda run: SimpleNamespace(
                _jrdd=SimpleNamespace(collectAsync=lambda: self.collect(run, tasks))
            )
        )

    def collect(self, run, tasks):
        self.jobs.append([[cell.id for cell in unpack(task, {})] for task in tasks])
        self.futures.append(Future(self.jobs_end))
        for task, names in zip(tasks, self.jobs[-1], strict=True):
            try:
                self.work(run, task, names)
            except RuntimeError as error:
                self.futures[-1].error = error
        return self.futures[-1]

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


def plan_of(names, *scenarios, of=None):
    """A plan of cells with these ids.  `of`: the index of each cell's scenario, by default that of the first."""
    of = np.zeros(len(names), dtype=np.int64) if of is None else np.array(of, dtype=np.int64)
    ids, seeds = np.array(list(names), dtype="S20"), np.arange(len(names))
    return CellPlan(SeededScenarios(scenarios, of, seeds), seeds, seeds * 0, ids, ids)
