//! Edits of TOML.

use serde_json::{Map, Value as Json};
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value, value};

/// Returns the values of a document, as JSON. Errors with the line and the column.
pub fn read(text: &str) -> Result<Json, String> {
    let document = parse(text)?;
    Ok(table_json(document.as_table()))
}

pub fn with(
    text: &str,
    servers: &str,
    name: &str,
    entry: &Map<String, Json>,
) -> Result<String, String> {
    let mut document = parse(text)?;
    let entries = document.entry(servers).or_insert_with(|| {
        let mut table = Table::new();
        // Without a header of its own, as users write it.
        table.set_implicit(true);
        Item::Table(table)
    });
    let entries = entries
        .as_table_like_mut()
        .ok_or_else(|| format!("{servers:?} must be a table of servers by name"))?;
    let mut table = Table::new();
    for (key, member) in entry {
        if let Some(member) = toml_value(member) {
            table.insert(key, value(member));
        }
    }
    let is_inline = entries_are_inline(entries);
    match entries.get_mut(name) {
        Some(old @ Item::Table(_)) => {
            if let Item::Table(old) = old {
                *table.decor_mut() = old.decor().clone();
                table.set_position(old.position());
            }
            *old = Item::Table(table);
        }
        Some(old) => *old = value(table.into_inline_table()),
        None if is_inline => {
            entries.insert(name, value(table.into_inline_table()));
        }
        None => {
            entries.insert(name, Item::Table(table));
        }
    }
    Ok(document.to_string())
}

pub fn without(text: &str, servers: &str, name: &str) -> Result<String, String> {
    let mut document = parse(text)?;
    if let Some(entries) = document.get_mut(servers).and_then(Item::as_table_like_mut) {
        entries.remove(name);
    }
    Ok(document.to_string())
}

/// Returns the text with other values in the same structure.
pub fn with_values(text: &str, values: &Json) -> Result<String, String> {
    let mut document = parse(text)?;
    set_members(document.as_table_mut(), values);
    Ok(document.to_string())
}

fn set_members(table: &mut dyn TableLike, values: &Json) {
    for (name, item) in table.iter_mut() {
        let Some(value) = values.get(name.get()) else { continue };
        match item {
            Item::Table(table) => set_members(table, value),
            Item::ArrayOfTables(tables) => {
                for (table, value) in tables.iter_mut().zip(value.as_array().into_iter().flatten())
                {
                    set_members(table, value);
                }
            }
            Item::Value(old) => set(old, value),
            Item::None => {}
        }
    }
}

fn set(old: &mut Value, value: &Json) {
    match old {
        Value::InlineTable(table) => set_members(table, value),
        Value::Array(items) => {
            for (item, value) in items.iter_mut().zip(value.as_array().into_iter().flatten()) {
                set(item, value);
            }
        }
        old if value_json(old) != *value => {
            if let Some(mut new) = toml_value(value) {
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
        }
        _ => {}
    }
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let message = error.message().lines().next().unwrap_or_default().trim().to_owned();
        format!("line {line}, column {column}: {message}")
    })
}

fn entries_are_inline(entries: &dyn TableLike) -> bool {
    entries.iter().any(|(_, entry)| entry.is_inline_table())
        && entries.iter().all(|(_, entry)| entry.is_value())
}

fn toml_value(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(flag) => (*flag).into(),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64()?.into(),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => items.iter().filter_map(toml_value).collect(),
        Json::Object(members) => {
            let mut table = InlineTable::new();
            for (name, member) in members {
                if let Some(member) = toml_value(member) {
                    table.insert(name, member);
                }
            }
            table.into()
        }
    })
}

fn table_json(table: &dyn TableLike) -> Json {
    table.iter().map(|(name, item)| (name.to_owned(), item_json(item))).collect()
}

fn item_json(item: &Item) -> Json {
    match item {
        Item::None => Json::Null,
        Item::Value(value) => value_json(value),
        Item::Table(table) => table_json(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| table_json(table)).collect(),
    }
}

fn value_json(value: &Value) -> Json {
    match value {
        Value::String(text) => text.value().as_str().into(),
        Value::Integer(integer) => (*integer.value()).into(),
        Value::Float(float) => (*float.value()).into(),
        Value::Boolean(flag) => (*flag.value()).into(),
        Value::Datetime(time) => time.value().to_string().into(),
        Value::Array(items) => items.iter().map(value_json).collect(),
        Value::InlineTable(table) => table_json(table),
    }
}
