//! What a session costs on the stand-in server with its Python plugins: the handler by its own count of cycles, cold as it really is, and the CPU time of each of our
//! threads by the kernel's. `./dev bench`, or `cargo bench --bench server`; `./dev build` first. With SPARK_BENCH_JSON=FILE it writes the same as JSON. Nothing is
//! asserted, for machines differ.

#[path = "figures/mod.rs"]
mod figures;

use std::time::{Duration, Instant};

use figures::Figures;
use harness::{Lab, Server};

const TIME: Duration = Duration::from_secs(10);

/// CPU time of a server's threads whose names begin with this, in nanoseconds (schedstat, see proc(5)).
fn cpu_of(server: &Server, name: &str) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let nanos = tasks.flatten().filter_map(|task| {
        let comm = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        comm.starts_with(name)
            .then(|| stat.split(' ').next()?.parse::<u64>().ok())
            .flatten()
    });
    nanos.sum()
}

const OURS: [(&str, &str); 2] = [
    ("spark-sampler", "sampler thread"),
    ("spark-aggreg", "aggregator thread"),
];

fn session(figures: &mut Figures, server: &mut Server, name: &str, flags: &str) {
    server
        .ask(&format!("spark profiler start {flags}"), "The profiler is running")
        .unwrap();
    // The first second has the work of the start in it: libraries are read, all threads are asked once.
    server.run_for(Duration::from_secs(2)).unwrap();
    let before = OURS.map(|(thread, _)| cpu_of(server, thread));
    let begun = Instant::now();
    server.run_for(TIME).unwrap();
    let shares: Vec<f64> = OURS
        .iter()
        .zip(before)
        .map(|((thread, _), before)| {
            (cpu_of(server, thread) - before) as f64 / begun.elapsed().as_nanos() as f64 * 100.0
        })
        .collect();
    server.ask("spark profiler stop --save-to-file", "Saved ").unwrap();
    let profile = server.last_profile().unwrap();
    let sampling = profile.extra("Sampling").unwrap();
    let figure = |name: &str| sampling[name].as_f64().unwrap_or(f64::NAN);
    let mut add = |what: &str, value: f64, unit| figures.add(format!("{name}: {what}"), value, unit);
    add(
        "handler, median",
        figure("handler time, median nanoseconds") / 1e3,
        "us",
    );
    add(
        "handler, 99th percentile",
        figure("handler time, 99th percentile nanoseconds") / 1e3,
        "us",
    );
    if let Some(parts) = sampling["handler time by part, median and 99th percentile nanoseconds"].as_object() {
        for (part, costs) in parts {
            add(
                &format!("{part}, median"),
                costs[0].as_f64().unwrap_or(f64::NAN) / 1e3,
                "us",
            );
            add(
                &format!("{part}, 99th percentile"),
                costs[1].as_f64().unwrap_or(f64::NAN) / 1e3,
                "us",
            );
        }
    }
    let total = figure("handler time, all runs, microseconds");
    let taken = figure("samples") - figure("samples repeated for idle threads");
    add("native frames per stack", figure("native frames walked") / taken, "");
    add("rules derived per stack", figure("unwinding rules derived") / taken, "");
    let lasted = figure("interval measured, microseconds") * figure("rounds");
    add("all handlers together", total / lasted * 100.0, "% of a core");
    for ((_, thread), share) in OURS.iter().zip(&shares) {
        add(thread, *share, "% of a core");
    }
    add("all our threads", shares.iter().sum(), "% of a core");
}

fn main() {
    let lab = Lab::open().unwrap();
    let python = lab.default_python().unwrap();
    let mut server = lab
        .server(&python)
        .samples()
        .unwrap()
        .file("deep.py", include_str!("deep.py"))
        .start_ready()
        .unwrap();
    let mut figures = Figures::begin();
    session(&mut figures, &mut server, "server thread at 4 ms", "");
    session(&mut figures, &mut server, "server thread at 1 ms", "--interval 1");
    let wait = "[t.start() for t in [__import__('threading').Thread(target=__import__('time').sleep, args=(3600,), daemon=True) for _ in range(200)]]";
    server.ask(&format!("!python len({wait})"), "!python 200").unwrap();
    session(
        &mut figures,
        &mut server,
        "all threads, 200 of them idle, at 4 ms",
        "--thread *",
    );
    let deep = "exec(compile(open('deep.py').read(), 'deep.py', 'exec'), globals())";
    server.ask(&format!("!python {deep}"), "!python None").unwrap();
    session(
        &mut figures,
        &mut server,
        "a thread deep in Python at 4 ms",
        "--thread deep",
    );
    session(
        &mut figures,
        &mut server,
        "a thread deep in Python at 1 ms",
        "--thread deep --interval 1",
    );
    server.stop_cleanly().unwrap();
    figures.save();
}
