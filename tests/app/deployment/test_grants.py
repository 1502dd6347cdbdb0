"""Grants: what they parse, what they cover, and the option that a refusal names."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from sparkstream_nb.app.config.grants import Grants, NotAllowed
from sparkstream_nb.errors import Misuse
from sparkstream_nb.stores.address import from_jdbc


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("file=/tmp", "allow is a list of texts"),
        (["fil=/tmp"], "Did you mean 'file'"),
        (["file="], "'file=' is not file=DIR, http=URL-PREFIX, kafka=HOST:PORT or jdbc="),
        (["http=good.example"], "not an address such as"),
        (["http=ftp://h/"], "not an address such as"),
        (["http=http://a:b@h/"], "has a user in front of its host"),
        (["http=http://h/?a=1"], "has a query"),
        (["http=http://h:99999/"], "not an address such as"),
        (["kafka=h"], "is not HOST:PORT"),
        (["kafka=h:0"], "is not HOST:PORT"),
        (["jdbc=h:5432"], "is not jdbc=postgresql://HOST:PORT/DATABASE"),
        (["jdbc=postgresql://h:5432"], "is not jdbc=postgresql://HOST:PORT/DATABASE"),
        (["jdbc=postgresql://h/d?user=a"], "is not jdbc=postgresql://HOST:PORT/DATABASE"),
        (["jdbc=postgresql://a:b@h/d"], "is not jdbc=postgresql://HOST:PORT/DATABASE"),
        (["jdbc=sqlite:d.db"], "or one of mysql or mariadb; a file is granted by file=DIR"),
        ([None], "list of texts"),
    ],
)
def test_wrong_grants(texts: list[str], message: str) -> None:
    with pytest.raises(Misuse, match=r".") as raised:
        Grants.of(texts)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "b@h" not in str(raised.value)


def test_folders_after_links_and_dots(tmp_path: Path) -> None:
    inside, outside = tmp_path / "out", tmp_path / "other"
    inside.mkdir()
    outside.mkdir()
    (inside / "way").symlink_to(outside)
    (inside / "file.csv").symlink_to(outside / "file.csv")
    (tmp_path / "alias").symlink_to(inside)
    grants = Grants.of([f"file={tmp_path / 'alias'}"])
    for path in (inside, inside / "a.csv", inside / "b" / "c.csv", tmp_path / "alias" / "a.csv", inside / "x/../y"):
        assert grants.folder_of(path, "a sink writes to") == inside.resolve()
    for path in (
        outside / "a.csv",
        inside / ".." / "other" / "a.csv",
        inside / "way" / "a.csv",
        inside / "file.csv",
        tmp_path / "out2" / "a.csv",
        Path("/etc/passwd"),
    ):
        with pytest.raises(NotAllowed, match=r"is not allowed\. Add --allow "):
            grants.folder_of(path, "a sink writes to")
    with pytest.raises(NotAllowed) as raised:
        Grants().folder_of(outside / "new" / "a.csv", "a sink writes to")
    assert Grants.of([raised.value.option]).folder_of(outside / "new" / "a.csv", "a sink writes to")


GRANTED = Grants.of(["http=http://good.example/api", "http=https://[::1]:8443/", "http=http://Upper.Example:8080"])


@pytest.mark.parametrize(
    "url",
    [
        "http://good.example/api",
        "http://good.example:80/api/alerts?k=1",
        "http://GOOD.example./api/",
        "https://[::1]:8443/any",
        "http://upper.example:8080/x",
        "http://good.example/%61pi/x",
    ],
)
def test_addresses_that_are_covered(url: str) -> None:
    assert GRANTED.check_url(url, "a sink posts to").text == url


@pytest.mark.parametrize(
    "url",
    [
        "http://good.example/apis",
        "http://good.example/",
        "https://good.example/api",
        "http://good.example:8080/api",
        "http://good.example.evil/api",
        "http://evil/good.example/api",
        "http://good.example@evil/api",
        "http://good.example:80@evil/api",
        "http://good.example\\@evil/api",
        "http://good.example/api/../admin",
        "http://good.example/api/%2e%2e/admin",
        "http://good.example/api/..;/admin",
        "http://good.example/api/%252e%252e/admin",
        "http://good.example/api/%25252E%25252e/admin",
        "http://good.example/api/.%252e/admin",
        "http://good.example/api/x%252f..%252fadmin",
        "http://good.example/api/%u002e%u002e/admin",
        "http://good.example/api/%c0%ae%c0%ae/admin",
        "http://good.example/api/%ef%bc%8e%ef%bc%8e/admin",
        "http://good.example/api/%252e%252e%253b/admin",
        "http://good.example/api/x%2f..%2fadmin",
        "http://good.example/api\r\nHost: evil",
        "http://good.example/api#x",
        "file:///etc/passwd",
        "//good.example/api",
    ],
)
def test_addresses_that_are_not(url: str) -> None:
    with pytest.raises(Misuse) as raised:
        GRANTED.check_url(url, "a sink posts to")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("path", ["100%25", "100%2525", "a%20b", "%e9t%e9", "a..b", "...", "v1.2", "%25d"])
def test_paths_that_lead_nowhere_else(path: str) -> None:
    assert GRANTED.check_url(f"http://good.example/api/{path}", "a sink posts to").path[0] == "api"


def test_refusals_name_the_option() -> None:
    with pytest.raises(NotAllowed) as raised:
        Grants().check_url("https://h.example:444/in?key=abc", "a sink posts to")
    assert str(raised.value) == (
        "a sink posts to https://h.example:444, which is not allowed. Add --allow http=https://h.example:444, "
        "or allow=['http=https://h.example:444']"
    )
    with pytest.raises(NotAllowed, match=r"Add --allow kafka=broker:9092"):
        Grants.of(["kafka=broker:9093"]).check_broker("Broker:9092", "a sink writes to")
    assert Grants.of(["kafka=Broker:9092"]).check_broker("broker:9092", "a sink writes to") == ("broker", 9092)


@pytest.mark.parametrize(
    ("granted", "asked", "covered"),
    [
        ("postgresql://db:5432/shop", "jdbc:postgresql://DB/shop?ssl=true", True),
        ("jdbc:postgresql://db/shop", "jdbc:postgresql://db:5432/shop", True),
        ("mysql://db/shop", "jdbc:mariadb://db:3306/shop", True),
        ("postgresql://db/shop", "jdbc:postgresql://db/pay", False),
        ("postgresql://db/shop", "jdbc:postgresql://db:5433/shop", False),
        ("postgresql://db/shop", "jdbc:postgresql://other/shop", False),
        ("postgresql://db:3306/shop", "jdbc:mysql://db/shop", False),
    ],
)
def test_databases(granted: str, asked: str, covered: bool) -> None:
    grants, database = Grants.of([f"jdbc={granted}"]), from_jdbc(asked)
    if covered:
        grants.check_database(database, "a source reads from")
        return
    with pytest.raises(NotAllowed, match=r"a source reads from \w+://") as raised:
        grants.check_database(database, "a source reads from")
    Grants.of([raised.value.option]).check_database(database, "a source reads from")


@pytest.mark.parametrize(
    "option",
    ["sslkey", "sslrootcert", "sslcert", "SSLKEY", "sslcrl", "passfile", "trustStore", "serverSslCert", "loggerFile"],
)
def test_files_in_the_options_of_an_address(option: str, tmp_path: Path) -> None:
    grants = Grants.of(["jdbc=postgresql://db/shop", f"file={tmp_path}"])
    address = "jdbc:postgresql://db/shop?sslmode=require&" + option
    for inside in (tmp_path / "key.pem", f"file:{tmp_path}/key.pem"):
        grants.check_database(from_jdbc(f"{address}={quote(str(inside))}"), "a source reads from")
    (tmp_path / "link").symlink_to("/etc")
    for outside in ("/etc/passwd", f"{tmp_path}/../key.pem", f"{tmp_path}/link/passwd", "file:///etc/passwd"):
        with pytest.raises(NotAllowed, match=f"a source reads from postgresql://db:5432/shop with {option} /"):
            grants.check_store(from_jdbc(f"{address}={quote(outside)}"), "a source reads from")
    grants.check_store(from_jdbc("jdbc:postgresql://db/shop?sslrootcert=system&socketTimeout=9"), "a source reads from")


def test_the_grant_of_a_database_with_an_odd_name() -> None:
    database = from_jdbc("jdbc:postgresql://[::1]:5432/my%20shop%3F")
    with pytest.raises(NotAllowed) as raised:
        Grants().check_database(database, "a source reads from")
    assert raised.value.option == "jdbc=postgresql://[::1]:5432/my%20shop%3F"
    Grants.of([raised.value.option]).check_database(database, "a source reads from")


def test_a_grant_of_a_file_is_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "alerts.csv"
    grants = Grants.of([f"file={file}"])
    with pytest.raises(Misuse, match=r"and file=.*alerts\.csv allows a folder of that name, not a file. Write file="):
        grants.folder_of(file, "the sink of stream 'S' writes to", file=True)
    assert grants.folder_of(file / "x.csv", "the sink of stream 'S' writes to", file=True) == file
