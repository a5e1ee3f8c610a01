//! The parameters of `setClusterParameter`, with their defaults. Values that were set are kept in
//! `config.clusterParameters`, as in MongoDB.

use crate::parameters::Parameters;
use bunko_bson::{DocumentBuf, DocumentRef, Value, ValueRef, number};
use bunko_errors::{Failure, Result};
use bunko_matcher::Filter;
use bunko_request::fields::wrong_type;
use bunko_request::secret_names::shown_text;

/// The database that keeps the values.
pub const DATABASE: &str = "config";
/// The collection that keeps the values.
pub const COLLECTION: &str = "clusterParameters";

/// The parameter that limits the time of reads.
pub const DEFAULT_MAX_TIME: &str = "defaultMaxTimeMS";

/// The parameter that limits how long documents before a change are shown.
pub const CHANGE_STREAM_OPTIONS: &str = "changeStreamOptions";

/// The parameter that chooses the events of the audit log. It exists only with an audit log.
pub const AUDIT_CONFIG: &str = "auditConfig";

/// A parameter: a document with fixed fields.
pub struct ClusterParameter {
    /// The parameter's name.
    pub name: &'static str,
    fields: &'static [Field],
}

struct Field {
    name: &'static str,
    kind: Kind,
}

/// The allowed values of a field. A null stands for the default.
enum Kind {
    Boolean {
        default: bool,
    },
    /// Any number, stored as an integer.
    Integer {
        default: i64,
        least: i64,
    },
    Double {
        default: f64,
        least: f64,
        most: f64,
    },
    /// A query over events; an empty one matches all.
    Query,
    /// `{expireAfterSeconds: "off"}` or a positive number.
    PreAndPostImages,
}

/// All parameters, by name.
/// Source: MongoDB manual 8.2, "Cluster Parameters".
static PARAMETERS: &[ClusterParameter] = &[
    ClusterParameter {
        name: AUDIT_CONFIG,
        fields: &[
            Field { name: "filter", kind: Kind::Query },
            Field { name: "auditAuthorizationSuccess", kind: Kind::Boolean { default: false } },
        ],
    },
    ClusterParameter {
        name: CHANGE_STREAM_OPTIONS,
        fields: &[Field { name: "preAndPostImages", kind: Kind::PreAndPostImages }],
    },
    ClusterParameter {
        name: "changeStreams",
        fields: &[Field { name: "expireAfterSeconds", kind: Kind::Integer { default: 3600, least: 1 } }],
    },
    ClusterParameter {
        name: DEFAULT_MAX_TIME,
        fields: &[Field { name: "readOperations", kind: Kind::Integer { default: 0, least: 0 } }],
    },
    ClusterParameter {
        name: "fleCompactionOptions",
        fields: &[
            Field { name: "maxCompactionSize", kind: Kind::Integer { default: 268_435_456, least: 0 } },
            Field { name: "maxAnchorCompactionSize", kind: Kind::Integer { default: 268_435_456, least: 0 } },
            Field { name: "maxESCEntriesPerCompactionDelete", kind: Kind::Integer { default: 350_000, least: 1 } },
            Field { name: "compactAnchorPaddingFactor", kind: Kind::Double { default: 0.0, least: 0.0, most: 1.0 } },
        ],
    },
    ClusterParameter {
        name: "fleDisableSubstringPreviewParameterLimits",
        fields: &[Field { name: "shouldOverride", kind: Kind::Boolean { default: false } }],
    },
    ClusterParameter {
        name: "internalQueryCutoffForSampleFromRandomCursor",
        fields: &[Field { name: "sampleCutoff", kind: Kind::Double { default: 0.05, least: 0.0, most: 1.0 } }],
    },
    ClusterParameter {
        name: "pauseMigrationsDuringMultiUpdates",
        fields: &[Field { name: "enabled", kind: Kind::Boolean { default: false } }],
    },
];

/// All parameters.
pub fn all() -> impl Iterator<Item = &'static ClusterParameter> {
    PARAMETERS.iter()
}

/// Applies the value of a parameter, if the parameter has an effect.
pub fn apply(parameters: &Parameters, name: &str, value: DocumentRef<'_>) {
    match name {
        CHANGE_STREAM_OPTIONS => parameters.set_image_expiry(value),
        DEFAULT_MAX_TIME => parameters.set_default_read_time(value),
        _ => {}
    }
}

/// The parameter of that name; `None` if there is none.
pub fn find(name: &str) -> Option<&'static ClusterParameter> {
    PARAMETERS.iter().find(|parameter| parameter.name == name)
}

