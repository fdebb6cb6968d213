"""Third-party tables of rates: detects the time and value columns and their units."""
