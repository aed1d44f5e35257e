//! Measurements: latencies, and the server's resources from /proc.

use std::fs;
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Latencies(Vec<u64>);

impl Latencies {
    pub(crate) fn add(&mut self, latency: Duration) {
        self.0.push(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    #[expect(clippy::cast_precision_loss, reason = "nobody makes 2^53 calls")]
    pub(crate) fn count(&self) -> f64 {
        self.0.len() as f64
    }

    #[expect(clippy::cast_precision_loss, reason = "a latency is far below 2^53 ns")]
    pub(crate) fn json(&mut self) -> Result<String, String> {
        let last = self.0.len().checked_sub(1).ok_or("no call was answered in the time given")?;
        self.0.sort_unstable();
        let us = |per_mille: usize| self.0[last * per_mille / 1000] as f64 / 1e3;
        Ok(format!(
            "\"p50_us\":{:.1},\"p99_us\":{:.1},\"max_us\":{:.1}",
            us(500),
            us(990),
            us(1000)
        ))
    }
}

/// Returns the user and system time of all threads; `None` without /proc.
pub(crate) fn cpu_seconds(pid: u32) -> Option<f64> {
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain any characters; utime and stime are the 12th and 13th words after it.
    let mut words = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (f64, f64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((user + system) / TICKS)
}

pub(crate) fn resident_megabytes(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<f64>().ok()? / 1024.0)
}

pub(crate) fn json(number: Option<f64>) -> String {
    number.map_or_else(|| "null".into(), |number| format!("{number:.2}"))
}
