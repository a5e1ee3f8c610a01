//! Shapes with hidden names: each name of a database, a collection, a field or a variable is replaced by its HMAC, so
//! that equal names stay equal. The names of operators, stages, their parameters and the server's own variables are not
//! replaced.
//!
//! **Invariant:** a string that may be a name is hidden. A field that is called like a parameter stays only where a
//! parameter may stand.
//! Source: MongoDB manual 8.2, "$queryStats (aggregation stage)", "How $queryStats Transforms Data".

use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, Value, ValueRef, base64};
use bunko_stages::Shape;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::expression_shape::array;

/// Names of parameters of operators and stages.
const PARAMETERS: &[&str] = &[
    "amount",
    "arrayFilters",
    "as",
    "bounds",
    "boundaries",
    "branches",
    "by",
    "case",
    "chars",
    "coll",
    "cond",
    "connectFromField",
    "connectToField",
    "date",
    "dateString",
    "db",
    "default",
    "defaults",
    "depthField",
    "distanceField",
    "documents",
    "else",
    "endDate",
    "field",
    "find",
    "foreignField",
    "format",
    "from",
    "fullDocument",
    "fullDocumentBeforeChange",
    "granularity",
    "groupBy",
    "if",
    "in",
    "includeArrayIndex",
    "includeLocs",
    "initialValue",
    "input",
    "into",
    "key",
    "let",
    "limit",
    "localField",
    "maxDepth",
    "maxDistance",
    "method",
    "minDistance",
    "n",
    "near",
    "newRoot",
    "on",
    "onError",
    "onNull",
    "options",
    "output",
    "partitionBy",
    "partitionByFields",
    "path",
    "pipeline",
    "preserveNullAndEmptyArrays",
    "query",
    "range",
    "regex",
    "replacement",
    "resumeAfter",
    "restrictSearchWithMatch",
    "size",
    "sort",
    "sortBy",
    "spherical",
    "startAfter",
    "startAtOperationTime",
    "startDate",
    "startOfWeek",
    "startWith",
    "step",
    "subtype",
    "then",
    "timezone",
    "to",
    "unit",
    "value",
    "vars",
    "whenMatched",
    "whenNotMatched",
    "window",
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "iso8601",
    "isoWeekYear",
    "isoWeek",
    "isoDayOfWeek",
];
/// Variables of the server.
const VARIABLES: &[&str] = &[
    "ROOT",
    "CURRENT",
    "NOW",
    "CLUSTER_TIME",
    "REMOVE",
    "DESCEND",
    "PRUNE",
    "KEEP",
    "USER_ROLES",
    "SEARCH_META",
    "JS_SCOPE",
    "IS_MR",
    "this",
    "value",
    "new",
];
/// Parameters whose strings are words of the language.
const WORDS: &[&str] = &["unit", "method", "granularity", "fullDocument", "fullDocumentBeforeChange", "whenMatched"];
/// Operators and stages without parameters: names directly below them are fields.
const OF_FIELDS: &[&str] =
    &["$addToSet", "$and", "$elemMatch", "$mergeObjects", "$nor", "$not", "$or", "$push", "$sort"];
/// Strings that are words of the language, wherever they stand.
const BOUNDS: &[&str] = &["unbounded", "current", "full", "partition"];

/// The SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Hides names with a key.
pub struct HiddenNames {
    keyed: Hmac<Sha256>,
}

/// Where a value stands, which decides how its names are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Names are fields.
    Fields,
    /// Directly below an operator or a stage, where names may be parameters.
    Parameters,
    /// Strings are words of the language, and stay.
    Words,
}

