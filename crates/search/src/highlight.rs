//! Highlights: the matching words in the texts of a document.

use crate::evaluation::{Cut, Evaluation};
use crate::operators::Clause;
use crate::paths::{self, Path, TextField, text_fields};
use crate::schema::Schema;
use crate::unit::Unit;
use crate::{Reader, Refusal};
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_errors::Result;
use unicode_segmentation::UnicodeSegmentation;

/// The options of `highlight`.
#[derive(Debug)]
pub(crate) struct Highlight {
    paths: Vec<Path>,
    /// Maximum number of characters of a text that are searched.
    characters_max: usize,
    /// Maximum number of sentences that are returned per field.
    passages_max: usize,
}

/// A sentence with searched words.
struct Passage {
    score: f32,
    /// The range of each searched word, in bytes.
    hits: Vec<(usize, usize)>,
    /// The range of the sentence, in bytes.
    start: usize,
    end: usize,
    /// Index of the field's value that contains it.
    value: usize,
}

impl Highlight {
    pub fn parse(reader: &Reader<'_>) -> Result<Self> {
        let paths = paths::parse(reader)?;
        let most = i64::from(i32::MAX);
        let characters_max = reader.integer_within("maxCharsToExamine", 1, most)?.unwrap_or(500_000) as usize;
        let passages_max = reader.integer_within("maxNumPassages", 1, most)?.unwrap_or(5) as usize;
        reader.done()?;
        Ok(Self { paths, characters_max, passages_max })
    }

    /// Refuses a path whose field is not indexed for highlights.
    /// # Errors
    /// `UnknownError`.
    pub fn check(&self, schema: &Schema) -> Result<()> {
        for path in self.paths.iter().filter(|path| !path.is_wildcard) {
            let own = schema.types(&path.name).string();
            let string = own.and_then(|own| path.multi.as_ref().map_or(Some(own), |multi| own.multi.get(multi)));
            if string.is_some_and(|string| !string.can_be_highlighted()) {
                let message =
                    format!("cannot highlight path \"{}\": it is not indexed with \"store\" and offsets", path.name);
                return Err(Refusal::Query.failure(message));
            }
        }
        Ok(())
    }

    /// Finds the passages of a document in which `clause` marks words.
    pub fn of(&self, unit: &Unit<'_>, clause: &Clause, evaluation: &Evaluation) -> Result<ArrayBuf> {
        let mut told = Vec::new();
        let fields = text_fields(unit, &self.paths, &evaluation.operation)?;
        for field in fields.into_iter().filter(|field| field.string.can_be_highlighted()) {
            let texts: Vec<&str> = unit.values(&field.path).filter_map(|field| field.value.as_str()).collect();
            let mut passages = Vec::new();
            for (number, text) in texts.iter().enumerate() {
                passages.extend(self.passages(number, text, &field, clause, evaluation)?);
            }
            passages.sort_by(|one, other| other.score.total_cmp(&one.score));
            passages.truncate(self.passages_max);
            passages.sort_by_key(|passage| (passage.value, passage.start));
            told.extend(passages.iter().map(|passage| passage.tell(&field, texts[passage.value])));
        }
        Ok(told.iter().collect())
    }

    fn passages(
        &self,
        value: usize,
        text: &str,
        field: &TextField<'_>,
        clause: &Clause,
        evaluation: &Evaluation,
    ) -> Result<Vec<Passage>> {
        let end = text.char_indices().nth(self.characters_max).map_or(text.len(), |(at, _)| at);
        let text = &text[..end];
        let cut = Cut::of(evaluation.schema.of_documents(field.string)?.analyze(text, &evaluation.operation)?);
        let mut marks = vec![false; cut.tokens.len()];
        clause.operator.mark(field, &cut, evaluation, &mut marks)?;
        let mut hits: Vec<(usize, usize)> = cut
            .tokens
            .iter()
            .zip(&marks)
            .filter(|(_, mark)| **mark)
            .map(|(token, _)| (token.start, token.end))
            .collect();
        if hits.is_empty() {
            return Ok(Vec::new());
        }
        // A text may have as many sentences as hits, so each hit is handled with its own sentence.
        evaluation.operation.work(hits.len())?;
        hits.sort_unstable();
        hits.dedup();
        let mut hits = hits.into_iter().peekable();
        let mut passages = Vec::new();
        for (start, sentence) in text.split_sentence_bound_indices() {
            let end = start + sentence.len();
            evaluation.operation.work(1 + sentence.len() / 16)?;
            let begun = std::iter::from_fn(|| hits.next_if(|(from, _)| *from < end));
            let hits: Vec<(usize, usize)> = begun.filter(|(from, to)| *from >= start && *to <= end).collect();
            if hits.is_empty() {
                continue;
            }
            let share = hits.len() as f32 / (1.0 + sentence.chars().count() as f32 / 87.0);
            passages.push(Passage { score: 1.0 + share.ln_1p(), hits, start, end, value });
        }
        Ok(passages)
    }
}

impl Passage {
    fn tell(&self, field: &TextField<'_>, text: &str) -> DocumentBuf {
        let mut texts = Vec::new();
        let piece =
            |from: usize, to: usize, kind: &str| DocumentBuf::new().with("value", &text[from..to]).with("type", kind);
        let mut at = self.start;
        for (from, to) in &self.hits {
            if *from < at {
                continue;
            }
            if *from > at {
                texts.push(piece(at, *from, "text"));
            }
            texts.push(piece(*from, *to, "hit"));
            at = *to;
        }
        if at < self.end {
            texts.push(piece(at, self.end, "text"));
        }
        let texts: ArrayBuf = texts.iter().collect();
        let told = DocumentBuf::new().with("score", f64::from(self.score));
        let told = match field.key.split_once('\0') {
            Some((path, multi)) => told.with("path", &DocumentBuf::new().with("value", path).with("multi", multi)),
            None => told.with("path", ValueRef::String(&field.path)),
        };
        told.with("texts", &texts)
    }
}
