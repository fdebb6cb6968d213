"""Random ways of checkpointing, clusters, storage and restarts; every one of them is sound."""


def draw_checkpoint(draw, job):
    timeout = {"aligned-timeout": draw.pick("1 ms", "5 ms", "40 ms", "150 ms")}
    options = {"interval": draw.ms(60, 400), "timeout": draw.pick("250 ms", "600 ms", *["10 s"] * 5)}
    options["tolerable-failed"] = 10**6 if draw.chance(0.9) else draw.pick(0, 2)
    if draw.chance(0.8):
        options["barriers"] = draw.pick("aligned", "unaligned", "unaligned", timeout)
    options |= draw.section(
        0.3,
        min_pause=lambda: draw.pick("5 ms", "50 ms"),
        num_retained=lambda: draw.pick(1, 2, 3),
        operator_io=lambda: draw.pick("pre-barrier", "async", "async"),
        abort_policy=lambda: draw.pick("survive", "reupload"),
        finish=lambda: draw.pick("flink", "naive", "naive"),
        incremental=lambda: draw.pick(True, True, False),
        local_recovery=lambda: True,
    )
    if options.get("barriers", "aligned") == "aligned" and draw.chance(0.35):
        options["max-concurrent"] = draw.pick(2, 3)
        options.pop("min-pause", None)
    options |= draw.section(
        0.12,
        subtasks_per_channel_state_file=lambda: draw.pick(1, 2, 50),
        upload_threads=lambda: draw.pick(1, 3),
        transfer_threads=lambda: draw.pick(1, 2),
        savepoint_rate=lambda: draw.pick("200 kB/s", "5 MB/s", "unlimited"),
        savepoint_cpu=lambda: "40 %",
        savepoint_keeps_base=lambda: False,
        restore_rate=lambda: draw.pick("500 kB/s", "unlimited"),
        lost_notifications=lambda: draw.pick("20 %", "60 %"),
        staging=lambda: draw.pick(
            {"space": "4 MB", "when-full": "fail"},
            {"space": "500 kB", "when-full": "block"},
            {"space": "4 MB", "when-full": "block"},
        ),
    )
    edges = [f"{up} -> {name}" for name, vertex in job.items() for up in vertex.get("input", {})]
    if draw.chance(0.08):
        options["forced-aligned"] = draw.subset(edges, 2)
    return options


CONSTANTS_OF_2 = {"buffers-per-channel", "floating-buffers-per-gate", "max-buffers-per-channel", "overdraft"}
"""Flink 2.x has no such options."""


def draw_cluster(draw):
    cluster = draw.section(
        0.3,
        latency=lambda: draw.pick("50 us", "3 ms"),
        nic=lambda: draw.pick("2 MB/s", "10 MB/s"),
        profile=lambda: draw.pick("1.15", "1.20", "2.x"),
        placement=lambda: draw.pick("isolated", "spread", "single", "spread"),
    )
    if cluster.get("placement") == "spread" and draw.chance(0.3):
        cluster["slots"] = draw.pick(1, 2, 3)
    if draw.chance(0.6):
        cluster["network"] = _network(draw)
        if cluster.get("profile", "2.x") == "2.x" and cluster["network"].keys() & CONSTANTS_OF_2:
            cluster["profile"] = "1.20"
    return cluster


def draw_cores(draw, world):
    """Some clusters have few cores, and state that takes one of them.  Drawn behind all else."""
    if not draw.chance(0.1):
        return
    world.setdefault("cluster", {})["cores"] = draw.pick(1, 1, 2)
    world["cluster"] |= draw.section(
        0.5, hosts=lambda: draw.pick(1, 2), services=lambda: draw.pick("idle-core", "side-by-side")
    )
    for vertex in world["job"].values():
        if vertex.get("state", {}).get("backend", "hashmap") == "hashmap" and "state" in vertex:
            vertex["state"].setdefault("serialize", draw.pick("1 MB/s", "4 MB/s"))
    world["cluster"] |= draw.section(0.3, **{"on-core": lambda: draw.pick("10 %", "60 %")})


def _network(draw):
    network = {"segment-size": draw.pick("4 KiB", "4 KiB", "32 KiB")} | draw.section(
        0.5,
        buffers_per_channel=lambda: draw.pick(1, 2, 3),
        floating_buffers_per_gate=lambda: draw.pick(1, 2, 8),
        max_buffers_per_channel=lambda: draw.pick(2, 2, 4),
        overdraft=lambda: draw.pick(0, 0, 2),
        buffer_timeout=lambda: draw.pick("0 s", "5 ms", "20 ms", "never"),
    )
    if draw.chance(0.2):
        network["debloat"] = (
            "on"
            if draw.chance(0.2)
            else draw.section(
                0.7,
                period=lambda: "30 ms",
                target=lambda: draw.pick("5 ms", "60 ms"),
                samples=lambda: draw.pick(1, 5),
                threshold=lambda: draw.pick("0 %", "25 %"),
                min=lambda: draw.pick("1 B", "256 B"),
            )
        )
        network |= draw.section(0.4, starting_segment_size=lambda: draw.pick("1 B", "256 B", "4 KiB"))
    return network


