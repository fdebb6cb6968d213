"""docs/questions.md: each question has an address and a command, and its answers are what the command prints."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from sim.app.cli import app

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "questions.md"
QUICK = 3
"""So many of the first questions are answered in each run of the tests, the others in the slow one."""


class Question(NamedTuple):
    """A question of the page."""

    title: str
    addresses: list[str]
    commands: list[str]
    answers: list[str]


def questions(page: str) -> list[Question]:
    parts = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    return [
        Question(
            part.partition("\n")[0],
            re.findall(r"\]\((https://[^)]+)\)", part),
            re.findall(r"^ {4}ckptsim (.+)$", part, re.MULTILINE),
            re.findall(r"^> (.+)$", part, re.MULTILINE),
        )
        for part in parts
    ]


ALL = questions(PAGE.read_text())


def answered(question: Question, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The answers that the command does not print."""
    (folder / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    (command,) = question.commands
    printed = " ".join(CliRunner().invoke(app, shlex.split(command), prog_name="ckptsim").stdout.split())
    return [answer for answer in question.answers if answer not in printed]


def test_there_are_fifteen_with_an_address_a_command_and_an_answer():
    """They are numbered, and each was asked somewhere."""
    assert [f"{number}." for number in range(1, 16)] == [question.title.partition(" ")[0] for question in ALL]
    assert [
        question.title
        for question in ALL
        if not question.addresses or len(question.commands) != 1 or not question.answers
    ] == []


@pytest.mark.parametrize("question", ALL[:QUICK], ids=lambda question: question.title.partition(".")[0])
def test_an_answer_is_what_the_command_prints(question, tmp_path, monkeypatch):
    assert answered(question, tmp_path, monkeypatch) == []


@pytest.mark.slow
@pytest.mark.parametrize("question", ALL[QUICK:], ids=lambda question: question.title.partition(".")[0])
def test_the_other_answers_are_what_their_commands_print(question, tmp_path, monkeypatch):
    assert answered(question, tmp_path, monkeypatch) == []


def test_an_answer_that_is_not_printed_is_found(tmp_path, monkeypatch):
    """The check of this page can fail."""
    wrong = ALL[0]._replace(answers=["unaligned checkpoints take 59 ms"])

    assert answered(wrong, tmp_path, monkeypatch) == ["unaligned checkpoints take 59 ms"]
