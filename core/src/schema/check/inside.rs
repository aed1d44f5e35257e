//! Keywords that apply schemas to the members or items of a value.

use super::{Check, Location, Outcome, Scope};
use crate::schema::{
    explain,
    failure::{Reason, Segment},
    instance::{Instance, Object},
    keyword::Properties,
    limits,
    marks::Marks,
    pattern::Pattern,
};

impl<'r> Check<'r> {
    pub(super) fn members(
        &mut self,
        schema: usize,
        (properties, patterns, others): (&'r Properties, &'r [(Pattern, usize)], Option<usize>),
        object: &'r Object<'r>,
        location: &Location<'_, 'r>,
        scope: &Scope<'_>,
        mut marks: Option<&mut Marks>,
    ) -> Outcome {
        let mut fits = true;
        let mut unknown = Vec::new();
        for (place, (name, value)) in object.iter().enumerate() {
            let inner = Location { value, inside: Some((Segment::Member(name), location)) };
            self.spend(1 + limits::steps_of(name))?;
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

    pub(super) fn unevaluated_members(
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
    pub(super) fn names(
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
            let fits = check.fits(schema, &location_of_name, &scope, None);
            (self.steps, self.patterns) = (check.steps, check.patterns);
            self.refused = check.refused;
            let fits = fits?;
            if let Some(failure) = check.failures.iter().flatten().next() {
                let problem = explain::describe(self.schemas, failure);
                self.fail(location, Reason::Name(problem))?;
            }
            all_fit &= fits;
        }
        Ok(all_fit)
    }

    /// Checks items by the schema that `schema_of` returns for the place of each, given the marks of other keywords.
    pub(super) fn items(
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
    pub(super) fn count_items(
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
}
