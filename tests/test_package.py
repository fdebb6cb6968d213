"""The package as others get it: built, installed where nothing else is, from nothing to a report in four commands."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest

from tests.places import ROOT

UNREACHABLE = re.compile(
    r"NewConnectionError|NameResolutionError|Temporary failure in name resolution|Network is unreachable|ProxyError"
)


def run(*command, **options):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, timeout=1500, **options
    )
    if done.returncode and UNREACHABLE.search(done.stdout + done.stderr):
        pytest.skip("needs an index of packages")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the wheel, made from the sdist, and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return folder


@pytest.mark.slow
@pytest.mark.xdist_group("package")
def test_what_is_built_holds_what_it_needs(built):
    """Every file of the package that git knows, in both; in the sdist the licence, pages and tests as well."""
    listed = run("git", "ls-files", "sim", cwd=ROOT).stdout.split()
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(source) as archive:
        in_source = {name.partition("/")[2] for name in archive.getnames()}

    assert [name for name in listed if name not in in_wheel] == []
    assert [
        name
        for name in (*listed, "LICENSE", "CHANGELOG.md", "docs/tutorial.md", "tests/test_package.py")
        if name not in in_source
    ] == []
    assert [name for name in in_wheel if not name.startswith(("sim/", "ckptsim-"))] == []


@pytest.mark.slow
@pytest.mark.xdist_group("package")
def test_four_commands_from_nothing_to_a_report(built, tmp_path):
    """Install, init, run, report; neither the checkout nor its packages are in sight."""
    environment = {
        name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    }
    here = {"cwd": tmp_path, "env": environment}
    run(sys.executable, "-m", "venv", "clean", **here)
    (wheel,) = built.glob("*.whl")
    ckptsim = tmp_path / "clean" / "bin" / "ckptsim"
    run(
        tmp_path / "clean" / "bin" / "python",
        "-m",
        "pip",
        "install",
        "-q",
        "-c",
        ROOT / "constraints.txt",
        wheel,
        **here,
    )
    run(ckptsim, "init", "first", **here)
    done = run(ckptsim, "run", "first.yaml", "--out", "first", **here)
    run(ckptsim, "report", "first", "-o", "first.html", **here)

    assert "aligned-timeout 1 s" in done.stdout
    assert "Checkpoints of first" in (tmp_path / "first.html").read_text()


def test_what_the_image_copies_is_there():
    """And is not left out by .dockerignore."""
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    kept = {
        line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    }
    names = {name for line in copied for name in line.split()}

    assert {"sim", "docs", "pyproject.toml", "README.md", "LICENSE", "constraints.txt"} == names
    assert names == kept
    assert [name for name in names if not (ROOT / name).exists()] == []
