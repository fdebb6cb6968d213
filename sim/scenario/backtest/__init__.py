"""`backtest:` of a file: how well the simulation agrees with the history that the file was imported from.

`sim.scenario.study` calls the builder, `import` the writer, commands the verdict.  It knows residuals, and no run depends on it.
"""
