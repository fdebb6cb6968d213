"""Settings of the whole suite: how hard Hypothesis looks (`HYPOTHESIS_PROFILE`)."""

import os

import hypothesis

# dev: quick, while writing.  ci: the same examples every time, whatever the machine's mood.  deep: nightly.
hypothesis.settings.register_profile("dev", max_examples=25, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=100, derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.register_profile("deep", max_examples=2000, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
