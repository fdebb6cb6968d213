"""`residuals:`: what checkpoints of a history took beyond the model, as it is written and as the model has it.

`sim.scenario.build` calls the builder, commands the sentence about it.  It knows the names of vertices, and no other section.
"""
