//! The option `timeseries` of `create`, and its changes by `collMod`.

use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};

/// Longest span of a bucket, in seconds: a year. Source: MongoDB manual, "create", `bucketMaxSpanSeconds`.
const SPAN_SECONDS_MAX: i32 = 31_536_000;

/// The usual distance between measurements of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Granularity {
    /// A bucket spans an hour.
    Seconds,
    /// A bucket spans a day.
    Minutes,
    /// A bucket spans thirty days.
    Hours,
}

impl Granularity {
    const ALL: [Self; 3] = [Self::Seconds, Self::Minutes, Self::Hours];

    /// The name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Minutes => "minutes",
            Self::Hours => "hours",
        }
    }

    /// Longest span of a bucket, in seconds. Source: MongoDB manual, "Set Granularity for Time Series Data".
    fn span_seconds(self) -> i32 {
        match self {
            Self::Seconds => 3_600,
            Self::Minutes => 86_400,
            Self::Hours => 2_592_000,
        }
    }

    /// The first time of a bucket is rounded down to a multiple of this, in seconds. Source: as [`Self::span_seconds`].
    fn rounding_seconds(self) -> i32 {
        match self {
            Self::Seconds => 60,
            Self::Minutes => 3_600,
            Self::Hours => 86_400,
        }
    }
}

/// The options of a time series collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeSeries {
    /// The field with the time of each measurement.
    pub time_field: String,
    /// The field with the source of each measurement.
    pub meta_field: Option<String>,
    /// `None` if the span was given in seconds.
    pub granularity: Option<Granularity>,
    /// Span of a bucket in seconds, from its rounded first time; a later measurement goes into another bucket.
    pub span_seconds: i32,
    /// The first time of a bucket is rounded down to a multiple of this, in seconds; `None` if it was not given.
    pub rounding_seconds: Option<i32>,
}

impl TimeSeries {
    /// Reads the option. `place` is its name in messages: `create.timeseries`.
    /// # Errors
    /// `TypeMismatch` for values of other types, 40414 without a `timeField`, `IDLUnknownField` for unknown fields,
    /// `BadValue` for values out of range, `InvalidOptions` for values that contradict each other.
    pub fn parse(option: DocumentRef<'_>, place: &str) -> Result<Self> {
        let mut fields = Fields { place, ..Fields::default() };
        for element in option {
            match element.name {
                "timeField" => fields.time_field = fields.string("timeField", element.value)?,
                "metaField" => fields.meta_field = fields.string("metaField", element.value)?,
                name => fields.read_changeable(name, element.value)?,
            }
        }
        let Some(time_field) = fields.time_field else {
            return Err(Failure::missing_field(format_args!("{place}.timeField")));
        };
        check_field_name("timeField", time_field)?;
        if let Some(meta_field) = fields.meta_field {
            check_field_name("metaField", meta_field)?;
        }
        if time_field == "_id" {
            return Err(invalid("The 'timeField' cannot be \"_id\""));
        }
        let span = span_of(&fields, None)?;
        Ok(Self {
            time_field: time_field.to_owned(),
            meta_field: fields.meta_field.map(ToOwned::to_owned),
            granularity: span.granularity,
            span_seconds: span.seconds,
            rounding_seconds: span.rounding_seconds,
        })
    }

    /// Reads the options from the form that [`Self::document`] returns.
    pub fn of_document(document: DocumentRef<'_>) -> Self {
        let integer = |name| {
            let value = document.get(name).and_then(number::as_i64_exact);
            value.and_then(|value| i32::try_from(value).ok())
        };
        let string = |name| document.get(name).and_then(ValueRef::as_str);
        let granularity = string("granularity");
        Self {
            time_field: string("timeField").unwrap_or_default().to_owned(),
            meta_field: string("metaField").map(ToOwned::to_owned),
            granularity: Granularity::ALL.into_iter().find(|known| granularity == Some(known.name())),
            span_seconds: integer("bucketMaxSpanSeconds").unwrap_or(Granularity::Seconds.span_seconds()),
            rounding_seconds: integer("bucketRoundingSeconds"),
        }
    }

    /// The options as `listCollections` shows them.
    pub fn document(&self) -> DocumentBuf {
        let mut document = DocumentBuf::new().with("timeField", self.time_field.as_str());
        if let Some(meta_field) = &self.meta_field {
            document.append("metaField", meta_field.as_str());
        }
        if let Some(granularity) = self.granularity {
            document.append("granularity", granularity.name());
        }
        if let Some(rounding) = self.rounding_seconds {
            document.append("bucketRoundingSeconds", rounding);
        }
        document.append("bucketMaxSpanSeconds", self.span_seconds);
        document
    }

