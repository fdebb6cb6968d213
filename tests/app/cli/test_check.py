"""`ckptsim check`: files are validated, and nothing runs."""


def test_a_valid_scenario_says_what_would_run(ckptsim, tiny, tmp_path):
    done = ckptsim("check", tiny.name, "--set", "checkpoint.interval=2 s")

    assert (done.exit_code, done.stdout) == (
        0,
        "tiny.yaml: valid; ckptsim run simulates 2 strategies: aligned, unaligned\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.yaml"]


def test_all_mistakes_of_all_files_are_told(ckptsim, tiny, tmp_path):
    """With their lines; the mistakes of `expect:` as well, and a sweep file is known by its keys."""
    (tmp_path / "wrong.yaml").write_text(tiny.read_text().replace("interval", "intervall"))
    (tmp_path / "expects.yaml").write_text(f"{tiny.read_text()}expect: {{end_to_end_max: < 1 s}}\n")
    (tmp_path / "sweep.yaml").write_text("version: 1\nscenario: tiny.yaml\nvary: {checkpoint.interval: [1 s, 2 s]}\n")
    done = ckptsim("check wrong.yaml expects.yaml sweep.yaml")

    assert done.exit_code == 3
    assert "wrong.yaml:6:14: checkpoint.intervall: " in done.stderr
    assert "expects.yaml:9:10: expect.end_to_end_max: unknown table 'end_to_end_max'" in done.stderr
    assert done.stdout.startswith("sweep.yaml: valid; ckptsim sweep runs ")
