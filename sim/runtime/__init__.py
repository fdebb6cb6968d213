"""One job simulated: the only room that knows protocol, plane and storage.

`run` is called from outside and wires the rest; `setup` lowers scenarios and deals checkpoints out anew; `jobmanager`, `task` and `observe`
are the hosts.  Flat here: what all of them share, the clock and the barriers' options.
"""