    /// Applies the `timeseries` of a `collMod`; spans only grow.
    /// # Errors
    /// As [`Self::parse`]; `InvalidOptions` for a span that would shrink.
    pub fn changed(&self, change: DocumentRef<'_>, place: &str) -> Result<Self> {
        let mut fields = Fields { place, ..Fields::default() };
        for element in change {
            fields.read_changeable(element.name, element.value)?;
        }
        if fields.granularity.is_none() && fields.span_seconds.is_none() && fields.rounding_seconds.is_none() {
            return Ok(self.clone());
        }
        let span = span_of(&fields, self.granularity)?;
        if span.seconds < self.span_seconds || span.rounding() < self.rounding() {
            return Err(invalid(
                "Invalid transition for timeseries.granularity. Can only transition from 'seconds' to 'minutes' or \
                 'minutes' to 'hours'; 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' can only grow.",
            ));
        }
        Ok(Self {
            granularity: span.granularity,
            span_seconds: span.seconds,
            rounding_seconds: span.rounding_seconds,
            ..self.clone()
        })
    }

    /// The field with the source of each measurement, unless that is the time field.
    pub fn source_field(&self) -> Option<&str> {
        self.meta_field.as_deref().filter(|field| *field != self.time_field)
    }

    fn rounding(&self) -> i32 {
        Span { granularity: self.granularity, seconds: self.span_seconds, rounding_seconds: self.rounding_seconds }
            .rounding()
    }

    /// The beginning of a bucket whose first measurement has the time `time_ms`; both in milliseconds since 1970.
    pub fn bucket_begin_ms(&self, time_ms: i64) -> i64 {
        let rounding_ms = i64::from(self.rounding()) * 1000;
        time_ms.div_euclid(rounding_ms).saturating_mul(rounding_ms)
    }

    /// Whether a bucket that begins at `begin_ms` may have a measurement of `time_ms`; both in milliseconds since 1970.
    pub fn spans(&self, begin_ms: i64, time_ms: i64) -> bool {
        time_ms >= begin_ms && time_ms.saturating_sub(begin_ms) < i64::from(self.span_seconds) * 1000
    }
}

#[derive(Default)]
struct Fields<'a> {
    place: &'a str,
    time_field: Option<&'a str>,
    meta_field: Option<&'a str>,
    granularity: Option<Granularity>,
    span_seconds: Option<i32>,
    rounding_seconds: Option<i32>,
}

impl<'a> Fields<'a> {
    /// Reads a field that `collMod` may change.
    fn read_changeable(&mut self, name: &str, value: ValueRef<'a>) -> Result<()> {
        match name {
            "granularity" => {
                self.granularity = self.string(name, value)?.map(|name| self.granularity_named(name)).transpose()?;
            }
            "bucketMaxSpanSeconds" => self.span_seconds = self.seconds(name, value)?,
            "bucketRoundingSeconds" => self.rounding_seconds = self.seconds(name, value)?,
            _ => return Err(Failure::unknown_field(format_args!("{}.{name}", self.place))),
        }
        Ok(())
    }

    fn string(&self, name: &str, value: ValueRef<'a>) -> Result<Option<&'a str>> {
        match value {
            ValueRef::String(text) => Ok(Some(text)),
            value if value.is_nullish() => Ok(None),
            value => Err(self.mismatch(name, value, "type 'string'")),
        }
    }

    fn granularity_named(&self, name: &str) -> Result<Granularity> {
        Granularity::ALL.into_iter().find(|known| known.name() == name).ok_or_else(|| {
            Failure::bad_value(format!(
                "Enumeration value {} for field '{}.granularity' is not a valid value.",
                ValueText(ValueRef::String(name)),
                self.place
            ))
        })
    }

    fn seconds(&self, name: &str, value: ValueRef<'_>) -> Result<Option<i32>> {
        if value.is_nullish() {
            return Ok(None);
        }
        let Some(seconds) = number::clamp_to_i64(value) else {
            return Err(self.mismatch(name, value, "types '[long, int, decimal, double]'"));
        };
        let bound = match seconds {
            ..1 => format!(">= 1, actual value '{seconds}'"),
            seconds if seconds > i64::from(SPAN_SECONDS_MAX) => {
                format!("<= {SPAN_SECONDS_MAX}, actual value '{seconds}'")
            }
            // In range, as checked above.
            seconds => return Ok(i32::try_from(seconds).ok()),
        };
        Err(Failure::bad_value(format!("BSON field '{name}' value must be {bound}")))
    }

    fn mismatch(&self, name: &str, value: ValueRef<'_>, expected: &str) -> Failure {
        Failure::wrong_type(format_args!("{}.{name}", self.place), value, expected)
    }
}

struct Span {
    granularity: Option<Granularity>,
    seconds: i32,
    rounding_seconds: Option<i32>,
}

impl Span {
    fn rounding(&self) -> i32 {
        self.rounding_seconds.or(self.granularity.map(Granularity::rounding_seconds)).unwrap_or(self.seconds)
    }
}

/// The span that the fields ask for. If it is given in seconds, both of its fields are required and must be equal.
fn span_of(fields: &Fields<'_>, before: Option<Granularity>) -> Result<Span> {
    let of_granularity = |granularity: Granularity| Span {
        granularity: Some(granularity),
        seconds: granularity.span_seconds(),
        rounding_seconds: None,
    };
    match (fields.granularity, fields.span_seconds, fields.rounding_seconds) {
        (None, None, None) => Ok(of_granularity(before.unwrap_or(Granularity::Seconds))),
        (Some(granularity), None, None) => Ok(of_granularity(granularity)),
        // The span of a granularity may be given with it.
        (Some(granularity), Some(span), None) if span == granularity.span_seconds() => Ok(of_granularity(granularity)),
        (Some(granularity), ..) => Err(invalid(&format!(
            "Timeseries 'bucketMaxSpanSeconds' needs to be unset or set to {} when granularity is set to {}, and \
             'bucketRoundingSeconds' unset",
            granularity.span_seconds(),
            granularity.name()
        ))),
        (None, Some(span), Some(rounding)) if span == rounding => {
            Ok(Span { granularity: None, seconds: span, rounding_seconds: Some(rounding) })
        }
        (None, ..) => Err(invalid(
            "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' need to be set to the same value, or neither \
             of them",
        )),
    }
}

fn check_field_name(option: &str, name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(invalid(&format!("'{option}' must not be empty")));
    }
    if name.contains('.') {
        return Err(invalid(&format!("The '{option}' must be a top-level field, but got '{name}'")));
    }
    if name.contains('\0') {
        return Err(Failure::bad_value(format!("The '{option}' must not contain null bytes")));
    }
    if name.starts_with('$') {
        return Err(invalid(&format!("The '{option}' must not begin with '$', but got '{name}'")));
    }
    Ok(())
}

