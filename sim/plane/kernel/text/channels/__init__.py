"""What lies between two tasks, as text for two readers: the output of a sender, the wire, the input of a receiver.

The text of tasks, verbs, timers and the loop call it.  It knows no thread and no verb.
"""
