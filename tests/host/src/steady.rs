//! Native work of a fixed amount: each tick takes so many steps, however long they take.
//!
//! The level's other work ends when the clock says so, and so takes the same time whatever interrupts it. This one takes longer by what an interruption costs,
//! so it tells what a profiler costs a tick. A step follows a mob through memory that the caches nearest to the processor do not hold, some calls deep, as a server's own work does.

use std::hint::black_box;

/// Mobs: four megabytes with their places.
const MOBS: usize = 1 << 16;
/// Calls that a search goes down, each with a look at another mob.
const DEPTH: u32 = 6;
/// Rounds of arithmetic in each of these calls.
const ROUNDS: u64 = 12;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Mob {
    place: u64,
    health: u64,
}

/// The mobs, and how many steps each tick takes.
#[derive(Debug)]
pub struct Steady {
    mobs: Vec<Mob>,
    next: u64,
    pub steps: u64,
}

impl Steady {
    pub fn new() -> Steady {
        Steady {
            mobs: Vec::new(),
            next: 1,
            steps: 0,
        }
    }
}

#[inline(always)]
fn mixed(state: u64) -> u64 {
    state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
}

/// One tick's steps.
#[inline(never)]
#[unsafe(export_name = "_ZN10Simulation4tickEv")]
pub extern "C" fn tick(steady: &mut Steady) {
    if steady.mobs.is_empty() {
        steady.mobs = vec![Mob { place: 1, health: 20 }; MOBS];
    }
    for _ in 0..steady.steps {
        move_mob(steady);
    }
    black_box(&steady.next);
}

#[inline(never)]
#[unsafe(export_name = "_ZN10Simulation7moveMobEv")]
extern "C" fn move_mob(steady: &mut Steady) {
    steady.next = mixed(steady.next);
    let found = search(steady, steady.next, DEPTH);
    steady.next ^= found;
    black_box(&steady.next);
}

#[inline(never)]
#[unsafe(export_name = "_ZN10PathFinder6searchEmj")]
extern "C" fn search(steady: &mut Steady, from: u64, depth: u32) -> u64 {
    let index = (from >> 40) as usize % MOBS;
    let Some(mob) = steady.mobs.get_mut(index) else {
        return from;
    };
    let mut place = mob.place;
    for _ in 0..ROUNDS {
        place = black_box(mixed(place));
    }
    mob.place = place;
    mob.health = mob.health.wrapping_add(place >> 63);
    if depth == 0 {
        return place;
    }
    let found = search(steady, place, depth - 1);
    // The call is no jump: its frame stays.
    black_box(found) ^ place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_takes_its_steps_and_no_more() {
        let (mut two, mut twice) = (Steady::new(), Steady::new());
        two.steps = 2_000;
        tick(&mut two);
        twice.steps = 1_000;
        tick(&mut twice);
        tick(&mut twice);
        assert_eq!(two.next, twice.next, "the same steps end at the same place");
        twice.steps = 0;
        tick(&mut twice);
        assert_eq!(two.next, twice.next, "no steps, no work");
    }
}
