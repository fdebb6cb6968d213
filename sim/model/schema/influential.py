"""Influential options that scenarios leave at their defaults.

Which options are influential was measured: `benchmarks/defaults.py` sets each option that a file leaves out to another plausible
value, and reports those that change the duration of checkpoints or their in-flight data by more than a quarter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sim.model.scenario import Scenario
from sim.model.schema.flink_keys import document_options
from sim.model.schema.option_values import option_holders
from sim.model.schema.study import influential_options

_CAN_MATTER: dict[str, Callable[[Scenario], bool]] = {
    "cluster.profile": lambda scenario: not scenario.cluster.version,
    # the number of slots determines which tasks share a TaskManager
    "cluster.slots": lambda scenario: (
        scenario.cluster.placement == "spread" and any(vertex.parallelism > 1 for vertex in scenario.job.vertices)
    ),
    "restart.attempts": lambda scenario: scenario.restart.strategy == "fixed-delay",
}
"""Option -> whether it can influence a scenario.  Options that are not listed always can."""


def influential_defaults(scenarios: Sequence[Scenario]) -> list[str]:
    """Return the influential options that none of the scenarios sets, as in `influential_options`: ``cluster.slots``.

    An option with a default other than Flink's has both in its text:
    ``job.state.changelog.storage (filesystem; Flink: memory)``.
    """
    keys = {key.dotted: key for key in document_options()}
    holders = [holder for scenario in scenarios for holder in option_holders(scenario)]
    texts = []
    for path in influential_options():
        option, model = keys[path].record, keys[path].model
        assert option is not None  # `document_options` yields no sections
        can_matter = _CAN_MATTER.get(path)
        if not all(path in scenario.left_out for scenario in scenarios):
            continue
        if can_matter is not None and not any(map(can_matter, scenarios)):
            continue
        # an option of a section that no scenario has, such as a changelog, has no holder
        if str(option.default) not in {
            str(getattr(holder, option.field)) for holder in holders if isinstance(holder, model)
        }:
            continue
        flink_default = option.flink[0].default if option.flink else ""
        both = f" ({option.usually or option.default}; Flink: {flink_default})" if flink_default else ""
        texts.append(path.replace("VERTEX.", "") + both)
    return texts