impl HiddenNames {
    /// Hides names with the HMAC key `key`.
    /// # Panics
    /// Never: a key may have any length.
    pub fn new(key: &[u8]) -> Self {
        Self { keyed: Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length") }
    }

    /// A key of the statistics: its shape and its hint have names of clients, and all else stays.
    pub fn of_key(&self, key: DocumentRef<'_>) -> DocumentBuf {
        let mut hidden = DocumentBuf::new();
        for element in key {
            match (element.name, element.value) {
                ("queryShape", ValueRef::Document(shape)) => hidden.append("queryShape", &self.of_shape(shape)),
                ("hint", ValueRef::Document(hint)) => hidden.append("hint", &self.document(hint, Place::Fields)),
                (name, value) => hidden.append(name, value),
            };
        }
        hidden
    }

    fn of_shape(&self, shape: DocumentRef<'_>) -> DocumentBuf {
        let mut hidden = DocumentBuf::new();
        for element in shape {
            match (element.name, element.value) {
                ("command" | "collation", value) => hidden.append(element.name, value),
                ("cmdNs", ValueRef::Document(names)) => hidden.append("cmdNs", &self.namespace(names)),
                ("key", ValueRef::String(path)) => hidden.append("key", self.path(path).as_str()),
                (name, value) => hidden.append(name, &self.value(value, Place::Fields)),
            };
        }
        hidden
    }

    fn namespace(&self, names: DocumentRef<'_>) -> DocumentBuf {
        let mut hidden = DocumentBuf::new();
        for element in names {
            match element.value {
                ValueRef::String(name) if !name.starts_with('$') => {
                    hidden.append(element.name, self.name(name).as_str())
                }
                other => hidden.append(element.name, other),
            };
        }
        hidden
    }

    fn document(&self, document: DocumentRef<'_>, place: Place) -> DocumentBuf {
        let mut hidden = DocumentBuf::new();
        for element in document {
            let name = element.name;
            if name.starts_with('$') {
                let inside = match bunko_stages::find(name).map(|stage| stage.shape) {
                    _ if name == "$type" => Place::Words,
                    _ if OF_FIELDS.contains(&name) => Place::Fields,
                    Some(Shape::Expression | Shape::Facets | Shape::Filter | Shape::Projection) => Place::Fields,
                    _ => Place::Parameters,
                };
                hidden.append(name, &self.value(element.value, inside));
            } else if place == Place::Parameters && PARAMETERS.contains(&name) {
                let inside = match element.value {
                    // The window of an output has parameters again.
                    _ if WORDS.contains(&name) => Place::Words,
                    ValueRef::Document(_) if matches!(name, "range" | "window") => Place::Parameters,
                    _ => Place::Fields,
                };
                hidden.append(name, &self.value(element.value, inside));
            } else {
                // The output of a field in a window has its parameters beside its operator.
                let inside = if has_operator(element.value) { Place::Parameters } else { Place::Fields };
                hidden.append(&self.path(name), &self.value(element.value, inside));
            }
        }
        hidden
    }

    fn value(&self, value: ValueRef<'_>, place: Place) -> Value {
        match value {
            ValueRef::Document(document) => Value::Document(self.document(document, place)),
            ValueRef::Array(members) => self.each(members, place),
            ValueRef::String(text) => Value::String(self.text(text, place)),
            other => other.to_value(),
        }
    }

    fn each(&self, members: ArrayRef<'_>, place: Place) -> Value {
        array(members.iter().map(|member| self.value(member, place)))
    }

    fn text(&self, text: &str, place: Place) -> String {
        // Placeholders of values begin with a question mark.
        let is_placeholder = text.starts_with('?') || text == "[]";
        // Where a word may stand, so may an expression, such as the path of a field; that is hidden.
        let is_word = place == Place::Words && !text.starts_with('$');
        if is_placeholder || is_word || BOUNDS.contains(&text) {
            return text.to_owned();
        }
        if let Some(variable) = text.strip_prefix("$$") {
            let (name, path) = variable.split_once('.').map_or((variable, None), |(name, path)| (name, Some(path)));
            let name = if VARIABLES.contains(&name) { name.to_owned() } else { self.name(name) };
            return path.map_or(format!("$${name}"), |path| format!("$${name}.{}", self.path(path)));
        }
        match text.strip_prefix('$') {
            Some(path) => format!("${}", self.path(path)),
            None => self.path(text),
        }
    }

    /// A path with each of its names hidden.
    fn path(&self, path: &str) -> String {
        let parts: Vec<_> = path.split('.').map(|name| self.name(name)).collect();
        parts.join(".")
    }

    fn name(&self, name: &str) -> String {
        let mut keyed = self.keyed.clone();
        keyed.update(name.as_bytes());
        base64::encode(&keyed.finalize().into_bytes())
    }
}

fn has_operator(value: ValueRef<'_>) -> bool {
    value.as_document().and_then(DocumentRef::first).is_some_and(|first| first.name.starts_with('$'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json;

    fn hidden(json: &str) -> String {
        let shape = extended_json::parse_document(json).expect("JSON");
        let key = DocumentBuf::new().with("queryShape", &shape);
        let hidden = HiddenNames::new(b"secret").of_key(key.as_ref());
        extended_json::to_relaxed((&hidden).into())
    }

    #[test]
    fn no_name_of_a_client_is_left() {
        for shape in [
            r#"{"cmdNs": {"db": "zebra", "coll": "zebra"}, "command": "find", "filter": {"zebra.zebra": {"$eq": "?string"}}}"#,
            r#"{"filter": {"$and": [{"zebra": {"$gt": "?number"}}, {"$expr": {"$eq": ["$zebra", "$$zebra"]}}]}, "sort": {"zebra": 1}}"#,
            r#"{"pipeline": [{"$group": {"_id": "$zebra", "zebra": {"$sum": "$zebra.zebra"}}}]}"#,
            r#"{"pipeline": [{"$lookup": {"from": "zebra", "localField": "zebra", "foreignField": "zebra", "as": "zebra"}}]}"#,
            r#"{"pipeline": [{"$unwind": {"path": "$zebra", "includeArrayIndex": "zebra"}}, {"$unset": ["zebra"]}, {"$sort": {"zebra": 1}}]}"#,
            r#"{"pipeline": [{"$addFields": {"zebra": {"$map": {"input": "$zebra", "as": "zebra", "in": "$$zebra.zebra"}}}}]}"#,
            r#"{"pipeline": [{"$out": "zebra"}, {"$merge": {"into": {"db": "zebra", "coll": "zebra"}, "on": "zebra"}}]}"#,
            r#"{"pipeline": [{"$setWindowFields": {"output": {"zebra": {"$sum": "$zebra", "window": {"range": ["?number", "current"]}}}}}]}"#,
            r#"{"key": "zebra", "query": {"zebra": {"$elemMatch": {"zebra": {"$in": "?array<?number>"}}}}}"#,
        ] {
            let hidden = hidden(shape);
            assert!(!hidden.contains("zebra"), "{hidden}");
            // All that the client did not name stays.
            for word in shape.split('"').filter(|word| word.starts_with(['$', '?']) && !word.contains("zebra")) {
                assert!(hidden.contains(word), "{word} of {hidden}");
            }
        }
    }

    #[test]
    fn fields_with_names_of_parameters_are_hidden() {
        for shape in [
            r#"{"filter": {"$and": [{"year": {"$eq": "?number"}}, {"$or": [{"year": {"$gt": "?number"}}]}]}}"#,
            r#"{"filter": {"a": {"$elemMatch": {"year": {"$eq": "?number"}}}}}"#,
            r#"{"pipeline": [{"$sort": {"year": 1}}, {"$set": {"a": {"$type": "$year"}}}]}"#,
            r#"{"pipeline": [{"$set": {"a": {"$dateAdd": {"startDate": "$b", "unit": "$year", "amount": "?number"}}}}]}"#,
        ] {
            let hidden = hidden(shape);
            assert!(!hidden.contains("year"), "{hidden}");
        }
        let types = r#"{"filter": {"a": {"$type": "string"}}}"#;
        assert!(hidden(types).contains(r#"{"$type":"string"}"#), "{}", hidden(types));
    }

    #[test]
    fn parameters_and_variables_stay_and_equal_names_stay_equal() {
        let shape =
            r#"{"pipeline": [{"$project": {"a": {"$cond": {"if": "$$ROOT.a", "then": "$a", "else": "$$NOW"}}}}]}"#;
        let hidden = hidden(shape);
        let name = HiddenNames::new(b"secret").name("a");
        let expected = shape.replace(": ", ":").replace(", ", ",").replace("\"a\"", &format!("\"{name}\""));
        let expected = expected.replace("$a\"", &format!("${name}\"")).replace("ROOT.a", &format!("ROOT.{name}"));
        assert_eq!(hidden, format!(r#"{{"queryShape":{expected}}}"#));
        assert_ne!(HiddenNames::new(b"other").name("a"), name);
    }
}
