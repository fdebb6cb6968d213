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
# # Moving and deleting checkpoints: what may go, and what breaks?
#
# An incremental checkpoint leans on files of older ones, by absolute paths. A cluster is to be left: what has to be copied, and may the
# directory of the old job be deleted afterwards? (FLINK-24149, FLIP-193.)

# %%
import sim

study = sim.load(
    "../scenarios/flink-24149-what-can-be-moved.yaml",
    {"run.duration": "2 min", "actions": [{"savepoint": "native", "at": "100 s"}]},
)
study

# %%
results = study.run()
results.stored["Retained snapshots and what they depend on"]

# %% [markdown]
# ## What each snapshot depends on
#
# Two jobs, one after the other, under two claim modes and three ways to write paths. LEGACY leaves the files of the first job to nobody,
# and the second job goes on using them; NO_CLAIM begins with a full checkpoint, so the second job soon stands alone.

# %%
results.stored["Jobs restored from a snapshot"]

# %%
results.stored["Directories that other snapshots need"]

# %% [markdown]
# ## What a snapshot of each kind takes

# %%
results.stored["Duration and size of snapshots"].query("strategy == 'claim no-claim, paths absolute'")

# %%
results["claim no-claim, paths absolute"].plot.durations()

# %% [markdown]
# ## The decision
#
# Start the new job with NO_CLAIM and wait for its first checkpoint: from then on the directory of the old job can go. To copy a checkpoint
# elsewhere, take a native savepoint, whose paths are relative; an incremental checkpoint moves only where paths are relative to the job.
