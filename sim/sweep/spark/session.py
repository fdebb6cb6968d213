"""A Spark session for sweeps: Java found first, the package sent to the executors, nothing of Spark's own on the terminal."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sim.sweep import java

__all__ = ["ARCHIVE", "session"]

ARCHIVE = "ckptsim"
"""Under this name executors find the package, unpacked."""

_NOT_YET = "PySpark does not yet fully support pandas"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",  # writes over our bar
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",  # hides errors
    "spark.executorEnv.PYTHONWARNINGS": f"ignore:{_NOT_YET}:FutureWarning",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
}
# Left alone Spark prefers an interface that may not be reachable.
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


@contextmanager
def session(master: str, name: str = "ckptsim sweep") -> Iterator[Any]:
    """A session that is stopped whatever happens.  MissingDependencyError: no Spark, no Java, or no master that answers."""
    warnings.filterwarnings("ignore", message=_NOT_YET)
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise java.MissingDependencyError("Spark is not installed: pip install '.[spark]', or use --jobs N, which needs none") from None
    java.prepare()
    here = _is_here(master)
    if here:
        os.environ["PYSPARK_PYTHON"] = sys.executable  # else workers take whatever `python3` is on PATH
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # what the cluster's nodes have may have another path
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in (_SETTINGS | (_LOOPBACK if here else {})).items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:  # noqa: BLE001 - Spark's own kinds, by way of Java
        raise java.MissingDependencyError(f"no Spark at {master}: {str(error).strip().splitlines()[0][:200]}") from None
    spark.sparkContext.setLogLevel("OFF")  # a lost executor is our story to tell
    try:
        with tempfile.TemporaryDirectory(prefix="ckptsim-") as folder:  # executors come for the package as long as there are new ones
            if not master.startswith("local"):
                _send_package(spark, Path(folder))
            yield spark
    finally:
        spark.stop()


def _is_here(master: str) -> bool:
    return master.startswith("local") or urlsplit(master).hostname in ("127.0.0.1", "localhost", "::1")


def _send_package(spark: Any, folder: Path) -> None:
    """As an archive that executors unpack: the compiler keeps its results beside sources it can read."""
    package = Path(__file__).parents[2]
    shutil.copytree(package, folder / "tree" / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    packed = shutil.make_archive(str(folder / ARCHIVE), "zip", folder / "tree")
    spark.sparkContext.addArchive(f"{packed}#{ARCHIVE}")
