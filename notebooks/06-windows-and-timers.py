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
# # Windows that fire together: do interruptible timers make checkpoints short?
#
# Every ten seconds all keys of a window fire at once, which keeps each of its tasks for two seconds. A barrier that comes meanwhile waits:
# timers run on the task thread, and even a barrier that overtakes data does not overtake the thread. FLIP-443 lets the thread look up
# between two timers. Is it worth switching on?

# %%
import sim

results = sim.load("../scenarios/windows-that-fire-together.yaml").run()
results

# %% [markdown]
# Medians say nothing of that: four checkpoints in five meet no firing. The tail does.

# %%
results.plot.durations()

# %% [markdown]
# ## The slowest checkpoint, with and without

# %%
slow = results["unaligned, interruptible-timers false"]
slow.explain(20)

# %%
results.table.set_index("strategy")[["end_to_end_p50_ms", "end_to_end_p99_ms", "end_to_end_max_ms"]].round(0)

# %% [markdown]
# ## The decision
#
# Switch interruptible timers on together with unaligned barriers (`execution.checkpointing.unaligned.interruptible-timers.enabled`), if the
# tail of checkpoints matters. With aligned barriers they change nothing: the barrier waits in the queue behind the records.
