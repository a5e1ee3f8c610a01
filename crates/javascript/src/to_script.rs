//! Converts BSON to values of scripts.

use crate::kit::Kit;
use bunko_bson::{ArrayRef, DocumentRef, ValueRef, hexadecimal};
use rquickjs::object::Property;
use rquickjs::{Array, Ctx, IntoJs, Object, Result, String, Value};

/// Whether an object records which of its fields were 32-bit integers, so that they become 32-bit integers again when
/// the object is converted to BSON.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Integers {
    Remembered,
    Forgotten,
}

/// Makes values for scripts.
pub(crate) struct ToScript<'a, 'js> {
    pub context: &'a Ctx<'js>,
    pub kit: &'a Kit<'js>,
    pub integers: Integers,
}

impl<'js> ToScript<'_, 'js> {
    pub fn value(&self, value: ValueRef<'_>) -> Result<Value<'js>> {
        let (context, kit) = (self.context, self.kit);
        match value {
            ValueRef::Double(number) => Ok(Value::new_number(context.clone(), number)),
            ValueRef::Int32(number) => Ok(Value::new_int(context.clone(), number)),
            ValueRef::String(text) | ValueRef::Symbol(text) => self.text(text),
            ValueRef::Document(document) => Ok(self.document(document)?.into_value()),
            ValueRef::Array(array) => self.array(array),
            ValueRef::Boolean(boolean) => Ok(Value::new_bool(context.clone(), boolean)),
            ValueRef::Null => Ok(Value::new_null(context.clone())),
            ValueRef::Undefined => Ok(Value::new_undefined(context.clone())),
            ValueRef::ObjectId(id) => kit.object_id.call((id.to_string(),)),
            ValueRef::DateTime(milliseconds) => kit.date.call((milliseconds as f64,)),
            ValueRef::Int64(number) => kit.long.call((number.to_string(),)),
            ValueRef::Decimal128(number) => kit.decimal.call((number.to_string(),)),
            ValueRef::Binary { subtype, bytes } => kit.binary.call((i32::from(subtype), hexadecimal::small(bytes))),
            ValueRef::Timestamp(timestamp) => {
                kit.timestamp.call((f64::from(timestamp.seconds), f64::from(timestamp.increment)))
            }
            ValueRef::Regex { pattern, options } => {
                // JavaScript has no option `x`. It has options `g` and `y`, which BSON lacks.
                let flags: std::string::String = options.chars().filter(|flag| "imsu".contains(*flag)).collect();
                kit.regex.call((pattern, flags))
            }
            ValueRef::DbPointer { namespace, id } => {
                let id: Value<'js> = kit.object_id.call((id.to_string(),))?;
                kit.pointer.call((namespace, id))
            }
            ValueRef::JavaScript(code) => kit.code.call((code,)),
            ValueRef::JavaScriptWithScope { code, scope } => kit.code.call((code, self.document(scope)?)),
            ValueRef::MinKey => Ok(kit.min_key.clone()),
            ValueRef::MaxKey => Ok(kit.max_key.clone()),
        }
    }

    pub fn document(&self, document: DocumentRef<'_>) -> Result<Object<'js>> {
        let object = Object::new(self.context.clone())?;
        let mut integers = std::string::String::new();
        for element in document {
            let value = self.value(element.value)?;
            if element.name == "__proto__" {
                // Setting this field would replace the object's prototype.
                let property = Property::from(value).writable().enumerable().configurable();
                object.prop(element.name, property)?;
            } else {
                object.set(element.name, value)?;
            }
            if self.integers == Integers::Remembered && matches!(element.value, ValueRef::Int32(_)) {
                integers.push_str(element.name);
                integers.push('\0');
            }
        }
        if !integers.is_empty() {
            object.prop(self.kit.integers.as_atom(), Property::from(integers))?;
        }
        Ok(object)
    }

    fn array(&self, array: ArrayRef<'_>) -> Result<Value<'js>> {
        let made = Array::new(self.context.clone())?;
        for (index, element) in array.iter().enumerate() {
            made.set(index, self.value(element)?)?;
        }
        Ok(made.into_value())
    }

    fn text(&self, text: &str) -> Result<Value<'js>> {
        String::from_str(self.context.clone(), text)?.into_js(self.context)
    }
}
