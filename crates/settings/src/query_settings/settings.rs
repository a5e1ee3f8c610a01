//! Parses the `settings` of `setQuerySettings`.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::{AllowedIndexes, Hint, QuerySettings};
use bunko_request::fields::{truth, wrong_type};

/// The path of the settings in messages.
const PLACE: &str = "setQuerySettings.settings";

/// The settings of a shape. An update leaves settings that it does not mention unchanged.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    index_hints: Option<ArrayBuf>,
    query_framework: Option<String>,
    reject: Option<bool>,
    comment: Option<Value>,
}

impl Settings {
    /// Parses the settings of a command.
    /// # Errors
    /// 8727502 for an empty document; `IDLUnknownField`, `IDLFailedToParse`, `TypeMismatch`, `BadValue`; 8727500 and
    /// 8727501 for index hints without a collection; 7746608 for two hints on one collection.
    pub fn parse(document: DocumentRef<'_>) -> Result<Self> {
        if document.is_empty() {
            return Err(Failure::new(ErrorCode(8_727_502), "settings field in setQuerySettings cannot be empty"));
        }
        let mut settings = Self::default();
        for element in document {
            match element.name {
                "indexHints" => settings.index_hints = Some(index_hints(element.value)?),
                "queryFramework" => settings.query_framework = Some(query_framework(element.value)?),
                "reject" => match element.value {
                    ValueRef::Boolean(_)
                    | ValueRef::Int32(_)
                    | ValueRef::Int64(_)
                    | ValueRef::Double(_)
                    | ValueRef::Decimal128(_) => settings.reject = Some(truth(element.value)),
                    other => return Err(wrong_type(&format!("{PLACE}.reject"), other, "bool")),
                },
                "comment" => settings.comment = Some(element.value.to_value()),
                other => return Err(unknown(PLACE, other)),
            }
        }
        Ok(settings)
    }

    /// These settings, completed from `before`.
    /// # Errors
    /// 7746604 if the result changes nothing.
    pub fn over(self, before: Option<&Self>) -> Result<Self> {
        let before = before.cloned().unwrap_or_default();
        let hints = self.index_hints.or(before.index_hints).filter(|hints| !hints.as_ref().is_empty());
        let merged = Self {
            index_hints: hints,
            query_framework: self.query_framework.or(before.query_framework),
            reject: self.reject.or(before.reject).filter(|rejects| *rejects),
            comment: self.comment.or(before.comment),
        };
        if merged.index_hints.is_none() && merged.query_framework.is_none() && merged.reject.is_none() {
            let message = "the resulting settings cannot be empty or contain only default values";
            return Err(Failure::new(ErrorCode(7_746_604), message));
        }
        Ok(merged)
    }

    /// Whether commands of the shape are rejected.
    pub fn rejects(&self) -> bool {
        self.reject == Some(true)
    }

    /// The document that is stored and shown.
    pub fn to_document(&self) -> DocumentBuf {
        let mut document = DocumentBuf::new();
        if let Some(hints) = &self.index_hints {
            document.append("indexHints", hints);
        }
        if let Some(framework) = &self.query_framework {
            document.append("queryFramework", framework.as_str());
        }
        if let Some(rejects) = self.reject {
            document.append("reject", rejects);
        }
        if let Some(comment) = &self.comment {
            document.append("comment", comment);
        }
        document
    }

    /// The settings as the planner uses them.
    pub fn for_planner(&self) -> QuerySettings {
        let hints = self.index_hints.iter().flat_map(|hints| hints.as_ref().iter().filter_map(ValueRef::as_document));
        QuerySettings { document: self.to_document(), allowed: hints.filter_map(allowed).collect() }
    }
}

fn unknown(place: &str, name: &str) -> Failure {
    Failure::unknown_field(format_args!("{place}.{name}"))
}

fn missing(place: &str) -> Failure {
    Failure::missing_field(place)
}

fn query_framework(value: ValueRef<'_>) -> Result<String> {
    let place = format!("{PLACE}.queryFramework");
    match value {
        ValueRef::String(name @ ("classic" | "sbe")) => Ok(name.to_owned()),
        ValueRef::String(other) => {
            Err(Failure::bad_value(format!("Enumeration value '{other}' for field '{place}' is not a valid value.")))
        }
        other => Err(wrong_type(&place, other, "string")),
    }
}

