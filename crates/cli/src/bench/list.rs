//! `bunko bench list`.

use bunko_bench::operation::OPERATIONS;
use bunko_bench::scenario::BUILTIN;
use bunko_dataset::SHAPES;
use std::process::ExitCode;

pub fn print() -> ExitCode {
    println!("Scenarios (bunko bench NAME; bunko bench show NAME prints the file):");
    for builtin in BUILTIN {
        println!("  {:<20} {}", builtin.name, builtin.about());
    }
    println!("\nOperations of a phase (operation.NAME = {{ settings }}):");
    for (name, about) in OPERATIONS {
        println!("  {name:<20} {about}");
    }
    println!("\nShapes of documents (dataset.shape):");
    for shape in SHAPES {
        println!("  {:<20} {}", shape.name, shape.about);
    }
    ExitCode::SUCCESS
}
