"""The features that an operator may have, in the order in which their parts are called.  A new feature is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable

from sim.runtime.task.operator import epochs, requests
from sim.runtime.task.operator.part import OperatorPort, TaskPart
from sim.runtime.task.operator.windows import event_time, event_time_windows, generator, processing_time
from sim.runtime.task.slot import Slot

Attach = Callable[[Slot, OperatorPort], TaskPart | None]
"""Makes the part of one task; None: the task does not have the feature."""

FEATURES: list[Attach] = [
    processing_time.attach,
    event_time_windows.attach,
    event_time.attach,  # behind the windows that it ends
    generator.attach,  # behind those of its own chain
    requests.attach,
    epochs.attach,  # last: what the others let go belongs to the epoch that ends
]
