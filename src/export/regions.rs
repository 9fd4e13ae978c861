//! The loaded world as the viewer shows it: dimensions, and in each of them regions of loaded chunks that touch.

use std::collections::{BTreeMap, BTreeSet};

use super::pb;
use super::pb::world_statistics::{Chunk, Region, World as Dimension};
use super::shorten::bounded;
use crate::limits::NAME_CHARS;
use crate::model::{ChunkPosition, DimensionCensus, World};

/// The world's message. Each region lists its chunks with entities, those with most first; regions and chunks without any, and dimensions without
/// a region, are left out, as they would only make the page long. Entities that nobody looked at are in no total: they would belong to no region, and the page breaks where the sums do not come from somewhere.
pub fn world_statistics(world: &World) -> pb::WorldStatistics {
    let dimensions = world.dimensions.iter().map(dimension);
    let worlds: Vec<Dimension> = dimensions.filter(|dimension| !dimension.regions.is_empty()).collect();
    let mut kinds = BTreeMap::new();
    let all = world
        .dimensions
        .iter()
        .flat_map(|dimension| dimension.entities.values());
    for (kind, count) in all.flatten() {
        let sum: &mut i32 = kinds.entry(kind.clone()).or_default();
        *sum = sum.saturating_add(number(*count));
    }
    pb::WorldStatistics {
        total_entities: worlds
            .iter()
            .fold(0, |sum: i32, world| sum.saturating_add(world.total_entities)),
        entity_counts: kinds,
        worlds,
    }
}

fn dimension(census: &DimensionCensus) -> Dimension {
    let regions = regions(census);
    Dimension {
        name: bounded(&census.name, NAME_CHARS),
        total_entities: regions
            .iter()
            .fold(0, |sum: i32, region| sum.saturating_add(region.total_entities)),
        regions,
    }
}

fn regions(census: &DimensionCensus) -> Vec<Region> {
    // An entity can have moved into a chunk that was loaded after the chunks were listed.
    let mut left: BTreeSet<ChunkPosition> = census.chunks.iter().chain(census.entities.keys()).copied().collect();
    let mut regions = Vec::new();
    while let Some(first) = left.pop_first() {
        let mut chunks = Vec::new();
        let mut found = vec![first];
        while let Some(place) = found.pop() {
            if let Some(kinds) = census.entities.get(&place) {
                chunks.push(chunk(place, kinds));
            }
            found.extend(neighbours(place).filter(|neighbour| left.remove(neighbour)));
        }
        if chunks.is_empty() {
            continue;
        }
        chunks.sort_by_key(|chunk| (-i64::from(chunk.total_entities), chunk.x, chunk.z));
        regions.push(Region {
            total_entities: chunks
                .iter()
                .fold(0, |sum: i32, chunk| sum.saturating_add(chunk.total_entities)),
            chunks,
        });
    }
    // Stable: equal ones stay in the order of their first chunk.
    regions.sort_by_key(|region| -i64::from(region.total_entities));
    regions
}

/// The eight chunks around one.
fn neighbours((x, z): ChunkPosition) -> impl Iterator<Item = ChunkPosition> {
    (-1..=1).flat_map(move |dx| {
        (-1..=1)
            .filter(move |dz| (dx, *dz) != (0, 0))
            .filter_map(move |dz| Some((x.checked_add(dx)?, z.checked_add(dz)?)))
    })
}

fn chunk((x, z): ChunkPosition, kinds: &BTreeMap<String, u32>) -> Chunk {
    Chunk {
        x,
        z,
        total_entities: number(kinds.values().fold(0, |sum: u32, count| sum.saturating_add(*count))),
        entity_counts: kinds
            .iter()
            .map(|(kind, count)| (bounded(kind, NAME_CHARS), number(*count)))
            .collect(),
    }
}

fn number(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunks from a drawing: `.` is loaded, a digit has that many entities, a blank is not loaded. Rows are z, columns x.
    fn census(rows: &[&str]) -> DimensionCensus {
        let mut census = DimensionCensus {
            name: "Overworld".to_owned(),
            ..DimensionCensus::default()
        };
        for (z, row) in rows.iter().enumerate() {
            for (x, cell) in row.chars().enumerate().filter(|(_, cell)| *cell != ' ') {
                let place = (x as i32 - 3, z as i32 - 2);
                census.chunks.push(place);
                for _ in 0..cell.to_digit(10).unwrap_or(0) {
                    let (x, z) = (place.0 * 16 + 8, place.1 * 16 + 8);
                    census.add_entity("minecraft:cow".to_owned(), x as f32, z as f32);
                }
            }
        }
        census
    }

    /// Of each region its entities, and of each of its chunks where it is and how many it holds.
    type Shape = Vec<(i32, Vec<(i32, i32, i32)>)>;

    fn shape(census: DimensionCensus) -> Shape {
        let world = World {
            players: 0,
            dimensions: vec![census],
        };
        let encoded = world_statistics(&world);
        let regions = &encoded.worlds[0].regions;
        assert_eq!(
            encoded.total_entities,
            regions.iter().map(|region| region.total_entities).sum::<i32>()
        );
        assert_eq!(encoded.entity_counts.values().sum::<i32>(), encoded.total_entities);
        regions
            .iter()
            .map(|region| {
                let chunks = region.chunks.iter();
                (
                    region.total_entities,
                    chunks.map(|chunk| (chunk.x, chunk.z, chunk.total_entities)).collect(),
                )
            })
            .collect()
    }

    #[test]
    fn chunks_that_touch_even_by_a_corner_are_one_region() {
        let drawn = census(&[
            "1.  ..", //
            "  2 ..", "      ", "4   .3",
        ]);
        assert_eq!(
            shape(drawn),
            [
                (4, vec![(-3, 1, 4)]),
                (3, vec![(-1, -1, 2), (-3, -2, 1)]),
                (3, vec![(2, 1, 3)]),
            ]
        );
    }

    #[test]
    fn a_loaded_chunk_without_entities_joins_its_neighbours() {
        assert_eq!(shape(census(&["1.1"])).len(), 1);
        assert_eq!(shape(census(&["1 1"])).len(), 2);
    }

    #[test]
    fn an_entity_in_a_chunk_that_was_not_listed_has_a_region() {
        let mut strayed = census(&[".."]);
        strayed.add_entity("minecraft:bat".to_owned(), 900.0, -900.0);
        assert_eq!(shape(strayed), [(1, vec![(56, -57, 1)])]);
    }

    #[test]
    fn the_edge_of_the_world_has_fewer_neighbours() {
        assert_eq!(neighbours((i32::MAX, i32::MIN)).count(), 3);
    }

    #[test]
    fn an_empty_world_has_no_entities() {
        let encoded = world_statistics(&World {
            players: 1,
            dimensions: vec![census(&[".."])],
        });
        assert_eq!((encoded.total_entities, encoded.worlds.len()), (0, 0));
    }
}
