//! Failures as problems: one wording for each keyword, and the one alternative that was meant.

use serde_json::Value;

use super::{
    alternatives::{self, Chosen},
    failure::{Failure, Reason},
    instance::Instance,
    keyword::{Bound, Keyword, Measure, Schemas},
    nearest::nearest,
    number, place,
    violation::{Problem, ProblemKind},
};

/// The most characters of a value, name or path that are repeated.
const ECHOED: usize = 100;
/// The most characters of an array or object that are repeated.
const ECHOED_INSIDE: usize = 60;
/// The most characters that one problem has.
const SAID: usize = 300;
/// Alternatives within alternatives are followed so far: this bounds the stack.
const FOLLOWED: usize = 16;

/// Appends what one failure says.
pub(super) fn problems(schemas: &Schemas, failure: &Failure<'_>, out: &mut Vec<Problem>) {
    Explainer { schemas, out }.explain(failure, 0);
}

/// Describes a failure without its place.
pub(super) fn describe(schemas: &Schemas, failure: &Failure<'_>) -> String {
    clipped(&wording(schemas, failure), SAID)
}

struct Explainer<'a> {
    schemas: &'a Schemas,
    out: &'a mut Vec<Problem>,
}

impl Explainer<'_> {
    fn explain(&mut self, failure: &Failure<'_>, depth: usize) {
        match &failure.reason {
            Reason::Missing(name) => self.add(failure, Some(name), ProblemKind::Missing),
            Reason::Unknown { names, schema } => self.unknown(failure, names, *schema),
            Reason::NoAlternative(alternatives) if depth < FOLLOWED => {
                match alternatives::choose(&failure.path, alternatives) {
                    Chosen::One(failures) => {
                        for failure in failures {
                            self.explain(failure, depth + 1);
                        }
                    }
                    Chosen::Expected { failure, expected } => {
                        let wrong = got(&expected, failure);
                        self.add(failure, None, ProblemKind::Wrong(wrong));
                    }
                    Chosen::Missing(names) => {
                        for name in names {
                            self.add(failure, Some(name), ProblemKind::Missing);
                        }
                    }
                    Chosen::Unclear => {
                        let wrong = self.none_of(alternatives);
                        self.add(failure, None, ProblemKind::Wrong(wrong));
                    }
                }
            }
            _ => self.add(failure, None, ProblemKind::Wrong(describe(self.schemas, failure))),
        }
    }

    fn add(&mut self, failure: &Failure<'_>, member: Option<&str>, kind: ProblemKind) {
        let place = place::dotted(&failure.path, member);
        self.out.push(Problem { place: clipped(&place, ECHOED), kind });
    }

    fn unknown(&mut self, failure: &Failure<'_>, names: &[&str], schema: usize) {
        let known = known_names(self.schemas, schema);
        for name in names {
            let meant = known.iter().flatten().map(String::as_str);
            let meant = nearest(name, meant).map(ToOwned::to_owned);
            let kind = ProblemKind::Unknown { meant, known: known.clone() };
            self.add(failure, Some(name), kind);
        }
    }

    fn none_of(&self, alternatives: &[Vec<Failure<'_>>]) -> String {
        let firsts = alternatives.iter().filter_map(|failures| failures.first()).take(3);
        let firsts: Vec<_> = firsts.map(|failure| clipped(&self.placed(failure), ECHOED)).collect();
        let count = alternatives.len();
        clipped(&format!("fits none of {count} alternatives: {}", firsts.join(", or ")), SAID)
    }

    fn placed(&self, failure: &Failure<'_>) -> String {
        let said = wording(self.schemas, failure);
        match place::dotted(&failure.path, None).as_str() {
            "" => said,
            place => format!("'{}': {said}", clipped(place, ECHOED)),
        }
    }
}

