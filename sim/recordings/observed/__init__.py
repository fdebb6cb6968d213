"""What a recording shows, as tidy tables."""
