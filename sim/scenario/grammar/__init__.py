"""What a section of a YAML file is made of: leaves with units, choices, sweep axes, mappings that know their keys.

Documents of scenarios, sweeps and environments call it to read their keys.  It knows no section.
"""