/// Parses the hints. Hints that allow no index are dropped.
fn index_hints(value: ValueRef<'_>) -> Result<ArrayBuf> {
    let place = format!("{PLACE}.indexHints");
    let given: Vec<ValueRef<'_>> = match value {
        ValueRef::Array(hints) => hints.iter().collect(),
        ValueRef::Document(_) => vec![value],
        other => return Err(Failure::wrong_type(place, other, "types '[array, object]'")),
    };
    let mut kept = ArrayBuf::new();
    let mut namespaces = Vec::new();
    for hint in given {
        let hint = hint.as_document().ok_or_else(|| wrong_type(&place, hint, "object"))?;
        let (database, collection, indexes) = index_hint(&place, hint)?;
        let namespace = format!("{database}.{collection}");
        if namespaces.contains(&namespace) {
            let message =
                format!("setQuerySettings cannot have more than one index hint for the collection {namespace}");
            return Err(Failure::new(ErrorCode(7_746_608), message));
        }
        namespaces.push(namespace);
        if !indexes.as_ref().is_empty() {
            let namespace = DocumentBuf::new().with("db", database).with("coll", collection);
            kept.push(&DocumentBuf::new().with("ns", &namespace).with("allowedIndexes", &indexes));
        }
    }
    Ok(kept)
}

fn index_hint<'a>(place: &str, hint: DocumentRef<'a>) -> Result<(&'a str, &'a str, ArrayBuf)> {
    if let Some(other) = hint.iter().find(|field| !matches!(field.name, "ns" | "allowedIndexes")) {
        return Err(unknown(place, other.name));
    }
    let required = |name: &str| {
        let value = hint.get(name).filter(|value| !value.is_nullish());
        value.ok_or_else(|| missing(&format!("{place}.{name}")))
    };
    let namespace = required("ns")?;
    let namespace = namespace.as_document().ok_or_else(|| wrong_type(&format!("{place}.ns"), namespace, "object"))?;
    if let Some(other) = namespace.iter().find(|field| !matches!(field.name, "db" | "coll")) {
        return Err(unknown(&format!("{place}.ns"), other.name));
    }
    let part = |name: &str, code: i32| match namespace.get(name).filter(|value| !value.is_nullish()) {
        Some(ValueRef::String(part)) if !part.is_empty() => Ok(part),
        None | Some(ValueRef::String(_)) => {
            Err(Failure::new(ErrorCode(code), format!("'{name}' of the namespace of index hints must be given")))
        }
        Some(other) => Err(wrong_type(&format!("{place}.ns.{name}"), other, "string")),
    };
    let (database, collection) = (part("db", 8_727_500)?, part("coll", 8_727_501)?);
    let indexes = required("allowedIndexes")?;
    let place = format!("{place}.allowedIndexes");
    let indexes = indexes.as_array().ok_or_else(|| wrong_type(&place, indexes, "array"))?;
    let mut kept = ArrayBuf::new();
    for index in indexes.iter() {
        let is_meant = match index {
            ValueRef::String(name) => !name.is_empty(),
            ValueRef::Document(_) => Hint::parse(index)?.is_some(),
            other => return Err(Failure::wrong_type(place, other, "types '[object, string]'")),
        };
        if !is_meant {
            return Err(Failure::bad_value(format!(
                "'{place}' must hold names of indexes or key patterns that are not empty"
            )));
        }
        kept.push(index);
    }
    Ok((database, collection, kept))
}

/// A checked hint, as the planner uses it.
fn allowed(hint: DocumentRef<'_>) -> Option<AllowedIndexes> {
    let namespace = hint.get("ns")?.as_document()?;
    let namespace = format!("{}.{}", namespace.get("db")?.as_str()?, namespace.get("coll")?.as_str()?);
    let indexes = hint.get("allowedIndexes")?.as_array()?;
    Some(AllowedIndexes { namespace, hints: indexes.iter().filter_map(|index| Hint::parse(index).ok()?).collect() })
}
