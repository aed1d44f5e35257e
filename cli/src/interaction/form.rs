//! Form elicitation: the fields of a form are taken from the arguments, and the others asked for one by one.

use gudgeon::{
    error::{Error, ErrorKind},
    protocol::{ElicitAction, ElicitRequestFormParams, ElicitResult, json},
};
use serde_json::{Value, json as value};

use super::terminal;
use crate::{
    notices::Notices,
    values::{Assignments, Field, description},
};

/// Fills in a form.
pub async fn fill_in(
    notices: &Notices,
    answers: &Assignments,
    form: &ElicitRequestFormParams,
) -> Result<ElicitResult, Error> {
    let schema: Value = serde_json::from_str(form.requested_schema.get()).unwrap_or_default();
    let fields: Vec<_> = Field::all(&schema).collect();
    notices.line(&format!("The server asks: {}", form.message));
    let is_answered = fields.iter().any(|field| answers.get(field.name).is_some());
    let missing: Vec<_> = fields
        .iter()
        .filter(|field| field.needs_answer() && answers.get(field.name).is_none())
        .collect();
    // With everything that the server requires given on the command line, nothing is asked.
    let asks = !is_answered || !missing.is_empty();
    if asks && !terminal::is_present(notices) {
        return Err(declined(notices, &fields, &missing));
    }
    if asks {
        notices.line(terminal::HELP);
    }
    let mut content = json::ObjectWriter::with_capacity(64);
    for field in &fields {
        let answer = match answers.get(field.name) {
            Some(answer) => {
                let given = field.given(&answer.values).map_err(|problem| {
                    let (name, line) = (field.name, field.line());
                    Error::misuse(format!(
                        "--answer {name}: {problem}; the server's form says: {line}"
                    ))
                });
                Some(given?)
            }
            None if asks => ask_for(field, notices).await?,
            None => None,
        };
        if let Some(answer) = answer {
            content.raw(field.name, &answer);
        }
    }
    if fields.is_empty() {
        confirm(notices).await?;
    }
    Ok(ElicitResult::new(ElicitAction::Accept, Some(json::raw(content.finish()))))
}

fn declined(notices: &Notices, fields: &[Field<'_>], missing: &[&Field<'_>]) -> Error {
    let wanted = if missing.is_empty() { fields.iter().collect() } else { missing.to_vec() };
    let wanted: Vec<_> = wanted.iter().map(|field| format!("--answer {}=…", field.name)).collect();
    let hint = match wanted.is_empty() {
        true => "run the command in a terminal".to_owned(),
        false => format!("run the command in a terminal, or give {}", wanted.join(" ")),
    };
    notices.line(&format!("declined, because no terminal is there to ask; {hint}"));
    Error::new(ErrorKind::Declined, "no user is there to answer")
        .with(|details| details.hint = Some(hint))
}

/// Asks whether to accept a form without fields.
async fn confirm(notices: &Notices) -> Result<(), Error> {
    loop {
        match terminal::ask(notices, "Accept? [y/n] ").await?.to_lowercase().as_str() {
            "y" | "yes" => return Ok(()),
            "n" | "no" => return Err(Error::new(ErrorKind::Declined, "the user declined")),
            _ => notices.line("type y or n"),
        }
    }
}

/// Asks until the answer fits; `None` leaves the field out.
async fn ask_for(field: &Field<'_>, notices: &Notices) -> Result<Option<String>, Error> {
    let choices = Choice::all(field.place.schema);
    let is_list = field.place.schema.get("type").is_some_and(|kind| kind == "array");
    if let Some(text) = description::text_of(field.place) {
        notices.line(&text);
    }
    for (number, choice) in choices.iter().enumerate() {
        notices.line(&format!("  {}) {}", number + 1, choice.title));
    }
    let phrase = match (choices.is_empty(), is_list) {
        (true, _) => description::phrase(field.place, field.is_required),
        (false, false) => choice_phrase(field, &format!("1-{}", choices.len())),
        (false, true) => choice_phrase(field, &format!("1-{}, separated by commas", choices.len())),
    };
    loop {
        let line = terminal::ask(notices, &format!("{} ({phrase}): ", field.name)).await?;
        if line.is_empty() {
            match field.default() {
                Some(default) => return Ok(Some(default.to_string())),
                None if !field.is_required => return Ok(None),
                // A required string may be empty.
                None => (),
            }
        }
        let answer = match (choices.is_empty(), is_list) {
            (true, _) => field.converted(&line),
            (false, false) => Choice::find(&choices, &line).map(|choice| choice.value.to_string()),
            (false, true) => {
                Choice::find_all(&choices, &line).and_then(|value| field.checked(value))
            }
        };
        match answer {
            Ok(answer) => return Ok(Some(answer)),
            Err(problem) => notices.line(&problem),
        }
    }
}

