"""The command `sparkstream`: check, explain, graph, audit, test, fmt, run, record, generate, split, query, ...

`registry.py` is the table of commands. Of each, `arguments/` has the options, and `commands/` the module that carries
it out, which is imported only when the command runs.
Exit codes: 0 success; 1 the app is wrong, or a test or run failed; 2 the command line is wrong; 130 interrupted;
141 the reader of the output has ended.
Results go to standard output, short error messages to standard error.
"""

from __future__ import annotations

from .command_line import main, parser

__all__ = ["main", "parser"]
