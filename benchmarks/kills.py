"""Sweeps whose processes are killed at random moments: does any process stay behind, and is a byte of the rows different in the end?

    python -m benchmarks.kills [--count 1000] [--seed 1] [--cells 60] [--minutes 60] [--master local[2]]

A sweep of tiny cells runs as the command does, in a fork of this process, which has loaded and compiled everything.
After a while that is drawn, the command, one of its workers, or the whole process group gets a signal that is drawn.
After each, every process of the sweep must be gone within five seconds, or the sweep must go on.  It is called again
until it is complete; then its rows are compared with those of a sweep that nobody disturbed, and it begins anew.  After
so many minutes no sweep is disturbed any more, whatever the count.

185 kills of 24 cells in half an hour (two cores, shared by fifteen): 304 calls, 132 sweeps that came to their end with
the same bytes.  The last process was gone after 0.51 s at most; nothing was wrong.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.chaos import canonical

__all__ = ["Outcome", "kills"]

PATIENCE_S = 5.0
SCENARIO = Path(__file__).parents[1] / "tests" / "data" / "tiny.yaml"
WAYS: tuple[tuple[str, signal.Signals], ...] = (
    ("command", signal.SIGKILL),
    ("worker", signal.SIGKILL),
    ("group", signal.SIGKILL),
    ("command", signal.SIGTERM),
    ("command", signal.SIGINT),
    ("group", signal.SIGINT),
    ("group", signal.SIGHUP),
    ("group", signal.SIGTERM),
)
"""Who gets which signal."""


@dataclass
class Outcome:
    """What was done, and what was wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    complete: int = 0  # sweeps that came to their end and were compared
    slowest_s: float = 0.0  # until the last process was gone
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        ways = ", ".join(f"{what} {count}" for what, count in sorted(self.kills.items()))
        return (
            f"{self.kills.total()} kills ({ways}) in {self.calls} calls; {self.complete} sweeps came to their end with the bytes of the "
            f"undisturbed one; the last process was gone after {self.slowest_s:.2f} s at most; wrong: {len(self.wrong)}"
            + "".join(f"\n  {line}" for line in self.wrong[:20])
        )


def kills(
    count: int, folder: Path, *, seed: int = 1, cells: int = 60, seconds: float = math.inf, master: str | None = None
) -> Outcome:
    """So many, or fewer if time is up, and the sweep that is under way to its end."""
    from sim.plane import warm

    warm()
    where = ["--jobs", "2"] if master is None else ["--master", master]
    arguments = ["sweep", str(SCENARIO), "--set", f"run.replications={max(cells // 3, 1)}"]
    calm, out, messages = folder / "calm", folder / "out", folder / "told.txt"
    begun = time.monotonic()
    if _wait(_call([*arguments, "--jobs", "2", "--out", str(calm)], messages)) != 0:
        raise RuntimeError(f"the undisturbed sweep failed: {messages.read_text()}")
    ends = begun + seconds
    usual_s = max(time.monotonic() - begun, 1.0) + (0 if master is None else 20)
    chance, outcome = random.Random(seed), Outcome()
    while (disturbed := outcome.kills.total() < count and time.monotonic() < ends) or out.exists():
        outcome.calls += 1
        command = _call([*arguments, *where, "--out", str(out)], messages)
        code = _disturb(command, chance, usual_s, outcome) if disturbed else _wait(command)
        _judge(code, messages.read_text(), command, outcome)
        if code == 0:
            _compare(calm, out, outcome)
            shutil.rmtree(out)
        if len(outcome.wrong) > 20:
            break
    return outcome


def _disturb(command: int, chance: random.Random, usual_s: float, outcome: Outcome) -> int:
    """Exit code, -signal if the command was killed."""
    while True:
        end = time.monotonic() + chance.uniform(0, usual_s)
        while time.monotonic() < end:
            if (code := _ended(command)) is not None:
                return code
            time.sleep(0.005)
        who, number = chance.choice(WAYS)
        others = [process for process in _session(command) if process != command]
        try:
            if who == "worker":
                if not others:
                    continue
                os.kill(chance.choice(others), number)
            elif who == "group":
                os.killpg(command, number)
            else:
                os.kill(command, number)
        except ProcessLookupError:
            continue
        outcome.kills[f"{who} {number.name}"] += 1
        if who != "worker":
            return _wait(command)


def _judge(code: int, messages: str, command: int, outcome: Outcome) -> None:
    begun = time.monotonic()
    while (left := _session(command)) and time.monotonic() - begun < PATIENCE_S:
        time.sleep(0.02)
    outcome.slowest_s = max(outcome.slowest_s, time.monotonic() - begun)
    if left:
        outcome.wrong.append(f"left behind after {PATIENCE_S:g} s: {left}")
        for process in left:
            os.kill(process, signal.SIGKILL)
    if "Traceback" in messages or code not in {
        0,
        *(128 + number for _, number in WAYS),
        *(-number for _, number in WAYS),
    }:
        outcome.wrong.append(f"code {code}: {messages[-500:]}")
    if code > 128 and "interrupted" not in messages:
        outcome.wrong.append(f"code {code}, and nothing said: {messages[-500:]}")


def _compare(calm: Path, out: Path, outcome: Outcome) -> None:
    same = canonical(calm) == canonical(out) and all(
        (out / name).read_bytes() == (calm / name).read_bytes() for name in ("results.parquet", "results.csv")
    )
    outcome.complete += same
    if not same:
        outcome.wrong.append("other bytes than the undisturbed sweep")
    if (out / "set-aside").exists():
        outcome.wrong.append("files were set aside")


def _call(arguments: Sequence[str], messages: Path) -> int:
    """`ckptsim` in a session of its own; its process."""
    if process := os.fork():
        return process
    os.setsid()
    output = os.open(messages, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    sys.argv = ["ckptsim", *arguments]
    code = 70
    try:
        from sim.__main__ import main

        main()
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:  # noqa: BLE001 - this process must not go on as its parent would
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _ended(process: int) -> int | None:
    """None: it is under way."""
    found, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _wait(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _session(leader: int) -> list[int]:
    """Processes of a session that are alive; its leader has its number."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = place.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == leader and state not in "ZX":
            found.append(int(place.parent.name))
    return found


def main() -> None:
    """One sentence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cells", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--master")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ckptsim-kills-") as place:
        seconds = options.minutes * 60
        outcome = kills(
            options.count, Path(place), seed=options.seed, cells=options.cells, seconds=seconds, master=options.master
        )
    print(outcome)
    sys.exit(bool(outcome.wrong))


if __name__ == "__main__":
    main()
