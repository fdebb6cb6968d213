"""Rows of strategies -> sentences: what decides between them, when jobs finish, whether they keep up.

The room `comparison` calls it.  It knows rows of strategies and no tables.
"""
