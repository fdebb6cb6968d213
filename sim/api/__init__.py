"""What `import sim` offers: studies, their results, and everything else the command can do, for Python and notebooks.

People and notebooks call it, through the names of the package.  It knows every room by its front door but the command, and prints nothing.
"""
