//! Each profiler, as it is used.

use std::collections::BTreeMap;
use std::time::Duration;

use harness::chains::{Judged, judge};
use harness::{Attached, CpuTime, Error, Folded, Lab, Python, PythonVersion, Result, Server, peers};

use crate::WITH_SAMPLING;
use crate::row::{KNOWN, Row};

/// Samples a second; ours at its usual 4 ms.
const RATE: u32 = 250;
/// The first function of the server's thread.
const ROOT: &str = "_serverThread";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Ours,
    PySpyNative,
    PySpy,
    Perf,
    CProfile,
    VizTracer,
    OursBesideSampling,
    Sampling,
}

impl Way {
    pub const ALL: [Way; 8] = [
        Way::Ours,
        Way::PySpyNative,
        Way::PySpy,
        Way::Perf,
        Way::CProfile,
        Way::VizTracer,
        Way::OursBesideSampling,
        Way::Sampling,
    ];

    /// On the command line and in the JSON file.
    pub fn name(self) -> &'static str {
        match self {
            Way::Ours => "ours",
            Way::PySpyNative => "py-spy-native",
            Way::PySpy => "py-spy",
            Way::Perf => "perf",
            Way::CProfile => "cprofile",
            Way::VizTracer => "viztracer",
            Way::OursBesideSampling => "ours-3.15",
            Way::Sampling => "sampling",
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Way::Ours => "ours, 4 ms",
            Way::PySpyNative => "`py-spy record --native`, 250 a second",
            Way::PySpy => "`py-spy record`, 250 a second",
            Way::Perf => "`perf record --call-graph dwarf`, 250 a second",
            Way::CProfile => "`cProfile`",
            Way::VizTracer => "`viztracer`, without C functions",
            Way::OursBesideSampling => "ours, 4 ms, on 3.15",
            Way::Sampling => "`profiling.sampling` of 3.15, 250 a second",
        }
    }

    pub fn is_ours(self) -> bool {
        matches!(self, Way::Ours | Way::OursBesideSampling)
    }

    /// The Python it needs, if not just any.
    pub fn python(self) -> Option<PythonVersion> {
        matches!(self, Way::OursBesideSampling | Way::Sampling).then_some(WITH_SAMPLING)
    }

    pub fn measure(self, lab: &Lab, python: &Python, seconds: u64) -> Result<Row> {
        let folder = lab.root().join("benches").join("accuracy");
        let server_folder = tempfile::tempdir_in(lab.target()).map_err(|source| Error::File {
            action: "create",
            path: lab.target().to_owned(),
            source,
        })?;
        peers::compile(&folder.join("mill.c"), &server_folder.path().join("mill.so"))?;
        let mut server = lab
            .server(python)
            .folder(server_folder.path())
            .plugin(lab.python_plugin(&folder.join("mill"))?)
            .arg("--load")
            .arg("none")
            .file("tracers.py", include_str!("tracers.py"))
            .file(
                "plugins/spark/config.toml",
                "bytebinUrl = \"http://127.0.0.1:9\"\nbackgroundProfiler = false\n",
            )
            .start_ready()?;
        server.ask("!python exec(open('tracers.py').read(), globals())", "!python None")?;
        let time = Duration::from_secs(seconds);
        let (truth, judged, samples, version) = match self {
            Way::Ours | Way::OursBesideSampling => ours(&mut server, python, time)?,
            Way::PySpy | Way::PySpyNative => py_spy(lab, &mut server, self == Way::PySpyNative, time)?,
            Way::Perf => perf(&mut server, seconds)?,
            Way::Sampling => sampling(python, &mut server, seconds)?,
            Way::CProfile => tracer(&mut server, "cprofile_begin()", "cprofile_end()", time)
                .map(|found| with(found, python.full_version.clone()))?,
            Way::VizTracer => {
                let site = peers::viztracer(lab, python.version)?;
                let begin = format!("viztracer_begin({:?})", site.display().to_string());
                tracer(&mut server, &begin, "viztracer_end()", time).map(|found| with(found, "1.1.1".to_owned()))?
            }
        };
        server.stop_cleanly()?;
        Ok(Row::of(&truth, &judged, samples, version, seconds))
    }
}

type Truth = BTreeMap<String, f64>;
type Found = (Truth, Judged, Option<u64>, String);

fn with((truth, judged): (Truth, Judged), version: String) -> Found {
    (truth, judged, None, version)
}

/// `name=number name=number` after the last word that is none.
fn numbers(answer: &str) -> Truth {
    let pair = |word: &str| {
        let (name, number) = word.split_once('=')?;
        Some((
            name.trim_matches('\'').to_owned(),
            number.trim_matches('\'').parse().ok()?,
        ))
    };
    answer.split_whitespace().filter_map(pair).collect()
}

fn spent(server: &mut Server) -> Result<Truth> {
    let answer = server.ask("!python __import__('endstone_mill').spent()", "day=")?;
    Ok(numbers(&answer))
}

