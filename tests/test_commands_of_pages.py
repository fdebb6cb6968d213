"""Commands and programs that pages show: all are known, and those that stand by themselves are run, in the order of their page."""

import os
import re
import shlex
import shutil

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from benchmarks.lab.__main__ import app
from tests.app.cli.conftest import short_trials  # noqa: F401 - a fixture of these tests, too
from tests.places import ROOT
from tests.processes import run_python

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
FOLDERS = [f"tests/data/{name}" for name in ("recordings", "held-out", "users-jobs", "scaling")]
"""Each with dozens of recordings: a command that has others, too, does without them here, and with them nightly."""
NOT_HERE = {"--master spark://": "a cluster", "--master yarn": "a YARN", "--master k8s": "a Kubernetes"}
"""Part of a command -> what it would need; tests/studies/sweeps/spark checks what those are told."""
ELSEWHERE = {"questions": "tests/test_questions_of_users.py runs each of its commands, and reads what they print"}
"""Page -> why its commands are not run here."""


def commands(path):
    """The commands of a page that stand on lines of their own; what is printed is none."""
    return COMMAND.findall(re.sub(r"```(?!sh)\w*\n.*?```", "", path.read_text(), flags=re.DOTALL))


def arguments_of(line):
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


EXCERPTS = ("tutorial", "why", "your-day")
"""Pages whose printed excerpts are compared with what their commands print."""


def excerpts(text: str) -> list[str]:
    """The lines that a page shows as printed: of fenced blocks without a language, and indented ones that are no commands."""
    fenced = re.findall(r"^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    indented = [line for line in re.findall(r"^ {4}(\S.*)$", rest, re.MULTILINE) if not line.startswith("ckptsim ")]
    return [line for line in [*"\n".join(fenced).splitlines(), *indented] if line.strip()]


def is_printed(line: str, printed: str) -> bool:
    """Whether a line of an excerpt is in a text: its cells in one line and in order, columns may be left out; prose may end with ..."""
    cells = [cell for cell in re.split(r" {2,}", line.strip().removesuffix("...").strip()) if cell]
    if len(cells) == 1:
        return cells[0] in " ".join(printed.split())
    return re.search(r"^ *" + r" {2,}.*?".join(map(re.escape, cells)), printed, re.MULTILINE) is not None


def test_an_excerpt_that_is_not_printed_is_found():
    """The check of excerpts can fail: another number, another order."""
    printed = "strategy   n    p50  async\naligned   10  5.8 s  31 ms\n\nIt waits for\ndata.\n"

    assert all(is_printed(line, printed) for line in ("aligned   10    31 ms", "It waits for ...", "waits for data."))
    assert not any(
        is_printed(line, printed) for line in ("aligned  10  5.9 s", "aligned  31 ms  10", "It waits for barriers")
    )


@pytest.mark.slow
@pytest.mark.nightly
def test_all_recordings_are_explained():
    call(["validate", "--explain", *(str(ROOT / folder) for folder in FOLDERS)])


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
    printed = ""
    for line in commands(path):
        if any(part in line for part in NOT_HERE) or (
            path == PAGES[0] and "advise" in line and line in commands(TUTORIAL)
        ):
            continue  # what the tutorial advises is not asked again
        arguments = [fake_flink().url if word == LIVE else PLACEHOLDERS.get(word, word) for word in arguments_of(line)]
        arguments = [word for word in arguments if word not in FOLDERS] if len(arguments) > 3 else arguments
        if arguments[0] == "traces" and shutil.which("java") is None:
            pytest.skip("needs Java")
        printed += call([*arguments, *QUICKLY.get(arguments[0], [])])
    if path.stem in EXCERPTS:
        assert [line for line in excerpts(path.read_text()) if not is_printed(line, printed)] == []
    (tmp_path / "runs").mkdir(exist_ok=True)
    for program in PROGRAM.findall(path.read_text()):
        exec(compile(program, path.name, "exec"), {})


def call(arguments):
    if arguments[0] == "traces":  # a JVM stays in the folder where it was started: each command has its own
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = run_python("-m", "sim", *arguments, cwd=None, env=environment)
        assert done.returncode == 0, f"{shlex.join(arguments)}: {done.returncode}\n{done.stderr}"
        return done.stdout + done.stderr
    done = CliRunner().invoke(app, arguments, prog_name="ckptsim")
    assert done.exit_code in {0, 1}, f"{shlex.join(arguments)}: {done.exit_code}\n{done.output}"
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.output
