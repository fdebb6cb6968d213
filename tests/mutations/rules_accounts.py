"""Rules of the account that no restore touches: what is counted, what is compared, what is told."""

from tests.mutations.rule import Rule

_LEDGER, _RETURNS = "tests/invariants/test_cut.py::test_", "tests/invariants/test_restores.py::test_"
_COUNTING = "tests/plane/test_rules_restarts.py::test_"
_INJECTED = "tests/injections/test_least_worlds.py::test_a_bug_is_noticed_in_its_least_world"

ACCOUNTS = (
    Rule(
        "a start takes nothing back from what is counted over all attempts",
        "plane/kernel.py",
        "select_field(rows, field, numbers) + counts_before[field] - counts_after[field]",
        "select_field(rows, field, numbers)",
        f"{_COUNTING}P8_records_are_counted_over_all_attempts",
    ),
    Rule(
        "behind a restart only what is counted leads on from the note",
        "invariants/counts.py",
        "tally.served[which] - counted.served[which]",
        "tally.served[which]",
        f"{_LEDGER}behind_a_restart_only_what_is_counted_leads_on",
    ),
    Rule(
        "a note that is read has the counts that were kept aside",
        "invariants/counts.py",
        "in self._fresh.pop(checkpoint, ()):",
        "in ():",
        f"{_LEDGER}behind_a_restart_only_what_is_counted_leads_on",
    ),
    Rule(
        "only the tasks that were started go back",
        "invariants/counts.py",
        "        which = counted.known\n",
        "        which = counted.known | True\n",
        f"{_LEDGER}only_the_tasks_started_go_back",
    ),
    Rule(
        "a restored source goes on where its checkpoint left it",
        "invariants/counts.py",
        "moved = np.flatnonzero(which & (expected.served != stands.served))",
        "moved = np.flatnonzero(which & (expected.served > stands.served))",
        f"{_RETURNS}who_stands_elsewhere_is_told",
    ),
    Rule(
        "requests under way are restored",
        "invariants/counts.py",
        "which & (expected.late != stands.late)",
        "which & (expected.late < stands.late)",
        f"{_INJECTED}[requests under way are forgotten]",
    ),
    Rule(
        "every record served leaves its outputs",
        "invariants/counts.py",
        "        if actual - expected != surplus:\n",
        "        if actual - expected > surplus:\n",
        f"{_RETURNS}every_record_served_leaves_its_outputs",
    ),
    Rule(
        "a snapshot says where its task stands",
        "runtime/monitors/records.py",
        "            served == position.served\n            and _same(read",
        "            _same(read",
        "tests/runtime/observe/test_checking.py::test_a_snapshot_that_says_otherwise_is_told",
    ),
    Rule(
        "restored state is its own",
        "invariants/state.py",
        "elif pieces[0].stamp != stamp:",
        "elif pieces[0].stamp is None:",
        "tests/invariants/test_state.py::test_state_of_somebody_else_is_told",
    ),
    Rule(
        "restored state is whole",
        "invariants/state.py",
        "elif pieces[0].size_bytes != size_bytes:",
        "elif pieces[0].size_bytes > size_bytes:",
        "tests/invariants/test_state.py::test_state_of_another_size_is_told",
    ),
    Rule(
        "what is in flight at a rescale is in flight behind it",
        "invariants/state.py",
        "    return int(before.sum()) == int(after.sum())\n",
        "    return True\n",
        "tests/invariants/test_cut.py::test_of_a_vertex_with_other_tasks_the_sum_counts",
    ),
    Rule(
        "the state of each old subtask is dealt out once",
        "invariants/state.py",
        "if share != (stamp in stamps)",
        "if share < (stamp in stamps)",
        f"{_INJECTED}[foreign key groups are restored]",
    ),
    Rule(
        "a rescaled job commits the transactions it began with",
        "runtime/monitors/output.py",
        "missing, self._owed = self._owed - self.ended, Counter()",
        "missing, self._owed = Counter[Transaction](), Counter()",
        f"{_INJECTED}[a rescale forgets transactions]",
    ),
    Rule(
        "what writers hold back is dealt out with everything else",
        "runtime/monitors/output.py",
        "if held_back[vertex] != restored[vertex]:",
        "if held_back[vertex] < restored[vertex]:",
        f"{_INJECTED}[a rescale forgets what writers hold back]",
    ),
    Rule(
        "a job that has finished has read all its sources have",
        "invariants/counts.py",
        "        if tally.served[task] != total:\n",
        "        if tally.served[task] > total:\n",
        f"{_RETURNS}a_finished_job_has_read_everything",
    ),
)
