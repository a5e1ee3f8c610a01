//! State of an engine that the Rust side keeps between calls: functions that make values, and the compiled scripts.

use rquickjs::{Ctx, Function, JsLifetime, Object, Result, Symbol, Value};
use std::cell::RefCell;

/// The kind of an object, by its prototype, in the order of the prelude's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Date,
    Regex,
    ObjectId,
    Long,
    Int,
    Decimal,
    Binary,
    Timestamp,
    MinKey,
    MaxKey,
    Pointer,
    Code,
    BoxedNumber,
    BoxedString,
    BoxedBoolean,
}

impl Kind {
    const ALL: [Self; 16] = [
        Self::Plain,
        Self::Date,
        Self::Regex,
        Self::ObjectId,
        Self::Long,
        Self::Int,
        Self::Decimal,
        Self::Binary,
        Self::Timestamp,
        Self::MinKey,
        Self::MaxKey,
        Self::Pointer,
        Self::Code,
        Self::BoxedNumber,
        Self::BoxedString,
        Self::BoxedBoolean,
    ];
}

/// The functions and scripts of an engine that the Rust side keeps between calls.
pub(crate) struct Kit<'js> {
    pub object_id: Function<'js>,
    pub long: Function<'js>,
    pub decimal: Function<'js>,
    pub binary: Function<'js>,
    pub timestamp: Function<'js>,
    pub pointer: Function<'js>,
    pub code: Function<'js>,
    pub date: Function<'js>,
    pub regex: Function<'js>,
    pub min_key: Value<'js>,
    pub max_key: Value<'js>,
    pub time: Function<'js>,
    pub well_formed: Function<'js>,
    pub written: Function<'js>,
    pub source: Function<'js>,
    pub pattern: Function<'js>,
    pub take_emitted: Function<'js>,
    /// The property under which an object made from a document lists its fields that were 32-bit integers.
    pub integers: Symbol<'js>,
    prototypes: Vec<Object<'js>>,
    /// The compiled scripts, by number.
    pub scripts: RefCell<Vec<Function<'js>>>,
}

// SAFETY: the lifetime is the lifetime of all values inside, and the changed type differs only in it.
#[allow(unsafe_code)]
unsafe impl<'js> JsLifetime<'js> for Kit<'js> {
    type Changed<'to> = Kit<'to>;
}

impl<'js> Kit<'js> {
    /// Makes the kit from the functions that the prelude defined.
    pub fn new(context: &Ctx<'js>, made: &Object<'js>) -> Result<Self> {
        Ok(Self {
            object_id: made.get("objectId")?,
            long: made.get("long")?,
            decimal: made.get("decimal")?,
            binary: made.get("binary")?,
            timestamp: made.get("timestamp")?,
            pointer: made.get("pointer")?,
            code: made.get("code")?,
            date: made.get("date")?,
            regex: made.get("regex")?,
            min_key: made.get("minKey")?,
            max_key: made.get("maxKey")?,
            time: made.get("time")?,
            well_formed: made.get("wellFormed")?,
            written: made.get("written")?,
            source: made.get("source")?,
            pattern: made.get("pattern")?,
            take_emitted: made.get("takeEmitted")?,
            integers: Symbol::new(context.clone())?,
            prototypes: made.get("prototypes")?,
            scripts: RefCell::default(),
        })
    }

    /// The kind of an object. An object with a prototype of the script's own is plain.
    pub fn kind(&self, object: &Object<'js>) -> Kind {
        let Some(prototype) = object.get_prototype() else { return Kind::Plain };
        let found = self.prototypes.iter().position(|known| *known == prototype);
        found.and_then(|at| Kind::ALL.get(at)).copied().unwrap_or(Kind::Plain)
    }
}
