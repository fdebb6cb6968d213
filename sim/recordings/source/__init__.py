"""Readers of foreign files and servers, a folder per kind of source.  They share typed values, checks, and a bound on memory.

The rooms `infer` and `observe` call it.  It knows no scenario.
"""
