"""Which committables the snapshots of a run hold in flight: barriers have overtaken them."""


def in_flight_of(run):
    """(result of `run`, committables in flight); `run` takes what `simulate` attaches."""
    in_flight = []

    def watch(instance):
        continue_from = instance.contents.on_cut

        def on_cut(checkpoint, task, part):
            if part.committables is not None:
                in_flight.extend(part.committables.in_flight)
            continue_from(checkpoint, task, part)

        instance.contents.on_cut = on_cut

    return run(watch), in_flight
