//! Drives one stand-in server: types into its console, reads what it says, stops it.

use crate::error::{Error, FileContext, Result};
use crate::output::{Mark, Output, Pattern, WaitEnd};
use crate::profile::Profile;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ExitStatus};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The line by which the stand-in says that plugins are enabled and ticks run.
const READY: &str = "[stand-in] ready";

/// A failure shows this many lines of the server's output.
const SHOWN_LINES: usize = 40;

/// Enough for a slow machine to install the plugins with pip and start the server.
pub const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Enough for a slow machine to shut a server down.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// A running stand-in server. Dropping it kills it.
#[derive(Debug)]
pub struct Server {
    child: Child,
    console: Option<ChildStdin>,
    output: Output,
    since: Mark,
    dir: PathBuf,
    temporary: Option<TempDir>,
}

impl Server {
    pub(crate) fn follow(mut child: Child, dir: PathBuf, temporary: Option<TempDir>) -> Self {
        let output = Output::default();
        if let Some(stream) = child.stdout.take() {
            output.follow(stream);
        }
        if let Some(stream) = child.stderr.take() {
            output.follow(stream);
        }
        let console = child.stdin.take();
        Self {
            child,
            console,
            output,
            since: Mark::start(),
            dir,
            temporary,
        }
    }

    /// The server folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until plugins are enabled and ticks run.
    ///
    /// # Errors
    /// If that takes too long or the server ends; the text shows its last lines.
    pub fn wait_ready(&self) -> Result<()> {
        self.wait_for(READY, START_TIMEOUT).map(drop)
    }

    /// Types a line into the console. Later waits look at what is printed from here on.
    ///
    /// # Errors
    /// If the server does not read its console any more.
    pub fn command(&mut self, line: &str) -> Result<Mark> {
        self.since = self.output.mark();
        let written = match &mut self.console {
            Some(console) => console
                .write_all(format!("{line}\n").as_bytes())
                .and_then(|()| console.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        written.map_err(|error| self.failure(&format!("cannot type '{line}' into the server's console ({error})")))?;
        Ok(self.since)
    }

    /// Types a line and waits for the answer, for example `ask("spark profiler info", "not running")`.
    ///
    /// # Errors
    /// As [`Server::wait_for`].
    pub fn ask(&mut self, line: &str, answer: impl Pattern) -> Result<String> {
        self.command(line)?;
        self.wait_for(answer, Duration::from_secs(30))
    }

    /// The first line printed since the last command (or the start) that matches, waited for.
    ///
    /// # Errors
    /// If it does not come in time or the server ends before; the text shows the server's last lines.
    pub fn wait_for(&self, pattern: impl Pattern, timeout: Duration) -> Result<String> {
        self.wait_for_since(self.since, pattern, timeout)
    }

    /// As [`Server::wait_for`], from a place of one's own.
    ///
    /// # Errors
    /// The same.
    pub fn wait_for_since(&self, mark: Mark, pattern: impl Pattern, timeout: Duration) -> Result<String> {
        self.output.wait_for(mark, &pattern, timeout).map_err(|end| {
            let wanted = pattern.describe();
            self.failure(&match end {
                WaitEnd::TimedOut => format!("waited {} s for {wanted}", timeout.as_secs()),
                WaitEnd::Closed => format!("the server ended before it printed {wanted}"),
            })
        })
    }

    /// Lets the server run for a while.
    ///
    /// # Errors
    /// If it ends meanwhile; the text shows its last lines.
    pub fn run_for(&self, time: Duration) -> Result<()> {
        if self.output.wait_closed(time) {
            Err(self.failure("the server ended by itself"))
        } else {
            Ok(())
        }
    }

    /// The place after everything printed so far.
    pub fn mark(&self) -> Mark {
        self.output.mark()
    }

    /// Everything printed after a mark.
    pub fn output_since(&self, mark: Mark) -> Vec<String> {
        self.output.since(mark)
    }

    /// The profiles in the server folder, oldest first.
    ///
    /// # Errors
    /// If their folder exists and cannot be read.
    pub fn profile_files(&self) -> Result<Vec<PathBuf>> {
        profile_files(&self.dir)
    }

    /// Reads the newest profile in the server folder.
    ///
    /// # Errors
    /// If there is none, or it is not a profile.
    pub fn last_profile(&self) -> Result<Profile> {
        let files = self.profile_files()?;
        let newest = files
            .last()
            .ok_or_else(|| self.failure("the server has written no profile"))?;
        Profile::read(newest)
    }

    /// Types `stop` and waits for the end.
    ///
    /// # Errors
    /// If the server does not end in time; it is killed then.
    pub fn stop(mut self) -> Result<ExitStatus> {
        // A server that has ended already cannot be told to.
        let _ = self.command("stop");
        self.console = None;
        self.wait_end(STOP_TIMEOUT)
    }

    /// As [`Server::stop`], and gives back all it printed.
    ///
    /// # Errors
    /// The same, and if the server ends with anything but exit code 0.
    pub fn stop_cleanly(mut self) -> Result<Vec<String>> {
        let _ = self.command("stop");
        self.console = None;
        let status = self.wait_end(STOP_TIMEOUT)?;
        if status.success() {
            return Ok(self.output.since(Mark::start()));
        }
        Err(self.failure(&format!("the server ended with {status}")))
    }

    /// Waits for the server to end by itself.
    ///
    /// # Errors
    /// If it does not in time.
    pub fn wait_end(&mut self, timeout: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + timeout;
        // Its output ends when it does, or a moment earlier.
        let mut pause = Duration::from_millis(1);
        self.output.wait_closed(timeout);
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(50));
                }
                Ok(None) => return Err(self.failure(&format!("the server did not end within {} s", timeout.as_secs()))),
                Err(error) => return Err(self.failure(&format!("cannot wait for the server ({error})"))),
            }
        }
    }

    fn failure(&self, what: &str) -> Error {
        let lines: String = self
            .output
            .last(SHOWN_LINES)
            .iter()
            .map(|line| format!("\n  | {line}"))
            .collect();
        Error::Server(format!(
            "{what}; server folder {}, its last lines:{lines}",
            self.dir.display()
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing to do about errors: it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking()
            && let Some(temporary) = self.temporary.take()
        {
            eprintln!("server folder kept: {}", temporary.keep().display());
        }
    }
}

/// The profiles in a server folder, oldest first.
///
/// # Errors
/// If the folder is there and cannot be read.
pub fn profile_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = files_in(dir, "profiles", "sparkprofile")?;
    // By their age: two of one second differ in what their names end with, which does not sort.
    files.sort_by_cached_key(|path| (fs::metadata(path).and_then(|file| file.modified()).ok(), path.clone()));
    Ok(files)
}

/// The segments of journals in a server folder, in the order of their names.
///
/// # Errors
/// If the folder is there and cannot be read.
pub fn journal_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = files_in(dir, "recovery", "journal")?;
    files.sort();
    Ok(files)
}

fn files_in(dir: &Path, folder: &str, ending: &str) -> Result<Vec<PathBuf>> {
    let folder = dir.join("plugins").join("spark").join(folder);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    Ok(fs::read_dir(&folder)
        .context("read", &folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == ending))
        .collect())
}
