"""Spark: sessions on any master, the package sent to executors, cells that run there.

The room `sweep` runs cells on it, `traces` reads files with it.  It knows no sweep file and keeps no rows.
"""
