//! One entry of `ops`.

use crate::collation_option::Collation;
use crate::commands::update;
use crate::hint_option::HintOption;
use crate::write_statement::check_modification;
use bunko_bson::{DocumentRef, number};
use bunko_errors::{Failure, Result};
use bunko_query::write::{DeleteStatement, UpdateStatement, Upsert};
use bunko_request::field_kinds::{Field, Kind, NOT_NEGATIVE, field};
use bunko_request::fields::Fields;
use bunko_request::statement::{array_filters, required, required_document, required_value, statement};
use bunko_update::Targets;

const INSERT_FIELDS: &[Field] = &[field("insert", NOT_NEGATIVE), field("document", Kind::Object)];
const UPDATE_FIELDS: &[Field] = &[
    field("update", NOT_NEGATIVE),
    field("filter", Kind::Object),
    field("updateMods", Kind::Own),
    field("multi", Kind::Boolean),
    field("upsert", Kind::Boolean),
    field("upsertSupplied", Kind::Flag),
    field("arrayFilters", Kind::Objects),
    field("hint", Kind::Hint),
    field("constants", Kind::Object),
    field("collation", Kind::Object),
    field("sort", Kind::Object),
];
const DELETE_FIELDS: &[Field] = &[
    field("delete", NOT_NEGATIVE),
    field("filter", Kind::Object),
    field("multi", Kind::Boolean),
    field("hint", Kind::Hint),
    field("collation", Kind::Object),
];

/// One operation, and the position of its namespace in `nsInfo`.
pub(super) struct Operation<'a> {
    pub namespace: usize,
    pub action: Action<'a>,
    /// The entry as the client sent it.
    pub sent: DocumentRef<'a>,
}

pub(in crate::commands) enum Action<'a> {
    /// The document to insert.
    Insert(DocumentRef<'a>),
    /// An update. A failure about the contents of its fields fails the operation, not the command.
    Update(Result<UpdateStatement<'a>>),
    /// A delete, with failures as above.
    Delete(Result<DeleteStatement<'a>>),
}

impl<'a> Operation<'a> {
    /// Parses one entry.
    /// # Errors
    /// `IDLUnknownField` for an unknown operation or field, 40414 for a missing one, `TypeMismatch` and `FailedToParse`
    /// for one of the wrong type, `BadValue` for a namespace that is not among the `namespaces` of `nsInfo`.
    pub fn parse(operation: DocumentRef<'a>, namespaces: usize) -> Result<Self> {
        let (name, known) = match operation.first().map_or("", |first| first.name) {
            "insert" => ("insert", INSERT_FIELDS),
            "update" => ("update", UPDATE_FIELDS),
            "delete" => ("delete", DELETE_FIELDS),
            unknown => return Err(Failure::unknown_field(format_args!("bulkWrite.ops.{unknown}"))),
        };
        let fields = statement("bulkWrite.ops", operation, known)?;
        let namespace = parse_namespace(&fields, name, namespaces)?;
        let action = match name {
            "insert" => Action::Insert(required_document(&fields, "document")?),
            "update" => Action::Update(parse_update(&fields)?),
            _ => Action::Delete(parse_delete(&fields)?),
        };
        Ok(Self { namespace, action, sent: operation })
    }
}

fn parse_namespace(fields: &Fields<'_>, name: &str, namespaces: usize) -> Result<usize> {
    let value = required_value(fields, name)?;
    let Some(position) = number::clamp_to_i64(value) else {
        return Err(fields.mismatch(name, value, "types '[long, int, decimal, double]'"));
    };
    usize::try_from(position).ok().filter(|position| *position < namespaces).ok_or_else(|| {
        Failure::bad_value(format!(
            "BulkWrite ops entry has an invalid nsInfo index {position}: there are {namespaces}"
        ))
    })
}

/// Parses an update. A wrong type fails the whole command; the contents are checked when the operation runs.
fn parse_update<'a>(fields: &Fields<'a>) -> Result<Result<UpdateStatement<'a>>> {
    let filter = required_document(fields, "filter")?;
    let update = check_modification(required(fields, "updateMods")?)?;
    let targets = if fields.strict_boolean("multi", false)? { Targets::Many } else { Targets::One };
    let upsert = if fields.strict_boolean("upsert", false)? { Upsert::Yes } else { Upsert::No };
    let is_supplied = fields.strict_boolean("upsertSupplied", false)?;
    let (constants, sort) = (fields.document("constants")?, fields.document("sort")?);
    let (collation, array_filters) = (Collation::parse(fields)?, array_filters(fields)?.unwrap_or_default());
    let hint = HintOption::parse(fields).read()?;
    let contents = || {
        Ok(UpdateStatement {
            sort: update::single_sort(sort, targets)?,
            supplied: if is_supplied { Some(update::supplied(constants)?) } else { None },
            strings: collation.order()?,
            filter,
            update,
            constants,
            array_filters,
            targets,
            upsert,
            hint,
        })
    };
    Ok(contents())
}

/// As [`parse_update`], for a delete.
fn parse_delete<'a>(fields: &Fields<'a>) -> Result<Result<DeleteStatement<'a>>> {
    let filter = required_document(fields, "filter")?;
    let targets = if fields.strict_boolean("multi", false)? { Targets::Many } else { Targets::One };
    let collation = Collation::parse(fields)?;
    let hint = HintOption::parse(fields).read()?;
    Ok(collation.order().map(|strings| DeleteStatement { filter, targets, strings, hint }))
}
