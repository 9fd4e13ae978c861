//! Another profiler's process that looks at a server.

use crate::error::{Error, Result};
use crate::output::{Mark, Output, WaitEnd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Enough for a profiler to read the symbols of all libraries, and to write what it has.
const PATIENCE: Duration = Duration::from_secs(60);

/// A profiler that runs beside a server. Dropping it ends it.
#[derive(Debug)]
pub struct Attached {
    name: String,
    child: Child,
    output: Output,
}

impl Attached {
    /// Starts it and waits for the line by which it says that it samples.
    ///
    /// # Errors
    /// If it cannot be started or ends before; the text has what it said, which is the reason why this machine cannot have it.
    pub fn start(name: &str, command: &mut Command, says: &str) -> Result<Attached> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| Error::Spawn {
                program: name.to_owned(),
                source,
            })?;
        let output = Output::default();
        if let Some(stream) = child.stdout.take() {
            output.follow(stream);
        }
        if let Some(stream) = child.stderr.take() {
            output.follow(stream);
        }
        let attached = Attached {
            name: name.to_owned(),
            child,
            output,
        };
        if says.is_empty() {
            return Ok(attached);
        }
        match attached.output.wait_for(Mark::start(), &says, PATIENCE) {
            Ok(_) => Ok(attached),
            Err(WaitEnd::Closed | WaitEnd::TimedOut) => Err(attached.failure("does not sample")),
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Interrupts it, as a user does at a terminal, and waits until it has written what it has.
    ///
    /// # Errors
    /// If it does not end, or not well.
    pub fn finish(mut self) -> Result<Vec<String>> {
        let interrupt = Command::new("kill").args(["-INT", &self.pid().to_string()]).status();
        interrupt.map_err(|source| Error::Spawn {
            program: "kill".to_owned(),
            source,
        })?;
        self.wait_end()?;
        Ok(self.output.since(Mark::start()))
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// If it does not.
    pub fn wait_end(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        self.output.wait_closed(PATIENCE);
        while Instant::now() < deadline {
            if let Ok(Some(_)) = self.child.try_wait() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(self.failure("does not end"))
    }

    fn failure(&self, what: &str) -> Error {
        let said = self.output.last(5).join(" | ");
        Error::Missing(format!("{} {what}: {said}", self.name))
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // Nothing to do about errors: it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
