"""What `import sim` offers: studies, results, imported jobs."""
