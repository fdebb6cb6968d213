"""What a real Flink needs on this machine: Java, Flink's libraries (the `flink` extra), and our job compiled against them."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path

from sim.studies.sweeps.spark_masters import MissingDependencyError, find_java

__all__ = ["MissingDependencyError", "classpath", "java"]

SOURCES = Path(__file__).parent / "java"
_NO_JAVA = "a real Flink needs Java 17 or newer with its compiler: install a JDK"
_NO_FLINK = "a real Flink needs its libraries: pip install -c constraints.txt -e '.[flink]'"


def java() -> Path:
    """The `java` to run Flink with.  MissingDependencyError: there is none that is new enough."""
    if (found := find_java()) is None:
        raise MissingDependencyError(_NO_JAVA)
    return found


def classpath() -> str:
    """Our classes, compiled now unless they have been before, and the jars they run with.  MissingDependencyError: one line."""
    jars = _jars()
    digest = sha256(f"{_version(java())}\n{jars[0].name}\n".encode())
    files = sorted(path for path in SOURCES.rglob("*") if path.is_file())
    for path in files:
        digest.update(f"{path.relative_to(SOURCES)}\n".encode() + path.read_bytes())
    classes = _cache() / digest.hexdigest()[:16]
    if not classes.is_dir():
        _compile(files, classes, jars[0])
    return os.pathsep.join(map(str, [classes, *jars]))


def _jars() -> list[Path]:
    """Flink itself first, then what it logs with."""
    try:
        package = importlib.metadata.distribution("apache-flink-libraries")
    except importlib.metadata.PackageNotFoundError:
        raise MissingDependencyError(_NO_FLINK) from None
    folder = Path(str(package.locate_file("pyflink/lib")))
    jars = [*folder.glob("flink-dist-*.jar"), *sorted(folder.glob("log4j-*.jar"))]
    if not jars or not jars[0].name.startswith("flink-dist-"):
        raise MissingDependencyError(f"{_NO_FLINK} (what is installed holds no flink-dist)")
    return jars


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ckptsim" / "flink"


def _compile(files: list[Path], classes: Path, jar: Path) -> None:
    """Into a folder beside, renamed when it is complete: two processes may do so at once."""
    classes.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{classes.name}-", dir=classes.parent))
    try:
        sources = [str(path) for path in files if path.suffix == ".java"]
        done = subprocess.run(
            [*_compiler(), "-d", fresh, "-cp", jar, *sources], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            message = done.stderr or done.stdout
            cause = (
                _NO_JAVA if "jdk.compiler" in message else f"our job does not compile against {jar.name}:\n{message}"
            )
            raise MissingDependencyError(cause)
        for path in files:
            if path.suffix != ".java":
                copy = fresh / path.relative_to(SOURCES)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
        try:
            fresh.rename(classes)
        except OSError:
            if not classes.is_dir():  # else somebody was faster, with the same content
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _compiler() -> list[str | Path]:
    """The one inside the `java` found, whatever PATH says; a `javac` beside it where `java` starts no modules by name."""
    javac = java().with_name("javac")
    return [javac] if javac.exists() else [java(), "-m", "jdk.compiler/com.sun.tools.javac.Main"]


def _version(program: Path) -> str:
    return subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
