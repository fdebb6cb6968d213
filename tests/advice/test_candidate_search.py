"""Few runs of all settings, more of those that may still be the one: on a job that is not simulated but made up."""

import math
import re

import pandas as pd
import pytest

from sim.advice.answer import LINES, answer
from sim.advice.candidates import SURE_SHARE, Skipped
from sim.advice.job import prepare_bench
from sim.advice.judgement import Limits
from sim.advice.report import report
from sim.advice.requirements import requirements
from sim.advice.texts import comparison_with_today, value_text_apart_from, verdict
from sim.advice.trials import CONFIRM_SHARE, OUT_OF_TIME, OVER_BUDGET, TASK, Bench
from sim.model.schema.text import ScenarioError
from sim.model.units import parse_duration
from tests.advice.made_up import DAY_S, JOB, MadeUp, searched


def runs_at_most(count):
    """A budget of so many runs, all at one price."""
    return lambda scenarios, share: sum(scenario.run.replications for scenario in scenarios) <= count * share


def below_race(_scenarios, share):
    return share < CONFIRM_SHARE


def test_a_budget_that_is_used_up_ends_the_grid_and_says_what_was_not_tried(job):
    """Today's setting and the shortest interval always run: without them there is nothing to compare."""
    run = MadeUp({"aligned": 100.0}, affords=runs_at_most(0))
    found = searched(job, run)

    assert {("30 s", "aligned")} | {name for name in run.replications if name[0] == "10 s"} == set(run.replications)
    assert (
        "every 30 s (only aligned ran), 1 min, 3 min and 10 min: more work than the budget leaves (--budget)"
        in found.skipped_sentences
    )
    assert (
        "3 runs of each setting that may be the best: more work than the budget leaves (--budget)"
        in found.skipped_sentences
    )
    assert {1} == set(run.replications.values())


def test_a_choice_that_is_not_run_for_long_is_said(job):
    """Two checkpoints show no tail; a hundred are over the budget."""
    found = searched(job, MadeUp({"aligned": 100.0}, affords=below_race), checkpoint_ms=1000)

    assert not found.longer_ms
    assert not found.confirmed
    first, *_, seen = verdict(found, found.choice())
    assert (
        first
        == "Keep the current setting, aligned, every 30 s, and monitor it. It meets the limits (checkpoints at most 1 s), "
        "but it ran only for a short time."
    )
    assert seen.endswith("the budget has no room for a long run (--budget).")
    assert (
        "aligned, every 30 s for 100 checkpoints: more work than the budget leaves (--budget)"
        in found.skipped_sentences
    )


def test_a_small_budget_still_repeats_what_is_compared(job):
    """Three runs of all that may be the best are over the budget; two of today's setting and of the advised one are not."""

    def affords(scenarios, _share):
        return max(scenario.run.replications for scenario in scenarios) < 3

    run = MadeUp({"aligned": 9000.0, "unaligned": 60.0, "aligned-timeout 1 s": 70.0}, affords=affords)
    found = searched(job, run, checkpoint_ms=1000)
    assert {found.chosen.name, ("30 s", "aligned")} == {name for name, count in run.replications.items() if count == 2}
    assert "with 95 % confidence" in comparison_with_today(found).title
    alone = searched(job, MadeUp(run.duration), most=1, checkpoint_ms=1000)
    assert comparison_with_today(alone).title == "Compared with today (aligned, every 30 s), a single run of each"


def test_changes_that_the_budget_leaves_out_are_named(job):
    found = searched(job, MadeUp({"aligned": 100.0}))
    found.runner.affords = runs_at_most(0)
    sentences = requirements(found)
    assert "Not run: operators 64 times as fast: more work than the budget leaves (--budget)." in sentences


def test_files_behind_the_barrier_are_tried_beside_the_others(job):
    """FLINK-37375, where operators work before they forward the barrier: not only if nothing else fits."""
    run = MadeUp({"aligned": 800.0, "unaligned": 600.0})
    without = searched(job, run, checkpoint_ms=1000)
    job.write_text(JOB.replace("parallelism: 2}\ncheck", "parallelism: 2, snapshot: {pre-barrier: 500 ms}}\ncheck"))
    found = searched(job, run, checkpoint_ms=1000)

    assert ("30 s", "aligned") == found.chosen.name == without.chosen.name
    assert not [protocol for _, protocol in without.trials if "FLINK-37375" in protocol]
    assert "aligned, operator files behind the barrier (FLINK-37375)" in {
        protocol for interval, protocol in found.trials if interval == "30 s"
    }


def write_stateful(job, storage):
    """Write the job with a state of 1 MB at its sink."""
    stateful = JOB.replace("parallelism: 2}\ncheck", "parallelism: 2, state: {size: 1 MB}}\ncheck")
    job.write_text(f"{stateful}storage: {storage}\n")


