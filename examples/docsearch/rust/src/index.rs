//! Full-text search over a folder of Markdown, with `SQLite`'s FTS5.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::{fmt, fs};

use rusqlite::{Connection, params};
use schemars::JsonSchema;
use serde::Serialize;

/// Beside every folder whose name begins with a dot.
const SKIPPED: [&str; 3] = ["node_modules", "target", "dist"];
/// Of a query; `SQLite`'s own limit on an expression is not far above.
const MAX_WORDS: usize = 32;
const SNIPPET_WORDS: usize = 24;

#[derive(Debug, Serialize, JsonSchema)]
pub struct Hit {
    pub path: String,
    /// Of the section.
    pub title: String,
    /// The line at which the section begins.
    pub line: usize,
    /// Higher is better; compares within one answer only.
    pub score: f64,
    pub snippet: String,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct Heading {
    pub level: usize,
    pub title: String,
    pub line: usize,
}

struct Section {
    title: String,
    line: usize,
    body: String,
}

#[derive(Debug)]
pub struct NoSuchDocument(String);

impl fmt::Display for NoSuchDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "There is no document \"{}\": give a path as search returns it, such as \"README.md\".",
            self.0
        )
    }
}

impl std::error::Error for NoSuchDocument {}

/// The contents of a folder when it was indexed. Documents are looked up by path in it, so no path opens a file.
pub struct Index {
    pub documents: BTreeMap<String, String>,
    pub sections: usize,
    database: Mutex<Connection>,
}

impl Index {
    /// Reports files done, files in all and the path of the last one.
    pub fn new(
        folder: &Path,
        mut report: impl FnMut(usize, usize, &str),
    ) -> rusqlite::Result<Self> {
        let mut paths = Vec::new();
        markdown_files(folder, "", &mut paths);
        paths.sort();
        let step = (paths.len() / 100).max(1);
        let mut documents = BTreeMap::new();
        let mut sections = 0;
        let database = Connection::open_in_memory()?;
        database.execute_batch(
            "CREATE VIRTUAL TABLE sections USING fts5(title, body, path UNINDEXED, line UNINDEXED)",
        )?;
        let mut insert = database.prepare("INSERT INTO sections VALUES (?, ?, ?, ?)")?;
        for (done, path) in (1..).zip(&paths) {
            if let Ok(bytes) = fs::read(folder.join(path)) {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                for section in split_sections(path, &text) {
                    insert.execute(params![section.title, section.body, path, section.line])?;
                    sections += 1;
                }
                documents.insert(path.clone(), text);
            }
            if done % step == 0 || done == paths.len() {
                report(done, paths.len(), path);
            }
        }
        drop(insert);
        Ok(Self { documents, sections, database: Mutex::new(database) })
    }

    /// Returns the sections with any of the query's words, best first; a word in the title counts three times.
    pub fn search(&self, query: &str, limit: usize) -> rusqlite::Result<Vec<Hit>> {
        let words = split_words(query);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = database.prepare(
            "SELECT path, title, line, -bm25(sections, 3.0, 1.0) AS score, snippet(sections, 1, '', '', '…', ?)
             FROM sections WHERE sections MATCH ? ORDER BY score DESC, rowid LIMIT ?",
        )?;
        rows.query_map(params![SNIPPET_WORDS, quoted.join(" OR "), limit], |row| {
            let snippet: String = row.get(4)?;
            Ok(Hit {
                path: row.get(0)?,
                title: row.get(1)?,
                line: row.get(2)?,
                score: (row.get::<_, f64>(3)? * 1e4).round() / 1e4,
                snippet: snippet.split_whitespace().collect::<Vec<_>>().join(" "),
            })
        })?
        .collect()
    }

    pub fn outline(&self, path: &str) -> Result<Vec<Heading>, NoSuchDocument> {
        self.read(path).map(headings)
    }

    pub fn read(&self, path: &str) -> Result<&str, NoSuchDocument> {
        self.documents.get(path).map(String::as_str).ok_or_else(|| NoSuchDocument(path.to_owned()))
    }

