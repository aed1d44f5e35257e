//! Writing to a pipe without blocking.

/// Bytes that a pipe with room takes without blocking (`PIPE_BUF`; elsewhere the minimum of POSIX).
pub(super) const SURE_WRITE: usize = if cfg!(target_os = "linux") { 4096 } else { 512 };

/// Returns whether there is room for some bytes.
///
/// # Errors
/// Errors if the descriptor can't be polled.
#[cfg(unix)]
pub(super) fn has_room(output: &impl std::os::fd::AsFd) -> std::io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(output, PollFlags::OUT)], Some(&now))?;
    Ok(ready > 0)
}
