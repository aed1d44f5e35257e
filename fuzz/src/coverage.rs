//! The counters of LLVM's coverage instrumentation: one byte for each edge of the control flow.

use std::sync::Mutex;

/// The counters of each object file, as addresses: the first and the one after the last.
static COUNTERS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

#[expect(unsafe_code, reason = "instrumented code calls this by its name before `main`")]
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    if let Ok(mut counters) = COUNTERS.lock() {
        counters.push((start as usize, stop as usize));
    }
}

/// Counters that are looked at together.
const BLOCK: usize = 32;

/// The edges that any input has reached so far, each with how often it was passed in one run: once, a few times, often.
#[derive(Default)]
pub struct Reached(Vec<u8>);

impl Reached {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what was passed since the last call and clears the counters. Returns the number of edges that are new, or
    /// were passed more often than before.
    pub fn add(&mut self) -> usize {
        let mut place = 0;
        let mut new = 0;
        let Ok(objects) = COUNTERS.lock() else { return 0 };
        for (start, stop) in objects.iter().copied() {
            #[expect(
                unsafe_code,
                reason = "the addresses of a static array of this program; one thread runs"
            )]
            let counters =
                unsafe { std::slice::from_raw_parts_mut(start as *mut u8, stop - start) };
            if self.0.len() < place + counters.len() {
                self.0.resize(place + counters.len(), 0);
            }
            let seen = self.0[place..].chunks_mut(BLOCK);
            for (counters, seen) in counters.chunks_mut(BLOCK).zip(seen) {
                // Most edges are not passed.
                if counters.iter().all(|counter| *counter == 0) {
                    continue;
                }
                for (counter, seen) in counters.iter_mut().zip(seen) {
                    let class = match std::mem::take(counter) {
                        0 => 0,
                        1 => 1,
                        2..=7 => 2,
                        8..=63 => 4,
                        _ => 8,
                    };
                    new += usize::from(*seen & class != class);
                    *seen |= class;
                }
            }
            place += counters.len();
        }
        new
    }

    /// Returns the number of edges reached.
    pub fn edges(&self) -> usize {
        self.0.iter().filter(|seen| **seen != 0).count()
    }
}
