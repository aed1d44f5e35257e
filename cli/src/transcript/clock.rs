//! The time of a recording.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns a time in UTC, as in `2026-07-28T12:00:00Z`.
pub(super) fn utc(time: SystemTime) -> String {
    format(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// Formats seconds since 1970.
fn format(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    // Years begin in March here, so that the day of a leap year is the last one. 719,468 days are between 0000-03-01 and
    // 1970-01-01.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(format(0), "1970-01-01T00:00:00Z");
        assert_eq!(format(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(format(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(format(1_785_240_000), "2026-07-28T12:00:00Z");
        assert_eq!(format(4_107_542_400), "2100-03-01T00:00:00Z");
    }
}
