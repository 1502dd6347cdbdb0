"""Protocols and clients that sources and sinks share."""
