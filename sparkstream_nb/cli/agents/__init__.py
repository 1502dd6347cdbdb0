"""Commands as tools of agents, over MCP: the tools, the limits of a call, the documentation that they search."""
