//! `bunko bench list`.

use crate::printed::print_line;
use bunko_bench::operation::OPERATIONS;
use bunko_bench::scenario::BUILTIN;
use bunko_dataset::SHAPES;
use std::process::ExitCode;

/// Prints all names that a scenario may use.
/// # Errors
/// One line, if it cannot be written.
pub fn print() -> Result<ExitCode, String> {
    print_line(format_args!("Scenarios (bunko bench NAME; bunko bench show NAME prints the file):"))?;
    for builtin in BUILTIN {
        print_line(format_args!("  {:<20} {}", builtin.name, builtin.about()))?;
    }
    print_line(format_args!("\nOperations of a phase (operation.NAME = {{ settings }}):"))?;
    for (name, about) in OPERATIONS {
        print_line(format_args!("  {name:<20} {about}"))?;
    }
    print_line(format_args!("\nShapes of documents (dataset.shape):"))?;
    for shape in SHAPES {
        print_line(format_args!("  {:<20} {}", shape.name, shape.about))?;
    }
    Ok(ExitCode::SUCCESS)
}
