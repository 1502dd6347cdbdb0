"""Checks that an app's folder is whole: its journal, checkpoint, store and outputs must agree on the micro-batches.

A runner plans a micro-batch of entries that are in the journal, the commit puts it into the ledger, and then the runner
marks it as done. So the journal reaches as far as the checkpoint, and the ledger at least to the last done micro-batch
and no further than the last planned one. Anything else was removed, cut, or comes from another copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import Misuse
from ...journal.checkpoints import CheckpointProgress
from ...journal.journal import AGAIN_FROM_JOURNAL, BEGIN_ANEW


@dataclass(frozen=True)
class Found:
    """The contents of an app's folder: the entries in its journal, its checkpoint, the last micro-batch in the ledger
    of its store (None: not known), whether its outputs are there, and which files are `missing` that entries name which
    are not done. `is_handed_over`: micro-batches missing in the ledger were handed over by a Connect server, and are
    still there. `lacking_outputs` says which outputs are gone, `last_output` is the last micro-batch that has some.
    """

    entries: int
    checkpoint: CheckpointProgress
    ledger: int | None
    outputs: bool
    missing: Sequence[str] = ()
    is_handed_over: bool = False
    lacking_outputs: str | None = None
    last_output: int = -1


def check_whole(home: Path, folder_state: Found) -> None:
    """Raise `Misuse`, with the ways out, for a folder with missing parts."""
    if folder_state.is_handed_over:
        raise Misuse(
            f"{home} has micro-batches that a Spark Connect server handed over and that are not committed. Deploy the "
            "app at that server again, and then at this master"
        )
    lacking = describe_lacking(folder_state)
    if lacking is not None:
        has_input = folder_state.entries >= folder_state.checkpoint.reached and not folder_state.missing
        raise not_whole(home, lacking, can_be_repaired=has_input)


def not_whole(home: Path, lacking: str, *, can_be_repaired: bool = False) -> Misuse:
    """The error for a folder that lacks something, with the ways out. `can_be_repaired`: it is no input."""
    ways_out = f"{AGAIN_FROM_JOURNAL}. Or put it back from a copy" if can_be_repaired else "Put it back from a copy"
    return Misuse(f"{home} is not whole: {lacking}. {ways_out}; {BEGIN_ANEW}")


def describe_lacking(folder_state: Found) -> str | None:
    """The part that a folder lacks; None if it is whole."""
    spark, ledger = folder_state.checkpoint, folder_state.ledger
    if max(-1 if ledger is None else ledger, folder_state.last_output) > spark.planned:
        problem = "its checkpoint is gone" if spark.planned < 0 else "its checkpoint is older than its store"
        return f"{problem}, and with it the state of its nodes after micro-batch {spark.planned}"
    if folder_state.entries < spark.reached:
        return f"its journal has {folder_state.entries:,} entries, and its checkpoint has begun with {spark.reached:,}"
    if folder_state.missing:
        more = f" and {len(folder_state.missing) - 1:,} more" if len(folder_state.missing) > 1 else ""
        return f"its inbox lacks the file {folder_state.missing[0]}{more}, with events that are not committed"
    if spark.done < 0:
        return None
    if not spark.state:
        return "the state of its nodes, in its checkpoint, is gone"
    if ledger is not None and ledger < spark.done:
        problem = "its store is gone or empty" if ledger < 0 else "its store is older than its checkpoint"
        return f"{problem}: {spark.done - ledger:,} micro-batches are not in it"
    if not folder_state.outputs:
        return "its outputs are gone"
    return folder_state.lacking_outputs
