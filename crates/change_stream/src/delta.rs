//! `updateDescription`: an oplog entry's delta, described by paths.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, number};

#[derive(Default)]
struct Description {
    updated: DocumentBuf,
    removed: ArrayBuf,
    truncated: ArrayBuf,
    ambiguous: DocumentBuf,
}

/// One step of a path.
#[derive(Clone, Copy)]
enum Step<'d> {
    Field(&'d str),
    Element(i32),
}

/// The description of `diff`.
pub(crate) fn describe(diff: DocumentRef<'_>, shown: Shown) -> DocumentBuf {
    let mut description = Description::default();
    description.document(diff, &mut Vec::new());
    let document = DocumentBuf::new()
        .with("updatedFields", &description.updated)
        .with("removedFields", &description.removed)
        .with("truncatedArrays", &description.truncated);
    match shown {
        Shown::Usual => document,
        Shown::Expanded => document.with("disambiguatedPaths", &description.ambiguous),
    }
}

/// Whether ambiguous paths are described too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Usual,
    Expanded,
}

impl Description {
    fn document<'d>(&mut self, diff: DocumentRef<'d>, path: &mut Vec<Step<'d>>) {
        for section in diff {
            match (section.name, section.value) {
                ("d", ValueRef::Document(gone)) => {
                    for field in gone {
                        let path = self.path(path, Step::Field(field.name));
                        self.removed.push(path.as_str());
                    }
                }
                ("u" | "i", ValueRef::Document(given)) => {
                    for field in given {
                        let path = self.path(path, Step::Field(field.name));
                        self.updated.append(&path, field.value);
                    }
                }
                (name, ValueRef::Document(inside)) => self.inside(inside, Step::Field(&name[1..]), path),
                _ => {}
            }
        }
    }

    fn array<'d>(&mut self, diff: DocumentRef<'d>, path: &mut Vec<Step<'d>>) {
        if let Some(length) = diff.get("l").and_then(number::as_i64_exact)
            && let Some(last) = path.pop()
        {
            let name = self.path(path, last);
            self.truncated.push(&DocumentBuf::new().with("field", name.as_str()).with("newSize", length as i32));
            path.push(last);
        }
        for section in diff {
            let index = section.name.get(1..).and_then(|digits| digits.parse().ok());
            match (section.name.as_bytes().first(), index) {
                (Some(b'u'), Some(index)) => {
                    let path = self.path(path, Step::Element(index));
                    self.updated.append(&path, section.value);
                }
                (Some(b's'), Some(index)) => {
                    if let Some(inside) = section.value.as_document() {
                        self.inside(inside, Step::Element(index), path);
                    }
                }
                _ => {}
            }
        }
    }

    fn inside<'d>(&mut self, diff: DocumentRef<'d>, step: Step<'d>, path: &mut Vec<Step<'d>>) {
        path.push(step);
        if matches!(diff.get("a"), Some(ValueRef::Boolean(true))) {
            self.array(diff, path);
        } else {
            self.document(diff, path);
        }
        path.pop();
    }

    /// The dotted path. A path that could be read in another way is also added to
    /// `disambiguatedPaths`.
    fn path(&mut self, above: &[Step<'_>], last: Step<'_>) -> String {
        let steps = || above.iter().copied().chain([last]);
        let text = |step: Step<'_>| match step {
            Step::Field(name) => name.to_owned(),
            Step::Element(index) => index.to_string(),
        };
        let path = steps().map(text).collect::<Vec<_>>().join(".");
        let is_ambiguous = |step: Step<'_>| match step {
            Step::Field(name) => name.contains('.') || name.bytes().all(|byte| byte.is_ascii_digit()),
            Step::Element(_) => false,
        };
        if steps().any(is_ambiguous) {
            let mut parts = ArrayBuf::new();
            for step in steps() {
                match step {
                    Step::Field(name) => parts.push(name),
                    Step::Element(index) => parts.push(index),
                };
            }
            self.ambiguous.append(&path, &parts);
        }
        path
    }
}
