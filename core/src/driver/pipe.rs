//! Writing to a pipe without blocking. Its description may be shared with other processes, so it stays a blocking one.

use std::{fs::File, io};

/// Bytes that a pipe with room takes without blocking (`PIPE_BUF`; elsewhere the minimum of POSIX).
pub(super) const SURE_WRITE: usize = if cfg!(target_os = "linux") { 4096 } else { 512 };

/// The size for pipes that large messages pass through. With the usual 64 KiB, writer and reader would wake each other
/// several times in each message. All pipes of a user together may have 64 MiB; then others get less.
#[cfg(target_os = "linux")]
const WIDE: usize = 256 * 1024;

/// Returns whether there is room for some bytes.
///
/// # Errors
/// Errors if the descriptor can't be polled.
#[cfg(unix)]
pub(super) fn has_room(output: &impl std::os::fd::AsFd) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(output, PollFlags::OUT)], Some(&now))?;
    Ok(ready > 0)
}

/// Writes as many of the first bytes as the pipe has room for, and returns their number; `None` if the pipe is full.
pub(super) fn write_now(output: &File, bytes: &[u8]) -> io::Result<Option<usize>> {
    #[cfg(target_os = "linux")]
    {
        use rustix::io::{Errno, ReadWriteFlags, pwritev2};

        // The current position, which pipes and sockets do not have.
        const AT_POSITION: u64 = u64::MAX;
        match pwritev2(output, &[io::IoSlice::new(bytes)], AT_POSITION, ReadWriteFlags::NOWAIT) {
            Ok(count) => return Ok(Some(count)),
            Err(Errno::AGAIN) => return Ok(None),
            // Older kernels, sandboxes that refuse the call, and files that know no such writes.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => (),
            Err(error) => return Err(error.into()),
        }
    }
    write_a_little(output, bytes)
}

#[cfg(unix)]
fn write_a_little(mut output: &File, bytes: &[u8]) -> io::Result<Option<usize>> {
    match has_room(&output)? {
        true => io::Write::write(&mut output, &bytes[..bytes.len().min(SURE_WRITE)]).map(Some),
        false => Ok(None),
    }
}

#[cfg(not(unix))]
fn write_a_little(_: &File, _: &[u8]) -> io::Result<Option<usize>> {
    Ok(None)
}

/// A buffer to read a stream into, of which a part stays in the processor's cache. Reads that fill it make it larger, and
/// the pipe that is read.
#[derive(Debug)]
pub struct ReadBuffer(Vec<u8>);

impl ReadBuffer {
    const SMALL: usize = 64 * 1024;
    const LARGE: usize = 256 * 1024;

    /// Reads what has arrived, and waits for some bytes if there are none. Returns none at the end.
    ///
    /// # Errors
    /// Errors if the system does, also when it is interrupted.
    pub fn read(&mut self, mut input: &File) -> io::Result<&[u8]> {
        let count = io::Read::read(&mut input, &mut self.0)?;
        if count == Self::SMALL && self.0.len() == Self::SMALL {
            widen(&input);
            self.0.resize(Self::LARGE, 0);
        }
        Ok(&self.0[..count])
    }
}

impl Default for ReadBuffer {
    fn default() -> Self {
        Self(vec![0; Self::SMALL])
    }
}

/// Makes a pipe larger, where the system allows it. Does nothing to other files.
#[cfg(target_os = "linux")]
pub(super) fn widen(pipe: &impl std::os::fd::AsFd) {
    use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

    if fcntl_getpipe_size(pipe).is_ok_and(|size| size < WIDE) {
        let _ = fcntl_setpipe_size(pipe, WIDE);
    }
}

/// Makes a pipe larger, where the system allows it. Does nothing on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn widen<T>(_: &T) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn a_read_that_fills_the_buffer_makes_it_and_its_pipe_larger() {
        let (read, write) = io::pipe().unwrap();
        let (read, write) = (File::from(OwnedFd::from(read)), File::from(OwnedFd::from(write)));
        let mut buffer = ReadBuffer::default();
        let message = vec![b'x'; ReadBuffer::SMALL];
        io::Write::write_all(&mut &write, &message[1..]).unwrap();
        assert_eq!(buffer.read(&read).unwrap().len(), ReadBuffer::SMALL - 1);
        assert_eq!(buffer.0.len(), ReadBuffer::SMALL);
        io::Write::write_all(&mut &write, &message).unwrap();
        assert_eq!(buffer.read(&read).unwrap().len(), ReadBuffer::SMALL);
        assert_eq!(buffer.0.len(), ReadBuffer::LARGE);
        drop(write);
        assert_eq!(buffer.read(&read).unwrap(), b"");
    }

    #[test]
    fn a_full_pipe_takes_nothing_and_a_closed_one_is_an_error() {
        let (read, write) = io::pipe().unwrap();
        let write = File::from(OwnedFd::from(write));
        let message = vec![b'x'; 2 * WIDE];
        while write_now(&write, &message).unwrap().is_some() {}
        drop(read);
        assert!(write_now(&write, &message).is_err());
    }
}
