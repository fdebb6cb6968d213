"""A scenario as it is written: one class per mapping of the file, one field per key (hyphens for underscores).

Says what may be written where and what it means; `sim.scenario.build` makes the model of it.  Defaults live in the model:
a key that is not given is None here.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, Field, Tag

from sim.model import scenario
from sim.scenario.actions import Action
from sim.scenario.checkpoint.document import Checkpoint
from sim.scenario.cluster import Cluster
from sim.scenario.faults.document import Fault, RescaleField, Restart
from sim.scenario.grammar.fields import Axis, Condition, Natural, choice
from sim.scenario.grammar.options import Options
from sim.scenario.grammar.section import Section, Texts
from sim.scenario.history.document import Backtest
from sim.scenario.history.residuals import Residuals
from sim.scenario.instances import Directories, Instances
from sim.scenario.job.document import Vertex
from sim.scenario.storage.document import Storage


class Run(Options, of=(scenario.Run,), axes=False):
    """How long, how often."""

    HINTS: ClassVar[Texts] = {"seeds": "write replications: 20, or a list under seed"}

    seed: Axis[Natural] | None = None


class Overheads(Options, of=(scenario.Overheads,), axes=False):
    """What no configuration says: constants of an environment."""


Conditions = Annotated[
    Annotated[Condition, Tag("one")] | Annotated[list[Condition], Tag("all")],
    Discriminator(lambda value: "all" if isinstance(value, list) else "one"),
]


class Document(Section):
    """A scenario of ckptsim: a job, its checkpoints, and the question they are asked."""

    HINTS: ClassVar[Texts] = {"checkpoints": "did you mean 'checkpoint'?", "name": "a scenario is named by its file"}

    version: Annotated[str, choice("1")] = "1"
    """The version of the format of scenarios; default: 1."""
    job: dict[str, Vertex] = Field(min_length=1)
    """Vertex name -> vertex."""
    checkpoint: Checkpoint
    run: Run
    cluster: Cluster | None = None
    """Machines, network and buffers."""
    storage: Storage | None = None
    """Where checkpoints are kept."""
    expect: dict[str, Conditions] | None = None
    """Metric -> condition, or several."""
    environment: str | None = None
    """Whose constants hold: one that comes with ckptsim, or a file of constants."""
    overheads: Overheads | None = None
    """Constants that are other than there."""
    actions: list[Action] | None = None
    """Savepoints, and the stop of the job."""
    faults: list[Fault] | None = None
    """What goes wrong, and when."""
    restart: Restart | None = None
    """What happens after a failure."""
    rescale: RescaleField | None = None
    """Changes of parallelism in a run."""
    instances: Instances | None = None
    """Jobs that begin from each other's snapshots."""
    directories: Directories | None = None
    """How checkpoint storage is laid out."""
    flink: dict[str, Any] | None = None
    """Flink's own configuration keys, verbatim."""
    flink_file: str | None = None
    """A file with Flink's configuration: flink-conf.yaml, config.yaml, or a manifest of Kubernetes."""
    history: str | None = None
    """A file beside this one with what was seen of the job, written by `import`: tails, and how well the simulation agrees."""
    residuals: Residuals | None = None
    backtest: Backtest | None = None
    """How well the simulation agrees with the history of an import."""
