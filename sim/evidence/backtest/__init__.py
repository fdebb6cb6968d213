"""The backtest of an import: the job as it is, simulated and held to the history of checkpoints that was just read.

The commands `import` and `advise` call it.  It knows recordings and the noise of quantities, and gives no advice.
"""
