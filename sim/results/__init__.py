"""What a run produces: journal, tables, summaries, verdicts, charts."""
