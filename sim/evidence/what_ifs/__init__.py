"""How far predictions of a what-if may be off: the kind of what is changed, and what recordings that changed just that have shown.

Commands, pages and advice call it.  It knows scenarios and the backtest of a file, and simulates nothing.
"""
