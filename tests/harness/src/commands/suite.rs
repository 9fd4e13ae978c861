//! All test programs of the workspace: those that measure have the machine for themselves, the others run beside each other.

use super::{CommandError, Outcome};
use harness::{Lab, Step, at_once, note};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Programs whose answer is the same on a busy machine: they assert no share of time, no rate and no length. Any other is run with nothing beside it.
const BESIDE_OTHERS: [&str; 33] = [
    "abi",
    "architecture",
    "commands",
    "disk",
    "documentation",
    "endless_memory",
    "fuzz",
    "harness",
    "journal",
    "native_descriptors",
    "native_fork",
    "native_refused",
    "plugin",
    "python_beside",
    "python_births",
    "python_cython",
    "python_ends",
    "python_greenlets",
    "python_lifecycle",
    "python_limits",
    "python_made_code",
    "python_memory",
    "python_names",
    "python_own_tests",
    "python_slots",
    "python_steps",
    "python_symbols",
    "python_versions",
    "recovery",
    "senders",
    "statistics_memory",
    "upload_fork",
    "upload_transport",
];

/// Its tests share the machine by themselves (tests/stand_in/machine.rs), and wait for it in threads of their own: as many as there are tests, and more.
const OF_SERVERS: &str = "stand_in";
const THREADS_OF_SERVERS: usize = 256;

/// How many of the programs that took longest are named at the end.
const NAMED: usize = 6;

/// A test program that cargo has built.
struct Program {
    name: String,
    executable: PathBuf,
    /// Of its package, where cargo too starts it.
    folder: PathBuf,
}

/// What became of one.
struct Ended {
    name: String,
    took: Duration,
    passed: bool,
}

/// Builds and runs them all, whether one fails or not.
pub(super) fn run(lab: &Lab) -> Outcome {
    let programs = build(lab)?;
    let start = Instant::now();
    let (beside, apart): (Vec<_>, Vec<_>) = programs
        .into_iter()
        .partition(|program| BESIDE_OTHERS.contains(&program.name.as_str()));
    let ended = Mutex::new(Vec::new());
    let note_end = |end: Ended| ended.lock().unwrap_or_else(PoisonError::into_inner).push(end);
    at_once(beside, |program| note_end(run_quietly(&program)));
    for program in &apart {
        note_end(run_apart(
            program,
            (program.name == OF_SERVERS).then_some(THREADS_OF_SERVERS),
        ));
    }
    note_end(examples(lab));
    report(
        ended.into_inner().unwrap_or_else(PoisonError::into_inner),
        start.elapsed(),
    )
}

fn build(lab: &Lab) -> Result<Vec<Program>, CommandError> {
    let output = lab
        .cargo()
        .args([
            "test",
            "--release",
            "--workspace",
            "--no-run",
            "--message-format",
            "json-render-diagnostics",
        ])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| CommandError::Result(format!("cargo cannot be started: {error}")))?;
    if !output.status.success() {
        return Err(CommandError::Result("the tests cannot be built".to_owned()));
    }
    let mut programs: Vec<Program> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(program)
        .collect();
    if programs.is_empty() {
        return Err(CommandError::Result("cargo named no test program".to_owned()));
    }
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(programs)
}

/// A line of cargo's that names a test program.
fn program(line: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_test = message["profile"]["test"].as_bool()?;
    let executable = message["executable"].as_str().filter(|_| is_test)?;
    Some(Program {
        name: message["target"]["name"].as_str()?.to_owned(),
        executable: PathBuf::from(executable),
        folder: Path::new(message["manifest_path"].as_str()?).parent()?.to_owned(),
    })
}

impl Program {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    fn ended(&self, start: Instant, passed: bool) -> Ended {
        Ended {
            name: self.name.clone(),
            took: start.elapsed(),
            passed,
        }
    }
}

