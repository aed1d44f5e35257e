//! The standard streams of a server process, reserved for the protocol.

use std::{fs::File, io};

/// Reserves standard input and output for the protocol and returns them.
///
/// Afterwards file descriptor 1 is standard error and file descriptor 0 is empty, so that prints, C libraries and
/// child processes can neither write to the connection nor read from it (stdio: the server MUST NOT write anything to
/// its stdout that is not a valid MCP message).
#[cfg(unix)]
pub fn take() -> io::Result<(File, File)> {
    use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

    open_stderr()?;
    let input = rustix::io::fcntl_dupfd_cloexec(stdin(), 3)?;
    let output = rustix::io::fcntl_dupfd_cloexec(stdout(), 3)?;
    dup2_stdout(stderr())?;
    dup2_stdin(File::open("/dev/null")?)?;
    for stream in [&input, &output] {
        make_blocking(stream)?;
    }
    Ok((input.into(), output.into()))
}

/// Opens `/dev/null` as standard error if the host has closed it: otherwise the next file that is opened would take its
/// place, and get what is written to standard error.
#[cfg(unix)]
pub fn open_stderr() -> io::Result<()> {
    use rustix::{
        io::{FdFlags, fcntl_getfd, fcntl_setfd},
        stdio::{dup2_stderr, raw_stderr, stderr},
    };
    use std::os::fd::{AsRawFd, IntoRawFd};

    if fcntl_getfd(stderr()).is_err() {
        let null = File::options().write(true).open("/dev/null")?;
        if null.as_raw_fd() == raw_stderr() {
            // Kept open, for children as well.
            let _ = null.into_raw_fd();
            fcntl_setfd(stderr(), FdFlags::empty())?;
        } else {
            dup2_stderr(null)?;
        }
    }
    Ok(())
}

/// Clears the non-blocking flag, which a runtime may have set, as Node does for `process.stdout`.
#[cfg(unix)]
fn make_blocking(stream: &std::os::fd::OwnedFd) -> io::Result<()> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    let flags = fcntl_getfl(stream)?;
    fcntl_setfl(stream, flags - OFlags::NONBLOCK)?;
    Ok(())
}

/// Reserves standard input and output for the protocol and returns them; errors on this system.
#[cfg(not(unix))]
pub fn take() -> io::Result<(File, File)> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "stdio can be served on Unix systems only"))
}