fn choice_phrase(field: &Field<'_>, choice: &str) -> String {
    match field.default() {
        Some(default) => format!("{choice}, default {default}"),
        None if field.is_required => choice.to_owned(),
        None => format!("{choice}, optional"),
    }
}

/// A value of an enumeration.
struct Choice {
    title: String,
    value: Value,
}

impl Choice {
    /// Returns the values that a field accepts, or that the items of its array accept.
    fn all(schema: &Value) -> Vec<Self> {
        let schema = schema.get("items").unwrap_or(schema);
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let titles = schema.get("enumNames");
            let title = |at: usize| titles?.get(at)?.as_str();
            let choice = |(at, value): (usize, &Value)| Self {
                title: title(at).map_or_else(|| text(value), ToOwned::to_owned),
                value: value.clone(),
            };
            return values.iter().enumerate().map(choice).collect();
        }
        let titled = ["oneOf", "anyOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array());
        let choice = |schema: &Value| {
            let value = schema.get("const")?;
            let title = schema.get("title").and_then(Value::as_str);
            let title = title.map_or_else(|| text(value), ToOwned::to_owned);
            Some(Self { title, value: value.clone() })
        };
        // With an alternative that is not a single value it is not an enumeration.
        titled
            .and_then(|alternatives| alternatives.iter().map(choice).collect())
            .unwrap_or_default()
    }

    /// Finds the choice with this number, value or title.
    fn find<'a>(choices: &'a [Self], line: &str) -> Result<&'a Self, String> {
        let named =
            choices.iter().find(|choice| choice.title == line || text(&choice.value) == line);
        let numbered = || choices.get(line.parse::<usize>().ok()?.checked_sub(1)?);
        named
            .or_else(numbered)
            .ok_or_else(|| format!("{line:?} is not among the choices; type a number"))
    }

    fn find_all(choices: &[Self], line: &str) -> Result<String, String> {
        let words = line.split(',').map(str::trim).filter(|word| !word.is_empty());
        let chosen: Result<Vec<_>, _> =
            words.map(|word| Self::find(choices, word).map(|choice| &choice.value)).collect();
        Ok(value!(chosen?).to_string())
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_enumeration_has_choices() {
        for (schema, titles) in [
            (value!({"type": "string", "enum": ["r", "g"]}), vec!["r", "g"]),
            (value!({"enum": ["r", "g"], "enumNames": ["Red"]}), vec!["Red", "g"]),
            (value!({"oneOf": [{"const": "r", "title": "Red"}]}), vec!["Red"]),
            (value!({"type": "array", "items": {"enum": ["r"]}}), vec!["r"]),
            (value!({"type": "array", "items": {"anyOf": [{"const": 1}]}}), vec!["1"]),
            (value!({"anyOf": [{"const": 1}, {"type": "null"}]}), vec![]),
            (value!({"type": "string"}), vec![]),
        ] {
            let choices = Choice::all(&schema);
            let shown: Vec<_> = choices.iter().map(|choice| choice.title.as_str()).collect();
            assert_eq!(shown, titles, "{schema}");
        }
    }

    #[test]
    fn a_choice_is_found_by_number_value_and_title() {
        let choices = Choice::all(&value!({"enum": ["r", "2"], "enumNames": ["Red", "Two"]}));
        for (line, found) in [("1", "r"), ("r", "r"), ("Red", "r"), ("2", "2"), ("Two", "2")] {
            assert_eq!(Choice::find(&choices, line).unwrap().value, found, "{line}");
        }
        for line in ["0", "3", "", "x"] {
            assert!(Choice::find(&choices, line).is_err(), "{line}");
        }
        assert_eq!(Choice::find_all(&choices, "1, Two").unwrap(), r#"["r","2"]"#);
        assert_eq!(Choice::find_all(&choices, "").unwrap(), "[]");
    }
}
