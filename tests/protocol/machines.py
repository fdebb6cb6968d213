"""Machines in use: what they are after some events, and what they command."""


class Running:
    """A machine that keeps its latest state and returns its commands."""

    def __init__(self, machine):
        self.state = machine

    def on(self, event):
        self.state, commands = self.state.on(event)
        return commands


def feed(machine, *events):
    """The machine after these events, and all commands on the way."""
    commands = []
    for event in events:
        machine, new = machine.on(event)
        commands += new
    return machine, commands


def feed_all(machine, *events):
    """The machine after these events, and the commands of the last one."""
    commands = ()
    for event in events:
        machine, commands = machine.on(event)
    return machine, commands
