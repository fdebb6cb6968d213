"""Why a checkpoint of a run took as long as it did, and what would have changed it."""
