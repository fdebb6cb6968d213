"""The words of the house: names are nouns of the field, docstrings say what a value is, sentences are short."""

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

from docs.house import ROOT
from tests.sentences import long_sentences

PLACES = ("sim", "tests", "benchmarks")
"""What the rules hold for."""

# Words that stand for anything, hence for nothing.  Word -> the kind of name that says what the value is.
BANNED = {
    "told": "what it holds: stat, report, answer, record",
    "tells": "the same",
    "said": "the same",
    "say": "what is done: report, print_line, write",
    "one": "the noun: task, checkpoint, entry, row",
    "some": "the noun in the plural, or what they have in common",
    "many": "the number and its noun: task_count, max_restarts",
    "much": "the number and its unit: wait_ns",
    "more": "the noun: further_commands, new_events, extra_bytes",
    "each": "the noun: per_task, task",
    "whole": "what is complete: full_path, all_rows, complete",
    "asked": "what was wanted of whom: request, requested_seeds, options",
    "wanted": "the same: requested, selected, required",
    "held": "what is kept and where: kept, stored, blocked, locked",
    "taken": "what was used, read or chosen: used, consumed, position",
    "tries": "attempts, trials",
    "beside": "what stands next to what: neighbour, join_observed_predicted",
    "elsewhere": "the other place: remote, other_file",
    "outside": "whose: events of the environment, foreign_files",
    "shown": "printed, visible, columns",
    "words": "arguments, tokens, terms, message",
    "legs": "segments, hops",
    "journeys": "latencies, record paths",
    "thing": "the noun",
    "things": "the noun",
    "stuff": "the noun",
}

# (room, name) -> why this name is a noun of the field there.
NOUNS = {
    ("sim/plane", "HELD"): "a state of a task in the written rules: the control plane holds it",
    ("sim/plane", "held"): "between hold and release, two verbs of the written rules (E4)",
    ("sim/plane", "taken"): "an offset of the written rules (B2) and a column of the table of channels",
    ("sim/plane", "words"): "words of memory: the compiled world is one array of them",
    ("benchmarks", "taken"): "bytes taken from a channel, as the plane's table of channels counts them",
}

TWICE = {
    "ImportedJob": "the one of `import sim` is that of the verb, with what notebooks do beside it",
}
"""Public classes of `sim` that share a name -> why."""


class Finding(NamedTuple):
    """A place where a rule is broken."""

    room: str
    line: str  # file:line
    text: str

    def __str__(self):
        return f"{self.line}: {self.text}"


def sources() -> Iterator[Path]:
    for place in PLACES:
        yield from sorted((ROOT / place).rglob("*.py"))


def room(path: Path) -> str:
    """`sim/protocol` of sim/protocol/barriers/aligned.py, `sim` of sim/units.py."""
    folders = path.relative_to(ROOT).parts[:-1]
    return "/".join(folders[:2])


parsed = lru_cache(maxsize=1)(ast.parse)
"""The rules ask for the same file, one after the other: also for its nodes, docstrings and comments."""


@lru_cache(maxsize=1)
def nodes(source: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(source)))


