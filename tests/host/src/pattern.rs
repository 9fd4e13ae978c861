//! Ticks of known lengths: one after the other, as often as asked for, then as before.

use std::collections::VecDeque;
use std::str::FromStr;

/// `!pattern ROUNDS MS,MS,...`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    pub rounds: u64,
    /// How long the work of each tick takes, in milliseconds.
    pub millis: Vec<u64>,
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Pattern, String> {
        let usage = "takes ROUNDS and lengths in milliseconds, like 10 5,30,70,200";
        let (rounds, millis) = text.split_once(' ').ok_or(usage)?;
        let rounds = rounds.parse().map_err(|_| usage)?;
        let millis = millis.trim().split(',').map(str::parse);
        let millis = millis.collect::<Result<Vec<u64>, _>>().map_err(|_| usage)?;
        Ok(Pattern { rounds, millis })
    }
}

impl Pattern {
    /// How many ticks it has.
    pub fn ticks(&self) -> u64 {
        self.rounds * self.millis.len() as u64
    }

    /// The lengths of all its ticks, in nanoseconds.
    pub fn nanos(&self) -> VecDeque<u64> {
        (0..self.rounds)
            .flat_map(|_| self.millis.iter().map(|millis| millis * 1_000_000))
            .collect()
    }
}

/// How long ticks really took, as the server would measure it: from the notice of the beginning to that of the end.
#[derive(Debug, Default)]
pub struct Lengths(Vec<u64>);

/// More are not kept between two questions: half a day of ticks.
const MOST: usize = 1_000_000;

impl Lengths {
    pub fn add(&mut self, nanos: u64) {
        if self.0.len() < MOST {
            self.0.push(nanos);
        }
    }

    /// Those since this was asked last, in milliseconds.
    pub fn take(&mut self) -> String {
        let lengths = std::mem::take(&mut self.0);
        let text: Vec<String> = lengths
            .iter()
            .map(|nanos| format!("{:.4}", *nanos as f64 / 1e6))
            .collect();
        text.join(" ")
    }
}

/// When the level was ticked, in nanoseconds of the monotonic clock.
#[derive(Debug, Default)]
pub struct Beats(Vec<u64>);

impl Beats {
    pub fn add(&mut self, now: u64) {
        if self.0.len() < MOST {
            self.0.push(now);
        }
    }

    /// How many milliseconds before `now` each was, oldest first.
    pub fn ago(&self, now: u64) -> String {
        let text: Vec<String> = self
            .0
            .iter()
            .map(|at| format!("{:.4}", now.saturating_sub(*at) as f64 / 1e6))
            .collect();
        text.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_rounds_of_lengths() {
        let pattern: Pattern = "2 5,30".parse().expect("a pattern");
        assert_eq!(pattern.ticks(), 4);
        assert_eq!(pattern.nanos(), [5_000_000, 30_000_000, 5_000_000, 30_000_000]);
        for text in ["", "2", "2 x", "x 5", "2 5,,6"] {
            assert!(text.parse::<Pattern>().is_err(), "{text:?} was accepted");
        }
    }
}
