"""``python -m sim`` is ``ckptsim``."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the console script."""
    try:
        from sim.app.cli import main as command

        command()
    except KeyboardInterrupt:  # before the command handles signals: its imports take a moment
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
