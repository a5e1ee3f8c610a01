//! The update in an oplog entry: a delta, `$set` and `$unset`, or a whole document.

use super::delta::Delta;
use super::excerpt::excerpt;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, ValueRef, number, order};
use bunko_catalog::stored_document;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_update::{ApplyContext, Insertion, Outcome, ParseContext, Update};
use std::borrow::Cow;

/// An update, as an oplog has it.
#[derive(Debug)]
pub(super) enum Change<'a> {
    /// `{$v: 2, diff: ...}`, since MongoDB 5.0.
    Delta(Delta<'a>),
    /// `{$v: 1, $set: ..., $unset: ...}`, with or without `$v`.
    Operators(Operators),
    /// The whole document.
    Replacement(DocumentBuf),
}

/// The operators of one entry.
#[derive(Debug)]
pub(super) struct Operators {
    all: Update,
    document: DocumentBuf,
}

/// The context of an update's operators. `$set` and `$unset` do not read the time, so it is 0.
fn context(operation: &OperationContext) -> ApplyContext<'_> {
    ApplyContext {
        matched_position: None,
        now_ms: 0,
        timestamp: Timestamp { seconds: 0, increment: 0 },
        insert: Insertion::No,
        operation,
    }
}

impl<'a> Change<'a> {
    /// Reads the `o` of an update of the document with that `_id`.
    /// # Errors
    /// `FailedToParse` for another version or another operator; errors of a malformed delta or path; `ImmutableField`
    /// for a replacement with another `_id`.
    pub fn parse(object: DocumentRef<'a>, id: ValueRef<'_>) -> Result<Self> {
        let version = object.get("$v");
        match version.map(number::as_i64_exact) {
            Some(Some(2)) => match object.get("diff") {
                Some(ValueRef::Document(diff)) => Delta::parse(diff).map(Self::Delta),
                _ => Err(refused("a delta update has no object 'diff'", object)),
            },
            Some(Some(1)) => Operators::parse(object).map(Self::Operators),
            Some(_) => Err(refused("unknown version of an update", object)),
            None if object.first().is_some_and(|first| first.name.starts_with('$')) => {
                Operators::parse(object).map(Self::Operators)
            }
            None => replacement(object, id).map(Self::Replacement),
        }
    }

    /// The document after the update.
    /// # Errors
    /// `ImmutableField` for another `_id`; errors of a document that cannot be stored.
    pub fn apply<'d>(&'d self, document: DocumentRef<'d>, operation: &OperationContext) -> Result<Cow<'d, [u8]>> {
        match self {
            Self::Replacement(replacement) => Ok(Cow::Borrowed(replacement.as_ref().as_bytes())),
            Self::Operators(operators) => operators.apply(document, operation),
            Self::Delta(delta) => {
                let next = delta.apply(document)?;
                check_id(document.get("_id").unwrap_or(ValueRef::Null), next.as_ref())?;
                stored_document::as_stored_elsewhere(next.as_ref()).map(|stored| Cow::Owned(stored.into_owned()))
            }
        }
    }

    /// The document that an upsert inserts if none has that `_id`; `None` for a delta, which has only part of the
    /// document.
    /// # Errors
    /// As [`Self::apply`].
    pub fn inserted(&self, id: ValueRef<'_>, operation: &OperationContext) -> Result<Option<Vec<u8>>> {
        match self {
            Self::Delta(_) => Ok(None),
            Self::Operators(_) | Self::Replacement(_) => {
                let base = DocumentBuf::new().with("_id", id);
                Ok(Some(self.apply(base.as_ref(), operation)?.into_owned()))
            }
        }
    }
}

fn refused(what: &str, object: DocumentRef<'_>) -> Failure {
    Failure::failed_to_parse(format!("{what}: {}", excerpt(object)))
}

fn replacement(object: DocumentRef<'_>, id: ValueRef<'_>) -> Result<DocumentBuf> {
    if object.get("_id").is_none() {
        let mut whole = DocumentBuf::new().with("_id", id);
        whole.extend(object);
        stored_document::as_stored_elsewhere(whole.as_ref())?;
        return Ok(whole);
    }
    check_id(id, object)?;
    Ok(DocumentBuf::from_trusted(stored_document::as_stored_elsewhere(object)?.into_owned()))
}

fn check_id(id: ValueRef<'_>, next: DocumentRef<'_>) -> Result<()> {
    if next.get("_id").is_some_and(|next| order::equal(id, next)) {
        return Ok(());
    }
    let message = format!("an update of the document with the _id {} would change it", ValueText(id));
    Err(Failure::new(ErrorCode::IMMUTABLE_FIELD, message))
}

impl Operators {
    fn parse(object: DocumentRef<'_>) -> Result<Self> {
        let mut document = DocumentBuf::new();
        for operator in object.iter().filter(|operator| operator.name != "$v") {
            // Other operators may give another result when applied twice, so no oplog has them.
            if !matches!(operator.name, "$set" | "$unset") {
                let what = format!("an oplog's update has no '{}', but only $set and $unset", operator.name);
                return Err(refused(&what, object));
            }
            document.append(operator.name, operator.value);
        }
        if document.as_ref().is_empty() {
            return Err(refused("an update without operators", object));
        }
        let all = Update::parse((&document).into(), &ParseContext::plain())?;
        Ok(Self { all, document })
    }

