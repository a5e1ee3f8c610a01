//! Words of fields for autocompletion.

use crate::analysis::Token;
use crate::schema::Schema;
use crate::unit::Field;
use crate::{Autocomplete, FieldType, StringField};
use bunko_errors::Result;
use bunko_operation::OperationContext;

/// The field for autocompletion among the types of a path.
pub(crate) fn field(types: &[FieldType]) -> Option<&Autocomplete> {
    types.iter().find_map(|kind| match kind {
        FieldType::Autocomplete(field) => Some(field),
        _ => None,
    })
}

/// Splits a text into words, before their parts are taken.
pub(crate) fn cut_words(
    field: &Autocomplete,
    text: &str,
    schema: &Schema,
    operation: &OperationContext,
) -> Result<Vec<Token>> {
    operation.work(1 + text.len() / 16)?;
    let usual = StringField { analyzer: field.analyzer.clone(), ..StringField::usual() };
    let mut tokens = schema.of_documents(&usual)?.analyze(text, operation)?;
    for token in &mut tokens {
        operation.work(1 + token.text.len() / 16)?;
        token.text = crate::analysis::lower(&token.text);
        if field.folds {
            token.text = crate::analysis::plain(&token.text);
        }
    }
    Ok(tokens)
}

/// The words of a string of a document, if its field is one for autocompletion.
/// # Errors
/// Errors of counting work.
pub(crate) fn words<'f>(
    value: &Field<'f>,
    text: &str,
    schema: &Schema,
    operation: &OperationContext,
) -> Result<Option<(&'f Autocomplete, Vec<Token>)>> {
    let Some(field) = field(value.types.mapped()) else { return Ok(None) };
    Ok(Some((field, cut_words(field, text, schema, operation)?)))
}
