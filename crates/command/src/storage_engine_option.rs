//! The option `storageEngine` of `create`: the engine that holds the collection, and its settings.
//!
//! `MongoDB` takes options for any number of engines and uses those for the running one. Here a collection may be in an
//! engine other than the server's own, so the option names exactly one engine: by its own name, or by the name of the
//! `MongoDB` engine in whose place it stands.

use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::EngineChoice;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::Fields;
use bunko_store::Store;

/// Engines by `MongoDB`'s name and by this server's; a test compares them with the table of engines.
const ENGINE_NAMES: &[(&str, &str)] = &[("wiredTiger", "lsm"), ("inMemory", "memory"), ("mmapv1", MMAP)];
/// The engine that keeps all databases in one file.
pub(crate) const MMAP: &str = "mmap";

/// The chosen engine; `None` if the option is missing or empty.
/// # Errors
/// `InvalidOptions`, `BadValue` and `TypeMismatch`, each with the offending name or value.
pub(crate) fn parse(fields: &Fields<'_>, store: &Store) -> Result<Option<EngineChoice>> {
    match fields.document("storageEngine")? {
        Some(option) => choice(store, option),
        None => Ok(None),
    }
}

/// Checks `indexOptionDefaults`. It may name an engine without settings, and has no effect: indexes are in the engine
/// of their collection.
/// # Errors
/// As [`parse`]; `IDLUnknownField`; `CommandNotSupported` for settings.
pub(crate) fn check_of_indexes(fields: &Fields<'_>, store: &Store) -> Result<()> {
    const NAME: &str = "indexOptionDefaults";
    let Some(defaults) = fields.document(NAME)? else { return Ok(()) };
    if let Some(other) = defaults.iter().find(|element| element.name != "storageEngine") {
        return Err(Failure::unknown_field(format_args!("create.{NAME}.{}", other.name)));
    }
    let Some(engine) = defaults.get("storageEngine").filter(|value| !value.is_nullish()) else { return Ok(()) };
    let place = format!("{NAME}.storageEngine");
    let option = engine.as_document().ok_or_else(|| fields.mismatch(&place, engine, "type 'object'"))?;
    match choice(store, option)? {
        Some(choice) if !choice.settings.as_ref().is_empty() => Err(fields.unsupported(&place)),
        _ => Ok(()),
    }
}

/// Checks that `storageEngine` of an index names known engines. It has no effect: the index is in the engine of its
/// collection.
/// # Errors
/// `InvalidOptions` for an unknown name.
pub(crate) fn check_of_index(spec: DocumentRef<'_>) -> Result<()> {
    let engines = spec.get("storageEngine").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    engines.iter().try_for_each(|engine| named(engine.name).map(drop))
}

/// Both names of an engine, looked up by either.
fn named(name: &str) -> Result<(&'static str, &'static str)> {
    let found = ENGINE_NAMES.iter().find(|(theirs, ours)| [*theirs, *ours].contains(&name));
    found.copied().ok_or_else(|| invalid_options(format!("{name} is not a registered storage engine for this server")))
}

fn choice(store: &Store, option: DocumentRef<'_>) -> Result<Option<EngineChoice>> {
    let mut engines = option.iter();
    let Some(engine) = engines.next() else { return Ok(None) };
    if let Some(other) = engines.next() {
        return Err(invalid_options(format!(
            "'storageEngine' names '{}' and '{}', but one engine holds a collection",
            engine.name, other.name
        )));
    }
    let Some(settings) = engine.value.as_document() else {
        return Err(Failure::bad_value(format!("'storageEngine.{}' has to be an embedded document.", engine.name)));
    };
    let (theirs, ours) = named(engine.name)?;
    if !store.engine_names().contains(&ours) {
        return Err(invalid_options(format!(
            "storage engine '{}' is not available: this server runs on '{}', which keeps nothing on disk, so every \
             collection is in it",
            engine.name,
            store.engine_name()
        )));
    }
    if engine.name == "wiredTiger" {
        let settings = translate(theirs, settings)?;
        return EngineChoice::checked(store, ours, settings.as_ref()).map(Some);
    }
    EngineChoice::checked(store, ours, settings).map(Some)
}

fn invalid_options(message: String) -> Failure {
    Failure::new(ErrorCode::INVALID_OPTIONS, message)
}

/// The settings that correspond to `{configString: ...}`.
fn translate(engine: &str, settings: DocumentRef<'_>) -> Result<DocumentBuf> {
    let mut translated = DocumentBuf::new();
    for setting in settings {
        match (setting.name, setting.value) {
            ("configString", ValueRef::String(text)) => translate_config_string(text, &mut translated)?,
            ("configString", _) => return Err(Failure::type_mismatch("'configString' must be a string.")),
            (name, value) => {
                return Err(invalid_options(format!(
                    "'{name}' is not a supported option in storageEngine.{engine}; it is {}",
                    ValueText(value)
                )));
            }
        }
    }
    Ok(translated)
}

/// Translates `block_compressor=zstd`, the only key of `WiredTiger` that has a meaning here.
fn translate_config_string(text: &str, settings: &mut DocumentBuf) -> Result<()> {
    if text.contains('\0') {
        return Err(Failure::failed_to_parse("malformed 'configString' value: embedded null byte"));
    }
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("block_compressor", name)) if settings.as_ref().is_empty() => {
                settings.append("blockCompressor", name)
            }
            Some(("block_compressor", _)) => {
                return Err(Failure::bad_value(format!("'configString' has block_compressor twice: '{text}'")));
            }
            Some((key, value)) => {
                return Err(Failure::bad_value(format!(
                    "'configString' may have block_compressor alone, not {key} with the value '{value}'"
                )));
            }
            None => return Err(Failure::bad_value(format!("'configString' has '{pair}', which is not key=value"))),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_those_of_the_engines() {
        let engines: BTreeSet<_> =
            bunko_engines::ENGINES.iter().map(|entry| (entry.mongodb_name, entry.name)).collect();
        assert_eq!(ENGINE_NAMES.iter().copied().collect::<BTreeSet<_>>(), engines);
    }

    #[test]
    fn a_config_string_says_how_blocks_are_compressed() {
        let translated = |text: &str| {
            let mut settings = DocumentBuf::new();
            translate_config_string(text, &mut settings)
                .map(|()| settings.as_ref().get("blockCompressor").and_then(ValueRef::as_str).map(str::to_owned))
                .map_err(|failure| failure.message().to_owned())
        };
        assert_eq!(translated(""), Ok(None));
        assert_eq!(translated("block_compressor=zstd"), Ok(Some("zstd".to_owned())));
        assert_eq!(translated(" block_compressor=none, "), Ok(Some("none".to_owned())));
        for (text, refusal) in [
            ("block_compressor=a,block_compressor=b", "twice"),
            ("block_compressor=zstd,allocation_size=4KB", "not allocation_size with the value '4KB'"),
            ("zstd", "'zstd', which is not key=value"),
        ] {
            let failure = translated(text).expect_err("refused");
            assert!(failure.contains(refusal), "{failure}");
        }
    }
}
