"""Many runs: cells, comparisons of barrier modes, sweeps (local and on Spark), differences, traces."""
