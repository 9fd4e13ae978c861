//! Whether the aims are met, as far as the rounds can tell.

use std::fmt;

use harness::{Spread, median_interval};
use serde::Serialize;

use crate::load::Load;
use crate::mode::Mode;
use crate::row::{Table, Triple, added_lost_percent, added_milliseconds, added_percent, added_thread_milliseconds};

/// What a run says of an aim. One that says "met" or "missed" is wrong in one of twenty runs at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Met,
    Missed,
    /// The rounds differ by more than the aim is away.
    Untold,
}

impl Outcome {
    /// Of what each round is above the aim.
    fn of(above: impl IntoIterator<Item = f64>) -> Outcome {
        match median_interval(above) {
            Some((_, high)) if high <= 0.0 => Outcome::Met,
            Some((low, _)) if low > 0.0 => Outcome::Missed,
            _ => Outcome::Untold,
        }
    }
}

/// An aim, what was found, and whether it is met.
#[derive(Serialize)]
pub struct Verdict {
    aim: String,
    /// The median, or the two medians' ratio.
    found: f64,
    outcome: Outcome,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.outcome {
            Outcome::Met => "met",
            Outcome::Missed => "MISSED",
            Outcome::Untold => "cannot be told from these rounds",
        };
        write!(f, "{outcome}: {} ({:.2})", self.aim, self.found)
    }
}

/// A figure is to be at most so much.
fn at_most(aim: String, rounds: &[Option<f64>], limit: f64) -> Option<Verdict> {
    let found = median(rounds)?;
    let outcome = Outcome::of(rounds.iter().flatten().map(|figure| figure - limit));
    Some(Verdict { aim, found, outcome })
}

/// A figure is to be at most so many times another one of the same round. The rounds' own ratios are not used: the smaller figure can be next to nothing.
fn at_most_times(aim: String, rounds: &[Option<f64>], times: f64, others: &[Option<f64>]) -> Option<Verdict> {
    let pairs = rounds.iter().zip(others).filter_map(|(one, other)| (*one).zip(*other));
    let outcome = Outcome::of(pairs.map(|(one, other)| one - times * other));
    let found = median(rounds)? / median(others)?;
    Some(Verdict { aim, found, outcome })
}

fn median(rounds: &[Option<f64>]) -> Option<f64> {
    Some(Spread::of(rounds.iter().flatten().copied())?.median)
}

/// Of what was measured until now.
pub fn verdicts(table: &Table) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for load in [Load::Native, Load::Mixed] {
        let name = load.name();
        let lost = |mode| table.rounds(load, mode, added_lost_percent);
        let (ours, theirs) = (lost(Mode::Ours(4)), lost(Mode::PySpy(250)));
        verdicts.extend(at_most(
            format!("{name}: ours at 4 ms adds at most 0.5 % MSPT, by the length of ticks"),
            &table.rounds(load, Mode::Ours(4), added_percent),
            0.5,
        ));
        verdicts.extend(at_most(
            format!("{name}: ours at 4 ms adds at most 0.5 % MSPT, by what interruptions take"),
            &ours,
            0.5,
        ));
        verdicts.extend(at_most_times(
            format!("{name}: interruptions by ours take at most a twentieth (0.05) of those by py-spy --native at the same rate"),
            &ours,
            0.05,
            &theirs,
        ));
    }
    for load in [Load::Python, Load::Mixed] {
        let name = load.name();
        for (figure, by) in [
            (added_milliseconds as fn(&Triple) -> f64, "by the length of ticks"),
            (added_thread_milliseconds, "by the server thread's processor time"),
        ] {
            verdicts.extend(at_most_times(
                format!("{name}: ours at 4 ms adds at most 1.35 times what empty callbacks add, {by}"),
                &table.rounds(load, Mode::Ours(4), figure),
                1.35,
                &table.rounds(load, Mode::Empty, figure),
            ));
        }
    }
    verdicts
}
