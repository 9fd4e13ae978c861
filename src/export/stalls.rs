//! When the server did not tick.

use serde_json::{Value, json};

/// A time in which the server thread did not tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShownStall {
    /// Milliseconds from the profile's start to the last tick before it.
    pub began_millis: u64,
    /// How long it took.
    pub millis: u64,
    /// `false`: there was no tick any more.
    pub is_over: bool,
}

/// All of a profile.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StallReport {
    /// How many there were.
    pub count: u64,
    /// The newest of them, oldest first.
    pub newest: Vec<ShownStall>,
}

impl StallReport {
    pub(super) fn figures(&self) -> Value {
        let each: Vec<Value> = self
            .newest
            .iter()
            .map(|stall| {
                json!({
                    "began, milliseconds after the start": stall.began_millis,
                    "milliseconds": stall.millis,
                    "over": stall.is_over,
                })
            })
            .collect();
        json!({
            "times the server thread did not tick": self.count,
            "longest, milliseconds": self.newest.iter().map(|stall| stall.millis).max(),
            "each": each,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_listed_with_begin_and_length() {
        let report = StallReport {
            count: 2,
            newest: vec![
                ShownStall {
                    began_millis: 1_500,
                    millis: 9_000,
                    is_over: true,
                },
                ShownStall {
                    began_millis: 20_000,
                    millis: 6_000,
                    is_over: false,
                },
            ],
        };
        let figures = report.figures();
        assert_eq!(figures["times the server thread did not tick"], 2);
        assert_eq!(figures["longest, milliseconds"], 9_000);
        assert_eq!(figures["each"][1]["over"], false);
        assert_eq!(figures["each"][0]["began, milliseconds after the start"], 1_500);
    }
}
