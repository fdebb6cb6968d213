"""What can be added to, as records by name: ways of barriers, state backends, ways to ship records.

Scenarios, advice, the envelope and the protocol read them.  Kinds of storage stand in `sim.model.storage`.
They know no code behind a record.
"""
