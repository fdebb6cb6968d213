"""Rules of tails: what of a history is chance, how it is drawn, and what is no difference between two settings."""

from tests.mutations.rule import Rule

_HISTORY = "tests/jobs/infer/test_infer_history.py::test_"
_FILE = "tests/model/schema/test_history_file.py::test_"

RESIDUALS = (
    Rule(
        "calls to a task come in the order in which they set out",
        "runtime/jobmanager/coordinator_host.py",
        ", self._triggered_ns.get(task, 0))\n",
        ", 0)\n",
        "tests/runtime/test_residuals_in_runs.py::test_a_call_that_is_late_is_not_overtaken_by_the_next",
    ),
    Rule(
        "all subtasks draw the same checkpoint of the history",
        "model/randomness.py",
        "_order(seed, cycle, residuals.checkpoints)[place]",
        "_order(seed + subtask, cycle, residuals.checkpoints)[place]",
        "tests/model/randomness/test_draws.py::test_all_subtasks_and_parts_take_the_same_checkpoint",
    ),
    Rule(
        "readers that have the barrier rule work before it out",
        "jobs/infer/cores.py",
        "    return min(bounds, default=math.inf)\n",
        "    return math.inf\n",
        f"{_HISTORY}work_before_the_barrier_makes_readers_wait",
    ),
    Rule(
        "latency strikes all vertices alike",
        "jobs/infer/cores.py",
        "> MIN_MEAN_MS + _mean_of_long(latencies)\n",
        "> MIN_MEAN_MS\n",
        f"{_HISTORY}latency_that_strikes_all_vertices_alike_is_no_work_of_the_last_one",
    ),
    Rule(
        "what happened once is an outlier",
        "jobs/infer/cores.py",
        "MIN_CHECKPOINTS_WITH_WORK = 2\n",
        "MIN_CHECKPOINTS_WITH_WORK = 1\n",
        f"{_HISTORY}what_happened_once_is_an_outlier",
    ),
    Rule(
        "large files are no chance",
        "jobs/infer/scenario.py",
        "    slope = 0.0 if line is None else 1 / line.bytes_per_ms\n",
        "    slope = 0.0\n",
        f"{_HISTORY}large_files_are_no_chance",
    ),
    Rule(
        "state whose keys expire is bounded at the horizon",
        "advice/horizon.py",
        "self.per_second * min(seconds, self.ttl_s)",
        "self.per_second * seconds",
        "tests/advice/test_numbers_of_inputs.py::test_keys_that_expire_leave_one_after_the_other",
    ),
    Rule(
        "a job that keeps up serves what arrives",
        "advice/judgement.py",
        'steady["throughput_per_second"].where(~keeps_up, bare).clip',
        'steady["throughput_per_second"].clip',
        "tests/advice/test_judged_tables.py::test_a_backlog_that_hardly_grows_is_none",
    ),
    Rule(
        "the history of another job is refused",
        "model/schema/history_file.py",
        "if vertices and isinstance(job, Document) and not set(vertices) & set(job):\n",
        "if False:\n",
        f"{_FILE}mistakes_are_told_at_their_place",
    ),
    Rule(
        "the job's first checkpoint is no tail",
        "model/schema/history_file.py",
        'if isinstance(ms, int | Decimal) and number != table.get("first")\n',
        "if isinstance(ms, int | Decimal)\n",
        f"{_FILE}two_files_say_what_one_said",
    ),
    Rule(
        "what is read into a scenario stands in one place",
        "model/schema/history_file.py",
        "        if key in document:\n            reading.wrong",
        "        if False:\n            reading.wrong",
        f"{_FILE}sections_stand_in_one_place",
    ),
    Rule(
        "what was never repeated spreads like the worst",
        "model/quantities.py",
        "return max(other.repeats or 0.0 for other in QUANTITIES.values())",
        "return min(other.repeats or 0.0 for other in QUANTITIES.values())",
        "tests/model/quantities/test_quantities_of_results.py::test_what_was_never_repeated_spreads_like_the_worst",
    ),
)
