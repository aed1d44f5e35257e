"""The connection between a test's client and the server under test."""
