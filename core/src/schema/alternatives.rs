//! Chooses the alternative of an `anyOf` or `oneOf` whose errors describe a value best.

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind, paths::Location};

use super::explain::{either, expectation};

type Error = ValidationError<'static>;

/// The best description of the failure of all alternatives.
pub(super) enum Chosen<'a> {
    /// The errors of one alternative.
    One(&'a [Error]),
    /// One expectation, at the place of this error.
    Expected { error: &'a Error, expected: String },
    /// Missing properties that every alternative requires.
    Missing(Vec<&'a str>),
    /// No alternative fits better than the others.
    Unclear,
}

/// Chooses by the type of the value first, then by its discriminator: a property for which each alternative has a `const` or
/// `enum` of its own.
pub(super) fn choose<'a>(base: &Location, alternatives: &'a [Vec<Error>]) -> Chosen<'a> {
    let base = base.as_str();
    let of_its_type: Vec<_> =
        alternatives.iter().filter(|it| !it.iter().any(|it| is_type_error(it, base))).collect();
    let at_base = |it: &str| it == base;
    match &of_its_type[..] {
        [] => return one_expectation(alternatives.iter(), at_base).unwrap_or(Chosen::Unclear),
        [one] => return Chosen::One(one),
        several => {
            if let Some(chosen) = one_expectation(several.iter().copied(), at_base) {
                return chosen;
            }
        }
    }
    let discriminators =
        of_its_type[0].iter().chain(of_its_type[1]).filter_map(|it| member(it, base));
    for name in discriminators {
        let rejects = |errors: &&Vec<Error>| errors.iter().any(|it| member(it, base) == Some(name));
        let mut others = of_its_type.iter().filter(|it| !rejects(it));
        match (others.next(), others.next()) {
            (Some(one), None) => return Chosen::One(one),
            (None, _) => {
                let at_name = |it: &str| {
                    it.strip_prefix(base).and_then(|it| it.strip_prefix('/')) == Some(name)
                };
                let rejections = of_its_type.iter().copied();
                if let Some(chosen) = one_expectation(rejections, at_name) {
                    return chosen;
                }
            }
            _ => (),
        }
    }
    let required = |errors: &'a Vec<Error>| errors.iter().filter_map(|it| required(it, base));
    let mut missing: Vec<_> = required(of_its_type[0]).collect();
    missing.retain(|name| of_its_type.iter().all(|it| required(it).any(|it| it == *name)));
    match missing.is_empty() {
        true => Chosen::Unclear,
        false => Chosen::Missing(missing),
    }
}

/// One expectation for all alternatives, where each has nothing but an expectation about the value at this place.
fn one_expectation<'a>(
    alternatives: impl Iterator<Item = &'a Vec<Error>>,
    is_there: impl Fn(&str) -> bool,
) -> Option<Chosen<'a>> {
    let mut expected = Vec::new();
    let mut place = None;
    for errors in alternatives {
        let there = errors.iter().filter(|it| is_there(it.instance_path().as_str()));
        let there: Vec<_> = there.map(|it| Some((it, expectation(it)?))).collect::<Option<_>>()?;
        // A list of values says more than their type.
        let is_list =
            |(error, _): &&(&Error, Vec<String>)| !matches!(error.kind(), Kind::Type { .. });
        let (error, expectations) = there.iter().find(is_list).or(there.first())?;
        for expectation in expectations {
            if !expected.contains(expectation) {
                expected.push(expectation.clone());
            }
        }
        place.get_or_insert(*error);
    }
    Some(Chosen::Expected { error: place?, expected: either(expected) })
}

fn is_type_error(error: &Error, base: &str) -> bool {
    matches!(error.kind(), Kind::Type { .. }) && error.instance_path().as_str() == base
}

/// The direct member of the value at `base` that has another `const` or `enum`.
fn member<'a>(error: &'a Error, base: &str) -> Option<&'a str> {
    let (Kind::Constant { .. } | Kind::Enum { .. }) = error.kind() else { return None };
    let name = error.instance_path().as_str().strip_prefix(base)?.strip_prefix('/')?;
    (!name.contains('/')).then_some(name)
}

fn required<'a>(error: &'a Error, base: &str) -> Option<&'a str> {
    match error.kind() {
        Kind::Required { property } if error.instance_path().as_str() == base => property.as_str(),
        _ => None,
    }
}
