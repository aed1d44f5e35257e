//! Checks values. The number of steps and their nesting are limited, so that a check ends soon and fits the stack
//! whatever the schema and the value are.

mod in_place;
mod inside;

use super::failure::{Failure, Reason, Segment};
use super::instance::{Instance, Object};
use super::keyword::{Keyword, Measure, Node, Schemas};
use super::marks::Marks;
use super::pattern::{Budget, Pattern};
use super::{limits, number, value_set};

/// The reason why a check did not end.
#[derive(Debug)]
pub(super) enum Unfinished {
    /// Too many or too deeply nested steps.
    Steps,
    /// This pattern takes too many steps.
    Pattern(String),
}

/// Returns whether a value is valid.
pub(super) fn is_valid<'r>(
    schemas: &'r Schemas,
    value: &'r Instance<'r>,
) -> Result<bool, Unfinished> {
    let steps = limits::CHECKED_STEPS + limits::STEPS_PER_VALUE * value.count();
    let mut check = Check::new(schemas, steps, None);
    check.whole(value).map_err(|stopped| check.reason(stopped))
}

/// Returns why a value is not valid.
pub(super) fn failures<'r>(
    schemas: &'r Schemas,
    value: &'r Instance<'r>,
) -> Result<Vec<Failure<'r>>, Unfinished> {
    let mut check = Check::new(schemas, limits::EXPLAINED_STEPS, Some(Vec::new()));
    match check.whole(value) {
        Ok(_) => Ok(check.failures.unwrap_or_default()),
        Err(stopped) => Err(check.reason(stopped)),
    }
}

struct Check<'r> {
    schemas: &'r Schemas,
    steps: usize,
    depth: usize,
    patterns: Budget,
    /// The pattern that took too many steps.
    refused: Option<String>,
    /// The failures found. `None` if it is enough to know that there is one.
    failures: Option<Vec<Failure<'r>>>,
}

/// The check has stopped. It has no fields, because every step returns whether it has.
struct Stopped;

type Outcome<T = bool> = Result<T, Stopped>;

/// A value, and the way to it.
#[derive(Clone, Copy)]
struct Location<'p, 'r> {
    value: &'r Instance<'r>,
    /// The last step of the way, and the value around.
    inside: Option<(Segment<'r>, &'p Location<'p, 'r>)>,
}

/// The resources whose schemas led to a schema, from the last to the first.
#[derive(Clone, Copy)]
struct Scope<'p> {
    resource: usize,
    outer: Option<&'p Scope<'p>>,
}

impl<'r> Check<'r> {
    fn new(schemas: &'r Schemas, steps: usize, failures: Option<Vec<Failure<'r>>>) -> Self {
        Self { schemas, steps, depth: 0, patterns: Budget::default(), refused: None, failures }
    }

    fn whole(&mut self, value: &'r Instance<'r>) -> Outcome {
        let location = Location { value, inside: None };
        self.fits(0, &location, &Scope { resource: 0, outer: None }, None)
    }

    fn reason(&mut self, _: Stopped) -> Unfinished {
        self.refused.take().map_or(Unfinished::Steps, Unfinished::Pattern)
    }

    /// Checks a value by one schema. `marks` are told to which members or items its keywords applied.
    fn fits(
        &mut self,
        schema: usize,
        location: &Location<'_, 'r>,
        scope: &Scope<'_>,
        marks: Option<&mut Marks>,
    ) -> Outcome {
        let node = &self.schemas.nodes[schema];
        self.spend(1)?;
        if self.depth == limits::NESTED_STEPS {
            return Err(Stopped);
        }
        self.depth += 1;
        let inner = Scope { resource: node.resource, outer: Some(scope) };
        let scope = if node.resource == scope.resource { scope } else { &inner };
        let fits = if node.needs_marks() {
            let mut own = Marks::default();
            let fits = self.all_hold(schema, node, location, scope, Some(&mut own));
            if let Some(marks) = marks {
                marks.add(&own);
            }
            fits
        } else {
            self.all_hold(schema, node, location, scope, marks)
        };
        self.depth -= 1;
        fits
    }

