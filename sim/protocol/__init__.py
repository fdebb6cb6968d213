"""Flink's checkpoint protocols as state machines without input or output: events go in, commands come out."""
