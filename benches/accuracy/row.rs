//! What was found of one profiler.

use std::collections::BTreeMap;

use harness::Record;
use harness::chains::{Judged, Known};
use serde::{Deserialize, Serialize};

use crate::way::Way;

pub const KNOWN: [Known; 12] = [
    python("day", None),
    native("smelt", "day"),
    python("stoke", Some("smelt")),
    native("blow", "stoke"),
    python("gauge", Some("blow")),
    native("pour", "smelt"),
    python("trade", Some("day")),
    native("weigh", "trade"),
    python("haggle", Some("weigh")),
    native("count", "haggle"),
    native("sow", "day"),
    python("reap", Some("sow")),
];

const fn python(name: &'static str, caller: Option<&'static str>) -> Known {
    Known {
        name,
        native: false,
        caller,
    }
}

const fn native(name: &'static str, caller: &'static str) -> Known {
    Known {
        name,
        native: true,
        caller: Some(caller),
    }
}

#[derive(Serialize, Deserialize)]
pub struct Row {
    version: String,
    seconds: u64,
    /// None for those that are called for every call.
    samples: Option<u64>,
    /// Points.
    largest_error: f64,
    mean_error: f64,
    worst: String,
    /// Percent of the samples; none for those that keep no stacks.
    right_chains: Option<f64>,
    /// Percent of the samples that have a right chain and show the server thread's first function.
    right_to_the_root: Option<f64>,
    /// Truth and what was shown, in percent of the twelve.
    shares: BTreeMap<String, (f64, f64)>,
    reason: Option<String>,
}

impl Row {
    pub fn cannot(reason: String) -> Row {
        Row {
            version: String::new(),
            seconds: 0,
            samples: None,
            largest_error: 0.0,
            mean_error: 0.0,
            worst: String::new(),
            right_chains: None,
            right_to_the_root: None,
            shares: BTreeMap::new(),
            reason: Some(reason),
        }
    }

    pub fn of(
        truth: &BTreeMap<String, f64>,
        judged: &Judged,
        samples: Option<u64>,
        version: String,
        seconds: u64,
    ) -> Row {
        let total: f64 = truth.values().sum();
        let found = judged.shares();
        let shares: BTreeMap<String, (f64, f64)> = KNOWN
            .iter()
            .map(|known| {
                let truth = truth.get(known.name).copied().unwrap_or_default();
                let found = found.get(known.name).copied().unwrap_or_default();
                (known.name.to_owned(), (100.0 * truth / total, found))
            })
            .collect();
        let errors = || {
            shares
                .iter()
                .map(|(name, (truth, found))| ((found - truth).abs(), name))
        };
        let (largest_error, worst) = errors()
            .max_by(|one, other| one.0.total_cmp(&other.0))
            .map_or((f64::NAN, String::new()), |(error, name)| (error, name.clone()));
        let percent = |weight: f64| 100.0 * weight / judged.total();
        let has_stacks = samples.is_some();
        Row {
            version,
            seconds,
            samples,
            largest_error,
            mean_error: errors().map(|(error, _)| error).sum::<f64>() / KNOWN.len() as f64,
            worst,
            right_chains: has_stacks.then(|| percent(judged.right)),
            right_to_the_root: has_stacks.then(|| percent(judged.right_to_the_root)),
            shares,
            reason: None,
        }
    }
}

pub fn print(record: &Record) {
    println!(
        "| profiler | version | samples | largest error, points | mean error | right chains | of them to the thread's first function |"
    );
    println!("|---|---|---|---|---|---|---|");
    let row = |way: Way| {
        let row = serde_json::from_value::<Row>(record.get(way.name())?.clone());
        Some((way, row.ok()?))
    };
    let rows: Vec<(Way, Row)> = Way::ALL.into_iter().filter_map(row).collect();
    for (way, row) in &rows {
        if row.reason.is_some() {
            continue;
        }
        let percent = |part: Option<f64>| part.map_or("no stacks".to_owned(), |part| format!("{part:.2} %"));
        println!(
            "| {} | {} | {} | {:.2} ({}) | {:.2} | {} | {} |",
            way.words(),
            row.version,
            row.samples
                .map_or("every call".to_owned(), |samples| samples.to_string()),
            row.largest_error,
            row.worst,
            row.mean_error,
            percent(row.right_chains),
            percent(row.right_to_the_root),
        );
    }
    for (way, row) in &rows {
        if let Some(reason) = &row.reason {
            println!("not measured: {}: {reason}", way.words());
        }
    }
    let ours = |met: bool| if met { "met" } else { "MISSED" };
    for (way, row) in rows.iter().filter(|(way, _)| way.is_ours()) {
        println!(
            "{}: {}, largest error at most 1 point ({:.2})",
            ours(row.largest_error <= 1.0),
            way.words(),
            row.largest_error
        );
        let right = row.right_to_the_root.unwrap_or_default();
        println!(
            "{}: {}, right full chains 99.9 % or more ({right:.3})",
            ours(right >= 99.9),
            way.words()
        );
    }
}
