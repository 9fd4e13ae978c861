//! What the background profiler and the statistics' rarer work cost: the stand-in server with its Python plugins, whose work in a tick is always the same, with the profiler on at its 10 ms and off.
//! One server after the other, several times, since a machine's speed changes by the hour; what counts is the difference within a round. `./dev bench`, or
//! `cargo bench --bench background`; `./dev build` first. `SPARK_BENCH_ROUNDS` (5) says how often. With SPARK_BENCH_JSON=FILE it writes the same as JSON. Nothing is
//! asserted, for machines differ.

#[path = "figures/mod.rs"]
mod figures;

use std::time::{Duration, Instant};

use figures::Figures;
use harness::{CpuTime, Lab, Server};

/// How long each is watched. With its start it must be short: between two of a pair the machine should not change.
const TIME: Duration = Duration::from_secs(9);

/// What was found of one server.
struct Found {
    /// CPU time of all its threads, in percent of a core.
    processor: f64,
    /// Its ticks' lengths as the server measures them, in milliseconds: mean and median.
    mean: f64,
    median: f64,
    /// What the profiler says of itself: of a core, and of the server thread's time.
    said: Option<String>,
}

/// A server whose load is that of `arguments`, or its plugins', and nothing else.
fn server(lab: &Lab, arguments: &[&str], background: bool) -> Server {
    let python = lab.default_python().unwrap();
    let mut builder = lab.server(&python);
    if arguments.is_empty() {
        builder = builder.samples().unwrap();
    }
    for argument in ["--load", "none"].iter().chain(arguments) {
        builder = builder.arg(*argument);
    }
    let settings = format!("backgroundProfiler = {background}\nrecovery = \"off\"\n");
    builder
        .file("plugins/spark/config.toml", settings)
        .start_ready()
        .unwrap()
}

fn lengths(server: &mut Server) -> Vec<f64> {
    let line = server.ask("!lengths", "!lengths").unwrap();
    let numbers = line.split_once("!lengths").unwrap().1.split_whitespace();
    numbers.map(|number| number.parse().unwrap()).collect()
}

fn measure(lab: &Lab, on: bool) -> Found {
    let mut server = server(lab, &[], on);
    // The first seconds have the work of the start in them.
    server.run_for(Duration::from_secs(3)).unwrap();
    lengths(&mut server);
    let before = CpuTime::of(server.pid());
    let begun = Instant::now();
    server.run_for(TIME).unwrap();
    let nanos = CpuTime::of(server.pid()).since(&before, |_| true);
    let processor = nanos as f64 / begun.elapsed().as_nanos() as f64 * 100.0;
    let mut ticks = lengths(&mut server);
    ticks.sort_by(f64::total_cmp);
    let said = on.then(|| {
        server
            .ask("spark profiler info", "of the server thread's time")
            .unwrap()
    });
    server.stop_cleanly().unwrap();
    Found {
        processor,
        mean: ticks.iter().sum::<f64>() / ticks.len() as f64,
        median: ticks[ticks.len() / 2],
        said,
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Microseconds of the plugins' tasks in the ticks since this was asked last: mean and longest.
fn tasks(server: &mut Server) -> [f64; 2] {
    let line = server.ask("!tasks", "!tasks ticks").unwrap();
    ["mean=", "longest="].map(|name| {
        let (_, rest) = line.split_once(name).unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    })
}

/// A look at a large world, a share of it in each tick.
fn survey(lab: &Lab, figures: &mut Figures) {
    let world = ["--no-python", "--world", "chunks=4000,entities=10000,players=100"];
    let mut server = server(lab, &world, false);
    server.run_for(Duration::from_secs(1)).unwrap();
    tasks(&mut server);
    server.ask("!ticks 60", "!ticks done").unwrap();
    let [mean, longest] = tasks(&mut server);
    figures.add("our task in a tick, mean (with pings every ten seconds)", mean, "us");
    figures.add("our task in a tick, longest of 60", longest, "us");
    // Its world and counts are looked at in the beginning and the end.
    server.ask("spark profiler start", "The profiler is running").unwrap();
    server.ask("!ticks 60", "!ticks done").unwrap();
    let [_, longest] = tasks(&mut server);
    figures.add(
        "the same at the beginning of a session, with a count of 4,000 chunks and 10,000 entities",
        longest,
        "us",
    );
    server.ask("spark profiler stop --save-to-file", "Saved ").unwrap();
    let [mean, longest] = tasks(&mut server);
    figures.add(
        "the same while a world of 4,000 chunks and 10,000 entities is looked at, mean",
        mean,
        "us",
    );
    figures.add("the longest of those", longest, "us");
    server.stop_cleanly().unwrap();
}

/// Runs collections with our callback in `gc.callbacks` and without it.
const COLLECTIONS: &str = "(lambda gc, time: (lambda run, kept: [[run(), kept.extend(gc.callbacks), gc.callbacks.clear(), run(), gc.callbacks.extend(kept), kept.clear()][0::3] for _ in range(7)])(lambda: (lambda begun: ([gc.collect(0) for _ in range(20000)], (time.perf_counter_ns() - begun) / 20000)[1])(time.perf_counter_ns()), []))(__import__('gc'), __import__('time'))";

fn collections(lab: &Lab, figures: &mut Figures) {
    let mut server = server(lab, &[], false);
    let line = server.ask(&format!("!python {COLLECTIONS}"), "!python [[").unwrap();
    let numbers: Vec<f64> = line
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .filter_map(|text| text.parse().ok())
        .collect();
    let differences = numbers.chunks_exact(2).map(|pair| pair[0] - pair[1]).collect();
    figures.add("a garbage collection's two callbacks", median(differences), "ns");
    server.stop_cleanly().unwrap();
}

fn main() {
    let lab = Lab::open().unwrap();
    let rounds = std::env::var("SPARK_BENCH_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(5);
    let mut figures = Figures::begin();
    let pairs: Vec<[Found; 2]> = (0..rounds)
        .map(|round: usize| {
            // Whoever is first may find the machine warmer or colder.
            let first = round.is_multiple_of(2);
            let (one, other) = (measure(&lab, first), measure(&lab, !first));
            if first { [one, other] } else { [other, one] }
        })
        .collect();
    let mut add = |what: &str, unit: &'static str, figure: fn(&Found) -> f64| {
        let of = |place: usize| pairs.iter().map(|pair| figure(&pair[place])).collect();
        figures.add(format!("{what}, background profiler on"), median(of(0)), unit);
        figures.add(format!("{what}, off"), median(of(1)), unit);
        let mut differences: Vec<f64> = pairs.iter().map(|[on, off]| figure(on) - figure(off)).collect();
        differences.sort_by(f64::total_cmp);
        figures.add(
            format!("{what}, difference, median of {rounds}"),
            median(differences.clone()),
            unit,
        );
        figures.add(format!("{what}, difference, least"), differences[0], unit);
        figures.add(format!("{what}, difference, greatest"), differences[rounds - 1], unit);
    };
    add("processor time", "% of a core", |found| found.processor);
    add("a tick's length, mean", "ms", |found| found.mean);
    add("a tick's length, median", "ms", |found| found.median);
    for said in pairs.iter().filter_map(|[on, _]| on.said.as_ref()) {
        println!("it says: {said}");
    }
    survey(&lab, &mut figures);
    collections(&lab, &mut figures);
    figures.save();
}
