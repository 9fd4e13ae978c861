//! The symbol table that some distributions pack into stripped files (`.gnu_debugdata`, "MiniDebugInfo").
//!
//! It is an ELF file of its own, compressed with xz, that holds the names of those functions that the dynamic table lacks.

use std::io::Read;

use lzma_rust2::XzReader;

use super::error::SymbolError;
use crate::limits::{EMBEDDED_TABLE_BYTES, XZ_MEMORY_KIB};

/// Unpacks a section. What it unpacks to is bounded: a few kilobytes can claim to be gigabytes.
pub fn unpack(section: &[u8]) -> Result<Vec<u8>, SymbolError> {
    let mut unpacked = Vec::new();
    let reader = XzReader::new_mem_limit(section, false, XZ_MEMORY_KIB);
    reader.take(EMBEDDED_TABLE_BYTES + 1).read_to_end(&mut unpacked)?;
    if unpacked.len() as u64 > EMBEDDED_TABLE_BYTES {
        return Err(SymbolError::TableTooLarge(unpacked.len() as u64));
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf 'hello hello hello\n' | xz --check=crc64`
    const HELLO: &[u8] = &[0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46];

    #[test]
    fn damage_is_an_error() {
        assert!(unpack(b"").is_err());
        assert!(unpack(b"not xz").is_err());
        assert!(unpack(HELLO).is_err());
    }
}
