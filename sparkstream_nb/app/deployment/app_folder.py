"""The folder of an app, and the check whether its state fits a redeployed app.

`app.json` (its run and its deployment), `store.duckdb`, and `life-RUN/` with `inbox/`, `checkpoint/` and `outputs/`.
Every run has its own folder, so that a query of an earlier run that still runs on a server cannot interfere.
`trash/RUN/` has the parts that the last deployment dropped. A folder that is not empty, and has no `app.json` of ours,
is somebody else's: nothing in it is touched.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ... import argument_checks
from ...checksums import NestedTooDeep, from_json, to_json
from ...errors import Misuse
from ...journal.mirror import retire
from ...journal.private import private_folder, write_private
from ...journal.shared import Shared
from ...plan.distributed.leader import LEADER
from ...plan.nodes import Plan
from ...plan.state_units import FORMER_FORMS, KeptUnit, relevant, unit_changes, units_of
from ...runners.choice import Kind
from ...sinks.position import count_unsent
from ...system import put_in_place, to_disk
from ..config.record import DeploymentRecord
from .changing import Changes, Fate, copy_to_trash, describe_changes, plan_change, unsent_before
from .deployment import Deployment
from .fed import NOTED
from .owner import LOCK
from .whole import not_whole

STATE_FORMAT = 5
CHANGED = "the definitions or queries of the app changed"
FRESH = "fresh was asked for"
MOST_CHARACTERS = 100
"""The most bytes of a name in a folder's name; file systems take 255."""


@dataclass(frozen=True)
class AppRun:
    """One run of an app: `run` is its name, the state depends on the other fields.

    `shards`: the shard id of every node so far, by its number from 0; the first `began` of them began. `over`:
    the numbers of the nodes that take events now. A node that was removed keeps its number and its state. `led`: the
    queries of a leader, whose number comes after those that began; None without a leader. `groups`: groups of nodes
    that take over, and their faults, as a text; None without groups. `deployed`: the app's deployment, for `attach`;
    None in folders of earlier versions. The state does not depend on it.

    `units`: the plan's units, by key, if the app may be changed and continue; empty if any change starts from
    nothing. `schemas`: attributes and types by stream. `change`: how often the app was changed; the last time, when
    `changed` entries had come in. `fresh`: the aggregations of the app's own store that were emptied then. `entries`
    and `batches`: per stream, the first journal entry and the first micro-batch with the current schema. `aside`:
    the folder in the trash with the parts from before the last change.

    `shared`: the address where Spark's machines and the app's owner meet; None if these see the app's folder.
    `runner`: kind of its runner, which has the checkpoint. `partitions`: the number of Spark partitions that hold its
    nodes; it never changes (None in folders of earlier versions). `place`: the path of the app's folder, which Spark's
    checkpoint names; None if Spark has none there.
    """

    run: str
    plan: str
    began: int
    shards: tuple[str, ...]
    over: tuple[int, ...]
    mode: str
    start: int | None = None
    timezone: str = "UTC"
    led: tuple[str, ...] | None = None
    groups: str | None = None
    format: int = STATE_FORMAT
    deployed: DeploymentRecord | None = field(default=None, compare=False, repr=False)
    units: Mapping[str, KeptUnit] = field(default_factory=dict, compare=False, repr=False)
    schemas: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict, compare=False, repr=False)
    change: int = 0
    changed: int = 0
    fresh: tuple[str, ...] = ()
    entries: Mapping[str, int] = field(default_factory=dict)
    batches: Mapping[str, int] = field(default_factory=dict)
    aside: str | None = None
    shared: str | None = None
    runner: Kind = "spark"
    partitions: int | None = field(default=None, compare=False)
    place: str | None = field(default=None, compare=False)

    @property
    def shared_folder(self) -> Shared | None:
        """The folder of this life at the shared address."""
        return None if self.shared is None else Shared(self.shared).below(self.run)

    @property
    def leader(self) -> int | None:
        """The leader's number, if there is one."""
        return None if self.led is None else self.began

    def folder(self, home: Path) -> Path:
        """The folder of inbox, checkpoint and outputs of this life."""
        return home / f"life-{self.run}"

    def with_nodes(self, shard_ids: Sequence[str]) -> AppRun:
        """This run, continued with the nodes of `shard_ids`: known ones keep their numbers."""
        shards = (*self.shards, *(s for s in shard_ids if s not in self.shards))
        return replace(self, shards=shards, over=tuple(shards.index(s) for s in shard_ids))

    def write(self, home: Path) -> None:
        """Writes `app.json`, whole or not at all."""
        new = home / "app.json.new"
        write_private(new, (to_json(dataclasses.asdict(self), indent=2) + "\n").encode())
        to_disk(new)
        put_in_place(new, home / "app.json")
        to_disk(home)


