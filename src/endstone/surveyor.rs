//! Looks at the loaded world, a part of it in each tick.
//!
//! The host makes a list of all chunks or all entities of a dimension in one call, which cannot be divided; there is at most one such call in a tick. Chunks are
//! read at once, since that takes less than the host took to make them. Entities are asked for their kind and place, which takes longer, so each tick takes
//! one share of them. Nothing of the host is kept from one tick to the next, because entities die: a share is those whose number, scrambled, falls into it,
//! so that every entity that stays loaded is looked at exactly once.
//!
//! A host call may throw, which passes through here and ends this tick's task. The look that was on its way is then given up, and no other is begun until the
//! plugin is enabled again: it would throw again.

use super::abi::{ActorList, Dimension, Level, Server};
use super::pure::pure;
use crate::limits;
use crate::model::{ChunkPosition, DimensionCensus, MonotonicNanos, World, WorldCounts, clean_text};
use crate::session::{Survey, WorldDesk};

/// The looks at the world of one plugin.
#[derive(Debug, Default)]
pub(super) struct Surveyor {
    progress: Option<Progress>,
    /// Set while the host is called: found set in the next tick, the host has thrown.
    is_asking: bool,
    is_broken: bool,
}

#[derive(Debug)]
struct Progress {
    survey: Survey,
    world: World,
    /// Entities as the level counts them.
    entities: usize,
    /// The dimension that is looked at.
    dimension: usize,
    part: Part,
}

#[derive(Clone, Copy, Debug)]
enum Part {
    Chunks,
    Entities {
        share: u64,
        /// 0 until the first share has been asked for.
        shares: u64,
    },
}

/// What one tick found.
enum Found {
    Nothing,
    Began(Option<Progress>, WorldCounts),
    Chunks {
        places: Vec<ChunkPosition>,
        all: usize,
    },
    Entities {
        seen: Vec<(String, f32, f32)>,
        shares: u64,
        left_out: usize,
    },
    DimensionGone,
}

impl Surveyor {
    /// Does this tick's part. On the server thread.
    pub(super) fn tick(&mut self, server: Server<'_>, now: MonotonicNanos, desk: &WorldDesk) {
        if std::mem::take(&mut self.is_asking) {
            self.is_broken = true;
            self.progress = None;
        }
        let survey = match &self.progress {
            Some(progress) => progress.survey,
            None => match desk.wanted(now) {
                Some(survey) => survey,
                None => return,
            },
        };
        if self.is_broken {
            match survey {
                Survey::Whole => desk.deliver(None),
                Survey::Counts => desk.count(now, WorldCounts::default()),
            }
            return;
        }
        // Gather.
        self.is_asking = true;
        let found = match &self.progress {
            None => begin(server, survey),
            Some(progress) => look(server, progress),
        };
        self.is_asking = false;
        // Compute, and deliver to the desk.
        let progress = self.progress.take();
        self.progress = pure(|| go_on(progress, found, survey, now, desk)).unwrap_or_default();
    }
}

