//! Lines from standard input, read on the main thread and executed on the server thread.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::own_python;
use crate::say::say;

/// Executed by the main thread.
const FINALISE: &str = "!finalise";

/// The queue between the main thread, which reads, and the server thread, which executes.
#[derive(Debug)]
pub struct Console {
    lines: Mutex<VecDeque<String>>,
    /// No more lines will come.
    ended: AtomicBool,
    stopping: AtomicBool,
    /// Readable once the server stops, so that the main thread leaves its wait for input.
    stopped: OwnedFd,
}

impl Console {
    pub fn new() -> std::io::Result<Console> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and ours.
        let stopped = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Console {
            lines: Mutex::default(),
            ended: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            stopped,
        })
    }

    /// The next line to execute, if there is one.
    pub fn next(&self) -> Option<String> {
        self.lines
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .pop_front()
    }

    fn push(&self, line: String) {
        if line == FINALISE {
            // Python ends where it was started, and the server thread goes on meanwhile.
            say(&format!("{FINALISE} {}", own_python::finalise()));
            return;
        }
        self.lines
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push_back(line);
    }

    /// Whether the input has ended. Lines that came before it may still be in the queue.
    pub fn has_ended(&self) -> bool {
        // Acquire pairs with the Release in `read_lines`: whoever sees the end also finds every line in the queue.
        self.ended.load(Ordering::Acquire)
    }

    /// Asks the server thread to end after the tick it is in. Callable from any thread and from a signal handler.
    pub fn request_stop(&self) {
        // Release pairs with the Acquire in `is_stopping`; no other data is handed over.
        self.stopping.store(true, Ordering::Release);
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight readable bytes, as an eventfd takes them. It can only fail when the counter is full, which wakes as well.
        unsafe { libc::write(self.stopped.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    pub fn is_stopping(&self) -> bool {
        // Acquire pairs with the Release in `request_stop`.
        self.stopping.load(Ordering::Acquire)
    }

    /// Reads lines until the input ends or the server stops.
    pub fn read_lines(&self) {
        let mut splitter = LineSplitter::default();
        let mut buffer = [0u8; 4096];
        while self.wait_for_input() {
            // SAFETY: the buffer is writable for its length.
            let count = unsafe { libc::read(libc::STDIN_FILENO, buffer.as_mut_ptr().cast(), buffer.len()) };
            if count < 0 && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted {
                continue;
            }
            if count <= 0 {
                splitter.finish().into_iter().for_each(|line| self.push(line));
                // Release pairs with the Acquire in `has_ended`.
                self.ended.store(true, Ordering::Release);
                return;
            }
            splitter
                .feed(&buffer[..count as usize])
                .into_iter()
                .for_each(|line| self.push(line));
        }
    }

    /// Waits; false once the server stops.
    fn wait_for_input(&self) -> bool {
        let wait = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut fds = [wait(libc::STDIN_FILENO), wait(self.stopped.as_raw_fd())];
        loop {
            // SAFETY: both records are valid and writable.
            let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, -1) };
            if self.is_stopping() {
                return false;
            }
            if ready > 0 && fds[0].revents != 0 {
                return true;
            }
        }
    }
}

/// Splits a byte stream into lines.
#[derive(Debug, Default)]
struct LineSplitter {
    rest: Vec<u8>,
}

impl LineSplitter {
    fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(bytes);
        let mut lines = Vec::new();
        while let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            lines.push(text(&line));
        }
        lines
    }

    /// What stands after the last line break.
    fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.rest);
        (!rest.is_empty()).then(|| text(&rest))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_the_bytes_arrive() {
        let mut splitter = LineSplitter::default();
        assert!(splitter.feed(b"spark pro").is_empty());
        assert_eq!(
            splitter.feed(b"filer info\r\n\nstop\nla"),
            ["spark profiler info", "", "stop"]
        );
        assert_eq!(splitter.finish().as_deref(), Some("la"));
        assert_eq!(splitter.finish(), None);
    }
}
