"""The MCP server: check, explain, fix, verify and rule as tools of coding agents."""
