"""One call of a handler: its start, questions, steps, failures, logs and traces."""
