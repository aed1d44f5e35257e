//! Subscriptions to resources that are in no list, because a template of another server describes them.

use super::{Effect, Engine, MAX_UNDER_LOCK};

/// The resources of one subscription whose templates are looked for, because that takes time in proportion to the URIs and the
/// templates.
const MAX_LOOKED_FOR: usize = 1_000;

impl Engine {
    /// Tells the handlers of templates of other servers which resources a client has subscribed to.
    pub(crate) fn subscribed(&mut self, uris: Vec<String>) {
        if !self.components.passes_templates_on() {
            return;
        }
        let (count, mut bytes) = (uris.len(), 0);
        let fits = |uri: &String| {
            bytes += uri.len();
            bytes <= MAX_UNDER_LOCK
        };
        let uris: Vec<_> = uris.into_iter().take(MAX_LOOKED_FOR).take_while(fits).collect();
        if uris.len() < count {
            self.report(format!(
                "a client subscribes to {count} resources at once: updates of those of other servers may go unnoticed but \
                 for the first {}",
                uris.len()
            ));
        }
        for uri in uris {
            if let Some(handler) = self.components.passed_on_template_at(&uri) {
                self.effects.push_back(Effect::Subscribed { handler: handler.clone(), uri });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Instant};

    use super::*;
    use crate::{
        engine::Start,
        protocol::{Implementation, Resource, ResourceTemplate},
        router::{Components, RegisteredResource, RegisteredTemplate, ServerFacts},
    };

    fn engine(add: impl FnOnce(&mut Components)) -> Engine {
        let mut components = Components::new(ServerFacts::from(Implementation::new("house", "1")));
        add(&mut components);
        let start = Start { now: Instant::now(), unix: 0, seed: [0; 32], test_mode: None };
        Engine::new(Arc::new(components), &start)
    }

    fn template(text: &str) -> ResourceTemplate {
        ResourceTemplate { uri_template: text.into(), name: text.into(), ..Default::default() }
    }

    fn subscribed(engine: &mut Engine, uris: Vec<String>) -> (Vec<String>, Vec<String>) {
        engine.subscribed(uris);
        let (mut found, mut reports) = (Vec::new(), Vec::new());
        while let Some(effect) = engine.next_effect() {
            match effect {
                Effect::Subscribed { uri, .. } => found.push(uri),
                Effect::Log(event) => reports.push(event.to_string()),
                other => panic!("{other:?}"),
            }
        }
        (found, reports)
    }

    #[test]
    fn the_handlers_of_templates_of_other_servers_are_told_and_no_others() {
        let mut engine = engine(|components| {
            let own = RegisteredTemplate::new(template("own://{a}"), Arc::new("own")).unwrap();
            components.templates.add(own, true).unwrap();
            let theirs =
                RegisteredTemplate::passed_on(template("theirs://{a}"), Arc::new("them")).unwrap();
            components.templates.add(theirs, true).unwrap();
            let listed = Resource {
                uri: "theirs://listed".into(),
                name: "listed".into(),
                ..Default::default()
            };
            let listed = RegisteredResource::new(listed, Arc::new("them")).unwrap();
            components.resources.add(listed, true).unwrap();
        });
        let uris = ["own://1", "theirs://1", "theirs://listed", "nobodys://1"];
        let (found, reports) = subscribed(&mut engine, uris.map(str::to_owned).into());
        assert_eq!((found, reports), (vec!["theirs://1".to_owned()], Vec::new()));
    }

    #[test]
    fn a_subscription_to_many_resources_costs_a_bounded_time_and_says_so() {
        let theirs = RegisteredTemplate::passed_on(template("a://{+b}"), Arc::new("them")).unwrap();
        let mut engine = engine(|components| {
            components.templates.add(theirs, true).unwrap();
        });
        let short = (0..2 * MAX_LOOKED_FOR).map(|number| format!("a://{number}"));
        let (found, reports) = subscribed(&mut engine, short.collect());
        assert_eq!((found.len(), reports.len()), (MAX_LOOKED_FOR, 1));
        let long = vec![format!("a://{}", "x".repeat(MAX_UNDER_LOCK / 4)); 8];
        let (found, reports) = subscribed(&mut engine, long);
        assert_eq!(found.len(), 3);
        assert!(
            reports[0].contains("8 resources") && reports[0].contains("first 3"),
            "{reports:?}"
        );
    }
}
