//! Form elicitation: the fields of a form are taken from the arguments, and the others asked for one by one.

use gudgeon::{
    error::{Error, ErrorKind},
    protocol::{ElicitAction, ElicitRequestFormParams, ElicitResult, json},
    schema::Schema,
};
use serde_json::{Value, json as value};

use super::terminal;
use crate::{
    notices::Notices,
    values::{Assignments, Given, Place, description},
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
    let is_answered = fields.iter().any(|it| answers.get(it.name).is_some());
    let missing: Vec<_> =
        fields.iter().filter(|it| it.needs_answer() && answers.get(it.name).is_none()).collect();
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
            Some(answer) => Some(field.given(&answer.values)?),
            None if asks => field.ask(notices).await?,
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
    let wanted: Vec<_> = wanted.iter().map(|it| format!("--answer {}=…", it.name)).collect();
    let hint = match wanted.is_empty() {
        true => "run the command in a terminal".to_owned(),
        false => format!("run the command in a terminal, or give {}", wanted.join(" ")),
    };
    notices.line(&format!("declined, because no terminal is there to ask; {hint}"));
    Error { hint: Some(hint), ..Error::new(ErrorKind::Declined, "no user is there to answer") }
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

/// A field of a form.
#[derive(Clone, Copy)]
struct Field<'a> {
    name: &'a str,
    place: Place<'a>,
    is_required: bool,
}

impl<'a> Field<'a> {
    fn all(form: &'a Value) -> impl Iterator<Item = Self> {
        let required = form.get("required").and_then(Value::as_array);
        let members = form.get("properties").and_then(Value::as_object);
        members.into_iter().flatten().map(move |(name, schema)| Self {
            name,
            place: Place { root: form, schema },
            is_required: required.is_some_and(|it| it.iter().any(|it| it == name)),
        })
    }

    fn default(&self) -> Option<&'a Value> {
        self.place.schema.get("default")
    }

    fn needs_answer(&self) -> bool {
        self.is_required && self.default().is_none()
    }

    /// Converts the answer on the command line.
    fn given(&self, values: &[Given]) -> Result<String, Error> {
        let answer = self.place.convert(values).and_then(|it| self.checked(it));
        answer.map_err(|problem| {
            let line = description::line_with(self.name, self.place, self.is_required);
            let message =
                format!("--answer {}: {problem}; the server's form says: {line}", self.name);
            Error::misuse(message)
        })
    }

    /// Asks until the answer fits; `None` leaves the field out.
    async fn ask(&self, notices: &Notices) -> Result<Option<String>, Error> {
        let choices = Choice::all(self.place.schema);
        let is_list = self.place.schema.get("type").is_some_and(|it| it == "array");
        if let Some(text) = description::text_of(self.place) {
            notices.line(&text);
        }
        for (number, choice) in choices.iter().enumerate() {
            notices.line(&format!("  {}) {}", number + 1, choice.title));
        }
        let phrase = match (choices.is_empty(), is_list) {
            (true, _) => description::phrase(self.place, self.is_required),
            (false, false) => self.choice_phrase(&format!("1-{}", choices.len())),
            (false, true) => {
                self.choice_phrase(&format!("1-{}, separated by commas", choices.len()))
            }
        };
        loop {
            let line = terminal::ask(notices, &format!("{} ({phrase}): ", self.name)).await?;
            if line.is_empty() {
                match self.default() {
                    Some(default) => return Ok(Some(default.to_string())),
                    None if !self.is_required => return Ok(None),
                    // A required string may be empty.
                    None => (),
                }
            }
            let answer = match (choices.is_empty(), is_list) {
                (true, _) => self.place.convert_text(yes_or_no(self.place.schema, &line)),
                (false, false) => Choice::find(&choices, &line).map(|it| it.value.to_string()),
                (false, true) => Choice::find_all(&choices, &line),
            };
            match answer.and_then(|it| self.checked(it)) {
                Ok(answer) => return Ok(Some(answer)),
                Err(problem) => notices.line(&problem),
            }
        }
    }

    fn choice_phrase(&self, choice: &str) -> String {
        match self.default() {
            Some(default) => format!("{choice}, default {default}"),
            None if self.is_required => choice.to_owned(),
            None => format!("{choice}, optional"),
        }
    }

    /// Checks a value against the field's schema.
    fn checked(&self, json: String) -> Result<String, String> {
        // A schema that can't be used is the server's to enforce.
        let Ok(schema) = Schema::compile(&self.place.schema.to_string()) else { return Ok(json) };
        match schema.check_json(&json) {
            Ok(()) => Ok(json),
            Err(violation) => Err(violation.to_string()),
        }
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
        let titled = ["oneOf", "anyOf"].iter().find_map(|it| schema.get(it)?.as_array());
        let choice = |schema: &Value| {
            let value = schema.get("const")?;
            let title = schema.get("title").and_then(Value::as_str);
            let title = title.map_or_else(|| text(value), ToOwned::to_owned);
            Some(Self { title, value: value.clone() })
        };
        // With an alternative that is no single value it is no enumeration.
        titled.and_then(|it| it.iter().map(choice).collect()).unwrap_or_default()
    }

    /// Finds the choice with this number, value or title.
    fn find<'a>(choices: &'a [Self], line: &str) -> Result<&'a Self, String> {
        let named = choices.iter().find(|it| it.title == line || text(&it.value) == line);
        let numbered = || choices.get(line.parse::<usize>().ok()?.checked_sub(1)?);
        named
            .or_else(numbered)
            .ok_or_else(|| format!("{line:?} is not among the choices; type a number"))
    }

    fn find_all(choices: &[Self], line: &str) -> Result<String, String> {
        let words = line.split(',').map(str::trim).filter(|it| !it.is_empty());
        let chosen: Result<Vec<_>, _> =
            words.map(|it| Self::find(choices, it).map(|it| &it.value)).collect();
        Ok(value!(chosen?).to_string())
    }
}

/// Returns `true` or `false` for the usual words, where a boolean is asked for.
fn yes_or_no<'a>(schema: &Value, line: &'a str) -> &'a str {
    if schema.get("type").is_none_or(|it| it != "boolean") {
        return line;
    }
    match line.to_lowercase().as_str() {
        "y" | "yes" | "true" => "true",
        "n" | "no" | "false" => "false",
        _ => line,
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
            let shown: Vec<_> = choices.iter().map(|it| it.title.as_str()).collect();
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
