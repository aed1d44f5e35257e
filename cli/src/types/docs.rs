//! Descriptions of a server as lines of documentation.

use gudgeon::bindings::logs::is_invisible;

/// Returns the lines of a string, wrapped at `width`, without characters that are invisible or reverse text. Empty lines are
/// kept between paragraphs only.
pub fn lines(text: &str, width: usize) -> Vec<String> {
    let text: String = text.replace("\r\n", "\n").replace('\r', "\n");
    let text: String = text.chars().filter_map(visible).collect();
    let raw: Vec<&str> = text.lines().map(str::trim_end).collect();
    let indent = raw
        .iter()
        .skip(1)
        .filter(|line| !line.is_empty())
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or(0);
    let mut lines = Vec::new();
    for (index, line) in raw.iter().enumerate() {
        let line =
            if index == 0 { line.trim_start() } else { line.get(indent..).unwrap_or_default() };
        if line.is_empty() {
            if lines.last().is_some_and(|last: &String| !last.is_empty()) {
                lines.push(String::new());
            }
        } else {
            wrap(line, width.max(20), &mut lines);
        }
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn visible(character: char) -> Option<char> {
    match character {
        '\n' => Some('\n'),
        '\t' => Some(' '),
        it if is_invisible(it) => None,
        // Other spaces, which formatters would replace or count differently.
        it if it.is_whitespace() => Some(' '),
        it => Some(it),
    }
}

fn wrap(line: &str, width: usize, lines: &mut Vec<String>) {
    if line.chars().count() <= width {
        lines.push(line.to_owned());
        return;
    }
    let indent: String = line.chars().take_while(|character| *character == ' ').collect();
    let mut current = String::new();
    for word in line.split_whitespace() {
        let length = current.chars().count() + 1 + word.chars().count();
        if !current.is_empty() && length > width {
            lines.push(std::mem::take(&mut current));
        }
        current.push_str(if current.is_empty() { &indent } else { " " });
        current.push_str(word);
    }
    lines.push(current);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cleaned_dedented_and_wrapped() {
        assert_eq!(
            lines("  Add.\r\n\n\n    More:\n      x\u{202e}y\u{0}\t \n\n", 80),
            ["Add.", "", "More:", "  xy"]
        );
        assert_eq!(lines("one two three four five six", 20), ["one two three four", "five six"]);
        assert_eq!(lines("\u{feff}\n \n", 80), [""; 0]);
    }
}
