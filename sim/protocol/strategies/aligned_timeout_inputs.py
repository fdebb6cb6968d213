"""Aligned barriers with a deadline as they were before FLINK-27251 (Flink 1.13 to 1.15): only inputs go unaligned.

A barrier behind data in a sender's queue stays there, late or not; the task that wrote it has acknowledged long ago.
"""

from __future__ import annotations

from dataclasses import replace

from sim.protocol.phases import Requirement
from sim.protocol.strategies.aligned_timeout import ALIGNED_TIMEOUT

ALIGNED_TIMEOUT_INPUTS = replace(
    ALIGNED_TIMEOUT,
    name="aligned-timeout-inputs",
    finishing=ALIGNED_TIMEOUT.finishing - {Requirement.OUTPUT_BARRIERS},
)
