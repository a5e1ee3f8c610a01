//! `collMod`'s `index`: finds the index and changes it.

use crate::invocation::Invocation;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer, number, order};
use bunko_catalog::{Collection, Conversion, ID_INDEX, Index};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::wrong_type;
use bunko_series::bucket_key;
use bunko_timeseries::TimeSeries;
use std::sync::Arc;

/// The value of `index`.
pub(super) struct IndexChange<'a> {
    name: Option<&'a str>,
    key_pattern: Option<DocumentRef<'a>>,
    expire_after_seconds: Option<ValueRef<'a>>,
    hidden: Option<bool>,
    unique: Option<bool>,
    prepare_unique: Option<bool>,
}

impl<'a> IndexChange<'a> {
    /// Reads the value.
    /// # Errors
    /// `TypeMismatch`, `IDLUnknownField`.
    pub fn parse(index: DocumentRef<'a>) -> Result<Self> {
        let mut change = Self {
            name: None,
            key_pattern: None,
            expire_after_seconds: None,
            hidden: None,
            unique: None,
            prepare_unique: None,
        };
        for element in index {
            let (value, place) = (element.value, format!("collMod.index.{}", element.name));
            let is_given = !value.is_nullish();
            match element.name {
                "name" if is_given => {
                    change.name = Some(value.as_str().ok_or_else(|| wrong_type(&place, value, "string"))?);
                }
                "keyPattern" if is_given => {
                    change.key_pattern = Some(value.as_document().ok_or_else(|| wrong_type(&place, value, "object"))?);
                }
                "expireAfterSeconds" if is_given => {
                    if !value.is_number() {
                        return Err(wrong_type(&place, value, "long"));
                    }
                    change.expire_after_seconds = Some(value);
                }
                "hidden" if is_given => change.hidden = Some(flag(&place, value)?),
                "unique" if is_given => change.unique = Some(flag(&place, value)?),
                "prepareUnique" if is_given => change.prepare_unique = Some(flag(&place, value)?),
                "name" | "keyPattern" | "expireAfterSeconds" | "hidden" | "unique" | "prepareUnique" => {}
                _ => return Err(Failure::unknown_field(place)),
            }
        }
        Ok(change)
    }

    /// Whether the only change is that the index becomes unique. A dry run supports no other change.
    pub fn only_converts_to_unique(&self) -> bool {
        self.unique == Some(true) && self.changes() == 1
    }

    /// Refuses changes that the indexes of a time series do not support.
    /// # Errors
    /// `InvalidOptions`; `IndexNotFound` for the index on `_id`.
    pub fn check_of_series(&self) -> Result<()> {
        if self.unique.is_some() || self.prepare_unique.is_some() || self.expire_after_seconds.is_some() {
            return Err(invalid("indexes of time-series collections are not unique and expire nothing"));
        }
        // The `_id` index of the buckets is not an index of the time series.
        match self.name {
            Some(ID_INDEX) => Err(Failure::new(ErrorCode::INDEX_NOT_FOUND, format!("cannot find index {ID_INDEX}"))),
            _ => Ok(()),
        }
    }

    /// The key pattern of the index of buckets, if the command gives the key pattern of an index of measurements.
    /// # Errors
    /// `IndexNotFound` for a key pattern that no index of measurements can have.
    pub fn bucket_key(&self, series: &TimeSeries) -> Result<Option<DocumentBuf>> {
        let key = self.key_pattern.map(|key| bucket_key(key, series)).transpose();
        key.map_err(|failure| Failure::new(ErrorCode::INDEX_NOT_FOUND, failure.message().to_owned()))
    }

    /// The change, with another key pattern.
    pub fn by_key<'k>(&'k self, key_pattern: Option<DocumentRef<'k>>) -> IndexChange<'k> {
        IndexChange { key_pattern, ..*self }
    }

    /// Makes the change, or only tries it, and appends the old and new values to the reply.
    /// # Errors
    /// `InvalidOptions`, `BadValue`, `IndexNotFound`, `AmbiguousIndexKeyPattern`; `CannotConvertIndexToUnique`; 6011800
    /// for hiding the clustered index.
    pub fn run(
        &self,
        invocation: &mut Invocation<'_>,
        collection: &Collection,
        conversion: Conversion,
        reply: &mut Writer<'_>,
    ) -> Result<()> {
        let index = self.find(collection)?;
        if self.hidden.is_some() && index.is_clustered {
            return Err(Failure::new(ErrorCode(6_011_800), "Cannot hide or unhide the clustered index"));
        }
        if self.unique == Some(false) {
            return Err(Failure::bad_value("Cannot make index non-unique"));
        }
        if self.hidden == Some(true) && index.is_id() {
            return Err(Failure::bad_value("can't hide _id index"));
        }
        if self.hidden == Some(true) && collection.namespace().is_of_system() {
            return Err(Failure::bad_value("can't hide index on system collection"));
        }
        // `prepareUnique` does not concern an index that is unique already.
        let is_change = |prepares: &bool| *prepares != index.prepares_unique && !index.is_unique;
        let prepare_unique = self.prepare_unique.filter(is_change);
        if prepare_unique.is_some() && self.changes() > 1 {
            return Err(invalid("cannot combine a change of prepareUnique with another one of the same index"));
        }
        if self.unique == Some(true) && !index.is_unique {
            let catalog = &invocation.service.catalog;
            let lsn = catalog.convert_to_unique(collection, &index, conversion, &*invocation)?;
            invocation.note_written(lsn);
            if conversion == Conversion::Done {
                reply.append("unique_new", true);
            }
            return self.rest().map_or(Ok(()), |rest| rest.run(invocation, collection, conversion, reply));
        }
        let mut options = DocumentBuf::new();
        if let Some(value) = self.expire_after_seconds {
            let seconds = expiry(&index, value)?;
            options.append("expireAfterSeconds", seconds);
            if let Some(before) = index.expire_after_seconds {
                reply.append("expireAfterSeconds_old", i64::from(before));
            }
            reply.append("expireAfterSeconds_new", i64::from(seconds));
        }
        if let Some(is_hidden) = self.hidden.filter(|is_hidden| *is_hidden != index.is_hidden) {
            options.append("hidden", is_hidden);
            reply.append("hidden_old", index.is_hidden).append("hidden_new", is_hidden);
        }
        if let Some(prepares) = prepare_unique {
            options.append("prepareUnique", if prepares { ValueRef::Boolean(true) } else { ValueRef::Null });
            reply.append("prepareUnique_old", index.prepares_unique).append("prepareUnique_new", prepares);
        }
        if options.as_ref().is_empty() || conversion == Conversion::Tried {
            return Ok(());
        }
        let catalog = &invocation.service.catalog;
        let lsn = catalog.respecify_index(collection, &index.name, options.as_ref(), &*invocation)?;
        invocation.note_written(Some(lsn));
        if options.as_ref().get("hidden").is_some() {
            note_counted_since_now(invocation, collection, &index.name);
        }
        Ok(())
    }

