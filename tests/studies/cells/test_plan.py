"""Scenarios become cells: what is the same runs once, what is compared shares its workload."""

from dataclasses import replace

import numpy as np

from sim.model.schema.study import loads
from sim.runtime.result import identity
from sim.studies.plan import SeededScenarios, baseline, cells, distinct, with_baselines


def test_one_baseline_for_all_strategies(study):
    """Aligned and unaligned are held against the same run without checkpoints."""
    planned = with_baselines(cells(study.scenarios))

    assert [cell.is_baseline for cell in planned] == [True, False, False]


def test_a_baseline_per_workload(study):
    """Another rate is another job; another storage is not: nothing is written without checkpoints."""
    text = "version: 1\njob:\n  a: {source: {rate: [100/s, 200/s], record: 100 B}}\n  b: {input: {a: hash}, service: 1 ms}\n"
    both = loads(text + "checkpoint: {interval: 1 s}\nstorage: {bandwidth: [1 MB/s, 2 MB/s]}\nrun: {duration: 2 s}\n")

    assert len(cells(both.scenarios)) == 4
    assert len({identity(baseline(scenario)) for scenario in both.scenarios}) == 2


def test_a_baseline_is_its_own(study):
    """A cell without checkpoints is not run twice."""
    bare = baseline(study.scenarios[0])

    assert len(with_baselines(cells([bare]))) == 1


def test_replications_have_seeds_of_their_own(study):
    """Strategies share them, neighbouring seeds do not meet them, the first is the run as written."""

    def seeds(seed):
        scenario = study.scenarios[0]
        return [
            cell.scenario.run.seed
            for cell in cells([replace(scenario, run=replace(scenario.run, seed=seed, replications=20))])
        ]

    assert seeds(7)[0] == 7
    assert len(set(seeds(7))) == 20
    assert set() == set(seeds(7)) & set(seeds(8))
    assert seeds(7) == seeds(7)


def test_equal_cells_share_a_run(study):
    """Named by content, not by place; both keep their own axes."""
    planned = cells([*study.scenarios, *study.scenarios])

    assert (len(planned), len({cell.id for cell in planned})) == (4, 2)
    assert planned[:2] == distinct(planned)


def test_what_is_sure_to_fail_is_held_against_nothing(study):
    """Without checkpoints it would read its whole past again.  A failure after the end, or one that may not come, is none."""
    text = "version: 1\njob:\n  a: {source: {rate: 100/s, record: 100 B}}\n  b: {input: {a: hash}, service: 1 ms}\nrun: {duration: 2 s}\n"

    def baselines(fault):
        return sum(
            cell.is_baseline
            for cell in with_baselines(cells(loads(text + f"checkpoint: {{interval: 1 s}}\n{fault}").scenarios))
        )

    assert baselines("faults: [{task-manager: 0, at: 1 s}]\n") == 0
    assert baselines("faults: [{kill: b, at: 1 s}]\n") == 0
    assert baselines("faults: [{task-manager: 0, at: 3 s}]\n") == 1
    assert baselines("faults: [{kill: b, every: {exponential: 1 h}}]\n") == 1
    assert baselines("faults: [{network: 0, lasts: 50 s, at: 1 s}]\n") == 0
    assert baselines("faults: [{network: 0, lasts: 49 s, at: 1 s}]\n") == 1
    assert baselines("faults: [{storage: outage, lasts: 1 s, at: 1 s}]\n") == 1


def crossed(study, seeds):
    """The scenarios of the study under each seed; the seed is the first axis."""
    named = [
        replace(
            scenario,
            axes=(("run.seed", str(seeds[0])), *scenario.axes),
            run=replace(scenario.run, seed=seeds[0], replications=3),
        )
        for scenario in study.scenarios
    ]
    return SeededScenarios.crossed(named, seeds)


def test_scenarios_that_differ_in_their_seed_are_those_of_each_seed(study):
    """Cell by cell: scenario, name, replication and baseline are as if each had been planned by itself."""
    scenarios = crossed(study, [5, 2, 9])
    by_hand = [
        replace(
            scenario,
            axes=(("run.seed", str(seed)), *scenario.axes),
            run=replace(scenario.run, seed=seed, replications=3),
        )
        for scenario in study.scenarios
        for seed in (5, 2, 9)
    ]

    assert by_hand == list(scenarios)
    assert list(cells(tuple(by_hand))) == list(cells(scenarios))
    planned = with_baselines(cells(scenarios))
    assert list(with_baselines(list(cells(tuple(by_hand))))) == list(planned)
    assert [identity(cell.scenario) for cell in planned] == [cell.id for cell in planned]
    assert [identity(baseline(cell.scenario)) for cell in planned] == [
        name.decode() for name in planned.checkpointless_ids
    ]
    assert [dict(cell.scenario.axes).get("run.seed") for cell in planned] == list(planned.axis("run.seed"))
    assert sum(cell.scenario.run.duration_ns for cell in planned) == planned.simulated_ns()


def test_a_part_of_a_plan_is_a_plan(study):
    """Its cells are those of the places, in their order."""
    planned = cells(crossed(study, [5, 2]))

    assert [planned[3], planned[1]] == list(planned.take(np.array([3, 1])))
    assert planned == list(planned)
    assert planned != list(planned)[1:]
