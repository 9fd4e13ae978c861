//! What several processes measured, put together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Without anything: what the others are compared with.
const ALONE: &str = "alone";

/// One process: nanoseconds of each round by way of measuring and work, and how often functions are entered in each work.
#[derive(Deserialize)]
pub struct Measured {
    python: String,
    calls: BTreeMap<String, f64>,
    times: BTreeMap<String, BTreeMap<String, Vec<f64>>>,
}

/// Nanoseconds per call and return.
#[derive(Serialize)]
pub struct Row {
    calls: f64,
    alone: f64,
    /// What each way of measuring adds.
    added: BTreeMap<String, f64>,
    /// Ours to callbacks in C that do nothing, in all, and in each process.
    ratio: f64,
    ratio_of_processes: Vec<f64>,
}

/// One CPython.
#[derive(Serialize)]
pub struct Table {
    python: String,
    work: BTreeMap<String, Row>,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        length if length % 2 == 0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

/// What `way` added to the work alone, round by round: the machine's speed changes from one to the next.
fn added(process: &Measured, way: &str, work: &str) -> Vec<f64> {
    let times = |way: &str| process.times.get(way).and_then(|of| of.get(work));
    let calls = process.calls[work];
    let rounds = times(way).into_iter().flatten().zip(times(ALONE).into_iter().flatten());
    rounds.map(|(with, alone)| (with - alone) / calls).collect()
}

fn ratio(processes: &[Measured], work: &str) -> f64 {
    let of = |way: &str| median(processes.iter().flat_map(|process| added(process, way, work)).collect());
    of("ours") / of("no-op C")
}

impl Table {
    pub fn of(processes: &[Measured]) -> Table {
        let row = |work: &String| {
            let alone = processes.iter().flat_map(|process| &process.times[ALONE][work]);
            let calls = processes[0].calls[work];
            let ways = processes[0].times.keys().filter(|way| *way != ALONE);
            Row {
                calls,
                alone: median(alone.copied().collect()) / calls,
                added: ways
                    .map(|way| {
                        let all = processes.iter().flat_map(|process| added(process, way, work));
                        (way.clone(), median(all.collect()))
                    })
                    .collect(),
                ratio: ratio(processes, work),
                ratio_of_processes: processes
                    .iter()
                    .map(|process| ratio(std::slice::from_ref(process), work))
                    .collect(),
            }
        };
        Table {
            python: processes[0].python.clone(),
            work: processes[0]
                .calls
                .keys()
                .map(|work| (work.clone(), row(work)))
                .collect(),
        }
    }

    pub fn print(&self) {
        println!("\nCPython {}: nanoseconds per call and return", self.python);
        let ways = [
            "no-op C",
            "ours",
            "cProfile",
            "viztracer",
            "Python",
            "Python and ctypes",
        ];
        println!(
            "{:12} {:>7} {:>8} |{:>9} {:>9} {:>9} {:>9} {:>9} {:>9} |{:>9} {:>9} {:>9}  ratio in each process",
            "work",
            "calls",
            "alone",
            "no-op C",
            "ours",
            "cProfile",
            "viztracer",
            "Python",
            "ctypes",
            "ratio",
            "cProfile",
            "slower"
        );
        for (work, row) in &self.work {
            let of = |way: &str| row.added.get(way).copied().unwrap_or(f64::NAN);
            let columns: String = ways.iter().map(|way| format!(" {:9.1}", of(way))).collect();
            let processes: Vec<String> = row
                .ratio_of_processes
                .iter()
                .map(|ratio| format!("{ratio:.2}"))
                .collect();
            println!(
                "{work:12} {:7} {:8.1} |{columns} |{:9.2} {:9.2} {:8.1}%  {}",
                row.calls,
                row.alone,
                row.ratio,
                of("ours") / of("cProfile"),
                100.0 * of("ours") / row.alone,
                processes.join(" ")
            );
        }
    }
}
