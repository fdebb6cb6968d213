"""Every number in the sentences of `explain` comes from the tables of the run, what lay in its channels, and its files."""

import re
from itertools import groupby

import pytest

from sim.explain.close_up import rerun_with_observers
from sim.explain.explanation import NoCheckpointError, accounts, sentence
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.model.units import format_duration
from sim.results.formats import bytes_text, ms_text, share_text
from sim.storage.ledger import FileId
from tests.studies.comparison.sentence_numbers import numbers
from tests.worlds.generator import FOLDER, text

QUICK_SEEDS = range(700, 706)
SLOW_SEEDS, NIGHTLY_SEEDS = range(1000, 1040), range(1000, 1200)
NAMES = re.compile(
    r"savepoint \d+|(?<!\S)(?![kMGT]?B/s)\S*/\S*[\w.]|\w+\[\d+\]|node \d+"
    r"|\([^()]*(?:aligned|at-least-once)[^()]*\)|given up after \S+ \S+ \([^()]*\)"
)
"""Files, subtasks, nodes, strategies and reasons of failures: they hold digits, and no quantity."""


def numbers_of(account, instance, tables):
    """All numbers that a sentence about this checkpoint may have, as texts."""
    rows = tables["path"][tables["path"]["id"] == account.number]
    rows = rows[rows["x_job"] == account.job] if "x_job" in rows else rows
    rows = rows[~rows["acknowledged"].astype(bool)]
    kinds = rows[["part", "vertex", "index", "upstream"]].astype(str).agg("|".join, axis="columns")
    spent = [
        sum(ns for _, ns in group)
        for _, group in groupby(zip(kinds, rows["duration"], strict=True), key=lambda pair: pair[0])
    ]
    total = int(rows["duration"].sum())
    found = {ms_text(ns / 1e6) for ns in (*spent, total)} | {share_text(ns / max(1, total)) for ns in spent}
    sizes = []
    for (number, _), channels in instance.queued.items():
        if number == account.number:
            sizes += [int(size) for row in channels for size in (*row, row.sum())] + [
                int(size) for size in channels.sum(axis=0)
            ]
            sizes += [int(channels.sum())]
    subtasks = instance.context.stats[account.number].subtasks
    sizes += [row.persisted_bytes for row in subtasks.values()] + [
        sum(row.persisted_bytes for row in subtasks.values())
    ]
    files = []
    parts = instance.path_finder().of(account.number).parts
    for (_, task, _), alike in groupby(parts, key=lambda part: (part.kind, part.task, part.channel)):
        stored = [instance.context.storage.files[FileId(part.file)] for part in alike if part.file >= 0]
        files.append([file.size_bytes for file in stored])
        sizes += [*files[-1], sum(files[-1])]
        anew = instance.compacted(account.number, task)  # tables of RocksDB that a compaction wrote anew
        sizes.append(sum(file.size_bytes for file in stored if str(file.name[-1]) in anew))
    groups = [list(members) for members in _groups(instance)]  # subtasks that share a file of channel state
    sizes += [sum(row.persisted_bytes for task in members if (row := subtasks.get(task))) for members in groups]
    found |= {str(len(members)) for members in groups}
    found |= {bytes_text(size) for size in sizes}
    found |= {f"{bytes_text(size * 10**9 / ns)}/s" for size in sizes for ns in spent if ns}
    found |= {str(len(own)) for own in files}
    scenario = instance.context.scenario
    timeout_ns = scenario.checkpoint.barriers.timeout_ns
    found |= {format_duration(timeout_ns)} if timeout_ns else set()
    slow = getattr(scenario.storage.options, "slow", None)
    found |= {f"{scenario.storage.slow_factor:g}"} | ({f"{slow.factor:g}"} if slow is not None else set())
    if slow is not None and slow.trace is not None:
        found |= {f"{float(factor):.3g}" for machine in slow.trace.machines for _, factor in machine}
    found |= {format_duration(vertex.window.fire_ns) for vertex in scenario.job.vertices if vertex.window is not None}
    found |= {
        str(max(0, before - after)) for before in instance.waiting.values() for after in instance.waiting.values()
    }
    return found


def _groups(instance):
    group = instance.path_finder().graph.groups
    return [[task for task, own in enumerate(group) if own == number] for number in set(group)]


def missing(account, instance, tables, line):
    plain = NAMES.sub("NAME", line)
    return [
        number for number in numbers(plain, [account.strategy]) if number not in numbers_of(account, instance, tables)
    ]


def hold(seeds):
    found, count = {}, 0
    for seed in seeds:
        try:
            run = rerun_with_observers(loads(text(seed), folder=FOLDER).scenarios[0])
            explained = accounts("it", run)
        except (NoCheckpointError, ScenarioError):  # there is nothing to explain
            continue
        for account in explained:
            line = sentence(account)
            count += len(numbers(NAMES.sub("NAME", line)))
            if lost := missing(account, run.instances[account.job], run.result.tables, line):
                found[seed] = (line, lost)
    return found, count


def test_numbers_of_sentences_come_from_tables():
    found, count = hold(QUICK_SEEDS)

    assert found == {}
    assert count >= 4 * len(QUICK_SEEDS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds", [SLOW_SEEDS, pytest.param(NIGHTLY_SEEDS, marks=pytest.mark.nightly)], ids=lambda seeds: str(len(seeds))
)
def test_numbers_of_the_sentences_of_many_worlds_come_from_tables(seeds):
    assert hold(seeds)[0] == {}


def test_a_number_that_is_changed_is_missed():
    changed = caught = 0
    for seed in QUICK_SEEDS[:4]:
        run = rerun_with_observers(loads(text(seed), folder=FOLDER).scenarios[0])
        for account in accounts("it", run):
            line = sentence(account)
            for match in re.finditer(r"(?<![\w./\[])\d+(?:\.\d+)?(?= (?:ms|s|[kM]?B|%))", line):
                other = line[: match.start()] + f"{1.37 * float(match[0]) + 1:.2g}" + line[match.end() :]
                changed += 1
                caught += bool(missing(account, run.instances[account.job], run.result.tables, other))
    assert changed >= 8
    assert caught >= 0.8 * changed
