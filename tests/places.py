"""Where the repository, its package and the data of the tests are."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
SIM = ROOT / "sim"
DATA = ROOT / "tests" / "data"
REST, RECORDINGS, USERS = DATA / "rest", DATA / "recordings", DATA / "users-jobs"
