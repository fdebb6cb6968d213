"""What must hold of every run; violations are told as stories, not as assertion errors."""
