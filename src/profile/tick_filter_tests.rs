use super::*;
use crate::model::{CodeId, PythonPart, StackEnd, Tid};

const MS: u64 = 1_000_000;
const SERVER: ThreadKey = ThreadKey {
    tid: Tid::new(1),
    serial: 0,
};
const OTHER: ThreadKey = ThreadKey {
    tid: Tid::new(2),
    serial: 1,
};

fn at(millis: f64) -> MonotonicNanos {
    MonotonicNanos((millis * 1e6) as u64)
}

fn function(number: u32) -> [FrameKey; 2] {
    [FrameKey::Python(CodeId::new(1)), FrameKey::Python(CodeId::new(number))]
}

fn sample(thread: ThreadKey, taken_at: MonotonicNanos, weight_nanos: u64) -> Sample<'static> {
    Sample {
        thread,
        taken_at,
        weight_nanos,
        held_nanos: 0,
        native: &[],
        omitted: 0,
        end: StackEnd::Root,
        python: PythonPart::None,
        repeated: false,
    }
}

/// What was booked, by thread and function.
#[derive(Default)]
struct Booked(HashMap<(ThreadKey, u32), u64>);

impl Booked {
    fn book(&mut self) -> impl FnMut(ThreadKey, &[FrameKey], MonotonicNanos, u64) {
        |thread, path, _, nanos| {
            let Some(FrameKey::Python(code)) = path.last() else {
                panic!("no leaf")
            };
            *self.0.entry((thread, code.get())).or_default() += nanos;
        }
    }

    fn millis(&self, thread: ThreadKey, function: u32) -> f64 {
        self.0.get(&(thread, function)).copied().unwrap_or(0) as f64 / 1e6
    }

    fn total(&self, thread: ThreadKey) -> f64 {
        let of_thread = self.0.iter().filter(|((key, _), _)| *key == thread);
        of_thread.map(|(_, nanos)| *nanos).sum::<u64>() as f64 / 1e6
    }
}

/// A tick of which the end is known to the nanosecond.
fn exactly(begin: f64, end: f64) -> TickEnd {
    TickEnd {
        after: at(end),
        before: at(end),
        inside: Some(at(begin)),
        nanos: at(end).since(at(begin)),
    }
}

#[test]
fn a_slow_tick_has_its_own_time_and_nothing_of_its_neighbours() {
    let mut slow = TickFilter::new(60 * MS, at(0.0));
    let mut booked = Booked::default();
    // Ticks without a pause: 5 ms of function 5, 70 ms of function 70, 5 ms of function 5. Samples every 4 ms.
    for step in 1..=20 {
        let time = f64::from(step) * 4.0;
        let runs = if (5.0..75.0).contains(&time) { 70 } else { 5 };
        slow.sample(&sample(SERVER, at(time), 4 * MS), &function(runs), &mut booked.book());
    }
    slow.tick(exactly(0.0, 5.0), &mut booked.book());
    assert_eq!(booked.total(SERVER), 0.0);
    slow.tick(exactly(5.0, 75.0), &mut booked.book());
    slow.tick(exactly(75.0, 80.0), &mut booked.book());
    slow.finish(&mut booked.book());
    assert_eq!((booked.millis(SERVER, 70), booked.millis(SERVER, 5)), (70.0, 0.0));
    let figures = slow.figures();
    assert_eq!((figures.seen, figures.kept, figures.longest_nanos), (3, 1, 70 * MS));
    // 8, 12, .. 72; of the others 4, 76, and 80, whose tick is over.
    assert_eq!((figures.samples_kept, figures.samples_dropped), (17, 3));
    assert_eq!((figures.samples_uncertain, figures.samples_unfinished), (0, 1));
}

#[test]
fn inside_a_tick_time_is_shared_as_ever() {
    let mut slow = TickFilter::new(0, at(0.0));
    let mut booked = Booked::default();
    for (time, runs) in [(2.0, 1), (6.0, 2), (8.0, 3)] {
        let weight = if time == 8.0 { 2 } else { 4 } * MS;
        slow.sample(&sample(SERVER, at(time), weight), &function(runs), &mut booked.book());
    }
    slow.sample(
        &Sample {
            held_nanos: 3 * MS,
            ..sample(SERVER, at(13.0), 5 * MS)
        },
        &function(4),
        &mut booked.book(),
    );
    slow.tick(exactly(1.0, 20.0), &mut booked.book());
    slow.sample(&sample(SERVER, at(24.0), 11 * MS), &function(5), &mut booked.book());
    slow.finish(&mut booked.book());
    let millis = [1, 2, 3, 4, 5].map(|runs| booked.millis(SERVER, runs));
    // The first from the tick's beginning; 4 was asked at 10 already; it has the tick's rest, too.
    assert_eq!(millis, [1.0 + 2.0, 2.0 + 1.0, 1.0 + 1.0, 4.0 + 7.0, 0.0]);
    assert_eq!(booked.total(SERVER), 19.0);
}

