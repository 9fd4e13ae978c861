//! What a process takes up.

use std::path::PathBuf;

use crate::error::{FileContext, Result};

/// A Python expression by which Endstone's allocator (mimalloc) gives free memory back: it keeps what is free, and the kernel makes large pages of that in the course of minutes, used or not. Both
/// look like growth.
pub const GIVE_BACK: &str = "__import__('ctypes').CDLL(None).mi_collect(1)";

/// One look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Footprint {
    /// Memory that is really there, in KiB.
    pub resident_kib: u64,
    /// Threads.
    pub threads: usize,
    /// Open file descriptors.
    pub descriptors: usize,
    /// Lines of `/proc/PID/maps`.
    pub mappings: usize,
}

impl Footprint {
    /// Of a process of ours.
    ///
    /// # Errors
    /// If it has ended.
    pub fn of(pid: u32) -> Result<Self> {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let count = |folder: &str| {
            let path = process.join(folder);
            std::fs::read_dir(&path).map(Iterator::count).context("read", &path)
        };
        let text = |file: &str| {
            let path = process.join(file);
            std::fs::read_to_string(&path).context("read", &path)
        };
        let status = text("status")?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        Ok(Footprint {
            // A process that is just ending has none.
            resident_kib: resident
                .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
                .unwrap_or(0),
            threads: count("task")?,
            descriptors: count("fd")?,
            mappings: text("maps")?.lines().count(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_some_of_everything() {
        let found = Footprint::of(std::process::id()).unwrap();
        assert!(found.resident_kib > 500 && found.threads > 0 && found.descriptors > 2 && found.mappings > 5);
        assert!(Footprint::of(u32::MAX).is_err());
    }
}
