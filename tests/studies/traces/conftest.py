"""A folder with traces of each kind."""

import gzip


def write_traces(folder):
    """A load with a burst, failures in it and in another run, arrivals with a gap, dirty rows, and a file nobody knows."""
    (folder / "a").mkdir()
    load = [100 + at + (900 if 60 <= at < 62 else 0) for at in range(120)]
    rows = "".join(f"{1000 + at},{rate}\n" for at, rate in enumerate(load))
    (folder / "a" / "load.csv").write_text(f"epoch_s,rate\n{rows}1050,3\n1200,-1\n")
    (folder / "a" / "kills.csv").write_text("chk_interval_ms,kill_epoch_s\n10,1085\n7,1025\n")
    (folder / "a" / "all_kills.csv").write_text("kill_epoch_s\n1045\n")
    (folder / "a" / "load_chk7.csv").write_text("epoch_s,rate\n1000,1\n1001,\n1050,3\n")
    (folder / "README.md").write_text("about")
    (folder / "arrivals.csv.gz").write_bytes(gzip.compress(b"TIMESTAMP\n0.1\n0.2\n0.9\n3.5\n9e6\n"))
    (folder / "notes.csv").write_text("what,is,this\n1,2,3\n")


def write_more_traces(folder):
    """Letters outside of ASCII, times between the seconds, lines passed over."""
    (folder / "größe.csv").write_text("t,rate\n" + "".join(f"{at / 3},{at % 17 + at % 5}\n" for at in range(300)))
    tasks = "".join(
        f"{second * 250_000},,1,{second},{second % 3},{second % 4},u,0,0,0,0,0,0\n" for second in range(1, 90)
    )
    (folder / "part-00000-of-00500.csv").write_text(tasks)
