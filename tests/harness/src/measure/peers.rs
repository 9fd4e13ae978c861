//! The profilers that ours is compared with: where they come from, and how they are told to look at a server.

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::python::{OwnLibc, Python};
use crate::version::PythonVersion;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Python code from PyPI is the same for all, but a wheel of it may not be.
const VIZTRACER: &str = "viztracer==1.1.1";
/// A program; which Python it was fetched for does not matter.
const PY_SPY: &str = "py-spy==0.4.3";

/// Fetches py-spy.
///
/// # Errors
/// If it is not cached and cannot be downloaded.
pub fn py_spy(lab: &Lab) -> Result<PathBuf> {
    Ok(lab.package(PythonVersion::V3_13, PY_SPY)?.join("bin").join("py-spy"))
}

/// Fetches viztracer; the folder is for `sys.path`.
///
/// # Errors
/// If it is not cached and cannot be downloaded, or there is none for this Python.
pub fn viztracer(lab: &Lab, version: PythonVersion) -> Result<PathBuf> {
    lab.package(version, VIZTRACER)
}

/// The line by which py-spy says that it samples.
pub const PY_SPY_SAMPLES: &str = "Sampling process";

/// py-spy on a process, until it is interrupted; `output` is for [`super::Folded::parse`].
pub fn py_spy_record(program: &Path, pid: u32, rate: u32, native: bool, output: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["record", "--format", "raw", "--threads", "--pid"]);
    command.arg(pid.to_string()).arg("--rate").arg(rate.to_string());
    if native {
        command.arg("--native");
    }
    command.arg("--output").arg(output);
    command
}

/// `perf` on one thread, by the processor's clock where there are no counters, with a copy of the top of the stack in each sample.
pub fn perf_record(tid: u32, rate: u32, seconds: u64, output: &Path) -> Command {
    let mut command = Command::new("perf");
    command.args([
        "record",
        "--quiet",
        "--event",
        "cpu-clock",
        "--call-graph",
        "dwarf,16384",
    ]);
    command.arg("--freq").arg(rate.to_string());
    command.arg("--tid").arg(tid.to_string()).arg("--output").arg(output);
    command.args(["--", "sleep"]).arg(seconds.to_string());
    command
}

/// What `perf` recorded, as text for [`super::Folded::parse_perf`].
///
/// # Errors
/// If it cannot be read.
pub fn perf_script(input: &Path) -> Result<String> {
    let fields = [
        "script",
        "--no-inline",
        "--fields",
        "comm,tid,time,ip,sym,dso",
        "--input",
    ];
    let output = Command::new("perf").args(fields).arg(input).output();
    let output = output.map_err(|source| Error::Spawn {
        program: "perf".to_owned(),
        source,
    })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The standard library's sampling profiler (3.15) on a process of the same Python. Only the thread that holds the interpreter's lock: in a program that embeds Python there are
/// threads without Python code, at which 3.15.0 fails ("Failed to parse initial frame in chain") for all.
pub fn sampling_attach(python: &Python, pid: u32, rate: u32, seconds: u64, output: &Path) -> Command {
    let mut command = Command::new(&python.executable);
    if let Some(OwnLibc { .. }) = &python.own_libc {
        command.env("PYTHONHOME", &python.home);
    }
    command.args([
        "-m",
        "profiling.sampling",
        "attach",
        "--all-threads",
        "--mode",
        "gil",
        "--native",
    ]);
    command.arg("--sampling-rate").arg(rate.to_string());
    command.arg("--duration").arg(seconds.to_string());
    command.arg("--collapsed").arg("-o").arg(output).arg(pid.to_string());
    command
}

/// A program's own line about its version, or nothing.
pub fn version_of(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

/// Compiles a small C library, next to the place where it is used, with the compiler that `CC` names or else `cc`.
///
/// # Errors
/// If there is no compiler, or it fails.
pub fn compile(source: &Path, library: &Path) -> Result<()> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = Command::new(&compiler);
    command.args(["-O2", "-fPIC", "-shared", "-o"]).arg(library).arg(source);
    let status = command.status().map_err(|source| Error::Spawn {
        program: compiler,
        source,
    })?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Missing(format!(
        "{} was not compiled: {status}",
        source.display()
    )))
}
