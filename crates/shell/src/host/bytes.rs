//! Bytes, numbers and texts, for which JavaScript alone would be slow or has no function.

use crate::text::Text;
use bunko_bson::{Decimal128, base64, hexadecimal};
use rquickjs::{Ctx, Function, Object, Result, TypedArray};

/// Random bytes of a script's call.
const RANDOM_BYTES_MAX: usize = 1 << 20;

pub(super) fn define<'js>(context: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
    // The middle of all object ids that this process makes.
    host.set("processId", hexadecimal::small(&rand::random::<[u8; 5]>()))?;
    let decimal = |text: String| Decimal128::parse(&text).map(|number| number.to_string());
    host.set("decimal", Function::new(context.clone(), decimal)?)?;
    let random = |context: Ctx<'js>, count: usize| {
        let bytes: Vec<u8> = (0..count.min(RANDOM_BYTES_MAX)).map(|_| rand::random()).collect();
        TypedArray::new(context, bytes)
    };
    host.set("randomBytes", Function::new(context.clone(), random)?)?;
    let to_base64 = |bytes: TypedArray<'js, u8>| base64::encode(&copied(&bytes));
    host.set("toBase64", Function::new(context.clone(), to_base64)?)?;
    let from_base64 = |context: Ctx<'js>, text: String| {
        base64::decode(&text).map(|bytes| TypedArray::new(context, bytes)).transpose()
    };
    host.set("fromBase64", Function::new(context.clone(), from_base64)?)?;
    let utf8 = |context: Ctx<'js>, Text(text): Text| TypedArray::new(context, text.into_bytes());
    host.set("utf8", Function::new(context.clone(), utf8)?)?;
    let text = |bytes: TypedArray<'js, u8>| String::from_utf8_lossy(&copied(&bytes)).into_owned();
    host.set("text", Function::new(context.clone(), text)?)
}

/// The bytes of an array; none if a script has given its memory away.
#[allow(unsafe_code)]
pub(crate) fn copied(array: &TypedArray<'_, u8>) -> Vec<u8> {
    // SAFETY: no script runs before the bytes are copied.
    unsafe { array.as_bytes() }.unwrap_or_default().to_vec()
}
