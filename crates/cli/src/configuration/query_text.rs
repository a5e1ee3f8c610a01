//! A query in a configuration: JSON as people write it, where names may lack quotes and patterns may stand between
//! slashes. Without the patterns it is valid YAML.

use bunko_bson::{DocumentBuf, extended_json};

/// Reads a query.
/// # Errors
/// If it is not a document.
pub fn parse_query(text: &str) -> Result<DocumentBuf, String> {
    let plain = without_patterns(text).map_err(|error| format!("'{text}' is not a document: {error}"))?;
    let json: serde_json::Value =
        serde_yaml_ng::from_str(&plain).map_err(|error| format!("'{text}' is not a document: {error}"))?;
    extended_json::parse_document(&json.to_string()).map_err(|error| format!("'{text}' is not a document: {error}"))
}

/// Rewrites `/pattern/options` as extended JSON wherever a value may stand, and adds a space after colons that need
/// one.
fn without_patterns(text: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    // The last character that was not a space.
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        match first {
            '"' | '\'' => {
                let length = quoted_length(rest, first);
                plain.push_str(&rest[..length]);
                rest = &rest[length..];
            }
            '/' if matches!(before, Some(':' | ',' | '[')) => {
                let (pattern, options, behind) = pattern(rest)?;
                let value = serde_json::json!({"$regularExpression": {"pattern": pattern, "options": options}});
                plain.push_str(&value.to_string());
                rest = behind;
            }
            _ => {
                plain.push(first);
                rest = &rest[first.len_utf8()..];
                // JSON needs no space after a colon, but YAML does.
                if first == ':' && rest.starts_with(['{', '[', '"', '\'', '/']) {
                    plain.push(' ');
                }
            }
        }
        if !first.is_whitespace() {
            before = Some(first);
        }
    }
    Ok(plain)
}

/// Length in bytes of a quoted text with its quotes; all of the text if it does not end.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            // YAML has no escapes in single quotes.
            '\\' if quote == '"' => is_escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The pattern at the start of a text, its options, and the rest of the text.
fn pattern(text: &str) -> Result<(&str, &str, &str), String> {
    let (mut is_escaped, mut is_in_class) = (false, false);
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            '/' if !is_in_class => {
                let behind = &text[at + 1..];
                let options = behind.find(|next: char| !next.is_ascii_alphabetic()).unwrap_or(behind.len());
                return Ok((&text[1..at], &behind[..options], &behind[options..]));
            }
            _ => {}
        }
    }
    Err("a pattern that begins with / does not end".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::ValueRef;

    fn printed(text: &str) -> String {
        let query = parse_query(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        extended_json::to_relaxed(ValueRef::Document(query.as_ref()))
    }

    #[test]
    fn queries_are_read_as_people_write_them() {
        let pattern = |pattern: &str, options: &str| {
            format!(r#"{{"$regularExpression":{{"pattern":"{pattern}","options":"{options}"}}}}"#)
        };
        for (text, expected) in [
            ("{atype: 'createUser'}", r#"{"atype":"createUser"}"#.to_owned()),
            ("{ atype: /^create/ }", format!(r#"{{"atype":{}}}"#, pattern("^create", ""))),
            (
                r#"{ "param.ns": { $regex: /^test\./i } }"#,
                format!(r#"{{"param.ns":{{"$regex":{}}}}}"#, pattern(r"^test\\.", "i")),
            ),
            (
                "{a: {$in: [/x/, 'y', /[/]z/s]}}",
                format!(r#"{{"a":{{"$in":[{},"y",{}]}}}}"#, pattern("x", ""), pattern("[/]z", "s")),
            ),
            (r#"{"a": {"$regex": "^b", "$options": "i"}}"#, format!(r#"{{"a":{}}}"#, pattern("^b", "i"))),
            (r#"{atype:{$in:["a"]},b:/c/}"#, format!(r#"{{"atype":{{"$in":["a"]}},"b":{}}}"#, pattern("c", ""))),
            // Slashes in quotes are ordinary characters.
            (r#"{a: "/b/", c: '/d/'}"#, r#"{"a":"/b/","c":"/d/"}"#.to_owned()),
        ] {
            assert_eq!(printed(text), expected, "{text}");
        }
        for wrong in ["{a: /b}", "{a: /b\\/}", "[1", "", "/a/"] {
            assert!(parse_query(wrong).is_err(), "{wrong}");
        }
    }
}
