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
# # A first scenario: which barriers get through a full pipeline?
#
# A sink is slower than its source. Every buffer between them fills up, and a checkpoint barrier has to come from the source to the sink
# through all of it. The scenario asks what happens under three kinds of barriers; `sim.compare` simulates all of them, and the same job
# without checkpoints beside them.

# %%
# %matplotlib inline
from pathlib import Path

import sim

scenario = Path("../scenarios/backpressured-shuffle.yaml")
print(scenario.read_text())

# %% [markdown]
# ## The comparison
#
# One row per kind of barriers: durations of the checkpoints completed after the warm-up (their number is the n of the percentiles), what
# they consist of, what they store and what they cost in throughput. The sentence below it is computed from the numbers.

# %%
comparison = sim.compare(scenario)
comparison

# %% [markdown]
# ## Through time
#
# Checkpoints (a dot each, at its trigger), the data that lies in queues, and how much of their time the tasks of the most
# back-pressured vertex wait. Aligned checkpoints take longer than the interval: the next one begins when the last one ends.

# %%
from sim.analysis.strategies.picture import through_time, where_time_goes

through_time({name: runs[0].tables for name, runs in comparison.results.items()}, comparison.question, warmup_s=10)

# %% [markdown]
# ## Where the time goes
#
# Followed back along the way of the slowest barrier: waiting behind data, waiting for the other inputs, the phases of the snapshot.
# With a timeout the barriers wait for one second like aligned ones and then overtake; the subtasks before the queue count that second
# as part of their asynchronous phase, as Flink does.

# %%
where_time_goes(comparison.strategies)

# %% [markdown]
# ## What to take along
#
# The numbers are columns of a data frame, units in their names, so that the next question is a line of pandas.

# %%
comparison.table.set_index("strategy")[["end_to_end_p50_ms", "persisted_bytes", "throughput_per_second", "throughput_change"]].round(3)
