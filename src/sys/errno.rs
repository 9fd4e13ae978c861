//! `errno`, kept.

/// Restores `errno` to what it was when this was made. A signal handler that calls anything must have one: the code it interrupts may be
/// between a failed call and its look at `errno`.
#[derive(Debug)]
pub struct KeepErrno(i32);

impl KeepErrno {
    /// Remembers `errno`. Async-signal-safe: libc's own thread-local is the one thread-local a handler may touch, it exists from the thread's start.
    #[inline]
    pub fn new() -> Self {
        // SAFETY: the location is this thread's own and valid for its whole life.
        KeepErrno(unsafe { *libc::__errno_location() })
    }
}

impl Default for KeepErrno {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for KeepErrno {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: see `new`.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(value: i32) {
        // SAFETY: this thread's own errno.
        unsafe { *libc::__errno_location() = value };
    }

    #[test]
    fn errno_is_what_it_was() {
        set(7);
        let keep = KeepErrno::new();
        set(9);
        drop(keep);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(7));
    }
}
