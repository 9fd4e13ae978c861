//! What a server prints, line by line, to be waited for.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A place in a server's output; everything printed later comes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(usize);

impl Mark {
    /// Before everything.
    pub const fn start() -> Self {
        Self(0)
    }
}

/// What a line must be like.
pub trait Pattern {
    /// Whether it is.
    fn matches(&self, line: &str) -> bool;
    /// For error texts.
    fn describe(&self) -> String;
}

/// A line that contains this text.
impl Pattern for &str {
    fn matches(&self, line: &str) -> bool {
        line.contains(self)
    }

    fn describe(&self) -> String {
        format!("a line with '{self}'")
    }
}

/// A line for which the closure says yes.
impl<F: Fn(&str) -> bool> Pattern for F {
    fn matches(&self, line: &str) -> bool {
        self(line)
    }

    fn describe(&self) -> String {
        "a matching line".to_owned()
    }
}

/// Why a wait ended without its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    /// Time was up.
    TimedOut,
    /// Nothing more can come.
    Closed,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<String>,
    open_streams: usize,
}

/// Lines of all streams, in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl Output {
    /// Reads a stream to its end on a thread of its own.
    pub fn follow(&self, stream: impl Read + Send + 'static) {
        self.state().open_streams += 1;
        let output = self.clone();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            let mut bytes = Vec::new();
            // A read error is an end as well.
            while reader.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
                let line = plain(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']));
                output.state().lines.push(line);
                output.shared.1.notify_all();
                bytes.clear();
            }
            output.state().open_streams -= 1;
            output.shared.1.notify_all();
        });
    }

    /// The place after everything printed so far.
    pub fn mark(&self) -> Mark {
        Mark(self.state().lines.len())
    }

    /// Everything printed after a mark.
    pub fn since(&self, mark: Mark) -> Vec<String> {
        self.state().lines.get(mark.0..).unwrap_or_default().to_vec()
    }

    /// The last lines.
    pub fn last(&self, count: usize) -> Vec<String> {
        let state = self.state();
        state.lines[state.lines.len().saturating_sub(count)..].to_vec()
    }

    /// The first line after the mark that matches, waited for.
    pub fn wait_for(&self, mark: Mark, pattern: &impl Pattern, timeout: Duration) -> Result<String, WaitEnd> {
        let deadline = Instant::now() + timeout;
        let mut state = self.state();
        let mut next = mark.0;
        loop {
            while let Some(line) = state.lines.get(next) {
                if pattern.matches(line) {
                    return Ok(line.clone());
                }
                next += 1;
            }
            if state.open_streams == 0 {
                return Err(WaitEnd::Closed);
            }
            state = self.wait(state, deadline)?;
        }
    }

    /// Waits until all streams have ended; false if time was up before.
    pub fn wait_closed(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.state();
        while state.open_streams > 0 {
            match self.wait(state, deadline) {
                Ok(next) => state = next,
                Err(_) => return false,
            }
        }
        true
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, deadline: Instant) -> Result<MutexGuard<'a, State>, WaitEnd> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(WaitEnd::TimedOut);
        }
        Ok(self
            .shared
            .1
            .wait_timeout(state, left)
            .unwrap_or_else(PoisonError::into_inner)
            .0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without terminal colours (`ESC [ ... letter`).
fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("\x1b[") {
        text.push_str(&rest[..at]);
        let sequence = &rest[at + 2..];
        rest = sequence
            .find(|c: char| ('@'..='~').contains(&c))
            .map_or("", |end| &sequence[end + 1..]);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn colours_are_taken_out() {
        assert_eq!(plain("\x1b[32m[INFO]\x1b[0m ok \x1b[1;31mred"), "[INFO] ok red");
        assert_eq!(plain("no colours, caf\u{e9}"), "no colours, caf\u{e9}");
        assert_eq!(plain("cut off \x1b[3"), "cut off ");
    }

    #[test]
    fn a_wait_ends_with_the_line_that_comes_later() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let output = Output::default();
        output.follow(reader);
        writer.write_all(b"one\ntwo\n").unwrap();
        assert_eq!(output.wait_for(Mark(0), &"two", LONG).unwrap(), "two");
        let mark = output.mark();
        let waiting = {
            let output = output.clone();
            std::thread::spawn(move || output.wait_for(mark, &"t", LONG))
        };
        writer.write_all(b"three\r\n").unwrap();
        assert_eq!(waiting.join().unwrap().unwrap(), "three");
        assert_eq!(output.since(mark), ["three"]);
    }

    #[test]
    fn a_wait_ends_when_all_streams_do() {
        let output = Output::default();
        output.follow(&b"only this, with no line end"[..]);
        output.follow(&b""[..]);
        assert_eq!(output.wait_for(Mark(0), &"that", LONG), Err(WaitEnd::Closed));
        assert_eq!(output.since(Mark(0)), ["only this, with no line end"]);
        assert!(output.wait_closed(LONG));
    }

    #[test]
    fn a_wait_ends_when_time_is_up() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let output = Output::default();
        output.follow(reader);
        let never = |_: &str| true;
        assert_eq!(output.wait_for(Mark(0), &never, Duration::ZERO), Err(WaitEnd::TimedOut));
        assert!(!output.wait_closed(Duration::ZERO));
    }
}
