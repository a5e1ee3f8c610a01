//! Streams of documents.

use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef};
use bunko_errors::Result;
use bunko_expression::FieldPath;

/// Whether a visitor wants more documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on with the next document.
    More,
    /// Stop.
    Stop,
}

/// Values that take the place of a document's value at a path, one after the other.
#[derive(Clone, Copy)]
pub struct StandIns<'d> {
    /// The path.
    pub path: &'d FieldPath,
    /// The values in order.
    pub values: ArrayRef<'d>,
}

/// Receives a document, and the values that replace one of its own.
pub(crate) type StandInVisitor<'v> = dyn for<'d> FnMut(DocumentRef<'d>, Option<StandIns<'d>>) -> Result<Flow> + 'v;

/// A source of documents, pulled one by one or visited in place.
pub trait DocumentStream: Send {
    /// The next document; `None` at the end.
    /// # Errors
    /// Errors of the source or of an expression; the stream is not used afterwards.
    fn next(&mut self) -> Result<Option<DocumentBuf>>;

    /// Visits the remaining documents until the visitor stops, without copying each if the source can lend them.
    /// `$match` below `$group` avoids all of its copies this way.
    /// # Errors
    /// As [`Self::next`], and errors of the visitor.
    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        while let Some(document) = self.next()? {
            if visitor(document.as_ref())? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }

    /// Takes the number of the remaining documents if the source knows it without reading them; none remains then. Only for
    /// a reader to which all documents are alike.
    fn take_count(&mut self) -> Option<u64> {
        None
    }

    /// Whether [`Self::visit_part`] lends documents without copying each.
    fn lends_parts(&self) -> bool {
        false
    }

    /// As [`Self::visit`], for a visitor that may come back: the stream then continues after the document where it
    /// stopped.
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

    /// The path whose values [`Self::visit_with_stand_ins`] lends apart from their documents; `None` if it does not.
    fn stand_in_path(&self) -> Option<FieldPath> {
        None
    }

    /// As [`Self::visit`], for a visitor that reads the value at the path only through the stand-ins. Documents that
    /// differ only there need not be built.
    /// # Errors
    /// As [`Self::visit`].
    fn visit_with_stand_ins(&mut self, visitor: &mut StandInVisitor<'_>) -> Result<()> {
        self.visit(&mut |document| visitor(document, None))
    }

    /// Adds `explain` facts about the run of the top stage, beyond those of all stages.
    fn describe_run(&self, _facts: &mut DocumentBuf) {}
}

/// A stream of documents in memory.
pub struct Documents(std::vec::IntoIter<DocumentBuf>);

impl Documents {
    /// A stream of these documents.
    pub fn new(documents: Vec<DocumentBuf>) -> Self {
        Self(documents.into_iter())
    }

    /// An empty stream.
    pub fn none() -> Self {
        Self::new(Vec::new())
    }
}

impl DocumentStream for Documents {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        Ok(self.0.next())
    }
}
