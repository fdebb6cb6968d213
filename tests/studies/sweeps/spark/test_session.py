"""A Spark that does not start says why in one line, soon."""

import socket
import time

import pytest

from sim.studies.sweeps import spark_session as room
from sim.studies.sweeps.spark_masters import MissingDependencyError
from sim.studies.sweeps.spark_session import context, reason

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
