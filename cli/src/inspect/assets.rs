//! The files of the page, which are part of the program.

/// Returns a file with its media type.
pub fn find(path: &str) -> Option<(&'static str, &'static str)> {
    let (_, text) = FILES.iter().find(|file| file.0 == path)?;
    let media_type = match path.rsplit_once('.') {
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        _ => "text/html; charset=utf-8",
    };
    Some((media_type, text))
}

macro_rules! files {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../page/", $name)))),*]
    };
}

const FILES: &[(&str, &str)] = files! {
    "index.html"
    "style.css"
    "parts.css"
    "api.js"
    "completion.js"
    "connection.js"
    "content.js"
    "dom.js"
    "fields.js"
    "form.js"
    "frame.js"
    "json.js"
    "lists.js"
    "main.js"
    "markdown.js"
    "notifications.js"
    "prompts.js"
    "questions.js"
    "resources.js"
    "rows.js"
    "sampling.js"
    "schema.js"
    "subscriptions.js"
    "timeline.js"
    "tools.js"
};
