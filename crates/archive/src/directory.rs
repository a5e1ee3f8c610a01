//! Names of files in a dump directory.
//!
//! `<database>/<collection>.bson` and `<database>/<collection>.metadata.json`, each with a suffix if it is compressed;
//! `oplog.bson` and `prelude.json` beside the databases. Collections may have any name, so their names are escaped;
//! databases' names are not.
//! Source: MongoDB's documentation of `mongodump`, and dumps that it made.

use crate::compression::Compression;
use bunko_bson::{DocumentBuf, ValueRef};
use sha1::{Digest, Sha1};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Longest escaped name, in bytes: with the classic tool's longest suffix (`.metadata.json.gz`) it has 255 bytes, the
/// limit of file names.
const STEM_BYTES_MAX: usize = 238;
/// Bytes of a longer name that are kept; [`HASH_MARK`] and a hash of the name follow.
const STEM_BYTES_KEPT: usize = 208;
/// An escaped `$` between the kept part and the hash.
const HASH_MARK: &str = "%24";
const DATA_SUFFIX: &str = ".bson";
const METADATA_SUFFIX: &str = ".metadata.json";
/// Suffixes of all compressions; the empty one is last so that the others are tried first.
const COMPRESSION_SUFFIXES: [&str; 4] = [".gz", ".zst", ".lz4", ""];
/// Prefix of the collection behind a time series, whose documents are dumped in its place.
const BUCKETS_PREFIX: &str = "system.buckets.";

/// The name of a collection's files without suffix: escaped, and shortened with a hash if it is too long, so that
/// different collections have different names.
pub fn file_stem(collection: &str) -> String {
    let escaped = escape(collection);
    if escaped.len() <= STEM_BYTES_MAX {
        return escaped;
    }
    let hash = base64_for_urls(&Sha1::digest(collection.as_bytes()));
    format!("{}{HASH_MARK}{hash}", &escaped[..STEM_BYTES_KEPT])
}

/// The name of the file with a collection's documents.
pub fn data_file_name(collection: &str, compression: Compression) -> String {
    file_stem(collection) + DATA_SUFFIX + compression.suffix()
}

/// The name of the file with a collection's options and indexes. Beside zstd and LZ4 data it is not compressed, because
/// their suffixes would make the longest names too long; the caller must write it uncompressed then.
pub fn metadata_file_name(collection: &str, compression: Compression) -> String {
    let suffix = if compression == Compression::Gzip { compression.suffix() } else { "" };
    file_stem(collection) + METADATA_SUFFIX + suffix
}

/// The collection of files with this name; `None` if the name was shortened (the metadata file has the whole name),
/// [`file_stem`] could not have made it, or no collection can have it.
pub fn collection_of(stem: &str) -> Option<String> {
    let cut = stem.len() == STEM_BYTES_MAX && stem.get(STEM_BYTES_KEPT..)?.starts_with(HASH_MARK);
    if cut {
        return None;
    }
    unescape(stem).filter(|name| is_collection_name(name))
}

fn is_collection_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('\0')
}

/// The directory of a database; `None` if its name must not be part of a path. Servers forbid such names, but an
/// archive may contain them.
/// Source: MongoDB limits, "Restrictions on Database Names".
pub fn database_directory(database: &str) -> Option<&str> {
    let forbidden = |character: char| matches!(character, '/' | '\\' | '.' | '\0');
    (!database.is_empty() && database.len() < 256 && !database.contains(forbidden)).then_some(database)
}

/// Escapes as in the query part of an address: a space becomes a plus, all but letters, digits and `-_.~` become `%XX`.
fn escape(name: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => escaped.push(byte.into()),
            b' ' => escaped.push('+'),
            _ => escaped.extend(['%', DIGITS[usize::from(byte >> 4)].into(), DIGITS[usize::from(byte & 15)].into()]),
        }
    }
    escaped
}

/// Characters that are not escaped are kept: `$admin.system.users` is written that way.
fn unescape(stem: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(stem.len());
    let mut rest = stem.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Base64 with the alphabet for addresses and no padding.
/// Source: RFC 4648, section 5.
fn base64_for_urls(bytes: &[u8]) -> String {
    let standard = bunko_bson::base64::encode(bytes);
    standard.trim_end_matches('=').replace('+', "-").replace('/', "_")
}

/// Contents of a dump directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The databases, sorted by name.
    pub databases: Vec<Database>,
    /// `oplog.bson`, compressed or not.
    pub oplog: Option<DumpFile>,
    /// `prelude.json`, compressed or not: versions of server and tool ([`Prelude`]).
    pub prelude: Option<DumpFile>,
    /// Files and directories that are not part of a dump.
    pub ignored: Vec<PathBuf>,
}

/// One database's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Database {
    /// Name of the directory and of the database.
    pub name: String,
    /// The collections, sorted by file name.
    pub collections: Vec<Collection>,
}

