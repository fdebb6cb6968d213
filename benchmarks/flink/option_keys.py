"""The keys of Flink's configuration, version by version, read from Flink's own jars: `sim/model/schema/keys.txt`.

    pip download --no-deps apache-flink-libraries==1.20.3    # and other versions; unpack each into a folder
    python -m benchmarks.flink.option_keys FOLDER...

Each FOLDER holds `lib`, `opt` and `plugins` of one version of Flink.  `ckptsim.flink.OptionNames` lists their options
by reflection.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from pathlib import Path

from benchmarks.flink.classes import classpath, java

KEYS = Path(__file__).parents[2] / "sim/model/schema/keys.txt"
HEAD = """\
# Keys of Apache Flink's configuration, older names that it still reads included, below the versions that have them.
# Read from the ConfigOptions in Flink's jars by `python -m benchmarks.flink.option_keys`.
# Source: Apache Flink, https://flink.apache.org, Copyright 2014-2026 The Apache Software Foundation, Apache License 2.0.
"""
OF_OTHER_JARS = ("table", "sql-client", "sql-gateway", "python", "materialized-table", "workflow-scheduler")
"""First words of keys in jars other than flink-dist.  The rest of those jars' options belong to connectors and formats."""
SINGLE_WORDS = ("high-availability", "restart-strategy", "scheduler-mode", "external-resources")


def keys_of(folder: Path) -> tuple[str, set[str]]:
    """(version, keys) of the Flink in a folder."""
    (dist,) = folder.glob("lib/flink-dist-*.jar")
    with tempfile.TemporaryDirectory() as place:
        (loader,) = folder.glob("lib/flink-table-planner-loader-*.jar")
        with zipfile.ZipFile(loader) as jar:
            jar.extract("flink-table-planner.jar", place)
        of_dist = _named([dist], folder)
        every = _named([*folder.rglob("*.jar"), Path(place) / "flink-table-planner.jar"], folder)
    found = {key for key in of_dist if "." in key or key in SINGLE_WORDS} | {
        key for key in every if key.split(".")[0] in OF_OTHER_JARS
    }
    version = re.search(r"dist-(\d+\.\d+)", dist.name)
    assert version is not None, dist.name
    return version[1], {key for key in found if "<" not in key and "#" not in key and not key.startswith("__")}


def _named(jars: list[Path], folder: Path) -> set[str]:
    ours = classpath().split(os.pathsep)[0]
    logging = folder.glob("lib/log4j-*.jar")
    path = os.pathsep.join(map(str, [ours, *jars, *folder.glob("lib/flink-dist-*.jar"), *logging]))
    command = [java(), "-Xmx1g", "-Dlog.file=/dev/null", "-cp", path, "ckptsim.flink.OptionNames"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name for line in lines for name in (line.split("\t")[0], *line.split("\t")[2].split())}


def text_of(found: dict[str, set[str]]) -> str:
    """The keys of all versions, below a line with the versions that have them."""
    versions = sorted(found, key=lambda version: tuple(map(int, version.split("."))))
    groups = defaultdict(list)
    for key in sorted(set().union(*found.values())):
        groups[" ".join(version for version in versions if key in found[version])].append(key)
    return HEAD + "".join(
        f"[{group}]\n" + "".join(f"{key}\n" for key in keys) for group, keys in sorted(groups.items())
    )


if __name__ == "__main__":
    KEYS.write_text(text_of(dict(keys_of(Path(folder)) for folder in sys.argv[1:])), encoding="utf-8")
