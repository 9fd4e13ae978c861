//! Whether a profiler tells the truth: twelve functions of known shares, native and Python in each other (`mill/endstone_mill/work.py`), on the stand-in server. Each writes down how long it
//! really computed, and a profile of the same seconds is compared with that: the largest and the mean error of a function's own share, in points of
//! what all twelve took, and how many samples show all callers.
//!
//! `./dev bench accuracy`, or `cargo bench --bench accuracy [-- NAME...]`; what is measured is added to the JSON file (SPARK_BENCH_JSON), so it can be done one by one.
//! SPARK_BENCH_SECONDS (60) for each. Nothing is asserted, for machines differ.

mod row;
mod way;

use harness::{Lab, PythonVersion, Record, Result};
use way::Way;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let seconds = std::env::var("SPARK_BENCH_SECONDS").ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    let lab = Lab::open()?;
    let path = std::env::var_os("SPARK_BENCH_JSON").unwrap_or_else(|| lab.target().join("bench-accuracy.json").into());
    let mut record = Record::open(path);
    println!("{}\n", harness::machine());
    let chosen = |way: &Way| words.is_empty() || words.iter().any(|word| word == way.name());
    for way in Way::ALL.into_iter().filter(chosen) {
        let python = match way.python() {
            Some(version) => lab.python(version)?,
            None => lab.default_python()?,
        };
        match way.measure(&lab, &python, seconds) {
            Ok(row) => record.put(way.name(), row)?,
            Err(reason) => record.put(way.name(), row::Row::cannot(reason.to_string()))?,
        }
    }
    row::print(&record);
    Ok(())
}

/// 3.15 has a sampling profiler in its standard library.
const WITH_SAMPLING: PythonVersion = PythonVersion::V3_15;