def banned_names(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of every variable, argument, attribute, function and class that is called by a banned word."""
    for node in nodes(source):
        for name in _bound(node):
            if name.strip("_").lower() in BANNED:
                yield getattr(node, "lineno", 0), name


def _bound(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.alias(asname=str(name)):
            return [name]
    return []


def openings(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of docstrings that begin in the middle of a phrase: "Of every task; most write none"."""
    for line, text in docstrings(source):
        if re.match(r"(Of|The same of)\b", text):
            yield line, text.splitlines()[0]


def answers_without_subject(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of docstrings that begin with a special case or a pronoun: "None: nothing is known", "Its share of the state"."""
    for line, text in docstrings(source):
        if re.match(r"(None:|Empty:|Its\b|It is\b|Those\b)", text):
            yield line, text.splitlines()[0]


def nobodies(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of comments and docstrings in which a component has no noun."""
    for line, text in [*docstrings(source), *comments(source)]:
        if word := re.search(r"\b(nobody|somebody|someone|everybody|everyone|anybody|whoever)\b", text, re.IGNORECASE):
            yield line, word.group()


def nameless_classes(source: str) -> Iterator[tuple[int, str]]:
    """(line, name) of classes whose docstring does not say what they are: there is none, or it begins with an argument."""
    for node in nodes(source):
        if isinstance(node, ast.ClassDef) and re.match(r"$|`|None\b", ast.get_docstring(node) or ""):
            yield node.lineno, node.name


def sentences(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of sentences in docstrings and comments that are too long."""
    for line, text in [*docstrings(source), *comments(source)]:
        yield from ((line, sentence) for sentence in long_sentences(text))


@lru_cache(maxsize=1)
def docstrings(source: str) -> tuple[tuple[int, str], ...]:
    """(line, text) of docstrings, also of those below a constant."""
    constants = [node for node in nodes(source) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    return tuple((node.lineno, inspect.cleandoc(node.value.value)) for node in constants if isinstance(node.value.value, str))


@lru_cache(maxsize=1)
def comments(source: str) -> tuple[tuple[int, str], ...]:
    """(line, text) of comments; lines of comment that follow each other are one text."""
    return tuple(_comments(source))


def _comments(source: str) -> Iterator[tuple[int, str]]:
    begun, text = 0, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        remark = token.string.lstrip("#").strip()
        if not remark or re.match(r"-{3,}|ruff:|noqa|fmt:|type:|mypy:|!", remark):
            continue
        line, column = token.start
        alone = not token.line[:column].strip()
        if alone and text and line == begun + text.count("\n") + 1:
            text += "\n" + remark
            continue
        if text:
            yield begun, text
        begun, text = (line, remark) if alone else (0, "")
        if not alone:
            yield line, remark
    if text:
        yield begun, text


RULES: dict[str, Callable[[str], Iterator[tuple[int, str]]]] = {
    "names": banned_names,
    "openings": openings,
    "sentences": sentences,
}
OF_THE_SIMULATOR = {"subjects": answers_without_subject, "nobodies": nobodies, "nameless classes": nameless_classes}
"""Rules that hold for `sim` alone: tests speak of people, and their classes are small."""


def findings(rule: str) -> list[Finding]:
    """Every place where the rule is broken, exceptions apart."""
    return [finding for finding in _all_findings()[rule] if (finding.room, finding.text) not in NOUNS]


@cache
def _all_findings() -> dict[str, list[Finding]]:
    """By rule.  Every file is read and parsed once."""
    found: dict[str, list[Finding]] = {rule: [] for rule in RULES | OF_THE_SIMULATOR}
    for path in sources():
        file, source = path.relative_to(ROOT), path.read_text()
        for rule, broken_in in (RULES | OF_THE_SIMULATOR if file.parts[0] == "sim" else RULES).items():
            found[rule] += [Finding(room(path), f"{file}:{line}", text) for line, text in broken_in(source)]
        if path.stem in BANNED:
            found["names"].append(Finding(room(path), f"{file}:1", path.stem))
    return found


@pytest.mark.parametrize("rule", RULES | OF_THE_SIMULATOR)
def test_every_room_keeps_the_rule(rule):
    """Names, openings and sentences."""
    broken = [str(finding) for finding in findings(rule)]

    assert [] == broken, "tests/test_plain_words.py says why, and which kind of name is better"


def classes() -> dict[str, list[Path]]:
    """Public class -> the files of `sim` that define it."""
    found: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "sim").rglob("*.py")):
        for node in ast.walk(parsed(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(path.relative_to(ROOT))
    return found


def meanings(files: list[Path]) -> set[str]:
    """Files whose classes of one name mean one thing count once.

    A section of a scenario file is named like the value of the model that it becomes.  Both engines of the data plane have a channel,
    a gate and a task.
    """
    alike = {"sim/model": "scenario", "sim/scenario": "scenario", "sim/plane/kernel": "engine", "sim/plane/reference": "engine"}
    return {next((group for folder, group in alike.items() if file.is_relative_to(folder)), str(file)) for file in files}


def test_a_class_name_has_one_meaning():
    """A name that two rooms define is two things to learn, and one of them is looked up in vain."""
    twice = {name: list(map(str, files)) for name, files in classes().items() if len(meanings(files)) > 1}

    assert {} == {name: files for name, files in twice.items() if name not in TWICE}, "choose another name, or say why in TWICE"
    assert set() == set(TWICE) - set(twice), "exceptions that are in use no longer"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["sim/model/job.py", "sim/scenario/job/document.py"], 1),
        (["sim/plane/kernel/rows.py", "sim/plane/reference/parts.py"], 1),
        (["sim/model/job.py", "sim/plane/seam/spec.py"], 2),
        (["sim/history/path.py", "sim/metrics/path.py"], 2),
    ],
)
def test_rooms_that_share_their_nouns(files, expected):
    """The document and the model, the two engines; no others."""
    assert expected == len(meanings([Path(file) for file in files]))


def test_every_exception_is_in_use():
    """An exception is dropped with its last use."""
    used = {(finding.room, finding.text) for finding in _all_findings()["names"]}

    assert set() == set(NOUNS) - used


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("one = 1", [(1, "one")]),
        ("for _told in (): pass", [(1, "_told")]),
        ("def say(words): ...", [(1, "say"), (1, "words")]),
        ("class Held:\n    whole: int = 0", [(1, "Held"), (2, "whole")]),
        ("self.taken = asked", [(1, "taken")]),
        ("import numbers as some", [(1, "some")]),
        ("[task for task in told]; one_second = 1; row.held", []),
    ],
)
def test_a_banned_word_is_found_wherever_a_name_is_bound(source, expected):
    """Uses count once, where the name is made; a name that only contains the word is fine."""
    assert expected == sorted(banned_names(source))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('def f():\n    """Of every task; most write none."""', [2]),
        ('"""The same of a rate."""', [1]),
        ('"""Official sources; often none."""', []),
    ],
)
def test_a_docstring_begins_with_its_subject(source, expected):
    """A docstring is a sentence or a noun phrase of its own."""
    assert expected == [line for line, _ in openings(source)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("None: it is empty.", 1), ("Its share of the keys.", 1), ("It is durable.", 1), ("The share of the keys; None: it has none.", 0)],
)
def test_a_docstring_names_what_it_is_about(text, expected):
    """Special cases come second."""
    assert expected == len(list(answers_without_subject(f'"""{text}"""')))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("class Queue: ...", [(1, "Queue")]),
        ('class Queue:\n    """`size`: in bytes."""', [(1, "Queue")]),
        ('class Queue:\n    """None: it is empty."""', [(1, "Queue")]),
        ('class Queue:\n    """The queue of a channel.  `size`: in bytes."""', []),
    ],
)
def test_a_class_says_what_it_is(source, expected):
    """Arguments come second."""
    assert expected == list(nameless_classes(source))


@pytest.mark.parametrize(
    ("source", "expected"), [("# Nobody reads it", [(1, "Nobody")]), ('"""It has no readers."""', []), ("nobody = 1", [])]
)
def test_a_component_has_a_noun(source, expected):
    """Comments and docstrings only."""
    assert expected == list(nobodies(source))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f'"""{"word " * 31}."""', [1]),
        (f'"""{"word " * 30}. {"word " * 30}."""', []),
        (f'"""A `{"word " * 30}`."""', []),
        (f"# {'word ' * 16}\n# {'word ' * 15}", [1]),
        (f"# {'word ' * 16}.\n# {'word ' * 15}", []),
        (f"a = 1  # {'word ' * 16}\nb = 2  # {'word ' * 15}", []),
        (f"a = 1  # {'word ' * 31}", [1]),
        (f'"""Code:\n\n    {"word " * 31}\n| {"word " * 31}\n"""', []),
        (f'"""A list:\n- {"word " * 30}\n- {"word " * 30}\n"""', []),
        (f'"""A list:\n- {"word " * 31}\n"""', [1]),
    ],
)
def test_sentences_have_at_most_thirty_words(source, expected):
    """Comments over several lines are one text; code and tables are none; an item of a list stands by itself."""
    assert expected == [line for line, _ in sentences(source)]
