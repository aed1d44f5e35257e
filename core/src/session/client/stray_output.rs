//! Output of a server that is no message, quoted in the error of a connection that can't be established.

/// The number of texts that are kept, and of characters of each.
const KEPT: usize = 3;
const SHOWN: usize = 200;

/// The first texts that are no messages.
#[derive(Debug, Default)]
pub(super) struct StrayOutput {
    texts: Vec<String>,
    is_cut: bool,
}

impl StrayOutput {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        // Four bytes are the longest character.
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN * 4)]);
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if self.texts.len() == KEPT {
            self.is_cut = true;
            return;
        }
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() || bytes.len() > SHOWN * 4 {
            shown.push('…');
        }
        self.texts.push(shown);
    }

    /// Returns the texts as the end of an error message; an empty string if there are none.
    pub(super) fn quoted(&self) -> String {
        if self.texts.is_empty() {
            return String::new();
        }
        let texts: Vec<_> = self.texts.iter().map(|it| format!("{it:?}")).collect();
        let more = if self.is_cut { ", …" } else { "" };
        format!("; what it sent is not a message: {}{more}", texts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_texts_are_quoted_and_each_is_cut() {
        let mut stray = StrayOutput::default();
        assert_eq!(stray.quoted(), "");
        stray.push(b"  \n");
        stray.push(b"Listening on port 8000\x1b[0m");
        assert_eq!(
            stray.quoted(),
            r#"; what it sent is not a message: "Listening on port 8000\u{1b}[0m""#
        );
        stray.push("ä".repeat(1_000_000).as_bytes());
        stray.push(b"three");
        stray.push(b"four");
        let quoted = stray.quoted();
        assert!(quoted.contains(&format!("\"{}…\"", "ä".repeat(SHOWN))), "{quoted}");
        assert!(quoted.ends_with(r#""three", …"#), "{quoted}");
        assert!(quoted.len() < 1_000, "{}", quoted.len());
    }
}
