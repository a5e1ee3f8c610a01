//! Random operations on every engine, each compared with a model.

mod operations;

use bunko_conformance::roster;
use bunko_engines::Entry;
use operations::machine::Machine;
use operations::{Operation, operation};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// Number of cases for each engine, unless `BUNKO_CONFORMANCE_CASES` gives another number.
const CASES: u32 = 12;
/// Maximum number of operations in a case.
const OPERATIONS_MAX: usize = 120;
/// Maximum number of attempts to make a failing case smaller.
const SHRINKS_MAX: u32 = 600;

#[test]
fn an_engine_does_what_its_model_does() {
    let cases = std::env::var("BUNKO_CONFORMANCE_CASES").ok();
    let cases = cases.map_or(CASES, |cases| cases.parse().expect("BUNKO_CONFORMANCE_CASES is a number"));
    roster::each_engine(|entry| {
        let config = Config { cases, max_shrink_iters: SHRINKS_MAX, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let operations = proptest::collection::vec(operation(), 1..OPERATIONS_MAX);
        match runner.run(&operations, |operations| run(entry, &operations)) {
            Ok(()) => {}
            Err(TestError::Fail(reason, operations)) => {
                let lines: Vec<String> = operations.iter().map(|operation| format!("  {operation:?}")).collect();
                panic!("{}: {reason}, after\n{}", entry.name, lines.join("\n"));
            }
            Err(TestError::Abort(reason)) => panic!("{}: {reason}", entry.name),
        }
    });
}

fn run(entry: &'static Entry, operations: &[Operation]) -> Result<(), TestCaseError> {
    let fail = |at: &str, difference| TestCaseError::fail(format!("{at}: {difference:?}"));
    let mut machine = Machine::new(entry);
    for (number, operation) in operations.iter().enumerate() {
        machine.step(operation).map_err(|difference| fail(&format!("operation {}", number + 1), difference))?;
    }
    machine.finish().map_err(|difference| fail("at the end", difference))
}
