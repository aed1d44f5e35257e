//! All that one server offers, offered by another under a prefix.

use std::sync::Arc;

use super::{Handler, Offers, completion::Completions, names, registry::Offer as _};
use crate::error::Error;

impl Offers {
    /// Offers all that another offers: tools and prompts as `prefix_name`, URIs and methods as they are. `wrap` is given
    /// each handler, with the name that its tool or prompt has there.
    ///
    /// Gives back what known hosts will not take of it. Fails where the prefix fits no name, or a name is taken; then some of
    /// it may be offered already.
    pub fn mount(
        &mut self,
        prefix: &str,
        other: &Self,
        wrap: impl Fn(&Handler, Option<&str>) -> Handler,
    ) -> Result<Vec<String>, Error> {
        names::check_prefix(prefix)?;
        let mut warnings = Vec::new();
        for (offer, _) in other.tools.all() {
            warnings.extend(self.mount_tool(prefix, other, &offer.tool.name, &wrap)?);
        }
        for (offer, _) in other.prompts.all() {
            warnings.extend(self.mount_prompt(prefix, other, &offer.prompt.name, &wrap)?);
        }
        for (offer, _) in other.resources.all() {
            warnings.extend(self.mount_resource(other, offer.key(), &wrap)?);
        }
        for (offer, _) in other.templates.all() {
            warnings.extend(self.mount_template(other, offer.key(), &wrap)?);
        }
        for (name, handler) in &*other.methods {
            self.add_method(name, wrap(handler, None))?;
            if let Some(schema) = other.params.get(name) {
                Arc::make_mut(&mut self.params).insert(name.clone(), Arc::clone(schema));
            }
        }
        for (name, handler) in &*other.notifications {
            self.add_notification(name, wrap(handler, None))?;
        }
        Ok(warnings)
    }

    /// Offers one tool of another's, as [`Offers::mount`] does all.
    pub fn mount_tool(
        &mut self,
        prefix: &str,
        other: &Self,
        name: &str,
        wrap: impl Fn(&Handler, Option<&str>) -> Handler,
    ) -> Result<Vec<String>, Error> {
        let Some((offer, enabled)) = other.tools.entry_of(name) else { return Ok(Vec::new()) };
        let mut offer = (**offer).clone();
        offer.handler = wrap(&offer.handler, Some(name));
        let tool = Arc::make_mut(&mut offer.tool);
        tool.name = format!("{prefix}_{name}");
        names::check_tool(&tool.name)?;
        self.tools.add(offer, enabled)
    }

    /// The same of a prompt.
    pub fn mount_prompt(
        &mut self,
        prefix: &str,
        other: &Self,
        name: &str,
        wrap: impl Fn(&Handler, Option<&str>) -> Handler,
    ) -> Result<Vec<String>, Error> {
        let Some((offer, enabled)) = other.prompts.entry_of(name) else { return Ok(Vec::new()) };
        let mut offer = (**offer).clone();
        offer.handler = wrap(&offer.handler, Some(name));
        Arc::make_mut(&mut offer.prompt).name = format!("{prefix}_{name}");
        wrap_all(&mut offer.completions, &wrap);
        self.prompts.add(offer, enabled)
    }

    /// The same of a resource.
    pub fn mount_resource(
        &mut self,
        other: &Self,
        uri: &str,
        wrap: impl Fn(&Handler, Option<&str>) -> Handler,
    ) -> Result<Vec<String>, Error> {
        let Some((offer, enabled)) = other.resources.entry_of(uri) else { return Ok(Vec::new()) };
        let mut offer = (**offer).clone();
        offer.handler = wrap(&offer.handler, None);
        self.resources.add(offer, enabled)
    }

    /// The same of a template of resources.
    pub fn mount_template(
        &mut self,
        other: &Self,
        uri: &str,
        wrap: impl Fn(&Handler, Option<&str>) -> Handler,
    ) -> Result<Vec<String>, Error> {
        let Some((offer, enabled)) = other.templates.entry_of(uri) else { return Ok(Vec::new()) };
        let mut offer = (**offer).clone();
        offer.handler = wrap(&offer.handler, None);
        wrap_all(&mut offer.completions, &wrap);
        self.templates.add(offer, enabled)
    }
}

fn wrap_all(completions: &mut Completions, wrap: impl Fn(&Handler, Option<&str>) -> Handler) {
    for handler in completions.values_mut() {
        *handler = wrap(handler, None);
    }
}
