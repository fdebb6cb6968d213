"""``python -m sim`` is ``ckptsim``."""

from sim.cli import main

if __name__ == "__main__":
    main()
