//! Parsing of templates (RFC 6570 §2).

use super::expand::push_literal;
use super::{MAX_EXPRESSIONS, MAX_TEMPLATE_BYTES, Operator, Part, TemplateError, Variable};

pub(super) fn error(position: usize, message: impl Into<String>) -> TemplateError {
    TemplateError { position, message: message.into() }
}

pub(super) fn parse(text: &str) -> Result<Vec<Part>, TemplateError> {
    if text.len() > MAX_TEMPLATE_BYTES {
        return Err(error(
            MAX_TEMPLATE_BYTES,
            format!("longer than {MAX_TEMPLATE_BYTES} bytes; shorten it"),
        ));
    }
    let mut parts = Vec::new();
    let mut position = 0;
    let mut expressions = 0;
    while position < text.len() {
        let rest = &text[position..];
        if let Some(inside) = rest.strip_prefix('{') {
            expressions += 1;
            if expressions > MAX_EXPRESSIONS {
                return Err(error(
                    position,
                    format!("more than {MAX_EXPRESSIONS} expressions; split the template"),
                ));
            }
            let Some(end) = inside.find('}') else {
                return Err(error(
                    position,
                    "this `{` is never closed; add `}` (or write a literal brace as %7B)",
                ));
            };
            let (operator, variables) = expression(&inside[..end])
                .map_err(|(offset, message)| error(position + 1 + offset, message))?;
            parts.push(Part::Expression { operator, variables, position });
            position += end + 2;
        } else {
            let end = rest.find('{').unwrap_or(rest.len());
            literal(&rest[..end]).map_err(|(offset, message)| error(position + offset, message))?;
            let mut expanded = String::new();
            push_literal(&rest[..end], &mut expanded);
            parts.push(Part::Literal(expanded));
            position += end;
        }
    }
    Ok(parts)
}

/// RFC 6570 §2.1
fn literal(text: &str) -> Result<(), (usize, String)> {
    for (offset, char) in text.char_indices() {
        let message = match char {
            '}' => "a `}` without `{`; remove it or write %7D".to_owned(),
            '%' if !text.as_bytes()[offset + 1..]
                .iter()
                .take(2)
                .filter(|byte| byte.is_ascii_hexdigit())
                .count()
                .eq(&2) =>
            {
                "a `%` that is not a percent escape; write %25".to_owned()
            }
            ' ' | '"' | '\'' | '<' | '>' | '\\' | '^' | '`' | '|' | '\0'..='\x1f' | '\x7f' => {
                format!(
                    "{char:?} is not allowed in a URI template; percent-encode it as %{:02X}",
                    u32::from(char)
                )
            }
            _ => continue,
        };
        return Err((offset, message));
    }
    Ok(())
}

fn expression(inside: &str) -> Result<(Operator, Vec<Variable>), (usize, String)> {
    let operator = match inside.bytes().next() {
        None => return Err((0, "an empty expression; name a variable".to_owned())),
        Some(b'+') => Operator::Reserved,
        Some(b'#') => Operator::Fragment,
        Some(b'.') => Operator::Label,
        Some(b'/') => Operator::PathSegment,
        Some(b';') => Operator::PathParameter,
        Some(b'?') => Operator::Query,
        Some(b'&') => Operator::QueryContinuation,
        Some(reserved @ (b'=' | b',' | b'!' | b'@' | b'|')) => {
            let message = format!(
                "the operator `{}` is reserved by RFC 6570; remove it",
                char::from(reserved)
            );
            return Err((0, message));
        }
        Some(_) => Operator::Simple,
    };
    let mut offset = usize::from(operator != Operator::Simple);
    let mut variables = Vec::new();
    for spec in inside[offset..].split(',') {
        variables.push(variable(operator, spec).map_err(|message| (offset, message))?);
        offset += spec.len() + 1;
    }
    Ok((operator, variables))
}

/// RFC 6570 §2.3 and §2.4
fn variable(operator: Operator, spec: &str) -> Result<Variable, String> {
    let (name, explode) = spec.strip_suffix('*').map_or((spec, false), |name| (name, true));
    let (name, prefix) = match name.split_once(':') {
        None => (name, None),
        Some(_) if explode => {
            return Err(format!("`{spec}` has both `:` and `*`; keep one of them"));
        }
        Some((name, digits)) => {
            let well_formed = (1..=4).contains(&digits.len())
                && digits.bytes().all(|byte| byte.is_ascii_digit())
                && !digits.starts_with('0');
            let length = digits.parse().ok().filter(|_| well_formed);
            (name, Some(length.ok_or_else(|| format!("the length in `{spec}` must be 1 to 9999"))?))
        }
    };
    if !is_name(name) {
        return Err(format!("`{name}` is not a variable name; use letters, digits and `_`"));
    }
    Ok(Variable { name: name.to_owned(), operator, prefix, explode })
}

fn is_name(name: &str) -> bool {
    name.split('.').all(|word| {
        let mut bytes = word.bytes();
        let mut any = false;
        while let Some(byte) = bytes.next() {
            any = true;
            let escape = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
            let plain = byte.is_ascii_alphanumeric() || byte == b'_';
            if !(plain || byte == b'%' && escape(bytes.next()) && escape(bytes.next())) {
                return false;
            }
        }
        any
    })
}

#[cfg(test)]
mod tests {
    use super::super::UriTemplate;

    fn complaint(template: &str) -> (usize, String) {
        let error = UriTemplate::parse(template).unwrap_err();
        (error.position, error.message)
    }

    #[test]
    fn syntax_errors_say_where_and_how_to_mend_rfc6570_2() {
        for (template, position, word) in [
            ("a://{x", 4, "never closed"),
            ("a://x}", 5, "without `{`"),
            ("a://{}", 5, "name a variable"),
            ("a://{x,}", 7, "not a variable name"),
            ("a://{x y}", 5, "not a variable name"),
            ("a://{!x}", 5, "reserved"),
            ("a://{x:0}", 5, "1 to 9999"),
            ("a://{x:12345}", 5, "1 to 9999"),
            ("a://{x:3*}", 5, "keep one"),
            ("a://%zz", 4, "%25"),
            ("a://é b", 6, "%20"),
        ] {
            let (at, message) = complaint(template);
            assert_eq!(at, position, "{template}: {message}");
            assert!(message.contains(word), "{template}: {message}");
        }
    }

    #[test]
    fn an_overlong_template_is_refused() {
        assert!(complaint(&"x".repeat(9000)).1.contains("shorten"));
        assert!(complaint(&"{+x}/".repeat(65)).1.contains("split"));
    }

    #[test]
    fn variables_know_what_they_are() {
        let template = UriTemplate::parse("a://{x}/{+path:9}{?q,tag*}").unwrap();
        let seen: Vec<_> = template
            .kinds()
            .map(|variable| (variable.name.as_str(), variable.is_query(), variable.is_optional()))
            .collect();
        assert_eq!(
            seen,
            [("x", false, false), ("path", false, false), ("q", true, true), ("tag", true, true)]
        );
        assert_eq!(template.kinds().nth(1).unwrap().prefix, Some(9));
        assert!(template.kinds().nth(3).unwrap().explode);
    }
}
