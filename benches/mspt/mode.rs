//! Who looks at the server.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use harness::{Attached, CpuTime, Error, Meter, Result, Server, Slice, peers};
use serde::{Deserialize, Serialize};

/// How long each measurement lasts: 60 ticks.
const TIME: Duration = Duration::from_secs(3);
/// A profiler's beginning, with libraries and symbols that it reads once, is not measured.
const BEGINNING: Duration = Duration::from_millis(1_500);

/// What the modes need.
pub struct Tools {
    pub py_spy: Result<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Mode {
    Alone,
    /// A session of ours, with so many milliseconds between two samples.
    Ours(u32),
    /// The same with the server thread bound to one processor and our threads to the others.
    OursApart(u32),
    /// `py-spy record --native`, so many samples a second.
    PySpy(u32),
    /// Monitoring callbacks in C that do nothing.
    Empty,
    /// Every so many milliseconds a signal with a handler that does nothing, and no profiler: what is the machine's own price.
    Signals(u32),
}

/// Binds threads to these processors.
fn bind(threads: &CpuTime, accept: impl Fn(&str) -> bool, processors: &str) -> Result<()> {
    for tid in threads.tids(accept) {
        let mut command = Command::new("taskset");
        command
            .args(["-pc", processors, &tid.to_string()])
            .stdout(Stdio::null());
        // A thread that has ended needs no processor.
        command
            .status()
            .map_err(|error| Error::Missing(format!("taskset cannot be run: {error}")))?;
    }
    Ok(())
}

impl Mode {
    pub fn name(self) -> String {
        match self {
            Mode::Alone => "no profiler".to_owned(),
            Mode::Ours(millis) => format!("ours, {millis} ms"),
            Mode::OursApart(millis) => format!("ours, {millis} ms, on other processors than the server thread"),
            Mode::PySpy(rate) => format!("py-spy --native, {rate} a second"),
            Mode::Empty => "empty callbacks".to_owned(),
            Mode::Signals(millis) => format!("empty signal handler, {millis} ms"),
        }
    }

    /// Whether what this costs decides if an aim is met.
    pub fn has_aim(self) -> bool {
        matches!(self, Mode::Ours(4) | Mode::PySpy(250) | Mode::Empty | Mode::Signals(4))
    }

    pub fn measure(self, server: &mut Server, tools: &Tools) -> Result<Slice> {
        match self {
            Mode::Alone => {
                // What the one before has left to do.
                server.run_for(Duration::from_millis(300))?;
                Meter::measure(server, None, TIME)
            }
            Mode::Ours(millis) | Mode::OursApart(millis) => {
                let start = format!("spark profiler start --interval {millis}");
                server.ask(&start, "The profiler is running")?;
                let threads = CpuTime::of(server.pid());
                if matches!(self, Mode::OursApart(_)) {
                    bind(&threads, |name| name == "MC_SERVER", "0")?;
                    bind(&threads, |name| name.starts_with("spark-"), "1-1023")?;
                }
                server.run_for(BEGINNING)?;
                let slice = Meter::measure(server, None, TIME)?;
                server.ask("spark profiler cancel", "nothing was saved")?;
                bind(&threads, |name| name == "MC_SERVER", "0-1023")?;
                Ok(slice)
            }
            Mode::PySpy(rate) => {
                let program = tools.py_spy.as_ref();
                let program = program.map_err(|reason| Error::Missing(reason.to_string()))?;
                let output = server.dir().join("py-spy.txt");
                let mut command = peers::py_spy_record(program, server.pid(), rate, true, &output);
                let attached = Attached::start("py-spy", &mut command, peers::PY_SPY_SAMPLES)?;
                server.run_for(BEGINNING)?;
                let slice = Meter::measure(server, Some(attached.pid()), TIME)?;
                attached.finish()?;
                Ok(slice)
            }
            Mode::Signals(millis) => {
                server.ask(&format!("!signals {}", millis * 1_000), "!signals")?;
                server.run_for(BEGINNING)?;
                let slice = Meter::measure(server, None, TIME)?;
                server.ask("!signals 0", "!signals 0")?;
                Ok(slice)
            }
            Mode::Empty => {
                server.ask("!python begin()", "empty begun")?;
                server.run_for(BEGINNING)?;
                let slice = Meter::measure(server, None, TIME)?;
                server.ask("!python end()", "empty ended")?;
                Ok(slice)
            }
        }
    }
}
