"""What happened in a run: the journal, entry by entry, and the tables that are made from it, column by column.

Hosts of the runtime call it as things happen, `run` at the end.  It knows nouns of the model, and neither planes nor machines.
"""
