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
# # Replaying a day: which interval, if the job may lag no more than a minute?
#
# The load of a day is known, and so is how often a machine fails. A short interval costs throughput in every peak; a long one costs
# replay after every failure. The windows below are pieces of a real day (Khaos, the Yahoo benchmark, at a thousandth of its load): each
# is simulated with a failure in its middle, under four intervals. All settings meet the same load and the same failure.

# %%
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
from matplotlib.figure import Figure

import sim

load = pd.read_csv("../scenarios/published/data/khaos/ysb-load-1.csv.gz")
begin = load["epoch_s"].iloc[0]
figure = Figure(figsize=(9, 2.4), layout="constrained")
axes = figure.subplots()
axes.plot((load["epoch_s"] - begin) / 3600, load["rate"] / 1000, lw=0.6, color="#0072b2")
axes.set(xlabel="hours", ylabel="thousand records per second", title="24 hours of load")
axes.spines[["top", "right"]].set_visible(False)
sim.Picture(figure, "the load of a day")

# %% [markdown]
# ## What varies, and what is asked

# %%
sweep = Path("07-choosing-an-interval.yaml")
print(sweep.read_text())

# %%
swept = sim.sweep(sweep, folder=mkdtemp())
swept

# %%
swept.plot()

# %% [markdown]
# ## Where in the day it matters
#
# The hour with the highest load decides: there is the least left to catch up with.

# %%
rows = swept.results.query("strategy != 'none'")
rows.pivot_table(index="window", columns="checkpoint.interval", values="lag_s")[
    ["10 s", "30 s", "60 s", "120 s"]
].round(0)

# %% [markdown]
# ## The decision
#
# The longest interval that keeps the limit in every window, since fewer checkpoints cost less. What the sentence above names holds for this
# job, this load and one failure at a time; `ckptsim advise` asks the same for all protocols at once.
