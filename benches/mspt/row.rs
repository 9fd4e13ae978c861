//! What was measured, put together.
//!
//! The machine's speed drifts by more than a profiler costs. So each measurement with a profiler stands between two without, and is compared with their mean only; of these
//! differences the median is given, and the quartiles. Where something else wanted the processor while there was no profiler, the three are left out.

use std::collections::BTreeMap;

use harness::{Record, Result, Slice, Spread};
use serde::{Deserialize, Serialize};

use crate::load::Load;
use crate::mode::Mode;
use crate::verdict::verdicts;

/// Without, with, without.
pub type Triple = [Slice; 3];

/// Milliseconds that were added to a tick.
pub fn added_milliseconds(triple: &Triple) -> f64 {
    triple[1].mspt - without(triple)
}

/// The same in percent.
pub fn added_percent(triple: &Triple) -> f64 {
    100.0 * (triple[1].mspt / without(triple) - 1.0)
}

/// What interruptions took more of the native steps' time, in percentage points.
pub fn added_lost_percent(triple: &Triple) -> f64 {
    triple[1].lost_percent - f64::midpoint(triple[0].lost_percent, triple[2].lost_percent)
}

/// Processor time that the server thread took more for a tick, in milliseconds.
pub fn added_thread_milliseconds(triple: &Triple) -> f64 {
    let [before, with, after] = triple.map(|slice| slice.thread_cpu_per_tick);
    with - f64::midpoint(before, after)
}

/// Whether nothing else wanted the processor while there was no profiler.
fn undisturbed(triple: &Triple) -> bool {
    triple[0].undisturbed() && triple[2].undisturbed()
}

fn without(triple: &Triple) -> f64 {
    f64::midpoint(triple[0].mspt, triple[2].mspt)
}

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
    let good: Vec<&Triple> = rounds.iter().filter(|triple| undisturbed(triple)).collect();
    let rounds = if good.is_empty() { rounds.iter().collect() } else { good };
    let of = |figure: &dyn Fn(&Triple) -> f64| Spread::of(rounds.iter().map(|triple| figure(triple)));
    Some(Summary {
        mspt_without: of(&without)?,
        mspt_with: of(&|triple| triple[1].mspt)?,
        added_milliseconds: of(&added_milliseconds)?,
        added_percent: of(&added_percent)?,
        added_lost_percent: of(&added_lost_percent)
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
        record.put("verdicts", verdicts(self))
    }

    /// A figure of each round in which nothing else disturbed; `None` for the others, so that rounds of several modes can be compared one by one.
    pub fn rounds(&self, load: Load, mode: Mode, figure: impl Fn(&Triple) -> f64) -> Vec<Option<f64>> {
        let rounds = self.rows.get(&(load, mode)).map(Vec::as_slice).unwrap_or_default();
        rounds
            .iter()
            .map(|triple| undisturbed(triple).then(|| figure(triple)))
            .collect()
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
        for verdict in verdicts(self) {
            println!("{verdict}");
        }
    }
}
