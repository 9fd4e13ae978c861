//! Memory: reads of our own address space that cannot fault, and private copies.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Reads this process's memory at `address` without risking a fault. `false` when not all of it is readable, or the kernel refuses the call.
/// Async-signal-safe (one system call, may set `errno`).
pub fn read_own(process: i32, address: u64, into: &mut [u8]) -> bool {
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: into.len(),
    };
    // SAFETY: `local` is exactly `into`; the remote side is checked by the kernel, which reports what it cannot read instead of faulting.
    let read = unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) };
    read >= 0 && read as usize == into.len()
}

/// Where the memory ends that `brk` gives: the C library's heap, with the program's own variables below. Not for signal handlers.
pub fn program_break() -> u64 {
    // SAFETY: moves nothing; the C library reads a word for it, or asks the kernel.
    let end = unsafe { libc::sbrk(0) } as u64;
    // All ones: refused.
    if end == u64::MAX { 0 } else { end }
}

/// One word by [`read_own`].
pub fn read_own_word(process: i32, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    read_own(process, address, &mut bytes).then(|| u64::from_ne_bytes(bytes))
}

/// Whether every word at these addresses has the expected value now, by one system call. At most [`MOST_WORDS`] of them.
pub fn own_words_are(process: i32, expected: impl Iterator<Item = (u64, u64)>) -> bool {
    let (remote, values): (Vec<libc::iovec>, Vec<u64>) = expected
        .map(|(address, value)| {
            let word = libc::iovec {
                iov_base: address as *mut libc::c_void,
                iov_len: size_of::<u64>(),
            };
            (word, value)
        })
        .unzip();
    if remote.len() > MOST_WORDS {
        return false;
    }
    let mut found = vec![0_u64; values.len()];
    let local = libc::iovec {
        iov_base: found.as_mut_ptr().cast(),
        iov_len: size_of_val(found.as_slice()),
    };
    // SAFETY: `local` is exactly `found`; the remote side is checked by the kernel, which reports what it cannot read instead of faulting.
    let read = unsafe { libc::process_vm_readv(process, &local, 1, remote.as_ptr(), remote.len() as libc::c_ulong, 0) };
    read >= 0 && read as usize == local.iov_len && found == values
}

/// The kernel's limit on pieces of one read (`UIO_MAXIOV`).
pub const MOST_WORDS: usize = 1024;

/// Whether [`read_own`] works here at all: some containers forbid the call.
pub fn can_read_own(process: i32) -> bool {
    let here = 0x5eed_u64;
    read_own_word(process, (&raw const here) as u64) == Some(here)
}

/// Reads this process's memory through `/proc/self/mem`, for where [`read_own`] is forbidden. Not for signal handlers.
pub fn read_own_file(address: u64, into: &mut [u8]) -> bool {
    File::open("/proc/self/mem").is_ok_and(|memory| memory.read_exact_at(into, address).is_ok())
}

/// A private copy of bytes in anonymous memory: it stays what it is whatever happens to the file, the mapping or the host's heap it came from.
#[derive(Debug)]
pub struct AnonymousCopy {
    start: *mut u8,
    length: usize,
}

// SAFETY: the mapping is owned by this value alone and read-only once made.
unsafe impl Send for AnonymousCopy {}
// SAFETY: as above.
unsafe impl Sync for AnonymousCopy {}

impl AnonymousCopy {
    /// Maps `length` bytes and lets `fill` write them; read-only afterwards. `fill` says whether it could.
    ///
    /// # Errors
    /// What `mmap` says; `UnexpectedEof` when `fill` could not.
    pub fn new(length: usize, fill: impl FnOnce(&mut [u8]) -> bool) -> io::Result<Self> {
        if length == 0 {
            return Ok(AnonymousCopy {
                start: std::ptr::NonNull::dangling().as_ptr(),
                length: 0,
            });
        }
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let copy = AnonymousCopy {
            start: start.cast(),
            length,
        };
        // SAFETY: the mapping is `length` bytes, writable, zeroed, and nobody else knows of it.
        if !fill(unsafe { std::slice::from_raw_parts_mut(copy.start, length) }) {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        // SAFETY: our own mapping; if this fails it merely stays writable.
        unsafe { libc::mprotect(start, length, libc::PROT_READ) };
        Ok(copy)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped and unchanging until Drop; for length 0 the pointer is dangling and aligned, as a slice asks.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl Drop for AnonymousCopy {
    fn drop(&mut self) {
        if self.length != 0 {
            // SAFETY: our own mapping of this length, and no slice of it outlives `self`.
            unsafe { libc::munmap(self.start.cast(), self.length) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process() -> i32 {
        std::process::id() as i32
    }

    #[test]
    fn reads_find_what_is_there_and_refuse_what_is_not() {
        let word = 77_u64;
        assert_eq!(read_own_word(process(), (&raw const word) as u64), Some(77));
        assert_eq!(read_own_word(process(), 8), None);
        assert!(can_read_own(process()));
        let at = (&raw const word) as u64;
        assert!(own_words_are(process(), [(at, 77), (at, 77)].into_iter()));
        assert!(!own_words_are(process(), [(at, 77), (at, 78)].into_iter()));
        assert!(!own_words_are(process(), [(at, 77), (8, 0)].into_iter()));
        let mut bytes = [0; 8];
        assert!(read_own_file((&raw const word) as u64, &mut bytes));
        assert_eq!(u64::from_ne_bytes(bytes), 77);
        assert!(!read_own_file(8, &mut bytes));
    }

    #[test]
    fn a_copy_outlives_its_source() {
        let source = vec![3_u8; 10_000];
        let copy = AnonymousCopy::new(source.len(), |bytes| {
            bytes.copy_from_slice(&source);
            true
        })
        .unwrap();
        drop(source);
        assert!(copy.bytes().iter().all(|byte| *byte == 3));
        assert_eq!(copy.bytes().len(), 10_000);
        assert!(AnonymousCopy::new(10, |_| false).is_err());
        assert!(AnonymousCopy::new(0, |_| true).unwrap().bytes().is_empty());
    }
}
