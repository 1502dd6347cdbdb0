"""A shared address for machines without a common folder: Spark's file systems and `pyarrow.fs` both know it.

An app's folder stays with its owner. The parts that others need are put at the address, below the name of the app's
run:

    checkpoint/      Spark's: its logs, and the state of the nodes
    inbox/           the journal, in objects called after their first and last byte, the files that its entries name,
                     and the work to do on them (`apps`): until Spark is done with a micro-batch
    spill/           large outputs, until they are committed
    handed/          micro-batches of Spark Connect, until they are committed
    reads/           rows that a micro-batch read from tables in a database

Objects are written whole or not at all: nothing is appended to or locked, which object stores cannot do.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from pyarrow import ArrowException, fs
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from ..errors import Misuse, SparkStreamError, printable
from ..masking import mask_passwords
from ..system import put_in_place
from .marks import MARKS
from .parts import PARTS
from .private import private_file, private_folder
from .temporary import temporary

SCHEMES = {"s3": "s3a", "gs": "gs", "hdfs": "hdfs", "abfs": "abfs", "file": "file"}
"""Spark's names for the schemes of `pyarrow.fs`."""
_S3_OPTIONS = {"region", "endpoint_override", "scheme"}
_CONNECT_SECONDS, _REQUEST_SECONDS, _TRIES = 5, 30, 3
_MOST_SAID = 200

_file_systems: dict[tuple[int, str], tuple[Any, str]] = {}
_folders: dict[int, Path] = {}


@dataclass(frozen=True)
class Shared:
    """A folder at an `address`, such as `s3://bucket/folder?region=eu-west-1`. Its methods raise OSError where it
    cannot be reached; names are relative to it."""

    address: str

    def below(self, *names: str) -> Shared:
        """A folder in this one."""
        scheme, place, path, query, _ = urlsplit(self.address)
        path = "/".join([path.rstrip("/"), *(quote(n) for n in names)])
        return Shared(urlunsplit((scheme, place, path, query, "")))

    @property
    def for_spark(self) -> str:
        """The address as Spark takes it."""
        scheme, place, path, _, _ = urlsplit(self.address)
        return f"{SCHEMES[scheme]}://{place}{unquote(path)}"

    @property
    def path(self) -> str:
        """The path in its file system."""
        parts = urlsplit(self.address)
        return ("" if parts.scheme in ("file", "hdfs") else parts.netloc) + unquote(parts.path).rstrip("/")

    def system(self) -> tuple[str, dict[str, Any]]:
        """Its file system: `file`, or `s3` with options of pyarrow's, or an address in it."""
        parts = urlsplit(self.address)
        if parts.scheme != "s3":
            return ("file" if parts.scheme == "file" else self.address), {}
        limits = {"connect_timeout": _CONNECT_SECONDS, "request_timeout": _REQUEST_SECONDS}
        return "s3", {**limits, "allow_delayed_open": True, **dict(parse_qsl(parts.query))}

    def settings(self) -> dict[str, str]:
        """The settings of a Spark session that say where an S3 server other than Amazon's is."""
        parts = urlsplit(self.address)
        options = dict(parse_qsl(parts.query))
        out = {}
        if "region" in options:
            out["fs.s3a.endpoint.region"] = options["region"]
        if "endpoint_override" in options:
            out["fs.s3a.endpoint"] = f"{options.get('scheme', 'https')}://{options['endpoint_override']}"
            out["fs.s3a.path.style.access"] = "true"
            out["fs.s3a.connection.ssl.enabled"] = str(options.get("scheme") != "http").lower()
        return out

    def check(self) -> None:
        """Raises SparkStreamError if it cannot be reached, or not be written to."""
        name = f".{os.urandom(8).hex()}.reached"
        try:
            self.put(name, b"")
            self.remove(name)
        except (OSError, ArrowException) as error:
            raise self.unreached_error(error) from None

    def unreached_error(self, error: Exception) -> SparkStreamError:
        """Error for a failed call, as shown to the user."""
        message = f"{self.address} cannot be reached: {' '.join(str(error).split())[:_MOST_SAID]}"
        return SparkStreamError(mask_passwords(printable(message)))

    def put(self, name: str, blob: bytes) -> None:
        """Writes an object."""
        with self._open_upload(name) as sink:
            sink.write(blob)

    def put_file(self, name: str, file: Path) -> None:
        """Write an object with the contents of a file."""
        with file.open("rb") as source, self._open_upload(name) as sink:
            shutil.copyfileobj(source, sink, 1 << 22)

    def get(self, name: str) -> bytes:
        """Contents of an object. Raises FileNotFoundError if it does not exist."""
        system, root = self._open()
        with system.open_input_stream(f"{root}/{name}") as source:
            return bytes(source.read())

    def get_file(self, name: str, file: Path) -> None:
        """Copies an object into a new file, which is there whole or not at all."""
        system, root = self._open()
        new = file.with_name(f".{file.name}.new")
        with system.open_input_stream(f"{root}/{name}") as source, private_file(new).open("wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 22)
        put_in_place(new, file)

    def copy_to(self, folder: Path) -> None:
        """Copies all objects, with those in folders, into a folder on this machine."""
        system, root = self._open()
        for info in system.get_file_info(FileSelector(root, allow_not_found=True, recursive=True)):
            if info.type == FileType.File:
                name = info.path[len(root) :].lstrip("/")
                private_folder((folder / name).parent)
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile, as Spark does with old state
                    self.get_file(name, folder / name)

    def names(self, folder: str) -> list[str]:
        """The names of the objects in a folder, in order; none if it does not exist."""
        system, root = self._open()
        infos = system.get_file_info(FileSelector(f"{root}/{folder}", allow_not_found=True))
        return sorted(f.base_name for f in infos if f.type == FileType.File)

    def has(self, name: str) -> bool:
        """True if there is an object, or a folder, of a name."""
        system, root = self._open()
        return bool(system.get_file_info(f"{root}/{name}").type != FileType.NotFound)

    def remove(self, *names: str) -> None:
        """Remove objects that exist."""
        system, root = self._open()
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                system.delete_file(f"{root}/{name}")

    @contextlib.contextmanager
    def at_hand(self, names: Iterable[str]) -> Iterator[Path]:
        """A folder of this process with copies of objects in `inbox`. It goes afterwards."""
        folder = Path(tempfile.mkdtemp(dir=_folder()))
        try:
            for name in (MARKS, PARTS):
                (folder / "inbox" / name).mkdir(parents=True)
            for name in dict.fromkeys(names):
                self.get_file(f"inbox/{name}", folder / "inbox" / name)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def _open_upload(self, name: str) -> Iterator[Any]:
        system, root = self._open()
        path = f"{root}/{name}"
        at_once = system.type_name in ("s3", "gcs")  # an object is there when it is closed, and not before
        folder, new = path.rpartition("/")[0], path
        if not at_once:
            system.create_dir(folder, recursive=True)
            new = f"{folder}/.{os.urandom(8).hex()}.new"
        try:
            with system.open_output_stream(new) as sink:
                yield sink
            if not at_once:
                system.move(new, path)
        except BaseException:
            with contextlib.suppress(OSError):
                system.delete_file(new)
            raise

    def _open(self) -> tuple[Any, str]:
        """The file system, and the path in it. One for each process: connections do not outlive a fork."""
        key = os.getpid(), self.address
        if key not in _file_systems:
            kind, options = self.system()
            if kind == "file":
                system = LocalFileSystem()
            elif kind == "s3":
                # Not every build of Arrow has it.
                system = fs.S3FileSystem(retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES), **options)
            elif kind.startswith("gs:"):
                # It would go on trying for a quarter of an hour.
                system = fs.GcsFileSystem(retry_time_limit=timedelta(seconds=_CONNECT_SECONDS))
            else:
                system, _ = FileSystem.from_uri(kind)
            _file_systems[key] = system, self.path
        return _file_systems[key]


