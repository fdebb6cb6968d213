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
# through all of it. The scenario asks what happens under three kinds of barriers. Which ones should this job use?

# %%
import sim

study = sim.load("../scenarios/backpressured-shuffle.yaml")
study

# %% [markdown]
# ## The comparison
#
# `run` simulates every combination, and the same job without checkpoints beside them. One row per kind of barriers: durations of the
# checkpoints completed after the warm-up (their number is the n of the percentiles), what they consist of, what they store and what they
# cost in throughput. The sentence below it is computed from the numbers.

# %%
results = study.run()
results

# %% [markdown]
# ## Through time
#
# A bar per checkpoint, stacked by where its time went. Aligned checkpoints take longer than the interval: the next one begins when the
# last one ends. With a timeout the barriers wait for a second like aligned ones and then overtake.

# %%
results.plot.durations()

# %% [markdown]
# ## One checkpoint
#
# Why did it take so long? The critical path, followed back from the last acknowledgement; its parts sum to the duration.

# %%
results.explain(3, strategy="aligned")

# %%
results.plot.timeline(3, strategy="aligned")

# %% [markdown]
# `results.player(3)` plays the same checkpoint below a cell, with the three runs side by side: barriers on their way through the data,
# blocked channels, and what is stored of it. `study.explore()` has sliders for the interval, the barriers, the storage and the load, and
# simulates what they choose (`pip install 'ckptsim[notebook]'`); both need a notebook that is open.

# %% [markdown]
# ## What if
#
# A study is changed by the keys of its file. Would smaller buffers do as well as overtaking?

# %%
small = study["aligned"].with_({"cluster.network.segment-size": "4 KiB"})
sim.compare({"aligned, 32 KiB": results["aligned"], "aligned, 4 KiB": small, "unaligned": results["unaligned"]})

# %% [markdown]
# ## The decision
#
# Unaligned barriers, if storage takes the in-flight data; with a timeout, if the job is under pressure only now and then. Smaller buffers
# hold less data, so aligned barriers get through sooner, and that costs nothing here. The numbers are columns of a data frame with units
# in their names, so that the next question is a line of pandas.

# %%
results.table.set_index("strategy")[
    ["end_to_end_p50_ms", "persisted_bytes", "throughput_per_second", "throughput_change"]
].round(3)
