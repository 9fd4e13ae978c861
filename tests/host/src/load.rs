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

#[cfg(test)]
mod tests {
    use super::*;

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
