"""Live clusters as judge: real Siddhi nodes on one database, asked what each of them answers.

    python -m tests.live --seed 7 --count 20 > cases.jsonl
    python -m tests.live --seed 7 --count 20 --outputs > outputs.jsonl

Random apps with aggregations, their events and retrievals, with the answers of the nodes: lines of
`tests/cases/live/playback.jsonl`. With `--outputs`: random apps without aggregations, and what each of several nodes
put out that share their events (`tests/cases/live/outputs.jsonl`).

    python -m tests.live.judge --kind late --seed 7 --count 100 --queries 10

counts the random retrievals that ours answers otherwise, and those that do not follow from the servers' source
(`server_model`): of nodes in playback, by the wall's clock, with late events, restarts and kills, and not partitioned.

It needs a JDK and Maven. Retrievals need the RDBMS store of Siddhi, too (siddhi-io/siddhi-store-rdbms, compiled without
Carbon's data sources), which Maven's repositories do not have: `SPARKSTREAM_LIVE_STORE` names its jar.
"""
