"""`python -m tests.try_cluster` on a machine that lacks something: one message with the way out, and nothing is run."""

from __future__ import annotations

import pytest

from tests import found, try_cluster


@pytest.fixture(autouse=True)
def nothing_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(found.HIDE, "java,maven,browser,servers")


def test_a_command_is_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--for", "kafka,spark", "--skip", "no-such-command", "notebook.ipynb"]
    assert try_cluster.main(words) == 0
    said = capsys.readouterr().err
    assert said.startswith("try_cluster: kafka needs Java for a Kafka broker: java is not on the PATH. Install Java")
    assert said.endswith("Not run: no-such-command notebook.ipynb\n")
    words.remove("--skip")
    assert try_cluster.main(words) == 1


def test_the_cluster_names_what_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert try_cluster.main(["--for", "spark,postgresql"]) == 1
    said = capsys.readouterr().err
    assert "postgresql needs PostgreSQL: initdb is neither on the PATH nor in /usr/lib/postgresql. Install" in said
    assert said.endswith("Or leave it out: python -m tests.try_cluster --for spark\n")
    assert "Not run" not in said


def test_a_part_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        try_cluster.main(["--for", "kafak"])
    assert "kafak is none of spark, connect, kafka, postgresql" in capsys.readouterr().err


def test_continuous_integration_skips_what_is_hidden_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.skip.Exception):
        found.skip_unless(None, "java", "Java")
    with pytest.raises(pytest.fail.Exception, match="needs a mill"):
        found.skip_unless(None, "mill", "a mill")
    found.skip_unless("/usr/bin/mill", "mill", "a mill")
