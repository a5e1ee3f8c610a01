//! Names of files in a dump directory.
//!
//! `<database>/<collection>.bson` and `<database>/<collection>.metadata.json`, each with a suffix where it is
//! compressed; `oplog.bson` and `prelude.json` beside the databases. Collections may have any name, so theirs are
//! escaped; databases' names stand as they are.
//! Source: MongoDB's documentation of `mongodump`, and dumps that it made.

use crate::compression::Compression;
use bunko_bson::{DocumentBuf, ValueRef};
use sha1::{Digest, Sha1};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Longest escaped name: with the classic tool's longest suffix (`.metadata.json.gz`) 255 bytes, as file names may have.
const STEM_BYTES_MAX: usize = 238;
/// How much of a longer one is kept, in bytes; [`HASH_MARK`] and a hash of the name follow.
const STEM_BYTES_KEPT: usize = 208;
/// An escaped `$` between what is kept and the hash.
const HASH_MARK: &str = "%24";
const DATA_SUFFIX: &str = ".bson";
const METADATA_SUFFIX: &str = ".metadata.json";
/// File names of all compressions, the plain one last so that the others are tried first.
const COMPRESSION_SUFFIXES: [&str; 4] = [".gz", ".zst", ".lz4", ""];
/// The collection behind a time series, whose documents are dumped in its place.
const BUCKETS_PREFIX: &str = "system.buckets.";

/// The name of a collection's files without suffix: escaped, and cut where it is too long. Two names never share one.
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

/// The name of the file with a collection's options and indexes. Beside zstd and LZ4 it is not compressed, so neither
/// should be what is written to it: their suffixes would make the longest names too long for a file.
pub fn metadata_file_name(collection: &str, compression: Compression) -> String {
    let suffix = if compression == Compression::Gzip { compression.suffix() } else { "" };
    file_stem(collection) + METADATA_SUFFIX + suffix
}

/// The collection whose files are called so; `None` where the name was cut (the metadata file holds it whole), or is
/// not one that [`file_stem`] could have made, or no collection can be called so.
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

/// The directory of a database; `None` where its name must not become a part of a path: the server forbids such names,
/// but an archive may hold what nobody forbade.
/// Source: MongoDB limits, "Restrictions on Database Names".
pub fn database_directory(database: &str) -> Option<&str> {
    let forbidden = |character: char| matches!(character, '/' | '\\' | '.' | '\0');
    (!database.is_empty() && database.len() < 256 && !database.contains(forbidden)).then_some(database)
}

/// As in the query part of an address: a space is a plus, all but letters, digits and `-_.~` are `%XX`.
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

/// What is not escaped stands for itself: `$admin.system.users` is written that way.
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

/// What a dump directory holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// By name.
    pub databases: Vec<Database>,
    /// `oplog.bson`, compressed or not.
    pub oplog: Option<DumpFile>,
    /// `prelude.json`, compressed or not: which server and tool made the dump ([`Prelude`]).
    pub prelude: Option<DumpFile>,
    /// Files and directories that are no part of a dump.
    pub ignored: Vec<PathBuf>,
}

/// One database's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Database {
    /// The directory's name, which is the database's.
    pub name: String,
    /// By file name.
    pub collections: Vec<Collection>,
}

/// One collection's files, of which either may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// The files' name without suffix. For a time series the metadata's, whose documents' is longer.
    pub stem: String,
    /// The collection's name; `None` where only the metadata knows it ([`collection_of`]).
    pub name: Option<String>,
    /// Its documents; views have none.
    pub data: Option<DumpFile>,
    /// Its options and indexes.
    pub metadata: Option<DumpFile>,
}

/// A file that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its length, compressed if it is.
    pub size_bytes: u64,
}

/// Lists a dump directory: one directory per database.
/// # Errors
/// What reading directories gives; `InvalidData` where a file is there twice, compressed and not.
pub fn list(root: &Path) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for entry in entries(root)? {
        match entry {
            Entry::Directory { name: Some(name), path } => {
                let (collections, prelude) = list_collections(&path, &mut listing.ignored)?;
                // Dumping one database puts the prelude beside its collections.
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
        // `oplog.bson` here would be a collection of that name; a prelude cannot be one.
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

/// A time series has its documents under its buckets' name and its metadata under its own.
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

/// What a directory holds, by name; links are followed. Names that are not UTF-8 are `None`.
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

/// What `prelude.json` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prelude {
    /// Version of the server that was dumped.
    pub server_version: String,
    /// Version of the tool that dumped it.
    pub tool_version: String,
}

impl Prelude {
    /// Reads the file's text; what is missing is empty.
    /// # Errors
    /// Where it is no JSON object.
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
        // SHA-1 of 240 letters `a`, by another program.
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
