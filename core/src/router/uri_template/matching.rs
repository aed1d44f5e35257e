//! Matching of URIs against a template, in linear time.
//!
//! The part before the query is a sequence of literals and captures. A backward pass over the URI records, for each
//! part, the positions from which the rest can match; a forward pass then takes the longest capture that leaves a
//! matching rest. There is no backtracking, so neither a template nor a URI can make matching slow.

use std::borrow::Cow;

use serde_json::Value;

use super::expand::push_literal;
use super::{MAX_URI_BYTES, Operator, Part, Variable, is_reserved, is_unreserved};

#[derive(Clone, Debug)]
pub(super) struct Matcher {
    path: Vec<Item>,
    /// The query variables at the end of the template, if any.
    query: Option<Query>,
}

#[derive(Clone, Debug)]
enum Item {
    Literal(String),
    Capture(Capture),
}

#[derive(Clone, Debug)]
struct Capture {
    operator: Operator,
    variables: Vec<Variable>,
    /// `true` if a reserved capture must end before the query.
    stops_at_query: bool,
}

#[derive(Clone, Debug, Default)]
struct Query {
    /// Literal `name=value` pairs that the query must contain.
    fixed: Vec<String>,
    variables: Vec<Variable>,
}

type Refusal = (usize, String);

impl Matcher {
    /// Errors, with position and fix, if the template can't be matched unambiguously.
    pub(super) fn new(parts: &[Part]) -> Result<Self, Refusal> {
        refuse_duplicates(parts)?;
        let has_query = parts.iter().any(
            |part| matches!(part, Part::Expression { variables, .. } if variables[0].is_query()),
        );
        let mut path = Vec::new();
        let mut query: Option<Query> = None;
        // True if the query begins with text, not with variables.
        let mut starts_with_text = false;
        for part in parts {
            match (part, &mut query) {
                (Part::Literal(text), None) => match text.split_once('?').filter(|_| has_query) {
                    None => path.push(Item::Literal(text.clone())),
                    Some((before, pairs)) => {
                        path.push(Item::Literal(before.to_owned()));
                        starts_with_text = true;
                        query = Some(Query { fixed: fixed_pairs(pairs), variables: Vec::new() });
                    }
                },
                (Part::Literal(text), Some(query)) => {
                    // Query variables may be absent, and the `?` is with them.
                    if !starts_with_text || !text.starts_with('&') || text.contains('#') {
                        let message = format!(
                            "the text {text:?} is not part of the query without these variables; write \
                             `?name=value{{&…}}`, or put it before the `?`"
                        );
                        return Err((query_position(parts), message));
                    }
                    query.fixed.extend(fixed_pairs(text));
                }
                (Part::Expression { operator: Operator::Query, variables, position }, query) => {
                    if query.is_some() {
                        return Err((
                            *position,
                            "a second `?`; continue the query with `{&…}`".to_owned(),
                        ));
                    }
                    *query = Some(Query { fixed: Vec::new(), variables: variables.clone() });
                }
                (
                    Part::Expression { operator: Operator::QueryContinuation, variables, position },
                    query,
                ) => {
                    let Some(query) = query else {
                        return Err((
                            *position,
                            "`{&…}` continues a query that was not started; write `{?…}`"
                                .to_owned(),
                        ));
                    };
                    query.variables.extend(variables.iter().cloned());
                }
                (Part::Expression { position, .. }, Some(_)) => {
                    let message = "only query variables can follow the query; write `{&name}`, or put this before the `?`";
                    return Err((*position, message.to_owned()));
                }
                (Part::Expression { operator, variables, position }, None) => {
                    let capture = Capture {
                        operator: *operator,
                        variables: variables.clone(),
                        stops_at_query: has_query,
                    };
                    refuse_ambiguity(&path, &capture, *position)?;
                    path.push(Item::Capture(capture));
                }
            }
        }
        refuse_fixed_variables(parts, query.as_ref())?;
        Ok(Self { path, query })
    }

    pub(super) fn match_uri(&self, uri: &str) -> Option<Vec<(String, Value)>> {
        if uri.len() > MAX_URI_BYTES {
            return None;
        }
        let uri = encode_non_ascii(uri);
        let (path, query) = match &self.query {
            None => (&*uri, None),
            Some(_) => {
                uri.split_once('?').map_or((&*uri, None), |(path, query)| (path, Some(query)))
            }
        };
        let mut found = Vec::new();
        self.match_path(path.as_bytes(), &mut found)?;
        if let Some(expected) = &self.query {
            expected.bind(query.unwrap_or(""), &mut found)?;
        }
        Some(found)
    }

