//! Names and messages of a server, as a report shows them: a terminal must not obey them.

/// Replaces each control character by `?`, so that the text is one line.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_sent_no_control_characters() {
        assert_eq!(printable("shop.\u{1b}]0;x\u{7} a\nb\u{9b}1m 文庫"), "shop.?]0;x? a?b?1m 文庫");
    }
}
