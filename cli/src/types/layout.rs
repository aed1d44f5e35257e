//! Line breaks, as `ruff format` and Prettier choose them: a group is on one line if it fits.

use std::fmt;

use unicode_width::UnicodeWidthChar as _;

/// A string with places where lines may be broken.
#[derive(Clone, Debug)]
pub enum Doc {
    Text(String),
    /// A line break in a group that is broken; else a space.
    Line,
    /// A line break in a group that is broken; else nothing.
    Soft,
    /// A string in a group that is broken; else nothing.
    IfBroken(&'static str),
    Indent(Box<Self>),
    Group(Box<Self>),
    All(Vec<Self>),
}

/// Appends to a string.
pub fn append(text: &mut String, part: fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = fmt::Write::write_fmt(text, part);
}

pub fn text(text: impl Into<String>) -> Doc {
    Doc::Text(text.into())
}

pub fn group(parts: Vec<Doc>) -> Doc {
    Doc::Group(Box::new(Doc::All(parts)))
}

pub fn indent(parts: Vec<Doc>) -> Doc {
    Doc::Indent(Box::new(Doc::All(parts)))
}

/// Returns documents with a separator between them.
pub fn joined(items: Vec<Doc>, separator: &[Doc]) -> Vec<Doc> {
    let mut parts = Vec::with_capacity(items.len() * (separator.len() + 1));
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            parts.extend_from_slice(separator);
        }
        parts.push(item);
    }
    parts
}

/// Returns the text in lines of at most `width` columns where that is possible. It begins at the column `start`.
pub fn render(doc: &Doc, width: usize, step: usize, start: usize) -> String {
    let mut text = " ".repeat(start);
    let mut column = start;
    // The indentation, whether the group is broken, and the document.
    let mut stack = vec![(start, true, doc)];
    while let Some((indentation, broken, doc)) = stack.pop() {
        match doc {
            Doc::Text(it) => {
                text.push_str(it);
                column += columns(it);
            }
            Doc::Line | Doc::Soft if broken => {
                let end = text.trim_end_matches(' ').len();
                text.truncate(end);
                text.push('\n');
                text.push_str(&" ".repeat(indentation));
                column = indentation;
            }
            Doc::Line => {
                text.push(' ');
                column += 1;
            }
            Doc::Soft => (),
            Doc::IfBroken(it) => {
                if broken {
                    text.push_str(it);
                    column += columns(it);
                }
            }
            Doc::Indent(inner) => stack.push((indentation + step, broken, inner)),
            Doc::Group(inner) => {
                let fits = fits(inner, &stack, width.saturating_sub(column));
                stack.push((indentation, !fits, inner));
            }
            Doc::All(parts) => {
                stack.extend(parts.iter().rev().map(|part| (indentation, broken, part)));
            }
        }
    }
    text
}

/// Returns whether a document, and what follows it up to the next possible line break, fits on the line.
fn fits(doc: &Doc, rest: &[(usize, bool, &Doc)], mut room: usize) -> bool {
    let mut rest = rest.iter().rev();
    let mut stack = vec![(false, doc)];
    loop {
        let (broken, doc) = match stack.pop() {
            Some(next) => next,
            None => match rest.next() {
                Some((_, broken, doc)) => (*broken, *doc),
                None => return true,
            },
        };
        let used = match doc {
            Doc::Text(it) => columns(it),
            Doc::Line | Doc::Soft if broken => return true,
            Doc::Line => 1,
            Doc::Soft => 0,
            Doc::IfBroken(it) => {
                if broken {
                    columns(it)
                } else {
                    0
                }
            }
            Doc::Indent(inner) | Doc::Group(inner) => {
                stack.push((broken, inner));
                0
            }
            Doc::All(parts) => {
                stack.extend(parts.iter().rev().map(|part| (broken, part)));
                0
            }
        };
        match room.checked_sub(used) {
            Some(left) => room = left,
            None => return false,
        }
    }
}

/// Returns the columns of a string in a terminal: characters of East Asian scripts take two.
pub fn columns(text: &str) -> usize {
    text.chars().map(|character| character.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: &[&str]) -> Doc {
        let items = arguments.iter().map(|argument| text(*argument)).collect();
        let mut inner = joined(items, &[text(","), Doc::Line]);
        inner.push(Doc::IfBroken(","));
        group(vec![text("f("), indent(vec![Doc::Soft, group(inner)]), Doc::Soft, text(")")])
    }

    #[test]
    fn groups_break_from_the_outside() {
        let doc = call(&["aaaa", "bbbb"]);
        assert_eq!(render(&doc, 20, 4, 0), "f(aaaa, bbbb)");
        assert_eq!(render(&doc, 16, 4, 4), "    f(\n        aaaa,\n        bbbb,\n    )");
    }

    #[test]
    fn what_follows_a_group_counts() {
        let doc = Doc::All(vec![call(&["aaaa", "bbbb"]), text(" -> x")]);
        assert_eq!(render(&doc, 18, 4, 0), "f(aaaa, bbbb) -> x");
        assert_eq!(render(&doc, 17, 4, 0), "f(\n    aaaa, bbbb\n) -> x");
    }
}
