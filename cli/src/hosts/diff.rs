//! The difference between two texts, as `diff --unified` shows it.

use std::{fmt::Write as _, ops::Range};

const CONTEXT: usize = 3;

/// Returns a unified difference of texts that differ in one place; "" if they are equal. `name` is the file's.
pub fn unified(name: &str, old: &str, new: &str, colours: bool) -> String {
    if old == new {
        return String::new();
    }
    let (old, new): (Vec<_>, Vec<_>) = (lines(old), lines(new));
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let longest = old.len().min(new.len()) - same;
    let end =
        old.iter().rev().zip(new.iter().rev()).take(longest).take_while(|(a, b)| a == b).count();
    let (removed, added) = (same..old.len() - end, same..new.len() - end);
    let start = same.saturating_sub(CONTEXT);
    let until = (removed.end + CONTEXT).min(old.len());

    let mut text = String::new();
    let mut put = |colour: &str, sign: &str, line: &str| {
        // Writing to a string cannot fail.
        let _ = match colours && !colour.is_empty() {
            true => writeln!(text, "\x1b[{colour}m{sign}{line}\x1b[0m"),
            false => writeln!(text, "{sign}{line}"),
        };
    };
    put("1", "--- ", if old.is_empty() { "/dev/null" } else { name });
    put("1", "+++ ", name);
    let new_length = added.len() + until - start - removed.len();
    let places = (range(start, until - start), range(start, new_length));
    put("36", "", &format!("@@ -{} +{} @@", places.0, places.1));
    let mut all = |colour: &str, sign: &str, lines: &[&str], range: Range<usize>| {
        lines[range].iter().for_each(|line| put(colour, sign, line));
    };
    all("", " ", &old, start..same);
    all("31", "-", &old, removed.clone());
    all("32", "+", &new, added);
    all("", " ", &old, removed.end..until);
    text
}

/// Returns a range of lines in the header of a difference.
fn range(start: usize, length: usize) -> String {
    match length {
        0 => format!("{start},0"),
        1 => (start + 1).to_string(),
        _ => format!("{},{length}", start + 1),
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_three_lines_around_it() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n";
        let new = "1\n2\n3\n4\n5a\n5b\n6\n7\n8\n";
        let expected = "--- f\n+++ f\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+5a\n+5b\n 6\n 7\n 8\n";
        assert_eq!(unified("f", old, new, false), expected);
        assert_eq!(unified("f", old, old, false), "");
    }

    #[test]
    fn a_new_file_has_no_old_lines() {
        assert_eq!(
            unified("f", "", "a\nb\n", false),
            "--- /dev/null\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b\n"
        );
    }

    #[test]
    fn repeated_lines_are_not_counted_twice() {
        let shown = unified("f", "a\n}\n}\n", "a\n}\nb\n}\n}\n", false);
        assert!(shown.contains("+b\n") || shown.contains("+}\n"), "{shown}");
        assert!(!shown.contains("\n-"), "{shown}");
    }

    #[test]
    fn colours_are_reset_on_every_line() {
        let shown = unified("f", "a\n", "b\n", true);
        assert!(shown.contains("\x1b[31m-a\x1b[0m\n") && shown.contains("\x1b[32m+b\x1b[0m\n"));
    }
}
