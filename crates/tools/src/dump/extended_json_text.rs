//! BSON inside the state file's JSON: strings of canonical Extended JSON, which serde reads as nothing else.

use bunko_bson::extended_json::{parse_value, to_canonical};
use bunko_bson::{DocumentBuf, Value};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) mod value {
    use super::{Deserialize, Deserializer, Error, Serializer, Value, parse_value, to_canonical};

    pub(in crate::dump) fn serialize<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&to_canonical(value.as_ref()))
    }

    pub(in crate::dump) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        parse_value(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

// serde passes a reference to the field.
#[allow(clippy::ref_option)]
pub(super) mod optional_value {
    use super::{Deserialize, Deserializer, Error, Serialize, Serializer, Value, parse_value, to_canonical};

    pub(in crate::dump) fn serialize<S: Serializer>(value: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
        value.as_ref().map(|value| to_canonical(value.as_ref())).serialize(serializer)
    }

    pub(in crate::dump) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| parse_value(&text)).transpose().map_err(D::Error::custom)
    }
}

#[allow(clippy::ref_option)]
pub(super) mod optional_document {
    use super::{Deserializer, DocumentBuf, Error, Serializer, Value, optional_value};

    pub(in crate::dump) fn serialize<S: Serializer>(
        document: &Option<DocumentBuf>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        optional_value::serialize(&document.clone().map(Value::Document), serializer)
    }

    pub(in crate::dump) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<DocumentBuf>, D::Error> {
        match optional_value::deserialize(deserializer)? {
            None => Ok(None),
            Some(Value::Document(document)) => Ok(Some(document)),
            Some(other) => Err(D::Error::custom(format!("{other:?} is not a document"))),
        }
    }
}
