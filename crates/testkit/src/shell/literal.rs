//! Rules of shell syntax that the parser and the printer share.

/// Whether a name may be written without quotes.
pub(super) fn is_identifier(name: &str) -> bool {
    name.chars().next().is_some_and(begins_identifier) && name.chars().all(continues_identifier)
}

pub(super) fn begins_identifier(character: char) -> bool {
    character.is_alphabetic() || character == '_' || character == '$'
}

pub(super) fn continues_identifier(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

/// Length in bytes of a regular expression up to its closing slash. A slash after a backslash or in a class does not
/// close it.
pub(super) fn regex_length(text: &str) -> Option<usize> {
    let mut in_class = false;
    let mut escaped = false;
    for (offset, character) in text.char_indices() {
        match character {
            '\n' | '\r' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => return Some(offset),
            _ => {}
        }
    }
    None
}