#[test]
fn a_tick_is_over_the_threshold_only_when_it_takes_longer() {
    for (millis, kept) in [(49.0, 0), (50.0, 0), (50.001, 1)] {
        let mut slow = TickFilter::new(50 * MS, at(0.0));
        slow.tick(exactly(10.0, 10.0 + millis), &mut |_, _, _, _| {});
        assert_eq!((slow.figures().seen, slow.figures().kept), (1, kept), "{millis}");
    }
}

#[test]
fn a_tick_that_had_begun_before_the_session_does_not_count() {
    let mut slow = TickFilter::new(10 * MS, at(30.0));
    let mut booked = Booked::default();
    slow.sample(&sample(SERVER, at(40.0), 4 * MS), &function(1), &mut booked.book());
    slow.tick(exactly(20.0, 50.0), &mut booked.book());
    assert_eq!((slow.figures().seen, booked.total(SERVER)), (0, 0.0));
}

#[test]
fn samples_between_the_last_sight_of_a_tick_and_the_first_without_it_are_dropped_and_counted() {
    let mut slow = TickFilter::new(10 * MS, at(0.0));
    let mut booked = Booked::default();
    for (time, runs) in [(50.0, 1), (58.5, 2), (70.0, 3)] {
        slow.sample(&sample(SERVER, at(time), 4 * MS), &function(runs), &mut booked.book());
    }
    // It took 20 ms and was over at 60 at the latest.
    slow.tick(
        TickEnd {
            after: at(57.0),
            before: at(60.0),
            inside: Some(at(41.0)),
            nanos: 20 * MS,
        },
        &mut booked.book(),
    );
    slow.finish(&mut booked.book());
    assert_eq!(slow.figures().samples_uncertain, 1);
    assert_eq!((booked.millis(SERVER, 2), booked.millis(SERVER, 3)), (0.0, 0.0));
    assert!(booked.millis(SERVER, 1) > 0.0);
}

#[test]
fn the_ticks_own_task_bounds_its_beginning_and_its_end() {
    let mut slow = TickFilter::new(10 * MS, at(0.0));
    let mut booked = Booked::default();
    // Waiting until 40, then work until 60; the look that saw the end came as late as 75.
    for (time, runs) in [(38.0, 1), (44.0, 2), (56.0, 2), (68.0, 1)] {
        slow.sample(&sample(SERVER, at(time), 12 * MS), &function(runs), &mut booked.book());
    }
    let seen = TickEnd {
        after: at(57.0),
        before: at(75.0),
        inside: Some(at(40.5)),
        nanos: 20 * MS,
    };
    slow.tick(seen, &mut booked.book());
    slow.finish(&mut booked.book());
    assert_eq!(booked.millis(SERVER, 1), 0.0);
    // From 40.5, when it began at the latest, to 60.5.
    assert_eq!(booked.millis(SERVER, 2), 3.5 + 12.0 + 4.5);
}

#[test]
fn slow_ticks_without_a_pause_are_known_by_their_tasks_alone() {
    let mut slow = TickFilter::new(60 * MS, at(0.0));
    let mut booked = Booked::default();
    // Nobody looks in between, as in a recovered session: each tick's task is known, and that it was over when the next one's ran.
    for step in 1..=90 {
        let taken_at = at(f64::from(step) * 4.0);
        slow.sample(&sample(SERVER, taken_at, 4 * MS), &function(1), &mut booked.book());
    }
    for (begin, end) in [(0.0, 50.0), (50.0, 150.0), (150.0, 250.0), (250.0, 350.0)] {
        let tick = TickEnd {
            after: at(begin),
            ..exactly(begin, end)
        };
        slow.tick(tick, &mut booked.book());
    }
    slow.finish(&mut booked.book());
    assert_eq!(slow.figures().kept, 3);
    assert_eq!(slow.figures().samples_uncertain, 0, "each follows from the one before");
    assert_eq!(booked.millis(SERVER, 1), 300.0);
}

#[test]
fn a_sample_that_comes_later_than_its_ticks_end_is_known_still_belongs_to_it() {
    let mut slow = TickFilter::new(10 * MS, at(0.0));
    let mut booked = Booked::default();
    slow.sample(&sample(SERVER, at(12.0), 4 * MS), &function(1), &mut booked.book());
    slow.tick(exactly(10.0, 30.0), &mut booked.book());
    // Asked at 26, got a processor at 33 only.
    let late = Sample {
        held_nanos: 7 * MS,
        ..sample(SERVER, at(33.0), 21 * MS)
    };
    slow.sample(&late, &function(2), &mut booked.book());
    assert_eq!((booked.millis(SERVER, 1), booked.millis(SERVER, 2)), (2.0 + 5.5, 12.5));
    assert_eq!(slow.figures().samples_kept, 2);
}

