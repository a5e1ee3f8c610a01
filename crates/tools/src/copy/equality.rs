//! Compares source and target: names, options, indexes, and sums of all documents.
//!
//! `dbHash` was rejected: on some servers it holds back writers while it reads a whole database, it leaves out some
//! collections, and it does not say what differs.

use super::listing::{self, Kind, Listed};
use super::pair::Pair;
use super::{Comparison, Copy, Notice, definitions};
use crate::verify::{self, CollectionSum, DocumentSum, ReadingOrder, Summed, normalised};
use crate::{ToolError, retry};
use bunko_bson::DocumentBuf;

/// Maximum number of differences that a message lists; the others are only counted.
const TOLD_MAX: usize = 20;
/// Options of collections that have to be equal. Servers show others in different forms.
const OPTIONS: [&str; 8] =
    ["capped", "validator", "collation", "clusteredIndex", "timeseries", "viewOn", "pipeline", "expireAfterSeconds"];

/// Result for one namespace.
pub(super) struct Compared {
    pub(super) texts: Vec<String>,
    pub(super) documents: u64,
}

/// Compares everything in the scope. The source is read with that read concern, if there is one.
/// # Errors
/// The servers', the connections', `Interrupted`; `Failed` lists the differences.
pub(super) fn check(copy: &Copy<'_>, pair: &mut Pair, read_concern: Option<&DocumentBuf>) -> Result<(), ToolError> {
    if copy.options.comparison == Comparison::Nothing {
        return Ok(());
    }
    let wanted = listing::all(pair.source(), &copy.scope)?;
    let found = listing::all(pair.target(), &copy.scope)?;
    let (mut texts, mut documents) = (Vec::new(), 0);
    for listed in &wanted {
        let compared = differences(copy, pair, listed, read_concern)?;
        documents += compared.documents;
        texts.extend(compared.texts);
    }
    for extra in found.iter().filter(|extra| !wanted.iter().any(|listed| listed.namespace() == extra.namespace())) {
        texts.push(format!("{}: the source does not have it", extra.namespace()));
    }
    if texts.is_empty() {
        (copy.report)(&Notice::Equal { namespaces: wanted.len() as u64, documents });
        return Ok(());
    }
    let count = texts.len();
    texts.truncate(TOLD_MAX);
    Err(ToolError::Failed(format!(
        "source and target differ in {count} places; if the source was written to meanwhile, stop its writes and \
         compare again with --finish:\n{}",
        texts.join("\n")
    )))
}

/// Compares one namespace of the source with the target's.
/// # Errors
/// The servers', the connections', `Interrupted`.
pub(super) fn differences(
    copy: &Copy<'_>,
    pair: &mut Pair,
    wanted: &Listed,
    read_concern: Option<&DocumentBuf>,
) -> Result<Compared, ToolError> {
    retry::check(copy.interrupted)?;
    let namespace = wanted.namespace();
    let Some(found) = listing::one(pair.target(), &wanted.database, &wanted.name)? else {
        return Ok(Compared { texts: vec![format!("{namespace}: the target does not have it")], documents: 0 });
    };
    let mut texts = Vec::new();
    if wanted.kind != found.kind {
        texts.push(format!("{namespace}: {:?}, not {:?}", found.kind, wanted.kind));
    }
    for name in OPTIONS {
        let of = |listed: &Listed| {
            let mut option = DocumentBuf::new();
            if let Some(value) = listed.options.as_ref().get(name) {
                option.append(name, value);
            }
            normalised(&[option])
        };
        if of(wanted) != of(&found) {
            texts.push(format!("{namespace}: option '{name}' is {:?}, not {:?}", of(&found), of(wanted)));
        }
    }
    if wanted.kind == Kind::View || !texts.is_empty() {
        return Ok(Compared { texts, documents: 0 });
    }
    let (expected, present) = sums(copy, pair, wanted, read_concern)?;
    texts.extend(verify::compare(&namespace, &expected, &present).iter().map(ToString::to_string));
    Ok(Compared { texts, documents: expected.documents.documents })
}

/// The sums of both collections, read at the same time.
fn sums(
    copy: &Copy<'_>,
    pair: &mut Pair,
    listed: &Listed,
    read_concern: Option<&DocumentBuf>,
) -> Result<(CollectionSum, CollectionSum), ToolError> {
    let read_concern = read_concern.filter(|concern| !listed.is_capped() || !super::is_snapshot(concern));
    let order = if listed.is_series() { ReadingOrder::Any } else { ReadingOrder::Natural };
    let Listed { database, name: collection, .. } = listed;
    let of = |server: &dyn crate::Server, read_concern| -> Result<DocumentSum, ToolError> {
        let mut link = server.connect().map_err(|cause| ToolError::server(listed.namespace(), cause))?;
        let summed = Summed { database, collection, order, read_concern };
        verify::checksum(link.as_mut(), summed, copy.progress, copy.interrupted).map(|sum| sum.documents)
    };
    let (expected, present) = std::thread::scope(|scope| {
        let source = scope.spawn(|| of(copy.source, read_concern));
        let present = of(copy.target, None);
        (source.join().expect("the thread does not panic"), present)
    });
    let indexes = |indexes: Vec<DocumentBuf>| normalised(&indexes);
    let expected_indexes = indexes(definitions::indexes(pair.source(), database, collection)?);
    let present_indexes = indexes(definitions::indexes(pair.target(), database, collection)?);
    Ok((
        CollectionSum { documents: expected?, indexes: expected_indexes },
        CollectionSum { documents: present?, indexes: present_indexes },
    ))
}
