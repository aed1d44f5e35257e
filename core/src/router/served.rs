//! The resource or template that serves a URI.

use std::sync::Arc;

use serde_json::Value;

use super::{ComponentOptions, Components, RegisteredResource, RegisteredTemplate, Visibility};

/// The resource or template that serves a URI.
pub(super) enum Served<'a> {
    Resource(&'a Arc<RegisteredResource>),
    /// With the values of its variables.
    Template(&'a Arc<RegisteredTemplate>, Vec<(String, Value)>),
}

impl Components {
    /// Returns the resource, or else the first template, that serves this URI to the caller. One that is hidden for lack of
    /// scopes is not replaced by another, which may need fewer.
    pub(super) fn served_at(&self, uri: &str, visibility: &Visibility) -> Option<Served<'_>> {
        let kind = self.resources.kind();
        let resource = self.resources.get(uri).filter(|it| visibility.passes(kind, &***it));
        if let Some(it) = resource {
            return visibility.grants(&it.options).then_some(Served::Resource(it));
        }
        let kind = self.templates.kind();
        let mut templates = self.templates.iter().filter(|it| visibility.passes(kind, &***it));
        let (template, values) = templates.find_map(|it| Some((it, it.match_uri(uri)?)))?;
        visibility.grants(&template.options).then_some(Served::Template(template, values))
    }

    /// Returns the options of what serves this URI to the caller.
    pub(super) fn options_at(
        &self,
        uri: &str,
        visibility: &Visibility,
    ) -> Option<&ComponentOptions> {
        self.served_at(uri, visibility).map(|it| match it {
            Served::Resource(resource) => &resource.options,
            Served::Template(template, _) => &template.options,
        })
    }
}
