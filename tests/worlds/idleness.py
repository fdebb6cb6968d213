"""Sources that may be idle, and subtasks without records."""


def draw_idleness(draw, world):
    """Some sources may be idle, or have silent subtasks.  Drawn behind all else, too."""
    for vertex in world["job"].values():
        source = vertex.get("source", {})
        if source and draw.chance(0.15):
            source["watermark"] = source.get("watermark", {}) | {
                "idle-timeout": draw.pick("1 ms", "30 ms", "300 ms", "0 s")
            }
        if source and "records" not in source and vertex.get("parallelism", 1) > 1 and draw.chance(0.1):
            source["silent"] = draw.pick(1, vertex["parallelism"] - 1)
