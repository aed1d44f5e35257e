"""Clients: targets, options, operations, and the two ways to wait for them."""
