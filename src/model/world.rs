//! What is loaded of the world at one moment.

use std::collections::BTreeMap;

/// A chunk's place in its dimension, counted in chunks: x, then z.
pub type ChunkPosition = (i32, i32);

/// The loaded world. It takes some ticks to look at all of it, so it is not of one instant: an entity that moves meanwhile is counted once, where it was seen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct World {
    /// Players online.
    pub players: u32,
    /// In the server's order.
    pub dimensions: Vec<DimensionCensus>,
}

/// What is loaded of one dimension.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DimensionCensus {
    /// e.g. `Overworld`.
    pub name: String,
    /// Where the loaded chunks lie.
    pub chunks: Vec<ChunkPosition>,
    /// Loaded chunks that are not among these, because there are too many.
    pub chunks_left_out: u32,
    /// By chunk and kind (`minecraft:zombie`). Only chunks with entities.
    pub entities: BTreeMap<ChunkPosition, BTreeMap<String, u32>>,
    /// Entities that were not looked at, because there are too many or they are nowhere.
    pub entities_left_out: u32,
}

/// How much is loaded, and for how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorldCounts {
    /// Players online.
    pub players: u32,
    /// Entities of all dimensions, players included; `None` while no world is loaded.
    pub entities: Option<u32>,
    /// Chunks of all dimensions; `None` while no world is loaded.
    pub chunks: Option<u32>,
}

impl World {
    /// How much of it there is.
    pub fn counts(&self) -> WorldCounts {
        WorldCounts {
            players: self.players,
            entities: Some(self.dimensions.iter().map(DimensionCensus::entity_count).sum()),
            chunks: Some(self.dimensions.iter().map(DimensionCensus::chunk_count).sum()),
        }
    }
}

impl DimensionCensus {
    /// Entities, those that were not looked at included.
    pub fn entity_count(&self) -> u32 {
        let seen: u32 = self.entities.values().flat_map(BTreeMap::values).sum();
        seen.saturating_add(self.entities_left_out)
    }

    /// Loaded chunks, those that are not listed included.
    pub fn chunk_count(&self) -> u32 {
        u32::try_from(self.chunks.len())
            .unwrap_or(u32::MAX)
            .saturating_add(self.chunks_left_out)
    }

    /// Counts one entity of this kind at this place, in blocks. One that is nowhere is left out, and counted as such.
    pub fn add_entity(&mut self, kind: String, x: f32, z: f32) {
        if !x.is_finite() || !z.is_finite() {
            self.entities_left_out = self.entities_left_out.saturating_add(1);
            return;
        }
        // A chunk is 16 blocks wide, and begins at its smallest coordinate on both sides of 0.
        let chunk = |blocks: f32| (blocks.floor() as i32) >> 4;
        let kinds = self.entities.entry((chunk(x), chunk(z))).or_default();
        let count = kinds.entry(kind).or_default();
        *count = count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_belong_to_the_chunk_that_holds_their_block() {
        let mut census = DimensionCensus::default();
        for (x, z) in [
            (0.0, 15.99),
            (15.0, 0.0),
            (-0.01, 16.0),
            (-16.0, -16.01),
            (f32::NAN, 0.0),
        ] {
            census.add_entity("minecraft:cow".to_owned(), x, z);
        }
        census.chunks = vec![(0, 0)];
        census.chunks_left_out = 2;
        let places: Vec<(ChunkPosition, u32)> = census
            .entities
            .iter()
            .map(|(place, kinds)| (*place, kinds.values().sum()))
            .collect();
        assert_eq!(places, [((-1, -2), 1), ((-1, 1), 1), ((0, 0), 2)]);
        assert_eq!((census.entity_count(), census.entities_left_out), (5, 1));
        let world = World {
            players: 3,
            dimensions: vec![census],
        };
        let counts = WorldCounts {
            players: 3,
            entities: Some(5),
            chunks: Some(3),
        };
        assert_eq!(world.counts(), counts);
    }
}
