//! Chooses the alternative of an `anyOf` or `oneOf` whose errors describe a value best.

use super::explain::{either, expectation};
use super::failure::{Failure, Reason, Segment};
use super::keyword::Keyword;

/// The best description of the failure of all alternatives.
pub(super) enum Chosen<'a, 'r> {
    /// The failures of one alternative.
    One(&'a [Failure<'r>]),
    /// One expectation, at the place of this failure.
    Expected { failure: &'a Failure<'r>, expected: String },
    /// Missing properties that every alternative requires.
    Missing(Vec<&'r str>),
    /// No alternative fits better than the others.
    Unclear,
}

/// Chooses by the type of the value at `base` first, then by its discriminator: a property for which each alternative has a
/// `const` or `enum` of its own.
pub(super) fn choose<'a, 'r>(
    base: &[Segment<'r>],
    alternatives: &'a [Vec<Failure<'r>>],
) -> Chosen<'a, 'r> {
    let is_of_type =
        |failures: &&'a Vec<Failure<'r>>| !failures.iter().any(|failure| is_type(failure, base));
    let of_its_type: Vec<_> = alternatives.iter().filter(is_of_type).collect();
    let at_base = |path: &[Segment<'r>]| path == base;
    match &of_its_type[..] {
        [] => return one_expectation(alternatives.iter(), at_base).unwrap_or(Chosen::Unclear),
        [one] => return Chosen::One(one),
        several => {
            if let Some(chosen) = one_expectation(several.iter().copied(), at_base) {
                return chosen;
            }
        }
    }
    let candidates = of_its_type[0].iter().chain(of_its_type[1]);
    for name in candidates.filter_map(|failure| discriminator(failure, base)) {
        let rejects = |failures: &&&'a Vec<Failure<'r>>| {
            failures.iter().any(|failure| discriminator(failure, base) == Some(name))
        };
        let mut others = of_its_type.iter().filter(|failures| !rejects(failures));
        match (others.next(), others.next()) {
            (Some(one), None) => return Chosen::One(one),
            (None, _) => {
                let at_name = |path: &[Segment<'r>]| {
                    path.split_last() == Some((&Segment::Member(name), base))
                };
                let rejections = of_its_type.iter().copied();
                if let Some(chosen) = one_expectation(rejections, at_name) {
                    return chosen;
                }
            }
            _ => (),
        }
    }
    let missing_in = |failures: &'a Vec<Failure<'r>>| {
        failures.iter().filter_map(|failure| missing(failure, base))
    };
    let mut names: Vec<_> = missing_in(of_its_type[0]).collect();
    names.retain(|name| {
        of_its_type.iter().all(|failures| missing_in(failures).any(|other| other == *name))
    });
    match names.is_empty() {
        true => Chosen::Unclear,
        false => Chosen::Missing(names),
    }
}

/// Returns one expectation for all alternatives, where each has nothing but an expectation about the value at this place.
fn one_expectation<'a, 'r: 'a>(
    alternatives: impl Iterator<Item = &'a Vec<Failure<'r>>>,
    is_there: impl Fn(&[Segment<'r>]) -> bool,
) -> Option<Chosen<'a, 'r>> {
    let mut expected = Vec::new();
    let mut place = None;
    for failures in alternatives {
        let there = failures.iter().filter(|failure| is_there(&failure.path));
        let there: Option<Vec<_>> =
            there.map(|failure| Some((failure, expectation(failure)?))).collect();
        let there = there?;
        // A list of values says more than their type.
        let (failure, expectations) =
            there.iter().find(|(failure, _)| !is_of_types(failure)).or(there.first())?;
        for expectation in expectations {
            if !expected.contains(expectation) {
                expected.push(expectation.clone());
            }
        }
        place.get_or_insert(*failure);
    }
    Some(Chosen::Expected { failure: place?, expected: either(expected) })
}

fn is_of_types(failure: &Failure<'_>) -> bool {
    matches!(failure.reason, Reason::Keyword(Keyword::Types(_)))
}

fn is_type(failure: &Failure<'_>, base: &[Segment<'_>]) -> bool {
    is_of_types(failure) && failure.path == base
}

/// Returns the direct member of the value at `base` that has another `const` or `enum`.
fn discriminator<'r>(failure: &Failure<'r>, base: &[Segment<'r>]) -> Option<&'r str> {
    let Reason::Keyword(Keyword::Const(_) | Keyword::Values(_)) = failure.reason else {
        return None;
    };
    match failure.path.split_last()? {
        (Segment::Member(name), outer) if outer == base => Some(name),
        _ => None,
    }
}

fn missing<'r>(failure: &Failure<'r>, base: &[Segment<'r>]) -> Option<&'r str> {
    match failure.reason {
        Reason::Missing(name) if failure.path == base => Some(name),
        _ => None,
    }
}
