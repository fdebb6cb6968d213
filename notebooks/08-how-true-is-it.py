# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How true is it? Predictions beside a real Flink
#
# Jobs were run on a real Flink 2.3 and recorded. Each is simulated from its configuration alone, and compared with what was observed.
# Is that good enough to choose between aligned and unaligned barriers?

# %%
import sys
from pathlib import Path

import sim

sys.path.insert(0, "..")
from benchmarks.lab.validate_command import orderings_of  # the lab reads recordings of this project's own recorder

recordings = Path("../tests/data/recordings")
names = (
    "p2-severe-aligned",
    "p4-severe-aligned",
    "p4-severe-unaligned",
    "p4-severe-timeout-1s",
    "join-fastslow-aligned",
)
validation = sim.validate(*(recordings / f"{name}.json.gz" for name in names), seeds=1)
validation

# %% [markdown]
# ## Durations, observed and predicted

# %%
table = validation.table
durations = table[table["quantity"] == "end_to_end_duration"].set_index("recording")
durations[["observed_p50", "predicted_p50", "relative_error"]].round(3)

# %% [markdown]
# ## What counts: is the order right?
#
# Of each two recordings that differ in one setting, is the one predicted slower that was slower?

# %%
orderings = orderings_of(validation)
orderings[orderings["quantity"] == "end_to_end_duration"][
    ["setting", "one", "other", "observed_one", "observed_other", "right"]
].round(0)

# %% [markdown]
# ## A job that nobody configured for us
#
# An import reads a job off Flink's REST API, and holds the simulation of it to the job's own history. What cannot be known is asked.

# %%
print(sim.import_job("../tests/data/users-jobs/J4-pressed-aligned-r1.zip"))

# %% [markdown]
# ## The decision
#
# Trust which setting is better, and by what factor; allow for the error above in single numbers. `docs/truth.md` has all recordings and
# published experiments, and what no recording has: there a warning is printed, and advice is no surer than the history allows.