/// Which share an entity falls into. Its number is scrambled: numbers may be given in steps.
fn share_of(id: u64, shares: u64) -> u64 {
    // The multiplier of Fibonacci hashing, 2^64 by the golden ratio; the upper half of the product is mixed best.
    (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % shares.max(1)
}

fn begin(server: Server<'_>, survey: Survey) -> Found {
    let players = count(server.online_players().len());
    let Some(level) = server.level() else {
        return Found::Began(
            None,
            WorldCounts {
                players,
                ..WorldCounts::default()
            },
        );
    };
    let entities = level.actor_count();
    let dimensions = dimensions(level).into_iter().map(|(name, _)| DimensionCensus {
        name,
        ..DimensionCensus::default()
    });
    Found::Began(
        Some(Progress {
            survey,
            world: World {
                players,
                dimensions: dimensions.collect(),
            },
            entities,
            dimension: 0,
            part: Part::Chunks,
        }),
        WorldCounts::default(),
    )
}

fn dimensions(level: Level<'_>) -> Vec<(String, Dimension<'_>)> {
    let dimensions = level.dimensions().into_iter().take(limits::SURVEYED_DIMENSIONS);
    dimensions.map(|dimension| (dimension.name(), dimension)).collect()
}

fn look(server: Server<'_>, progress: &Progress) -> Found {
    let Some(level) = server.level() else {
        return Found::DimensionGone;
    };
    let Some(wanted) = progress.world.dimensions.get(progress.dimension) else {
        return Found::Nothing;
    };
    let dimensions = dimensions(level);
    let Some((_, dimension)) = dimensions.into_iter().find(|(name, _)| *name == wanted.name) else {
        return Found::DimensionGone;
    };
    match progress.part {
        Part::Chunks => {
            let chunks = dimension.loaded_chunks();
            let places = match progress.survey {
                Survey::Counts => Vec::new(),
                Survey::Whole => chunks
                    .as_slice()
                    .iter()
                    .take(limits::SURVEYED_CHUNKS)
                    .filter_map(|chunk| chunk.position())
                    .collect(),
            };
            Found::Chunks {
                places,
                all: chunks.as_slice().len(),
            }
        }
        Part::Entities { share, shares } => entities(&dimension.actors(), share, shares),
    }
}

fn entities(actors: &ActorList<'_>, share: u64, shares: u64) -> Found {
    let all = actors.len();
    let shares = match shares {
        0 => all.div_ceil(limits::SURVEYED_ENTITIES_PER_TICK).max(1) as u64,
        known => known,
    };
    let mut seen = Vec::new();
    let mut left_out = 0;
    let is_beyond = share >= (limits::SURVEYED_ENTITIES / limits::SURVEYED_ENTITIES_PER_TICK) as u64;
    for actor in actors.iter() {
        let own = share_of(actor.runtime_id(), shares);
        if is_beyond {
            // The last look only counts those of the shares that nobody looks at.
            left_out += usize::from(own >= share);
            continue;
        }
        if own != share {
            continue;
        }
        // Shares are never exactly even.
        if seen.len() >= 2 * limits::SURVEYED_ENTITIES_PER_TICK {
            left_out += 1;
            continue;
        }
        let place = actor.location();
        seen.push((actor.kind(), place.x, place.z));
    }
    Found::Entities {
        seen,
        shares: if is_beyond { share + 1 } else { shares },
        left_out,
    }
}

/// Takes in what was found; what is left to do.
fn go_on(
    progress: Option<Progress>,
    found: Found,
    survey: Survey,
    now: MonotonicNanos,
    desk: &WorldDesk,
) -> Option<Progress> {
    let mut progress = match (progress, found) {
        (_, Found::Began(Some(progress), _)) => progress,
        (_, Found::Began(None, counts)) => {
            match survey {
                Survey::Whole => desk.deliver(None),
                Survey::Counts => desk.count(now, counts),
            }
            return None;
        }
        (None, _) => return None,
        (Some(progress), found) => take_in(progress, found),
    };
    // A level without dimensions is complete at once.
    if progress.dimension < progress.world.dimensions.len() {
        return Some(progress);
    }
    match survey {
        Survey::Whole => {
            for dimension in &mut progress.world.dimensions {
                dimension.name = clean_text(&dimension.name, limits::NAME_CHARS);
            }
            desk.deliver(Some(progress.world));
        }
        Survey::Counts => desk.count(
            now,
            WorldCounts {
                entities: Some(count(progress.entities)),
                ..progress.world.counts()
            },
        ),
    }
    None
}

fn take_in(mut progress: Progress, found: Found) -> Progress {
    let Some(census) = progress.world.dimensions.get_mut(progress.dimension) else {
        return progress;
    };
    match found {
        Found::Chunks { places, all } => {
            census.chunks_left_out = count(all.saturating_sub(places.len()));
            census.chunks = places;
            match progress.survey {
                Survey::Whole => progress.part = Part::Entities { share: 0, shares: 0 },
                Survey::Counts => progress.dimension += 1,
            }
        }
        Found::Entities { seen, shares, left_out } => {
            for (kind, x, z) in seen {
                census.add_entity(clean_text(&kind, limits::NAME_CHARS), x, z);
            }
            census.entities_left_out = census.entities_left_out.saturating_add(count(left_out));
            let share = match progress.part {
                Part::Entities { share, .. } => share + 1,
                Part::Chunks => 1,
            };
            if share < shares {
                progress.part = Part::Entities { share, shares };
            } else {
                progress.part = Part::Chunks;
                progress.dimension += 1;
            }
        }
        Found::DimensionGone => {
            progress.part = Part::Chunks;
            progress.dimension += 1;
        }
        Found::Nothing | Found::Began(..) => progress.dimension += 1,
    }
    progress
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_threw_is_not_asked_again() {
        let mut surveyor = Surveyor {
            is_asking: true,
            ..Surveyor::default()
        };
        // SAFETY: no object, and nothing of it is used, which is what this shows: whoever calls through it crashes.
        let server = unsafe { Server::borrow(std::ptr::dangling_mut()) }.unwrap();
        let desk = WorldDesk::default();
        for _ in 0..2 {
            desk.ask();
            assert_eq!(desk.wanted(MonotonicNanos(0)), Some(Survey::Whole));
            surveyor.tick(server, MonotonicNanos(0), &desk);
            assert_eq!(desk.wanted(MonotonicNanos(0)), None, "whoever waits has an answer");
        }
    }

    #[test]
    fn a_part_of_the_world_that_goes_while_it_is_looked_at_is_passed_over() {
        let named = |name: &str| DimensionCensus {
            name: name.to_owned(),
            ..DimensionCensus::default()
        };
        let world = World {
            players: 1,
            dimensions: vec![named("Overworld"), named("Nether")],
        };
        let desk = WorldDesk::default();
        desk.ask();
        let mut progress = Some(Progress {
            survey: Survey::Whole,
            world,
            entities: 1,
            dimension: 0,
            part: Part::Chunks,
        });
        let seen = |kind: &str| Found::Entities {
            seen: vec![(kind.to_owned(), 1.0, 1.0)],
            shares: 2,
            left_out: 3,
        };
        let places = vec![(0, 0)];
        for found in [
            Found::Chunks { places, all: 7 },
            seen("minecraft:cow"),
            seen("minecraft:pig"),
            Found::DimensionGone,
        ] {
            assert!(progress.is_some());
            progress = go_on(progress, found, Survey::Whole, MonotonicNanos(0), &desk);
        }
        assert!(progress.is_none());
        assert_eq!(desk.wanted(MonotonicNanos(0)), None, "it was delivered");
    }

    #[test]
    fn shares_are_even_whatever_numbers_are_given() {
        for step in [1, 2, 64, 4_294_967_296] {
            let shares = 10;
            let mut sizes = [0_u32; 10];
            for number in 0..10_000_u64 {
                sizes[share_of(number.wrapping_mul(step), shares) as usize] += 1;
            }
            assert!(
                sizes.iter().all(|size| (700..=1_300).contains(size)),
                "{step}: {sizes:?}"
            );
        }
        assert_eq!(share_of(u64::MAX, 0), 0);
    }
}
