"""Apps that were deployed here, and the manager: `sparkstream apps`, `sparkstream manager`."""

from __future__ import annotations

from typing import Any

from ..errors import Misuse
from ..option_values import port
from ..options import add
from .commands import Commands


def add_apps(commands: Commands) -> None:
    """Add `sparkstream apps`."""
    c = commands.add(
        "apps",
        apps,
        "List the apps that were deployed here and the disk space that they use, or remove some.",
        "remove Trades",
    )
    c.add_argument(
        "action",
        nargs="?",
        choices=("remove", "empty-trash"),
        metavar="remove|empty-trash",
        help="remove: the apps' folders, for good; empty-trash: state that earlier deployments dropped",
    )
    c.add_argument("names", nargs="*", metavar="NAME", help="the apps; of empty-trash all, where none is named")
    add(c, "--home", help="the app's folder, where it was deployed into one of its own")


def apps(options: Any) -> int:
    """`sparkstream apps`."""
    from ..app import app_folders, empty_trash_of, remove_app
    from ..lab import connect
    from ..lab.attachable import removed_text

    connect()
    if options.action is None:
        print(app_folders(options.home))
        return 0
    if options.action == "remove" and not options.names:
        raise Misuse("which apps? Write sparkstream apps remove NAME; sparkstream apps lists them")
    carry_out = remove_app if options.action == "remove" else empty_trash_of
    for name in options.names or [folder.name for folder in app_folders(options.home)]:
        print(removed_text(carry_out(name, options.home)))
    return 0


def add_manager(commands: Commands) -> None:
    """Add `sparkstream manager`."""
    what = "Run a manager of a distributed deployment: it takes apps over HTTP, and from a directory."
    example = "--conf manager-1.yaml --allow-env ADMIN_PASSWORD --watch apps"
    c = commands.add("manager", manager, what, example)
    add(c, "--conf", required=True, help="the manager's deployment.yaml; then, with --conf for each, or as their "
        "folder, the files of the rest of its deployment")  # fmt: skip
    c.add_argument("--host", metavar="HOST", help="where to listen (default: 127.0.0.1); elsewhere only with TLS")
    c.add_argument("--port", type=port, metavar="PORT", help="0: any free port (default: the file's)")
    c.add_argument("--tls-cert", metavar="FILE", help="listen with TLS, with this certificate (PEM)")
    c.add_argument("--tls-key", metavar="FILE", help="the certificate's key, without a password (PEM)")
    c.add_argument("--watch", metavar="DIR", help="deploy the .siddhi files of this directory, as they come and go")
    add(c, "--allow-env", help="an environment variable that the password of the deployment file may be in")


def manager(options: Any) -> int:
    """`sparkstream manager`."""
    from ..app.manager.manager_command import ManagerOptions, run_manager

    o = options
    return run_manager(ManagerOptions(o.conf, o.host, o.port, o.tls_cert, o.tls_key, o.watch, o.allow_env))