#[test]
fn all_threads_are_kept_for_the_span_of_a_slow_tick_also_one_that_slept_through_it() {
    let mut slow = TickFilter::new(60 * MS, at(0.0));
    let mut booked = Booked::default();
    slow.sample(&sample(OTHER, at(90.0), 4 * MS), &function(9), &mut booked.book());
    for step in 1..=50 {
        slow.sample(
            &sample(SERVER, at(100.0 + 4.0 * f64::from(step)), 4 * MS),
            &function(1),
            &mut booked.book(),
        );
    }
    slow.tick(exactly(110.0, 180.0), &mut booked.book());
    slow.tick(exactly(200.0, 270.0), &mut booked.book());
    // It was looked at again only now, and had not moved.
    let slept = Sample {
        repeated: true,
        ..sample(OTHER, at(290.0), 200 * MS)
    };
    slow.sample(&slept, &function(9), &mut booked.book());
    slow.tick(exactly(300.0, 301.0), &mut booked.book());
    assert_eq!(booked.total(SERVER), 140.0);
    assert_eq!(booked.millis(OTHER, 9), 140.0);
}

#[test]
fn what_finds_no_room_is_counted_and_memory_is_bounded() {
    let mut slow = TickFilter::new(60 * MS, at(0.0));
    let mut booked = Booked::default();
    let count = limits::WAITING_SAMPLES + 10;
    for number in 0..count {
        slow.sample(
            &sample(SERVER, MonotonicNanos(number as u64 * 1_000), 1_000),
            &function(1),
            &mut booked.book(),
        );
    }
    assert_eq!(slow.figures().samples_without_room, 10);
    let end = count as f64 / 1e3;
    slow.tick(exactly(0.0, end), &mut booked.book());
    assert_eq!(slow.figures().samples_kept, limits::WAITING_SAMPLES as u64);
    assert!(
        (booked.total(SERVER) - limits::WAITING_SAMPLES as f64 / 1e3).abs() < 0.01,
        "{}",
        booked.total(SERVER)
    );

    // Large stacks fill the room sooner.
    let mut slow = TickFilter::new(60 * MS, at(0.0));
    for number in 0..10_000_u32 {
        let path: Vec<FrameKey> = (0..500)
            .map(|depth| FrameKey::Python(CodeId::new(number * 500 + depth + 1)))
            .collect();
        slow.sample(
            &sample(SERVER, MonotonicNanos(u64::from(number)), 1),
            &path,
            &mut booked.book(),
        );
    }
    assert!(slow.figures().samples_without_room > 5_000);
}

#[test]
fn random_schedules_keep_exactly_the_slow_ticks_and_their_time() {
    let mut random = 7_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    let mut slow = TickFilter::new(60 * MS, at(0.0));
    let mut booked = Booked::default();
    // begin, end, function: ticks with or without a pause between them.
    let mut ticks = Vec::new();
    let mut now = MS;
    for _ in 0..2_000 {
        let kind = next(4);
        let length = [5, 30, 70, 200][kind as usize] * MS + next(2 * MS);
        ticks.push((now, now + length, kind as u32 + 10));
        now += length + [0, 0, 20 * MS][next(3) as usize] + next(300_000);
    }
    let (mut time, mut taken, mut tick) = (0, 0, 0);
    while tick < ticks.len() {
        let looked = time;
        time += MS + next(6 * MS);
        // Ends between the two rounds are told by the look of the second, or by the next tick's task.
        let ended = |tick: usize| ticks.get(tick).is_some_and(|(_, end, _)| *end <= time);
        let runs = ticks[tick..]
            .iter()
            .find(|(_, end, _)| *end > time)
            .filter(|(begin, ..)| *begin <= time);
        slow.sample(
            &sample(SERVER, MonotonicNanos(time + 10), time - taken),
            &function(runs.map_or(1, |(_, _, function)| *function)),
            &mut booked.book(),
        );
        taken = time;
        while ended(tick) {
            let (begin, end, _) = ticks[tick];
            let next_task = ticks.get(tick + 1).map_or(u64::MAX, |(begin, ..)| begin + 50_000);
            slow.tick(
                TickEnd {
                    after: MonotonicNanos(looked.max(begin + 50_000).min(end)),
                    before: MonotonicNanos(time.min(next_task)),
                    inside: Some(MonotonicNanos(begin + 50_000)),
                    nanos: end - begin,
                },
                &mut booked.book(),
            );
            tick += 1;
        }
    }
    slow.finish(&mut booked.book());
    let is_slow = |(begin, end, _): &&(u64, u64, u32)| end - begin > 60 * MS;
    let figures = slow.figures();
    assert_eq!(
        (figures.seen, figures.kept),
        (2_000, ticks.iter().filter(is_slow).count() as u64)
    );
    assert_eq!(
        [1, 10, 11].map(|fast| booked.millis(SERVER, fast)),
        [0.0; 3],
        "what is not slow is not there"
    );
    for function in [12, 13] {
        let of_function = ticks.iter().filter(is_slow).filter(|(_, _, runs)| *runs == function);
        let truth = of_function.map(|(begin, end, _)| end - begin).sum::<u64>() as f64 / 1e6;
        let found = booked.millis(SERVER, function);
        assert!((found / truth - 1.0).abs() < 0.002, "{found} of {truth} ms");
    }
}
