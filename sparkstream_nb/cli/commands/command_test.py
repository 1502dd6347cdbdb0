"""`sparkstream test`: tests of apps."""

from __future__ import annotations

from typing import Any

from ...charts.value_texts import format_count
from ...testing.command import run_test_command, write_examples


def run(options: Any) -> int:
    """`sparkstream test`."""
    if options.examples is not None:
        print(f"{format_count(write_examples(options.examples), 'file')} written: sparkstream test {options.examples}")
        if not options.paths:
            return 0
    report = run_test_command(options)
    print("\n".join(report.lines()))
    return report.exit_code
