//! Values of scripts as BSON: numbers become 32-bit integers where they are such, and doubles otherwise.

use crate::host::bytes::copied;
use crate::text::Text;
use bunko_bson::{Decimal128, DocumentBuf, DocumentRef, ObjectId, Timestamp, ValueRef, Writer};
use rquickjs::{Array, Ctx, Exception, Function, Object, Result, Type, TypedArray, Value};

/// Deepest value that is written; servers accept 180 levels and say so themselves.
const DEPTH_MAX: usize = 200;
/// Maximum number of bytes of a command: more than the largest document with its command around it, less than a
/// message.
const COMMAND_BYTES_MAX: usize = 40 << 20;

/// Writes values of scripts.
pub(crate) struct Encoder<'a, 'js> {
    pub context: &'a Ctx<'js>,
    /// The prelude's `encode`: tag and parts of an object that is not a plain document.
    pub encode: Function<'js>,
}

impl<'js> Encoder<'_, 'js> {
    /// An object as a document.
    /// # Errors
    /// A thrown error, for values that BSON does not have.
    pub fn document(&self, object: &Object<'js>) -> Result<DocumentBuf> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        self.fields(&mut writer, object)?;
        writer.end();
        Ok(DocumentBuf::from_trusted(bytes))
    }

    fn refuse<T>(&self, message: &str) -> Result<T> {
        Err(Exception::throw_message(self.context, message))
    }

    fn fields(&self, writer: &mut Writer<'_>, object: &Object<'js>) -> Result<()> {
        // Keys are read as values: the engine's conversion of a key to a string of Rust stops at a null byte.
        for key in object.keys::<Value<'js>>() {
            let key = key?;
            let Text(name): Text = key.get()?;
            self.check_cstring("key", &name)?;
            self.append(writer, &name, &object.get(key)?)?;
        }
        Ok(())
    }

    /// Refuses a null byte where BSON ends a text with one.
    fn check_cstring(&self, what: &str, text: &str) -> Result<()> {
        if !text.contains('\0') {
            return Ok(());
        }
        self.refuse(&format!("{what} {text:?} must not contain null bytes"))
    }

    fn append(&self, writer: &mut Writer<'_>, name: &str, value: &Value<'js>) -> Result<()> {
        if writer.len_bytes() > COMMAND_BYTES_MAX {
            return self.refuse("the command is larger than a message to the server may be");
        }
        match value.type_of() {
            Type::Undefined | Type::Uninitialized | Type::Null => drop(writer.append(name, ValueRef::Null)),
            Type::Bool => drop(writer.append(name, value.as_bool().unwrap_or_default())),
            Type::Int | Type::Float => append_number(writer, name, value.as_number().unwrap_or(f64::NAN)),
            Type::BigInt => drop(writer.append(name, self.big_int(value)?)),
            Type::String => {
                let Text(text): Text = value.get()?;
                writer.append(name, text.as_str());
            }
            Type::Array => {
                let array: Array<'js> = value.get()?;
                self.check_depth(writer)?;
                writer.begin_array(name);
                for (index, item) in array.iter::<Value<'js>>().enumerate() {
                    self.append(writer, &index.to_string(), &item?)?;
                }
                writer.end();
            }
            // A symbol is not data: it is left out, as the driver's writer does.
            Type::Symbol => {}
            _ => match value.as_object() {
                Some(object) => self.object(writer, name, object)?,
                None => return self.refuse(&format!("a JavaScript {} cannot be written as BSON", value.type_name())),
            },
        }
        Ok(())
    }

    fn big_int(&self, value: &Value<'js>) -> Result<i64> {
        match value.as_big_int() {
            Some(integer) => integer.clone().to_i64(),
            None => self.refuse("not a 64-bit integer"),
        }
    }

    fn check_depth(&self, writer: &Writer<'_>) -> Result<()> {
        if writer.depth() <= DEPTH_MAX {
            return Ok(());
        }
        self.refuse("a document is nested too deeply, or contains itself")
    }

    fn object(&self, writer: &mut Writer<'_>, name: &str, object: &Object<'js>) -> Result<()> {
        self.check_depth(writer)?;
        let encoded: Value<'js> = self.encode.call((object.clone(),))?;
        let Some(parts) = encoded.as_array() else {
            writer.begin_document(name);
            self.fields(writer, object)?;
            writer.end();
            return Ok(());
        };
        let tag: String = parts.get(0)?;
        self.tagged(writer, name, &tag, parts)
    }

    fn tagged(&self, writer: &mut Writer<'_>, name: &str, tag: &str, parts: &Array<'js>) -> Result<()> {
        match tag {
            "value" => return self.append(writer, name, &parts.get(1)?),
            "entries" => return self.entries(writer, name, &parts.get(1)?),
            "date" => {
                let time: f64 = parts.get(1)?;
                writer.append(name, ValueRef::DateTime(if time.is_nan() { i64::MIN } else { time as i64 }))
            }
            "objectId" => {
                let hex: String = parts.get(1)?;
                match ObjectId::parse_hex(&hex) {
                    Some(id) => writer.append(name, id),
                    None => return self.refuse("not an ObjectId"),
                }
            }
            "long" => writer.append(name, self.big_int(&parts.get(1)?)?),
            "int" => writer.append(name, parts.get::<i32>(1)?),
            "double" => writer.append(name, parts.get::<f64>(1)?),
            "decimal" => {
                let digits: String = parts.get(1)?;
                match Decimal128::parse(&digits) {
                    Some(number) => writer.append(name, number),
                    None => return self.refuse("not a Decimal128"),
                }
            }
            "binary" => {
                let (subtype, bytes): (i32, TypedArray<'js, u8>) = (parts.get(1)?, parts.get(2)?);
                writer.append(name, ValueRef::Binary { subtype: subtype as u8, bytes: &copied(&bytes) })
            }
            "timestamp" => {
                let (seconds, increment): (f64, f64) = (parts.get(1)?, parts.get(2)?);
                writer.append(name, Timestamp { seconds: seconds as u32, increment: increment as u32 })
            }
            "regex" => {
                let (Text(pattern), Text(options)): (Text, Text) = (parts.get(1)?, parts.get(2)?);
                self.check_cstring("pattern", &pattern)?;
                self.check_cstring("options", &options)?;
                writer.append(name, ValueRef::Regex { pattern: &pattern, options: &options })
            }
            "symbol" => writer.append(name, ValueRef::Symbol(&parts.get::<Text>(1)?.0)),
            "code" => return self.code(writer, name, parts),
            "minKey" => writer.append(name, ValueRef::MinKey),
            "maxKey" => writer.append(name, ValueRef::MaxKey),
            _ => return self.refuse(&format!("'{tag}' is not a type of BSON")),
        };
        Ok(())
    }

    /// Writes a `Map`, which keeps its order; an object would put names that are integers first.
    fn entries(&self, writer: &mut Writer<'_>, name: &str, entries: &Array<'js>) -> Result<()> {
        writer.begin_document(name);
        for entry in entries.iter::<Array<'js>>() {
            let entry = entry?;
            let Text(key): Text = entry.get(0)?;
            self.check_cstring("key", &key)?;
            self.append(writer, &key, &entry.get(1)?)?;
        }
        writer.end();
        Ok(())
    }

    fn code(&self, writer: &mut Writer<'_>, name: &str, parts: &Array<'js>) -> Result<()> {
        let (Text(code), scope): (Text, Option<Object<'js>>) = (parts.get(1)?, parts.get(2)?);
        match scope {
            None => writer.append(name, ValueRef::JavaScript(&code)),
            Some(scope) => {
                let scope = self.document(&scope)?;
                let scope: DocumentRef<'_> = scope.as_ref();
                writer.append(name, ValueRef::JavaScriptWithScope { code: &code, scope })
            }
        };
        Ok(())
    }
}

fn append_number(writer: &mut Writer<'_>, name: &str, number: f64) {
    let is_negative_zero = number == 0.0 && number.is_sign_negative();
    if number == f64::from(number as i32) && !is_negative_zero {
        writer.append(name, number as i32);
    } else {
        writer.append(name, number);
    }
}
