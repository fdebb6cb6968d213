"""Every command on a terminal of 80 columns and in a pipe: tables are whole, no word is broken, and a pipe gets no escape codes."""

import fcntl
import os
import pty
import re
import shlex
import struct
import sys
import termios

import pytest
from typer.testing import CliRunner

from sim.app.cli import app
from tests.places import ROOT

WIDTH = 80
RECORDING = ROOT / "tests/data/users-jobs/J2-count-aligned.zip"
ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\].*?(\x07|\x1b\\))")
FRAMES = re.compile(r"[\s│─━╭╮╰╯╷╵╶╴╸╺┃┏┓┗┛]+")
JOB = """\
# Does a job whose vertices have long names, and which fails, fit a narrow terminal, and what does it leave in storage?
version: 1
job:
  orders-of-all-customers: {source: {rate: 400/s, record: 400 B}, parallelism: 2}
  aggregate-by-customer-and-region: {input: {orders-of-all-customers: hash}, service: 1 ms, state: {size: 2 MB}, parallelism: 2}
  sink: {input: {aggregate-by-customer-and-region: hash}, service: 1 ms, commit: two-phase, parallelism: 2}
checkpoint: {interval: 1 s, num-retained: 2, barriers: [aligned, unaligned, {aligned-timeout: 100 ms}]}
actions: [{savepoint: canonical, at: 2500 ms}]
faults: [{kill: sink, at: 3500 ms}]
run: {duration: 6 s}
"""
SWEEP = """\
# Which interval and which barriers are good for a job with long names?
version: 1
scenario: job.yaml
vary: {checkpoint.interval: [1 s, 2 s], checkpoint.barriers: [aligned, unaligned]}
answer:
  settings: [checkpoint.interval, checkpoint.barriers]
  show: [end_to_end_p99_ms, delay_mean_s, persisted_bytes]
  least: delay_mean_s
  against: {checkpoint.interval: 1 s, checkpoint.barriers: aligned}
"""
RUN = "run job.yaml --jobs 1 --out run"
READ = "traces read day.csv --time t_s --value rate -o tables --master here"
VERBS = [verb.name for verb in app.registered_commands]
COMMANDS = [
    "init",
    RUN,
    "explain run",
    "timeline run -o timeline.html",
    "report run -o report.html",
    "diff job.yaml job.yaml --set checkpoint.barriers=aligned --set-b run.seed=2 --replications 1",
    "diff job.yaml job.yaml --strategy aligned --set-b 'checkpoint.interval=9 s' --replications 1 --jobs 1",
    "sweep sweep.yaml --jobs 1 --out sweep",
    "advise job.yaml --set checkpoint.barriers=aligned --p99 '1 s' --budget '1 ms' --jobs 1 --out advice",
    f"import {RECORDING} --no-backtest -o imported.yaml",
    f"validate {RECORDING} --seeds 1 --jobs 1",
    READ,
    "traces windows tables --length '10 s' --master here",
    "explain-key storage.dfs.slow",
    "explain-key rocksdb",
    "check job.yaml sweep.yaml",
    "runs",
    "schema --results",
    "run nothing-of-this-name-is-here-because-somebody-mistyped-the-name-of-a-scenario-file.yaml",
    "run job.yaml --set checkpoint.barriers=unalined --set job.sink.service=fast --out run",
    "--help",
    *(f"{verb} --help" for verb in VERBS),
    "traces read --help",
    "traces windows --help",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, short_trials):
    place = tmp_path_factory.mktemp("narrow")
    (place / "job.yaml").write_text(JOB)
    (place / "sweep.yaml").write_text(SWEEP)
    (place / "day.csv").write_text("t_s,rate\n" + "".join(f"{k},{1000 + 10 * (k % 7)}\n" for k in range(60)))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for command in (RUN, READ):  # other commands read what these leave, in whichever process they run
            assert CliRunner().invoke(app, command, prog_name="ckptsim").exit_code == 0
    return place


def on_a_terminal(arguments):
    """(exit code, everything screen) in a forked process whose terminal is 80 columns wide."""
    child, terminal = pty.fork()
    if child == 0:
        code = 70
        try:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
            for name in ("COLUMNS", "LINES", "NO_COLOR"):
                os.environ.pop(name, None)
            os.environ["TERM"] = "xterm-256color"
            sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 - not those of pytest
            app(arguments, prog_name="ckptsim")
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 70
        finally:
            sys.stdout.flush()
            os._exit(code)
    screen = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            part = b""
        if not part:
            break
        screen += part
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), ESCAPES.sub("", screen.decode())


def split(text):
    return [word for word in FRAMES.split(text) if word]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[:40])
def test_a_command_fits_80_columns_and_a_pipe(folder, monkeypatch, command):
    """What stands in the pipe stands on the terminal, word by word, or in columns that are named as not shown."""
    monkeypatch.chdir(folder)
    piped = CliRunner().invoke(app, command, prog_name="ckptsim")
    code, screen = on_a_terminal(shlex.split(command))
    # a bar draws its line again and again
    lines = [line for part in screen.split("\n") for line in part.rstrip("\r").split("\r")]

    assert piped.exit_code == code, screen
    assert (3 if "mistyped" in command or "unalined" in command else 0) == code, screen
    assert "\x1b" not in piped.stdout + piped.stderr
    assert [line for line in lines if len(line.rstrip()) > WIDTH and " " in line.strip()] == []
    words = set(split(screen))
    assert "Not shown:" in screen or [word for word in dict.fromkeys(split(piped.stdout)) if word not in words] == []
    assert "…" not in screen
