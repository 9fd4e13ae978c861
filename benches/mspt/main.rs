//! What a profiler costs a server: how long its ticks take, and what processor time, without one, with ours at 10, 4 and 1 ms, and with py-spy at 100, 250 and 1000
//! samples a second, on three loads of a fixed amount of work (see `row.rs` for how it is taken).
//!
//! `./dev bench mspt`, or `cargo bench --bench mspt [-- [more] [aims] [rounds=N] [native] [python] [mixed]]`: `more` adds to the rounds that earlier runs have left in the JSON
//! file (SPARK_BENCH_JSON), so that a busy machine can be used piece by piece; `aims` measures only what the aims speak of. Nothing is asserted, for machines differ.

mod load;
mod mode;
mod row;
mod verdict;

use harness::{Error, Lab, Record, Result, Server, peers};
use load::Load;
use mode::{Mode, Tools};
use row::Table;

/// Rounds of each load, when nothing else is asked for.
const ROUNDS: usize = 8;

fn measure(
    server: &mut Server,
    tools: &Tools,
    load: Load,
    modes: &[Mode],
    rounds: usize,
    (table, record): (&mut Table, &mut Record),
) -> Result<()> {
    let mut before = Mode::Alone.measure(server, tools)?;
    for round in 0..rounds {
        for turn in 0..modes.len() {
            // In another order each time: what one leaves behind is not always the same one's.
            let mode = modes[(round + turn) % modes.len()];
            let with = match mode.measure(server, tools) {
                Ok(with) => with,
                Err(Error::Missing(reason)) => {
                    table.cannot(load, mode, &reason);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let after = Mode::Alone.measure(server, tools)?;
            table.add(load, mode, [before, with, after]);
            before = after;
            // A run that is broken off leaves what it has.
            table.save(record)?;
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let rounds = words.iter().find_map(|word| word.strip_prefix("rounds=")?.parse().ok());
    let wanted = |load: &Load| words.iter().any(|word| word == load.name());
    let loads: Vec<Load> = match Load::ALL.into_iter().filter(wanted).collect::<Vec<_>>() {
        named if named.is_empty() => Load::ALL.to_vec(),
        named => named,
    };
    let lab = Lab::open()?;
    let python = lab.default_python()?;
    let path = std::env::var_os("SPARK_BENCH_JSON").unwrap_or_else(|| lab.target().join("bench-mspt.json").into());
    let mut record = Record::open(path);
    let mut table = Table::default();
    if words.iter().any(|word| word == "more") {
        table = Table::of(&record);
    }
    let tools = Tools {
        py_spy: peers::py_spy(&lab),
    };
    let py_spy = tools.py_spy.as_deref().map(peers::version_of).unwrap_or_default();
    println!("{}, CPython {}, {py_spy}\n", harness::machine(), python.full_version);
    record.put("versions", [format!("CPython {}", python.full_version), py_spy])?;
    for load in loads {
        let mut modes = load.modes();
        if words.iter().any(|word| word == "aims") {
            modes.retain(|mode| mode.has_aim());
        }
        let mut server = load.server(&lab, &python)?;
        measure(
            &mut server,
            &tools,
            load,
            &modes,
            rounds.unwrap_or(ROUNDS),
            (&mut table, &mut record),
        )?;
        server.stop_cleanly()?;
        table.save(&mut record)?;
    }
    table.print();
    Ok(())
}