def test_what_it_would_take(job):
    """Storage and operators, by factors; a thing that has no quantity is not named."""
    write_stateful(job, "{bandwidth: 5 MB/s}")
    slow = MadeUp(dict.fromkeys(("aligned", "unaligned"), 4000.0))
    found = searched(job, slow, checkpoint_ms=1000)

    (needed,) = requirements(found)
    assert needed == (
        "Not enough for aligned, every 30 s: checkpoint storage 64 times as fast; operators 64 times as fast; "
        "checkpoint storage and operators at once 64 times as fast."
    )


class LongTails(MadeUp):
    """Rows of runs whose hundredth checkpoint takes 4 s at 5 MB/s of storage, and less at more."""

    def run(self, scenarios):
        found = []
        for scenario in scenarios:
            self.tail_ms = 4000.0 * 5e6 / scenario.storage.bytes_per_second
            found.append(super().run([scenario]))
        return pd.concat(found)

    def row(self, axes, k, more_ms):
        row = super().row(axes, k, more_ms)
        return row | ({"end_to_end_max_ms": self.tail_ms} if axes["trial"] == "long" else {})


def test_what_it_would_take_is_judged_by_runs_as_long_as_those_that_rejected_the_setting(job):
    """Short runs keep the limit today; in long ones it takes storage four times as fast, and halving stops a little above that."""
    write_stateful(job, "{bandwidth: 5 MB/s}")
    found = searched(job, LongTails({"aligned": 500.0}), checkpoint_ms=1000)
    (needed, *_) = requirements(found)

    assert found.chosen is None
    assert re.match(
        r"With checkpoint storage 4\.\d times as fast \(24 MB/s instead of 5 MB/s\) aligned, every \S+ \S+ would keep",
        needed,
    )


def test_the_smallest_factor_is_found_from_one_on(job):
    """2.7 s are allowed and 4 s taken: 1.5 times as fast would do; of 8, 2.8, 1.7 and 1.3 the third is the least that does."""
    write_stateful(job, "{bandwidth: 5 MB/s}")
    (needed, *_) = requirements(searched(job, LongTails({"aligned": 500.0}), checkpoint_ms=2700))

    assert needed.startswith("With checkpoint storage 1.7 times as fast (8.4 MB/s instead of 5 MB/s) aligned, every")


def test_what_makes_no_job_to_advise_on(job):
    """One message each, before anything runs."""
    job.write_text(JOB.replace("interval: 30 s", "interval: [30 s, 1 min]"))
    with pytest.raises(
        ScenarioError, match=r"lists several values of checkpoint\.interval: give the one that is set today"
    ):
        prepare_bench(job, (), (), recovery_ms=None)


def test_the_start_of_a_job_is_left_out(job):
    """A short history shows a cold start; a setting is for a job that runs on."""
    bench = prepare_bench(job, ["run.cold-start=3 s"], [], recovery_ms=None)

    assert bench.load(bench.common).run.cold_start_ns == 0


def test_ends_and_actions_are_left_out(job):
    """A bounded source goes on, a savepoint is nobody's setting; what the user sets stays set."""
    bounded = JOB.replace("rate: 200/s", "rate: 200/s, records: 100")
    job.write_text(f"{bounded}actions: [{{savepoint: canonical, at: 1 s}}]\nexpect: {{checkpoints.completed: '> 1'}}\n")
    bench = prepare_bench(job, ["checkpoint.min-pause=2 s"], (), recovery_ms=None)
    scenario = bench.load(bench.common)

    assert scenario.job.vertices[0].source.total > 10**11
    assert (scenario.actions, scenario.expect, scenario.checkpoint.min_pause_ns) == ((), (), 2 * 10**9)


def unlike_recoveries(own):
    """Recoveries that are half as long, or half as long again."""
    return {"caught_up_ms": own["caught_up_ms"] * (1 + 0.5 * (-1) ** own["replication"])}


def test_few_runs_that_do_not_settle_the_choice_are_no_firm_advice(job):
    """Recoveries that spread widely may keep their limit at many intervals."""
    found = searched(job, MadeUp({"aligned": 60.0}, but=unlike_recoveries), most=3, recovery_ms=60_000)
    settled = searched(job, MadeUp({"aligned": 60.0}), most=3, recovery_ms=60_000)

    assert found.choice().same_setting < SURE_SHARE
    assert (settled.confirmed, found.confirmed) == (True, False)
    assert verdict(found, found.choice())[0].endswith("there are too few runs to rule out a better setting.")