    fn apply<'d>(&self, document: DocumentRef<'d>, operation: &OperationContext) -> Result<Cow<'d, [u8]>> {
        match self.all.apply(document, &context(operation)) {
            Ok(Outcome::Unchanged) => Ok(Cow::Borrowed(document.as_bytes())),
            Ok(Outcome::Changed(next)) => Ok(Cow::Owned(next.into_bytes())),
            Err(failure) if failure.code() == ErrorCode::PATH_NOT_VIABLE => {
                self.apply_where_viable(document, operation).map(|next| Cow::Owned(next.into_bytes()))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Applies each path alone. The document may have later changes already, with a scalar in the way of an earlier
    /// path; such a path is skipped.
    fn apply_where_viable(&self, document: DocumentRef<'_>, operation: &OperationContext) -> Result<DocumentBuf> {
        let mut next = document.to_owned();
        for operator in self.document.as_ref() {
            let fields = operator.value.as_document().unwrap_or(DocumentRef::EMPTY);
            for field in fields {
                let one = DocumentBuf::new().with(field.name, field.value);
                let one = DocumentBuf::new().with(operator.name, &one);
                match Update::parse((&one).into(), &ParseContext::plain())?.apply(next.as_ref(), &context(operation)) {
                    Ok(Outcome::Unchanged) => {}
                    Ok(Outcome::Changed(changed)) => next = changed,
                    Err(failure) if failure.code() == ErrorCode::PATH_NOT_VIABLE => {}
                    Err(failure) => return Err(failure),
                }
            }
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::shell;

    fn applied(document: &str, object: &str) -> String {
        let parse = |text: &str| shell::parse_document(text).expect("shell syntax");
        let (document, object) = (parse(document), parse(object));
        let id = document.as_ref().get("_id").expect("an id");
        let operation = OperationContext::unlimited();
        let outcome = Change::parse(object.as_ref(), id).and_then(|change| {
            let once = change.apply(document.as_ref(), &operation)?.into_owned();
            let twice = change.apply(DocumentRef::trusted(&once), &operation)?.into_owned();
            assert_eq!(once, twice, "{object:?}");
            Ok(shell::print(ValueRef::Document(DocumentRef::trusted(&once))))
        });
        outcome.unwrap_or_else(|failure| failure.to_string())
    }

    #[test]
    fn all_kinds_of_updates_change_a_document_once() {
        for (object, expected) in [
            ("{$set: {b: 1, a: 2}}", "{_id: 1, x: {y: 1}, a: 2, b: 1}"),
            ("{$v: 1, $set: {'x.z': 2}, $unset: {'x.y': true}}", "{_id: 1, x: {z: 2}}"),
            ("{$v: NumberInt(2), diff: {sx: {u: {y: 5}}, i: {b: 1}}}", "{_id: 1, x: {y: 5}, b: 1}"),
            ("{_id: 1, z: Timestamp(0, 0)}", "{_id: 1, z: Timestamp(0, 0)}"),
            ("{z: 9}", "{_id: 1, z: 9}"),
            ("{}", "{_id: 1}"),
        ] {
            assert_eq!(applied("{_id: 1, x: {y: 1}}", object), expected, "{object}");
        }
    }

    #[test]
    fn paths_that_a_later_change_has_closed_are_passed_over_alone() {
        assert_eq!(
            applied("{_id: 1, a: 5, c: 1}", "{$set: {'a.b': 1, c: 2}, $unset: {'a.x': 1}}"),
            "{_id: 1, a: 5, c: 2}"
        );
    }

    #[test]
    fn changes_that_no_oplog_has_are_refused() {
        for (object, part) in [
            ("{$inc: {a: 1}}", "has no '$inc'"),
            ("{$set: {a: 1}, b: 1}", "has no 'b'"),
            ("{$v: 1}", "without operators"),
            ("{$v: 3, diff: {}}", "unknown version"),
            ("{$v: 2}", "no object 'diff'"),
            ("{_id: 2, a: 1}", "ImmutableField"),
            ("{$set: {_id: 2}}", "ImmutableField"),
            ("{$v: 2, diff: {u: {_id: 2}}}", "ImmutableField"),
            ("{$v: 2, diff: {d: {_id: false}}}", "ImmutableField"),
        ] {
            let outcome = applied("{_id: 1}", object);
            assert!(outcome.contains(part), "{object}: {outcome}");
        }
    }

    #[test]
    fn an_upsert_needs_more_than_a_delta() {
        let id = ValueRef::Int32(7);
        let inserted = |object: &str| {
            let object = shell::parse_document(object).expect("shell syntax");
            let inserted = Change::parse(object.as_ref(), id)
                .and_then(|change| change.inserted(id, &OperationContext::unlimited()))
                .expect("applicable");
            inserted.map(|bytes| shell::print(ValueRef::Document(DocumentRef::trusted(&bytes))))
        };
        assert_eq!(inserted("{$set: {'a.b': 1}}").as_deref(), Some("{_id: 7, a: {b: 1}}"));
        assert_eq!(inserted("{_id: 7, a: 1}").as_deref(), Some("{_id: 7, a: 1}"));
        assert_eq!(inserted("{$v: 2, diff: {u: {a: 1}}}"), None);
    }
}
