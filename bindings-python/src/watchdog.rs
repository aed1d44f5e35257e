//! The watchdog of a process that a server owns, and its signals.
//!
//! Python runs signal handlers on its main thread between two instructions, which a handler in C may prevent. Its C code
//! writes the number of each signal to a pipe at once, and a thread that never enters the interpreter reads it.

use std::{
    ffi::c_int,
    io::{ErrorKind, PipeReader, PipeWriter, Read},
    os::fd::{AsFd, AsRawFd},
    sync::{Arc, Mutex},
    time::Duration,
};

use gudgeon::driver::Watchdog;
use pyo3::prelude::*;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::{stream::lock, waker::Waker};

mod raw {
    use std::ffi::c_int;

    #[expect(
        unsafe_code,
        reason = "the standard library has only `exit`, which runs exit handlers of C"
    )]
    unsafe extern "C" {
        pub(super) safe fn _exit(status: c_int) -> !;
    }
}

/// Receives the signals of a process and ends it if handlers keep it from ending by itself.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct NativeWatchdog {
    watchdog: Watchdog,
    /// The end of the pipe that Python writes to; closing it ends the thread.
    signals: Mutex<Option<PipeWriter>>,
    came: Arc<Waker>,
}

impl NativeWatchdog {
    pub(crate) fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }
}

#[pymethods]
impl NativeWatchdog {
    #[new]
    fn new() -> PyResult<Self> {
        gudgeon::transport::stdio::open_stderr()?;
        let (reader, writer) = std::io::pipe()?;
        let flags = fcntl_getfl(&writer).map_err(std::io::Error::from)?;
        fcntl_setfl(&writer, flags | OFlags::NONBLOCK).map_err(std::io::Error::from)?;
        let (watchdog, came) = (
            Watchdog::new(|status: c_int| raw::_exit(status), Duration::ZERO),
            Arc::new(Waker::new()?),
        );
        let (reported, wakes) = (watchdog.clone(), Arc::clone(&came));
        std::thread::Builder::new()
            .name("gudgeon-signals".into())
            .spawn(move || receive(reader, &reported, &wakes))?;
        Ok(Self { watchdog, signals: Mutex::new(Some(writer)), came })
    }

    /// The descriptor for `signal.set_wakeup_fd`.
    fn signals_fileno(&self) -> i32 {
        lock(&self.signals).as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Reports a signal, in case the pipe belongs to someone else. `count` is the number of signals so far.
    fn signal(&self, number: i32, count: u32) {
        if self.watchdog.signal(number, count) {
            self.came.wake();
        }
    }

    /// Readable after a signal, until `clear`.
    fn fileno(&self) -> i32 {
        self.came.as_fd().as_raw_fd()
    }

    fn clear(&self) {
        self.came.clear();
    }

    /// Returns whether a signal has arrived.
    #[getter]
    fn came(&self) -> bool {
        self.watchdog.has_signal()
    }

    /// Reports that no handler runs any more that could block the process.
    fn handlers_ended(&self) {
        self.watchdog.handlers_ended();
    }

    /// Never ends the process from now on.
    fn close(&self) {
        self.watchdog.over();
        lock(&self.signals).take();
    }
}

fn receive(mut signals: PipeReader, watchdog: &Watchdog, came: &Waker) {
    let mut count = 0;
    let mut numbers = [0; 16];
    loop {
        let read = match signals.read(&mut numbers) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        for number in &numbers[..read] {
            // Other signals for which Python has a handler are written as well.
            if [rustix::process::Signal::TERM, rustix::process::Signal::INT]
                .iter()
                .any(|signal| signal.as_raw() == i32::from(*number))
            {
                count += 1;
                if watchdog.signal((*number).into(), count) {
                    came.wake();
                }
            }
        }
    }
}
