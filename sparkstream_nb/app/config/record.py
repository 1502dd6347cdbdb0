"""The record of a deployment, as plain data: enough to deploy the same again in another process.

It is part of `app.json`, which only its owner can read. Secrets are not in it: references such as `${sec:alias}` stay
references, values of variables in the place of passwords are left out, and so is the token of a Spark address.
Deployment files are kept by their paths, as they may have passwords in them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ...limits import Limits
from ...masking import mask_passwords
from ...messaging import Messaging
from ...request import DeployRequest, Recorded, parameters
from ...retention import Retention
from ...simulation.faults import Fault, fault_of, members_of
from ...simulation.resources import ResourceCluster, ResourceNode
from ...simulation.topology import Coordination, Pair
from ...stores.address import MEMORY

_SECRET_NAME = re.compile(r"(?i)pass(word|wd|phrase)?|pwd|secret|token|credential|api_?key")
_TOKEN = re.compile(r"(?i);token=[^;]*")


@dataclass(frozen=True)
class DeploymentRecord:
    """A deployment as `app.json` keeps it.

    `arguments` are arguments of `deploy` in JSON. `at`: when it was deployed (ms since 1970). `withheld`: the
    variables whose values are not kept, as they may be secrets. `scaled`: the shard ids since `App.scale` changed them
    by their number, of an app with deployment files. `variable`: the notebook's variable that holds the app.
    `lines_before`: as in `App`.
    """

    name: str
    text: str = field(repr=False)
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    at: int = 0
    withheld: tuple[str, ...] = ()
    scaled: tuple[str, ...] | None = None
    variable: str | None = None
    lines_before: int = 0

    @staticmethod
    def of(name: str, request: DeployRequest) -> DeploymentRecord:
        """The record of a deployment under `name`; `start` of the request is in ms."""
        r, variables = request, dict(request.variables or {})
        public_variables = {v: value for v, value in variables.items() if not _may_be_secret(v, r.text)}
        arguments = {
            **{p.name: _plain(getattr(r, p.name)) for p in parameters() if p.recorded is Recorded.PLAIN},
            "master": None if r.master is None else _TOKEN.sub("", r.master),
            "conf": _paths(r.conf),
            "store": _path(r.store),
            "variables": public_variables,
            "allow": [_grant(text) for text in r.allow or ()],
            "pair": None if r.pair is None else asdict(r.pair),
            "resources": None if r.resources is None else asdict(r.resources),
            "faults": _faults(r.faults),
            "retention": asdict(Retention.of(r.retention)),
            "limits": str(Limits.of(r.limits)),
        }
        secret_variables = tuple(v for v in variables if v not in public_variables)
        return DeploymentRecord(name, r.text, arguments, int(time.time() * 1000), secret_variables)

    @staticmethod
    def read(stored_record: Mapping[str, Any]) -> DeploymentRecord:
        """The record in the members of an `app.json`. Raises KeyError and TypeError for other members."""
        lists = {k: None if stored_record[k] is None else tuple(stored_record[k]) for k in ("withheld", "scaled")}
        return DeploymentRecord(**{**stored_record, **lists})

    def request(self, home: Path) -> DeployRequest:
        """The request that deploys the same again in `home`, without the variables that are withheld.

        Raises KeyError and TypeError if the record was changed by hand.
        """
        a = dict(self.arguments)
        faults = a["faults"]
        typed_arguments = {
            "pair": None if a["pair"] is None else _pair(a["pair"]),
            "resources": None if a["resources"] is None else _resources(a["resources"]),
            "faults": [fault_of(f) for f in faults] if isinstance(faults, list) else faults,
            "retention": Retention(**a["retention"]),
        }
        return DeployRequest(**{**a, **typed_arguments, "text": self.text, "name": self.name, "home": home})

    def describe_grants(self) -> list[str]:
        """The app's permissions, in words that show no passwords."""
        a = self.arguments
        out = [mask_passwords(grant) for grant in a["allow"]]
        out += [f"environment variable {name}" for name in a["allow_env"]]
        return [*out, *(["scripts"] if a["allow_scripts"] else [])]

    def with_nodes(self, shard_ids: Sequence[str], conf: Any) -> DeploymentRecord:
        """The record of a deployment that was scaled to these shards, by the deployment files `conf` if there are."""
        if conf is not None:
            return replace(self, arguments={**self.arguments, "nodes": None, "conf": _paths(conf)}, scaled=None)
        if self.arguments["conf"] is not None:
            return replace(self, scaled=tuple(shard_ids))
        node_arguments = {"nodes": len(shard_ids), "shard_ids": list(shard_ids), "mode": "active-active"}
        return replace(self, arguments={**self.arguments, **node_arguments})


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _may_be_secret(variable: str, text: str) -> bool:
    """True if the value of a variable may be a secret: by its name, by its context in the app's text, or
    because only deployment files use it.
    """
    if _SECRET_NAME.search(variable):
        return True
    mark = f"value-of-{variable}"
    masked_text = mask_passwords(text.replace(f"${{{variable}}}", mark))
    return masked_text.count(mark) < max(1, text.count(f"${{{variable}}}"))


def _path(value: Any) -> str | None:
    return None if value is None else str(value) if str(value) == MEMORY else str(Path(value).absolute())


def _paths(conf: Any) -> list[str] | None:
    if conf is None:
        return None
    return [str(Path(p).absolute()) for p in ([conf] if isinstance(conf, str | Path) else conf)]


def _grant(text: str) -> str:
    """A grant of a folder names it in full: another process may be elsewhere."""
    kind, _, what = text.partition("=")
    return f"file={Path(what.strip()).expanduser().absolute()}" if kind.strip() == "file" else text


def _faults(faults: Any) -> Any:
    if isinstance(faults, Path) or (isinstance(faults, str) and faults.endswith((".yaml", ".yml"))):
        return str(Path(faults).absolute())
    if faults is None or isinstance(faults, str):
        return faults
    return [members_of(f) for f in faults if isinstance(f, Fault)]


def _pair(stored_pair: Mapping[str, Any]) -> Pair:
    return Pair(
        **{
            **stored_pair,
            "nodes": tuple(stored_pair["nodes"]),
            "coordination": Coordination(**stored_pair["coordination"]),
        }
    )


def _resources(stored_cluster: Mapping[str, Any]) -> ResourceCluster:
    members = {
        "workers": tuple(ResourceNode(**w) for w in stored_cluster["workers"]),
        "managers": tuple(stored_cluster["managers"]),
        "coordination": Coordination(**stored_cluster["coordination"]),
        "messaging": Messaging(stored_cluster.get("messaging", Messaging.KAFKA)),  # of 0.2.0 it has none
    }
    return ResourceCluster(**{**stored_cluster, **members})
