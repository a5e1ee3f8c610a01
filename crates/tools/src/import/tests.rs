//! Options for the tests of an import's parts.

use super::*;
use crate::restore::{InsertionOrder, OnError, Validation};
use bunko_client::WriteConcern;
use std::num::NonZeroUsize;

/// An import of JSON lines into `shop.orders`.
pub(super) fn options(file: &str) -> ImportOptions {
    ImportOptions {
        source: Source::File(file.into()),
        format: Format::Json(JsonForm::Lines),
        database: "shop".into(),
        collection: "orders".into(),
        mode: Mode::Insert,
        key_fields: vec!["_id".into()],
        existing: Existing::Keep,
        on_error: OnError::GoOn,
        order: InsertionOrder::Any,
        workers: NonZeroUsize::MIN,
        write_concern: WriteConcern::default(),
        validation: Validation::Enforce,
        resume_file: None,
        run_id: RunId { seconds: 1, number: 2 },
    }
}

#[test]
fn options_that_mean_nothing_together_are_refused_by_name() {
    let plain = || options("f");
    assert!(plain().validate().is_ok());
    let refused = [
        (ImportOptions { source: Source::Stdin, resume_file: Some("j".into()), ..plain() }, "--resume: standard input"),
        (ImportOptions { key_fields: vec!["a".into()], ..plain() }, "--upsertFields needs --mode"),
        (
            ImportOptions {
                key_fields: vec!["a".into()],
                mode: Mode::Delete,
                resume_file: Some("j".into()),
                ..plain()
            },
            "--mode delete",
        ),
        (ImportOptions { validation: Validation::Bypass, mode: Mode::Delete, ..plain() }, "--bypassDocumentValidation"),
        (ImportOptions { workers: NonZeroUsize::new(65).expect("above zero"), ..plain() }, "--numInsertionWorkers"),
    ];
    for (options, words) in refused {
        let message = options.validate().expect_err("refused").to_string();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn only_inserts_are_written_in_any_order() {
    let many = |mode| ImportOptions { mode, workers: NonZeroUsize::new(8).expect("above zero"), ..options("f") };
    assert!(many(Mode::Insert).workers().get() == 8 && !many(Mode::Insert).stops_on_error());
    for mode in [Mode::Upsert, Mode::Merge, Mode::Delete] {
        assert!(many(mode).workers().get() == 1 && many(mode).stops_on_error(), "{mode:?}");
    }
}
