//! The limits of what is served.

use gudgeon::framing::DEFAULT_LINE_LIMIT;

/// The default maximum number of worker threads for slow `def` handlers.
const THREADS: usize = 32;

/// The longest message, and the threads for handlers and for input and output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) line: usize,
    pub(crate) threads: usize,
    pub(crate) io_threads: usize,
}

impl Limits {
    pub(crate) fn new(
        line: Option<usize>,
        threads: Option<usize>,
        io_threads: Option<usize>,
    ) -> Self {
        Self {
            line: line.unwrap_or(DEFAULT_LINE_LIMIT),
            threads: threads.unwrap_or(THREADS).max(1),
            io_threads: io_threads.unwrap_or(1).max(1),
        }
    }
}