    fn find(&self, collection: &Collection) -> Result<Arc<Index>> {
        let indexes = collection.ready_indexes();
        let (found, shown) = match (self.name, self.key_pattern) {
            (Some(_), Some(_)) => return Err(invalid("Cannot specify both key pattern and name.")),
            (None, None) => return Err(invalid("must specify either index name or key pattern")),
            _ if self.changes() == 0 => {
                return Err(invalid("no expireAfterSeconds, hidden, unique, or prepareUnique field"));
            }
            (Some(name), None) => (indexes.into_iter().find(|index| index.name == name), name.to_owned()),
            (None, Some(pattern)) => {
                let is_meant = |index: &Arc<Index>| order::compare_documents(index.key_pattern(), pattern).is_eq();
                let mut meant: Vec<_> = indexes.into_iter().filter(is_meant).collect();
                if meant.len() > 1 {
                    return Err(ambiguous(pattern, &meant));
                }
                (meant.pop(), ValueText(ValueRef::Document(pattern)).to_string())
            }
        };
        found.ok_or_else(|| {
            let namespace = collection.namespace();
            Failure::new(ErrorCode::INDEX_NOT_FOUND, format!("cannot find index {shown} for ns {namespace}"))
        })
    }

    /// The changes that are left once the index is unique; `None` if none are left.
    fn rest(&self) -> Option<Self> {
        let rest = Self { unique: None, prepare_unique: None, ..*self };
        (rest.changes() > 0).then_some(rest)
    }

    /// The number of properties to change.
    fn changes(&self) -> usize {
        let given = [
            self.expire_after_seconds.is_some(),
            self.hidden.is_some(),
            self.unique.is_some(),
            self.prepare_unique.is_some(),
        ];
        given.into_iter().filter(|is_given| *is_given).count()
    }
}

/// Restarts the use counts in `$indexStats` of an index that was hidden or shown.
fn note_counted_since_now(invocation: &Invocation<'_>, collection: &Collection, name: &str) {
    let indexes = collection.indexes();
    if let Some(index) = indexes.iter().find(|index| index.name == name) {
        index.note_counted_since(invocation.service.world.now_ms());
    }
}

/// The error for a key pattern that several indexes have.
fn ambiguous(pattern: DocumentRef<'_>, meant: &[Arc<Index>]) -> Failure {
    let conflicting: Vec<_> =
        meant.iter().map(|index| ValueText(ValueRef::Document(index.document.as_ref())).to_string()).collect();
    let message = format!(
        "index keyPattern {} matches {} indexes, must use index name. Conflicting indexes: {}",
        ValueText(ValueRef::Document(pattern)),
        meant.len(),
        conflicting.join(", ")
    );
    Failure::new(ErrorCode::AMBIGUOUS_INDEX_KEY_PATTERN, message)
}

/// The expiry in seconds. Values above the largest `i32` count as the largest.
fn expiry(index: &Index, value: ValueRef<'_>) -> Result<i32> {
    if index.is_id() || index.key_pattern().iter().count() > 1 {
        return Err(invalid("TTL indexes are single-field indexes, compound indexes do not support TTL"));
    }
    let seconds = number::clamp_to_i64(value).unwrap_or(0);
    if seconds < 0 {
        return Err(invalid("TTL index 'expireAfterSeconds' option cannot be less than 0"));
    }
    Ok(i32::try_from(seconds).unwrap_or(i32::MAX))
}

fn invalid(message: &str) -> Failure {
    Failure::new(ErrorCode::INVALID_OPTIONS, message)
}

/// A boolean, or a number in place of one.
fn flag(place: &str, value: ValueRef<'_>) -> Result<bool> {
    match value {
        ValueRef::Boolean(flag) => Ok(flag),
        value => number::as_f64(value).map(|number| number != 0.0).ok_or_else(|| wrong_type(place, value, "bool")),
    }
}
