"""Types to JSON Schemas and forms."""
