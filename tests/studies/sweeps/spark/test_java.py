"""Java is looked for before Spark starts."""

import subprocess

import pytest

from sim.studies.sweeps import spark_masters


def fake_java(folder, version):
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2023-01-01' >&2\n")
    program.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def no_java(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(spark_masters.importlib.util, "find_spec", lambda name: None)


def test_no_java_is_one_line(tmp_path):
    """That says what to do, also without Java."""
    with pytest.raises(spark_masters.MissingDependencyError) as refused:
        spark_masters.prepare_java(tmp_path)

    assert "\n" not in str(refused.value)
    assert "--jobs" in str(refused.value)


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.21", "16"])
def test_an_old_java_is_none(version, tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", version)))

    with pytest.raises(spark_masters.MissingDependencyError):
        spark_masters.prepare_java(tmp_path)


def test_a_stale_java_home_does_not_win(tmp_path, monkeypatch):
    """Spark would take it before a good `java` on PATH."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'good', '17.0.15')}/bin:/usr/bin:/bin")

    spark_masters.prepare_java(tmp_path)

    assert "JAVA_HOME" not in spark_masters.os.environ


def test_the_shim_drops_one_argument(tmp_path):
    """Everything else arrives as it was, blanks included."""
    real = tmp_path / "real"
    real.write_text('#!/bin/sh\nfor argument; do echo "[$argument]"; done\n')
    real.chmod(0o755)

    home = spark_masters.shim(real, tmp_path / "home")
    command = [home / "bin" / "java", "-cp", "a b", "--add-modules=jdk.incubator.vector", "", "Main"]
    refused = subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True)

    assert refused.stdout.splitlines() == ["[-cp]", "[a b]", "[]", "[Main]"]