impl ClusterParameter {
    /// The parameter's document, with the fields of `value` and defaults for the others.
    /// # Errors
    /// `BadValue` or `TypeMismatch` for values that a field does not allow, `IDLUnknownField`.
    pub fn parse(&self, value: DocumentRef<'_>) -> Result<DocumentBuf> {
        if let Some(unknown) = value.iter().find(|element| !self.fields.iter().any(|field| field.name == element.name))
        {
            let message = format!("BSON field '{}.{}' is an unknown field.", self.name, unknown.name);
            // With an unknown field, the value of a choice parameter matches none of its documents.
            return Err(if self.is_choice() { Failure::bad_value(message) } else { unknown_field(message) });
        }
        let mut parsed = DocumentBuf::new();
        for field in self.fields {
            let given = value.get(field.name);
            let read = field.read(self.name, given)?;
            parsed.append(field.name, &read);
        }
        Ok(parsed)
    }

    /// Whether MongoDB parses the parameter as a choice among several documents, none of which may be empty.
    pub fn is_choice(&self) -> bool {
        matches!(self.fields, [Field { kind: Kind::PreAndPostImages, .. }])
    }

    /// The parameter's document before it was set.
    pub fn default_value(&self) -> DocumentBuf {
        let mut defaults = DocumentBuf::new();
        for field in self.fields {
            defaults.append(field.name, &field.default_value());
        }
        defaults
    }
}

fn unknown_field(message: String) -> Failure {
    Failure::new(bunko_errors::ErrorCode::IDL_UNKNOWN_FIELD, message)
}

impl Field {
    fn default_value(&self) -> Value {
        match self.kind {
            Kind::Boolean { default } => Value::Boolean(default),
            Kind::Integer { default, .. } => Value::Int64(default),
            Kind::Double { default, .. } => Value::Double(default),
            Kind::Query => Value::Document(DocumentBuf::new()),
            Kind::PreAndPostImages => Value::Document(DocumentBuf::new().with("expireAfterSeconds", "off")),
        }
    }

    fn read(&self, parameter: &str, given: Option<ValueRef<'_>>) -> Result<Value> {
        let place = format!("{parameter}.{}", self.name);
        if let Kind::PreAndPostImages = self.kind {
            return read_images(&place, given);
        }
        let Some(value) = given.filter(|value| !value.is_nullish()) else { return Ok(self.default_value()) };
        match self.kind {
            Kind::Boolean { .. } => match value {
                ValueRef::Boolean(_) => Ok(value.to_value()),
                _ => Err(wrong_type(&place, value, "bool")),
            },
            Kind::Query => {
                let query = value.as_document().ok_or_else(|| wrong_type(&place, value, "object"))?;
                Filter::parse(query)?;
                Ok(value.to_value())
            }
            Kind::Integer { least, .. } => {
                let number = number::clamp_to_i64(value).ok_or_else(|| wrong_number(&place, value))?;
                if number < least {
                    return Err(too_small(&place, least, &number));
                }
                Ok(Value::Int64(number))
            }
            Kind::Double { least, most, .. } => {
                let number = number::as_f64(value).ok_or_else(|| wrong_number(&place, value))?;
                if !(least..=most).contains(&number) {
                    return Err(too_small(&place, least, &number));
                }
                Ok(Value::Double(number))
            }
            Kind::PreAndPostImages => unreachable!("read above"),
        }
    }
}

fn wrong_number(place: &str, value: ValueRef<'_>) -> Failure {
    Failure::wrong_type(place, value, "types '[long, int, decimal, double]'")
}

fn too_small(place: &str, least: impl std::fmt::Display, found: &dyn std::fmt::Display) -> Failure {
    Failure::bad_value(format!("BSON field '{place}' value must be >= {least}, actual value '{found}'"))
}

fn read_images(place: &str, given: Option<ValueRef<'_>>) -> Result<Value> {
    let refuse = |found: &dyn std::fmt::Display| {
        Failure::bad_value(format!(
            "'{place}' must be a document with 'expireAfterSeconds', which is \"off\" or a positive number, and not {found}"
        ))
    };
    let images = given.and_then(ValueRef::as_document);
    let images = images.ok_or_else(|| given.map_or_else(|| refuse(&"missing"), |value| refuse(&shown_text(value))))?;
    let (1, Some(value)) = (images.count(), images.get("expireAfterSeconds")) else {
        return Err(refuse(&shown_text(images.into())));
    };
    let kept = match value {
        ValueRef::String("off") => value.to_value(),
        _ => match number::clamp_to_i64(value) {
            Some(seconds) if seconds > 0 => Value::Int64(seconds),
            _ => return Err(refuse(&shown_text(images.into()))),
        },
    };
    Ok(Value::Document(DocumentBuf::new().with("expireAfterSeconds", &kept)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_sorted_and_their_defaults_are_allowed() {
        assert!(PARAMETERS.is_sorted_by(|one, next| one.name < next.name));
        for parameter in PARAMETERS {
            let default = parameter.default_value();
            assert_eq!(parameter.parse(default.as_ref()).expect(parameter.name), default);
        }
    }
}
