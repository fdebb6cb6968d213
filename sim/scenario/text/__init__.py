"""Scenario text: YAML to plain values with their places, plain values to text, mistakes with file and line.

Every reader of YAML files calls it.  It knows no key by name.
"""