def test_what_is_over_a_limit_is_not_printed_equal_to_it():
    """As many digits as show it."""
    assert [
        value_text_apart_from("checkpoint_ms", 1041.0, 1000.0),
        value_text_apart_from("checkpoint_ms", 1000.2, 1000.0),
        value_text_apart_from("checkpoint_ms", 1000.0, 1000.0),
        value_text_apart_from("recovery_ms", 60_100.0, 60_000.0),
        value_text_apart_from("loss", 0.0304, 0.03),
    ] == ["1.04 s", "1.0002 s", "1 s", "60.1 s", "3.04 %"]


@pytest.mark.parametrize(
    ("ran", "sentence"),
    [
        ((), "every 15 s and 1 min: no time"),
        ((("15 s", "aligned"),), "every 15 s (aligned ran) and 1 min: no time"),
        ((("1 min", "aligned, changelog"),), "every 15 s and 1 min without levers: no time"),
        ((("15 s", "aligned"), ("15 s", "unaligned"), ("1 min", "aligned"), ("1 min", "unaligned")), ""),
    ],
)
def test_what_was_left_out_is_not_in_the_table(ran, sentence):
    """A setting that ran later, for another reason, is not said to be left out."""
    left = Skipped(
        "no time",
        tuple((interval, protocol) for interval in ("1 min", "15 s") for protocol in ("aligned", "unaligned")),
    )

    assert sentence == left.sentence(ran)


def almost_alike(own):
    """Recoveries with a timeout of the alignment are 2 % shorter than others."""
    return {"caught_up_ms": 0.98 * own["caught_up_ms"]} if "timeout" in own["protocol"] else {}


def test_barriers_that_do_not_touch_a_limit_stay(job):
    """Recovery takes 35 s, or 34.3 s, and has to have a fifth of room: of 41.65 s they have 19 % and 21 %."""
    run = MadeUp({"aligned": 100.0, "aligned-timeout 1 s": 100.0}, but=almost_alike)
    found = searched(Bench(job, {}, failure=TASK), run, recovery_ms=41_650)
    tight, roomy = (found.setting(("30 s", barriers)) for barriers in ("aligned", "aligned-timeout 1 s"))

    assert (bool(tight.tight), bool(roomy.tight)) == (True, False)
    assert found.chosen.protocol == found.choice().chosen[1] == "aligned"
    assert found.has_margin


def unlike_numbers(own):
    """Long tails in both: the longest of 106 checkpoints is 9 s, of 12 it is 6 s; nine in ten take 2 s there, and 4 s here."""
    is_long = own["protocol"] == "unaligned"
    longest_ms = 9000.0 if is_long else 6000.0
    return {
        "completed": 106 if is_long else 12,
        "end_to_end_p90_ms": 2000.0 if is_long else 4000.0,
        "end_to_end_p99_ms": longest_ms,
        "end_to_end_max_ms": longest_ms,
    }


def test_the_nearest_setting_is_found_by_one_quantile(job):
    """Before, the longest of few checkpoints seemed better than the longest of many."""
    found = searched(job, MadeUp({"aligned": 100.0}, but=unlike_numbers), checkpoint_ms=1000)

    assert found.chosen is None
    assert found.nearest.protocol == "unaligned"


def never_back(own):
    """No failure is ever caught up; today's checkpoints are longer than all others."""
    return {"caught_up_ms": math.nan, "end_to_end_max_ms": 2300.0 if own["interval"] == "30 s" else 700.0}


def test_the_nearest_setting_breaks_fewest_limits(job):
    """Under all of them the job does not recover; today's breaks the limit on checkpoints as well."""
    found = searched(job, MadeUp({"aligned": 700.0}, but=never_back), most=1, checkpoint_ms=1000, recovery_ms=60_000)

    assert found.current.breaks == ("recovery_ms", "checkpoint_ms")
    assert found.nearest.breaks == ("recovery_ms",)


def test_a_limit_on_checkpoints_needs_room_without_a_history(job):
    """950 ms for 1 s may be a fifth longer: another setting has room, and it is said where none has."""
    one, none = (
        searched(job, MadeUp(dict.fromkeys(("aligned", "unaligned"), 950.0) | own), checkpoint_ms=1000)
        for own in ({"unaligned": 60.0}, {})
    )

    assert one.chosen.protocol == "unaligned"
    assert (
        "The margin is small: checkpoints 950 ms, limit 1 s, and may be 20 % longer." in verdict(none, none.choice())[0]
    )


