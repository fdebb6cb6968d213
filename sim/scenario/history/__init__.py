"""What a real job was seen to do, and how well its simulation agrees: the history of an import, in a file of its own or in the scenario.

`sim.scenario.study` calls the readers, `import` the writers, commands the verdict.  It knows residuals, and of the rest no run depends.
"""
