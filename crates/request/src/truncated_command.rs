//! Commands that are too large to be shown whole, shown as MongoDB does: as text, with long strings truncated.

use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use std::fmt::Write as _;

/// Maximum number of bytes of a string that are shown.
const STRING_BYTES_MAX: usize = 150;
/// Marks a truncation.
const ELLIPSIS: &str = "...";

/// The command itself if it has at most `bytes_max` bytes, else its text under `$truncated`, limited to about as many
/// bytes, with the command's comment.
pub fn shortened(command: DocumentRef<'_>, bytes_max: usize) -> DocumentBuf {
    if command.len_bytes() <= bytes_max {
        return command.to_owned();
    }
    let mut text = String::new();
    if append_document(&mut text, command, bytes_max).is_none() {
        text.push_str(ELLIPSIS);
    }
    let mut truncated = DocumentBuf::new().with("$truncated", text.as_str());
    if let Some(comment) = command.get("comment") {
        truncated.append("comment", comment);
    }
    truncated
}

/// Appends the document as text; `None` once the text has more than `bytes_max` bytes.
fn append_document(text: &mut String, document: DocumentRef<'_>, bytes_max: usize) -> Option<()> {
    text.push('{');
    for (position, field) in document.iter().enumerate() {
        text.push_str(if position == 0 { " " } else { ", " });
        text.push_str(field.name);
        text.push_str(": ");
        append_value(text, field.value, bytes_max)?;
    }
    text.push_str(if document.is_empty() { "}" } else { " }" });
    Some(())
}

fn append_value(text: &mut String, value: ValueRef<'_>, bytes_max: usize) -> Option<()> {
    match value {
        ValueRef::Document(inner) => append_document(text, inner, bytes_max)?,
        ValueRef::Array(inner) => {
            text.push('[');
            for (position, element) in inner.iter().enumerate() {
                text.push_str(if position == 0 { " " } else { ", " });
                append_value(text, element, bytes_max)?;
            }
            text.push_str(" ]");
        }
        ValueRef::String(string) if string.len() > STRING_BYTES_MAX => {
            let end = (0..=STRING_BYTES_MAX).rev().find(|end| string.is_char_boundary(*end)).unwrap_or_default();
            text.extend(["\"", &string[..end], ELLIPSIS, "\""]);
        }
        // Writing into a string cannot fail, so the result is dropped.
        other => drop(write!(text, "{}", ValueText(other))),
    }
    (text.len() <= bytes_max).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::ArrayBuf;

    fn text(command: &DocumentBuf) -> String {
        let shown = shortened(command.as_ref(), 1000);
        shown.as_ref().get("$truncated").and_then(ValueRef::as_str).unwrap_or_default().to_owned()
    }

    #[test]
    fn long_strings_lose_their_ends_and_long_commands_too() {
        let small = DocumentBuf::new().with("find", "c");
        assert_eq!(shortened(small.as_ref(), 1000), small);
        let long = "a".repeat(2000);
        let filter = DocumentBuf::new().with("a", long.as_str());
        let command = DocumentBuf::new().with("q", &filter).with("u", &DocumentBuf::new()).with("multi", false);
        assert_eq!(text(&command), format!("{{ q: {{ a: \"{}...\" }}, u: {{}}, multi: false }}", "a".repeat(150)));
        let many: ArrayBuf = (0..1000).collect();
        let command = DocumentBuf::new().with("find", "c").with("in", &many).with("comment", "why");
        let shown = text(&command);
        assert!(shown.starts_with("{ find: \"c\", in: [ 0, 1, ") && shown.ends_with("..."), "{shown}");
        assert!(shown.len() < 1100);
        let comment = shortened(command.as_ref(), 1000);
        assert_eq!(comment.as_ref().get("comment").and_then(ValueRef::as_str), Some("why"));
    }
}
