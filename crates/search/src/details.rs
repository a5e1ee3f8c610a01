//! The parts of a score, for `$meta: "searchScoreDetails"`.

use bunko_bson::{ArrayBuf, DocumentBuf};

/// A part of a score.
#[derive(Clone, Debug)]
pub(crate) struct Details {
    pub value: f32,
    pub description: String,
    pub parts: Vec<Details>,
}

impl Details {
    /// A part without further parts.
    pub fn leaf(value: f32, description: impl Into<String>) -> Self {
        Self { value, description: description.into(), parts: Vec::new() }
    }

    pub fn to_document(&self) -> DocumentBuf {
        let parts: Vec<DocumentBuf> = self.parts.iter().map(Self::to_document).collect();
        DocumentBuf::new()
            .with("value", f64::from(self.value))
            .with("description", self.description.as_str())
            .with("details", &parts.iter().collect::<ArrayBuf>())
    }
}