def apps_folder() -> Path:
    """The default place of apps' folders: `$SPARKSTREAM_HOME`, or the user's cache folder, then `apps`."""
    base = os.environ.get("SPARKSTREAM_HOME")
    if base is None:
        cache = os.environ.get("XDG_CACHE_HOME")
        base = str((Path(cache) if cache else Path.home() / ".cache") / "sparkstream_nb")
    return Path(base) / "apps"


def default_home(name: str) -> Path:
    """The default folder of the app `name`. Raises `Misuse` for half of a surrogate pair in it."""
    argument_checks.optional_str("name", name)
    return apps_folder() / _file_name(name)


def check_home(home: Path) -> None:
    """Raises `Misuse` if `home` cannot be the folder of an app."""
    existing_parent = next(p for p in (home.absolute(), *home.absolute().parents) if p.exists())
    if not existing_parent.is_dir() or not os.access(existing_parent, os.W_OK):
        raise Misuse(f"{home} cannot be the app's folder: {existing_parent} is not a folder that may be written to")
    if existing_parent == home.absolute() and not has_app(home):
        entries = sorted(p.name for p in home.iterdir() if not _left_by_a_start(p))
        if entries:
            entry_names = ", ".join(entries[:3]) + (f" and {len(entries) - 3} more" if len(entries) > 3 else "")
            lacking = "that app.json is of something else" if "app.json" in entries else "no app.json"
            raise Misuse(
                f"{home} is not an app's folder: it has {entry_names}, and {lacking}. Give a folder that is empty, or "
                "not there yet, as home"
            )


def has_app(home: Path) -> bool:
    """True if `home` has the `app.json` of an app, which may be cut off. Raises `Misuse` if that cannot be read."""
    try:
        record = _read(home)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, NestedTooDeep):
        return False
    except ValueError:
        return True
    return isinstance(record, dict) and record.keys() >= {"run", "format"}


def _read(home: Path) -> Any:
    """The contents of `app.json`. Raises ValueError if it was cut off, `NestedTooDeep` if it is of something else,
    OSError if there is none, and `Misuse` if it may not be read.
    """
    try:
        return from_json((home / "app.json").read_text(encoding="utf-8"))
    except PermissionError as e:
        raise Misuse(f"{home / 'app.json'} cannot be read: {e.strerror}. Give another folder as home") from None


def _left_by_a_start(path: Path) -> bool:
    """True if a deployment that was ended before it wrote `app.json` leaves this."""
    return path.name in ("trash", "app.json.new", LOCK) or (_is_life(path) and not any(path.iterdir()))


def _is_life(path: Path) -> bool:
    return path.name.startswith("life-") and bool(_RUN.fullmatch(path.name[len("life-") :])) and path.is_dir()


def document_name(document: Path) -> str:
    """The name of an app that has none, from the name of its `document`, a notebook or a file."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", document.stem).strip("_-") or "app"


def document_home(document: Path) -> Path:
    """The folder of that app: files of one name in different folders do not share it."""
    return default_home(f"{document_name(document)}-{_digest(str(document.absolute()))}")


def text_home(text: str) -> Path:
    """The folder of an app that has neither a name nor a document."""
    return default_home(f"app-{_digest(text)}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _file_name(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip(".")
    if plain == name and len(plain) <= MOST_CHARACTERS:
        return plain
    return f"{plain[:MOST_CHARACTERS] or 'app'}-{_digest(name)}"


def fingerprint(plan: Plan) -> str:
    """A hash of everything that a node's state depends on: not of comments, layout, annotations or shard ids."""
    return _hash_plan(relevant(plan))


