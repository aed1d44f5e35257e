//! Nothing but its manifest: see there.
