//! One entry of `ops`.

use crate::write_statement::check_modification;
use bunko_bson::{DocumentBuf, DocumentRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::Hint;
use bunko_request::field_kinds::{Field, Kind, NOT_NEGATIVE, field};
use bunko_request::fields::Fields;
use bunko_request::statement::{array_filters, required, required_document, required_value, statement};

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
#[derive(Debug)]
pub(super) struct Operation<'a> {
    pub namespace: usize,
    pub action: Action<'a>,
    /// The entry as the client sent it.
    pub sent: DocumentRef<'a>,
}

#[derive(Debug)]
pub(in crate::commands) enum Action<'a> {
    /// The document to insert.
    Insert(DocumentRef<'a>),
    /// An entry of `updates`, in the form of the `update` command.
    Update(DocumentBuf),
    /// An entry of `deletes`, in the form of the `delete` command.
    Delete(DocumentBuf),
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
            unknown => {
                let message = format!("BSON field 'bulkWrite.ops.{unknown}' is an unknown field.");
                return Err(Failure::new(ErrorCode::IDL_UNKNOWN_FIELD, message));
            }
        };
        let fields = statement("bulkWrite.ops", operation, known)?;
        let namespace = namespace(&fields, name, namespaces)?;
        let action = match name {
            "insert" => Action::Insert(required_document(&fields, "document")?),
            "update" => Action::Update(update(&fields)?),
            _ => Action::Delete(delete(&fields)?),
        };
        Ok(Self { namespace, action, sent: operation })
    }
}

fn namespace(fields: &Fields<'_>, name: &str, namespaces: usize) -> Result<usize> {
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

/// Turns the fields into an entry of `updates`. A wrong type fails the whole command; the contents are checked when the
/// operation runs.
fn update(fields: &Fields<'_>) -> Result<DocumentBuf> {
    let filter = required_document(fields, "filter")?;
    let modification = check_modification(required(fields, "updateMods")?)?;
    for flag in ["multi", "upsert", "upsertSupplied"] {
        fields.strict_boolean(flag, false)?;
    }
    for document in ["constants", "collation", "sort"] {
        fields.document(document)?;
    }
    array_filters(fields)?;
    fields.field("hint").map(Hint::parse).transpose()?;
    let mut update = DocumentBuf::new().with("q", filter).with("u", modification);
    let others = [
        ("multi", "multi"),
        ("upsert", "upsert"),
        ("upsertSupplied", "upsertSupplied"),
        ("arrayFilters", "arrayFilters"),
        ("hint", "hint"),
        ("constants", "c"),
        ("collation", "collation"),
        ("sort", "sort"),
    ];
    for (name, name_there) in others {
        if let Some(value) = fields.field(name) {
            update.append(name_there, value);
        }
    }
    Ok(update)
}

fn delete(fields: &Fields<'_>) -> Result<DocumentBuf> {
    let filter = required_document(fields, "filter")?;
    let limit = i32::from(!fields.strict_boolean("multi", false)?);
    fields.document("collation")?;
    fields.field("hint").map(Hint::parse).transpose()?;
    let mut delete = DocumentBuf::new().with("q", filter).with("limit", limit);
    for name in ["hint", "collation"] {
        if let Some(value) = fields.field(name) {
            delete.append(name, value);
        }
    }
    Ok(delete)
}
