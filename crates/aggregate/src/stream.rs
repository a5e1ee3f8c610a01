//! Documents, one after the other.

use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef};
use bunko_errors::Result;
use bunko_expression::FieldPath;

/// Whether a visitor wants more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// On to the next document.
    More,
    /// Enough.
    Stop,
}

/// Values that stand one after the other at a path of a document, in the place of what it has there.
#[derive(Clone, Copy)]
pub struct StandIns<'d> {
    /// Where.
    pub path: &'d FieldPath,
    /// One after the other.
    pub values: ArrayRef<'d>,
}

/// Takes a document and what stands in for one of its values.
pub(crate) type StandInVisitor<'v> = dyn for<'d> FnMut(DocumentRef<'d>, Option<StandIns<'d>>) -> Result<Flow> + 'v;

/// A source of documents, pulled one by one or visited in place.
pub trait DocumentStream: Send {
    /// The next document; nothing after the last.
    /// # Errors
    /// What the source or an expression fails with; the stream is not used afterwards.
    fn next(&mut self) -> Result<Option<DocumentBuf>>;

    /// Visits the documents that are left, without a copy of each where the source can lend them, until the visitor
    /// has enough. `$match` below `$group` saves all its copies by it.
    /// # Errors
    /// As [`Self::next`], and the visitor's own.
    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        while let Some(document) = self.next()? {
            if visitor(document.as_ref())? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }

    /// Whether [`Self::visit_part`] lends documents without a copy of each.
    fn lends_parts(&self) -> bool {
        false
    }

    /// The same as [`Self::visit`] for one who comes back: what is behind the document that it stopped at is still to come.
    /// # Errors
    /// As [`Self::visit`].
    fn visit_part(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        while let Some(document) = self.next()? {
            if visitor(document.as_ref())? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }

    /// The path at which [`Self::visit_with_stand_ins`] lends values apart from their documents; nothing where it does not.
    fn stand_in_path(&self) -> Option<FieldPath> {
        None
    }

    /// The same as [`Self::visit`] for one who reads nothing that holds the value at the path: documents that differ only
    /// there are not written out.
    /// # Errors
    /// As [`Self::visit`].
    fn visit_with_stand_ins(&mut self, visitor: &mut StandInVisitor<'_>) -> Result<()> {
        self.visit(&mut |document| visitor(document, None))
    }

    /// Adds what the stage on top did, beyond what all stages are asked for, to what `explain` says of it.
    fn describe_run(&self, _facts: &mut DocumentBuf) {}
}

/// Documents that are in memory already.
pub struct Documents(std::vec::IntoIter<DocumentBuf>);

impl Documents {
    /// A stream of these.
    pub fn new(documents: Vec<DocumentBuf>) -> Self {
        Self(documents.into_iter())
    }

    /// A stream of no documents.
    pub fn none() -> Self {
        Self::new(Vec::new())
    }
}

impl DocumentStream for Documents {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        Ok(self.0.next())
    }
}
