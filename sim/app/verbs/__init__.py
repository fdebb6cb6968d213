"""What `import sim` offers, and the commands: each takes options and returns a printable result.  Studies, and results of notebooks."""