fn difference(after: &Truth, before: &Truth) -> Truth {
    let since = |(name, after): (&String, &f64)| (name.clone(), after - before.get(name).copied().unwrap_or_default());
    after.iter().map(since).collect()
}

fn ours(server: &mut Server, python: &Python, time: Duration) -> Result<Found> {
    server.ask("spark profiler start", "The profiler is running")?;
    let before = spent(server)?;
    server.run_for(time)?;
    let after = spent(server)?;
    server.ask("spark profiler stop --save-to-file", "Saved ")?;
    let profile = server.last_profile()?;
    let stacks = profile.stacks();
    let named: Vec<(Vec<String>, f64)> = stacks
        .iter()
        .map(|stack| {
            (
                stack.frames.iter().map(|frame| frame.name()).collect(),
                stack.self_millis,
            )
        })
        .collect();
    let judged = judge(
        &KNOWN,
        ROOT,
        named
            .iter()
            .map(|(frames, weight)| (frames.iter().map(String::as_str), *weight)),
    );
    let samples = profile
        .extra("Sampling")
        .and_then(|sampling| sampling["samples"].as_u64())
        .unwrap_or_default();
    let version = format!("{}, CPython {}", env!("CARGO_PKG_VERSION"), python.full_version);
    Ok((difference(&after, &before), judged, Some(samples), version))
}

fn judge_folded(folded: &Folded) -> Judged {
    let stacks = folded.0.iter();
    judge(
        &KNOWN,
        ROOT,
        stacks.map(|(frames, count)| (frames.iter().map(String::as_str), *count as f64)),
    )
}

fn read(path: &std::path::Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|source| Error::File {
        action: "read",
        path: path.to_owned(),
        source,
    })
}

fn server_thread(server: &Server) -> Result<u32> {
    let thread = CpuTime::of(server.pid()).thread("MC_SERVER");
    thread.ok_or_else(|| Error::Missing("the server has no thread MC_SERVER".to_owned()))
}

fn py_spy(lab: &Lab, server: &mut Server, native: bool, time: Duration) -> Result<Found> {
    let program = peers::py_spy(lab)?;
    let output = server.dir().join("py-spy.txt");
    let mut command = peers::py_spy_record(&program, server.pid(), RATE, native, &output);
    let attached = Attached::start("py-spy", &mut command, peers::PY_SPY_SAMPLES)?;
    let before = spent(server)?;
    server.run_for(time)?;
    let after = spent(server)?;
    attached.finish()?;
    let folded = Folded::parse(&read(&output)?, &format!("({})", server_thread(server)?));
    let found = judge_folded(&folded);
    let version = peers::version_of(&program);
    Ok((difference(&after, &before), found, Some(folded.samples()), version))
}

fn perf(server: &mut Server, seconds: u64) -> Result<Found> {
    let output = server.dir().join("perf.data");
    let mut command = peers::perf_record(server_thread(server)?, RATE, seconds, &output);
    let before = spent(server)?;
    let mut attached = Attached::start("perf", &mut command, "")?;
    server.run_for(Duration::from_secs(seconds))?;
    attached.wait_end()?;
    let after = spent(server)?;
    let folded = Folded::parse_perf(&peers::perf_script(&output)?);
    if folded.samples() == 0 {
        return Err(Error::Missing(
            "perf took no samples: is perf_event_open allowed here?".to_owned(),
        ));
    }
    let version = peers::version_of(std::path::Path::new("perf"));
    Ok((
        difference(&after, &before),
        judge_folded(&folded),
        Some(folded.samples()),
        version,
    ))
}

fn sampling(python: &Python, server: &mut Server, seconds: u64) -> Result<Found> {
    let output = server.dir().join("sampling.txt");
    let mut command = peers::sampling_attach(python, server.pid(), RATE, seconds, &output);
    let before = spent(server)?;
    let mut attached = Attached::start("profiling.sampling", &mut command, "")?;
    server.run_for(Duration::from_secs(seconds))?;
    attached.wait_end()?;
    let after = spent(server)?;
    let folded = Folded::parse(&read(&output)?, &format!("tid:{}", server_thread(server)?));
    let found = judge_folded(&folded);
    let version = format!("CPython {}", python.full_version);
    Ok((difference(&after, &before), found, Some(folded.samples()), version))
}

fn tracer(server: &mut Server, begin: &str, end: &str, time: Duration) -> Result<(Truth, Judged)> {
    server.ask(&format!("!python {begin}"), "tracer begun")?;
    let before = spent(server)?;
    server.run_for(time)?;
    let after = spent(server)?;
    let answer = server.ask(&format!("!python {end}"), "tracer ")?;
    let own = numbers(&answer);
    let known = KNOWN
        .iter()
        .filter_map(|known| Some((known.name, *own.get(known.name)?)));
    let judged = Judged {
        own: known.collect(),
        ..Judged::default()
    };
    Ok((difference(&after, &before), judged))
}
