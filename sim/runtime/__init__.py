"""One job simulated: the only room that knows protocol, plane and storage.

Rooms above call `run`, which wires the rest.  It knows scenarios as frozen nouns, and no scenario file.

`setup` lowers scenarios and deals checkpoints out anew; `jobmanager`, `task` and `observe` are the hosts.
Flat here: what all of them share, the clock and the barriers' options.
"""
