//! Resolution of URI references (RFC 3986, section 5.2), by which schemas in one document name each other.

/// Returns the URI that `reference` names relative to `base`. The base may be empty. Neither has a fragment.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    let relative = Parts::from(reference);
    if relative.scheme.is_some() {
        return join(relative.scheme, relative.authority, &tidy(relative.path), relative.query);
    }
    let base = Parts::from(base);
    if relative.authority.is_some() {
        return join(base.scheme, relative.authority, &tidy(relative.path), relative.query);
    }
    let query = match relative.path {
        "" => relative.query.or(base.query),
        _ => relative.query,
    };
    let path = match relative.path {
        "" => base.path.to_owned(),
        path if path.starts_with('/') => tidy(path),
        path => {
            let root =
                if base.authority.is_some() && base.path.is_empty() { "/" } else { base.path };
            let folder = root.rfind('/').map_or("", |end| &root[..=end]);
            tidy(&format!("{folder}{path}"))
        }
    };
    join(base.scheme, base.authority, &path, query)
}

#[derive(Default)]
struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> From<&'a str> for Parts<'a> {
    fn from(uri: &'a str) -> Self {
        let is_scheme = |text: &str| {
            text.starts_with(|first: char| first.is_ascii_alphabetic())
                && text.chars().all(|each| each.is_ascii_alphanumeric() || "+-.".contains(each))
        };
        let (scheme, rest) = match uri.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
            _ => (None, uri),
        };
        let (rest, query) =
            rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (Some(authority), path)
            }
            None => (None, rest),
        };
        Self { scheme, authority, path, query }
    }
}

fn join(scheme: Option<&str>, authority: Option<&str>, path: &str, query: Option<&str>) -> String {
    let mut uri = String::new();
    if let Some(scheme) = scheme {
        uri.extend([scheme, ":"]);
    }
    if let Some(authority) = authority {
        uri.extend(["//", authority]);
    }
    uri.push_str(path);
    if let Some(query) = query {
        uri.extend(["?", query]);
    }
    uri
}

/// Returns a path without segments `.` and `..`.
fn tidy(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let (root, relative) = match path.strip_prefix('/') {
        Some(relative) => ("/", relative),
        None => ("", path),
    };
    let mut segments = relative.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    format!("{root}{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 3986, sections 5.4.1 and 5.4.2, without those that have a fragment.
    #[test]
    fn references_are_resolved_as_in_the_examples_of_the_standard() {
        for (reference, resolved) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"),
        ] {
            assert_eq!(resolve("http://a/b/c/d;p?q", reference), resolved, "{reference}");
        }
    }

    #[test]
    fn a_base_may_be_empty_or_a_name() {
        for (base, reference, resolved) in [
            ("", "item.json", "item.json"),
            ("", "", ""),
            ("tree.json", "item.json", "item.json"),
            ("urn:example:root", "", "urn:example:root"),
            ("http://example.com", "item", "http://example.com/item"),
            ("http://example.com/a", "urn:uuid:1", "urn:uuid:1"),
        ] {
            assert_eq!(resolve(base, reference), resolved, "{base} {reference}");
        }
    }
}
