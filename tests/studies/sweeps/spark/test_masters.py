"""What each kind of master calls for, before anything is started."""

import socket
import subprocess
import sys
import time

import pytest

from sim.studies.sweeps import spark_masters
from sim.studies.sweeps import spark_session as room
from sim.studies.sweeps.spark_masters import MasterError, MissingDependencyError, check_spark_home, checked, settings
from sim.studies.sweeps.spark_session import context, reason

HADOOP = {"HADOOP_CONF_DIR": "/etc/hadoop"}
LOOPBACK = {"spark.driver.host", "spark.driver.bindAddress"}


@pytest.mark.parametrize(
    "master", ["local", "local[*]", "local[2,3]", "spark://127.0.0.1:7077", "spark://localhost:7077"]
)
def test_what_is_here_stays_on_loopback(master):
    """And runs this very Python, whatever else the environment names."""
    chosen = settings(master, {}, {"PYSPARK_PYTHON": "/other/python"})

    assert set(chosen.conf) >= LOOPBACK
    assert {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"} == dict(chosen.environment)


REMOTE = [
    "spark://head:7077",
    "spark://a:7077,b:7077",
    "spark://a:7,[fe80::2]:7",
    "yarn",
    "k8s://https://api:6443",
    "k8s://api",
]


@pytest.mark.parametrize("master", REMOTE)
def test_a_cluster_elsewhere_is_not_pinned(master):
    """Executors must be able to come back to the driver; our package is sent to them."""
    chosen = settings(master, {}, HADOOP)

    assert not LOOPBACK & set(chosen.conf)
    assert "SPARK_LOCAL_IP" not in chosen.environment
    assert chosen.sends


@pytest.mark.parametrize(
    ("master", "python"),
    [("spark://head:7077", sys.executable), ("yarn", sys.executable), ("k8s://https://api:6443", "python3")],
)
def test_executors_run_the_python_of_their_nodes(master, python):
    """The same path as here, that of an image on Kubernetes, or what the user says: by setting rather than by environment."""
    archive = {"spark.archives": "env.tar.gz#env", "spark.pyspark.python": "./env/bin/python"}

    assert python == settings(master, {}, HADOOP).environment["PYSPARK_PYTHON"]
    assert (
        settings(master, {}, HADOOP | {"PYSPARK_PYTHON": "/opt/python"}).environment["PYSPARK_PYTHON"] == "/opt/python"
    )
    assert (
        settings(master, archive, HADOOP | {"PYSPARK_PYTHON": "/opt/python"}).environment["PYSPARK_PYTHON"]
        == "./env/bin/python"
    )
    assert archive.items() <= settings(master, archive, HADOOP).conf.items()


def test_the_user_s_settings_win():
    chosen = settings("local[2]", {"spark.ui.enabled": "true", "spark.driver.host": "10.0.0.1"}, {})

    assert (chosen.conf["spark.ui.enabled"], chosen.conf["spark.driver.host"]) == ("true", "10.0.0.1")


def test_nothing_is_sent_to_itself():
    assert not settings("local[2]", {}, {}).sends
    assert settings("spark://127.0.0.1:7077", {}, {}).sends


@pytest.mark.parametrize(
    "master",
    [
        "",
        "locale",
        "local[2",
        "spark://head",
        "spark:/head:7077",
        "mesos://head:5050",
        "YARN",
        "spark://[::1",
        "spark://[::1:7077",
        "spark://[::::]:7077",
        "spark://[:7",
        "spark://a b:7",
        "spark://head:99999",
        "local[x]",
        "local[0]",
        "local[*,x]",
        "local[1\n]",
        "local-cluster[1,1]",
        "k8s://",
        "k8s://[::1",
        "spark://head:7077,[::1",
    ],
)
def test_a_master_nobody_knows(master):
    """Is told at once, not by Java after half a minute."""
    with pytest.raises(MasterError, match=r"--master: expected local\[\*\], spark://HOST:PORT, yarn or k8s://"):
        checked(master, ())


@pytest.mark.parametrize(
    "word",
    [
        "spark.executor.memory",
        "executor.memory=2g",
        "=2g",
        "",
        "spark.master=yarn",
        "spark.app.name=x",
        "spark.submit.deployMode=cluster",
    ],
)
def test_a_setting_that_cannot_be(word):
    with pytest.raises(MasterError, match=r"^--conf: "):
        checked("yarn", [word])


def test_values_may_hold_anything():
    assignments = ["spark.driver.extraJavaOptions=-Da=b -Dc=d", "spark.executorEnv.X="]

    assert checked("yarn", assignments) == {"spark.driver.extraJavaOptions": "-Da=b -Dc=d", "spark.executorEnv.X": ""}


def test_yarn_needs_the_cluster_s_configuration():
    with pytest.raises(MissingDependencyError, match="HADOOP_CONF_DIR"):
        settings("yarn", {}, {"HADOOP_CONF_DIR": ""})


@pytest.mark.parametrize(("there", "fits"), [("4.3.0", True), ("4.3.1", True), ("3.5.1", False), (None, True)])
def test_another_spark_is_told(tmp_path, there, fits):
    """On a cluster's machines SPARK_HOME often is set."""
    (tmp_path / "jars").mkdir()
    if there:
        (tmp_path / "jars" / f"spark-core_2.13-{there}.jar").touch()
    environment = {"SPARK_HOME": str(tmp_path)}

    if fits:
        check_spark_home(environment, "4.3.0")
    else:
        with pytest.raises(
            MissingDependencyError, match=rf"has Spark {there}, PySpark here is 4\.3\.0: unset it, or pip install"
        ):
            check_spark_home(environment, "4.3.0")
    check_spark_home({}, "4.3.0")


def fake_java(folder, version):
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2023-01-01' >&2\n")
    program.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def no_java(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(spark_masters.importlib.util, "find_spec", lambda name: None)


def test_no_java_is_one_line(tmp_path):
    """That says what to do, also without Java."""
    with pytest.raises(spark_masters.MissingDependencyError) as refused:
        spark_masters.prepare_java(tmp_path)

    assert "\n" not in str(refused.value)
    assert "--jobs" in str(refused.value)


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.21", "16"])
def test_an_old_java_is_none(version, tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", version)))

    with pytest.raises(spark_masters.MissingDependencyError):
        spark_masters.prepare_java(tmp_path)


def test_a_stale_java_home_does_not_win(tmp_path, monkeypatch):
    """Spark would take it before a good `java` on PATH."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'good', '17.0.15')}/bin:/usr/bin:/bin")

    spark_masters.prepare_java(tmp_path)

    assert "JAVA_HOME" not in spark_masters.os.environ


def test_the_shim_drops_one_argument(tmp_path):
    """Everything else arrives as it was, blanks included."""
    real = tmp_path / "real"
    real.write_text('#!/bin/sh\nfor argument; do echo "[$argument]"; done\n')
    real.chmod(0o755)

    home = spark_masters.shim(real, tmp_path / "home")
    command = [home / "bin" / "java", "-cp", "a b", "--add-modules=jdk.incubator.vector", "", "Main"]
    refused = subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True)

    assert refused.stdout.splitlines() == ["[-cp]", "[a b]", "[]", "[Main]"]


KUBERNETES = """\
An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: io.fabric8.kubernetes.client.KubernetesClientException: An error has occurred.
\tat io.fabric8.kubernetes.client.KubernetesClientException.launder(KubernetesClientException.java:134)
Caused by: java.io.IOException: Connection refused: /127.0.0.1:1
\tat io.fabric8.kubernetes.client.dsl.internal.OperationSupport.waitForResult(OperationSupport.java:504)
Caused by: java.net.ConnectException: Connection refused
"""
GATEWAY = "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number."
SUBMIT = 'WARNING: Using incubator modules\nException in thread "main" org.apache.spark.SparkException: No such image.\n\tat x.y(z)\n'
MASTERS = """\
26/11/21 09:37:03 ERROR StandaloneSchedulerBackend: Application has been killed. Reason: All masters are unresponsive! Giving up.
26/11/21 09:37:11 ERROR TransportResponseHandler: Still have 3 requests outstanding
"""
STOPPED = "An error occurred while calling None.x.\n: java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n"
PYTHON = """\
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "worker.py", line 1, in main
pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version.

"""


@pytest.mark.parametrize(
    ("log", "error", "why"),
    [
        ("", KUBERNETES, "Connection refused"),
        (SUBMIT, GATEWAY, "No such image."),
        (MASTERS, STOPPED, "All masters are unresponsive! Giving up."),
        ("", STOPPED, "Cannot call methods on a stopped SparkContext."),
        ("", PYTHON, "[PYTHON_VERSION_MISMATCH] Python in worker has different version."),
        ("some words\n", GATEWAY, GATEWAY),
        ("", "", "it does not say why"),
    ],
)
def test_the_line_that_says_why(log, error, why):
    """Among hundreds that do not."""
    assert why == reason(log, error)


@pytest.mark.usefixtures("pyspark")
def test_a_master_that_nobody_is_told_at_once(monkeypatch):
    """Spark would knock for minutes."""
    monkeypatch.setattr(room.spark_masters, "prepare_java", lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    begun = time.monotonic()

    with (
        pytest.raises(MissingDependencyError, match=rf"^no Spark at spark://127.0.0.1:{port}: Connection refused$"),
        context(f"spark://127.0.0.1:{port}"),
    ):
        pass

    assert time.monotonic() - begun < 10


def test_one_of_several_masters_is_enough():
    """The others stand by."""
    with socket.create_server(("127.0.0.1", 0)) as there, socket.create_server(("127.0.0.1", 0)) as gone:
        ports = gone.getsockname()[1], there.getsockname()[1]
        gone.close()

        with pytest.raises(MissingDependencyError):
            room._check_master_listens(f"spark://127.0.0.1:{ports[0]}")
        room._check_master_listens("spark://" + ",".join(f"127.0.0.1:{port}" for port in ports))
