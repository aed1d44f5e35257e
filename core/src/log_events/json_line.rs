//! A line of a log as JSON, for `GUDGEON_LOG_FORMAT=json`. The packages of Python and Node write the same members.

use serde_json::{Map, Value, json};

/// The environment variable that sets the format of the log on standard error: `text` or `json`.
pub const LOG_FORMAT: &str = "GUDGEON_LOG_FORMAT";

/// Returns a line without its end. The time is in seconds since 1970.
pub fn json_line(unix: u64, level: &str, message: &str, fields: Map<String, Value>) -> String {
    let mut line = Map::new();
    line.insert("time".into(), utc(unix).into());
    line.insert("level".into(), level.into());
    line.insert("logger".into(), "gudgeon".into());
    line.insert("message".into(), message.into());
    if !fields.is_empty() {
        line.insert("fields".into(), fields.into());
    }
    json!(line).to_string()
}

/// Returns a time as RFC 3339 has it, in UTC.
fn utc(unix: u64) -> String {
    let (days, seconds) = (unix / 86_400, unix % 86_400);
    // Days since the first of March of the year 0, in the proleptic Gregorian calendar, in which leap days come last.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (unix, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_796_113_845, "2026-12-01T08:30:45Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(unix), expected);
        }
    }

    #[test]
    fn a_line_has_no_end_inside_it() {
        let line = json_line(0, "error", "a\nb", Map::new());
        let expected =
            json!({"time": utc(0), "level": "error", "logger": "gudgeon", "message": "a\nb"});
        assert_eq!(serde_json::from_str::<Value>(&line).expect("JSON"), expected);
        assert!(!line.contains('\n'));
    }
}