/// Returns the names that a schema has for properties, with those of the schemas that apply to the same object; `None` where
/// patterns allow others.
fn known_names(schemas: &Schemas, schema: usize) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    let keywords = &schemas.nodes[schema].keywords;
    let combining = keywords.iter().filter(|keyword| {
        matches!(
            keyword,
            Keyword::All(_) | Keyword::Any(_) | Keyword::One(_) | Keyword::Reference(_)
        )
    });
    let combined = combining.flat_map(|keyword| schemas.in_place(keyword));
    for node in combined.chain([schema]).map(|schema| &schemas.nodes[schema]) {
        for keyword in &node.keywords {
            let Keyword::Members { properties, patterns, .. } = keyword else { continue };
            if !patterns.is_empty() {
                return None;
            }
            for name in properties.keys() {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
    }
    Some(names)
}

/// Returns the types or values that a keyword allows: "an integer", "null".
pub(super) fn expectation(failure: &Failure<'_>) -> Option<Vec<String>> {
    let Reason::Keyword(keyword) = failure.reason else { return None };
    Some(match keyword {
        Keyword::Types(types) => types.names().map(article).collect(),
        Keyword::Values(allowed) => {
            allowed.values.iter().map(|value| value.to_value().to_string()).collect()
        }
        Keyword::Const(value) => vec![shown(value)],
        _ => return None,
    })
}

fn wording(schemas: &Schemas, failure: &Failure<'_>) -> String {
    if let Some(expected) = expectation(failure) {
        let expected = either(expected);
        return match (failure.value, &failure.reason) {
            (Instance::Number(number), Reason::Keyword(Keyword::Types(types)))
                if schemas.has_doubles_only
                    && types.are_numeric()
                    && number::is_beyond_doubles(number) =>
            {
                got(&format!("{expected} from -(2^53 - 1) to 2^53 - 1"), failure)
            }
            _ => got(&expected, failure),
        };
    }
    let keyword = match &failure.reason {
        Reason::Keyword(keyword) => keyword,
        Reason::Missing(name) => return format!("missing property {}", Value::from(*name)),
        Reason::Unknown { names, .. } => {
            return format!("unknown properties {}", clipped_list(names));
        }
        Reason::Name(problem) => return format!("the name of a property is wrong: {problem}"),
        Reason::SeveralAlternatives => {
            return "fits more than one of the alternatives; exactly one is allowed".to_owned();
        }
        Reason::NoAlternative(alternatives) => {
            let first = alternatives.iter().flatten().next();
            let first = first.map(|failure| describe(schemas, failure)).unwrap_or_default();
            return format!("fits none of {} alternatives: {first}", alternatives.len());
        }
    };
    let expected = match keyword {
        Keyword::Never => return format!("no value is allowed here, got {}", shown(failure.value)),
        Keyword::Bound { limit, bound: Bound::AtLeast } => format!("at least {limit}"),
        Keyword::Bound { limit, bound: Bound::AtMost } => format!("at most {limit}"),
        Keyword::Bound { limit, bound: Bound::MoreThan } => format!("more than {limit}"),
        Keyword::Bound { limit, bound: Bound::LessThan } => format!("less than {limit}"),
        Keyword::MultipleOf(divisor) => format!("a multiple of {divisor}"),
        Keyword::Size { measure, is_minimum, limit } => {
            let noun = match measure {
                Measure::Characters => "character",
                Measure::Items => "item",
                Measure::Members => "property",
            };
            let side = if *is_minimum { "at least" } else { "at most" };
            format!("{side} {}", counted(*limit, noun))
        }
        Keyword::Pattern(pattern) => {
            format!("a string that matches {:?}", clipped(pattern.text(), ECHOED))
        }
        Keyword::UniqueItems => "items that all differ".to_owned(),
        Keyword::Contains { min, max, .. } => {
            let range = match max {
                None => format!("at least {}", counted(*min, "item")),
                Some(max) => format!("{min} to {}", counted(*max, "item")),
            };
            format!("{range} of the kind that `contains` describes")
        }
        Keyword::Not { text, .. } => format!("a value that does not fit {text}"),
        // The others fail by what is inside them.
        _ => "another value".to_owned(),
    };
    got(&expected, failure)
}

fn got(expected: &str, failure: &Failure<'_>) -> String {
    format!("expected {}, got {}", clipped(expected, SAID), shown(failure.value))
}

/// Returns a value, or its kind and size where it is long.
fn shown(value: &Instance<'_>) -> String {
    let inside = match value {
        Instance::Array(items) => counted(items.len(), "item"),
        Instance::Object(object) => counted(object.len(), "member"),
        Instance::String(text) if text.chars().nth(ECHOED).is_some() => {
            return format!("a string of {} characters", text.chars().count());
        }
        short => return short.to_value().to_string(),
    };
    // Most values inside are longer than a character.
    let text = match value.count() <= ECHOED_INSIDE {
        true => value.to_value().to_string(),
        false => String::new(),
    };
    match value {
        _ if !text.is_empty() && text.len() <= ECHOED_INSIDE => text,
        Instance::Array(_) => format!("an array of {inside}"),
        _ => format!("an object of {inside}"),
    }
}

fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    match (count.try_into().unwrap_or(u64::MAX), noun) {
        (1, noun) => format!("1 {noun}"),
        (count, "property") => format!("{count} properties"),
        (count, noun) => format!("{count} {noun}s"),
    }
}

fn article(kind: &str) -> String {
    match kind {
        "null" => kind.to_owned(),
        _ if kind.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

/// "a, b or c".
pub(super) fn either(options: impl IntoIterator<Item = String>) -> String {
    let mut options: Vec<String> = options.into_iter().collect();
    let last = options.pop().unwrap_or_default();
    match options.is_empty() {
        true => last,
        false => format!("{} or {last}", options.join(", ")),
    }
}

pub(super) fn clipped_list(names: &[impl AsRef<str>]) -> String {
    let names: Vec<_> = names.iter().map(|name| clipped(name.as_ref(), ECHOED)).collect();
    clipped(&names.join(", "), SAID)
}

pub(super) fn clipped(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
