"""Sources that may be idle or keep in step, subtasks without records, and bundles that are bounded."""

from __future__ import annotations

from tests.worlds.draw import Document, Draw

__all__ = ["draw_idleness"]


def draw_idleness(draw: Draw, world: Document) -> None:
    """Some sources may be idle, keep in step, or have silent subtasks; some bundles have a size.  Drawn behind all else, too."""
    for vertex in world["job"].values():
        source = vertex.get("source", {})
        if source and draw.chance(0.15):
            source["watermark"] = source.get("watermark", {}) | {
                "idle-timeout": draw.pick("1 ms", "30 ms", "300 ms", "0 s")
            }
        if source and draw.chance(0.12):
            alignment = {"group": draw.pick("a", "a", "b"), "max-drift": draw.pick("0 s", "20 ms", "200 ms")}
            alignment |= draw.section(
                0.6, update_interval=lambda: draw.pick("10 ms", "80 ms"), buffer_size=lambda: draw.pick(0, 1, 3)
            )
            source["watermark"] = source.get("watermark", {}) | {"alignment": alignment}
        if source and "records" not in source and vertex.get("parallelism", 1) > 1 and draw.chance(0.1):
            source["silent"] = draw.pick(1, vertex["parallelism"] - 1)
        window = vertex.get("window", {})
        if "mini-batch" in window and "flush" not in window and draw.chance(0.6):
            window["size"] = draw.pick(1, 3, 20)
