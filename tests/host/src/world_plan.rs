//! What the stand-in's world holds. Everything follows from three numbers, so that a test can say what a profile must show.

use std::str::FromStr;

/// Kinds of the entities that are not players, in turn.
pub const KINDS: [&str; 4] = [
    "minecraft:cow",
    "minecraft:zombie",
    "minecraft:item",
    "minecraft:creeper",
];

/// Names of the dimensions; the second has half, the third a quarter of what the first has.
pub const DIMENSIONS: [&str; 3] = ["Overworld", "Nether", "TheEnd"];

/// Chunks between the beginnings of a dimension's two regions.
const REGION_DISTANCE: i32 = 1_000;

/// The three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorldPlan {
    /// Chunks of the first dimension.
    pub chunks: usize,
    /// Entities of the first dimension without players.
    pub entities: usize,
    /// Players, all of them in the first dimension.
    pub players: usize,
}

impl FromStr for WorldPlan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut plan = WorldPlan {
            chunks: 64,
            entities: 40,
            players: 2,
        };
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, number) = part
                .split_once('=')
                .ok_or(format!("--world takes NAME=NUMBER, not {part}"))?;
            let number = number
                .parse()
                .ok()
                .filter(|number| *number <= 1_000_000)
                .ok_or(format!("--world {name} takes 0 to 1000000, not {number}"))?;
            match name {
                "chunks" => plan.chunks = number,
                "entities" => plan.entities = number,
                "players" => plan.players = number,
                other => return Err(format!("--world knows chunks, entities and players, not {other}")),
            }
        }
        Ok(plan)
    }
}

impl WorldPlan {
    /// How many of `number` a dimension has.
    fn share(number: usize, dimension: usize) -> usize {
        number >> dimension
    }

    /// Where a dimension's chunks lie: two squares that do not touch, the first of which begins at -2, -2.
    pub fn chunks(&self, dimension: usize) -> Vec<(i32, i32)> {
        let count = Self::share(self.chunks, dimension);
        let side = (1..).find(|side: &usize| side * side * 2 >= count).unwrap_or(1);
        (0..count)
            .map(|number| {
                let (square, place) = (number / (side * side), number % (side * side));
                let x = (place % side) as i32 - 2 + square as i32 * REGION_DISTANCE;
                (x, (place / side) as i32 - 2)
            })
            .collect()
    }

    /// A dimension's entities without players: kind and the chunk that holds each. Without chunks there are none.
    pub fn entities(&self, dimension: usize) -> Vec<(&'static str, (i32, i32))> {
        let chunks = self.chunks(dimension);
        let places = chunks.iter().cycle();
        places
            .zip(KINDS.iter().cycle())
            .take(Self::share(self.entities, dimension))
            .map(|(place, kind)| (*kind, *place))
            .collect()
    }

    /// A player's ping in milliseconds.
    pub fn ping(player: usize) -> i64 {
        20 + 15 * player as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read() {
        let plan: WorldPlan = "entities=7,chunks=9".parse().unwrap();
        assert_eq!((plan.chunks, plan.entities, plan.players), (9, 7, 2));
        assert!("cows=3".parse::<WorldPlan>().unwrap_err().contains("not cows"));
        assert!("chunks=-1".parse::<WorldPlan>().unwrap_err().contains("not -1"));
    }

    #[test]
    fn a_dimension_has_two_regions_and_its_entities_lie_in_them() {
        let plan: WorldPlan = "chunks=8,entities=10".parse().unwrap();
        let first: Vec<_> = plan.chunks(0);
        assert_eq!(&first[..4], [(-2, -2), (-1, -2), (-2, -1), (-1, -1)]);
        assert_eq!(first[4], (998, -2));
        assert_eq!(plan.chunks(2).len(), 2);
        let entities = plan.entities(0);
        assert_eq!(entities.len(), 10);
        assert_eq!(entities[9], ("minecraft:zombie", (-1, -2)));
        assert_eq!(plan.entities(1).len(), 5);
    }
}
