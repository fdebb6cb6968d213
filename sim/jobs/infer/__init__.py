"""A recorded job -> its scenario.  Every value names its origin, every gap becomes a question."""
