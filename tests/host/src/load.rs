//! How much of each tick the native work takes.

use std::str::FromStr;

/// Percent of the tick's length per kind of work. What is left is spent sleeping, except for what plugins do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    pub entities: u64,
    pub redstone: u64,
    pub chunks: u64,
}

/// More would leave no room for the plugins under test, and ticks would run late.
const MAX_TOTAL: u64 = 95;

impl Default for Load {
    fn default() -> Self {
        Load {
            entities: 30,
            redstone: 20,
            chunks: 10,
        }
    }
}

impl Load {
    /// Nanoseconds that `percent` of a tick of `tick_nanos` takes.
    pub fn nanos(percent: u64, tick_nanos: u64) -> u64 {
        tick_nanos * percent / 100
    }
}

impl FromStr for Load {
    type Err = String;

    /// `entities=30,redstone=20,chunks=10`; what is not named does no work, and `none` means no work at all.
    fn from_str(text: &str) -> Result<Load, String> {
        let mut load = Load {
            entities: 0,
            redstone: 0,
            chunks: 0,
        };
        if text == "none" {
            return Ok(load);
        }
        for part in text.split(',') {
            let (kind, percent) = part
                .split_once('=')
                .ok_or(format!("--load: {part:?} is not KIND=PERCENT"))?;
            let percent: u64 = percent
                .parse()
                .map_err(|_| format!("--load: {percent:?} is not a whole number"))?;
            let target = match kind {
                "entities" => &mut load.entities,
                "redstone" => &mut load.redstone,
                "chunks" => &mut load.chunks,
                _ => return Err(format!("--load knows entities, redstone and chunks, not {kind:?}")),
            };
            *target = percent;
        }
        let total = load.entities.saturating_add(load.redstone).saturating_add(load.chunks);
        if total > MAX_TOTAL {
            return Err(format!("--load: {total} % of a tick is more than {MAX_TOTAL} %"));
        }
        Ok(load)
    }
}

/// One kind of work, turn by turn. A turn that ends late, because the thread was preempted, shortens the next ones, so that the share
/// holds over many ticks on a busy machine too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    /// Length of a turn in nanoseconds.
    nanos: u64,
    /// Nanoseconds that earlier turns took too long.
    late: u64,
    /// Nanoseconds that all turns took since the last [`Turns::take_spent`].
    spent: u64,
}

/// When a turn begins, and how long it may take. Nanoseconds of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    pub start: u64,
    pub nanos: u64,
}

impl Turn {
    /// When `percent` of the turn are over.
    pub fn part(self, percent: u64) -> u64 {
        self.start + self.nanos * percent / 100
    }
}

impl Turns {
    pub fn new(percent: u64, tick_nanos: u64) -> Turns {
        Turns {
            nanos: Load::nanos(percent, tick_nanos),
            late: 0,
            spent: 0,
        }
    }

    /// Whether there is any such work.
    pub fn any(self) -> bool {
        self.nanos > 0
    }

    /// Begins a turn.
    pub fn begin(&mut self, now: u64) -> Turn {
        let nanos = self.nanos.saturating_sub(self.late);
        self.late -= self.nanos - nanos;
        Turn { start: now, nanos }
    }

    /// Ends it.
    pub fn end(&mut self, turn: Turn, now: u64) {
        self.late += now.saturating_sub(turn.part(100));
        self.spent += now.saturating_sub(turn.start);
    }

    /// Nanoseconds that turns really took since this was asked last.
    pub fn take_spent(&mut self) -> u64 {
        std::mem::take(&mut self.spent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_ends_late_is_made_up_for() {
        let mut turns = Turns::new(30, 100);
        let first = turns.begin(1000);
        assert_eq!(first, Turn { start: 1000, nanos: 30 });
        assert_eq!(first.part(50), 1015);
        // Forty too long: the next turn is left out, and the one after it is ten shorter.
        turns.end(first, 1070);
        let second = turns.begin(1100);
        assert_eq!(second.nanos, 0);
        turns.end(second, 1100);
        let third = turns.begin(1200);
        assert_eq!(third.nanos, 20);
        turns.end(third, 1220);
        assert_eq!(turns.begin(1300).nanos, 30);
        assert_eq!(turns.take_spent(), 70 + 20);
        assert_eq!(turns.take_spent(), 0);
    }

    #[test]
    fn no_percent_is_no_work() {
        assert!(!Turns::new(0, 50_000_000).any());
        assert!(Turns::new(1, 50_000_000).any());
    }

    #[test]
    fn named_shares_are_taken_and_the_rest_is_idle() {
        assert_eq!(
            "entities=40,chunks=5".parse(),
            Ok(Load {
                entities: 40,
                redstone: 0,
                chunks: 5
            })
        );
        assert_eq!(
            "none".parse(),
            Ok(Load {
                entities: 0,
                redstone: 0,
                chunks: 0
            })
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "entities",
            "entities=x",
            "lava=3",
            "entities=60,redstone=40",
            "entities=18446744073709551615,chunks=1",
        ] {
            assert!(text.parse::<Load>().is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn a_share_is_a_part_of_the_tick() {
        assert_eq!(Load::nanos(30, 50_000_000), 15_000_000);
    }
}
