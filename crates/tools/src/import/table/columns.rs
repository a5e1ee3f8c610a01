//! The columns of a table, and the documents that their names describe: a column `a.b` is a field `b` of a document
//! `a`.

use super::Row;
use super::fields::Fields;
use super::types::{ColumnType, Misfit};
use crate::import::options::{Blanks, ColumnTypes, Grace, Positions, Separator, TableOptions};
use bunko_bson::Type;

/// A table's columns.
#[derive(Debug)]
pub(in crate::import) struct Columns {
    separator: Separator,
    grace: Grace,
    blanks: Blanks,
    types: Vec<ColumnType>,
    names: Vec<String>,
    root: Vec<(String, Node)>,
}

/// The value below a name.
#[derive(Debug)]
enum Node {
    Column(usize),
    Document(Vec<(String, Node)>),
    Array(Vec<(String, Node)>),
}

/// Whether a value was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Yes,
    No,
}

/// Reason why a record becomes no document.
enum Refusal {
    SkipRow,
    Stop(String),
}

impl Columns {
    /// Reads the names of the columns.
    /// # Errors
    /// A sentence that names the column: names that are doubled, empty or contradict each other, and unknown types.
    pub(in crate::import) fn new(names: &[String], options: &TableOptions) -> Result<Self, String> {
        let (mut types, mut plain) = (Vec::new(), Vec::new());
        for name in names {
            let (name, kind) = match options.types {
                ColumnTypes::Automatic => (name.as_str(), ColumnType::Auto),
                ColumnTypes::Declared => ColumnType::split(name)?,
            };
            types.push(kind);
            plain.push(name.to_owned());
        }
        let mut root = Vec::new();
        for (column, name) in plain.iter().enumerate() {
            if name.contains('\0') || name.split('.').any(str::is_empty) {
                return Err(format!("the column name {name:?} cannot be a field's path"));
            }
            place(&mut root, name, column).map_err(|()| {
                format!("the column name {name:?} is there twice, or contradicts another that begins with it")
            })?;
        }
        if options.positions == Positions::AsIndexes {
            find_arrays(&mut root, "")?;
        }
        let TableOptions { separator, grace, blanks, .. } = *options;
        Ok(Self { separator, grace, blanks, types, names: plain, root })
    }

    pub(super) fn separator(&self) -> Separator {
        self.separator
    }

    /// Appends the document of a record.
    /// # Errors
    /// A sentence that names the column and the value.
    pub(super) fn append(&self, fields: &Fields, out: &mut Vec<u8>) -> Result<Row, String> {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        let appended = self.append_nodes(&self.root, fields, out).and_then(|_| self.append_surplus(fields, out));
        match appended {
            Ok(()) => {}
            Err(Refusal::SkipRow) => {
                out.truncate(start);
                return Ok(Row::Skipped);
            }
            Err(Refusal::Stop(reason)) => {
                out.truncate(start);
                return Err(reason);
            }
        }
        close(out, start);
        Ok(Row::Document)
    }

    fn append_nodes(&self, nodes: &[(String, Node)], fields: &Fields, out: &mut Vec<u8>) -> Result<Written, Refusal> {
        let mut written = Written::No;
        for (name, node) in nodes {
            if self.append_node(name, node, fields, out)? == Written::Yes {
                written = Written::Yes;
            }
        }
        Ok(written)
    }

    fn append_node(&self, name: &str, node: &Node, fields: &Fields, out: &mut Vec<u8>) -> Result<Written, Refusal> {
        let start = out.len();
        let (kind, below) = match node {
            Node::Column(column) if *column < fields.count() => {
                return self.append_value(name, *column, fields.get(*column), out);
            }
            Node::Column(_) => return Ok(Written::No),
            Node::Document(below) => (Type::Document, below),
            Node::Array(below) => (Type::Array, below),
        };
        push_name(out, kind, name);
        let body = out.len();
        out.extend_from_slice(&[0; 4]);
        let written = match kind {
            Type::Array => self.append_elements(below, fields, out)?,
            _ => self.append_nodes(below, fields, out)?,
        };
        match written {
            Written::Yes => close(out, body),
            // If the record lacks all columns of a document or an array, that is left out too.
            Written::No => out.truncate(start),
        }
        Ok(written)
    }

