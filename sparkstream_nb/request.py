"""The parameters of a deployment, as one table: `DeployRequest`.

Each field is a parameter of `deploy`, with its type, its default and, as `Parameter`, its check, its option on the
command line and in the magics, and whether `app.json` records it. `options.py` makes the options from it,
`app/config/record.py` the record, and `app/planning.py` the deployment. `deploy`'s docstring describes each one.

Loads little but the standard library, so that `sparkstream check` starts at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import argument_checks as checks
from .argument_checks import Check
from .limits import Limits
from .option_values import ahead, limits, name_and_value, names, positive, retention, whole
from .retention import Retention

if TYPE_CHECKING:
    from .simulation.faults import Fault
    from .simulation.resources import ResourceCluster
    from .simulation.topology import Pair

DAY = 86_400_000
"""In ms."""
ALERTS = ("on", "off", "leader")
CLOCKS = ("virtual", "wall")
MODES = ("single", "active-active", "ha", "scalable", "distributed")
ROUTES = "round_robin, hash:ATTRIBUTE, node:N, random:SEED, or sticky (by stream)"


class Recorded(Enum):
    """The form in which `app.json` keeps a parameter, so that `attach` deploys the same again."""

    PLAIN = "as it is: a number, a text, or a list of texts"
    CONVERTED = "in a form of its own: `app/config/record.py`"
    NOT = "not: it is of one deployment alone, or of the place"


@dataclass(frozen=True)
class Option:
    """An option of the command line and the magics: its name, and what `add_argument` takes besides."""

    name: str
    words: Mapping[str, Any]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a deployment.

    `check` raises `Misuse` for a value of another kind; None if its use checks it. `option`: None if only Python
    has the parameter.
    """

    name: str
    default: Any
    check: Check | None
    recorded: Recorded
    option: Option | None


def _about(
    option: str | None = None, *, check: Check | None = None, recorded: Recorded = Recorded.PLAIN, **words: Any
) -> dict[str, Any]:
    """The metadata of a field. `words`: of its option, whose default is the field's but where they say another."""
    return {"check": check, "recorded": recorded, "option": option, "words": words}


