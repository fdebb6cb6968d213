"""One task's thread, as text for two readers: its turns, markers it counts, input it recovers, outputs that leave late.

The loop calls it, and verbs that put a task elsewhere.  It knows no verb.
"""
