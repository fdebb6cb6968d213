"""What must hold of every run; violations are told as stories, not as assertion errors.

`runtime/accounts` calls it as things happen, and at the end of a run.
It knows the journal and tables, and no host or machine that made them.
"""
