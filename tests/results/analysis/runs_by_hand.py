"""Small result tables made by hand: a job source -> map -> sink, one row per vertex and checkpoint; and rows of strategies."""

from dataclasses import replace

import pandas as pd

from sim.results.columns import TABLES
from sim.results.side_by_side import StrategyRow, singles
from sim.results.summary import summarize

EDGES = [("source", "map"), ("map", "sink")]


class Made:
    """Tables of one run; times in ms.  Every vertex has one subtask."""

    def __init__(self):
        self.checkpoints, self.subtasks, self.series, self.tasks, self.path = [], [], [], [], []
        self.recoveries = []

    def checkpoint(
        self,
        trigger=0.0,
        duration=100.0,
        *,
        status="COMPLETED",
        failure="",
        persisted=0,
        size=1000,
        standstill="",
        state=None,
    ):
        number = len(self.checkpoints) + 1
        self.checkpoints.append(
            {
                "id": number,
                "status": status,
                "trigger_timestamp": trigger,
                "end_to_end_duration": duration,
                "persisted_data": persisted,
                "checkpointed_size": size,
                "failure_message": failure,
                "x_standstill": standstill,
                "savepointFormat": "",
                "state_size": size if state is None else state,
            }
        )
        return self

    def subtask(
        self,
        vertex,
        *,
        ack,
        start_delay=0.0,
        alignment=0.0,
        pre_barrier=0.0,
        sync=0.0,
        asynchronous=0.0,
        persisted=0,
        index=0,
    ):
        self.subtasks.append(
            {
                "id": len(self.checkpoints),
                "vertex": vertex,
                "index": index,
                "status": "completed",
                "ack_timestamp": ack,
                "start_delay": start_delay,
                "alignment_duration": alignment,
                "sync_duration": sync,
                "async_duration": asynchronous,
                "x_pre_barrier": pre_barrier,
                "unaligned_checkpoint": persisted > 0,
            }
        )
        return self

    def part(self, part, vertex, ms, *, index=0, acknowledged=False, upstream=""):
        """The next part of the critical path of the latest checkpoint."""
        begin = sum(row["duration"] for row in self.path if row["id"] == len(self.checkpoints))
        self.path.append(
            {
                "id": len(self.checkpoints),
                "part": part,
                "vertex": vertex,
                "index": index,
                "upstream": upstream,
                "begin": begin,
                "duration": int(ms * 1e6),
                "file": "",
                "acknowledged": acknowledged,
            }
        )
        return self

    def load(self, *, busy, waiting=(0.0, 0.0, 0.0), records=(100.0, 100.0, 100.0), seconds=4, backlog=lambda _: 0):
        """The same load every second: shares and records/s of source, map and sink."""
        for i, vertex in enumerate(("source", "map", "sink")):
            self.task(vertex, busy[i], records=records[i] * seconds)
        for second in range(1, seconds + 1):
            for i, vertex in enumerate(("source", "map", "sink")):
                self.series.append(
                    {
                        "time": float(second),
                        "vertex": vertex,
                        "numRecordsInPerSecond": records[i],
                        "busy": busy[i],
                        "backPressured": waiting[i],
                        "idle": 1.0 - busy[i] - waiting[i],
                        "inputQueueSize": 1e6,
                        "outputQueueSize": 1e6,
                        "backlog": backlog(second) if vertex == "source" else 0,
                    }
                )
        return self

    def restart(self, *, cause="tolerable failed checkpoints exceeded: CHECKPOINT_EXPIRED", restored=0):
        row = {column.name: 0 for column in TABLES["recoveries"]}
        self.recoveries.append(row | {"cause": cause, "restored_checkpoint": restored})
        return self

    def task(self, vertex, busy, index=0, records=0):
        self.tasks.append(
            {
                "vertex": vertex,
                "index": index,
                "accumulateBusyTimeMs": 1000 * busy,
                "accumulateIdleTimeMs": 1000 * (1 - busy),
                "numRecordsIn": records,
                "x_softBackPressuredTimeMs": 0.0,
                "x_hardBackPressuredTimeMs": 0.0,
                "x_finalCheckpoint": -1,
            }
        )
        return self

    def tables(self):
        made = vars(self) | {"files": []}
        return {
            name: pd.DataFrame(rows, columns=[column.name for column in TABLES[name]]) for name, rows in made.items()
        }


def saturated(duration, delay, *, persisted=0, times=1):
    """A saturated sink: the barrier waits `delay` ms in front of it."""
    made = Made()
    for k in range(times):
        made.checkpoint(1000.0 * k, duration, persisted=persisted)
        made.subtask("source", ack=10, start_delay=5).subtask("map", ack=20, start_delay=15)
        made.subtask("sink", ack=duration, start_delay=15 + delay, persisted=persisted)
        made.part("trigger", "", 5).part("behind data", "map", 10).part("behind data", "sink", delay).part(
            "acknowledgement", "sink", 3
        )
    return made.load(busy=(0.1, 0.5, 0.99), waiting=(0.9, 0.5, 0.0))


def line(label, run, **others):
    """A strategy whose only run is this one; a status other than RUNNING is that of a job that failed."""
    tables = [run.tables()]
    row = StrategyRow(
        label, (("checkpoint.barriers", label),), "", "RUNNING", summarize(tables, EDGES), singles=singles(tables)
    )
    return replace(row, **{"failed": "status" in others, **others})
