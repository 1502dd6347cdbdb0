"""Continuing an app that another process deployed: finding such apps, and attaching them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from .. import argument_checks
from ..argument_types import explain_arguments
from ..errors import Misuse, did_you_mean
from .config.record import DeploymentRecord
from .deploying import apps, deploy_again
from .deployment.app_folder import apps_folder, default_home, document_home, former_life, has_app
from .deployment.owner import owner_of, same_folder
from .results import frontend
from .results.listings import Listing
from .running.app import App

_MOST_NAMED = 8
"""Names in a message."""


@dataclass(frozen=True)
class FoundApp:
    """An app in its folder: its last deployment, and the owner of the folder (None: it has none)."""

    home: Path
    record: DeploymentRecord
    owner: str | None

    @property
    def name(self) -> str:
        """The name to attach it by."""
        return self.record.name


@dataclass(frozen=True, repr=False, eq=False)
class Attachable(Listing[FoundApp]):
    """The apps that were deployed before, by name; apps of this process too."""

    def summary(self) -> str:
        return f"<Attachable: {', '.join(f.name for f in self) or 'none'}>"


@explain_arguments
def attach(
    name: str,
    home: str | Path | None = None,
    *,
    variables: Mapping[str, str] | None = None,
    master: str | None = None,
) -> App:
    """Continues the app `name`, which was deployed before, where it left off; returns it.

    It is deployed with the record of the last deployment in its folder: text, nodes, sources, sinks, limits and all
    else, and with its state. Secrets are looked up again by their references. Its grants are renewed; `App.redeployed`
    lists them. An app of this process is returned as it is. `home`: the app's folder, where it was deployed into one of
    its own. `variables`: values of `${...}` that are not kept, as they may be secrets, or are to be others. `master`:
    another Spark.

    Raises `Misuse` if no such app is there, another process owns it, or its state does not fit any more, and what
    `deploy` raises.
    """
    argument_checks.check_name("name", name)
    argument_checks.require_str("name", name)
    argument_checks.check_path("home", home)
    argument_checks.optional_str_map("variables", variables)
    folder, record = _find_record(name, None if home is None else Path(home))
    running = apps().get(name)
    if running is not None and not running.closed and same_folder(running.home, folder):
        return running
    try:
        request = record.request(folder)
    except (KeyError, TypeError):
        raise _unreadable(folder) from None
    request = replace(request, variables={**(request.variables or {}), **(variables or {})})
    app = deploy_again(request if master is None else replace(request, master=master))
    if record.scaled is not None and tuple(record.scaled) != app.shard_ids:
        app.scale(shard_ids=record.scaled)
    app.lines_before = record.lines_before
    app.remember(variable=record.variable, lines_before=record.lines_before)
    app.runtime.redeployed = " ".join([app.redeployed or "", _describe_grants(record)]).strip()
    return app


@explain_arguments
def attachable(home: str | Path | None = None) -> Attachable:
    """The apps that can be attached: of the folder `home`, or where apps are by default."""
    argument_checks.check_path("home", home)
    folders = _folders() if home is None else [Path(home)]
    records = [(folder, record) for folder in folders if (record := _record(folder)) is not None]
    records.sort(key=lambda f: (f[1].name, str(f[0])))
    return Attachable(tuple(FoundApp(folder, record, owner_of(folder)) for folder, record in records))


def found_app(name: str, home: Path | None) -> FoundApp:
    """The app `name` that was deployed before, in the folder `home` or where apps are by default. Raises `Misuse` if
    there is none."""
    folder, record = _find_record(name, home)
    return FoundApp(folder, record, owner_of(folder))


def attachable_names() -> list[str]:
    """The names of the apps where apps are by default, for completion: asks for no locks."""
    return sorted({record.name for folder in _folders() if (record := _record(folder)) is not None})


def _describe_grants(record: DeploymentRecord) -> str:
    grants = record.describe_grants()
    return f"Granted again: {', '.join(grants)}." if grants else ""


def _folders() -> list[Path]:
    """The folders of apps that were deployed without a folder of their own."""
    folder = apps_folder()
    return sorted(p for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []


def _find_record(name: str, home: Path | None) -> tuple[Path, DeploymentRecord]:
    """The folder and the record of an app. Raises `Misuse`, with the known names, if there is none."""
    if home is not None:
        if not has_app(home):
            raise Misuse(f"{home} is no app's folder: it has no app.json of an app. {_list_names()}")
        record = former_life(home).deployed
        if record is None:
            raise _unrecorded_error(home)
        if record.name != name:
            raise Misuse(f"the app in {home} is '{record.name}', not '{name}': attach it by that name")
        return home, record
    default_folder = default_home(name)
    document = frontend.current().document()
    likely = [default_folder] if document is None else [document_home(document), default_folder]
    places = dict.fromkeys([*likely, *_folders()])
    matches = [(place, r) for place in places if (r := _record(place)) is not None and r.name == name]
    if not matches:
        if has_app(default_folder):
            former_life(default_folder)
            raise _unrecorded_error(default_folder)
        raise Misuse(f"no app '{name}' was deployed here before. {_list_names(name)}")
    if len(matches) > 1 and matches[0][0] not in likely:
        homes = ", ".join(str(place) for place, _ in matches)
        raise Misuse(f"several apps are called '{name}': say which by home (--home), one of {homes}")
    return matches[0]


def _list_names(name: str = "") -> str:
    """The names that can be attached: the nearest one, or some."""
    names = attachable_names()
    if not names:
        return "No app can be attached yet: deploy one first, or give its folder as home (--home)"
    near = did_you_mean(name, names)
    if near:
        return near
    first_names, more = ", ".join(names[:_MOST_NAMED]), len(names) - _MOST_NAMED
    rest = f" and {more} more" if more > 0 else ""
    return f"Can be attached: {first_names}{rest}. Of an app in a folder of its own, give that as home (--home)"


def _record(folder: Path) -> DeploymentRecord | None:
    """The record of the app in `folder`; None if there is none, or it cannot be read."""
    try:
        record = json.loads((folder / "app.json").read_text(encoding="utf-8")).get("deployed")
        return None if record is None else DeploymentRecord.read(record)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None


def _unrecorded_error(home: Path) -> Misuse:
    return Misuse(
        f"the app in {home} was deployed by an earlier version, which kept no record to attach it by: deploy it again"
    )


def _unreadable(home: Path) -> Misuse:
    return Misuse(f"{home / 'app.json'} was changed, and does not tell how the app was deployed: deploy it again")