/// One collection's files, of which either may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Name of the files without suffix. For a time series, the metadata file's; the documents' file has a longer one.
    pub stem: String,
    /// Name of the collection; `None` if only the metadata has it ([`collection_of`]).
    pub name: Option<String>,
    /// The file of the documents; views have none.
    pub data: Option<DumpFile>,
    /// The file of the collection's options and indexes.
    pub metadata: Option<DumpFile>,
}

/// An existing file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Length of the file as stored, in bytes.
    pub size_bytes: u64,
}

/// Lists a dump directory: one directory per database.
/// # Errors
/// The error of reading a directory; `InvalidData` if a file exists twice, compressed and not.
pub fn list(root: &Path) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for entry in entries(root)? {
        match entry {
            Entry::Directory { name: Some(name), path } => {
                let (collections, prelude) = list_collections(&path, &mut listing.ignored)?;
                // A dump of one database has its prelude beside the collections.
                if let Some(prelude) = prelude {
                    listing.prelude.get_or_insert(prelude);
                }
                listing.databases.push(Database { name, collections });
            }
            Entry::File { name: Some(name), file } => match plain_name(&name) {
                "oplog.bson" => place(&mut listing.oplog, file)?,
                "prelude.json" => listing.prelude = Some(file),
                _ => listing.ignored.push(file.path),
            },
            Entry::Directory { path, .. } | Entry::File { file: DumpFile { path, .. }, .. } => {
                listing.ignored.push(path);
            }
        }
    }
    Ok(listing)
}

/// Lists the directory of one database.
/// # Errors
/// As [`list`].
pub fn list_database(directory: &Path) -> io::Result<Listing> {
    let mut ignored = Vec::new();
    let (collections, prelude) = list_collections(directory, &mut ignored)?;
    let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    Ok(Listing { databases: vec![Database { name, collections }], oplog: None, prelude, ignored })
}

fn list_collections(directory: &Path, ignored: &mut Vec<PathBuf>) -> io::Result<(Vec<Collection>, Option<DumpFile>)> {
    let mut by_stem = BTreeMap::<String, Collection>::new();
    let mut prelude = None;
    for entry in entries(directory)? {
        let (name, file) = match entry {
            Entry::File { name: Some(name), file } => (name, file),
            Entry::Directory { path, .. } | Entry::File { file: DumpFile { path, .. }, .. } => {
                ignored.push(path);
                continue;
            }
        };
        let plain = plain_name(&name);
        // In this directory, `oplog.bson` is a collection of that name; `prelude.json` is never a collection.
        if plain == "prelude.json" {
            place(&mut prelude, file)?;
        } else if let Some(stem) = plain.strip_suffix(METADATA_SUFFIX) {
            place(&mut collection(&mut by_stem, stem).metadata, file)?;
        } else if let Some(stem) = plain.strip_suffix(DATA_SUFFIX) {
            place(&mut collection(&mut by_stem, stem).data, file)?;
        } else {
            ignored.push(file.path);
        }
    }
    join_time_series(&mut by_stem);
    Ok((by_stem.into_values().collect(), prelude))
}

fn collection<'c>(by_stem: &'c mut BTreeMap<String, Collection>, stem: &str) -> &'c mut Collection {
    by_stem.entry(stem.to_owned()).or_insert_with(|| Collection {
        stem: stem.to_owned(),
        name: collection_of(stem),
        data: None,
        metadata: None,
    })
}

/// Joins the two parts of a time series: documents under its buckets' name, metadata under its own.
fn join_time_series(by_stem: &mut BTreeMap<String, Collection>) {
    let alone = |buckets: &&Collection| buckets.metadata.is_none() && buckets.stem.starts_with(BUCKETS_PREFIX);
    let buckets: Vec<String> = by_stem.values().filter(alone).map(|buckets| buckets.stem.clone()).collect();
    for stem in buckets {
        let series = &stem[BUCKETS_PREFIX.len()..];
        if by_stem.get(series).is_some_and(|series| series.data.is_none()) {
            let data = by_stem.remove(&stem).and_then(|buckets| buckets.data);
            collection(by_stem, series).data = data;
        }
    }
}

fn place(slot: &mut Option<DumpFile>, file: DumpFile) -> io::Result<()> {
    match slot.replace(file) {
        None => Ok(()),
        Some(other) => {
            let message = format!("{} is there twice, compressed differently", other.path.display());
            Err(io::Error::new(io::ErrorKind::InvalidData, message))
        }
    }
}

/// A file's name without the suffix of its compression.
fn plain_name(name: &str) -> &str {
    COMPRESSION_SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

enum Entry {
    Directory { name: Option<String>, path: PathBuf },
    File { name: Option<String>, file: DumpFile },
}

/// Contents of a directory, sorted by path; links are followed. Names that are not UTF-8 are `None`.
fn entries(directory: &Path) -> io::Result<Vec<Entry>> {
    let mut paths = fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let metadata = fs::metadata(&path)?;
            let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
            Ok(if metadata.is_dir() {
                Entry::Directory { name, path }
            } else {
                Entry::File { name, file: DumpFile { path, size_bytes: metadata.len() } }
            })
        })
        .collect()
}

