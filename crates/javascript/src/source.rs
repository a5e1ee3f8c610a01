//! How a script's text becomes a function.

/// The expressions that may make a function of a text, in the order in which they are tried. A later one is tried only
/// if the earlier ones are not valid JavaScript.
///
/// MongoDB takes a function, an expression, or the body of a function.
pub(crate) fn readings(text: &str) -> Vec<String> {
    let text = text.trim().trim_end_matches(';');
    // The closing brace is on a line of its own, because the text may end with a comment.
    let body = format!("(function() {{ {text}\n}})");
    if is_function(text) {
        return vec![format!("({text}\n)")];
    }
    let expression = format!("(function() {{ return (\n{text}\n); }})");
    if holds_return(text) {
        return vec![body];
    }
    if text.is_empty() {
        return vec![body];
    }
    // The value of several statements is that of the last one, which only the engine finds.
    let quoted = quoted(text);
    vec![expression, format!("(function() {{ return eval({quoted}); }})")]
}

/// Whether the text is written as a function: with the word `function`, or with an arrow after parameters.
fn is_function(text: &str) -> bool {
    let rest = behind_comments(text);
    let rest = rest.strip_prefix("async").map_or(rest, str::trim_start);
    if let Some(rest) = rest.strip_prefix("function") {
        return rest.starts_with(|next: char| !next.is_alphanumeric() && next != '_' && next != '$');
    }
    let parameters = if rest.starts_with('(') {
        let mut depth = 0_usize;
        rest.char_indices().find_map(|(at, character)| {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(at + 1)
        })
    } else {
        rest.find(|next: char| !next.is_alphanumeric() && next != '_' && next != '$')
    };
    parameters.is_some_and(|end| rest[end..].trim_start().starts_with("=>"))
}

fn behind_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        let end = if text.starts_with("//") {
            text.find('\n')
        } else if text.starts_with("/*") {
            text.find("*/").map(|at| at + 2)
        } else {
            return text;
        };
        match end {
            Some(end) => text = &text[end..],
            None => return "",
        }
    }
}

fn holds_return(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$';
    let bytes = text.as_bytes();
    text.match_indices("return").any(|(at, word)| {
        let end = at + word.len();
        let goes_on = bytes.get(end).is_some_and(|next| is_part(*next));
        !(goes_on || at > 0 && is_part(bytes[at - 1]))
    })
}

/// The text as a literal of JavaScript.
fn quoted(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => literal.extend(['\\', character]),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\u{2028}' => literal.push_str("\\u2028"),
            '\u{2029}' => literal.push_str("\\u2029"),
            other => literal.push(other),
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_from_expressions() {
        for function in ["function() { return 1 }", "function f(a) {}", "(a, b) => a", "x => x", "/* c */ function(){}"]
        {
            assert!(is_function(function), "{function}");
        }
        for other in ["functional > 1", "this.a == 1", "(this.a) > 1", "return 1", "x", ""] {
            assert!(!is_function(other), "{other}");
        }
    }

    #[test]
    fn a_return_is_a_word() {
        assert!(holds_return("return 1") && holds_return("if (x) {return;}"));
        assert!(!holds_return("this.returned") && !holds_return("$return"));
    }
}
