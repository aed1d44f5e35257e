//! Files that the command reads and writes on its own: configurations, scripts, and what it generates.

pub mod write;
