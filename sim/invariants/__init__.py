"""What must hold in every run.  A violation names the journal rows that show it."""
