//! Patterns in the syntax of ECMA-262 (<https://tc39.es/ecma262/#sec-patterns>), rewritten where the engines read them otherwise
//! and `jsonschema_regex` does not translate them.

use std::fmt::Write;

use jsonschema_regex::is_valid_ecma_regex;

use super::class_sets;

const ANY: &str = r"[\x00-\u{10FFFF}]";
pub(super) const NOTHING: &str = r"[^\x00-\u{10FFFF}]";
const DOT: &str = r"[^\n\r\u{2028}\u{2029}]";

/// Returns the pattern with explicit ranges for the escapes of classes, numbers for the names of back-references, and classes
/// that may be empty spelled out; `None` where a set of characters of the `v` flag is not valid.
///
/// JSON Schema has patterns read with the `u` flag. One that is not valid with it is read with the `v` flag where it is valid so.
pub(super) fn simplified(pattern: &str) -> Option<String> {
    let strict = is_valid_ecma_regex(pattern);
    let mut reader = Reader {
        rest: pattern,
        text: String::with_capacity(pattern.len()),
        strict,
        sets: !strict && class_sets::are_used(pattern),
        modifiers: has_modifiers(pattern),
        groups: group_names(pattern),
    };
    reader.read()?;
    Some(reader.text)
}

/// Returns the ranges of the escape `\d`, `\D`, `\s`, `\S`, `\w` or `\W`, as they stand in a class.
pub(super) fn class_escape(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "0-9",
        'D' => r"\x00-/:-\u{10FFFF}",
        'w' => "0-9A-Z_a-z",
        'W' => r"\x00-/:-@\x5B-\x5E`\x7B-\u{10FFFF}",
        's' => {
            r"\t-\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}"
        }
        'S' => concat!(
            r"\x00-\x08\x0E-\x1F!-\u{9F}\u{A1}-\u{167F}\u{1681}-\u{1FFF}\u{200B}-\u{2027}\u{202A}-\u{202E}",
            r"\u{2030}-\u{205E}\u{2060}-\u{2FFF}\u{3001}-\u{FEFE}\u{FF00}-\u{10FFFF}",
        ),
        _ => return None,
    })
}

/// Reads the escape at the start of `rest`, behind its backslash, and appends it in a form that every engine reads alike.
/// Returns what follows it.
pub(super) fn character_escape<'a>(rest: &'a str, in_class: bool, text: &mut String) -> &'a str {
    let mut letters = rest.chars();
    let Some(letter) = letters.next() else {
        text.push('\\');
        return rest;
    };
    let after = letters.as_str();
    if letter == 'u'
        && let Some((code, after)) = code_point(after)
    {
        _ = write!(text, r"\u{{{code:X}}}");
        return after;
    }
    match (letter, letters.next()) {
        ('c', Some(name)) if name.is_ascii_alphabetic() => {
            _ = write!(text, r"\x{:02X}", name as u8 % 32);
            return letters.as_str();
        }
        ('0', next) if !next.is_some_and(|digit| digit.is_ascii_digit()) => text.push_str(r"\x00"),
        ('b', _) if in_class => text.push_str(r"\x08"),
        _ => {
            text.push('\\');
            text.push(letter);
        }
    }
    after
}

/// Returns the code point of a `\u` escape, and what follows it. Two escapes of surrogates are one code point.
fn code_point(after: &str) -> Option<(u32, &str)> {
    let unit = |text: &str| {
        let digits =
            text.get(..4).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        u16::from_str_radix(digits, 16).ok()
    };
    let high = unit(after)?;
    let rest = &after[4..];
    let low = rest.strip_prefix(r"\u").and_then(unit);
    match char::decode_utf16([high].into_iter().chain(low)).next()? {
        Ok(character) if character.len_utf16() == 2 => Some((character.into(), &rest[6..])),
        Ok(character) => Some((character.into(), rest)),
        Err(_) => None,
    }
}

struct Reader<'a> {
    rest: &'a str,
    text: String,
    /// The pattern is valid with the `u` flag.
    strict: bool,
    /// Classes are read as with the `v` flag.
    sets: bool,
    /// The pattern has groups such as `(?s:…)`, in which a dot may match a line's end.
    modifiers: bool,
    /// The names of the capturing groups, in order.
    groups: Vec<Option<&'a str>>,
}

impl<'a> Reader<'a> {
    fn read(&mut self) -> Option<()> {
        while let Some(character) = self.next() {
            match character {
                '\\' => self.escape(),
                '[' if self.sets => {
                    let (class, rest) = class_sets::read(self.rest)?;
                    self.text.push_str(&class);
                    self.rest = rest;
                }
                '[' => self.class(),
                '(' => self.group(),
                '.' if !self.modifiers => self.text.push_str(DOT),
                _ => self.text.push(character),
            }
        }
        Some(())
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next();
        self.rest = characters.as_str();
        character
    }

