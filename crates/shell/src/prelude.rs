//! The shell's own JavaScript, in the order in which it is run. Each file is a function of the object `shell`, through
//! which the files share what scripts do not see.

use rquickjs::{JsLifetime, Object};

/// The prelude's object `shell`, for functions that make or read values.
pub(crate) struct Prelude<'js>(pub Object<'js>);

// SAFETY: the lifetime is the lifetime of the object inside, and the changed type differs only in it.
#[allow(unsafe_code)]
unsafe impl<'js> JsLifetime<'js> for Prelude<'js> {
    type Changed<'to> = Prelude<'to>;
}

/// Name and text of each file.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("base.js", include_str!("prelude/base.js")),
    ("callee.js", include_str!("prelude/callee.js")),
    ("bson.js", include_str!("prelude/bson.js")),
    ("binary.js", include_str!("prelude/binary.js")),
    ("transport.js", include_str!("prelude/transport.js")),
    ("inspect.js", include_str!("prelude/inspect.js")),
    ("output.js", include_str!("prelude/output.js")),
    ("ejson.js", include_str!("prelude/ejson.js")),
    ("mongo.js", include_str!("prelude/mongo.js")),
    ("session.js", include_str!("prelude/session.js")),
    ("cursor.js", include_str!("prelude/cursor.js")),
    ("collection.js", include_str!("prelude/collection.js")),
    ("writes.js", include_str!("prelude/writes.js")),
    ("bulk.js", include_str!("prelude/bulk.js")),
    ("indexes.js", include_str!("prelude/indexes.js")),
    ("explain.js", include_str!("prelude/explain.js")),
    ("database.js", include_str!("prelude/database.js")),
    ("users.js", include_str!("prelude/users.js")),
    ("replica_set.js", include_str!("prelude/replica_set.js")),
    ("sharding.js", include_str!("prelude/sharding.js")),
    ("help.js", include_str!("prelude/help.js")),
    ("commands.js", include_str!("prelude/commands.js")),
    ("process.js", include_str!("prelude/process.js")),
    ("rest.js", include_str!("prelude/rest.js")),
    ("completion.js", include_str!("prelude/completion.js")),
    ("evaluation.js", include_str!("prelude/evaluation.js")),
];
