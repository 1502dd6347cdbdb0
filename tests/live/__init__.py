"""Live clusters as judge: real Siddhi nodes on one database, asked what each of them answers.

    python -m tests.live --seed 7 --count 20 > cases.jsonl

Random apps with aggregations, their events and retrievals, with the answers of the nodes: lines of
`tests/cases/live/playback.jsonl`. It needs a JDK, Maven, and the RDBMS store of Siddhi (siddhi-io/siddhi-store-rdbms,
compiled without Carbon's data sources), which Maven's repositories do not have: `SPARKSTREAM_LIVE_STORE` names its jar.
"""
