"""Spark contexts and sessions, with the package sent to the executors."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sim.studies.local import delayed_signals
from sim.studies.sweeps import spark_masters
from sim.studies.sweeps.spark_masters import PANDAS_WARNING, check_spark_home, is_here, settings

# ---- A Spark context for sweeps, or a session with tables for traces.
#
# Java is found first, the package is sent to the executors, and Spark prints nothing on the terminal.

ARCHIVE = "ckptsim"
"""Name of the unpacked package on executors."""
LOG_LEVEL = "spark.log.level"
"""Setting with which users ask for Spark's own messages."""
CONNECT_TIMEOUT_S = 10.0
"""Time limit for a connection to the master; Spark itself waits for more than a minute."""

MAX_CHARACTERS = 200
"""Maximum characters of Spark's message in an error."""

_LOCAL_DIR = "spark.local.dir"

_REASONS = (
    re.compile(r"Application has been killed\. Reason: (.+)"),
    re.compile(r'Exception in thread "main" [\w.$]+: (.+)'),
    re.compile(r"^(?!java|org\.)(?:\w+\.)*[A-Z]\w*(?:Error|Exception): (.+)", re.MULTILINE),  # of Python
    re.compile(r"^Caused by: [\w.$]+: (.+)", re.MULTILINE),
    re.compile(r"^: [\w.$]+: (.+)", re.MULTILINE),
    re.compile(r"^\S*(?:Error|Exception): (.+)", re.MULTILINE),
)
"""Patterns of lines with the reason why Spark does not start, most specific first."""


@contextmanager
def session(master: str, *, conf: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Yield a session, for tables; like `context`, but it takes 2 s more of CPU to load Spark SQL."""
    with context(master, "ckptsim traces", conf=conf):
        from pyspark.sql import SparkSession

        with _own_handler():
            spark = SparkSession.builder.getOrCreate()
        try:
            yield spark
        finally:
            with delayed_signals(), _silent_bridge(), suppress(Exception):
                spark.stop()


@contextmanager
def context(master: str, name: str = "ckptsim sweep", *, conf: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Yield a context that is stopped however the block ends.  `conf`: the user's settings, which win.

    MasterError: no such master.  MissingDependencyError: no Spark, no Java, or no answer of the master.
    """
    warnings.filterwarnings("ignore", message=PANDAS_WARNING)
    chosen = settings(master, conf or {}, os.environ)
    try:
        from pyspark import SparkConf, SparkContext, __version__
    except ImportError:
        raise spark_masters.MissingDependencyError(
            "Spark is not installed: pip install '.[spark]', or use --jobs N (traces: --master here), which needs none"
        ) from None
    check_spark_home(os.environ, __version__)
    _check_master_listens(master)
    os.environ.update(chosen.environment)
    spark_conf = SparkConf(loadDefaults=False).setMaster(master).setAppName(name).setAll(list(chosen.conf.items()))
    quiet = LOG_LEVEL not in chosen.conf
    with tempfile.TemporaryDirectory(prefix="ckptsim-staging-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)  # new executors fetch the package from it at any time
        spark_masters.prepare_java(folder)
        if _LOCAL_DIR not in chosen.conf and "SPARK_LOCAL_DIRS" not in os.environ and is_here(master):
            spark_conf.set(_LOCAL_DIR, str(folder))
        try:
            with _stderr_to(folder / "spark.log", quiet):
                with delayed_signals():  # an interrupted start would leave a Java process that never ends
                    SparkContext._ensure_initialized(conf=spark_conf)  # noqa: SLF001 - the first half of getOrCreate
                with _own_handler():
                    spark = SparkContext.getOrCreate(spark_conf)
        except Exception as error:  # noqa: BLE001 - Spark's own kinds, by way of Java
            log = (folder / "spark.log").read_text(errors="replace") if quiet else ""
            raise spark_masters.MissingDependencyError(f"no Spark at {master}: {reason(log, str(error))}") from None
        try:
            if quiet:
                spark.setLogLevel("OFF")  # our own messages report lost executors
            if chosen.sends:
                _send_package(spark, folder)
            yield spark
        finally:
            # a signal to the process group has ended Java before us
            with delayed_signals(), _silent_bridge(), suppress(Exception):
                spark.stop()


def reason(*texts: str) -> str:
    """Return the line of Spark's messages that has the reason."""
    for pattern in _REASONS:
        for text in texts:
            if matches := pattern.findall(text):
                return str(matches[-1]).strip()[:MAX_CHARACTERS]
    lines = (line.strip() for text in texts[::-1] for line in text.splitlines())
    return next((line[:MAX_CHARACTERS] for line in lines if line), "it does not say why")


def _check_master_listens(master: str) -> None:
    """Raise MissingDependencyError if the master of a standalone cluster does not listen."""
    if not master.startswith("spark://"):
        return
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
        except (OSError, OverflowError, UnicodeError) as error:  # also an impossible port or name
            why = getattr(error, "strerror", None) or str(error)
        else:
            return
    raise spark_masters.MissingDependencyError(f"no Spark at {master}: {why}")


@contextmanager
def _stderr_to(log: Path, quiet: bool) -> Iterator[None]:
    """Context that redirects stderr of child processes: Java prints before its log level can be set."""
    if not quiet:
        yield
        return
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        with log.open("wb") as stream:
            os.dup2(stream.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


@contextmanager
def _own_handler() -> Iterator[None]:
    """Context that restores the handler of Ctrl-C, which PySpark replaces."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


@contextmanager
def _silent_bridge() -> Iterator[None]:
    """Silence the logger of the bridge to Java, which prints a page per call if Java has ended."""
    logger = logging.getLogger("py4j")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _send_package(spark: Any, folder: Path) -> None:
    """Send the package as an archive that executors unpack, because the compiler's cache needs source files."""
    package = Path(__file__).parents[2]
    shutil.copytree(package, folder / "tree" / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    packed = shutil.make_archive(str(folder / ARCHIVE), "zip", folder / "tree")
    spark.addArchive(f"{packed}#{ARCHIVE}")
