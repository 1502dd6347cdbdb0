"""What passes through an address where machines meet: objects, and the journal that is put there and read there."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.journal.entries import Ask, Reject
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.journal.journal import entries_from
from sparkstream_nb.journal.kept import JournalRetention
from sparkstream_nb.journal.mirror import Mirror, Mirrored, apps_at, digest_of, retire
from sparkstream_nb.journal.shared import Shared, shared_at
from tests.servers import free_port

FIRST = {"seq": 0, "at": 0, "skip": 0}


@pytest.fixture
def shared(tmp_path: Path) -> Shared:
    found = shared_at((tmp_path / "100 %").as_uri())
    assert found is not None
    return found.below("life")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("bucket/folder", "is no address where Spark's machines and this one can meet"),
        ("http://host/folder", "is no address where"),
        ("s3:///folder", "is no address where"),
        ("s3://bucket", "is no address where"),
        ("s3://key:secret@bucket/folder", "has credentials in it"),
        ("s3://bucket/folder?secret_key=x", "can be region, endpoint_override and scheme"),
        ("hdfs://host:9000/folder?user=me", "of an s3:// address alone"),
    ],
)
def test_what_is_no_address(address: str, said: str) -> None:
    with pytest.raises(Misuse, match=said.replace("?", r"\?")) as error:
        shared_at(address)
    assert "secret@" not in str(error.value)


def test_as_spark_and_pyarrow_take_an_address() -> None:
    found = shared_at("s3://bucket/my%20apps?region=eu-west-1&scheme=http&endpoint_override=127.0.0.1:9000")
    assert found is not None
    life = found.below("life", "checkpoint")
    assert life.for_spark == "s3a://bucket/my apps/life/checkpoint"
    assert life.path == "bucket/my apps/life/checkpoint"
    assert life.settings() == {
        "fs.s3a.endpoint.region": "eu-west-1",
        "fs.s3a.endpoint": "http://127.0.0.1:9000",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
    }
    assert Shared("hdfs://host:9000/folder").path == "/folder"
    assert Shared("hdfs://host:9000/folder").settings() == {}


def test_an_address_where_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    found = shared_at(f"s3://bucket/folder?region=x&scheme=http&endpoint_override=127.0.0.1:{free_port()}")
    assert found is not None
    with pytest.raises(SparkStreamError, match="cannot be reached") as error:
        found.check()
    assert "\n" not in str(error.value)


def test_objects_are_there_whole_or_not_at_all(shared: Shared, tmp_path: Path) -> None:
    assert shared.names("a") == []
    assert not shared.has("a")
    shared.put("a/one", b"1")
    (tmp_path / "two").write_bytes(b"2" * 10_000_000)
    shared.put_file("a/two", tmp_path / "two")
    shared.put("a/one", b"11")
    assert shared.names("a") == ["one", "two"]
    assert shared.get("a/one") == b"11"
    with pytest.raises(IsADirectoryError):
        shared.put_file("a/three", tmp_path)
    assert shared.names("a") == ["one", "two"]
    with pytest.raises(FileNotFoundError):
        shared.get_file("a/three", tmp_path / "three")
    assert not (tmp_path / "three").exists()
    shared.remove("a/one", "a/three")
    assert shared.names("a") == ["two"]
    shared.put("inbox/rows", b"r")
    with shared.at_hand(["rows", "rows"]) as folder:
        assert (folder / "inbox" / "rows").read_bytes() == b"r"
    assert not folder.exists()


class Owner:
    """An inbox with its mirror, a step at a time."""

    def __init__(self, folder: Path, shared: Shared) -> None:
        self.inbox, self.committed, self.said = Inbox(folder), -1, []  # type: ignore[var-annotated]
        kept = JournalRetention(folder, 0, None)
        self.mirror = Mirror(folder, shared, kept, lambda: self.committed, self.said.append)

    def put(self) -> None:
        """All that has come in goes to the address, and what is done with goes from there."""
        while self.mirror._step():
            pass
        self.mirror._forget()


def read(planner: Mirrored, start: dict[str, int] = FIRST) -> tuple[list[str], dict[str, int]]:
    """The entries that a planner finds after an offset, in words, and the offset after them."""
    planner.follow()
    found = list(entries_from(planner.folder, start))
    words = [e.text if isinstance(e, Ask) else str(e.file) for e, _ in found]
    return words, found[-1][1] if found else start


def test_a_journal_is_read_at_the_address(shared: Shared, tmp_path: Path) -> None:
    owner = Owner(tmp_path / "inbox", shared)
    assert owner.mirror.prepare(b"apps") == digest_of(b"apps")
    planner = Mirrored(shared)
    assert read(planner) == ([], FIRST)
    owner.inbox.append([Ask(text="a"), Ask(text="b")])
    owner.put()
    words, offset = read(planner)
    assert words == ["a", "b"]
    owner.inbox.append([Reject(file=owner.inbox.write("rejected", b"{}\n"))])
    owner.inbox.append([Ask(text="c")])
    owner.put()
    assert shared.get("inbox/rejected") == b"{}\n"
    words, offset = read(planner, offset)
    assert words == ["rejected", "c"]
    # The next micro-batch is committed: Spark may repeat that one, and no earlier one.
    owner.committed = 1
    owner.put()
    owner.committed = 3
    owner.put()
    assert shared.has("inbox/rejected")
    planner.end({**offset})
    owner.inbox.append([Ask(text="d")])
    owner.put()
    assert read(planner, offset)[0] == ["d"]
    owner.committed = 4
    owner.put()
    assert not shared.has("inbox/rejected")
    assert len(shared.names("inbox/journal")) < 4
    # Another planner, after a crash of Spark's, goes on from the last offset; another owner from where this one was.
    again = Owner(tmp_path / "inbox", shared)
    again.inbox.append([Ask(text="e")])
    again.put()
    assert read(Mirrored(shared), offset)[0] == ["d", "e"]


def test_what_was_taken_back_is_not_read(shared: Shared, tmp_path: Path) -> None:
    owner = Owner(tmp_path / "inbox", shared)
    owner.mirror.prepare(b"apps")
    for text in "abcd":
        owner.inbox.append([Ask(text=text), Ask(text=text.upper())])
        owner.put()
    with owner.mirror.taking_back(3):
        owner.inbox.take_back(3)
    owner.inbox.append([Ask(text="x")])
    # The process ends here; the next one removes what is at the address before a query begins.
    again = Owner(tmp_path / "inbox", shared)
    again.mirror.prepare(b"apps")
    assert read(Mirrored(shared))[0] == ["a", "A"]
    again.put()
    assert read(Mirrored(shared))[0] == ["a", "A", "b", "x"]


def test_an_object_that_is_put_again_counts_once(shared: Shared, tmp_path: Path) -> None:
    owner = Owner(tmp_path / "inbox", shared)
    owner.mirror.prepare(b"apps")
    owner.inbox.append([Ask(text="a")])
    state = tmp_path / "inbox" / "mirrored.json"
    owner.put()
    state.unlink()  # the process ended before it had written down that the object is there
    planner = Mirrored(shared)
    assert read(planner)[0] == ["a"]
    again = Owner(tmp_path / "inbox", shared)
    again.inbox.append([Ask(text="b")])
    again.put()
    assert read(planner)[0] == ["a", "b"]
    assert read(Mirrored(shared))[0] == ["a", "b"]


def test_an_address_that_is_away_loses_nothing(shared: Shared, tmp_path: Path) -> None:
    owner = Owner(tmp_path / "inbox", shared)
    owner.mirror.prepare(b"apps")
    root = Path(shared.path)
    aside = root.with_name("aside")
    root.rename(aside)
    root.write_text("no folder")
    owner.inbox.append([Ask(text="a")])
    with pytest.raises(OSError):
        owner.mirror._step()
    with pytest.raises(SparkStreamError, match="cannot be reached"):
        owner.mirror.prepare(b"apps")
    root.unlink()
    aside.rename(root)
    owner.put()
    assert read(Mirrored(shared))[0] == ["a"]


def test_what_workers_unpickle_is_the_owners(shared: Shared, tmp_path: Path) -> None:
    digest = Owner(tmp_path / "inbox", shared).mirror.prepare(b"apps")
    assert apps_at(shared, digest) == b"apps"
    shared.put("inbox/apps", b"other")
    with pytest.raises(SparkStreamError, match="not what its owner put"):
        apps_at(shared, digest)
    planner = Mirrored(shared)
    retire(shared)
    with pytest.raises(SparkStreamError, match="deployed again"):
        planner.follow()