    /// Appends an array's elements. A missing element in front of others becomes null, so that these keep their
    /// positions.
    fn append_elements(
        &self,
        nodes: &[(String, Node)],
        fields: &Fields,
        out: &mut Vec<u8>,
    ) -> Result<Written, Refusal> {
        let (mut written, mut end) = (Written::No, out.len());
        for (name, node) in nodes {
            match self.append_node(name, node, fields, out)? {
                Written::Yes => (written, end) = (Written::Yes, out.len()),
                Written::No => push_name(out, Type::Null, name),
            }
        }
        out.truncate(end);
        Ok(written)
    }

    fn append_value(&self, name: &str, column: usize, text: &str, out: &mut Vec<u8>) -> Result<Written, Refusal> {
        if text.is_empty() && self.blanks == Blanks::Ignore {
            return Ok(Written::No);
        }
        let start = out.len();
        push_name(out, Type::Null, name);
        let kind = self.types[column].append(text, out).or_else(|Misfit(wanted)| match self.grace {
            Grace::AutoCast => Ok(Some(ColumnType::append_auto(text, out))),
            Grace::SkipField => Ok(None),
            Grace::SkipRow => Err(Refusal::SkipRow),
            Grace::Stop => {
                let column = &self.names[column];
                Err(Refusal::Stop(format!("column {column:?}: {:?} is not {wanted}", shorten(text))))
            }
        })?;
        match kind {
            Some(kind) => {
                out[start] = kind as u8;
                Ok(Written::Yes)
            }
            None => {
                out.truncate(start);
                Ok(Written::No)
            }
        }
    }

    /// Appends values after the last column under the names that mongoimport gives them: `field` and their number.
    fn append_surplus(&self, fields: &Fields, out: &mut Vec<u8>) -> Result<(), Refusal> {
        for index in self.names.len()..fields.count() {
            let name = format!("field{index}");
            if self.root.iter().any(|(known, _)| *known == name) {
                return Err(Refusal::Stop(format!(
                    "there is a value after the last column, whose name would be {name:?} as a column's is"
                )));
            }
            let text = fields.get(index);
            if text.is_empty() && self.blanks == Blanks::Ignore {
                continue;
            }
            let start = out.len();
            push_name(out, Type::Null, &name);
            out[start] = ColumnType::append_auto(text, out) as u8;
        }
        Ok(())
    }
}

/// Places a column below the names of its path. Fails where a name is a column and a document at the same time.
fn place(nodes: &mut Vec<(String, Node)>, path: &str, column: usize) -> Result<(), ()> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let known = nodes.iter_mut().find(|(known, _)| known == name);
    match (known, rest) {
        (None, None) => nodes.push((name.to_owned(), Node::Column(column))),
        (None, Some(rest)) => {
            let mut below = Vec::new();
            place(&mut below, rest, column)?;
            nodes.push((name.to_owned(), Node::Document(below)));
        }
        (Some((_, Node::Document(below))), Some(rest)) => place(below, rest, column)?,
        _ => return Err(()),
    }
    Ok(())
}

/// Turns documents whose names are the numbers from 0 on into arrays.
fn find_arrays(nodes: &mut [(String, Node)], path: &str) -> Result<(), String> {
    for (name, node) in nodes {
        let Node::Document(below) = node else { continue };
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        find_arrays(below, &path)?;
        let numbers = below.iter().filter(|(name, _)| name.bytes().all(|byte| byte.is_ascii_digit())).count();
        if numbers == 0 {
            continue;
        }
        if below.iter().enumerate().any(|(index, (name, _))| *name != index.to_string()) {
            return Err(format!(
                "the columns below {path:?} are not the positions 0, 1, ... of an array, in this order"
            ));
        }
        *node = Node::Array(std::mem::take(below));
    }
    Ok(())
}

fn push_name(out: &mut Vec<u8>, kind: Type, name: &str) {
    out.push(kind as u8);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
}

fn close(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// The first characters of a value, for messages.
fn shorten(text: &str) -> String {
    text.chars().take(60).collect()
}
