"""The kernel of the data plane: one source, which is interpreted or compiled.

`sim.plane.kernel` calls `dispatch_operation` (`loop`).  The kernel knows rows and integers; of `sim.plane.interface` it
knows only the numbers of the enumerations.

The methods belong to one class, `Kernel`, whose fields are the rows (`PlaneState`); each module extends the class of the module before it.

The language is the part of Python that both engines execute alike: one-dimensional sequences, rows by attribute,
integers below 2**63 and booleans, ``while`` / ``if`` / ``for .. in range``, calls of methods and functions of this package.  Nothing
is allocated, raised, closed over or kept in a module.  ``tests/plane/test_kernel_text.py`` checks this.

Read the modules in this order; each one imports only those before it (letters are the rules of ``sim/plane/RULES.md``)::

    basics    constants, random numbers (W2), digests (G1), the next event (E1), the work list (E2, E3, T12), buffers and markers
    channels  where a record goes, when it is due, its service time (O5, W1, T11); records served ahead of their time; output (O);
              lines (S5, S6), sending (S), arrival, credits, recycling (R)
    task      markers counted (M4), late outputs (L), recovered input (P6, P7), the turns of a task (T)
    verbs     in-flight data, pins (C); markers (M); positions (P2, P8); halts and restarts (P); sums (T12)
    loop      flush, debloating (F, D), the event loop (E3), the only entry point (E4)
"""

# How one buffer travels.  The work list (TURN t, SEND c) and the event tree (`basics.py`) drive every step.
#
#   writer                           remote channel                        reader
#   ------                           --------------                        ------
#   end_service
#     emit -> write -> open_buffer
#                      close_full -> offer
#                                    SEND c on the work list
#                                    send: one element; data costs a credit
#                                    transmit -> forward line -----------> forward_line_event
#                                                                            arrive: receive queue
#                                                                            make_ready: ready list, TURN
#                                                                          turn -> run -> read_input
#                                                                            poll: becomes the current buffer
#                                                                            begin_service ... end_service
#                                    reverse line <- notify_sender(CREDIT) <-- recycle_current
#   act: credit grows -> offer
#
# Without a NIC and latency there is no line either: `transmit` calls `arrive`, and `notify_sender` calls `act`.
# On a local channel there is no line and no credit: `send_local` makes the channel ready, and `poll_local`
# takes the buffer from the sender's queue.
#
# An event for each record was 30 of the 40 ns that a small record cost (commit 1ab2de38).  Records that
# neither end a buffer nor fill one are therefore served ahead of their time in one step, and taken back if
# another component looks at the task (`channels.py`).  Nothing can be served ahead where each record fills a
# buffer, and where channels come from memory and flushes leave few records per buffer it gains nothing: there
# `pays_to_serve_ahead` says no (docs/performance.md).
