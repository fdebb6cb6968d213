"""What the tools of the tests print."""

import sys


def print_line(line):
    """At once, also where the output is a file."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