/// Runs one beside others: what it prints comes in one piece.
fn run_quietly(program: &Program) -> Ended {
    let start = Instant::now();
    let result = program.command().output();
    let passed = result.as_ref().is_ok_and(|output| output.status.success());
    let end = program.ended(start, passed);
    // One at a time. Whoever reads this may have gone away.
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "\n==> {} ({:.1} s)", program.name, end.took.as_secs_f64());
    let _ = match &result {
        Ok(output) => out
            .write_all(&output.stdout)
            .and_then(|()| out.write_all(&output.stderr)),
        Err(error) => writeln!(out, "cannot be started: {error}"),
    };
    end
}

/// Runs one with nothing beside it, with this many threads or as many as it likes.
fn run_apart(program: &Program, threads: Option<usize>) -> Ended {
    let step = Step::start(&program.name);
    let start = Instant::now();
    let mut command = program.command();
    if let Some(threads) = threads.filter(|_| std::env::var_os("RUST_TEST_THREADS").is_none()) {
        command.env("RUST_TEST_THREADS", threads.to_string());
    }
    let status = command.status();
    if let Err(error) = &status {
        note(format!("cannot be started: {error}"));
    }
    step.done();
    program.ended(start, status.is_ok_and(|status| status.success()))
}

/// The examples in the documentation, which are no program of their own.
fn examples(lab: &Lab) -> Ended {
    let step = Step::start("examples in the documentation");
    let start = Instant::now();
    let status = lab
        .cargo()
        .args(["test", "--release", "--workspace", "--doc", "--quiet"])
        .status();
    step.done();
    Ended {
        name: "the examples in the documentation".to_owned(),
        took: start.elapsed(),
        passed: status.is_ok_and(|status| status.success()),
    }
}

fn report(mut ended: Vec<Ended>, took: Duration) -> Outcome {
    ended.sort_by_key(|end| std::cmp::Reverse(end.took));
    let longest: Vec<String> = ended
        .iter()
        .take(NAMED)
        .map(|end| format!("{} {:.0} s", end.name, end.took.as_secs_f64()))
        .collect();
    println!(
        "\n{} test programs in {:.1} minutes; the longest: {}",
        ended.len(),
        took.as_secs_f64() / 60.0,
        longest.join(", ")
    );
    let failed: Vec<&str> = ended
        .iter()
        .filter(|end| !end.passed)
        .map(|end| end.name.as_str())
        .collect();
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(CommandError::Result(format!(
        "failed: {}. One alone: ./dev test --test NAME",
        failed.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargos_lines_name_the_test_programs() {
        let line = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/tests/host/Cargo.toml","target":{{"name":"bedrock_server"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let found = program(&line(true, r#""/w/target/bedrock_server-1""#)).unwrap();
        assert_eq!(
            (found.name.as_str(), found.folder.as_path()),
            ("bedrock_server", Path::new("/w/tests/host"))
        );
        assert_eq!(found.executable, Path::new("/w/target/bedrock_server-1"));
        // A program that is no test, a library that is none, and what is no message at all.
        assert!(program(&line(false, r#""/w/target/dev""#)).is_none());
        assert!(program(&line(true, "null")).is_none());
        assert!(program("warning: something").is_none());
        assert!(program(r#"{"reason":"build-finished","success":true}"#).is_none());
    }

    #[test]
    fn each_program_that_runs_beside_others_is_there() {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for name in BESIDE_OTHERS {
            let there = [
                format!("{name}.rs"),
                format!("{name}/main.rs"),
                format!("{name}/src/lib.rs"),
            ];
            assert!(there.iter().any(|path| tests.join(path).exists()), "{name}");
        }
    }

    #[test]
    fn a_failure_is_named() {
        let end = |name: &str, passed| Ended {
            name: name.to_owned(),
            took: Duration::from_secs(1),
            passed,
        };
        assert!(report(vec![end("abi", true)], Duration::ZERO).is_ok());
        let error = report(vec![end("abi", true), end("disk", false)], Duration::ZERO).unwrap_err();
        assert!(error.to_string().starts_with("failed: disk."), "{error}");
    }
}
