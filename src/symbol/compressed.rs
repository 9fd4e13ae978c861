//! What is compressed in a module's file.
//!
//! Some distributions pack a symbol table into stripped files (`.gnu_debugdata`, "MiniDebugInfo"): an ELF file of its own, compressed with xz, that holds
//! the names of those functions that the dynamic table lacks. And sections of debug information may be compressed one by one, mostly with zlib.

use std::io::Read;

use flate2::read::ZlibDecoder;
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

/// Unpacks a section that says to have `size` bytes; `None` when it is damaged or has another size. The caller bounds it.
pub fn inflate(packed: &[u8], size: u64) -> Option<Vec<u8>> {
    let mut unpacked = Vec::new();
    let read = ZlibDecoder::new(packed)
        .take(size.saturating_add(1))
        .read_to_end(&mut unpacked);
    (read.is_ok() && unpacked.len() as u64 == size).then_some(unpacked)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    #[test]
    fn a_section_has_the_size_it_says() {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&[7; 10_000]).unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(inflate(&packed, 10_000), Some(vec![7; 10_000]));
        assert_eq!(inflate(&packed, 9_999), None);
        assert_eq!(inflate(&packed, 10_001), None);
        assert_eq!(inflate(&packed[..packed.len() / 2], 10_000), None);
        assert_eq!(inflate(b"not zlib", 8), None);
    }

    /// `printf 'hello hello hello\n' | xz --check=crc64`
    const HELLO: &[u8] = &[0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46];

    #[test]
    fn damage_is_an_error() {
        assert!(unpack(b"").is_err());
        assert!(unpack(b"not xz").is_err());
        assert!(unpack(HELLO).is_err());
    }
}