fn invalid(message: &str) -> Failure {
    Failure::new(ErrorCode::INVALID_OPTIONS, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(option: &DocumentBuf) -> Result<TimeSeries> {
        TimeSeries::parse(option.as_ref(), "create.timeseries")
    }

    fn code(option: &DocumentBuf) -> i32 {
        parse(option).expect_err("refused").code().0
    }

    #[test]
    fn parsed_options_are_shown_and_read_again() {
        let option = DocumentBuf::new().with("timeField", "t").with("metaField", "m");
        let parsed = parse(&option).expect("valid");
        let shown = DocumentBuf::new()
            .with("timeField", "t")
            .with("metaField", "m")
            .with("granularity", "seconds")
            .with("bucketMaxSpanSeconds", 3600);
        assert_eq!(parsed.document(), shown);
        assert_eq!(TimeSeries::of_document(shown.as_ref()), parsed);
        let spans = DocumentBuf::new()
            .with("timeField", "t")
            .with("bucketRoundingSeconds", 100.5)
            .with("bucketMaxSpanSeconds", 100_i64);
        let shown = DocumentBuf::new()
            .with("timeField", "t")
            .with("bucketRoundingSeconds", 100)
            .with("bucketMaxSpanSeconds", 100);
        assert_eq!(parse(&spans).expect("valid").document(), shown);
    }

    #[test]
    fn senseless_options_are_refused() {
        let option = || DocumentBuf::new().with("timeField", "t");
        assert_eq!(code(&DocumentBuf::new()), 40414);
        assert_eq!(code(&DocumentBuf::new().with("timeField", 1)), 14);
        assert_eq!(code(&DocumentBuf::new().with("timeField", "a.b")), 72);
        assert_eq!(code(&option().with("other", 1)), 40415);
        assert_eq!(code(&option().with("granularity", "days")), 2);
        assert_eq!(code(&option().with("bucketMaxSpanSeconds", 0).with("bucketRoundingSeconds", 0)), 2);
        assert_eq!(code(&option().with("bucketMaxSpanSeconds", 10)), 72);
        assert_eq!(code(&option().with("bucketMaxSpanSeconds", 10).with("bucketRoundingSeconds", 20)), 72);
    }

    #[test]
    fn spans_only_grow() {
        let minutes = parse(&DocumentBuf::new().with("timeField", "t").with("granularity", "minutes")).expect("valid");
        let change = |granularity: &str| {
            let change = DocumentBuf::new().with("granularity", granularity);
            minutes.changed(change.as_ref(), "collMod.timeseries")
        };
        assert_eq!(change("hours").expect("grows").span_seconds, 2_592_000);
        assert_eq!(change("minutes").expect("the same"), minutes);
        assert_eq!(change("seconds").expect_err("shrinks").code(), ErrorCode::INVALID_OPTIONS);
        assert_eq!(minutes.changed(DocumentRef::EMPTY, "collMod.timeseries").expect("nothing"), minutes);
    }

    #[test]
    fn times_before_1970_are_rounded_down_too() {
        let seconds = parse(&DocumentBuf::new().with("timeField", "t")).expect("valid");
        assert_eq!(seconds.bucket_begin_ms(61_000), 60_000);
        assert_eq!(seconds.bucket_begin_ms(-1), -60_000);
        assert!(seconds.spans(60_000, 60_000 + 3_599_999));
        assert!(!seconds.spans(60_000, 60_000 + 3_600_000));
        assert!(!seconds.spans(60_000, 59_999));
    }
}