def test_short_checkpoints_are_not_bought_with_a_recovery_nobody_asked_for(job):
    """Each checkpoint costs 0.1 s, so 10 min would lose 0.3 % less than today's 30 s; recovery would take 17 times as long."""
    run = MadeUp({"aligned": 9000.0, "unaligned": 60.0}, cost_s=0.1)
    found = searched(job, run, checkpoint_ms=1000)
    costly = searched(job, MadeUp(run.duration, cost_s=1.0), checkpoint_ms=1000)

    assert ("30 s", "unaligned") == found.chosen.name == found.choice().chosen
    # 3 % of all time are worth a longer recovery
    assert parse_duration("30 s") < parse_duration(costly.chosen.interval)
    assert "35 s (no limit given)" in answer(found, found.chosen, LINES, "").screen


def test_todays_setting_that_loses_records_is_named_nowhere(job):
    """Its sink forbids unaligned barriers: it is today's, fast, and no advice, whatever the rate of failures."""
    job.write_text(
        JOB.replace("service: 1 ms,", "service: 1 ms, connector: iceberg-v1,").replace(
            "30 s}", "30 s, barriers: unaligned}"
        )
    )
    found = searched(job, MadeUp({"aligned": 900.0, "unaligned": 10.0}), checkpoint_ms=2000)

    assert found.is_forbidden
    assert found.current_candidate.protocol == "unaligned"
    assert found.chosen.protocol == "aligned"
    assert found.nearest.protocol == "aligned"


def test_the_request_limit_of_storage_is_a_part_of_its_own(job):
    """More bandwidth does not answer requests that are refused."""
    write_stateful(job, "{object-store: {requests: 100/s, latency: 50 ms}}")
    slow = MadeUp(dict.fromkeys(("aligned", "unaligned"), 4000.0))
    (needed,) = requirements(searched(job, slow, checkpoint_ms=1000))

    assert needed.startswith(
        "Not enough for aligned, every 30 s: the request limit of checkpoint storage 64 times as high; checkpoint storage 64 times as fast; "
    )


@pytest.mark.parametrize("is_affordable", [True, False])
def test_keys_that_were_relaxed_in_vain_are_named_and_a_missing_fit_is(job, tmp_path, is_affordable):
    job.write_text(JOB.replace("checkpoint: {", "checkpoint: {max-concurrent: 2, "))

    def affords(scenarios, _share):
        return is_affordable or not any("relaxed" in str(scenario.axes) for scenario in scenarios)

    slow = MadeUp(dict.fromkeys(("aligned", "unaligned"), 4000.0), affords=affords)
    parts = report(Bench(job, {}), Limits(checkpoint_ms=1000), DAY_S * 1e3, slow, tmp_path, max_replications=1).parts
    text = " ".join(str(part) for part in parts)

    assert is_affordable == (
        "and the limits were not kept: checkpoint.max-concurrent = 1." in text and "Not enough for" in text
    )
    assert is_affordable != (
        "Not run: the smallest change of storage or operators with which a setting would fit" in text
    )


def test_a_setting_that_cannot_keep_up_is_not_the_nearest(job):
    """It comes closest to the limit on checkpoints, and loses a tenth of the records that today's serves."""

    def slower(own):
        is_slow = own["protocol"] == "unaligned"
        return {"throughput_per_second": 360.0, "throughput_change": -0.1, "backlog_growth": 1e6} if is_slow else {}

    run = MadeUp({"aligned": 3000.0, "unaligned": 1900.0}, but=slower)
    found = searched(job, run, checkpoint_ms=1000)

    assert found.chosen is None
    assert found.nearest.protocol == "aligned"
    assert searched(job, run, checkpoint_ms=1000, loss=0.01).nearest.protocol == "aligned"


@pytest.mark.parametrize(("lack", "is_cut"), [(OUT_OF_TIME, True), (OVER_BUDGET, False)])
def test_a_search_that_the_time_limit_ends_is_no_verdict(job, lack, is_cut):
    """The same command goes on, and may find a setting."""
    run = MadeUp({"aligned": 9000.0}, affords=lambda _scenarios, _share: False)
    run.lack = lack
    found = searched(job, run, checkpoint_ms=1000)
    sentence = verdict(found, found.choice())[0]

    assert sentence.startswith(f"No setting tried {'so far ' * is_cut}meets the limits")
    assert ("run the same command to resume" in sentence) == is_cut


def test_a_long_run_that_keeps_a_limit_is_better_than_a_short_one_that_breaks_it(job):
    """Rare checkpoints of today's barriers take 6.4 s, and p90 is that of the others: today's interval is kept all the same."""

    def rarely_slow(own):
        return dict.fromkeys(("end_to_end_p99_ms", "end_to_end_max_ms"), 6400.0) if own["protocol"] == "aligned" else {}

    found = searched(job, MadeUp({"aligned": 60.0, "unaligned": 60.0}, but=rarely_slow), checkpoint_ms=3000)

    assert found.chosen.name == ("30 s", "unaligned")
    assert found.chosen.ran_long
    assert not found.current.ran_long
