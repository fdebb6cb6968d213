"""Settings of the whole suite: how hard Hypothesis looks (`HYPOTHESIS_PROFILE`), and that Ctrl-C means what it says."""

import os
import signal

import hypothesis

# Shrinking is worth its time, explaining is not: it traces every line of a simulation.
PHASES = [phase for phase in hypothesis.Phase if phase is not hypothesis.Phase.explain]

# dev: quick, while writing.  ci: as many, but the same ones every time, whatever the machine's mood.  deep: nightly.
hypothesis.settings.register_profile("dev", max_examples=25, deadline=None, phases=PHASES)
hypothesis.settings.register_profile("ci", max_examples=25, derandomize=True, deadline=None, print_blob=True, phases=PHASES)
hypothesis.settings.register_profile(
    "deep", max_examples=2000, deadline=None, phases=PHASES, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# A shell's background job starts with interrupts ignored, and so would everything the tests of Ctrl-C start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