/// Contents of `prelude.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prelude {
    /// Version of the server that was dumped.
    pub server_version: String,
    /// Version of the tool that made the dump.
    pub tool_version: String,
}

impl Prelude {
    /// Parses the file's text; missing fields are empty.
    /// # Errors
    /// The text is not a JSON object.
    pub fn parse(json: &str) -> Result<Self, bunko_bson::extended_json::ExtendedJsonError> {
        let document = bunko_bson::extended_json::parse_document(json)?;
        let text = |name| document.as_ref().get(name).and_then(ValueRef::as_str).unwrap_or_default().to_owned();
        Ok(Self { server_version: text("ServerVersion"), tool_version: text("ToolVersion") })
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        let document =
            DocumentBuf::new().with("ServerVersion", &self.server_version).with("ToolVersion", &self.tool_version);
        bunko_bson::extended_json::to_canonical((&document).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn odd_names() {
        for (name, stem) in [
            ("odd%name", "odd%25name"),
            ("with space", "with+space"),
            ("slash/in", "slash%2Fin"),
            ("日本語", "%E6%97%A5%E6%9C%AC%E8%AA%9E"),
            ("a+b~c-d_e.f", "a%2Bb~c-d_e.f"),
            ("../../etc/passwd", "..%2F..%2Fetc%2Fpasswd"),
            ("/absolute\\", "%2Fabsolute%5C"),
            ("..", ".."),
            ("$cmd", "%24cmd"),
        ] {
            assert_eq!(file_stem(name), stem);
            assert_eq!(collection_of(stem).as_deref(), Some(name));
        }
        assert_eq!(collection_of("$admin.system.users").as_deref(), Some("$admin.system.users"));
        for none in ["%", "%4", "%zz", "%FF", "a%00b", ""] {
            assert_eq!(collection_of(none), None, "{none}");
        }
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let fits = "é".repeat(39) + "abcd";
        assert_eq!(file_stem(&fits).len(), STEM_BYTES_MAX);
        assert_eq!(collection_of(&file_stem(&fits)), Some(fits.clone()));
        let (one, other) = (fits.clone() + "1", fits + "2");
        assert_eq!(file_stem(&one).len(), STEM_BYTES_MAX);
        assert_ne!(file_stem(&one), file_stem(&other));
        assert_eq!(collection_of(&file_stem(&one)), None);
        let longest = metadata_file_name(&one, Compression::Gzip);
        assert_eq!(longest.len(), 255);
        assert!(metadata_file_name(&one, Compression::Zstd { level: 3 }).len() <= 255);
        assert!(data_file_name(&one, Compression::Zstd { level: 3 }).len() <= 255);
        // SHA-1 of 240 letters `a`, calculated by another program.
        assert_eq!(file_stem(&"a".repeat(240)), "a".repeat(208) + "%24" + SHA1_OF_240);
    }

    const SHA1_OF_240: &str = "wFbwD7l6u0wJQk40c1Yv8Z1ugNw";

    #[test]
    fn databases_stay_in_their_directory() {
        for refused in ["", ".", "..", "a/b", "/", "a\\b", "a\0", "a.b"] {
            assert_eq!(database_directory(refused), None, "{refused}");
        }
        assert_eq!(database_directory("日本"), Some("日本"));
    }

    #[test]
    fn a_dump_is_listed() {
        let root = tempfile::tempdir().expect("directory");
        let write = |name: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("has one")).expect("directories");
            fs::write(path, b"12345").expect("file");
        };
        for name in [
            "oplog.bson.gz",
            "prelude.json",
            "notes.txt",
            "shop/a+b.bson.zst",
            "shop/a+b.metadata.json.zst",
            "shop/view.metadata.json",
            "shop/system.buckets.weather.bson",
            "shop/weather.metadata.json",
            "shop/deeper/x.bson",
        ] {
            write(name);
        }
        let listing = list(root.path()).expect("listed");
        let shape: Vec<_> = listing.databases[0]
            .collections
            .iter()
            .map(|c| (c.name.as_deref(), c.data.is_some(), c.metadata.is_some()))
            .collect();
        assert_eq!(shape, [(Some("a b"), true, true), (Some("view"), false, true), (Some("weather"), true, true)]);
        assert_eq!(listing.oplog.expect("oplog").size_bytes, 5);
        assert!(listing.prelude.is_some());
        assert_eq!(listing.ignored.len(), 2, "{:?}", listing.ignored);
        write("shop/a+b.bson");
        assert!(list(root.path()).expect_err("twice").to_string().contains("there twice"));
    }

    proptest! {
        #[test]
        fn every_name_is_a_single_path_component(name in "\\PC{1,90}") {
            let stem = file_stem(&name);
            prop_assert!(stem.len() <= STEM_BYTES_MAX && !stem.contains(['/', '\\', '\0']));
            let back = collection_of(&stem);
            prop_assert!(back.is_none_or(|back| back == name));
        }
    }
}
