"""What a section of a YAML file is made of: leaves with units, choices, sweep axes, mappings that know their keys.

The documents of scenarios, sweeps and environments are written in it.  It knows no section.
"""
