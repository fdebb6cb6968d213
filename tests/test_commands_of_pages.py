"""Commands and programs that pages show: all are known, and those that stand by themselves are run, in the order of their page."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from benchmarks.lab.__main__ import app
from tests.app.cli.conftest import short_trials  # noqa: F401 - a fixture of these tests, too

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
TUTORIAL = ROOT / "docs" / "tutorial.md"
COMMAND = re.compile(r"^(?: {4})?((?:ckptsim|python -m benchmarks\.lab) .+)$", re.MULTILINE)
INLINE = re.compile(r"`((?:ckptsim|python -m benchmarks\.lab) [^`]+)`")
PROGRAM = re.compile(
    r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE
)  # those of CONTRIBUTING.md are indented: tests/test_adding.py

LIVE = "http://jobmanager:8081"
QUICKLY = {
    "import": ["--sample", "0 s"],
    "watch": ["--for", "1 s", "--sample", "0 s"],
    "advise": ["--replications", "1"],
}
"""Verb -> options that change only how long it takes."""
PLACEHOLDERS = {"FOLDER": "day.csv", "FILE": "first.yaml", "SWEEP.yaml": "sweep.yaml"}
NOT_HERE = {"--master yarn": "a YARN", "--master k8s": "a Kubernetes"}
"""Part of a command -> what it would need; tests/studies/sweeps/spark checks what those are told."""
ELSEWHERE = {"questions": "tests/test_questions_of_users.py runs each of its commands, and reads what they print"}
"""Page -> why its commands are not run here."""


def commands(path: Path) -> list[str]:
    """The commands of a page that stand on lines of their own; what is printed is none."""
    return COMMAND.findall(re.sub(r"```(?!sh)\w*\n.*?```", "", path.read_text(), flags=re.DOTALL))


def arguments_of(line: str) -> list[str]:
    return shlex.split(line.replace("python -m benchmarks.lab", "ckptsim"), comments=True)[1:]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_verbs_and_options_are_known(path):
    """Those of every command of a page, in running text as well."""
    unknown = []
    for line in [*commands(path), *INLINE.findall(path.read_text())]:
        command, (verb, *rest) = get_command(app), arguments_of(line)
        while hasattr(command, "commands") and verb in command.commands:
            command = command.commands[verb]
            verb, *rest = [*rest, ""]
        options = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}
        if hasattr(command, "commands") and verb and not verb.startswith("-"):
            unknown.append(line)
        unknown += [
            f"{line}: {word}"
            for word in [verb, *rest]
            if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in options
        ]

    assert unknown == []


RUN = [path for path in PAGES if path.stem not in ELSEWHERE and (commands(path) or PROGRAM.search(path.read_text()))]


@pytest.mark.slow
@pytest.mark.usefixtures("short_trials")
@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_commands_do_what_the_page_says(path, tmp_path, monkeypatch, fake_flink):
    """In a folder where examples are written, next to the scenarios of a checkout; a JobManager answers."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    for example in ("first", "day", "sweep"):
        call(["init", example])
    for example in ("first", "day", "sweep"):  # a page that writes them itself finds none
        if f"ckptsim init {example}" in path.read_text():
            for file in tmp_path.glob(f"{example}*"):
                file.unlink()
    if "pressed.zip" in path.read_text():
        call(
            [
                "import",
                fake_flink().url,
                "--sample",
                "0 s",
                "--no-backtest",
                "--save",
                "pressed.zip",
                "-o",
                "pressed.yaml",
            ]
        )
    for line in commands(path):
        if any(part in line for part in NOT_HERE) or (
            path == PAGES[0] and "advise" in line and line in commands(TUTORIAL)
        ):
            continue  # what the tutorial advises is not asked again
        arguments = [fake_flink().url if word == LIVE else PLACEHOLDERS.get(word, word) for word in arguments_of(line)]
        if arguments[0] == "traces" and shutil.which("java") is None:
            pytest.skip("needs Java")
        call([*arguments, *QUICKLY.get(arguments[0], [])])
    (tmp_path / "runs").mkdir(exist_ok=True)
    for program in PROGRAM.findall(path.read_text()):
        exec(compile(program, path.name, "exec"), {})


def call(arguments: list[str]) -> None:
    if arguments[0] == "traces":  # a JVM stays in the folder where it was started: each command has its own
        done = subprocess.run(
            [sys.executable, "-m", "sim", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert done.returncode == 0, f"{shlex.join(arguments)}: {done.returncode}\n{done.stderr}"
        return
    done = CliRunner().invoke(app, arguments, prog_name="ckptsim")
    assert done.exit_code in {0, 1}, f"{shlex.join(arguments)}: {done.exit_code}\n{done.output}"
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
