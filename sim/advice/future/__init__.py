"""What trials meet, though they last minutes only: the busiest piece of a load, and state as large as it will be.

The job of an advice and its trials call it.  It knows scenarios and traces, and no setting.
"""
