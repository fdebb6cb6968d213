"""What the control plane may ask, as text for two readers: markers, captures, threads that stop and stand elsewhere.

Only the door calls it.  It knows neither the loop nor what a marker means.
"""
