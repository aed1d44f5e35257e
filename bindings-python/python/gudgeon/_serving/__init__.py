"""Serving: stdio, event loops, addresses, worker processes and ASGI."""
