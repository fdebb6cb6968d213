"""The console of all verbs: tables, progress bars, errors with exit codes, and signals that end a command.

The verbs of the command call it.  It knows no verb, and errors of other rooms by name only.
"""
