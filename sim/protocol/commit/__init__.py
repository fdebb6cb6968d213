"""What a transactional sink writes becomes visible: its writer closes transactions, its committer commits them.

The hosts of operators in `sim.runtime` call it.  It knows checkpoints by their numbers, and no file.
"""
