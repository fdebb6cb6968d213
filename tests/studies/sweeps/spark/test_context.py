"""A context of Spark: what it is told, what it prints, and that it stops however its block ends."""

import logging
import os
import signal
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from sim.studies.sweeps import spark_session as room
from sim.studies.sweeps.spark_masters import MissingDependencyError
from sim.studies.sweeps.spark_session import context, session

REMOTE = "spark://head:7077"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """No Java is looked for, every master listens, and temporary folders are made here."""
    monkeypatch.setattr(room.spark_masters, "prepare_java", lambda folder: None)
    monkeypatch.setattr(room, "_check_master_listens", lambda master: None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("SPARK_LOCAL_DIRS", "SPARK_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return tmp_path


def test_a_context_of_this_machine(pyspark, place):
    """It is silent, works in a folder of its own, and nothing is sent to itself."""
    with context("local[2]", "a name", conf={"spark.x": "y"}) as spark:
        assert tuple(spark.conf[key] for key in ("spark.master", "spark.app.name", "spark.x")) == (
            "local[2]",
            "a name",
            "y",
        )
        (folder,) = place.iterdir()
        assert str(folder) == spark.conf["spark.local.dir"]
        assert spark.calls == [("setLogLevel", "OFF")]

    assert spark.calls == [("setLogLevel", "OFF"), ("stop",)]
    assert list(place.iterdir()) == []


def test_a_block_that_fails_stops_its_context(pyspark):
    with pytest.raises(KeyboardInterrupt), context("local") as spark:
        raise KeyboardInterrupt

    assert spark.calls[-1] == ("stop",)


def test_a_context_that_cannot_be_stopped_is_gone_already(pyspark):
    """A signal to all processes has ended Java before us."""

    stops = []

    def gone():
        stops.append("stop")
        raise ConnectionRefusedError

    with context("local") as spark:
        spark.stop = gone

    assert stops == ["stop"]


def test_a_cluster_gets_our_package(pyspark, place):
    """Its sources, without what was compiled from them; the executors' disks are its own affair."""
    with context(REMOTE) as spark:
        ((_, archive),) = [call for call in spark.calls if call[0] == "addArchive"]
        path, _, name = archive.partition("#")
        names = zipfile.ZipFile(path).namelist()
        assert name == "ckptsim"
        assert {"sim/__init__.py", "sim/studies/sweeps/spark_task.py"} <= set(names)
        assert not [name for name in names if "__pycache__" in name]
        assert "spark.local.dir" not in spark.conf


@pytest.mark.parametrize("way", ["setting", "environment"])
def test_a_folder_that_the_user_names_is_used(pyspark, monkeypatch, way):
    if way == "environment":
        monkeypatch.setenv("SPARK_LOCAL_DIRS", "/disk")
    with context("local", conf={"spark.local.dir": "/disk"} if way == "setting" else None) as spark:
        assert ("/disk" if way == "setting" else None) == spark.conf.get("spark.local.dir")


def test_a_user_who_asks_for_messages_sees_them(pyspark, capfd):
    """Else what Java says at its start goes to a file, and nothing is said later."""
    pyspark.start = lambda conf: os.system("echo noise >&2")
    with context("local", conf={"spark.log.level": "INFO"}) as spark:
        assert spark.calls == []
    assert capfd.readouterr().err == "noise\n"
    with context("local"):
        pass
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("noise", "error", "why"),
    [
        ("x: Application has been killed. Reason: no cores", "Cannot call methods", "no cores"),
        ("", "java.io.IOException: no route", "no route"),
    ],
)
def test_a_spark_that_does_not_start_says_why(pyspark, noise, error, why):
    """The reason stands among what Java has printed, or in the error."""

    def start(conf):
        os.system(f"echo '{noise}' >&2")
        raise RuntimeError(error)

    pyspark.start = start
    with pytest.raises(MissingDependencyError, match=f"^no Spark at local: {why}$"), context("local"):
        pass


def test_without_spark_there_is_a_way_that_needs_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingDependencyError, match=r"^Spark is not installed: .* or use --jobs N"), context("local"):
        pass


def test_another_spark_in_its_home_is_refused_before_it_starts(pyspark, monkeypatch, tmp_path):
    (tmp_path / "home" / "jars").mkdir(parents=True)
    (tmp_path / "home" / "jars" / "spark-core_2.13-3.5.1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "home"))

    with pytest.raises(MissingDependencyError, match=r"has Spark 3\.5\.1, PySpark here is 4\.1\.0"), context("local"):
        pass
    assert pyspark.contexts == []


def test_the_environment_of_the_driver_is_set_before_it_starts(pyspark, monkeypatch):
    seen = []
    pyspark.start = lambda conf: seen.append((room.os.environ["PYSPARK_PYTHON"], room.os.environ["SPARK_LOCAL_IP"]))
    with context("local"):
        pass

    assert [(sys.executable, "127.0.0.1")] == seen


def test_ctrl_c_stays_ours(pyspark):
    """PySpark puts a handler of its own in its place."""
    ours = signal.getsignal(signal.SIGINT)
    real = pyspark.SparkContext.getOrCreate

    def replacing(conf):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return real(conf)

    pyspark.SparkContext.getOrCreate = replacing
    with context("local"):
        assert ours == signal.getsignal(signal.SIGINT)


def test_only_the_main_thread_has_handlers(pyspark):
    """Elsewhere there is nothing to put back, and Python would refuse."""
    stopped = []

    def work():
        with room._own_handler():
            pass
        stopped.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert stopped == [True]


def test_the_bridge_to_java_is_silent_while_it_ends():
    """It prints a page for every call to a Java that is gone; later it speaks as before."""
    logger = logging.getLogger("py4j")
    before = logger.level
    with room._silent_bridge():
        assert not logger.isEnabledFor(logging.CRITICAL)

    assert before == logger.level


def test_a_session_is_of_the_same_context_and_both_stop(pyspark, monkeypatch):
    with session("local") as tables:
        assert pyspark.contexts[0].conf["spark.app.name"] == "ckptsim traces"

    assert (tables.calls, pyspark.contexts[0].calls[-1]) == ([("stop",)], ("stop",))


def fail_noisily():
    os.system("echo noise >&2")
    raise RuntimeError


def test_what_java_prints_does_not_follow_a_failure(tmp_path, capfd):
    """Messages of a block that fails stand in the log, those after it on the terminal."""
    with pytest.raises(RuntimeError), room._stderr_to(tmp_path / "log", quiet=True):
        fail_noisily()
    os.system("echo ours >&2")

    assert (Path(tmp_path / "log").read_text(), capfd.readouterr().err) == ("noise\n", "ours\n")
