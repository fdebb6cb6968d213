"""What the control plane may ask, as text for two readers: markers, captures, threads that stop and stand elsewhere.

The door calls it, and nobody else.  It knows neither the loop nor what a marker means.
"""
