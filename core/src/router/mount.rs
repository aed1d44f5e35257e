//! Mounting: registration of one server's components with another server, under a prefix.

use std::sync::Arc;

use super::{
    Component, Components, Definition, Handler, List, RegisteredPrompt, RegisteredResource,
    RegisteredTemplate, RegisteredTool, Registry, ServerFacts, completion::Completions, names,
};
use crate::error::Error;

/// Wraps a handler; receives the name of its tool or prompt in the mounted server.
type Wrap<'a> = dyn Fn(&Handler, Option<&str>) -> Handler + 'a;

/// Returns the key of a registration of this kind after mounting with a prefix. A completion has the key of its prompt or
/// template; keys of methods do not change.
pub fn mounted_key(kind: &str, prefix: &str, key: &str) -> String {
    let list = match kind {
        // Only templates have braces.
        "completion" | "completions" if key.contains('{') => Some(List::Templates),
        "completion" | "completions" => Some(List::Prompts),
        kind => List::of_kind(kind).ok(),
    };
    list.map_or_else(|| key.to_owned(), |list| list.mounted_key(prefix, key))
}

#[doc(hidden)] // For the language bindings.
impl ServerFacts {
    /// Errors for a server that can't be mounted into this one. `has_auth`: it authenticates its callers itself.
    pub fn check_mount(&self, inner: &Self, has_auth: bool) -> Result<(), Error> {
        let (outer_name, inner_name) = (&self.info.name, &inner.info.name);
        let refused = |why: String| {
            Error::misuse(format!("{inner_name:?} can't be mounted into {outer_name:?}: {why}"))
        };
        if has_auth {
            return Err(refused(format!(
                "its `auth` would not be used there, so that all callers of {outer_name:?} would reach its tools; give `auth` \
                 to {outer_name:?} only"
            )));
        }
        for inner in [&inner.own, &inner.mounted] {
            for outer in [&self.own, &self.mounted] {
                if let Some(name) = outer.conflict(inner) {
                    return Err(refused(format!(
                        "both declare {name:?}, with different settings; give them the same ones"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Declares the extensions of a server that is mounted into this one.
    pub fn declare_mounted(&mut self, inner: &Self) {
        for inner in [&inner.own, &inner.mounted] {
            self.mounted.add(inner);
        }
    }
}

impl Components {
    /// Registers all components of another server: tools and prompts as `prefix_name`, URIs, methods and routes unchanged,
    /// and declares its extensions. `wrap` receives each handler with its tool or prompt name in the mounted server.
    ///
    /// Returns warnings about properties that known hosts reject. Errors if the prefix is not valid, a name is taken or an
    /// extension has other settings; some components may have been registered by then.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn mount(
        &mut self,
        prefix: &str,
        other: &Self,
        wrap: &Wrap<'_>,
    ) -> Result<Vec<String>, Error> {
        names::check_prefix(prefix)?;
        self.server.check_mount(&other.server, false)?;
        Arc::make_mut(&mut self.server).declare_mounted(&other.server);
        let mounting = Mounting { prefix, wrap };
        let warnings = [
            mounting.all(&mut self.tools, &other.tools)?,
            mounting.all(&mut self.prompts, &other.prompts)?,
            mounting.all(&mut self.resources, &other.resources)?,
            mounting.all(&mut self.templates, &other.templates)?,
        ];
        for (name, handler) in &*other.methods {
            self.add(Definition::Method(name.clone()), wrap(handler, None))?;
            if let Some(schema) = other.params.get(name) {
                Arc::make_mut(&mut self.params).insert(name.clone(), Arc::clone(schema));
            }
        }
        for (name, handler) in &*other.notifications {
            self.add(Definition::Notification(name.clone()), wrap(handler, None))?;
        }
        self.mount_routes(other)?;
        Ok(warnings.concat())
    }

    /// Registers one component of another server, like [`Components::mount`]. Does nothing if the other server has no
    /// such key.
    pub(crate) fn mount_one(
        &mut self,
        prefix: &str,
        other: &Self,
        list: List,
        key: &str,
        wrap: &Wrap<'_>,
    ) -> Result<Vec<String>, Error> {
        let mounting = Mounting { prefix, wrap };
        match list {
            List::Tools => mounting.one(&mut self.tools, &other.tools, key),
            List::Resources => mounting.one(&mut self.resources, &other.resources, key),
            List::Templates => mounting.one(&mut self.templates, &other.templates, key),
            List::Prompts => mounting.one(&mut self.prompts, &other.prompts, key),
        }
    }
}

struct Mounting<'a> {
    prefix: &'a str,
    wrap: &'a Wrap<'a>,
}

impl Mounting<'_> {
    fn all<T: Mounted>(
        &self,
        into: &mut Registry<T>,
        from: &Registry<T>,
    ) -> Result<Vec<String>, Error> {
        let mut warnings = Vec::new();
        for (component, enabled) in from.all() {
            warnings.extend(self.add(into, component, enabled)?);
        }
        Ok(warnings)
    }

    fn one<T: Mounted>(
        &self,
        into: &mut Registry<T>,
        from: &Registry<T>,
        key: &str,
    ) -> Result<Vec<String>, Error> {
        let found = from.entry_of(key);
        found.map_or(Ok(Vec::new()), |(component, enabled)| self.add(into, component, enabled))
    }

    fn add<T: Mounted>(
        &self,
        into: &mut Registry<T>,
        component: &T,
        enabled: bool,
    ) -> Result<Vec<String>, Error> {
        let mut component = component.clone();
        component.mount(self)?;
        into.add(component, enabled)
    }

    fn wrap(&self, handler: &mut Handler, name: Option<&str>) {
        *handler = (self.wrap)(handler, name);
    }

    fn wrap_all(&self, completions: &mut Completions, name: Option<&str>) {
        for handler in completions.values_mut() {
            self.wrap(handler, name);
        }
    }
}

/// A component that can be mounted.
trait Mounted: Component + Clone {
    fn mount(&mut self, mounting: &Mounting<'_>) -> Result<(), Error>;
}

impl Mounted for RegisteredTool {
    fn mount(&mut self, mounting: &Mounting<'_>) -> Result<(), Error> {
        let tool = Arc::make_mut(&mut self.tool);
        mounting.wrap(&mut self.handler, Some(&tool.name));
        tool.name = List::Tools.mounted_key(mounting.prefix, &tool.name);
        names::check_tool(&tool.name)
    }
}

impl Mounted for RegisteredPrompt {
    fn mount(&mut self, mounting: &Mounting<'_>) -> Result<(), Error> {
        let prompt = Arc::make_mut(&mut self.prompt);
        mounting.wrap(&mut self.handler, Some(&prompt.name));
        mounting.wrap_all(&mut self.completions, Some(&prompt.name));
        prompt.name = List::Prompts.mounted_key(mounting.prefix, &prompt.name);
        Ok(())
    }
}

impl Mounted for RegisteredResource {
    fn mount(&mut self, mounting: &Mounting<'_>) -> Result<(), Error> {
        mounting.wrap(&mut self.handler, None);
        Ok(())
    }
}

impl Mounted for RegisteredTemplate {
    fn mount(&mut self, mounting: &Mounting<'_>) -> Result<(), Error> {
        mounting.wrap(&mut self.handler, None);
        mounting.wrap_all(&mut self.completions, None);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::mounted_key;

    #[test]
    fn names_get_the_prefix_and_uris_do_not() {
        for (kind, key, mounted) in [
            ("tool", "add", "shelf_add"),
            ("prompts", "review", "shelf_review"),
            ("resources", "a:b", "a:b"),
            ("resourceTemplate", "a:{b}", "a:{b}"),
            ("completion", "review", "shelf_review"),
            ("completions", "a:{b}", "a:{b}"),
            ("methods", "acme/x", "acme/x"),
        ] {
            assert_eq!(mounted_key(kind, "shelf", key), mounted);
        }
    }
}
