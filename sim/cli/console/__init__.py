"""What every verb says to its caller: tables, progress bars, errors with exit codes, how a signal ends a command.

The verbs of the command call it.  It knows no verb, and errors of other rooms by name only.
"""
