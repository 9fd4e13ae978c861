//! What was measured, put together.
//!
//! The machine's speed drifts by more than a profiler costs. So each measurement with a profiler stands between two without, and is compared with their mean only; of these
//! differences the median is given, and the quartiles. Where something else wanted the processor while there was no profiler, the three are left out.

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
    /// Of the time of the native steps, what interruptions took more.
    added_lost_percent: Option<Spread>,
    /// Processor time that the server thread takes more in a tick; what stops the thread is not in it.
    added_thread_percent: Spread,
    /// Server and profiler together, percent of a core.
    added_cpu: Spread,
    /// Of this, the profiler's process or threads.
    profiler_cpu: Spread,
}

fn summary(rounds: &[Triple]) -> Option<Summary> {
    let good: Vec<&Triple> = rounds
        .iter()
        .filter(|triple| triple[0].undisturbed() && triple[2].undisturbed())
        .collect();
    let rounds = if good.is_empty() { rounds.iter().collect() } else { good };
    let of = |figure: &dyn Fn(&Triple) -> f64| Spread::of(rounds.iter().map(|triple| figure(triple)));
    let without = |triple: &Triple| f64::midpoint(triple[0].mspt, triple[2].mspt);
    Some(Summary {
        mspt_without: of(&without)?,
        mspt_with: of(&|triple| triple[1].mspt)?,
        added_milliseconds: of(&|triple| triple[1].mspt - without(triple))?,
        added_percent: of(&|triple| 100.0 * (triple[1].mspt / without(triple) - 1.0))?,
        added_lost_percent: of(&|triple| {
            triple[1].lost_percent - f64::midpoint(triple[0].lost_percent, triple[2].lost_percent)
        })
        // Without steps nothing can be lost.
        .filter(|_| rounds.iter().any(|triple| triple[1].lost_percent > 0.0)),
        added_thread_percent: of(&|triple| {
            let [before, with, after] = triple.map(|slice| slice.thread_cpu_per_tick);
            100.0 * (with / f64::midpoint(before, after) - 1.0)
        })?,
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
            let lost = |mode| Some(self.summary(load, mode)?.added_lost_percent?.median);
            let (ours, theirs) = (lost(Mode::Ours(4)), lost(Mode::PySpy(250)));
            let whole = self.summary(load, Mode::Ours(4));
            let name = load.name();
            judge(
                format!("{name}: ours at 4 ms adds at most 0.5 % MSPT, by the length of ticks"),
                whole.map(|summary| summary.added_percent.median),
                &|found| found <= 0.5,
            );
            judge(
                format!("{name}: ours at 4 ms adds at most 0.5 % MSPT, by what interruptions take"),
                ours,
                &|found| found <= 0.5,
            );
            judge(
                format!("{name}: interruptions by py-spy --native at the same rate take at least 20 times as much"),
                theirs.zip(ours).map(|(theirs, ours)| theirs / ours),
                &|found| found >= 20.0,
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

    /// How far apart measurements without a profiler lie that follow each other: what is smaller than this, this machine cannot tell.
    fn print_noise(&self) {
        for load in Load::ALL {
            let rounds = || {
                self.rows
                    .iter()
                    .filter(|((of, _), _)| *of == load)
                    .flat_map(|(_, rounds)| rounds)
            };
            let between = |figure: &dyn Fn(&Slice) -> f64| {
                Spread::of(rounds().map(|triple| (figure(&triple[2]) - figure(&triple[0])).abs()))
            };
            let apart = |triple: &Triple| 100.0 * (triple[2].mspt / triple[0].mspt - 1.0).abs();
            let Some(length) = Spread::of(rounds().map(apart)) else {
                continue;
            };
            let lost = between(&|slice| slice.lost_percent).map_or_else(String::new, |lost| lost.text(2));
            println!(
                "{}: two measurements without a profiler differ by {} % in MSPT and {lost} in percent lost in interruptions",
                load.name(),
                length.text(1)
            );
        }
    }

    pub fn print(&self) {
        println!(
            "| load | profiler | MSPT without | MSPT with | added % | lost in interruptions, % | processor time of the server thread, added % | processor time added, % of a core | of it the profiler's own |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
        for ((load, mode), rounds) in &self.rows {
            let Some(summary) = summary(rounds) else { continue };
            println!(
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                load.name(),
                mode.name(),
                summary.mspt_without.text(2),
                summary.mspt_with.text(2),
                summary.added_percent.text(2),
                summary.added_lost_percent.map_or_else(String::new, |lost| lost.text(3)),
                summary.added_thread_percent.text(2),
                summary.added_cpu.text(1),
                summary.profiler_cpu.text(1),
            );
        }
        for ((load, mode), reason) in &self.reasons {
            println!("not measured: {}, {}: {reason}", load.name(), mode.name());
        }
        println!();
        self.print_noise();
        for verdict in self.verdicts() {
            let met = if verdict.met { "met" } else { "MISSED" };
            println!("{met}: {} ({:.2})", verdict.aim, verdict.found);
        }
    }
}
