"""Checks that the core without features, which is sans-IO, does not depend on tokio and compiles without warnings."""

from features import check, forbid

forbid("", ("tokio", "rustix", "mio"))
check("")
