"""Options of the commands about apps that were deployed here, and of the manager."""

from __future__ import annotations

from ...option_values import port
from ...options import Options, add


def add_apps(c: Options) -> None:
    """Options of `sparkstream apps`."""
    c.add_argument(
        "action",
        nargs="?",
        choices=("remove", "empty-trash"),
        metavar="remove|empty-trash",
        help="remove: the apps' folders, for good; empty-trash: state that earlier deployments dropped",
    )
    c.add_argument("names", nargs="*", metavar="NAME", help="the apps; of empty-trash all, where none is named")
    add(c, "--home", help="the app's folder, where it was deployed into one of its own")


def add_manager(c: Options) -> None:
    """Options of `sparkstream manager`."""
    add(c, "--conf", required=True, help="the manager's deployment.yaml; then, with --conf for each, or as their "
        "folder, the files of the rest of its deployment")  # fmt: skip
    c.add_argument("--host", metavar="HOST", help="where to listen (default: 127.0.0.1); elsewhere only with TLS")
    c.add_argument("--port", type=port, metavar="PORT", help="0: any free port (default: the file's)")
    c.add_argument("--tls-cert", metavar="FILE", help="listen with TLS, with this certificate (PEM)")
    c.add_argument("--tls-key", metavar="FILE", help="the certificate's key, without a password (PEM)")
    c.add_argument("--watch", metavar="DIR", help="deploy the .siddhi files of this directory, as they come and go")
    add(c, "--allow-env", help="an environment variable that the password of the deployment file may be in")
