"""Rules of what takes time: older Flinks' deadlines, buffers that shrink and stretch, outputs that leave late, cold tasks, flushers."""

from tests.mutations.rule import Rule

_LATE, _OUTPUT = "tests/plane/test_rules_late.py::test_", "tests/plane/test_rules_output.py::test_O4_"
_SOURCES = "tests/plane/test_rules_thread.py::test_W3_"
_WARM = "tests/runtime/jobmanager/test_restarted_tasks.py::test_"

TIMING = (
    Rule(
        "looks at the plane end before the next event",
        "runtime/clock.py",
        "max(1, -(-(following_ns - first_ns) // looks.period_ns))",
        "max(1, -(-(following_ns - first_ns) // looks.period_ns) + 1)",
        "tests/runtime/test_clock.py::test_looks_stand_where_a_repetition_would",
    ),
    Rule(
        "a look sees where tasks are at its time, not how far they are ahead",
        "plane/text/loop.py",
        "            self.catch_up_all()\n",
        "",
        "tests/plane/test_kernel_plane.py::test_looks_see_nothing_that_is_ahead",
        inside="Kernel.sample_served",
    ),
    Rule(
        "before FLINK-27251 a snapshot does not wait for its barriers in sender queues",
        "protocol/barrier_modes.py",
        "    finishing=ALIGNED_TIMEOUT.finishing - {Requirement.OUTPUT_BARRIERS},\n",
        "    finishing=ALIGNED_TIMEOUT.finishing,\n",
        "tests/protocol/task/test_task_checkpointing.py::test_before_flink_27251_a_snapshot_does_not_wait_for_its_barriers",
    ),
    Rule(
        "a shrunk buffer grows only while the pool has none to give",
        "plane/text/channels.py",
        "        if self.g.stretching == 0 or ch.full_at >= at_most or self.has_room(ch.partition):\n",
        "        if self.g.stretching == 0 or ch.full_at >= at_most:\n",
        f"{_OUTPUT}an_unavailable_pool_stretches_the_buffer",
    ),
    Rule(
        "before FLINK-33077 no buffer grows",
        "plane/text/channels.py",
        "        if self.g.stretching == 0 or ch.full_at >= at_most or",
        "        if ch.full_at >= at_most or",
        f"{_OUTPUT}without_stretching_a_record_waits_in_small_buffers",
    ),
    Rule(
        "with as many requests under way as there may be, the next record keeps the thread",
        "plane/text/task.py",
        "            if task.late == task.lag_capacity:\n",
        "            if task.late == task.lag_capacity - 1:\n",
        f"{_LATE}with_a_full_list_the_next_record_stays_in_hand",
    ),
    Rule(
        "output that is held back leaves when it is let go, not before",
        "plane/text/task.py",
        "        return task.served - task.late < task.released_until\n",
        "        return True\n",
        f"{_LATE}what_waits_to_be_let_go_waits",
    ),
    Rule(
        "requests under way are made again after a restart",
        "plane/text/task.py",
        "            n = task.late\n",
        "            n = 0\n",
        f"{_LATE}late_records_are_late_again_after_a_start",
    ),
    Rule(
        "a restarted task is slow until it is warm",
        "runtime/jobmanager/task_managers.py",
        '        self.speed.set_factor(task, "warm-up", self.restart.warm_up_factor)\n',
        "",
        f"{_WARM}a_restarted_task_is_slow_until_it_is_warm",
    ),
    Rule(
        "a task that restarts while cold begins its warm-up anew",
        "runtime/jobmanager/task_managers.py",
        "        if self.env.now >= self._warm_ns[task]:\n",
        "        if True:\n",
        f"{_WARM}who_restarts_while_cold_begins_anew",
    ),
    Rule(
        "a source in poll is busy until its record is due",
        "tests/oracle/thread.py",
        " or waits(task) == Wait.POLL:\n",
        ":\n",
        f"{_SOURCES}in_poll_a_source_is_busy_until_its_record_is_due[oracle]",
    ),
    Rule(
        "a legacy source keeps the lock while it waits for output",
        "tests/oracle/thread.py",
        " and waits(task) != Wait.LOCK:",
        ":",
        f"{_SOURCES}a_mail_waits_for_the_emission_under_the_lock[oracle-False]",
    ),
    Rule(
        "a legacy source takes its lock again before a mail has it",
        "tests/oracle/thread.py",
        "            task.passed_over = self.is_passed_over(task)\n",
        "            task.passed_over = False\n",
        f"{_SOURCES}a_source_that_takes_the_lock_again_passes_the_mail_over[oracle]",
    ),
    Rule(
        "each subtask has its own factor of services",
        "runtime/plane_spec.py",
        "        factors |= {first + subtask: factor for",
        "        factors |= {first: factor for",
        "tests/runtime/run/test_simulate.py::test_services_of_a_subtask_take_its_factor_times_as_long",
    ),
    Rule(
        "a flusher sleeps for the timeout and works then",
        "runtime/plane_spec.py",
        "    return timeout_ns + scenario.overheads.flusher_ns if timeout_ns > 0 else timeout_ns\n",
        "    return timeout_ns\n",
        "tests/runtime/setup/test_lowering.py::test_flushes_are_a_timeout_and_what_the_flusher_takes_apart",
    ),
    Rule(
        "keyed records go to the owners of their key groups",
        "runtime/plane_spec.py",
        "    return owners(reader.parallelism, reader.max_parallelism)\n",
        "    return ()\n",
        "tests/runtime/setup/test_lowering.py::test_key_groups_say_who_reads",
    ),
    Rule(
        "every record has a byte",
        "model/randomness.py",
        "    return tuple(max(1, size) for size in quantile_table(distribution))\n",
        "    return quantile_table(distribution)\n",
        "tests/runtime/setup/test_lowering.py::test_distributions_become_tables",
    ),
    Rule(
        "a job without checkpoints commits at its end",
        "runtime/task/host.py",
        '(tail == "checkpoint" and not checkpointing)',
        '(tail == "checkpoint" and tail == "at-finish")',
        "tests/invariants/jobs/test_invariants_of_sinks.py::test_without_checkpoints_output_is_committed_at_the_end",
    ),
)