    fn match_path(&self, uri: &[u8], found: &mut Vec<(String, Value)>) -> Option<()> {
        // Most templates fail here, before any allocation.
        if matches!(self.path.first(), Some(Item::Literal(text)) if !uri.starts_with(text.as_bytes()))
        {
            return None;
        }
        // `rest[i][p]`: the items from `i` on match `uri[p..]` to its end.
        let mut rest = vec![Vec::new(); self.path.len() + 1];
        rest[self.path.len()] = vec![false; uri.len() + 1];
        rest[self.path.len()][uri.len()] = true;
        for (index, item) in self.path.iter().enumerate().rev() {
            rest[index] = match item {
                Item::Literal(text) => after_literal(text.as_bytes(), uri, &rest[index + 1]),
                Item::Capture(capture) => capture.reach(uri, &rest[index + 1]),
            };
        }
        if !rest[0][0] {
            return None;
        }
        let mut position = 0;
        for (index, item) in self.path.iter().enumerate() {
            match item {
                Item::Literal(text) => position += text.len(),
                Item::Capture(capture) => {
                    let end = capture.longest(uri, position, &rest[index + 1])?;
                    capture.bind(std::str::from_utf8(&uri[position..end]).ok()?, found)?;
                    position = end;
                }
            }
        }
        Some(())
    }
}

fn after_literal(text: &[u8], uri: &[u8], rest: &[bool]) -> Vec<bool> {
    let matches = |at: usize| uri[at..].starts_with(text) && rest[at + text.len()];
    (0..=uri.len()).map(matches).collect()
}

impl Capture {
    /// Returns the character that introduces the capture, for operators that have one.
    fn lead(&self) -> Option<u8> {
        self.operator.first().bytes().next()
    }

    /// Returns `true` if `byte` can occur in a capture.
    fn allows(&self, byte: u8) -> bool {
        let many = self.variables.len() > 1 || self.variables[0].explode;
        match self.operator {
            Operator::Reserved | Operator::Fragment if self.stops_at_query && byte == b'?' => false,
            Operator::Reserved | Operator::Fragment => is_unreserved(byte) || is_reserved(byte),
            Operator::PathParameter => is_unreserved(byte) || b";=,".contains(&byte),
            _ => {
                is_unreserved(byte) || many && self.operator.separator().as_bytes().contains(&byte)
            }
        }
    }

    /// Returns the length in bytes of the character at `at`, if it can occur in a capture.
    fn step(&self, uri: &[u8], at: usize) -> Option<usize> {
        match uri.get(at)? {
            b'%' => (uri.get(at + 1)?.is_ascii_hexdigit() && uri.get(at + 2)?.is_ascii_hexdigit())
                .then_some(3),
            byte => self.allows(*byte).then_some(1),
        }
    }

    /// Returns the positions from which this capture, and then the rest, can match.
    fn reach(&self, uri: &[u8], rest: &[bool]) -> Vec<bool> {
        let mut body = rest.to_vec();
        for at in (0..uri.len()).rev() {
            body[at] = rest[at] || self.step(uri, at).is_some_and(|width| body[at + width]);
        }
        let whole = |at: usize| match self.lead() {
            Some(lead) => rest[at] || uri.get(at) == Some(&lead) && body[at + 1],
            None => self.step(uri, at).is_some_and(|width| body[at + width]),
        };
        (0..=uri.len()).map(whole).collect()
    }

    /// Returns the end of the longest capture at `start` after which the rest can match.
    fn longest(&self, uri: &[u8], start: usize, rest: &[bool]) -> Option<usize> {
        let (mut at, mut end) = match self.lead() {
            None => (start + self.step(uri, start)?, None),
            Some(lead) if uri.get(start) == Some(&lead) => {
                (start + 1, rest[start].then_some(start))
            }
            Some(_) => return rest[start].then_some(start),
        };
        loop {
            if rest[at] {
                end = Some(at);
            }
            match self.step(uri, at) {
                Some(width) => at += width,
                None => return end,
            }
        }
    }

    /// Decodes the captured text into values.
    fn bind(&self, text: &str, found: &mut Vec<(String, Value)>) -> Option<()> {
        let text = match self.operator.first() {
            "" => text,
            // The capture is optional and absent.
            _ if text.is_empty() => return Some(()),
            first => text.strip_prefix(first)?,
        };
        if self.operator == Operator::PathParameter {
            let pairs: Vec<&str> = text.split(';').collect();
            if pairs
                .iter()
                .any(|pair| !self.variables.iter().any(|variable| variable.name == key(pair)))
            {
                return None;
            }
            return bind_pairs(&self.variables, &pairs, checked_path_text, found);
        }
        let mut texts = text.split(self.operator.separator());
        let single = self.variables.len() == 1;
        for variable in &self.variables {
            let value = if variable.explode {
                Value::from(texts.by_ref().map(checked_path_text).collect::<Option<Vec<_>>>()?)
            } else {
                let raw = if single { Some(text) } else { texts.next() };
                let Some(raw) = raw else { break };
                Value::String(within_prefix(variable, checked_path_text(raw)?)?)
            };
            found.push((variable.name.clone(), value));
        }
        (single || texts.next().is_none()).then_some(())
    }
}

impl Query {
    fn bind(&self, query: &str, found: &mut Vec<(String, Value)>) -> Option<()> {
        // RFC 3986 §3.4: a query ends where a fragment begins.
        let query = query.split('#').next().unwrap_or_default();
        let pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
        if !self.fixed.iter().all(|fixed| pairs.contains(&fixed.as_str())) {
            return None;
        }
        bind_pairs(&self.variables, &pairs, percent_decode, found)
    }
}

