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
# # Ending a job: stop with a savepoint, drained or not?
#
# Before a job is upgraded it is stopped with a savepoint. `--drain` lets sources end and operators finish first; without it the job is
# kept as it stands. What is committed, and when, and is anything lost? (FLIP-147 changed what Flink does.)

# %%
import sim

study = sim.load("../scenarios/flip-147-drain-or-not.yaml", {"checkpoint.barriers": "aligned"})
results = study.run()
results

# %% [markdown]
# ## What became of the output
#
# The sink holds back a thousand records and writes them with the next batch, or when it finishes. Before FLIP-147 operators finished after
# the savepoint, and what they wrote then was lost.

# %%
results.consequences

# %%
results.commits.groupby("strategy").tail(1).set_index("strategy")[["checkpoint", "records"]]

# %% [markdown]
# ## The savepoint itself
#
# Aligned, always: a savepoint is meant to be kept, and in-flight data in it would tie it to this job graph.

# %%
savepoints = results.checkpoints.query("savepointFormat != ''").set_index("strategy")
savepoints[["id", "checkpoint_type", "status", "trigger_timestamp", "end_to_end_duration"]].round(0)

# %%
results.plot.timeline(int(savepoints["id"].iloc[0]), strategy=savepoints.index[0])

# %% [markdown]
# ## The decision
#
# For an upgrade: without `--drain`. The savepoint holds what the sink holds back, and the next job goes on with it. With `--drain` only if
# there is no next job: windows fire before they are full.
