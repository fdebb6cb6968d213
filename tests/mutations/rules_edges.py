"""Rules of edges: their numbers, what they carry, the turns of the inputs they make up."""

from tests.mutations.rule import Rule

EDGES = (
    Rule(
        "two edges between the same vertices draw different numbers",
        "runtime/plane_spec.py",
        '#{gate}"',
        '#{reader.inputs.index(inlet)}"',
        "tests/runtime/setup/test_lowering.py::test_two_edges_never_share_a_name",
    ),
    Rule(
        "a join reads a union as one of its inputs",
        "plane/interface.py",
        "        for gates in self.gates_of_inputs:\n",
        "        for gates in ():\n",
        "tests/plane/test_rules_thread.py::test_T9_an_input_of_several_gates_is_read_buffer_by_buffer",
    ),
    Rule(
        "the edges of a side output carry its records, not those of the main one",
        "model/schema/job.py",
        "fan_out, size = side.fan_out, side.record\n",
        "size = side.record\n",
        "tests/model/schema/test_job_sections.py::test_a_side_output_has_amounts_of_its_own_and_all_its_readers_the_same",
    ),
    Rule(
        "an edge whose two ends contradict each other is asked for",
        "jobs/infer/work.py",
        "    elif is_contradicted:\n",
        "    elif False:\n",
        "tests/jobs/infer/test_edges_counted.py::test_a_flow_that_does_not_balance_is_no_fact_of_the_scenario",
    ),
    Rule(
        "each edge has the size of the records that its reader counts",
        "jobs/infer/work.py",
        "    if has_siblings and size and emitted and abs(",
        "    if False and size and emitted and abs(",
        "tests/jobs/infer/test_edges_counted.py::test_records_of_each_edge_have_their_own_size",
    ),
)
