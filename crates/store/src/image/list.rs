//! The list of the files in an image.

use crate::Position;
use crate::checked_documents::number;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use std::path::{Component, Path};

/// Maximum number of bytes that are read from an image at a time.
pub const IMAGE_RANGE_BYTES: u64 = 4 << 20;
/// Maximum number of files in an image, so that their list fits into one document.
pub(super) const FILES_MAX: usize = 150_000;
/// The one file of an image that is in no directory.
pub(super) const MANIFEST: &str = "manifest.bson";
/// Directories of an image.
pub(super) const DIRECTORIES: [&str; 4] = ["log", "trees", "extents", "mmap"];

/// One file of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFile {
    /// Path below the data directory.
    pub name: String,
    /// Number of bytes that belong to the image. The file itself may be longer.
    pub bytes: u64,
}

/// The files of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageList {
    /// Id that no other image of the store has.
    pub id: String,
    /// The position at which the image's log ends.
    pub end: Position,
    /// All files, in the order of their names.
    pub files: Vec<ImageFile>,
}

impl ImageList {
    /// Number of bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The list as a document.
    pub fn document(&self) -> DocumentBuf {
        let file = |file: &ImageFile| DocumentBuf::new().with("n", file.name.as_str()).with("b", file.bytes as i64);
        let files: ArrayBuf = self.files.iter().map(file).collect::<Vec<_>>().iter().collect();
        DocumentBuf::new()
            .with("id", self.id.as_str())
            .with("term", self.end.term as i64)
            .with("end", self.end.end as i64)
            .with("files", &files)
    }

    /// Reads a list; `None` if it is malformed, or names a file that no image has.
    pub fn parse(document: DocumentRef<'_>) -> Option<Self> {
        let file = |value: ValueRef<'_>| {
            let file = value.as_document()?;
            let name = file.get("n")?.as_str().filter(|name| is_of_image(name))?;
            Some(ImageFile { name: name.to_owned(), bytes: number(file, "b")? })
        };
        let files: Vec<_> = document.get("files")?.as_array()?.iter().map(file).collect::<Option<_>>()?;
        // A name that stands twice would let two entries write to one file.
        let is_in_order = files.is_sorted_by(|a, b| a.name < b.name);
        let has_manifest = files.iter().any(|file| file.name == MANIFEST);
        let end = Position { term: number(document, "term")?, end: number(document, "end")? };
        let id = document.get("id")?.as_str()?.to_owned();
        (is_in_order && has_manifest && files.len() <= FILES_MAX).then_some(Self { id, end, files })
    }
}

/// Whether a file of that name may be in an image: the manifest, or a file below a directory of engines or of the log.
fn is_of_image(name: &str) -> bool {
    if name == MANIFEST {
        return true;
    }
    let mut parts = Path::new(name).components();
    let is_known = |part: Component<'_>| DIRECTORIES.iter().any(|known| part.as_os_str() == *known);
    let is_below = parts.next().is_some_and(is_known) && parts.clone().next().is_some();
    // A path written in another way (`a//b`, `a/./b`) could be a second name of one file.
    let is_plain = !name.contains("//") && !name.ends_with('/') && !name.contains("/./") && !name.ends_with("/.");
    is_below && is_plain && !name.contains('\0') && parts.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> ImageList {
        let files = names.iter().map(|name| ImageFile { name: (*name).to_owned(), bytes: 7 }).collect();
        ImageList { id: "a".to_owned(), end: Position { term: 2, end: 99 }, files }
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let list = list(&["extents/0", "log/0", "manifest.bson", "trees/tables/3"]);
        assert_eq!(ImageList::parse(list.document().as_ref()), Some(list.clone()));
        assert_eq!(list.bytes(), 28);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in [
            "../a",
            "/etc/passwd",
            "log/../../a",
            "log",
            "log/",
            "vote",
            "member",
            "log//a",
            "log/./a",
            "log/a/.",
            "",
            "trees/..",
            "./log/a",
            "rollback/a",
            "log/a\0b",
        ] {
            assert!(!is_of_image(name), "{name}");
            assert_eq!(ImageList::parse(list(&["manifest.bson", name]).document().as_ref()), None, "{name}");
        }
        assert_eq!(ImageList::parse(list(&["log/0"]).document().as_ref()), None, "no manifest");
        assert_eq!(ImageList::parse(list(&["log/0", "log/0", "manifest.bson"]).document().as_ref()), None, "twice");
    }
}
