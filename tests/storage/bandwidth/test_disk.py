"""A local disk: shared bandwidth, space that runs out, lost with its task manager."""

from dataclasses import replace

import pytest

from sim.model.storage import Disk, Storage
from sim.storage.ledger import DiskFull
from tests.storage.lab import MB, MS, Lab


def lab(rate=100 * MB, space=None):
    return Lab(Storage(bytes_per_second=1, close_ns=MS, disk=Disk(rate, space)))


def test_writers_and_readers_share_it():
    """Two writes and a read of 50 MB at 100 MB/s: 1.5 s; the disk beside it is idle: 0.5 s."""
    here = lab()
    here.start("a", here.storage.disk(0).write(50 * MB, "a"))
    here.start("b", here.storage.disk(0).write(50 * MB, "b"))
    here.start("read", here.storage.disk(0).read(50 * MB, "c"))
    here.start("beside", here.storage.disk(1).write(50 * MB, "a", host=1))

    assert here.run() == {"a": 1500, "b": 1500, "read": 1500, "beside": 500}


def test_without_a_bandwidth_it_takes_no_time():
    assert lab(rate=None).took_ms(lab(rate=None).storage.disk(0).write(10**15, "a")) == 0


def test_a_full_disk_is_a_failure_with_a_name():
    """60 of 100 MB used: 50 more do not fit; what is deleted or given up is free again."""
    here = lab(space=100 * MB)
    disk = here.storage.disk(0)
    kept = here.env.run(until=here.env.process(disk.write(60 * MB, "kept")))
    with pytest.raises(DiskFull, match="task manager 0 has 40000000 B left, keyed/map/3 needs 50000000 B more"):
        here.took_ms(disk.write(50 * MB, "keyed", "map", 3))
    assert [stored.complete for stored in here.storage.files] == [True, False]
    here.took_ms(disk.write(40 * MB, "fits"))
    here.took_ms(disk.delete([kept]))
    here.took_ms(disk.write(60 * MB, "fits again"))

    assert disk.medium.used_bytes == 100 * MB


def test_half_written_files_take_space_until_given_up():
    here = lab(space=100 * MB)
    disk = here.storage.disk(0)
    stream = disk.open("a")
    here.took_ms(stream.write(30 * MB))

    assert disk.medium.used_bytes == 30 * MB
    stream.give_up()

    assert disk.medium.used_bytes == 0
    here.took_ms(disk.delete([stream.file.id]))

    assert disk.medium.used_bytes == 0


def test_it_goes_with_its_task_manager():
    """Files are gone, space is free; another task manager keeps its own."""
    here = lab(space=100 * MB)
    files = [
        here.env.run(until=here.env.process(here.storage.disk(host).write(80 * MB, "a", host=host))) for host in (0, 1)
    ]
    here.storage.lose_disk(0)

    assert [here.storage.files.exists(file) for file in files] == [False, True]
    here.took_ms(here.storage.disk(0).write(80 * MB, "a"))


def test_files_of_disk_and_storage_stand_in_one_ledger():
    here = Lab(replace(Storage(), disk=Disk()))
    here.took_ms(here.storage.write(1, "remote"))
    here.took_ms(here.storage.disk(2).write(2, "local", host=2))

    assert [(file.name, file.disk, file.host) for file in here.storage.files] == [
        (("remote",), False, 0),
        (("local",), True, 2),
    ]
