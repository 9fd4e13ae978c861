//! Runs the programs that set things up: pip, apt-get, dpkg-deb, patchelf.

use crate::error::{Error, Result};
use crate::progress::Step;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A person who waits hears of it this often.
const REMINDER: Duration = Duration::from_secs(15);

/// A failed program's report ends with this many lines of what it printed.
const SHOWN_LINES: usize = 25;

/// Runs a program to its end and returns what it printed on standard output.
///
/// # Errors
/// If it cannot be started or fails; the error holds the end of what it printed.
pub fn run(command: &mut Command, step: &Step) -> Result<String> {
    let (program, line) = (command.get_program().to_string_lossy().into_owned(), display(command));
    let spawn_error = |source| Error::Spawn {
        program: program.clone(),
        source,
    };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(spawn_error)?;
    let (sender, receiver) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|s| Box::new(s) as _),
        child.stderr.take().map(|s| Box::new(s) as _),
    ];
    for (index, stream) in streams.into_iter().enumerate() {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut stream) = stream {
                // A broken pipe only means that less of the report can be shown.
                let _ = stream.read_to_end(&mut bytes);
            }
            let _ = sender.send((index, bytes));
        });
    }
    drop(sender);
    let mut printed = [String::new(), String::new()];
    loop {
        match receiver.recv_timeout(REMINDER) {
            Ok((index, bytes)) => printed[index] = String::from_utf8_lossy(&bytes).into_owned(),
            Err(mpsc::RecvTimeoutError::Timeout) => step.still(),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait().map_err(spawn_error)?;
    let [stdout, stderr] = printed;
    if status.success() {
        return Ok(stdout);
    }
    let output = last_lines(&format!("{stdout}{stderr}"), SHOWN_LINES);
    Err(Error::Program {
        purpose: step.name().to_owned(),
        command: line,
        status,
        output,
    })
}

/// The command as it would be typed, for error texts.
fn display(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The end of a text, indented.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(count);
    lines[from..]
        .iter()
        .map(|line| format!("  | {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_standard_output() {
        let step = Step::start("echo");
        assert_eq!(run(Command::new("echo").arg("hello"), &step).unwrap(), "hello\n");
    }

    #[test]
    fn a_failure_shows_command_and_both_streams() {
        let step = Step::start("sh");
        let error = run(Command::new("sh").args(["-c", "echo one; echo two >&2; exit 3"]), &step).unwrap_err();
        let text = error.to_string();
        for part in ["sh -c", "| one", "| two", "3"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let step = Step::start("nothing");
        let error = run(&mut Command::new("no-such-program-here"), &step).unwrap_err();
        assert!(error.to_string().contains("no-such-program-here"));
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "  | b\n  | c");
    }
}
