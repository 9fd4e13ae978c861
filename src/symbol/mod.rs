//! Names of native addresses, from the files of the modules. Never used in signal context.

mod demangle;
mod elf;
mod error;
mod extents;
mod open;
mod plt;
mod symbolizer;
mod table;

pub use demangle::demangle;
pub use error::SymbolError;
pub use symbolizer::Symbolizer;
