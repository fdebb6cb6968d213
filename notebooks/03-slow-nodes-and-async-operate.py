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
# # Slow nodes of a distributed file system: should the sink upload behind the barrier?
#
# A lake sink flushes its files before it forwards the barrier. A block is as slow as the slowest of its three replicas, and one slow writer
# holds back everything upstream. FLINK-37375 proposes to flush to the local disk and to upload in the asynchronous part. Is that worth it
# for this job, if three nodes of fifty are slow?

# %%
import sim

study = sim.load(
    "../scenarios/flink-37375-slow-dfs-nodes.yaml", {"storage.dfs.slow.share": "6 %", "run.duration": "5 min"}
)
results = study.run()
results

# %% [markdown]
# ## Where the time of the slowest checkpoint goes
#
# The parts of the critical path, with the file that was waited for and the node it lies on; and what would be saved at most.

# %%
results.explain(strategy="operator-io pre-barrier")

# %%
results.plot.durations()

# %% [markdown]
# ## What the job does meanwhile
#
# Work before the barrier holds the task threads, so nothing is read while files are written. Behind the barrier the upload takes as long,
# and costs no throughput.

# %%
results.plot.throughput()

# %%
results.table.set_index("strategy")[
    ["end_to_end_p50_ms", "end_to_end_p99_ms", "throughput_per_second", "throughput_change"]
].round(3)

# %% [markdown]
# ## The decision
#
# Upload behind the barrier: the job keeps its throughput, where it lost half of it. A checkpoint still ends with its slowest file, and as
# twice the records flow, files are larger and output is visible later. If that is too late, the slow nodes are what has to go: without
# them (`{"storage.dfs.slow.share": "0 %"}`) both ways are quick.
