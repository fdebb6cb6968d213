"""What a task does about barriers, over all its gates: Flink's handlers, state by state.

`sim.protocol.task` calls it, and each strategy names its first state.  It knows gates by their positions, and no snapshot.

handler.py holds one checkpoint at a time (SingleCheckpointBarrierHandler) and asks its state what to do; aligned.py and
alternating.py are those states; tracker.py counts instead of blocking (CheckpointBarrierTracker).
"""