def draw_storage(draw):
    storage = draw.section(
        0.3, inline_threshold=lambda: draw.pick("0 B", "1 kB"), metadata_latency=lambda: draw.pick("2 ms", "30 ms")
    )
    kind = draw.pick("flat", "flat", "dfs", "object-store")
    if kind == "flat":
        storage |= {"bandwidth": draw.pick("1 MB/s", "4 MB/s", "40 MB/s")} | draw.section(
            0.3,
            read_bandwidth=lambda: draw.pick("1 MB/s", "unlimited"),
            file_latency=lambda: draw.pick("2 ms", "30 ms"),
            slow=lambda: {"share": "20 %", "factor": draw.pick(5, 40)},
        )
    else:
        storage |= {kind: _dfs(draw) if kind == "dfs" else _object_store(draw)} | draw.section(
            0.2, nic=lambda: "4 MB/s"
        )
    if kind != "object-store" and draw.chance(0.2):
        storage["file-merging"] = (
            "on"
            if draw.chance(0.3)
            else draw.section(
                0.6,
                max_file_size=lambda: draw.pick("4 kB", "40 kB", "1 MB"),
                across_checkpoints=lambda: draw.pick("on", "off"),
                max_space_amplification=lambda: draw.pick(0, 1.5, 3),
            )
        )
    if draw.chance(0.15):
        storage["disk"] = draw.section(0.7, bandwidth=lambda: draw.pick("1 MB/s", "20 MB/s"), space=lambda: "100 MB")
        if "bandwidth" in storage["disk"] and draw.chance(0.3):
            storage["disk"]["slow"] = _slow_nodes(draw)
    if draw.chance(0.3):
        storage["retry"] = draw.section(
            0.7,
            attempts=lambda: draw.pick(1, 2, 4),
            backoff=lambda: draw.pick("0 s", "10 ms", "100 ms"),
            max_backoff=lambda: "200 ms",
            timeout=lambda: draw.pick("150 ms", "400 ms", "1 s"),
        )
    return storage


def _dfs(draw):
    nodes = draw.pick(1, 3, 6)
    dfs = {"nodes": nodes, "bandwidth": draw.pick("1 MB/s", "4 MB/s", "20 MB/s")} | draw.section(
        0.4,
        replication=lambda: draw.pick(*(n for n in (1, 2, 3) if n <= nodes)),
        block=lambda: draw.pick("4 kB", "16 kB", "1 MB"),
        latency=lambda: draw.duration_law(draw.pick("1 ms", "3 ms")),
        requests=lambda: draw.pick("300/s", "2k/s", "unlimited"),
        service=lambda: draw.pick("constant", "exponential"),
        local_first=lambda: draw.pick("on", "off"),
        nic=lambda: "10 MB/s",
        stream_bandwidth=lambda: "2 MB/s",
    )
    if draw.chance(0.3):
        dfs["slow"] = _slow_nodes(draw)
    return dfs


def _slow_nodes(draw):
    if draw.chance(0.25):
        return {"trace": "speeds.csv", "column": "speed", "machine": "machine"} | draw.section(
            0.5, time=lambda: "t_s", **{"from": lambda: draw.pick("200 ms", "1 s")}
        )
    return {"share": "25 %", "factor": draw.pick(5, 50)} | draw.section(
        0.6, lasts=lambda: draw.duration_law("400 ms"), first=lambda: draw.pick(1, 2)
    )


def _object_store(draw):
    store = draw.section(
        0.6,
        bandwidth=lambda: draw.pick("1 MB/s", "10 MB/s", "unlimited"),
        latency=lambda: draw.duration_law(draw.pick("2 ms", "8 ms", "30 ms")),
        part=lambda: draw.pick("8 kB", "100 kB"),
        parallel_parts=lambda: draw.pick(1, 4),
        requests=lambda: draw.pick("300/s", "5k/s"),
        prefixes=lambda: draw.pick(1, 4),
        client=lambda: draw.pick("hadoop", "presto"),
    )
    if draw.chance(0.3):
        store["slow"] = _slow_nodes(draw)
    return store


SHORT_CALLS = {
    "trigger": "1 ms",
    "acknowledge": "1 ms",
    "complete": "1 ms",
    "notify": "1 ms",
    "first-trigger": "10 ms",
    "fail": "3 ms",
    "restart": "1 ms",
    "deploy": "4 ms",
}