def known_fingerprints(plan: Plan) -> Iterator[str]:
    """The fingerprints of a plan that this version and earlier ones have written."""
    yield fingerprint(plan)
    yield from (_hash_plan(relevant(plan, form)) for form in FORMER_FORMS)


def _hash_plan(properties: Any) -> str:
    return hashlib.sha256(repr(properties).encode()).hexdigest()[:24]


def wanted_life(deployment: Deployment, plan: Plan, run: str, partitions: int | None = None) -> AppRun:
    """A life that begins with a deployment of `plan`."""
    d = deployment
    plain = tuple(range(d.nodes))
    shards = d.shard_ids if d.led is None else (*d.shard_ids, LEADER)
    groups = None if d.groups is None else repr(d.groups)
    return AppRun(
        run, fingerprint(plan), d.nodes, shards, plain, d.mode, d.start, d.request.timezone, d.led, groups,
        deployed=DeploymentRecord.of(d.name, d.request),
        units=units_of(plan) if may_change(d) else {}, schemas=schemas_of(plan),
        shared=None if d.shared is None else d.shared.address, runner=d.runner,
        partitions=partitions, place=str(d.home.resolve()) if d.runner == "spark" and d.shared is None else None,
    )  # fmt: skip


def open_folder(deployment: Deployment, plan: Plan, partitions: int | None = None) -> tuple[AppRun, str | None]:
    """Prepares the folder of an app: keeps the state in it if it fits, else empties it. A new state has
    `partitions` Spark partitions.

    Returns the run to use, and a sentence about the earlier state (None if there was none). Raises
    `Misuse` if that cannot be read, or is gone, unless `fresh` is asked for.
    """
    d, home = deployment, deployment.home
    run = uuid.uuid4().hex[:12]
    new_run = wanted_life(d, plan, run, partitions)
    message = None
    if (home / "app.json").exists():
        previous_run, reason = None if d.request.fresh else _life_there(home), FRESH
        if previous_run is not None:
            new_run = replace(_plan_life(d, plan, previous_run, run), partitions=partitions)
            becomes, reason = _fate(d, previous_run, new_run, plan)
            if becomes != "dropped":
                _check_place(previous_run, home)
            same = replace(previous_run, deployed=new_run.deployed)
            if becomes == "kept":
                return _keep_state(home, replace(same, units=_match_renamed(previous_run, plan)), d.shard_ids)
            if becomes == "changed" and not d.attached:
                return _continue_with_plan(d, same, new_run, plan)
        if d.attached:
            raise Misuse(
                f"{d.name} cannot be attached: {reason}. Deploy it again with the text that it is to have; the "
                "deployment says which state is kept"
            )
        unsent_count = sum(count_unsent(run_folder) for run_folder in home.glob("life-*"))
        meeting = None if previous_run is None else previous_run.shared_folder
        if meeting is not None:
            retire(meeting)
        message = f"The state was dropped: {reason}. It is in {_move_to_trash(home, run)}."
        unfinished_paths = [str(p) for p in sorted((home / "trash").iterdir()) if p.name != run and _is_unfinished(p)]
        if unfinished_paths:
            message += f" State that an interrupted deployment had dropped is in {', '.join(unfinished_paths)}."
        if meeting is not None:
            message += f" The state of its nodes is at {meeting.address}, where nothing needs it any more."
        if unsent_count:
            message += f" Outputs that sinks had not sent are there too ({unsent_count:,}), and will not be sent."
    private_folder(new_run.folder(home))  # before it is named: one that is named and missing was removed
    new_run.write(home)
    return new_run, message


