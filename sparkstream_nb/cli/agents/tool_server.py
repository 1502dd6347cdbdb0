"""The MCP server: it lists the tools, and answers calls, over standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import Any

from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

from ..._version import __version__
from ...errors import SparkStreamError, escape_controls
from .agent_tools import TOOLS, AgentGrants, request_of, tool_of
from .bounded_command import BoundedCommand, error_text
from .documentation import search_documentation

MOST_AT_ONCE = 2
"""Commands that run at once; further calls wait."""
_CLEANING_SECONDS = 1.0
"""Time in which the folders of commands are removed, when the process is told to end."""
_INSTRUCTIONS = (
    "SiddhiQL apps (streams, windows, patterns, joins, aggregations) on simulated nodes. Write an app, check it, run "
    "it over a few events, and search the documentation for windows and functions. What an app reaches outside is "
    "left out, unless the person who started this server granted it."
)


def serve(grants: AgentGrants) -> None:
    """Answers requests until standard input ends, or the process is told to end; commands under way end with it."""
    with contextlib.redirect_stdout(sys.__stdout__):
        asyncio.run(_serve(grants))


async def _serve(grants: AgentGrants) -> None:
    calls = asyncio.Semaphore(MOST_AT_ONCE)
    commands: set[BoundedCommand] = set()
    loop = asyncio.get_running_loop()

    def end() -> None:
        for command in commands:
            command.stop()
        loop.call_later(_CLEANING_SECONDS, os._exit, 128 + signal.SIGTERM)  # a thread still waits for input

    with contextlib.suppress(NotImplementedError):  # Windows
        loop.add_signal_handler(signal.SIGTERM, end)

    async def list_tools(
        context: ServerRequestContext[Any], request: PaginatedRequestParams | None
    ) -> ListToolsResult:
        tools = [Tool(name=t.name, description=t.description, input_schema=t.schema()) for t in TOOLS]
        return ListToolsResult(tools=tools)

    async def call_tool(context: ServerRequestContext[Any], request: CallToolRequestParams) -> CallToolResult:
        async with calls:
            text, is_error = await _answer(request, grants, commands)
        return CallToolResult(content=[TextContent(text=escape_controls(text))], is_error=is_error)

    server: Server[Any] = Server(
        "sparkstream", version=__version__, instructions=_INSTRUCTIONS, on_list_tools=list_tools,
        on_call_tool=call_tool,
    )  # fmt: skip
    async with stdio_server() as (requests, answers):
        await server.run(requests, answers, server.create_initialization_options())


async def _answer(
    call: CallToolRequestParams, grants: AgentGrants, commands: set[BoundedCommand]
) -> tuple[str, bool]:
    """The text of an answer, and whether it is an error. `commands`: those under way."""
    values = call.arguments or {}
    try:
        tool = tool_of(call.name)
        request = request_of(tool, values, grants)
        if tool.name == "search_documentation":
            return search_documentation(values["query"]), False
        command = BoundedCommand(request.words, request.files, grants.seconds)
        commands.add(command)
        try:
            output = await asyncio.to_thread(command.run)
        except asyncio.CancelledError:
            command.stop()
            raise
        finally:
            commands.discard(command)
    except SparkStreamError as error:
        return str(error), True
    if output.code not in tool.verdicts or "Traceback (most recent call last)" in output.err:
        return error_text(output), True
    notes = [line for line in output.err.splitlines() if "Ctrl-C" not in line]  # what is for a terminal
    return "\n".join([output.out.rstrip(), *notes]).strip("\n"), False
