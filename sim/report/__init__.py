"""What is told about results beyond their tables."""