def _plan_life(deployment: Deployment, plan: Plan, previous_run: AppRun, run: str) -> AppRun:
    """The run that `deployment` would begin after `previous_run`."""
    new_run = wanted_life(deployment, plan, run)
    if previous_run.plan != new_run.plan and previous_run.plan in known_fingerprints(plan):
        new_run = replace(new_run, plan=previous_run.plan)  # an earlier version hashed the same plan
    # By the wall clock it goes on from where the clock is, wherever that began.
    return replace(new_run, start=previous_run.start) if deployment.request.clock == "wall" else new_run


def _fate(deployment: Deployment, previous_run: AppRun, new_run: AppRun, plan: Plan) -> tuple[Fate, str]:
    """The fate of the state of `previous_run`, and why it does not continue unchanged (empty if it does)."""
    reason = _difference(previous_run, new_run)
    if reason is not None:
        return "dropped", reason
    if _means_the_same(previous_run, new_run, plan):
        return "kept", ""
    return ("changed" if goes_on(deployment, previous_run, plan) else "dropped"), CHANGED


def _keep_state(home: Path, previous_run: AppRun, shard_ids: Sequence[str]) -> tuple[AppRun, str]:
    """The former life, with nodes added and removed if need be."""
    message = "The state was kept: no change affects it."
    before = [previous_run.shards[i] for i in previous_run.over]
    if list(shard_ids) == before:
        previous_run.write(home)  # other parameters may have changed
        return previous_run, message
    new_run = previous_run.with_nodes(shard_ids)
    new_run.write(home)
    return new_run, message + _nodes_changed(before, shard_ids)


def _nodes_changed(before: Sequence[str], now: Sequence[str]) -> str:
    """The nodes that came and went, in words."""
    message = ""
    added_nodes, removed_nodes = [s for s in now if s not in before], [s for s in before if s not in now]
    if added_nodes:
        message += f" {'New nodes' if len(added_nodes) > 1 else 'A new node'}: {', '.join(added_nodes)}."
    if removed_nodes:
        message += f" Removed from the app: {', '.join(removed_nodes)}; their stored rows stay."
    return message


def _means_the_same(previous_run: AppRun, new_run: AppRun, plan: Plan) -> bool:
    """True if an app has its former meaning, even with other names of queries."""
    if previous_run.plan != new_run.plan or not previous_run.units or not new_run.units:
        return previous_run.plan == new_run.plan
    changes = unit_changes(previous_run.units, plan, previous_run.change + 1)
    return previous_run.schemas == new_run.schemas and not (
        changes.added or changes.changed or changes.bound or changes.removed
    )


def _match_renamed(previous_run: AppRun, plan: Plan) -> Mapping[str, KeptUnit]:
    """The units of an app with its former meaning, by their names now."""
    return unit_changes(previous_run.units, plan, previous_run.change + 1).units if previous_run.units else {}


def _continue_with_plan(
    deployment: Deployment, previous_run: AppRun, new_run: AppRun, plan: Plan
) -> tuple[AppRun, str]:
    """The former run, continued with another plan."""
    home = deployment.home
    changed_run, units = plan_change(home, previous_run, plan, new_run)
    unsent_count = unsent_before(home, previous_run, changed_run)
    place = empty_trash(home, str(changed_run.aside))
    copy_to_trash(home, previous_run, changed_run, place)
    message = describe_changes(units, place, unsent_count)
    before = [previous_run.shards[i] for i in previous_run.over]
    if list(deployment.shard_ids) != before:
        changed_run = changed_run.with_nodes(deployment.shard_ids)
        message += _nodes_changed(before, deployment.shard_ids)
    changed_run.write(home)
    return changed_run, message


def goes_on(deployment: Deployment, previous_run: AppRun, plan: Plan) -> bool:
    """True if a changed app continues its run: if any state is kept, or sources have positions. Otherwise nothing would
    be left of it but its clock.
    """
    return bool(deployment.connections.sources) or unit_changes(previous_run.units, plan, previous_run.change + 1).keeps


