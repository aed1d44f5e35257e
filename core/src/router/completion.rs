//! Completion of prompt arguments and template variables.

use std::collections::BTreeMap;

use super::{
    ComponentOptions, Components, Handler, RegisteredPrompt, RegisteredTemplate, Visibility,
    handler::{Failure, Reply, bad_result, own_meta},
};
use crate::{
    error::Error,
    protocol::{CompletionTarget, Raw, Response},
};

/// The maximum number of completion values in a result (Completion, "Completion Results").
const MAX_VALUES: usize = 100;

/// The completion handlers of one component, by argument name.
pub(super) type Completions = BTreeMap<Box<str>, Handler>;

/// The target of a completion: a prompt by its name, or a template by its URI.
pub(super) fn add(
    components: &mut Components,
    target: &str,
    argument: &str,
    handler: Handler,
) -> Result<(), Error> {
    if let Some(prompt) = components.prompts.find(target) {
        let names: Vec<_> = prompt
            .prompt
            .arguments
            .iter()
            .flatten()
            .map(|argument| argument.name.clone())
            .collect();
        check_argument(target, argument, &names)?;
        let complete = |prompt: &mut RegisteredPrompt| {
            insert(&mut prompt.completions, target, argument, handler)
        };
        return components.prompts.amend(target, complete);
    }
    if let Some(template) = components.templates.find(target) {
        check_argument(target, argument, &template.variables())?;
        let complete = |template: &mut RegisteredTemplate| {
            insert(&mut template.completions, target, argument, handler)
        };
        return components.templates.amend(target, complete);
    }
    Err(Error::misuse(format!(
        "nothing to complete: no prompt and no resource template is called {target:?}; register it first"
    )))
}

/// Returns whether completion is declared: there is one, or will be.
pub(super) fn any(components: &Components) -> bool {
    components.grows
        || components.prompts.all().any(|(prompt, _)| !prompt.completions.is_empty())
        || components.templates.all().any(|(template, _)| !template.completions.is_empty())
}

/// Finds the options of a target, and the completion handler of its argument. Returns `Err(())` if the target does not exist or the caller may not
/// see it.
pub(super) fn find<'a>(
    components: &'a Components,
    target: &CompletionTarget,
    argument: &str,
    visibility: &Visibility,
) -> Result<(&'a ComponentOptions, Option<&'a Handler>), ()> {
    match target {
        CompletionTarget::Prompt(name) => {
            let prompt = components.prompts.get_visible(name, visibility).ok_or(())?;
            Ok((&prompt.options, prompt.completions.get(argument)))
        }
        CompletionTarget::Resource(uri) => {
            if let Some(template) = components.templates.get_visible(uri, visibility) {
                return Ok((&template.options, template.completions.get(argument)));
            }
            let resource = components.resources.get_visible(uri, visibility);
            resource.map(|resource| (&resource.options, None)).ok_or(())
        }
    }
}

/// Reads a list of strings, or a whole completion result.
pub(super) fn response(reply: Reply) -> Result<Response, Failure> {
    #[derive(serde::Deserialize)]
    struct Whole {
        completion: Completion,
        #[serde(rename = "_meta")]
        meta: Option<Raw>,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Completion {
        values: Vec<String>,
        total: Option<u64>,
        #[serde(default)]
        has_more: bool,
    }
    let wrong = |_| bad_result("a completion returns a list of strings");
    let said = |values| Completion { values, total: None, has_more: false };
    let Whole { mut completion, meta } = match reply {
        Reply::Nothing => Whole { completion: said(Vec::new()), meta: None },
        Reply::Json(values) | Reply::Parts(values) => {
            let values: Vec<String> = serde_json::from_str(&values).map_err(wrong)?;
            Whole { completion: said(values), meta: None }
        }
        Reply::Result(whole) => serde_json::from_str::<Whole>(&whole).map_err(wrong)?,
        Reply::Text(_) | Reply::Blob(_) | Reply::Questions(_) => {
            return Err(bad_result("a completion returns a list of strings"));
        }
    };
    if completion.values.len() > MAX_VALUES {
        let total = u64::try_from(completion.values.len()).unwrap_or(u64::MAX);
        completion.total = completion.total.or(Some(total));
        completion.has_more = true;
        completion.values.truncate(MAX_VALUES);
    }
    Ok(Response::Completion {
        values: completion.values,
        total: completion.total,
        has_more: completion.has_more,
        meta: own_meta(meta.as_deref())?,
    })
}

fn insert(
    completions: &mut Completions,
    target: &str,
    argument: &str,
    handler: Handler,
) -> Result<(), Error> {
    match completions.insert(argument.into(), handler) {
        None => Ok(()),
        Some(_) => Err(Error::misuse(format!("{target:?} already completes {argument:?}"))),
    }
}

fn check_argument(target: &str, argument: &str, names: &[String]) -> Result<(), Error> {
    match names.iter().any(|name| name == argument) {
        true => Ok(()),
        false => Err(Error::misuse(format!(
            "{target:?} has no argument {argument:?} to complete: it has {}",
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        ))),
    }
}
