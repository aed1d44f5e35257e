//! Files with environment variables: a line `NAME=VALUE` for each, with comments and quotes.

use std::path::Path;

use crate::transport::small_file;

const QUOTES: [char; 3] = ['"', '\'', '`'];

/// Returns the variables of a file, in its order. Errors with the line and the column, and without any value, which may be
/// secret.
pub(super) fn read(path: &Path) -> Result<Vec<(String, String)>, String> {
    let failed = |problem: String| format!("{}: {problem}", path.display());
    let bytes = small_file::read(path).map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().get(..error.utf8_error().valid_up_to());
        let valid = String::from_utf8_lossy(valid.unwrap_or_default());
        failed(Problem { at: valid.len(), message: "this is not UTF-8" }.display(&valid))
    })?;
    parse(&text).map_err(failed)
}

/// Reads the text of such a file, as the hosts do: quoted values may have several lines, `\n` and `\r` stand for line breaks
/// in double quotes only, and nothing else is replaced.
fn parse(text: &str) -> Result<Vec<(String, String)>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut variables = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (variable, next) = line(&text, at).map_err(|problem| problem.display(&text))?;
        variables.extend(variable);
        at = next;
    }
    Ok(variables)
}

struct Problem {
    /// The offset in the text.
    at: usize,
    message: &'static str,
}

impl Problem {
    fn display(&self, text: &str) -> String {
        let before = text.get(..self.at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("line {line}, column {column}: {}", self.message)
    }
}

type Variable = (String, String);

/// Returns the variable that begins on a line, if one does, and the offset behind it.
fn line(text: &str, start: usize) -> Result<(Option<Variable>, usize), Problem> {
    let rest = text.get(start..).unwrap_or_default();
    let end = rest.find('\n').unwrap_or(rest.len());
    let line = rest.get(..end).unwrap_or_default();
    let offset = |part: &str| text.len() - part.len();
    let problem = |part: &str, message| Err(Problem { at: offset(part), message });
    if line.trim().is_empty() || line.trim_start().starts_with('#') {
        return Ok((None, start + end + 1));
    }
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix("export") {
        Some(after) if after.starts_with(is_blank) => after.trim_start_matches(is_blank),
        _ => rest,
    };
    let is_name =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    let after = rest.trim_start_matches(is_name);
    let name = rest.strip_suffix(after).unwrap_or_default();
    if name.is_empty() {
        return problem(rest, "the name of a variable is expected, as in NAME=VALUE");
    }
    let after = after.trim_start_matches(is_blank);
    let Some(value) = after.strip_prefix(['=', ':']) else {
        return problem(after, "\"=\" is expected after the name of a variable");
    };
    let value = value.trim_start_matches(is_blank);
    let Some(quote) = value.chars().next().filter(|letter| QUOTES.contains(letter)) else {
        let line = value.split('\n').next().unwrap_or_default();
        let plain = line.split('#').next().unwrap_or_default().trim_end();
        return match plain.contains('\0') {
            true => problem(value, "a value cannot have a NUL character"),
            false => Ok((Some((name.into(), plain.into())), offset(value) + line.len() + 1)),
        };
    };
    let inner = value.get(1..).unwrap_or_default();
    let Some(end) = closing(inner, quote) else {
        return problem(value, "this quote is not closed");
    };
    let (inner, after) = (&inner[..end], &inner[end + 1..]);
    let line = after.split('\n').next().unwrap_or_default();
    let comment = line.trim_start_matches(is_blank);
    if !comment.is_empty() && !comment.starts_with('#') {
        return problem(
            &after[line.len() - comment.len()..],
            "only a comment may follow the quote",
        );
    }
    if inner.contains('\0') {
        return problem(value, "a value cannot have a NUL character");
    }
    let inner = match quote {
        '"' => inner.replace("\\n", "\n").replace("\\r", "\r"),
        _ => inner.to_owned(),
    };
    Ok((Some((name.into(), inner)), offset(after) + line.len() + 1))
}

/// Returns the offset of the quote that ends a value. In double quotes, one after a backslash does not.
fn closing(text: &str, quote: char) -> Option<usize> {
    let is_end =
        |at: usize| quote != '"' || !text.get(..at).is_some_and(|before| before.ends_with('\\'));
    text.match_indices(quote).map(|found| found.0).find(|at| is_end(*at))
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_line_is_read() {
        for (text, value) in [
            ("A=b", "b"),
            ("  export A = b  # why\r\n", "b"),
            ("\u{feff}A: b#c", "b"),
            ("A=", ""),
            ("A=#", ""),
            ("A=it's = \"x\" $B ${C}", "it's = \"x\" $B ${C}"),
            ("A=\"b # c\\nd\\te\" # why", "b # c\nd\\te"),
            ("A='b\\n\"' ", "b\\n\""),
            ("A=`b'\"`\n", "b'\""),
            ("A=\"{\\\"b\\\": 1}\"", "{\\\"b\\\": 1}"),
            ("A='C:\\dir\\'", "C:\\dir\\"),
            ("A=\"\"", ""),
            ("A=\"b\nc\n\"\n", "b\nc\n"),
            ("\n# B=c\n\t\nA=Grüße", "Grüße"),
        ] {
            assert_eq!(parse(text), Ok(vec![("A".to_owned(), value.to_owned())]), "{text:?}");
        }
        let names = parse("A-b.c=1\nexport=2\n\nZ=\"\n\"#\nY=3").unwrap();
        assert_eq!(
            names.iter().map(|variable| variable.0.as_str()).collect::<Vec<_>>(),
            ["A-b.c", "export", "Z", "Y"]
        );
        assert_eq!(parse(""), Ok(Vec::new()));
    }

    #[test]
    fn an_error_has_its_place_and_no_value() {
        for (text, expected) in [
            ("A=1\ns3cret", "line 2, column 7: \"=\" is expected"),
            ("A=1\n =s3cret", "line 2, column 2: the name"),
            ("é=s3cret", "line 1, column 1: the name"),
            ("export A s3cret", "line 1, column 10: \"=\" is expected"),
            ("A=1\nB = \"s3cret\\\"\nC=2\n", "line 2, column 5: this quote is not closed"),
            ("A='é' s3cret", "line 1, column 7: only a comment"),
            ("A='\n' s3cret", "line 2, column 3: only a comment"),
            ("A=\0", "line 1, column 3: a value cannot have a NUL"),
            ("A='\0'", "line 1, column 3: a value cannot have a NUL"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(expected) && !error.contains("s3cret"), "{error}");
        }
    }
}
