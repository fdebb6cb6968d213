"""What each kind of master calls for, before anything is started."""

import sys

import pytest

from sim.studies.sweeps.spark_masters import MasterError, MissingDependencyError, check_spark_home, checked, settings

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
