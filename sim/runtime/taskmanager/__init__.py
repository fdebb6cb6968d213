"""What the tasks of one task manager share: room for staged files, uploads of changelogs, files of channel state.

Tasks call it.  It knows neither tasks nor the JobManager.
"""
