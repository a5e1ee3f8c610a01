//! Converts values of scripts to BSON. Numbers become doubles, except fields that were 32-bit integers in the document
//! that an object was made from, while they hold such integers.

use crate::allocation::Account;
use crate::kit::{Kind, Kit};
use bunko_bson::{Decimal128, DocumentRef, MAX_INTERNAL_DOCUMENT_BYTES, ObjectId, Timestamp, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure};
use rquickjs::{Object, Type, Value};

/// Deepest accepted value.
/// Source: MongoDB's message of error 17279.
const DEPTH_MAX: usize = 150;

/// The reason why a value was refused.
pub(crate) enum Refused {
    /// An error of the engine: an exception, or the end of the engine.
    Engine(rquickjs::Error),
    /// The value is not BSON.
    Value(Failure),
}

impl From<rquickjs::Error> for Refused {
    fn from(error: rquickjs::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::Value(failure)
    }
}

type Taken<T> = Result<T, Refused>;

/// Converts values of scripts.
pub(crate) struct FromScript<'a, 'js> {
    pub kit: &'a Kit<'js>,
    pub account: &'a Account,
}

impl<'js> FromScript<'_, 'js> {
    /// Appends a document whose only field is the value, under the empty name.
    pub fn append_alone(&self, answer: &mut Vec<u8>, value: &Value<'js>) -> Taken<()> {
        let mut writer = Writer::new(answer);
        self.append(&mut writer, "", value)?;
        writer.end();
        Ok(())
    }

    fn append(&self, writer: &mut Writer<'_>, name: &str, value: &Value<'js>) -> Taken<()> {
        if writer.len_bytes() > MAX_INTERNAL_DOCUMENT_BYTES {
            let message = "a script's value is larger than a document may be";
            return Err(Failure::new(ErrorCode::BSON_OBJECT_TOO_LARGE, message).into());
        }
        if name.contains('\0') {
            let message = "JavaScript property (name) contains a null char which is not allowed in BSON.";
            return Err(Failure::new(ErrorCode(16985), message).into());
        }
        self.account.hold_answer(writer.len_bytes());
        match value.type_of() {
            Type::Undefined | Type::Uninitialized => writer.append(name, ValueRef::Undefined),
            Type::Null => writer.append(name, ValueRef::Null),
            Type::Bool => writer.append(name, value.as_bool().unwrap_or_default()),
            Type::Int | Type::Float => writer.append(name, value.as_number().unwrap_or(f64::NAN)),
            Type::String => {
                let text = self.text(value)?;
                self.account.hold_answer(writer.len_bytes() + text.len());
                writer.append(name, text.as_str())
            }
            Type::Array => return self.array(writer, name, value),
            Type::Function | Type::Constructor => {
                let source: String = self.kit.source.call((value.clone(),))?;
                writer.append(name, ValueRef::JavaScript(&source))
            }
            kind => match value.as_object() {
                Some(object) if kind != Type::Symbol => return self.object(writer, name, object),
                _ => {
                    let message = format!("cannot convert a JavaScript {kind} to BSON");
                    return Err(Failure::bad_value(message).into());
                }
            },
        };
        Ok(())
    }

    fn text(&self, value: &Value<'js>) -> Taken<String> {
        let Some(text) = value.as_string() else { return Ok(value.get::<String>()?) };
        match text.to_string() {
            // An unpaired surrogate, which BSON cannot hold.
            Err(rquickjs::Error::Utf8(_)) => Ok(self.kit.well_formed.call((value.clone(),))?),
            text => Ok(text?),
        }
    }

    fn array(&self, writer: &mut Writer<'_>, name: &str, value: &Value<'js>) -> Taken<()> {
        check_depth(writer)?;
        let Some(array) = value.as_array() else { return Ok(()) };
        writer.begin_array(name);
        for index in 0..array.len() {
            self.append(writer, &index.to_string(), &array.get(index)?)?;
        }
        writer.end();
        Ok(())
    }

    fn object(&self, writer: &mut Writer<'_>, name: &str, object: &Object<'js>) -> Taken<()> {
        match self.kit.kind(object) {
            Kind::Plain => return self.document(writer, name, object),
            Kind::Date => {
                let time: f64 = self.kit.time.call((object.clone(),))?;
                writer.append(name, ValueRef::DateTime(if time.is_nan() { i64::MIN } else { time as i64 }))
            }
            Kind::Regex => {
                let (pattern, flags): (String, String) =
                    (self.kit.pattern.call((object.clone(),))?, object.get("flags")?);
                let mut options: Vec<char> = flags.chars().filter(|flag| "imsx".contains(*flag)).collect();
                options.sort_unstable();
                let options: String = options.into_iter().collect();
                writer.append(name, ValueRef::Regex { pattern: &pattern, options: &options })
            }
            Kind::ObjectId => writer.append(name, object_id(object, "str")?),
            Kind::Long => writer.append(name, parsed::<i64>(object, "digits", "NumberLong")?),
            Kind::Int => writer.append(name, object.get::<_, i32>("number")?),
            Kind::Decimal => {
                let digits: String = object.get("digits")?;
                let number = Decimal128::parse(&digits).ok_or_else(|| malformed("NumberDecimal"))?;
                writer.append(name, number)
            }
            Kind::Binary => {
                let (subtype, text): (i32, String) = (object.get("type")?, object.get("bytes")?);
                let bytes = bytes_of(&text).ok_or_else(|| malformed("BinData"))?;
                let subtype = u8::try_from(subtype).map_err(|_| malformed("BinData"))?;
                writer.append(name, ValueRef::Binary { subtype, bytes: &bytes })
            }
            Kind::Timestamp => {
                let (seconds, increment): (f64, f64) = (object.get("t")?, object.get("i")?);
                writer.append(name, Timestamp { seconds: seconds as u32, increment: increment as u32 })
            }
            Kind::MinKey => writer.append(name, ValueRef::MinKey),
            Kind::MaxKey => writer.append(name, ValueRef::MaxKey),
            Kind::Pointer => {
                let namespace: String = object.get("ns")?;
                let id: Object<'js> = object.get("id")?;
                writer.append(name, ValueRef::DbPointer { namespace: &namespace, id: object_id(&id, "str")? })
            }
            Kind::Code => return self.code(writer, name, object),
            Kind::BoxedNumber | Kind::BoxedString | Kind::BoxedBoolean => {
                let plain: Value<'js> = object
                    .get::<_, rquickjs::Function<'js>>("valueOf")?
                    .call((rquickjs::function::This(object.clone()),))?;
                if plain.is_object() {
                    return self.document(writer, name, object);
                }
                return self.append(writer, name, &plain);
            }
        };
        Ok(())
    }

    fn code(&self, writer: &mut Writer<'_>, name: &str, object: &Object<'js>) -> Taken<()> {
        let code: String = object.get("code")?;
        let scope: Value<'js> = object.get("scope")?;
        if !scope.is_object() {
            writer.append(name, ValueRef::JavaScript(&code));
            return Ok(());
        }
        check_depth(writer)?;
        let mut bytes = Vec::new();
        let mut inner = Writer::new(&mut bytes);
        self.append(&mut inner, "", &scope)?;
        inner.end();
        let scope = DocumentRef::trusted(&bytes).get("").and_then(ValueRef::as_document);
        writer.append(name, ValueRef::JavaScriptWithScope { code: &code, scope: scope.unwrap_or(DocumentRef::EMPTY) });
        Ok(())
    }

    fn document(&self, writer: &mut Writer<'_>, name: &str, object: &Object<'js>) -> Taken<()> {
        check_depth(writer)?;
        let integers: Option<String> = object.get(self.kit.integers.as_atom()).unwrap_or_default();
        let was_integer = |name: &str| {
            integers.as_ref().is_some_and(|integers| integers.split_terminator('\0').any(|integer| integer == name))
        };
        writer.begin_document(name);
        for key in object.keys::<String>() {
            let key = key?;
            let value: Value<'js> = object.get(key.as_str())?;
            let number = value.as_number().filter(|number| *number == f64::from(*number as i32));
            match number {
                Some(number) if was_integer(&key) => drop(writer.append(&key, number as i32)),
                _ => self.append(writer, &key, &value)?,
            }
        }
        writer.end();
        Ok(())
    }
}

fn check_depth(writer: &Writer<'_>) -> Result<(), Failure> {
    if writer.depth() <= DEPTH_MAX {
        return Ok(());
    }
    let message = "exceeded depth limit of 150 when converting js object to BSON. Do you have a cycle?";
    Err(Failure::new(ErrorCode(17279), message))
}

/// The error for an object whose internal state a script has changed.
fn malformed(kind: &str) -> Failure {
    Failure::bad_value(format!("a {kind} of a script holds no such value"))
}

fn object_id(object: &Object<'_>, field: &str) -> Taken<ObjectId> {
    let text: String = object.get(field)?;
    ObjectId::parse_hex(&text).ok_or_else(|| malformed("ObjectId").into())
}

fn parsed<T: std::str::FromStr>(object: &Object<'_>, field: &str, kind: &str) -> Taken<T> {
    let text: String = object.get(field)?;
    text.parse().map_err(|_| malformed(kind).into())
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
