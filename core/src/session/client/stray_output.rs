//! Output of a server that is not a message, quoted in errors and log lines.

/// The number of frames that are kept, and of characters of each.
const KEPT: usize = 3;
const SHOWN: usize = 200;

/// The first frames that are not messages.
#[derive(Debug, Default)]
pub(super) struct StrayOutput {
    quoted: Vec<String>,
    is_cut: bool,
    has_text: bool,
}

impl StrayOutput {
    /// Adds a frame; `is_text` if it is not JSON.
    pub(super) fn push(&mut self, frame: &[u8], is_text: bool) {
        if frame.trim_ascii().is_empty() {
            return;
        }
        self.has_text |= is_text;
        match self.quoted.len() {
            KEPT => self.is_cut = true,
            _ => self.quoted.push(quoted(frame)),
        }
    }

    /// Returns the quoted frames, separated by commas; an empty string if there are none.
    pub(super) fn list(&self) -> String {
        let more = if self.is_cut { ", …" } else { "" };
        format!("{}{more}", self.quoted.join(", "))
    }

    /// Returns whether a frame is not JSON: the server probably printed it.
    pub(super) fn has_text(&self) -> bool {
        self.has_text
    }
}

/// Returns the beginning of a frame in quotation marks, safe for terminals and logs.
pub(super) fn quoted(frame: &[u8]) -> String {
    // Four bytes are the longest character.
    let text = String::from_utf8_lossy(&frame[..frame.len().min(SHOWN * 4)]);
    let text = text.trim();
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() || frame.len() > SHOWN * 4 {
        shown.push('…');
    }
    format!("{shown:?}")
}

/// Logs frames, quoted, that a server sent beside its messages.
pub(super) fn warn(quoted: &str) {
    tracing::warn!(
        "the server printed {quoted}, which is not a message; over stdio a server must print to standard error"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_texts_are_quoted_and_each_is_cut() {
        let mut stray = StrayOutput::default();
        assert_eq!(stray.list(), "");
        stray.push(b"  \n", true);
        assert!(stray.list().is_empty() && !stray.has_text());
        stray.push(b"Listening on port 8000\x1b[0m", true);
        assert!(stray.has_text());
        assert_eq!(stray.list(), r#""Listening on port 8000\u{1b}[0m""#);
        stray.push("ä".repeat(1_000_000).as_bytes(), true);
        stray.push(b"{}", false);
        stray.push(b"four", true);
        let quoted = stray.list();
        assert!(quoted.contains(&format!("\"{}…\"", "ä".repeat(SHOWN))), "{quoted}");
        assert!(quoted.ends_with(r#""{}", …"#), "{quoted}");
        assert!(quoted.len() < 1_000, "{}", quoted.len());
    }
}
