"""The settings and environment that a Spark master needs, for driver and executors.  Nothing is started here.

Executors need Python and the packages (numpy, llvmlite, pyarrow).  That may be the same virtual environment on all nodes, or an archive of
one (`--conf spark.archives=env.tar.gz#env --conf spark.pyspark.python=./env/bin/python`), or an image on Kubernetes.  Our own
package is sent to them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sim.sweeps.spark.java import MissingDependencyError

NOT_YET = "PySpark does not yet fully support pandas"
_PYTHON = "spark.pyspark.python"
_ALWAYS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",  # overwrites our progress bar
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",  # hides errors
    "spark.executorEnv.PYTHONWARNINGS": f"ignore:{NOT_YET}:FutureWarning",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
}
# Left alone Spark prefers an interface that may not be reachable.
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_HOST, _COUNT = r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])", r" *[1-9]\d{0,8} *"
_MASTERS = re.compile(
    rf"local(\[(\*|{_COUNT})(,{_COUNT})?\])?|local-cluster\[{_COUNT},{_COUNT},{_COUNT}\]|yarn"
    rf"|spark://{_HOST}:\d+(,{_HOST}:\d+)*|k8s://(https?://)?{_HOST}(:\d+)?(/\S*)?",
    re.ASCII,
)
_CORE = re.compile(r"-(\d[\w.]*)\.jar$")
_OURS = {"spark.master": "--master says it", "spark.app.name": "the name is ours"}


class MasterError(ValueError):
    """No such master, or an impossible setting; one line."""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """The settings of a Spark session.

    `conf`: for the session.  `environment`: for the driver, before it starts.  `sends`: whether executors get our package from us.
    """

    conf: Mapping[str, str]
    environment: Mapping[str, str]
    sends: bool


def checked(master: str, assignments: Iterable[str]) -> dict[str, str]:
    """Check the master and parse ``KEY=VALUE`` (as in `spark-submit --conf`), before anything starts."""
    if not (_MASTERS.fullmatch(master) and all(map(_is_place, master.split(",") if "://" in master else ()))):
        raise MasterError(f"--master: expected local[*], spark://HOST:PORT, yarn or k8s://https://HOST:PORT, not '{master}'")
    found = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not (equals and key.startswith("spark.")):
            raise MasterError(f"--conf: expected spark.KEY=VALUE, not '{assignment}'")
        if key in _OURS:
            raise MasterError(f"--conf: {key} cannot be set: {_OURS[key]}")
        if (key, value) == ("spark.submit.deployMode", "cluster"):
            raise MasterError("--conf: the driver runs here, where the rows are kept: spark.submit.deployMode has to be client")
        found[key] = value
    return found


def settings(master: str, own: Mapping[str, str], environment: Mapping[str, str]) -> SparkSettings:
    """The settings for a master.  `own`: the user's settings, which win; `environment`: the user's variables."""
    checked(master, ())
    if master == "yarn" and not (environment.get("HADOOP_CONF_DIR") or environment.get("YARN_CONF_DIR")):
        raise MissingDependencyError("--master yarn: set HADOOP_CONF_DIR or YARN_CONF_DIR to the folder of the cluster's configuration")
    here = is_here(master)
    variables = {"PYSPARK_PYTHON": _python(master, own, environment, here=here)}
    if here:
        variables["SPARK_LOCAL_IP"] = environment.get("SPARK_LOCAL_IP", "127.0.0.1")
    return SparkSettings({**_ALWAYS, **(_LOOPBACK if here else {}), **own}, variables, sends=not master.startswith("local"))


def must_fit(environment: Mapping[str, str], version: str) -> None:
    """MissingDependencyError: SPARK_HOME holds another version than this PySpark, which would fail in a hundred lines."""
    home = environment.get("SPARK_HOME")
    cores = [match[1] for jar in Path(home, "jars").glob("spark-core_*.jar") if (match := _CORE.search(jar.name))] if home else []
    found = next(iter(cores), None)
    if found and found.split(".")[:2] != version.split(".")[:2]:
        raise MissingDependencyError(
            f"SPARK_HOME={home} has Spark {found}, PySpark here is {version}: unset it, or pip install pyspark=={found}"
        )


def _is_place(address: str) -> bool:
    """Whether an address has a valid port, and a valid host in its brackets."""
    place = address.removeprefix("k8s://")
    try:
        return urlsplit(place if "//" in place else f"//{place}").port != 0
    except ValueError:
        return False


def is_here(master: str) -> bool:
    """Whether all runs on this machine, so that nothing must be reachable from others."""
    return master.startswith("local") or urlsplit(master.partition(",")[0]).hostname in ("127.0.0.1", "localhost", "::1")


def _python(master: str, own: Mapping[str, str], environment: Mapping[str, str], *, here: bool) -> str:
    """The Python of executors.  PySpark reads it from its own environment and ignores the setting."""
    if _PYTHON in own:
        return own[_PYTHON]
    if here:
        return sys.executable  # else workers use any `python3` on PATH
    return environment.get("PYSPARK_PYTHON") or ("python3" if master.startswith("k8s") else sys.executable)
