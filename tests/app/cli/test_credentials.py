"""Credentials in an address stay out of all that is printed or kept, since reports are made to be sent."""

import pytest

from tests.conftest import FakeFlink
from tests.places import REST

SECRET = "s3cret-word"
SAVED = REST / "keeping-up.zip"


@pytest.fixture(scope="module")
def flink():
    fake = FakeFlink(SAVED)
    yield fake
    fake.server.shutdown()
    fake.server.server_close()


COMMANDS = {
    "report": "report URL -o out/report.html",
    "import": "import URL -o out/job.yaml --sample '0 s' --save out/saved",
    "explain": "explain URL --json",
    "watch": "watch URL --out out/watch --for '1 s' --sample '0 s'",
    "traces": "traces read 'URL/api/v1/query_range?query=rate(x[1m])&token=T0KEN' -o out/tables",
}


def found_in(folder):
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and any(word in path.read_bytes() for word in (SECRET.encode(), b"T0KEN"))
    ]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_password_in_the_address_is_neither_printed_nor_kept(ckptsim, tmp_path, flink, command, is_there):
    """Whether a JobManager answers there or nothing does."""
    (tmp_path / "out").mkdir()
    place = flink.url.partition("://")[2] if is_there else "127.0.0.1:9"
    done = ckptsim(COMMANDS[command].replace("URL", f"http://user:{SECRET}@{place}"))

    assert SECRET not in done.output + done.stderr
    assert "T0KEN" not in done.output + done.stderr
    assert found_in(tmp_path) == []
    if is_there and command != "traces":
        assert done.exit_code == 0, done.output
    elif not is_there:
        assert done.exit_code != 0
        assert place in done.stderr


FLINK = """\
flink:
  s3: {secret-key: s3cret-word and more}
  security.ssl.rest.keystore-password: "s3cret-word, or: another"
  fs.azure.account.key.of.blob.core.windows.net: s3cret-word
  execution.checkpointing.dir: s3://user:s3cret-word@bucket/x
  metrics.reporter.dd.apikey: s3cret-word
  env.java.opts.all: >
    -Dopen=yes
    -Dpassword=s3cret-word
  taskmanager.network.memory.overdraft: 3  # not secret
"""
SWEEP = "version: 1\nscenario: tiny.yaml\nvary: {checkpoint.interval: [1 s, 2 s]}\n"


@pytest.mark.parametrize(
    "command",
    [
        "run tiny.yaml --flink conf.yaml --out out",
        "run with-block.yaml --set flink.s3.access-key=s3cret-word --out out",
        "sweep sweep.yaml --set flink.s3.secret-key=s3cret-word --out out",
        "diff with-block.yaml with-block.yaml --set checkpoint.barriers=aligned --set-b checkpoint.interval='2 s' --out out",
    ],
)
def test_secrets_of_a_configuration_are_not_kept(ckptsim, tmp_path, tiny, command):
    """Not in the results, which can be explained and shown as before, nor in their page."""
    (tmp_path / "conf.yaml").write_text(FLINK.partition("\n")[2].replace("\n  ", "\n").lstrip())
    (tmp_path / "with-block.yaml").write_text(tiny.read_text() + FLINK)
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    done = ckptsim(f"{command} --jobs 1")
    assert done.exit_code == 0, done.stderr
    (tmp_path / "conf.yaml").unlink()
    (tmp_path / "with-block.yaml").unlink()

    assert SECRET not in done.output + done.stderr
    assert ckptsim("runs").exit_code == 0
    if "with-block" in command and command.startswith("run"):
        assert ckptsim("explain out --strategy aligned").exit_code == 0
        assert ckptsim("report out -o page.html").exit_code == 0
        assert "overdraft: 3" in (tmp_path / "out" / "scenario.yaml").read_text()
    assert found_in(tmp_path) == []
