//! Keywords that apply schemas to the value itself.

use super::{Check, Location, Outcome, Scope};
use crate::schema::{failure::Reason, instance::Object, marks::Marks};

impl<'r> Check<'r> {
    pub(super) fn all(
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

    /// Checks a value by `anyOf`, or `oneOf` if `only_one` may fit.
    pub(super) fn alternatives(
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

    pub(super) fn either(
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

    pub(super) fn dependent(
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
}
