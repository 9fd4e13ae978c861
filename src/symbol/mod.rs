//! Names of native addresses, from the files of the modules. Never used in signal context.

mod compressed;
mod demangle;
mod dwarf;
mod elf;
mod error;
mod extents;
mod hash;
mod open;
mod plt;
mod read;
mod symbolizer;
mod table;

pub use demangle::demangle;
pub use error::SymbolError;
pub use hash::executable_sha256;
pub use symbolizer::Symbolizer;
