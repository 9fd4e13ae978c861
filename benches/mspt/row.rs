//! What was measured, put together.
//!
//! The machine's speed drifts by more than a profiler costs. So each measurement with a profiler stands between two without, and is compared with their mean only; of these
//! differences the median is given, and the quartiles.

use std::collections::BTreeMap;

use harness::{Record, Result, Slice, Spread};
use serde::{Deserialize, Serialize};

use crate::load::Load;
use crate::mode::Mode;

/// Without, with, without.
type Triple = [Slice; 3];

#[derive(Default)]
pub struct Table {
    rows: BTreeMap<(Load, Mode), Vec<Triple>>,
    reasons: BTreeMap<(Load, Mode), String>,
}

#[derive(Serialize, Deserialize)]
struct Row {
    load: Load,
    mode: Mode,
    rounds: Vec<Triple>,
    /// Filled in for readers.
    summary: Option<Summary>,
}

/// Of all rounds.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Summary {
    mspt_without: Spread,
    mspt_with: Spread,
    added_milliseconds: Spread,
    added_percent: Spread,
    /// Server and profiler together, percent of a core.
    added_cpu: Spread,
    /// Of this, the profiler's process or threads.
    profiler_cpu: Spread,
}

fn summary(rounds: &[Triple]) -> Option<Summary> {
    let of = |figure: &dyn Fn(&Triple) -> f64| Spread::of(rounds.iter().map(figure));
    let without = |triple: &Triple| f64::midpoint(triple[0].mspt, triple[2].mspt);
    Some(Summary {
        mspt_without: of(&without)?,
        mspt_with: of(&|triple| triple[1].mspt)?,
        added_milliseconds: of(&|triple| triple[1].mspt - without(triple))?,
        added_percent: of(&|triple| 100.0 * (triple[1].mspt / without(triple) - 1.0))?,
        added_cpu: of(&|triple| triple[1].cpu() - f64::midpoint(triple[0].cpu(), triple[2].cpu()))?,
        profiler_cpu: of(&|triple| triple[1].own_threads_cpu + triple[1].peer_cpu)?,
    })
}

/// An aim, what was found, and whether it is met.
#[derive(Serialize)]
struct Verdict {
    aim: String,
    found: f64,
    met: bool,
}

impl Table {
    pub fn of(record: &Record) -> Table {
        let rows = record.get("rows").cloned().unwrap_or_default();
        let rows: Vec<Row> = serde_json::from_value(rows).unwrap_or_default();
        Table {
            rows: rows.into_iter().map(|row| ((row.load, row.mode), row.rounds)).collect(),
            reasons: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, load: Load, mode: Mode, triple: Triple) {
        self.rows.entry((load, mode)).or_default().push(triple);
    }

    /// Why something was not measured.
    pub fn cannot(&mut self, load: Load, mode: Mode, reason: &str) {
        self.reasons.entry((load, mode)).or_insert_with(|| reason.to_owned());
    }

    pub fn save(&self, record: &mut Record) -> Result<()> {
        let rows: Vec<Row> = self
            .rows
            .iter()
            .map(|((load, mode), rounds)| Row {
                load: *load,
                mode: *mode,
                rounds: rounds.clone(),
                summary: summary(rounds),
            })
            .collect();
        let reasons: BTreeMap<String, &String> = self
            .reasons
            .iter()
            .map(|((load, mode), reason)| (format!("{}: {}", load.name(), mode.name()), reason))
            .collect();
        record.put("rows", rows)?;
        record.put("not measured", reasons)?;
        record.put("verdicts", self.verdicts())
    }

    fn summary(&self, load: Load, mode: Mode) -> Option<Summary> {
        summary(self.rows.get(&(load, mode))?)
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        let mut judge = |aim: String, found: Option<f64>, met: &dyn Fn(f64) -> bool| {
            verdicts.extend(found.map(|found| Verdict {
                aim,
                found,
                met: met(found),
            }));
        };
        for load in [Load::Native, Load::Mixed] {
            let ours = self.summary(load, Mode::Ours(4));
            let theirs = self.summary(load, Mode::PySpy(250));
            let percent = |summary: Option<Summary>| summary.map(|summary| summary.added_percent.median);
            let name = load.name();
            judge(
                format!("{name}: ours at 4 ms adds at most 0.5 % MSPT"),
                percent(ours),
                &|found| found <= 0.5,
            );
            let times = percent(theirs).zip(percent(ours)).map(|(theirs, ours)| theirs / ours);
            judge(
                format!("{name}: py-spy --native at the same rate costs at least 20 times as much MSPT"),
                times,
                // What adds nothing that can be measured costs less by any factor.
                &|found| found >= 20.0 || found < 0.0,
            );
        }
        for load in [Load::Python, Load::Mixed] {
            let added = |mode| Some(self.summary(load, mode)?.added_milliseconds.median);
            let ratio = added(Mode::Ours(4)).zip(added(Mode::Empty));
            judge(
                format!(
                    "{}: ours at 4 ms adds at most 1.35 times what empty callbacks add",
                    load.name()
                ),
                ratio.map(|(ours, empty)| ours / empty),
                &|found| found <= 1.35,
            );
        }
        verdicts
    }

    pub fn print(&self) {
        println!(
            "| load | profiler | MSPT without | MSPT with | added % | processor time added, % of a core | of it the profiler's own |"
        );
        println!("|---|---|---|---|---|---|---|");
        for ((load, mode), rounds) in &self.rows {
            let Some(summary) = summary(rounds) else { continue };
            println!(
                "| {} | {} | {} | {} | {} | {} | {} |",
                load.name(),
                mode.name(),
                summary.mspt_without.text(2),
                summary.mspt_with.text(2),
                summary.added_percent.text(2),
                summary.added_cpu.text(1),
                summary.profiler_cpu.text(1),
            );
        }
        for ((load, mode), reason) in &self.reasons {
            println!("not measured: {}, {}: {reason}", load.name(), mode.name());
        }
        println!();
        for verdict in self.verdicts() {
            let met = if verdict.met { "met" } else { "MISSED" };
            println!("{met}: {} ({:.2})", verdict.aim, verdict.found);
        }
    }
}
