"""Runs an app with a Kafka source and kills itself, with its JVM, at a given place. A program for tests.

kafka_crashing.py HOME BROKER TOPIC PLACE, PLACE one of: before (messages are read and not in the inbox), after (they
are in the inbox, and nothing else knows it).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.apps.crashing import die


def app_text(broker: str, topic: str) -> str:
    return f"""
    @source(type='kafka', bootstrap.servers='{broker}', topic.list='{topic}', group.id='g',
            threading.option='partition.wise', @map(type='json'))
    define stream S (k string, v long);
    from S select k, v, count() as n insert into O;
    """


def main(home: str, broker: str, topic: str, place: str) -> None:
    from sparkstream_nb.app import deploy
    from sparkstream_nb.sources.intake import SourceThread
    from sparkstream_nb.sources.kafka_source import KafkaReader
    from tests.apps.programs import master

    enter, kept = SourceThread._enter, KafkaReader.confirm

    def entering(self: Any, taken: Any, ending: Any) -> bool:
        if place == "before" and self._counts.messages > 0:
            die()
        return enter(self, taken, ending)

    def keeping(self: Any, taken: Any, refused: Any) -> None:
        if place == "after":
            die()
        kept(self, taken, refused)

    SourceThread._enter = entering  # type: ignore[method-assign]
    KafkaReader.confirm = keeping  # type: ignore[method-assign]
    app = deploy(app_text(broker, topic), name="crash", home=Path(home), allow=[f"kafka={broker}"], master=master())
    with app.runtime.progress.changed:
        app.runtime.progress.changed.wait_for(lambda: False, 120)


if __name__ == "__main__":
    main(*sys.argv[1:])