def life_to_change(deployment: Deployment, plan: Plan) -> AppRun | None:
    """The run that continues with another plan when `deployment` is started; None if there is none. Raises `Misuse` if
    the app's folder cannot be read.
    """
    if deployment.request.fresh or deployment.attached or not (deployment.home / "app.json").exists():
        return None
    previous_run = former_life(deployment.home)
    becomes, _ = _fate(deployment, previous_run, _plan_life(deployment, plan, previous_run, previous_run.run), plan)
    return previous_run if becomes == "changed" else None


def foresee_changes(deployment: Deployment, plan: Plan) -> Changes:
    """The effect that `open_folder` would have on an app's state; nothing is touched. Raises `Misuse` if that cannot
    be read, unless `fresh` is asked for."""
    d = deployment
    if not (d.home / "app.json").exists():
        return Changes(d.name, "begun")
    if d.request.fresh:
        return Changes(d.name, "dropped", FRESH)
    previous_run = _life_there(d.home)
    becomes, reason = _fate(d, previous_run, _plan_life(d, plan, previous_run, previous_run.run), plan)
    if becomes == "changed":
        return Changes(d.name, becomes, units=unit_changes(previous_run.units, plan, previous_run.change + 1))
    return Changes(d.name, becomes, reason or None)


def may_change(deployment: Deployment) -> bool:
    """True if unchanged parts continue when the text of the app changes: not if nodes share states in other ways
    than by the text alone, as the nodes of a pair or a leader do.
    """
    return deployment.groups is None and deployment.led is None


def schemas_of(plan: Plan) -> dict[str, list[list[str]]]:
    """Attributes and types of the streams."""
    return {s: [[a.name, str(a.type)] for a in d.source.schema] for s, d in plan.streams.items()}


_RUN = re.compile("[0-9a-f]{12}")
TABLES = "tables.db"
"""The file of the stored tables that several nodes share, where the app runs without its databases."""
_OWN_FILES = ("store.duckdb", "store.duckdb.wal", TABLES, f"{TABLES}-journal", NOTED)


def check_connected_before(deployment: Deployment) -> None:
    """Raises `Misuse` where the state in the app's folder is of a deployment with its sources, sinks and databases and
    this one is without, or the other way round: events of a test would get into it."""
    d = deployment
    if d.request.fresh or d.attached or not (d.home / "app.json").exists():
        return
    record = former_life(d.home).deployed
    offline_before = record is not None and bool(record.arguments.get("offline"))
    c = d.connections
    has_connections = bool(c.left_out) if d.request.offline else bool(c.sources or c.sinks or c.databases or c.tables)
    if offline_before == d.request.offline or not has_connections:
        return
    was, now = ("without", "with") if offline_before else ("with", "without")
    other = f"{d.name}-{'offline' if d.request.offline else 'online'}"
    raise Misuse(
        f"{d.name} was deployed {was} its sources, sinks and databases before, and is deployed {now} them now: its "
        f"state would have events of both. Give it another name (--name {other}, name='{other}'), or start from "
        "scratch (--fresh, fresh=True)"
    )


def _move_to_trash(home: Path, run: str) -> Path:
    """Moves an app's own files into a folder of its trash, from which an earlier deployment's go. `app.json` is the
    last: a folder that is emptied in part is still known as the app's."""
    place = empty_trash(home, run)
    for path in [*filter(_is_life, home.iterdir()), *(home / f for f in _OWN_FILES), home / "app.json"]:
        if path.exists():
            path.rename(place / path.name)
    return place


def own_files(home: Path) -> list[Path]:
    """The files and folders of an app in its folder. `app.json` and the lock are the last: a folder that is emptied in
    part is still known as the app's."""
    names = (*_OWN_FILES, "sinks", "sources", "trash", "app.json.new", "app.json", LOCK)
    paths = [*filter(_is_life, home.iterdir()), *(home / name for name in names)]
    return [path for path in paths if path.exists()]


def empty_trash(home: Path, run: str) -> Path:
    """Create a folder in an app's trash, from which folders of earlier deployments are removed, except of deployments
    that were ended while they dropped an app.
    """
    trash = home / "trash"
    for old in trash.iterdir() if trash.is_dir() else ():
        if _RUN.fullmatch(old.name) and not _is_unfinished(old):
            shutil.rmtree(old, ignore_errors=True)
    return private_folder(trash / run)


