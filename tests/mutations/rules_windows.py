"""Rules of windows, timers and watermarks."""

from __future__ import annotations

from tests.mutations.rule import Rule

__all__ = ["WINDOWS"]

_WINDOW = "tests/runtime/task/test_window.py::test_"
_FIRING = "tests/plane/test_rules_late.py::test_"
_TIME = "tests/protocol/test_event_time.py::test_"
_KINDS = "tests/runtime/task/test_window_kinds.py::test_"
_IDLE = "tests/runtime/task/test_idle_sources.py::test_"
_IMPORT = "tests/jobs/infer/test_windows.py::test_"

WINDOWS = (
    Rule(
        "a record without outputs takes no firing",
        "tests/oracle/late.py",
        "        if outputs == 0:\n            return False\n",
        "",
        f"{_FIRING}a_record_without_outputs_takes_no_firing[oracle]",
    ),
    Rule(
        "nothing passes a firing that does not yield",
        "tests/oracle/late.py",
        "task.vertex.lag is None or not task.vertex.lag.yields",
        "task.vertex.lag is None",
        f"{_FIRING}nothing_passes_while_a_task_fires[oracle]",
    ),
    Rule(
        "what was let go is reported when it is written",
        "tests/oracle/thread.py",
        "        if task.reports_written:  # L9\n",
        "        if task.reports_written and not task.late:  # L9\n",
        f"{_FIRING}what_was_let_go_is_reported_when_it_is_written[oracle]",
    ),
    Rule(
        "event time is that of the slowest channel",
        "protocol/event_time.py",
        "            return self._advance_to(min(self._reached.values()))\n",
        "            return self._advance_to(max(self._reached.values()))\n",
        f"{_TIME}the_least_watermark_counts",
    ),
    Rule(
        "records behind a watermark belong to the next window",
        "protocol/event_time.py",
        "            return read - ends[0][1]\n",
        "            return 0\n",
        f"{_TIME}records_behind_a_watermark_belong_to_the_next_window",
    ),
    Rule(
        "a channel that is ahead waits with its later windows",
        "protocol/event_time.py",
        "while ends and ends[0][0] < end_ns and",
        "while ends and ends[0][0] <= end_ns and",
        f"{_TIME}a_channel_that_is_ahead_keeps_the_ends_it_has_passed",
    ),
    Rule(
        "a watermark goes on behind what it fires",
        "runtime/task/windows.py",
        "self.windows.fire(self.valve.time_ns)):\n",
        "self.windows.fire(self.valve.time_ns) is None):\n",
        f"{_WINDOW}windows_behind_windows_wait_for_what_they_fire",
    ),
    Rule(
        "the last watermark fires all windows",
        "runtime/task/windows.py",
        "        self.slot.thread.release_late_outputs(self.slot.context.plane.position(self.slot.task).served)\n",
        "        return\n",
        f"{_WINDOW}the_last_watermark_fires_all_windows_of_event_time[]",
    ),
    Rule(
        "a timer that is due fires when its task is back",
        "runtime/task/windows.py",
        "        for timer in self._due:\n",
        "        for timer in ():\n",
        f"{_WINDOW}a_window_that_ended_while_the_task_was_down_fires_at_once",
    ),
    Rule(
        "records held in windows are state",
        "runtime/task/windows.py",
        "self.content.records() * self.window.record_bytes",
        "0 * self.window.record_bytes",
        f"{_WINDOW}records_held_are_keyed_state",
    ),
    Rule(
        "the WindowOperator never yields",
        "runtime/lowering.py",
        ' and window.api == "sql" and not',
        " and not",
        f"{_WINDOW}only_operators_of_sql_yield",
    ),
    Rule(
        "a sliding window ends at each slide",
        "model/job.py",
        "        return self.every_ns or self.size_ns\n",
        "        return self.size_ns\n",
        f"{_KINDS}windows_that_slide_end_at_each_slide[event]",
    ),
    Rule(
        "what slides stays in state",
        "protocol/event_time.py",
        "            kept += (after - before) * (windows - age if self.copies else 1)\n",
        "            kept += 0\n",
        f"{_TIME}slices_stay_until_their_last_window_ends[False-kept0]",
    ),
    Rule(
        "slices of a sliding window are restored",
        "runtime/task/windows.py",
        "        self.content.restored(kept.slices)\n",
        "        self.content.restored(())\n",
        f"{_KINDS}sliding_state_is_back_after_a_failure",
    ),
    Rule(
        "a session waits for its gap",
        "protocol/event_time.py",
        "last_end(self.size_ns, self.phase_ns, time_ns - self.hold_ns)",
        "last_end(self.size_ns, self.phase_ns, time_ns)",
        f"{_TIME}a_session_waits_for_its_gap_behind_each_watermark",
    ),
    Rule(
        "rows of SQL are flushed before the barrier",
        "runtime/task/windows.py",
        "return self.content.flush_ns()",
        "return 0",
        f"{_KINDS}rows_are_flushed_before_the_barrier_and_before_firing",
    ),
    Rule(
        "the first stage holds nothing behind a barrier",
        "runtime/task/windows.py",
        "return self.window.early and self.content.leave()",
        "return self.window.time == 'none' and self.content.leave()",
        f"{_KINDS}the_first_stage_lets_everything_go_before_a_barrier",
    ),
    Rule(
        "a barrier waits until all rows are written",
        "runtime/task/parts.py",
        "            self._when_written = done\n",
        "            done()\n",
        f"{_KINDS}an_output_that_is_full_holds_the_barrier_back_in_the_first_stage",
    ),
    Rule(
        "the end of data finishes a first stage",
        "runtime/task/windows.py",
        "            self.slot.thread.release_late_outputs(self.content.served())\n",
        "            return\n",
        f"{_KINDS}a_source_with_a_first_stage_ends",
    ),
    Rule(
        "an idle channel does not count",
        "protocol/event_time.py",
        "        self._idle.add(channel)\n        self._ignored.add(channel)\n",
        "        self._idle.add(channel)\n",
        f"{_TIME}an_idle_channel_does_not_count",
    ),
    Rule(
        "a channel that comes back behind does not pull the others back",
        "protocol/event_time.py",
        "        self._idle.discard(channel)\n        if self._reached[channel] >= self.time_ns:\n",
        "        self._idle.discard(channel)\n        if self._reached[channel] >= 0:\n",
        f"{_TIME}a_channel_that_comes_back_behind_does_not_pull_the_others_back",
    ),
    Rule(
        "with the last idle channel all watermarks count",
        "protocol/event_time.py",
        "max(self._reached.values())) if self.idle",
        "self.time_ns) if self.idle",
        f"{_TIME}with_the_last_channel_all_watermarks_count",
    ),
    Rule(
        "the first look without records starts the clock of idleness",
        "protocol/event_time.py",
        "            self._records, self._since_ns = records, None\n",
        "            self._records, self._since_ns = records, clock_ns\n",
        f"{_TIME}a_source_is_idle_by_the_looks_that_find_nothing",
    ),
    Rule(
        "back-pressure is no idleness",
        "runtime/task/watermarks.py",
        'int(times["soft_ns"]) + int(times["hard_ns"])',
        'int(times["hard_ns"])',
        f"{_IDLE}back_pressure_is_no_idleness",
    ),
    Rule(
        "idleness passes operators",
        "runtime/task/windows.py",
        "        if self.valve.idle and not self._said_idle:\n",
        "        if self.valve.idle and not self._said_idle and self.windows is not None:\n",
        f"{_IDLE}idleness_passes_operators",
    ),
    Rule(
        "the last watermark does not pass an idle output",
        "runtime/task/windows.py",
        "        if not self.drops:\n",
        "        if True:\n",
        f"{_IDLE}a_drain_while_all_sources_are_idle_fires_nothing[idle]",
    ),
    Rule(
        "sessions of processing time wait for their gap",
        "runtime/task/windows.py",
        "timer = Timer(self.content.served(), self.slot.now + self.window.hold_ns)",
        "timer = Timer(self.content.served(), self.slot.now)",
        f"{_KINDS}a_session_of_processing_time_waits_for_its_gap",
    ),
    Rule(
        "timers of sessions are state",
        "runtime/task/windows.py",
        "timer.at_ns <= self.slot.now or self.window.hold_ns]",
        "timer.at_ns <= self.slot.now]",
        f"{_KINDS}sessions_that_were_restored_end_in_their_time",
    ),
    Rule(
        "a source waits for records if those subtasks do that have any",
        "jobs/infer/windows.py",
        "    return replace(flow, subtasks=tuple(subtask for subtask in flow.subtasks if subtask.records_out > 0))\n",
        "    return flow\n",
        "tests/jobs/infer/test_silent.py::test_who_emits_nothing_while_others_do_is_silent[records0-1-2]",
    ),
    Rule(
        "files of RocksDB rise and fall without windows",
        "jobs/infer/windows.py",
        "tooth = find_periodic_timers(job, vertex) if on_heap else None",
        "tooth = find_periodic_timers(job, vertex)",
        f"{_IMPORT}files_of_rocksdb_rise_and_fall_without_windows",
    ),
    Rule(
        "records of a window are counted by whole windows",
        "jobs/infer/windows.py",
        "    if best is None or best[0] > len(steps) * (MAX_RESIDUAL_SHARE * best[1]) ** 2:\n",
        "    if best is None:\n",
        f"{_IMPORT}records_that_leave_over_seconds_are_not_counted_by_windows",
    ),
)
