"""Live clusters as judge: real Siddhi nodes on one database, asked what each of them answers.

    python -m tests.live --seed 7 --count 20 > cases.jsonl
    python -m tests.live --seed 7 --count 20 --outputs > outputs.jsonl

Random apps with aggregations, their events and retrievals, with the answers of the nodes: lines of
`tests/cases/live/playback.jsonl`. With `--outputs`: random apps without aggregations, and what each of several nodes
put out that share their events (`tests/cases/live/outputs.jsonl`).

It needs a JDK and Maven. Retrievals need the RDBMS store of Siddhi, too (siddhi-io/siddhi-store-rdbms, compiled without
Carbon's data sources), which Maven's repositories do not have: `SPARKSTREAM_LIVE_STORE` names its jar.
"""