def _is_unfinished(place: Path) -> bool:
    """True if a folder in the trash has files of an app that was not dropped whole: its `app.json` comes last."""
    if not _RUN.fullmatch(place.name) or (place / "app.json").exists():
        return False
    return any(p.name in _OWN_FILES or _is_life(p) for p in place.iterdir())


def _life_there(home: Path) -> AppRun:
    """`former_life`, which also raises `Misuse` if the run's folder is gone."""
    previous_run = former_life(home)
    if not previous_run.folder(home).is_dir():
        raise not_whole(home, f"its {previous_run.folder(home).name} is missing, and with it the input")
    return previous_run


def _check_place(previous_run: AppRun, home: Path) -> None:
    """Raises `Misuse` if the app's folder was moved or copied since Spark began a checkpoint in it."""
    place = previous_run.place
    if place is not None and Path(place).resolve() != home.resolve():
        raise Misuse(
            f"{home} was at {place} before, and Spark's checkpoint in it names that path. Put it back there, or leave "
            "a link to it there; fresh=True (--fresh) starts from scratch"
        )


def former_life(home: Path) -> AppRun:
    """The run recorded in `app.json`. Raises `Misuse`, with the ways out, if it cannot be read."""
    try:
        record = _read(home)
        if record["format"] != STATE_FORMAT:
            raise Misuse(
                f"the state in {home} was written by another version of this package. "
                "fresh=True (--fresh) starts from scratch and keeps it in its trash; or give another folder as home"
            )
        if not _RUN.fullmatch(record["run"]):
            raise ValueError("a run of another kind")
        lists = {k: tuple(v) for k, v in record.items() if isinstance(v, list)}
        deployment_record = record.get("deployed")
        units = {key: KeptUnit(**unit) for key, unit in record.get("units", {}).items()}
        read = None if deployment_record is None else DeploymentRecord.read(deployment_record)
        return AppRun(**{**record, **lists, "deployed": read, "units": units})
    except (OSError, ValueError, RecursionError, AttributeError, TypeError, KeyError):
        raise Misuse(
            f"{home / 'app.json'} cannot be read: it was cut off or changed. Put it back from a copy; fresh=True "
            "(--fresh) starts from scratch and moves the former contents to its trash"
        ) from None


def _difference(previous_run: AppRun, new_run: AppRun) -> str | None:
    """Why the former state does not fit, in words."""
    if previous_run.plan != new_run.plan and not (previous_run.units and new_run.units):
        return CHANGED
    if previous_run.runner != new_run.runner:
        return f"it runs {_RUNS[new_run.runner]} now, and ran {_RUNS[previous_run.runner]}"
    if previous_run.mode != new_run.mode:
        return f"the mode is {new_run.mode} now, and was {previous_run.mode}"
    if not set(previous_run.shards) & set(new_run.shards):
        return f"the shard ids are {', '.join(new_run.shards)} now, and were {', '.join(previous_run.shards)}"
    if previous_run.groups != new_run.groups:
        return "the groups of nodes, their figures, faults or seed changed"
    if previous_run.led != new_run.led:
        return f"the leader runs {_describe_leaders(new_run)} now, and ran {_describe_leaders(previous_run)}"
    if previous_run.start != new_run.start:
        return f"the clock starts {_start(new_run.start)} now, and started {_start(previous_run.start)}"
    if previous_run.shared != new_run.shared:
        return (
            f"Spark's machines meet at {new_run.shared or 'no address'} now, and met at {previous_run.shared or 'none'}"
        )
    if previous_run.timezone != new_run.timezone:
        return f"the time zone is {new_run.timezone} now, and was {previous_run.timezone}"
    return None


_RUNS = {"spark": "on Spark", "inline": "in one process (master='inline')"}


def _describe_leaders(app_run: AppRun) -> str:
    return ", ".join(app_run.led or ()) or "nothing"


def _start(start: int | None) -> str:
    return "with the first event" if start is None else f"at {start} ms"