def shared_at(address: str | None) -> Shared | None:
    """The folder at a user's address. Raises `Misuse` for a text that cannot be one."""
    if address is None:
        return None
    parts = urlsplit(address)
    shown_address = mask_passwords(address)
    if parts.scheme not in SCHEMES or (parts.scheme != "file" and not parts.netloc) or not parts.path.strip("/"):
        raise Misuse(
            f"'{shown_address}' is no address where Spark's machines and this one can meet: write s3://BUCKET/FOLDER, "
            "gs://BUCKET/FOLDER, hdfs://HOST:PORT/FOLDER, abfs://CONTAINER@ACCOUNT/FOLDER or file:///FOLDER"
        )
    if parts.password or (parts.username and parts.scheme != "abfs"):
        raise Misuse(
            f"'{shown_address}' has credentials in it: give them to the machines by their environment "
            "(AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY) or by their roles"
        )
    unknown = sorted({name for name, _ in parse_qsl(parts.query)} - _S3_OPTIONS) if parts.scheme == "s3" else []
    if unknown or (parts.query and parts.scheme != "s3"):
        raise Misuse(
            f"'{shown_address}': what follows the ? can be region, endpoint_override and scheme, of an s3:// address "
            "alone"
        )
    return Shared(address)


def _folder() -> Path:
    """A temporary folder of this process."""
    pid = os.getpid()
    if pid not in _folders or not _folders[pid].is_dir():
        _folders[pid] = temporary("shared")
    return _folders[pid]


def planner_folder() -> Path:
    """A new folder of this process for the parts of a journal that it reads."""
    return Path(tempfile.mkdtemp(dir=_folder()))
