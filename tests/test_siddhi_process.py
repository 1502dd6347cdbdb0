"""Resources of Siddhi's Kubernetes operator as files of apps."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkstream_nb.cli.command_line import main
from sparkstream_nb.errors import Misuse
from sparkstream_nb.siddhi_process import read_app, script_of

PROCESS = """apiVersion: siddhi.io/v1alpha2
kind: SiddhiProcess
metadata:
  name: power-surge-app
spec:
  apps:
    - script: |
        @App:name("PowerSurge")
        @source(type='http', receiver.url='${RECEIVER_URL}', basic.auth.enabled='false', @map(type='json'))
        define stream Power (deviceType string, power int);
        @sink(type='log', prefix='${PREFIX}')
        define stream Surges (deviceType string, power int);
        @info(name='surge') from Power[power >= 600] select deviceType, power insert into Surges;
  container:
    env:
      -
        name: RECEIVER_URL
        value: "http://localhost:8006/power"
      -
        name: PASSWORD
        valueFrom: {secretKeyRef: {name: passwords, key: power}}
    image: "siddhiio/siddhi-runner-ubuntu:5.1.0"
"""


def process_file(folder: Path, text: str = PROCESS) -> str:
    path = folder / "power.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_script_is_checked_at_its_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = process_file(tmp_path)
    assert main(["check", path]) == 0
    assert main(["check", process_file(tmp_path, PROCESS.replace("power >= 600", "watts >= 600"))]) == 1
    assert f"{path}:13:" in capsys.readouterr().err


def test_values_of_the_container_take_the_place_of_names(tmp_path: Path) -> None:
    text = read_app(process_file(tmp_path))
    assert "receiver.url='http://localhost:8006/power'" in text
    assert "prefix='${PREFIX}'" in text  # the file has no value of it
    assert text.splitlines()[7] == '@App:name("PowerSurge")' == PROCESS.splitlines()[7].strip()


def test_an_app_runs_from_its_resource(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "power.csv").write_text("deviceType,power\ndryer,650\nlamp,40\n", encoding="utf-8")
    words = ["run", process_file(tmp_path), "--offline", "--param", "PREFIX=P", "--feed", f"Power={tmp_path}/power.csv"]
    assert main([*words, "--master", "inline", "--home", str(tmp_path / "home")]) == 0
    output = capsys.readouterr().out
    assert "dryer" in output
    assert "lamp" not in output


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PROCESS.replace("  container:", "    - script: 'define stream S (v int);'\n  container:"), "2 scripts"),
        (PROCESS[: PROCESS.index("    - script")] + "    - configMap: power\n", "no script: its apps are elsewhere"),
        ("kind: SiddhiProcess", "no script: its apps are elsewhere"),
    ],
)
def test_one_script_is_an_app(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=f"power.yaml is a SiddhiProcess with {reason}. Save each app's text"):
        read_app(process_file(tmp_path, text))


@pytest.mark.parametrize("text", ["kind: Service", "[1, 2]", "define stream S (v int);", "a: [", "", "- kind: x"])
def test_other_texts_are_left_as_they_are(text: str, tmp_path: Path) -> None:
    assert script_of(text, "power.yaml") is None
    assert read_app(process_file(tmp_path, text)) == text
