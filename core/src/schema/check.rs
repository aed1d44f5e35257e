//! Checks values. The number of steps and their nesting are limited, so that a check ends soon and fits the stack
//! whatever the schema and the value are.

use super::failure::{Failure, Reason, Segment};
use super::instance::{Instance, Object};
use super::keyword::{Keyword, Measure, Node, Properties, Schemas};
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
    Check::new(schemas, steps, None).whole(value)
}

/// Returns why a value is not valid.
pub(super) fn failures<'r>(
    schemas: &'r Schemas,
    value: &'r Instance<'r>,
) -> Result<Vec<Failure<'r>>, Unfinished> {
    let mut check = Check::new(schemas, limits::EXPLAINED_STEPS, Some(Vec::new()));
    check.whole(value)?;
    Ok(check.failures.unwrap_or_default())
}

struct Check<'r> {
    schemas: &'r Schemas,
    steps: usize,
    depth: usize,
    patterns: Budget,
    /// The failures found. `None` if it is enough to know that there is one.
    failures: Option<Vec<Failure<'r>>>,
}

type Outcome<T = bool> = Result<T, Unfinished>;

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
        Self { schemas, steps, depth: 0, patterns: Budget::default(), failures }
    }

    fn whole(&mut self, value: &'r Instance<'r>) -> Outcome {
        let location = Location { value, inside: None };
        self.fits(0, &location, &Scope { resource: 0, outer: None }, None)
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
            return Err(Unfinished::Steps);
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
            (Keyword::Types(types), _) => types.accepts(value),
            (Keyword::Values(allowed), _) => allowed.contains(value),
            (Keyword::Const(allowed), _) => value.equals(allowed),
            (Keyword::Bound { limit, bound }, Instance::Number(number)) => {
                bound.accepts(number, limit)
            }
            (Keyword::MultipleOf(divisor), Instance::Number(number)) => {
                number::is_multiple(number, divisor)
            }
            (Keyword::Size { measure, is_minimum, limit }, _) => {
                if let (Measure::Characters, Instance::String(text)) = (measure, value) {
                    self.spend(text.len() / limits::BYTES_PER_STEP)?;
                }
                measure.accepts(value, *is_minimum, *limit)
            }
            (Keyword::Pattern(pattern), Instance::String(text)) => self.matches(pattern, text)?,
            (Keyword::UniqueItems, Instance::Array(items)) => {
                self.spend(value.count())?;
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

    fn all(
        &mut self,
        schemas: &'r [usize],
        location: &Location<'_, 'r>,
        scope: &Scope<'_>,
        mut marks: Option<&mut Marks>,
    ) -> Outcome {
        let mut fits = true;
        for &schema in schemas {
            fits &= self.fits(schema, location, scope, marks.as_deref_mut())?;
            if !fits && self.failures.is_none() {
                break;
            }
        }
        Ok(fits)
    }

    fn either(
        &mut self,
        condition: usize,
        then: Option<usize>,
        otherwise: Option<usize>,
        location: &Location<'_, 'r>,
        scope: &Scope<'_>,
        mut marks: Option<&mut Marks>,
    ) -> Outcome {
        let mut own = marks.is_some().then(Marks::default);
        let holds = self.silently(condition, location, scope, own.as_mut())?;
        if let (Some(marks), Some(own), true) = (&mut marks, own, holds) {
            marks.add(&own);
        }
        match if holds { then } else { otherwise } {
            Some(schema) => self.fits(schema, location, scope, marks),
            None => Ok(true),
        }
    }

    fn dependent(
        &mut self,
        schemas: &'r [(String, usize)],
        object: &Object<'r>,
        location: &Location<'_, 'r>,
        scope: &Scope<'_>,
        mut marks: Option<&mut Marks>,
    ) -> Outcome {
        self.spend(schemas.len())?;
        let mut fits = true;
        for (_, schema) in schemas.iter().filter(|(name, _)| object.member(name).is_some()) {
            fits &= self.fits(*schema, location, scope, marks.as_deref_mut())?;
        }
        Ok(fits)
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

    fn members(
        &mut self,
        schema: usize,
        (properties, patterns, others): (&'r Properties, &'r [(Pattern, usize)], Option<usize>),
        object: &'r Object<'r>,
        location: &Location<'_, 'r>,
        scope: &Scope<'_>,
        mut marks: Option<&mut Marks>,
    ) -> Outcome {
        self.spend(object.len())?;
        let mut fits = true;
        let mut unknown = Vec::new();
        for (place, (name, value)) in object.iter().enumerate() {
            let inner = Location { value, inside: Some((Segment::Member(name), location)) };
            let mut is_known = false;
            if let Some(&schema) = properties.get(name) {
                is_known = true;
                fits &= self.fits(schema, &inner, scope, None)?;
            }
            for (pattern, schema) in patterns {
                if self.matches(pattern, name)? {
                    is_known = true;
                    fits &= self.fits(*schema, &inner, scope, None)?;
                }
            }
            match others {
                Some(schema) if !is_known && self.schemas.nodes[schema].is_never() => {
                    fits = false;
                    unknown.push(name);
                }
                Some(schema) if !is_known => fits &= self.fits(schema, &inner, scope, None)?,
                _ => {}
            }
            if !fits && self.failures.is_none() {
                return Ok(false);
            }
            if let Some(marks) = &mut marks
                && (is_known || others.is_some())
            {
                marks.mark(place);
            }
        }
        if !unknown.is_empty() {
            self.fail(location, Reason::Unknown { names: unknown, schema })?;
        }
        Ok(fits)
    }

    fn unevaluated_members(
        &mut self,
        schema: usize,
        others: usize,
        object: &'r Object<'r>,
        location: &Location<'_, 'r>,
        scope: &Scope<'_>,
        marks: Option<&mut Marks>,
    ) -> Outcome {
        let Some(marks) = marks else { return Ok(true) };
        self.spend(object.len())?;
        let unmarked: Vec<_> =
            object.iter().enumerate().filter(|(place, _)| !marks.has(*place)).collect();
        marks.mark_all();
        if self.schemas.nodes[others].is_never() {
            let names: Vec<_> = unmarked.iter().map(|(_, (name, _))| *name).collect();
            let fits = names.is_empty();
            if !fits {
                self.fail(location, Reason::Unknown { names, schema })?;
            }
            return Ok(fits);
        }
        let mut fits = true;
        for (_, (name, value)) in unmarked {
            let inner = Location { value, inside: Some((Segment::Member(name), location)) };
            fits &= self.fits(others, &inner, scope, None)?;
        }
        Ok(fits)
    }

    /// Checks the names of an object's members.
    fn names(
        &mut self,
        schema: usize,
        object: &'r Object<'r>,
        location: &Location<'_, 'r>,
    ) -> Outcome {
        let mut all_fit = true;
        for (name, _) in object.iter() {
            let value = Instance::String(name.into());
            let failures = self.failures.is_some().then(Vec::new);
            let mut check = Check::new(self.schemas, self.steps, failures);
            check.patterns = self.patterns;
            check.depth = self.depth;
            let location_of_name = Location { value: &value, inside: None };
            let scope = Scope { resource: self.schemas.nodes[schema].resource, outer: None };
            let fits = check.fits(schema, &location_of_name, &scope, None)?;
            (self.steps, self.patterns) = (check.steps, check.patterns);
            if let Some(failure) = check.failures.iter().flatten().next() {
                let problem = super::explain::describe(self.schemas, failure);
                self.fail(location, Reason::Name(problem))?;
            }
            all_fit &= fits;
        }
        Ok(all_fit)
    }

    /// Checks items by the schema that `schema_of` returns for the place of each, given the marks of other keywords.
    fn items(
        &mut self,
        items: &'r [Instance<'r>],
        schema_of: impl Fn(usize, &Marks) -> Option<usize>,
        location: &Location<'_, 'r>,
        scope: &Scope<'_>,
        marks: Option<&mut Marks>,
    ) -> Outcome {
        self.spend(items.len())?;
        let mut none = Marks::default();
        let has_marks = marks.is_some();
        let marks = marks.unwrap_or(&mut none);
        let mut fits = true;
        for (place, value) in items.iter().enumerate() {
            let Some(schema) = schema_of(place, marks) else { continue };
            let inner = Location { value, inside: Some((Segment::Item(place), location)) };
            fits &= self.fits(schema, &inner, scope, None)?;
            if !fits && self.failures.is_none() {
                return Ok(false);
            }
            if has_marks {
                marks.mark(place);
            }
        }
        Ok(fits)
    }

    /// Returns the number of items that fit a schema.
    fn count_items(
        &mut self,
        schema: usize,
        items: &'r [Instance<'r>],
        location: &Location<'_, 'r>,
        scope: &Scope<'_>,
        mut marks: Option<&mut Marks>,
    ) -> Outcome<u64> {
        let mut found = 0;
        for (place, value) in items.iter().enumerate() {
            let inner = Location { value, inside: Some((Segment::Item(place), location)) };
            if self.silently(schema, &inner, scope, None)? {
                found += 1;
                if let Some(marks) = &mut marks {
                    marks.mark(place);
                }
            }
        }
        Ok(found)
    }

    /// Checks a value by `anyOf`, or `oneOf` if `only_one` may fit.
    fn alternatives(
        &mut self,
        schemas: &'r [usize],
        only_one: bool,
        location: &Location<'_, 'r>,
        scope: &Scope<'_>,
        mut marks: Option<&mut Marks>,
    ) -> Outcome {
        let outer = self.failures.take();
        let mut found = 0;
        let mut failures = Vec::new();
        for &schema in schemas {
            self.failures = outer.is_some().then(Vec::new);
            let mut own = marks.is_some().then(Marks::default);
            let fits = self.fits(schema, location, scope, own.as_mut())?;
            failures.extend(self.failures.take());
            if !fits {
                continue;
            }
            found += 1;
            if let (Some(marks), Some(own)) = (&mut marks, own) {
                marks.add(&own);
            }
            // All alternatives count where it matters which members they apply to.
            if (found > 1 && only_one) || (!only_one && marks.is_none()) {
                break;
            }
        }
        self.failures = outer;
        let reason = match found {
            0 => Reason::NoAlternative(failures),
            1 => return Ok(true),
            _ if !only_one => return Ok(true),
            _ => Reason::SeveralAlternatives,
        };
        self.fail(location, reason)?;
        // It can't be said which members are unknown without knowing which alternative was meant.
        if let Some(marks) = marks {
            marks.mark_all();
        }
        Ok(false)
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
        self.spend(1 + text.len() / limits::BYTES_PER_STEP)?;
        pattern
            .matches(text, &mut self.patterns)
            .ok_or_else(|| Unfinished::Pattern(pattern.text().to_owned()))
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
        self.steps = self.steps.checked_sub(steps).ok_or(Unfinished::Steps)?;
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