/// Binds `name=value` pairs in any order. For a repeated name the first value counts, unless the variable is a list.
fn bind_pairs(
    variables: &[Variable],
    pairs: &[&str],
    decode: impl Fn(&str) -> Option<String>,
    found: &mut Vec<(String, Value)>,
) -> Option<()> {
    for variable in variables {
        let mut raws = pairs.iter().filter(|pair| key(pair) == variable.name);
        let raws =
            raws.by_ref().map(|pair| decode(pair.split_once('=').map_or("", |(_, raw)| raw)));
        if variable.explode {
            let items: Vec<String> = raws.collect::<Option<_>>()?;
            if !items.is_empty() {
                found.push((variable.name.clone(), Value::from(items)));
            }
        } else if let Some(text) = raws.into_iter().next() {
            found.push((variable.name.clone(), Value::String(within_prefix(variable, text?)?)));
        }
    }
    Some(())
}

fn key<'a>(pair: &&'a str) -> &'a str {
    pair.split_once('=').map_or(*pair, |(key, _)| key)
}

fn within_prefix(variable: &Variable, text: String) -> Option<String> {
    let fits = variable.prefix.is_none_or(|length| text.chars().nth(length).is_none());
    fits.then_some(text)
}

/// Rejects values that would lead out of a folder when joined to its path.
fn checked_path_text(raw: &str) -> Option<String> {
    let text = percent_decode(raw)?;
    let hostile = text.contains(['\\', '\0']) || text.split('/').any(|segment| segment == "..");
    (!hostile).then_some(text)
}

fn percent_decode(raw: &str) -> Option<String> {
    let hex = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes = raw.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'%' {
            decoded.push(hex(bytes.get(at + 1)?)? << 4 | hex(bytes.get(at + 2)?)?);
            at += 3;
        } else {
            decoded.push(byte);
            at += 1;
        }
    }
    String::from_utf8(decoded).ok()
}

/// Percent-encodes the literals of a template, so that `docs://café` can be written as it is read.
fn encode_non_ascii(uri: &str) -> Cow<'_, str> {
    if uri.is_ascii() {
        return Cow::Borrowed(uri);
    }
    let mut out = String::with_capacity(uri.len() * 2);
    for char in uri.chars() {
        if char.is_ascii() {
            out.push(char);
        } else {
            push_literal(char.encode_utf8(&mut [0; 4]), &mut out);
        }
    }
    Cow::Owned(out)
}

fn fixed_pairs(text: &str) -> Vec<String> {
    text.split('&').filter(|pair| !pair.is_empty()).map(str::to_owned).collect()
}

fn refuse_duplicates(parts: &[Part]) -> Result<(), Refusal> {
    let mut seen = std::collections::HashSet::new();
    for part in parts {
        let Part::Expression { variables, position, .. } = part else { continue };
        if let Some(twice) = variables.iter().find(|variable| !seen.insert(variable.name.as_str()))
        {
            return Err((
                *position,
                format!("the variable `{}` stands here twice; rename one of them", twice.name),
            ));
        }
    }
    Ok(())
}

/// Returns the position of the first expression of query variables.
fn query_position(parts: &[Part]) -> usize {
    let positions = parts.iter().filter_map(|part| match part {
        Part::Expression { variables, position, .. } if variables[0].is_query() => Some(*position),
        _ => None,
    });
    positions.min().unwrap_or_default()
}

/// Errors if a query variable has the name of a parameter that the template fixes.
fn refuse_fixed_variables(parts: &[Part], query: Option<&Query>) -> Result<(), Refusal> {
    let Some(query) = query else { return Ok(()) };
    let is_fixed =
        |variable: &&Variable| query.fixed.iter().any(|pair| key(&pair.as_str()) == variable.name);
    match query.variables.iter().find(is_fixed) {
        None => Ok(()),
        Some(Variable { name, .. }) => Err((
            query_position(parts),
            format!(
                "`{name}` is a variable of the query and fixed by its text; rename one of them"
            ),
        )),
    }
}

/// Errors if two captures follow each other without a separator that the first can't contain.
fn refuse_ambiguity(before: &[Item], capture: &Capture, position: usize) -> Result<(), Refusal> {
    if capture.variables.iter().rev().skip(1).any(|variable| variable.explode)
        && !capture.operator.is_named()
    {
        let message = "a list (`*`) takes all that follows; move it to the end of its expression";
        return Err((position, message.to_owned()));
    }
    if capture.operator.allows_reserved() && capture.variables.len() > 1 {
        let message = "it is ambiguous where one of these ends and the next begins; write them as separate expressions \
                       with text between them";
        return Err((position, message.to_owned()));
    }
    for item in before.iter().rev() {
        let Item::Capture(previous) = item else { break };
        if capture.lead().is_none_or(|lead| previous.allows(lead)) {
            let message = format!(
                "it is ambiguous where `{}` ends and `{}` begins; put text such as `/` between them",
                previous.variables[0].name, capture.variables[0].name
            );
            return Err((position, message));
        }
    }
    Ok(())
}
