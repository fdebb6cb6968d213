"""Rules of the account that no restore touches: what is counted, what is compared, what is told."""

from tests.mutations.rule import Rule

_RECORDS, _STATE = (
    "tests/invariants/test_records_invariants.py::test_",
    "tests/invariants/test_state_invariants.py::test_",
)
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
        "runtime/invariants/invariant.py",
        "tally.served[which] - counted.served[which]",
        "tally.served[which]",
        f"{_RECORDS}behind_a_restart_only_what_is_counted_leads_on",
    ),
    Rule(
        "a note that is read has the counts that were kept aside",
        "runtime/invariants/invariant.py",
        "in self._fresh.pop(checkpoint, ()):",
        "in ():",
        f"{_RECORDS}behind_a_restart_only_what_is_counted_leads_on",
    ),
    Rule(
        "only the tasks that were started go back",
        "runtime/invariants/invariant.py",
        "        which = counted.known\n",
        "        which = counted.known | True\n",
        f"{_RECORDS}only_the_tasks_started_go_back",
    ),
    Rule(
        "a restored source goes on where its checkpoint left it",
        "runtime/invariants/records.py",
        "places = np.flatnonzero(mask & (before != now))",
        "places = np.flatnonzero(mask & (before > now))",
        f"{_RECORDS}who_stands_elsewhere_is_told",
    ),
    Rule(
        "requests under way are restored",
        "runtime/invariants/records.py",
        '("late", which, tasks, _WAITING)',
        '("late", ~which, tasks, _WAITING)',
        f"{_RECORDS}who_stands_elsewhere_is_told",
    ),
    Rule(
        "every record served leaves its outputs",
        "runtime/invariants/records.py",
        "if which[output.task] and actual - expected != surplus:",
        "if which[output.task] and actual - expected > surplus:",
        f"{_RECORDS}every_record_served_leaves_its_outputs",
    ),
    Rule(
        "a snapshot says where its task stands",
        "runtime/invariants/records.py",
        "            served == position.served\n            and _same(read",
        "            _same(read",
        "tests/runtime/observe/test_checking.py::test_a_snapshot_that_says_otherwise_is_told",
    ),
    Rule(
        "restored state is its own",
        "runtime/invariants/state.py",
        "elif pieces[0].stamp != stamp:",
        "elif pieces[0].stamp is None:",
        f"{_STATE}state_of_somebody_else_is_told",
    ),
    Rule(
        "restored state is whole",
        "runtime/invariants/state.py",
        "elif pieces[0].size_bytes != size_bytes:",
        "elif pieces[0].size_bytes > size_bytes:",
        f"{_STATE}state_of_another_size_is_told",
    ),
    Rule(
        "what is in flight at a rescale is in flight behind it",
        "runtime/invariants/records.py",
        "            if counts[0] != counts[1]:\n",
        "            if which and counts[0] != counts[1]:\n",
        "tests/invariants/test_records_invariants.py::TestAnotherParallelism::test_records_that_are_lost",
    ),
    Rule(
        "the state of each old subtask is dealt out once",
        "runtime/invariants/state.py",
        "if share != (stamp in stamps)",
        "if share < (stamp in stamps)",
        f"{_INJECTED}[foreign key groups are restored]",
    ),
    Rule(
        "a rescaled job commits the transactions it began with",
        "runtime/invariants/output.py",
        "missing, self._owed = self._owed - self.ended, Counter()",
        "missing, self._owed = Counter[Transaction](), Counter()",
        f"{_INJECTED}[a rescale forgets transactions]",
    ),
    Rule(
        "what writers hold back is dealt out with everything else",
        "runtime/invariants/output.py",
        "if held_back[vertex] != restored[vertex]:",
        "if held_back[vertex] < restored[vertex]:",
        f"{_INJECTED}[a rescale forgets what writers hold back]",
    ),
    Rule(
        "a job that has finished has read all its sources have",
        "runtime/invariants/records.py",
        "total in (None, tally.served[task])",
        "(total is None or tally.served[task] <= total)",
        "tests/invariants/test_records_invariants.py::TestTheEnd::test_a_source_that_has_more",
    ),
)
