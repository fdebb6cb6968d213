"""Logs of a JobManager, of which the usual lines are said in short."""

import re
from datetime import datetime

JOB = "0123456789abcdef0123456789abcdef"
SHORT = {
    "([A-Z]+) -> ([A-Z]+)": rf"Job Orders ({JOB}) switched from state \1 to \2.",
    r"(?:triggers|savepoint) (\d+)": rf"Triggering checkpoint \1 (type=TYPE) @ TRIGGER for job {JOB}.",
    r"completes (\d+)": rf"Completed checkpoint \1 for job {JOB} (9038 bytes, checkpointDuration=100 ms, finalizationTime=1 ms).",
    r"expires (\d+)": rf"Checkpoint \1 of job {JOB} expired before completing.",
    r"declines (\d+)": rf"Decline checkpoint \1 by task 5fe of job {JOB} at tm-1 @ host (dataPort=1).",
    r"restores (\d+)": rf"Restoring job {JOB} from Checkpoint \1 @ TRIGGER for {JOB} located at hdfs://ck/chk-\1.",
}
"""What a line says in short -> its message."""


def written(text):
    """The (time, message) of each line of a text, of which the usual ones are said in short: ``06:10:00 triggers 2``."""
    for line in text.strip().splitlines():
        at, message = re.fullmatch(r"\s*(\d\d:\d\d:\d\d|) *(.*)", line).groups()
        kind = (
            "SavepointType{name='Savepoint'}"
            if message.startswith("savepoint")
            else "CheckpointType{name='Checkpoint'}"
        )
        message, *of = message.split(" of ") if message.startswith("restores") else [message]
        for short, whole in SHORT.items():
            if found := re.fullmatch(short, message):
                message = found.expand(whole).replace("TYPE", kind).replace("TRIGGER", str(epoch_ms(*of or [at])))
        yield at, message


def log_of(folder, pairs):
    """The file of a log with these (time, message) lines."""
    path = folder / "jobmanager.log"
    path.write_text("".join(f"2025-12-29 {at},000 INFO  x [] - {text}\n" if at else f"{text}\n" for at, text in pairs))
    return path


def epoch_ms(at):
    return round(datetime.fromisoformat(f"2025-12-29T{at}+00:00").timestamp() * 1000)
