"""Functions to plans: what a handler takes and returns, and the code that runs for a call."""
