"""Other Pythons that tests start."""

import subprocess
import sys

from tests.places import ROOT


def run_python(*arguments, cwd=ROOT, check=False, **options):
    """The end of a Python with these arguments: its exit code, and the text that it printed."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, check=check, capture_output=True, text=True, **options)
