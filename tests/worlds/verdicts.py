"""The table of verdicts: every strategy meets every fault, the checkers say what became of exactly-once."""

import sys
from functools import cache
from pathlib import Path

from sim.runtime.simulate import simulate
from tests.worlds.strategies import FAULTS, STRATEGIES, base

TABLE = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- verdicts -->\n", "<!-- /verdicts -->\n"
"""The table stands between them."""
SHORT_FACTS = {
    "twice": "twice",
    "are lost": "lost",
    "never processed": "lost",
    "not there in full": "files missing",
    "without a complete checkpoint": "too early",
}
"""What a fact comes down to."""


@cache
def run(strategy, fault):
    return simulate(FAULTS[fault](strategy.change(base())))


def verdict(strategy, fault):
    """``sound``, or what was broken; of at-least-once also what came twice as it was asked to."""
    result = run(strategy, fault)
    unfinished = [] if result.job_status == "FINISHED" else [f"ends {result.job_status}"]
    return ", ".join(sorted({*map(word, (*result.violations, *result.repetitions)), *unfinished})) or "sound"


def word(violation):
    return next((short for part, short in SHORT_FACTS.items() if part in violation.fact), violation.fact)


def table(verdicts):
    lines = [
        "Written by `python -m tests.worlds.verdicts`: one small bounded job with a transactional sink that writes files.",
        "",
        f"| strategy | {' | '.join(FAULTS)} | known to be wrong |",
        f"|---|{'---|' * (len(FAULTS) + 1)}",
    ]
    for strategy, row in verdicts:
        lines.append(f"| {strategy.name} | {' | '.join(row[fault] for fault in FAULTS)} | {strategy.why} |")
    return "\n".join(lines) + "\n"


def main():
    verdicts = [(strategy, {fault: verdict(strategy, fault) for fault in FAULTS}) for strategy in STRATEGIES]
    before, rest = TABLE.read_text().split(BEGIN)
    written = table(verdicts)
    TABLE.write_text(before + BEGIN + written + END + rest.split(END)[1])
    sys.stdout.write(written)


if __name__ == "__main__":
    main()