def draw_overheads(draw):
    """Calls take a millisecond, restarts a few: a run of seconds sees many of them."""
    short = SHORT_CALLS | {"start": "20 ms"}
    others = draw.section(0.15, close=lambda: "2 ms", file=lambda: draw.pick("0 s", "3 ms"), flusher=lambda: "1 ms")
    for key in short:
        if draw.chance(0.05):
            others[key] = draw.pick("0 s", "7 ms", "60 ms")
    return short | others


def draw_restart(draw):
    """Most restart without end; those that give up let the job fail."""
    strategy = draw.pick(
        "fixed-delay",
        "fixed-delay",
        "fixed-delay",
        "exponential-delay",
        "failure-rate",
        "none" if draw.chance(0.3) else "fixed-delay",
    )
    heartbeat = draw.pick("150 ms", "500 ms")
    restart = {
        "strategy": strategy,
        "connection-reset": "10 ms",
        "heartbeat-interval": heartbeat,
        "heartbeat-timeout": heartbeat,
    }
    if strategy == "fixed-delay":
        restart |= {"delay": draw.ms(1, 60)} | draw.section(0.05, attempts=lambda: draw.pick(0, 2, 5))
    elif strategy == "exponential-delay":
        restart |= {"initial": "10 ms", "max": "200 ms"} | draw.section(
            0.5,
            multiplier=lambda: draw.pick(1, 1.5, 3),
            jitter=lambda: draw.pick("0 %", "10 %"),
            reset=lambda: draw.pick("500 ms", "1 min"),
            attempts=lambda: draw.pick(2, 5) if draw.chance(0.2) else 1000,
        )
    elif strategy == "failure-rate":
        restart |= {"delay": draw.ms(1, 60), "rate": draw.pick(2, 100, 100)} | draw.section(
            0.5, within=lambda: draw.pick("200 ms", "10 s")
        )
    restart |= draw.section(
        0.5,
        failover=lambda: draw.pick("region", "full"),
        replacement=lambda: "20 ms",
    )
    return (
        restart
        | draw.section(
            0.08,
            cancellation_timeout=lambda: draw.pick("30 ms", "1 s"),
            warm_up=lambda: "100 ms",
        )
        | ({"warm-up": "200 ms", "warm-up-factor": draw.pick(2, 4)} if draw.chance(0.05) else {})
    )


def draw_recovery(draw, world):
    """Some jobs recover captured output downstream, and run before they have processed what they recover.  Drawn behind all else."""
    if draw.chance(0.3):
        world["checkpoint"]["recover-output-on-downstream"] = draw.pick(True, True, False)
        world["checkpoint"] |= draw.section(0.8, during_recovery=lambda: draw.pick(True, True, False))


def draw_detection(draw, world):
    """How soon a lost task manager is missed, and by whom.  Drawn behind all else."""
    world["restart"] |= draw.section(
        0.4,
        heartbeat_interval=lambda: draw.pick("40 ms", "150 ms"),
        heartbeat_failures=lambda: draw.pick(0, 1, 2, 3),
        provider=lambda: draw.pick("standalone", "kubernetes", "yarn"),
        slot_check=lambda: draw.ms(0, 60),
        ask_timeout=lambda: draw.ms(10, 90),
        fresh_start=lambda: draw.ms(0, 90),
    )
    for fault in world.get("faults", []):
        if "task-manager" in fault and "silent" not in fault and draw.chance(0.3):
            fault["orderly"] = draw.pick(True, True, False)


def draw_scheduler(draw, world):
    """Some jobs go on with the slots there are, and are rescaled when others come.  Drawn behind all else."""
    if draw.chance(0.15):
        world["restart"] |= {"scheduler": "adaptive"} | draw.section(
            0.4,
            reactive=lambda: draw.pick(True, False),
            stabilization=lambda: draw.ms(0, 90),
            resource_wait=lambda: draw.pick("0 s", "2 s"),
            cooldown=lambda: draw.ms(0, 300),
            rescale_delay=lambda: draw.ms(0, 400),
            rescale_stabilization=lambda: draw.ms(0, 90),
        )


def draw_exchanges(draw, world):
    """What barriers may do between writers and a global committer.  Drawn behind all else."""
    for vertex in world["job"].values():
        commit = vertex.get("commit")
        if isinstance(commit, dict) and commit.get("committer") == "global" and draw.chance(0.5):
            commit["exchange"] = draw.pick("aligned", "as-job", "aligns-job")


def draw_directories(draw):
    return draw.section(
        0.5,
        paths=lambda: draw.pick("absolute", "relative-to-metadata", "relative-to-job"),
        entropy=lambda: draw.pick("on", "off"),
        create_subdir=lambda: draw.pick("on", "off"),
    )
