"""What must hold of every run; violations are told as stories, not as assertion errors.

`runtime/observe` calls it when a run has ended.  It knows the journal and tables, and no host or machine that made them.
"""
