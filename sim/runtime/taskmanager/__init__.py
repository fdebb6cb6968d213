"""What the tasks of one task manager share: room for staged files, uploads of changelogs, files of channel state.

Called by tasks.  Knows neither tasks nor the JobManager.
"""
