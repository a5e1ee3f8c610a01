//! `--verify`: compares the server's data with the dump's.

use super::indexes::wanted;
use super::options::{IndexVersion, Indexes};
use super::run::Run;
use super::target::{RestoredNamespace, Role};
use crate::cursor::collect;
use crate::verify::{self, CollectionSum, ReadingOrder, Summed, normalised};
use crate::{Link, ToolError};
use bunko_bson::DocumentBuf;

/// Compares every collection of the dump with the server's; lists the differences.
/// # Errors
/// The server's error, or the connection's.
pub(super) fn differences(run: &Run<'_>) -> Result<Vec<String>, ToolError> {
    let mut link: Option<Box<dyn Link>> = None;
    let mut differences = Vec::new();
    for target in run.targets.iter().filter(|target| matches!(target.role, Role::Collection | Role::TimeSeries)) {
        let link = match &mut link {
            Some(link) => link,
            none => none.insert(run.connect(&target.name)?),
        };
        let found = found(run, &mut **link, target)?;
        let indexes = match run.options.indexes {
            Indexes::Restore => as_built(&target.metadata.indexes),
            Indexes::Skip => found.indexes.clone(),
        };
        let expected = CollectionSum { documents: *target.sum.lock(), indexes };
        differences.extend(verify::compare(&target.name, &expected, &found).iter().map(ToString::to_string));
    }
    Ok(differences)
}

fn found(run: &Run<'_>, link: &mut dyn Link, target: &RestoredNamespace) -> Result<CollectionSum, ToolError> {
    let collection = target.data_collection();
    let summed = Summed {
        database: &target.database,
        collection: &collection,
        order: ReadingOrder::Natural,
        read_concern: None,
    };
    let sum = verify::checksum(link, summed, run.progress, run.interrupted)?;
    let indexes = match target.role {
        // A time series has other indexes than the collection behind it.
        Role::TimeSeries => {
            let collected = |command: &DocumentBuf| collect(link, run.progress, &target.database, command);
            verify::list_indexes(&target.collection, collected)
                .map_err(|cause| ToolError::server(&target.name, cause))?
        }
        _ => sum.indexes,
    };
    Ok(CollectionSum { documents: sum.documents, indexes: as_built(&indexes) })
}

/// Removes indexes that come with the collection: dumps of old tools do not list all of them.
fn as_built(indexes: &[DocumentBuf]) -> Vec<DocumentBuf> {
    normalised(&wanted(indexes, IndexVersion::ChosenByServer))
}
