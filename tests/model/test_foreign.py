"""Text that others wrote: addresses without credentials, and nothing that gets hold of a terminal."""

import time

import pytest

from sim.jobs.source.recorded_job import RecordingError
from sim.model.schema.text import Problem, ScenarioError
from sim.model.text import (
    MAX_LINE_LENGTH,
    MAX_QUOTE_CHARS,
    MAX_WORD_CHARS,
    Address,
    PrintableError,
    one_line,
    printable,
)

# Nothing that others wrote gets hold of a terminal, or fills it.


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u2066b\u200bc", "a\\u2066b\\u200bc"),
        ("a\x9bb", "a\\x9bb"),
        ("\x00", "\\x00"),
        ("a\ud800", "a\\ud800"),
        ("a\r\n\tb", "a b"),
        ("Grüße, 東京", "Grüße, 東京"),
        (7, "7"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text, printed):
    """Colours, bidi overrides, marks without width, half characters; letters of any language stay."""
    assert printed == one_line(text)


def test_lines_of_a_message_stay():
    assert printable("a: 1\nb: \x1b[2J") == "a: 1\nb: \\x1b[2J"
    assert printable("a\rb") == "a\\rb"


def test_names_are_shortened():
    """Beginning and end stay."""
    name = one_line("begin" + "x" * 4000)

    assert len(name) == 80
    assert name.startswith("beginxx")
    assert len(one_line("y" * 31, 30)) == 30
    assert one_line("y" * 30, 30) == "y" * 30


@pytest.mark.parametrize(
    ("text", "longest"),
    [
        ("key '" + "k " * 2000 + "' is unknown", MAX_QUOTE_CHARS + 17),
        ("at " + "k" * 4000 + "/x.yaml", MAX_WORD_CHARS + 3),
        ("many words " * 1000, MAX_LINE_LENGTH),
        ("'" * 100_000, MAX_WORD_CHARS),
    ],
)
def test_messages_are_shortened(text, longest):
    """What stands in quotes, a path, a line."""
    assert longest == len(printable(text))
    assert text[:3] == printable(text)[:3]


def test_prose_with_apostrophes_stays():
    """They are no quotes."""
    prose = "the job's barriers wait behind the operators' records, as Flink's do, " * 3 + "see 'x'"

    assert prose == printable(prose)


def test_a_megabyte_takes_no_time():
    begun = time.process_time()
    for text in ("'" * 10**6, "x" * 10**6, "' " * 10**6, "\x1b" * 10**6, "a 'b" * 10**6):
        printable(text)
        one_line(text)

    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    "error",
    [RecordingError("\x1b[31m"), PrintableError("\x1b[31m"), ScenarioError([Problem("f", 1, 1, "job.\x1b[31m", "x")])],
    ids=["reading", "any", "scenario"],
)
def test_errors_say_nothing_that_a_terminal_obeys(error):
    assert "\x1b" not in str(error)
    assert "\\x1b[31m" in str(error)


# The text of an address has no credentials; its url has them, for requests.


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://user:pass@host:8081/x?token=1", "http://host:8081/x"),
        ("https://us%40er:p@ss:w@host", "https://host"),
        ("http://[::1]:8081", "http://[::1]:8081"),
        ("http://host/a@b", "http://host/a@b"),
    ],
)
def test_the_text_of_an_address(url, text):
    assert (str(Address(url)), f"{Address(url)!r}", Address(url).url) == (text, f"Address({text!r})", url)
