"""Faults as users give them: an incident's name, `random`, a schedule file, or a list of faults."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ...durations import parse_duration
from ...errors import Misuse, shown
from ...simulation.faults import Cut, Fault, Kill, Pause, Restart, Slow
from ...simulation.incidents import incident
from ...simulation.resource_incidents import resource_incident
from ...simulation.resources import PartialApp, ResourceCluster
from ...simulation.topology import Pair

RATE = 2.0
"""Default number of random faults in ten minutes."""
_KINDS = {"kill": Kill, "restart": Restart, "pause": Pause, "cut": Cut, "slow": Slow}


def plan_faults(
    pairs: Sequence[Pair], faults: str | Path | Sequence[Fault] | None
) -> tuple[Sequence[Pair], tuple[Fault, ...], float]:
    """Pairs, the faults that happen to them (ms from the start on), and how many random ones come in ten minutes. An
    incident happens to the first pair, which it may change. Raises `Misuse` for faults that are none of these."""
    name, listed_faults, rate = _meant(faults)
    if name is None:
        return pairs, listed_faults, rate
    first, incident_faults = incident(name, pairs[0])
    return (first, *pairs[1:]), incident_faults, 0.0


def planned_for_resources(
    cluster: ResourceCluster, apps: Sequence[PartialApp], faults: str | Path | Sequence[Fault] | None, seed: int
) -> tuple[ResourceCluster, tuple[Fault, ...], float]:
    """The same for a fully distributed deployment, which an incident may change."""
    name, listed_faults, rate = _meant(faults)
    if name is None:
        return cluster, listed_faults, rate
    return (*resource_incident(name, cluster, apps, seed), 0.0)


def _meant(faults: str | Path | Sequence[Fault] | None) -> tuple[str | None, tuple[Fault, ...], float]:
    """The name of an incident; or faults; or how many random ones come in ten minutes."""
    if faults is None:
        return None, (), 0.0
    if isinstance(faults, str) and (match := re.fullmatch(r"random(?::(\d+(?:\.\d+)?))?", faults)):
        rate = RATE if match[1] is None else float(match[1])
        if rate <= 0:
            raise Misuse(f"faults='{faults}': the number of faults for each ten minutes is above 0")
        return None, (), rate
    if isinstance(faults, Path) or (isinstance(faults, str) and faults.endswith((".yaml", ".yml"))):
        return None, schedule_of(Path(faults)), 0.0
    if isinstance(faults, str):
        return faults, (), 0.0
    listed_faults = [f for f in faults if isinstance(f, Fault)] if isinstance(faults, Sequence) else []
    if not isinstance(faults, Sequence) or len(listed_faults) < len(faults):
        what = "'random', an incident's name, a schedule file or a list of faults"
        raise Misuse(f"faults is {what}, not {shown(faults)}")
    return None, tuple(listed_faults), 0.0


def schedule_of(path: Path) -> tuple[Fault, ...]:
    """The faults of a file: a list of entries such as `{at: 90 sec, kill: node-1}`, with `restart`, `pause`, `cut:
    [node-1, database]` and `slow: [node-1, database]`, the last three with `for: 20 sec`, the last with `by: 3 sec`.
    Raises `Misuse`, with file and line, for anything else."""
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), yaml.SafeLoader)
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as e:
        raise Misuse(f"{path} cannot be read: {e}") from None
    except yaml.YAMLError as e:
        raise Misuse(f"{path} is not YAML: {' '.join(str(e).split())}") from None
    if not isinstance(entries, list) or root is None:
        raise Misuse(f"{path} is not a schedule: it is a list of faults such as {{at: 90 sec, kill: node-1}}")
    out = []
    for entry, node in zip(entries, root.value, strict=True):
        where = f"{path}, line {node.start_mark.line + 1}"
        if not isinstance(entry, Mapping):
            raise Misuse(f"{where}: {shown(entry)} is no fault; write {{at: 90 sec, kill: node-1}}")
        out.append(_fault(entry, where))
    return tuple(out)


def _fault(entry: Mapping[str, Any], where: str) -> Fault:
    kinds = [k for k in _KINDS if k in entry]
    if len(kinds) != 1 or "at" not in entry:
        raise Misuse(f"{where}: a fault has a time `at`, and one of {', '.join(_KINDS)}")
    kind = kinds[0]
    lasting = kind in ("pause", "cut", "slow")
    known_keys = ("at", kind, *(["for"] if lasting else []), *(["by"] if kind == "slow" else []))
    unknown = [str(k) for k in entry if k not in known_keys]
    if unknown:
        raise Misuse(f"{where}: a fault of kind '{kind}' has no {', '.join(unknown)}")
    if lasting and "for" not in entry:
        raise Misuse(f"{where}: how long does it last? Write for: 20 sec")
    at, subject = duration(entry["at"], where), entry[kind]
    if kind in ("cut", "slow"):
        if not isinstance(subject, list) or len(subject) != 2:
            raise Misuse(f"{where}: {kind} has two ends, such as [node-1, database]")
        a, b, until = str(subject[0]), str(subject[1]), at + duration(entry["for"], where)
        return Cut(at, a, b, until) if kind == "cut" else Slow(at, a, b, _delay(entry, where), until)
    if kind == "pause":
        return Pause(at, str(subject), at + duration(entry["for"], where))
    return Kill(at, str(subject)) if kind == "kill" else Restart(at, str(subject))


def _delay(entry: Mapping[str, Any], where: str) -> int:
    by = duration(entry["by"], where) if "by" in entry else 0
    if by < 1:
        raise Misuse(f"{where}: by how much is it slower? Write by: 3 sec")
    return by


def duration(value: Any, where: str) -> int:
    """A time span in ms: a number of ms, or a text such as `90 sec` or `2 min`. Raises `Misuse` for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    ms = parse_duration(value) if isinstance(value, str) else None
    if ms is None:
        raise Misuse(f"{where}: {shown(value)} is not a time span such as 90 sec")
    return ms