    fn all_hold(
        &mut self,
        schema: usize,
        node: &'r Node,
        location: &Location<'_, 'r>,
        scope: &Scope<'_>,
        mut marks: Option<&mut Marks>,
    ) -> Outcome {
        let mut fits = true;
        for keyword in &node.keywords {
            if !self.holds(schema, keyword, location, scope, marks.as_deref_mut())? {
                if self.failures.is_none() {
                    return Ok(false);
                }
                fits = false;
            }
        }
        Ok(fits)
    }

    /// Checks a value by one keyword of a schema.
    fn holds(
        &mut self,
        schema: usize,
        keyword: &'r Keyword,
        location: &Location<'_, 'r>,
        scope: &Scope<'_>,
        marks: Option<&mut Marks>,
    ) -> Outcome {
        match (keyword, location.value) {
            (Keyword::Reference(schema), _) => self.fits(*schema, location, scope, marks),
            (Keyword::DynamicReference { anchor, target }, _) => {
                let schema = self.dynamic(anchor, scope).unwrap_or(*target);
                self.fits(schema, location, scope, marks)
            }
            (Keyword::All(schemas), _) => self.all(schemas, location, scope, marks),
            (Keyword::Any(schemas), _) => self.alternatives(schemas, false, location, scope, marks),
            (Keyword::One(schemas), _) => self.alternatives(schemas, true, location, scope, marks),
            (Keyword::If { condition, then, otherwise }, _) => {
                self.either(*condition, *then, *otherwise, location, scope, marks)
            }
            (Keyword::Not { schema, .. }, _) => {
                let holds = !self.silently(*schema, location, scope, None)?;
                self.judge(holds, keyword, location)
            }
            (Keyword::Members { properties, patterns, others }, Instance::Object(object)) => {
                let keywords = (properties, &patterns[..], *others);
                self.members(schema, keywords, object, location, scope, marks)
            }
            (Keyword::UnevaluatedMembers(others), Instance::Object(object)) => {
                self.unevaluated_members(schema, *others, object, location, scope, marks)
            }
            (Keyword::PropertyNames(schema), Instance::Object(object)) => {
                self.names(*schema, object, location)
            }
            (Keyword::DependentSchemas(schemas), Instance::Object(object)) => {
                self.dependent(schemas, object, location, scope, marks)
            }
            (Keyword::Items { first, others }, Instance::Array(items)) => {
                let schema_of = |place: usize, _: &Marks| first.get(place).copied().or(*others);
                self.items(items, schema_of, location, scope, marks)
            }
            (Keyword::UnevaluatedItems(others), Instance::Array(items)) => {
                let schema_of =
                    |place: usize, marks: &Marks| (!marks.has(place)).then_some(*others);
                self.items(items, schema_of, location, scope, marks)
            }
            (Keyword::Contains { schema, min, max, marks: has_marks }, Instance::Array(items)) => {
                let marks = marks.filter(|_| *has_marks);
                let found = self.count_items(*schema, items, location, scope, marks)?;
                let holds = found >= *min && max.is_none_or(|max| found <= max);
                self.judge(holds, keyword, location)
            }
            _ => self.asserts(keyword, location),
        }
    }

