"""Many scenarios: cells, where they run (this process, a process pool, Spark), where their rows are kept."""
