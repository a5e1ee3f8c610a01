//! Parts of a text by number of characters.

use bunko_errors::Result;
use bunko_operation::OperationContext;

/// The offsets of all characters, and the end.
fn borders(text: &str) -> Vec<usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()]).collect()
}

/// The prefixes of a text with `least` to `most` characters.
pub(crate) fn edges(text: &str, least: usize, most: usize) -> Vec<(usize, usize)> {
    let borders = borders(text);
    (least..=most).map_while(|length| borders.get(length)).map(|end| (0, *end)).collect()
}

/// The suffixes of a text with `least` to `most` characters.
pub(crate) fn right_edges(text: &str, least: usize, most: usize) -> Vec<(usize, usize)> {
    let borders = borders(text);
    let starts = (least..=most).map_while(|length| borders.len().checked_sub(length + 1));
    starts.map(|start| (borders[start], text.len())).collect()
}

/// All parts of a text with `least` to `most` characters.
/// # Errors
/// Errors of counting work.
pub(crate) fn all(text: &str, least: usize, most: usize, operation: &OperationContext) -> Result<Vec<(usize, usize)>> {
    let borders = borders(text);
    let mut spans = Vec::new();
    for start in 0..borders.len() {
        operation.work(1 + most.saturating_sub(least) / 4)?;
        spans.extend((least..=most).map_while(|length| borders.get(start + length)).map(|end| (borders[start], *end)));
    }
    Ok(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grams_count_characters() {
        assert_eq!(edges("aéb", 1, 2), [(0, 1), (0, 3)]);
        assert_eq!(right_edges("aéb", 1, 9), [(3, 4), (1, 4), (0, 4)]);
        let all = all("abc", 2, 3, &OperationContext::unlimited());
        assert_eq!(all.expect("without limits"), [(0, 2), (0, 3), (1, 3)]);
    }
}
