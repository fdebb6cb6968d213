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
