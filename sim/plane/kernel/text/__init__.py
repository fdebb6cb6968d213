"""The data plane as a text for two readers: the interpreter runs it, the compiler compiles it.

`sim.plane.kernel` calls its door.  It knows rows and integers, and of the seam nothing but the numbers of its enumerations.

The language is Python restricted to what both do alike: one-dimensional sequences, rows by attribute, integers below 2**63
and booleans, ``while`` / ``if`` / ``for .. in range``, calls of functions of this package.  Nothing is allocated, raised,
closed over or kept in a module.  ``tests/plane/test_kernel_text.py`` holds the text to it.

Read in this order, each file knowing only those before it (letters are the rules of ``sim/plane/RULES.md``)::

    names               constants
    draws               numbers out of streams (W2), digests (G1)
    tree                which event is next (E1)
    work                the work list, notices, states (E2, E3, T12)
    elements            buffers and markers, their pool, the sender's queue
    records             where one record goes, when it is due, how long its service takes (O5, W1, T11)
    ahead               records served ahead of their time where no other component sees it
    channels/offering   what may be sent, what is ready (S1, R4)
    channels/messages   lines, messages to the sender (S5, S6)
    channels/output     segments, writing, emission, flush (O)
    channels/receiving  arrival, credits, recycling (R)
    channels/sending    from the queue to the wire (S)
    task/counting       markers processed (M4)
    task/late           outputs that wait (L)
    task/recovery       recovered input, partitions requested (P6, P7)
    task/thread         the turns of a task (T)
    verbs/capture       in-flight data, pins (C)
    verbs/markers       verbs on markers (M)
    verbs/positions     where a task stands in its channels (P2, P8)
    verbs/restarts      threads stop, tasks stand at positions (P)
    verbs/sums          what vertices, edges and tasks hold in all (T12)
    timers              flush, debloating (F, D)
    advance             the loop (E3)
    door                the only way in (E4)
"""
