"""The data plane as a text for two readers: the interpreter runs it, the compiler compiles it.

`sim.plane` calls its door.  It knows rows and integers, and of the seam nothing but the numbers of its enumerations.

The language is Python restricted to what both do alike: one-dimensional sequences, rows by attribute, integers below 2**63
and booleans, ``while`` / ``if`` / ``for .. in range``, calls of functions of this package.  Nothing is allocated, raised,
closed over or kept in a module.  ``tests/plane/test_kernel_text.py`` holds the text to it.

Read in this order, each file knowing only those before it (letters are the rules of ``sim/plane/RULES.md``)::

    basics    constants, numbers out of streams (W2), digests (G1), the next event (E1), the work list (E2, E3, T12), buffers and markers
    records   where one record goes, when it is due, how long its service takes (O5, W1, T11); records served ahead of their time
    channels  what may be sent, what is ready (S1, R4); lines (S5, S6); segments, writing, emission, flush (O)
    transfer  arrival, credits, recycling (R); from the queue to the wire (S)
    counting  markers processed (M4)
    late      outputs that wait (L)
    task      recovered input, partitions requested (P6, P7), the turns of a task (T)
    verbs     in-flight data, pins (C); markers (M); positions (P2, P8); threads stop, tasks stand at positions (P); sums (T12)
    loop      flush, debloating (F, D), the loop (E3), the only way in (E4)
"""
