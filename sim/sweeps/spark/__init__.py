"""Spark: sessions on any master, the package sent to executors, cells that run there.

The room `sweeps` calls it to run cells, `traces` to read files.  It knows no sweep file and keeps no rows.
"""