    /// Returns the paths that begin with the given text, then those that contain it elsewhere.
    pub fn complete(&self, typed: &str) -> Vec<String> {
        let typed = typed.to_lowercase();
        let mut found: Vec<_> = self
            .documents
            .keys()
            .filter(|path| path.to_lowercase().contains(&typed))
            .cloned()
            .collect();
        found.sort_by_key(|path| !path.to_lowercase().starts_with(&typed));
        found
    }
}

/// Paths relative to the folder. Symbolic links are left out: they could lead out of it, or round in circles.
fn markdown_files(folder: &Path, inside: &str, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder.join(inside)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let (Some(name), Ok(kind)) = (name.to_str(), entry.file_type()) else { continue };
        if kind.is_file() && Path::new(name).extension().is_some_and(|ending| ending == "md") {
            found.push(format!("{inside}{name}"));
        } else if kind.is_dir() && !name.starts_with('.') && !SKIPPED.contains(&name) {
            markdown_files(folder, &format!("{inside}{name}/"), found);
        }
    }
}

/// A section is a heading and what follows up to the next one; text before the first heading goes under the path.
fn split_sections(path: &str, text: &str) -> Vec<Section> {
    let lines: Vec<_> = text.split('\n').collect();
    let starts = headings(text);
    let ends = starts.iter().skip(1).map(|next| next.line - 1).chain([lines.len()]);
    let preamble = lines[..starts.first().map_or(lines.len(), |first| first.line - 1)].join("\n");
    let mut sections = Vec::new();
    if !preamble.trim().is_empty() {
        sections.push(Section { title: path.to_owned(), line: 1, body: preamble });
    }
    sections.extend(starts.iter().zip(ends).map(|(heading, end)| Section {
        title: heading.title.clone(),
        line: heading.line,
        body: lines[heading.line..end].join("\n"),
    }));
    sections
}

/// The `#` headings that are not inside a code fence.
fn headings(text: &str) -> Vec<Heading> {
    let mut found = Vec::new();
    let mut open: Option<&str> = None;
    for (line, content) in (1..).zip(text.split('\n')) {
        let mark = fence(content);
        match (open, mark) {
            (Some(fence), Some((mark, rest)))
                if mark.starts_with(fence) && rest.trim().is_empty() =>
            {
                open = None;
            }
            (Some(_), _) => {}
            (None, Some((mark, _))) => open = Some(mark),
            (None, None) => {
                found.extend(heading(content).map(|(level, title)| Heading { level, title, line }));
            }
        }
    }
    found
}

/// The marks that open or close a code fence, and what follows them.
fn fence(line: &str) -> Option<(&str, &str)> {
    let (line, sign) = unindented(line)?;
    let (marks, rest) = line.split_at(line.len() - line.trim_start_matches(sign).len());
    let opens = sign == '~' || (sign == '`' && !rest.contains('`'));
    (opens && marks.len() >= 3).then_some((marks, rest))
}

fn heading(line: &str) -> Option<(usize, String)> {
    let (line, _) = unindented(line)?;
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    if !(1..=6).contains(&level) || !title.starts_with([' ', '\t']) {
        return None;
    }
    let title = bare_title(title);
    (!title.is_empty()).then(|| (level, title.to_owned()))
}

/// The line without an indentation of up to three spaces, and its first character.
fn unindented(line: &str) -> Option<(&str, char)> {
    let bare = line.trim_start_matches(' ');
    (line.len() - bare.len() <= 3).then_some(bare).zip(bare.chars().next())
}

/// Removes the spaces around it and closing hashes after a space: `# C#` keeps its hash.
fn bare_title(text: &str) -> &str {
    let title = text.trim();
    let bare = title.trim_end_matches('#');
    if bare.is_empty() || bare.ends_with(char::is_whitespace) { bare.trim_end() } else { title }
}

/// Returns the distinct words of a query. Quotes, operators and the like are removed, so that any text is a valid query.
fn split_words(query: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in
        query.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
    {
        if words.len() == MAX_WORDS {
            break;
        }
        if !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    words
}
