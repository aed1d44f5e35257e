//! The resource or template that serves a URI.

use std::sync::Arc;

use serde_json::Value;

use super::{
    ComponentOptions, Components, Handler, RegisteredResource, RegisteredTemplate, Visibility,
};

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
        let resource =
            self.resources.get(uri).filter(|resource| visibility.passes(kind, &***resource));
        if let Some(it) = resource {
            return visibility.grants(&it.options).then_some(Served::Resource(it));
        }
        let kind = self.templates.kind();
        let mut templates =
            self.templates.iter().filter(|template| visibility.passes(kind, &***template));
        let (template, values) =
            templates.find_map(|template| Some((template, template.match_uri(uri)?)))?;
        visibility.grants(&template.options).then_some(Served::Template(template, values))
    }

    /// Returns whether there are templates whose reads another server answers.
    pub(crate) fn passes_templates_on(&self) -> bool {
        self.templates.iter().any(|template| template.takes_uri)
    }

    /// Returns the handler of the template that serves this URI, if another server answers its reads.
    pub(crate) fn passed_on_template_at(&self, uri: &str) -> Option<&Handler> {
        match self.served_at(uri, &Visibility::everything())? {
            Served::Template(template, _) if template.takes_uri => Some(&template.handler),
            Served::Template(..) | Served::Resource(_) => None,
        }
    }

    /// Returns the options of what serves this URI to the caller.
    pub(super) fn options_at(
        &self,
        uri: &str,
        visibility: &Visibility,
    ) -> Option<&ComponentOptions> {
        self.served_at(uri, visibility).map(|served| match served {
            Served::Resource(resource) => &resource.options,
            Served::Template(template, _) => &template.options,
        })
    }
}