@dataclass(frozen=True, kw_only=True)
class DeployRequest:
    """The arguments of `deploy`, as they were given."""

    text: str = field(default="", metadata=_about(check=checks.require_str, recorded=Recorded.CONVERTED))
    name: str | None = field(default=None, metadata=_about(check=checks.check_name, recorded=Recorded.CONVERTED))
    nodes: int | None = field(
        default=None,
        metadata=_about(
            "--nodes",
            type=positive,
            metavar="N",
            help="simulated nodes, each with one shard (default: 1, or one for each deployment file)",
        ),
    )
    mode: str | None = field(
        default=None,
        metadata=_about(
            "--mode",
            check=checks.optional_str,
            choices=MODES,
            metavar="MODE",
            help="single, active-active, ha (two nodes, one takes over from the other), scalable (such pairs behind a "
            "layer that divides the events) or distributed (the parts that @dist makes of the app): how the nodes work "
            "together (default: active-active for several nodes)",
        ),
    )
    routing: str = field(
        default="round_robin",
        metadata=_about(
            "--routing",
            check=checks.require_str,
            metavar="HOW",
            help=f"which node gets an event: {ROUTES} (default: round_robin)",
        ),
    )
    shard_ids: Sequence[str] | None = field(
        default=None,
        metadata=_about(
            "--shard-ids",
            check=checks.optional_str_list,
            type=names,
            metavar="A,B",
            help="the nodes' shard ids (default: node-1, node-2, ...)",
        ),
    )
    master: str | None = field(
        default=None,
        metadata=_about(
            "--master",
            check=checks.optional_str,
            recorded=Recorded.CONVERTED,
            metavar="URL",
            help="Spark: local[2], spark://host:7077, sc://host:15002 (default: local); or inline: in this process, "
            "without Spark and Java, for tests, CI and a first look",
        ),
    )
    conf: str | Path | Sequence[str | Path] | None = field(
        default=None,
        metadata=_about(
            "--conf",
            check=checks.check_paths,
            recorded=Recorded.CONVERTED,
            action="append",
            metavar="PATH",
            help="the nodes' deployment.yaml files: their folder, or one after the other with --conf for each",
        ),
    )
    store: str | Path | None = field(
        default=None,
        metadata=_about(
            "--store",
            check=checks.check_path,
            recorded=Recorded.CONVERTED,
            metavar="FILE",
            help="the DuckDB file of the aggregations (default: one for each app)",
        ),
    )
    fresh: bool = field(
        default=False,
        metadata=_about(
            "--fresh",
            recorded=Recorded.NOT,
            action="store_true",
            help="start without the state and the aggregations of an earlier run",
        ),
    )
    variables: Mapping[str, str] | None = field(
        default=None,
        metadata=_about(
            "--param",
            check=checks.optional_str_map,
            recorded=Recorded.CONVERTED,
            action="append",
            default=[],
            type=name_and_value,
            metavar="NAME=VALUE",
            help="the value of ${NAME} in the text; may be given several times",
        ),
    )
    allow_scripts: bool = field(
        default=False,
        metadata=_about(
            "--allow-scripts",
            action="store_true",
            help="allow the app's script functions to run, with limits",
        ),
    )
    allow_env: Sequence[str] = field(
        default=(),
        metadata=_about(
            "--allow-env",
            check=checks.optional_str_list,
            action="extend",
            default=[],
            type=names,
            metavar="A,B",
            help="environment variables that ${...} of deployment files, stores, sources and sinks may read",
        ),
    )
    allow: Sequence[str] = field(
        default=(),
        metadata=_about(
            "--allow",
            recorded=Recorded.CONVERTED,
            action="append",
            default=[],
            metavar="KIND=WHAT",
            help="places that the app's sources, sinks and stores may reach: file=DIR, http=URL-PREFIX, "
            "kafka=HOST:PORT, smtp=HOST:PORT, tcp=HOST:PORT, nats=HOST:PORT, mqtt=HOST:PORT, "
            "rabbitmq=HOST:PORT, websocket=HOST:PORT, hl7=HOST:PORT or "
            "jdbc=postgresql://HOST:PORT/DATABASE; may be given several times (default: nothing)",
        ),
    )
    offline: bool = field(
        default=False,
        metadata=_about(
            "--offline",
            action="store_true",
            help="run the app on your own feeds, without its sources, sinks and databases: their streams are fed and "
            "read, stored rows are in the app's folder; no secret is looked up, and no --allow is needed",
        ),
    )
    home: str | Path | None = field(
        default=None,
        metadata=_about(
            "--home",
            check=checks.check_path,
            recorded=Recorded.NOT,
            metavar="FOLDER",
            help="the folder of the app's state (default: one for each app, below $SPARKSTREAM_HOME)",
        ),
    )
    shared: str | None = field(
        default=None,
        metadata=_about(
            "--shared",
            check=checks.optional_str,
            metavar="ADDRESS",
            help="where Spark's machines and this one meet if they do not see the app's folder: s3://bucket/folder",
        ),
    )
    rows_per_micro_batch: int | None = field(
        default=None,
        metadata=_about(
            "--rows-per-micro-batch",
            check=partial(checks.optional_int, least=1),
            type=positive,
            metavar="N",
            help="events of a backlog that are committed at once, at most",
        ),
    )
    start: int | str | datetime | None = field(
        default=None,
        metadata=_about(
            "--start",
            metavar="TIME",
            help="where the clock starts: ms since 1970, or a time in UTC (default: the first event)",
        ),
    )
    clock: str = field(
        default=CLOCKS[0],
        metadata=_about(
            "--clock",
            check=checks.require_str,
            choices=CLOCKS,
            help="the app's clock. virtual: moved by events and ticks alone; wall: by this machine's clock too, so "
            "that timers fire without events (default: virtual)",
        ),
    )
    timezone: str = field(
        default="UTC",
        metadata=_about(
            "--timezone",
            check=checks.require_str,
            metavar="ZONE",
            help="time zone of cron expressions and aggregations, such as Europe/Berlin (default: UTC)",
        ),
    )
    max_ahead: int | None = field(
        default=DAY,
        metadata=_about(
            "--max-ahead",
            check=partial(checks.optional_int, least=0),
            type=ahead,
            metavar="MS",
            help="an event whose time is further ahead of this machine's is an error; off: no time is (default: 1 day)",
        ),
    )
    alerts: str = field(
        default="on",
        metadata=_about(
            "--alerts",
            check=checks.require_str,
            choices=ALERTS,
            help="queries whose outputs depend on which node sees which event. off: they do not run; leader: one "
            "further node runs them over all events (default: on)",
        ),
    )
    pair: Pair | None = field(default=None, metadata=_about(recorded=Recorded.CONVERTED))
    resources: ResourceCluster | None = field(default=None, metadata=_about(recorded=Recorded.CONVERTED))
    faults: str | Path | Sequence[Fault] | None = field(
        default=None,
        metadata=_about(
            "--faults",
            recorded=Recorded.CONVERTED,
            metavar="WHAT",
            help="mode ha: the faults of the nodes: two-active, both-passive, repeated-outputs, sent-to-passive, "
            "queue-overflow; random, or random:N for each ten minutes; or a schedule file",
        ),
    )
    seed: int = field(
        default=0,
        metadata=_about(
            "--seed",
            type=whole,
            metavar="N",
            help="mode ha: a whole number that the nodes' loops and random faults follow (default: 0)",
        ),
    )
    retention: Retention | str | None = field(
        default=None,
        metadata=_about(
            "--retention",
            recorded=Recorded.CONVERTED,
            type=retention,
            metavar="LIMITS",
            help="how much of the past the app's folder keeps, such as recording=500MB,outputs=5GB,days=7,errors=5000 "
            "(default: 1 GB of input, 10 GB of outputs, 100,000 errors)",
        ),
    )
    limits: Limits | str | None = field(
        default=None,
        metadata=_about(
            "--limits",
            recorded=Recorded.CONVERTED,
            type=limits,
            metavar="LIMITS",
            help="limits for one event, such as characters=1MB,nesting=100,firings=1e6: of a text that a "
            "function makes, levels of an object, firings of a trigger in a step (default: 16MB, 200, 1e6)",
        ),
    )

    def check(self) -> None:
        """Raises `Misuse` for the first argument of another kind."""
        for p in parameters():
            if p.check is not None:
                p.check(p.name, getattr(self, p.name))


def parameters() -> Iterator[Parameter]:
    """The parameters of a deployment, in the order of `deploy`'s arguments."""
    for f in fields(DeployRequest):
        about = f.metadata
        option = None if about["option"] is None else Option(about["option"], {"default": f.default, **about["words"]})
        yield Parameter(f.name, f.default, about["check"], about["recorded"], option)
