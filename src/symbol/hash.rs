//! The hash of the server's executable.

use std::fs::File;
use std::io::{self, Read};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::limits::{SYMBOL_FILE_BYTES, WRITE_BUFFER_BYTES};

/// SHA-256 of the executable that runs, as hexadecimal text. Read once per process: what runs does not change, and the kernel keeps the file even when
/// an update has put another in its place. `None` when it cannot be read.
pub fn executable_sha256() -> Option<String> {
    static HASH: OnceLock<Option<String>> = OnceLock::new();
    HASH.get_or_init(|| sha256(File::open("/proc/self/exe").ok()?).ok())
        .clone()
}

fn sha256(file: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; WRITE_BUFFER_BYTES];
    let mut file = file.take(SYMBOL_FILE_BYTES);
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(buffer.get(..count).unwrap_or_default());
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_of_the_standard() {
        // FIPS 180-4, the example with one block.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(&b"abc"[..]).unwrap(), expected);
        assert_eq!(executable_sha256().unwrap().len(), 64);
    }
}