    /// Leaves the name of a group out: other engines allow fewer names, and each of them once.
    fn group(&mut self) {
        self.text.push('(');
        if let Some(name) = group_name(self.rest) {
            self.rest = &self.rest["?<>".len() + name.len()..];
        }
    }

    fn escape(&mut self) {
        if let Some(ranges) = self.class_escape() {
            _ = write!(self.text, "[{ranges}]");
        } else if let Some(name) = self.referenced_name() {
            self.reference(name);
        } else {
            self.rest = character_escape(self.rest, false, &mut self.text);
        }
    }

    fn class_escape(&mut self) -> Option<&'static str> {
        let letter = self.rest.chars().next()?;
        let ranges = class_escape(letter)?;
        self.rest = &self.rest[1..];
        Some(ranges)
    }

    /// Returns the name in `k<name>`.
    fn referenced_name(&mut self) -> Option<&'a str> {
        let (name, rest) = self.rest.strip_prefix("k<")?.split_once('>')?;
        self.groups.contains(&Some(name)).then(|| self.rest = rest)?;
        Some(name)
    }

    /// Appends a reference to the groups with a name. There are several only where one of them can match.
    fn reference(&mut self, name: &str) {
        let named = (1..).zip(&self.groups).filter(|(_, group)| **group == Some(name));
        let references: Vec<String> = named.map(|(number, _)| format!(r"\{number}")).collect();
        _ = write!(self.text, "(?:{})", references.join("|"));
    }

    /// Reads a class without sets, behind its bracket.
    fn class(&mut self) {
        if self.strict {
            for (class, meaning) in [("^]", ANY), ("]", NOTHING)] {
                if let Some(rest) = self.rest.strip_prefix(class) {
                    self.text.push_str(meaning);
                    self.rest = rest;
                    return;
                }
            }
        }
        self.text.push('[');
        // A bracket that closes nothing is a character of the class.
        for first in ["^", "]"] {
            if let Some(rest) = self.rest.strip_prefix(first) {
                self.text.push_str(first);
                self.rest = rest;
            }
        }
        while let Some(character) = self.next() {
            match character {
                ']' => {
                    self.text.push(']');
                    return;
                }
                '\\' => match self.class_escape() {
                    Some(ranges) => {
                        self.text.push_str(ranges);
                        // An escape of a class begins no range.
                        if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                            self.text.push('\\');
                        }
                    }
                    None => self.rest = character_escape(self.rest, true, &mut self.text),
                },
                '-' if self.ends_with_class_escape() => self.text.push_str(r"\-"),
                _ => self.text.push(character),
            }
        }
    }

    /// Returns whether an escape of a class comes next, which ends no range.
    fn ends_with_class_escape(&self) -> bool {
        let next = self.rest.strip_prefix('\\').and_then(|rest| rest.chars().next());
        next.is_some_and(|letter| class_escape(letter).is_some())
            && !self.text.ends_with(['[', '^', '\\'])
    }
}

/// Returns the names of the capturing groups of a pattern, in order.
fn group_names(pattern: &str) -> Vec<Option<&str>> {
    let groups = openings(pattern).map(|rest| (rest, group_name(rest)));
    let capturing = groups.filter(|(rest, name)| name.is_some() || !rest.starts_with('?'));
    capturing.map(|(_, name)| name).collect()
}

/// Returns the name of the group that opened before `rest`.
fn group_name(rest: &str) -> Option<&str> {
    let named = rest.strip_prefix("?<").filter(|name| !name.starts_with(['=', '!']));
    named.and_then(|name| name.split_once('>')).map(|(name, _)| name)
}

/// Returns whether a pattern has groups with flags, such as `(?s:…)`.
pub(super) fn has_modifiers(pattern: &str) -> bool {
    openings(pattern)
        .filter_map(|rest| rest.strip_prefix('?'))
        .any(|rest| !rest.starts_with([':', '=', '!', '<']))
}

/// Returns what follows each parenthesis that opens a group.
fn openings(pattern: &str) -> impl Iterator<Item = &str> {
    let (mut escaped, mut classes) = (false, 0_usize);
    pattern.char_indices().filter_map(move |(offset, character)| {
        if std::mem::take(&mut escaped) {
            return None;
        }
        match character {
            '\\' => escaped = true,
            '[' if classes == 0 => classes = 1,
            ']' => classes = 0,
            '(' if classes == 0 => return Some(&pattern[offset + 1..]),
            _ => {}
        }
        None
    })
}
