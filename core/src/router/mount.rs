//! All that one server offers, offered by another under a prefix.

use std::sync::Arc;

use super::{Handler, Offers, completion::Completions, names};
use crate::error::Error;

impl Offers {
    /// Offers all that another offers: tools and prompts as `prefix_name`, URIs and methods as they are. `wrap` is given
    /// each handler, with the name that its tool or prompt has there.
    ///
    /// Gives back what known hosts will not take of it. Fails where the prefix fits no name, or a name is taken; then some of it may be offered already.
    pub fn mount(
        &mut self,
        prefix: &str,
        other: &Self,
        wrap: impl Fn(&Handler, Option<&str>) -> Handler,
    ) -> Result<Vec<String>, Error> {
        names::check_prefix(prefix)?;
        let mut warnings = Vec::new();
        let prefixed = |name: &str| format!("{prefix}_{name}");
        for (offer, enabled) in other.tools.all() {
            let mut offer = (**offer).clone();
            offer.handler = wrap(&offer.handler, Some(&offer.tool.name));
            let tool = Arc::make_mut(&mut offer.tool);
            tool.name = prefixed(&tool.name);
            names::check_tool(&tool.name)?;
            warnings.extend(self.tools.add(offer, enabled)?);
        }
        for (offer, enabled) in other.prompts.all() {
            let mut offer = (**offer).clone();
            offer.handler = wrap(&offer.handler, Some(&offer.prompt.name));
            let prompt = Arc::make_mut(&mut offer.prompt);
            prompt.name = prefixed(&prompt.name);
            wrap_all(&mut offer.completions, &wrap);
            warnings.extend(self.prompts.add(offer, enabled)?);
        }
        for (offer, enabled) in other.resources.all() {
            let mut offer = (**offer).clone();
            offer.handler = wrap(&offer.handler, None);
            warnings.extend(self.resources.add(offer, enabled)?);
        }
        for (offer, enabled) in other.templates.all() {
            let mut offer = (**offer).clone();
            offer.handler = wrap(&offer.handler, None);
            wrap_all(&mut offer.completions, &wrap);
            warnings.extend(self.templates.add(offer, enabled)?);
        }
        for (name, handler) in &*other.methods {
            self.add_method(name, wrap(handler, None))?;
        }
        for (name, handler) in &*other.notifications {
            self.add_notification(name, wrap(handler, None))?;
        }
        Ok(warnings)
    }
}

fn wrap_all(completions: &mut Completions, wrap: impl Fn(&Handler, Option<&str>) -> Handler) {
    for handler in completions.values_mut() {
        *handler = wrap(handler, None);
    }
}
