//! BSON as values of scripts.

use bunko_bson::{ArrayRef, DocumentRef, ValueRef};
use rquickjs::object::Property;
use rquickjs::{Array, Ctx, Function, IntoJs, Object, Result, Symbol, TypedArray, Value};

/// Makes values for scripts.
pub(crate) struct Decoder<'a, 'js> {
    pub context: &'a Ctx<'js>,
    /// The prelude's `decode`, which makes the values of types that JavaScript lacks.
    pub decode: Function<'js>,
    /// The prelude's symbol `received`.
    pub received: Symbol<'js>,
}

impl<'js> Decoder<'_, 'js> {
    fn value(&self, value: ValueRef<'_>) -> Result<Value<'js>> {
        let context = self.context;
        match value {
            // The engine's constructor would make an integer of a zero, which has no sign.
            ValueRef::Double(number) if number == 0.0 => Ok(Value::new_float(context.clone(), number)),
            ValueRef::Double(number) => Ok(Value::new_number(context.clone(), number)),
            ValueRef::Int32(number) => Ok(Value::new_int(context.clone(), number)),
            ValueRef::String(text) => text.into_js(context),
            ValueRef::Document(document) => self.inner_document(document),
            ValueRef::Array(array) => self.array(array),
            ValueRef::Boolean(boolean) => Ok(Value::new_bool(context.clone(), boolean)),
            ValueRef::Null => Ok(Value::new_null(context.clone())),
            ValueRef::Undefined => Ok(Value::new_undefined(context.clone())),
            ValueRef::ObjectId(id) => self.decode.call(("objectId", id.to_string())),
            ValueRef::DateTime(milliseconds) => self.decode.call(("date", milliseconds as f64)),
            ValueRef::Int64(number) => self.decode.call(("long", Value::new_big_int(context.clone(), number)?)),
            ValueRef::Decimal128(number) => self.decode.call(("decimal", number.to_string())),
            ValueRef::Binary { subtype, bytes } => {
                self.decode.call(("binary", i32::from(subtype), TypedArray::<u8>::new_copy(context.clone(), bytes)?))
            }
            ValueRef::Timestamp(timestamp) => {
                self.decode.call(("timestamp", f64::from(timestamp.seconds), f64::from(timestamp.increment)))
            }
            ValueRef::Regex { pattern, options } => self.decode.call(("regex", pattern, options)),
            ValueRef::Symbol(text) => self.decode.call(("symbol", text)),
            ValueRef::DbPointer { namespace, id } => {
                let id: Value<'js> = self.decode.call(("objectId", id.to_string()))?;
                self.decode.call(("pointer", namespace, id))
            }
            ValueRef::JavaScript(code) => self.decode.call(("code", code)),
            ValueRef::JavaScriptWithScope { code, scope } => self.decode.call(("code", code, self.document(scope)?)),
            ValueRef::MinKey => self.decode.call(("minKey",)),
            ValueRef::MaxKey => self.decode.call(("maxKey",)),
        }
    }

    fn inner_document(&self, document: DocumentRef<'_>) -> Result<Value<'js>> {
        let object = self.document(document)?;
        let is_reference = document.first_name() == Some("$ref") && document.get("$id").is_some();
        if is_reference { self.decode.call(("reference", object)) } else { Ok(object.into_value()) }
    }

    /// A document as an object.
    pub fn document(&self, document: DocumentRef<'_>) -> Result<Object<'js>> {
        let object = Object::new(self.context.clone())?;
        for element in document {
            let value = self.value(element.value)?;
            if element.name == "__proto__" {
                // Setting `__proto__` would change the object's prototype, so it is defined as a property.
                object.prop(element.name, Property::from(value).writable().enumerable().configurable())?;
            } else {
                object.set(element.name, value)?;
            }
        }
        self.mark(&object)?;
        Ok(object)
    }

    /// Gives an object the property by which the prelude tells that a server has sent it.
    fn mark(&self, object: &Object<'js>) -> Result<()> {
        object.prop(self.received.clone(), Property::from(true))
    }

    fn array(&self, array: ArrayRef<'_>) -> Result<Value<'js>> {
        let made = Array::new(self.context.clone())?;
        for (index, element) in array.iter().enumerate() {
            made.set(index, self.value(element)?)?;
        }
        self.mark(made.as_object())?;
        Ok(made.into_value())
    }
}
