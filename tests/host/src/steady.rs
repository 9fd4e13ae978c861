//! Native work of a fixed amount: each tick takes so many steps, however long they take.
//!
//! The level's other work ends when the clock says so, and so takes the same time whatever interrupts it. This one takes longer by what an interruption costs,
//! so it tells what a profiler costs a tick. Besides, the clock is read after each step: one that takes several times as long as others was interrupted, and how much longer
//! it took than usual is what the interruption cost. Unlike a tick's length that does not change with the processor's speed, which may drift by more than a profiler costs. A step follows a mob through memory that the caches nearest to the processor do not hold, some calls deep, as a server's own work does.

use std::hint::black_box;

use crate::level::now;

/// Mobs: four megabytes with their places.
const MOBS: usize = 1 << 16;
/// Calls that a search goes down, each with a look at another mob.
const DEPTH: u32 = 6;
/// Rounds of arithmetic in each of these calls.
const ROUNDS: u64 = 12;
/// A step takes some 500 ns, a signal with an empty handler 2,000 more.
const INTERRUPTED_NANOS: u64 = 2_000;

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
    lost: Lost,
}

/// Steps since this was asked last.
#[derive(Debug, Default)]
struct Lost {
    whole: u64,
    whole_nanos: u64,
    interrupted: u64,
    interrupted_nanos: u64,
}

impl Lost {
    fn add(&mut self, nanos: u64) {
        if nanos < INTERRUPTED_NANOS {
            self.whole += 1;
            self.whole_nanos += nanos;
        } else {
            self.interrupted += 1;
            self.interrupted_nanos += nanos;
        }
    }

    /// Percent of the steps' time that interruptions took.
    fn percent(&self) -> f64 {
        let all = (self.whole_nanos + self.interrupted_nanos) as f64;
        let usual = self.whole_nanos as f64 / self.whole.max(1) as f64;
        100.0 * (self.interrupted_nanos as f64 - usual * self.interrupted as f64) / all.max(1.0)
    }
}

impl Steady {
    /// What interruptions took since this was asked last.
    pub fn take_lost(&mut self) -> String {
        let lost = std::mem::take(&mut self.lost);
        format!("percent={:.4} interruptions={}", lost.percent(), lost.interrupted)
    }

    pub fn new() -> Steady {
        Steady {
            mobs: Vec::new(),
            next: 1,
            steps: 0,
            lost: Lost::default(),
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
    let mut before = now();
    for _ in 0..steady.steps {
        move_mob(steady);
        let after = now();
        steady.lost.add(after - before);
        before = after;
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

    #[test]
    fn what_an_interruption_took_is_what_the_step_took_longer_than_others() {
        let mut lost = Lost::default();
        for _ in 0..9 {
            lost.add(500);
        }
        assert_eq!(lost.percent(), 0.0);
        lost.add(5_500);
        assert_eq!(lost.percent(), 50.0, "5,000 of 10,000");
    }
}
