//! Which settings of a running server would be refused here, as its `getCmdLineOpts` shows them.

use super::file::refusal_of;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, extended_json};

/// The path of the configuration file, which is not a setting of a file.
const FILE: &str = "config";

/// The refusals, one for each setting, in the order of the document.
pub fn refusals(parsed: &DocumentBuf) -> Vec<String> {
    let mut found = Vec::new();
    for element in parsed.as_ref().iter().filter(|element| element.name != FILE) {
        visit(&mut vec![element.name], element.value, &mut found);
    }
    found
}

/// Judges each setting alone, so that one refusal hides no other.
fn visit<'d>(path: &mut Vec<&'d str>, value: ValueRef<'d>, found: &mut Vec<String>) {
    if let ValueRef::Document(section) = value {
        for element in section {
            path.push(element.name);
            visit(path, element.value, found);
            path.pop();
        }
        return;
    }
    let leaf = path.iter().rev().fold(None, |inner: Option<DocumentBuf>, name| {
        Some(inner.map_or_else(|| DocumentBuf::new().with(name, value), |inner| DocumentBuf::new().with(name, &inner)))
    });
    // JSON is YAML.
    let text = extended_json::to_relaxed(leaf.as_ref().map_or(DocumentRef::EMPTY, DocumentBuf::as_ref).into());
    if let Some(refusal) = refusal_of(&text) {
        found.push(format!("{}: {refusal}", path.join(".")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json::parse_document;

    #[test]
    fn each_refused_setting_is_named() {
        let parsed = r#"{"config": "/etc/mongod.conf", "net": {"port": 27018, "bindIp": "127.0.0.1"},
            "storage": {"dbPath": "/var/lib/mongodb", "wiredTiger": {"engineConfig": {"cacheSizeGB": 1}}, "queryableBackupMode": true},
            "security": {"enableEncryption": true}, "setParameter": {"enableTestCommands": "1"}}"#;
        let found = refusals(&parse_document(parsed).expect("JSON"));
        let named: Vec<_> = found.iter().map(|refusal| refusal.split_once(": ").expect("named").0).collect();
        assert_eq!(named, ["storage.queryableBackupMode", "security.enableEncryption"], "{found:?}");
    }
}
