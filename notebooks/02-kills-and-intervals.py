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
# # Kills, load and the checkpoint interval: a day of a real job as a sweep
#
# Khaos (Geldenhuys et al., IEEE BigData 2021) ran the Yahoo streaming benchmark for a day under a real load and killed a TaskManager
# twelve times. How long was the job behind each time, and what would another checkpoint interval have changed? First the load, and the
# kills of the run whose interval was 60 s (`scenarios/published/data/khaos/README.md` has the source, the licence and what was changed).

# %%
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
from matplotlib.figure import Figure

import sim

data = Path("../scenarios/published/data/khaos")
load = pd.read_csv(data / "ysb-load-1.csv.gz")
begin = load["epoch_s"].iloc[0]
kills = pd.read_csv(data / "failures.csv").query("job == 'ysb' and run == 1 and interval_s == 60")

figure = Figure(figsize=(9, 2.6), layout="constrained")
axes = figure.subplots()
axes.plot((load["epoch_s"] - begin) / 3600, load["rate"] / 1000, lw=0.6, color="#0072b2")
for kill in kills["kill_epoch_s"]:
    axes.axvline((kill - begin) / 3600, color="#d55e00", lw=1)
axes.set(xlabel="hours", ylabel="records/s, thousands", title="offered load, and twelve kills")
axes.spines[["top", "right"]].set_visible(False)
sim.Picture(figure, "the load and the kills")

# %% [markdown]
# ## What is asked
#
# A sweep file names a scenario, what varies, and windows of a trace to replay. These six begin 359 s before a kill; the scenario kills a
# TaskManager at that time, a second before the next checkpoint is due: the worst moment, and the one the experiment chose.

# %%
sweep = Path("02-kills-and-intervals.yaml")
print(sweep.read_text())

# %% [markdown]
# ## What is answered
#
# One row per setting: the mean over the windows. All settings meet the same windows and the same random numbers, so that differences are
# taken window by window, and their intervals are narrower than those of the means. `ckptsim sweep 02-kills-and-intervals.yaml` prints the
# same; on a cluster it is `--master spark://...`.

# %%
swept = sim.sweep(sweep, folder=mkdtemp())
swept

# %%
swept.plot()

# %% [markdown]
# ## One failure at a time
#
# Every row is a run, `ckptsim schema --results` says what its columns mean. The later in the day, the higher the load, the less is left
# to catch up with: at 85k records/s the job needs twice as long as at 57k, whatever the interval. What was published for 60 s stands
# beside; it was read off Kafka's own metrics, where a backlog that is gone stays visible for 30 to 60 s more.

# %%
rows = swept.results.query("strategy != 'none'").copy()
rows["behind [s]"] = rows["caught_up_ms"] / 1000
behind = rows.pivot_table(index="window", columns="checkpoint.interval", values="behind [s]")[
    ["10 s", "30 s", "60 s", "120 s"]
]
kills.index = [f"{at} s" for at in kills["kill_epoch_s"] - begin - 359]
behind = behind.join(kills[["rate", "published_s"]]).sort_values("rate")
behind.round(0).astype(int).rename(columns={"published_s": "published, 60 s"})

# %% [markdown]
# ## What it costs not to fail
#
# A short interval is not free: each checkpoint stops the sources for a second (that is what the published latencies of this job say, and
# it is the one thing about it that was fitted). The last word belongs to how often the job fails. Young's interval weighs one against the
# other:

# %%
hours = pd.Series([0.5, 2, 8, 24, 24 * 7], name="hours between failures")
pd.DataFrame({"Young's interval [s]": [(2 * 1.0 * 3600 * h) ** 0.5 for h in hours]}, index=hours).round(0)

# %% [markdown]
# ## The decision
#
# Twelve kills a day, a checkpoint that costs a second: the throughput-optimal interval is near two minutes, where this job would be
# behind for about four. If being behind for more than two minutes is what hurts, 10 s to 30 s it is, at a price of three to ten per cent
# of the capacity. The full answer, over all kills and with unaligned barriers, is in `scenarios/sweeps/`.
