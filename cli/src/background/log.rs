//! The log of the background process: two files of a bounded size.

use std::{
    fmt::Display,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
    sync::Mutex,
    time::SystemTime,
};

use super::message::lock;

/// The size at which a file is moved to the place of the older one.
const MAX_BYTES: u64 = 256 * 1024;
const MAX_LINE: usize = 4 * 1024;

pub struct Log {
    path: PathBuf,
    file: Mutex<File>,
}

impl Log {
    pub fn open(path: PathBuf) -> io::Result<Self> {
        let file = Mutex::new(open(&path)?);
        Ok(Self { path, file })
    }

    /// Writes a line with the time. The log is for people; a line that can't be written is dropped.
    pub fn write(&self, text: impl Display) {
        let seconds = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        let text: String = text.to_string().chars().take(MAX_LINE).collect();
        let text = text.replace('\n', "\\n");
        let mut file = lock(&self.file);
        let _ = writeln!(file, "{} {text}", time(seconds));
        if file.metadata().is_ok_and(|metadata| metadata.len() > MAX_BYTES) {
            let _ = fs::rename(&self.path, self.path.with_extension("log.old"));
            if let Ok(fresh) = open(&self.path) {
                *file = fresh;
            }
        }
    }
}

fn open(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// Returns a time in seconds since 1970 as in RFC 3339.
fn time(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from 1 March of the year 0, so that leap days are at the end of years.
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(time(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(time(1_795_680_000), "2026-11-26T08:00:00Z");
    }

    #[test]
    fn the_size_is_bounded() {
        let folder = std::env::temp_dir().join(format!("gudgeon-log-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("background.log");
        let log = Log::open(path.clone()).expect("a log");
        for _ in 0..400 {
            log.write("x".repeat(2_000));
        }
        let size = |path: &PathBuf| fs::metadata(path).expect("a file").len();
        assert!(size(&path) <= MAX_BYTES);
        assert!(size(&path.with_extension("log.old")) <= MAX_BYTES + 5_000);
        fs::remove_dir_all(folder).expect("removed");
    }
}