    /// Checks a value by a keyword that has no schemas.
    fn asserts(&mut self, keyword: &'r Keyword, location: &Location<'_, 'r>) -> Outcome {
        let value = location.value;
        let holds = match (keyword, value) {
            (Keyword::Never, _) => false,
            (Keyword::Types(_), Instance::Number(number))
                if self.schemas.has_doubles_only && number::is_beyond_doubles(number) =>
            {
                false
            }
            (Keyword::Types(types), _) => types.accepts(value),
            (Keyword::Values(allowed), _) => {
                self.spend(value.steps())?;
                allowed.contains(value)
            }
            (Keyword::Const(allowed), _) => {
                self.spend(value.steps())?;
                value.equals(allowed)
            }
            (Keyword::Bound { limit, bound }, Instance::Number(number)) => {
                bound.accepts(number, limit)
            }
            (Keyword::MultipleOf(divisor), Instance::Number(number)) => {
                number::is_multiple(number, divisor)
            }
            (Keyword::Size { measure, is_minimum, limit }, _) => {
                if let (Measure::Characters, Instance::String(text)) = (measure, value) {
                    self.spend(limits::steps_of(text))?;
                }
                measure.accepts(value, *is_minimum, *limit)
            }
            (Keyword::Pattern(pattern), Instance::String(text)) => self.matches(pattern, text)?,
            (Keyword::UniqueItems, Instance::Array(items)) => {
                self.spend(value.steps())?;
                value_set::all_differ(items)
            }
            (Keyword::Required(names), Instance::Object(object)) => {
                return self.has_all(names, object, location);
            }
            (Keyword::DependentRequired(dependent), Instance::Object(object)) => {
                self.spend(dependent.len())?;
                let mut fits = true;
                for (_, names) in dependent.iter().filter(|(name, _)| object.member(name).is_some())
                {
                    fits &= self.has_all(names, object, location)?;
                }
                return Ok(fits);
            }
            _ => true,
        };
        self.judge(holds, keyword, location)
    }

    fn judge(&mut self, holds: bool, keyword: &'r Keyword, location: &Location<'_, 'r>) -> Outcome {
        if !holds {
            self.fail(location, Reason::Keyword(keyword))?;
        }
        Ok(holds)
    }

    fn has_all(
        &mut self,
        names: &'r [String],
        object: &Object<'r>,
        location: &Location<'_, 'r>,
    ) -> Outcome {
        let mut fits = true;
        for name in names.iter().filter(|name| object.member(name).is_none()) {
            self.fail(location, Reason::Missing(name))?;
            fits = false;
            if self.failures.is_none() {
                break;
            }
        }
        Ok(fits)
    }

    /// Checks a value without collecting failures.
    fn silently(
        &mut self,
        schema: usize,
        location: &Location<'_, 'r>,
        scope: &Scope<'_>,
        marks: Option<&mut Marks>,
    ) -> Outcome {
        let failures = self.failures.take();
        let fits = self.fits(schema, location, scope, marks);
        self.failures = failures;
        fits
    }

    fn matches(&mut self, pattern: &'r Pattern, text: &str) -> Outcome {
        self.spend(1 + limits::steps_of(text))?;
        let matches = pattern.matches(text, &mut self.patterns);
        if matches.is_none() {
            self.refused = Some(pattern.text().to_owned());
        }
        matches.ok_or(Stopped)
    }

    /// Returns the schema with this anchor in the first of the resources that led here.
    fn dynamic(&self, anchor: &str, scope: &Scope<'_>) -> Option<usize> {
        let anchors = self.schemas.dynamic.get(anchor)?;
        let mut found = None;
        let mut next = Some(scope);
        while let Some(scope) = next {
            found = anchors.get(&scope.resource).copied().or(found);
            next = scope.outer;
        }
        found
    }

    #[inline]
    fn fail(&mut self, location: &Location<'_, 'r>, reason: Reason<'r>) -> Outcome<()> {
        if self.failures.is_some() {
            self.spend(1)?;
        }
        if let Some(failures) = &mut self.failures {
            failures.push(Failure { path: location.path(), value: location.value, reason });
        }
        Ok(())
    }

    /// Counts steps: whatever takes time for each member, item, name or character is to be counted.
    #[inline]
    fn spend(&mut self, steps: usize) -> Outcome<()> {
        self.steps = self.steps.checked_sub(steps).ok_or(Stopped)?;
        Ok(())
    }
}

impl<'r> Location<'_, 'r> {
    fn path(&self) -> Vec<Segment<'r>> {
        let mut path = Vec::new();
        let mut inside = self.inside;
        while let Some((segment, outer)) = inside {
            path.push(segment);
            inside = outer.inside;
        }
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests;
