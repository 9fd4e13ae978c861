//! Every figure against a calculation of its own, which goes the slow and obvious way.

use proptest::prelude::*;

use super::Service;
use super::distribution::distribution;
use super::reading::{Counters, MachineTime, Reading};
use super::system::SystemHistory;
use crate::limits;
use crate::model::{Distribution, MemoryUse, MonotonicNanos, PlayerPing, Tid};

const TID: Tid = Tid::new(7);
const START: u64 = 5_000_000_000;
const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// When tasks ran, and how long each tick took.
struct Series {
    at: Vec<u64>,
    millis: Vec<f32>,
}

impl Series {
    /// Of the time from one task to the next and what a tick took of it, in milliseconds and parts of 256.
    fn new(ticks: &[(u64, u8)]) -> Self {
        let mut series = Series {
            at: vec![START],
            millis: Vec::new(),
        };
        for (gap, part) in ticks {
            series.at.push(series.at.last().unwrap() + gap * MILLI);
            series.millis.push(*gap as f32 * f32::from(*part) / 256.0);
        }
        series
    }

    fn feed(&self, service: &Service) {
        // What a server says before its first tick is never shown.
        let lengths = [1e9_f32].into_iter().chain(self.millis.iter().copied());
        for (at, millis) in self.at.iter().zip(lengths) {
            service.tick(MonotonicNanos(*at), TID, millis);
        }
    }

    /// Ticks per second as the sum of the parts of all gaps that lie in the time.
    fn tps(&self, from: u64, to: u64, now: u64) -> Option<f64> {
        let mut ticks = 0.0;
        let mut nanos = 0;
        let mut add = |begin: u64, end: u64, gap: u64| {
            let inside = end.min(to).saturating_sub(begin.max(from));
            ticks += inside as f64 / gap as f64;
            nanos += inside;
        };
        for pair in self.at.windows(2) {
            add(pair[0], pair[1], pair[1] - pair[0]);
        }
        if let [.., before, last] = self.at[..] {
            // The tick to come counts as fast as the last one until that time is over, and then as if it came now.
            add(last, now, (last - before).max(now - last));
        }
        (nanos > 0).then(|| ticks / (nanos as f64 / 1e9))
    }

    /// The lengths of the ticks that ended after `from`.
    fn lengths(&self, from: u64) -> Vec<f64> {
        let ended = self.at.iter().skip(1).zip(&self.millis);
        ended
            .filter(|(end, _)| **end > from)
            .map(|(_, millis)| f64::from(*millis))
            .collect()
    }
}

fn close(found: Option<f64>, expected: Option<f64>) -> bool {
    match (found, expected) {
        (Some(found), Some(expected)) => (found - expected).abs() <= 1e-6 * expected.abs().max(1.0),
        (None, None) => true,
        _ => false,
    }
}

proptest! {
    #[test]
    fn every_figure_of_ticks_is_what_its_definition_says(
        ticks in prop::collection::vec((1_u64..2_000, 0_u8..=255), 0..900),
        since_last in 0_u64..20_000,
    ) {
        let series = Series::new(&ticks);
        let service = Service::new();
        series.feed(&service);
        let now = series.at.last().unwrap() + since_last * MILLI;
        let found = service.snapshot_at(MonotonicNanos(now));
        let ago = |seconds: u64| now.saturating_sub(seconds * SECOND);

        let tps = found.tps;
        for (seconds, figure) in [
            (5, tps.last_5s),
            (10, tps.last_10s),
            (60, tps.last_1m),
            (300, tps.last_5m),
            (900, tps.last_15m),
        ] {
            let expected = series.tps(ago(seconds), now, now);
            prop_assert!(close(figure, expected), "{seconds} s: {figure:?}, not {expected:?}");
        }
        let mspt = found.mspt;
        for (seconds, figure) in [(10, mspt.last_10s), (60, mspt.last_1m), (300, mspt.last_5m)] {
            prop_assert_eq!(figure, distribution(series.lengths(ago(seconds))), "{} s", seconds);
        }
        let known = (now - START) as f64 / 1e9;
        prop_assert!(close(Some(tps.known_seconds), Some(known.min(900.0))));
        prop_assert!(close(Some(mspt.known_seconds), Some(known.min(300.0))));
    }

    #[test]
    fn windows_are_what_their_definition_says_and_share_out_all_ticks(
        ticks in prop::collection::vec((1_u64..2_000, 0_u8..=255), 2..600),
        length in 500_u64..60_000,
    ) {
        let series = Series::new(&ticks);
        let service = Service::new();
        series.feed(&service);
        let now = *series.at.last().unwrap();
        let mut all = 0;
        let mut from = START;
        while from <= now {
            let to = from + length * MILLI;
            let found = service.window(MonotonicNanos(from), MonotonicNanos(to), MonotonicNanos(now));
            let inside = |index: &usize| series.at[*index] >= from && series.at[*index] < to;
            let began: Vec<usize> = (0..series.at.len()).filter(inside).collect();
            prop_assert_eq!(found.ticks as usize, began.len());
            let lengths: Vec<f64> = began
                .iter()
                .filter_map(|index| series.millis.get(*index))
                .map(|millis| f64::from(*millis))
                .collect();
            let spread = distribution(lengths);
            prop_assert_eq!(found.mspt_median, spread.map(|spread| spread.median));
            prop_assert_eq!(found.mspt_max, spread.map(|spread| spread.max));
            let expected = series.tps(from, to, now);
            prop_assert!(close(found.tps, expected), "{:?}, not {expected:?}", found.tps);
            all += began.len();
            from = to;
        }
        prop_assert_eq!(all, series.at.len());
    }
}

/// A tick every 50 ms.
fn steady(service: &Service, ticks: u64) -> u64 {
    for number in 0..ticks {
        service.tick(MonotonicNanos(START + number * 50 * MILLI), TID, 12.5);
    }
    START + (ticks - 1) * 50 * MILLI
}

#[test]
fn a_steady_server_has_the_same_figure_at_every_moment() {
    let service = Service::new();
    let last = steady(&service, 400);
    for part in 0..50 {
        let found = service.snapshot_at(MonotonicNanos(last + part * MILLI)).tps;
        for tps in [found.last_5s, found.last_10s, found.last_15m] {
            assert!(close(tps, Some(20.0)), "{part} ms after a tick: {found:?}");
        }
    }
}

#[test]
fn a_server_that_hangs_sinks_from_moment_to_moment() {
    let service = Service::new();
    let last = steady(&service, 400);
    let tps = |seconds: u64| service.snapshot_at(MonotonicNanos(last + seconds * SECOND)).tps;
    // Two seconds of the five: 60 ticks, and the one that is late.
    assert!(close(tps(2).last_5s, Some(61.0 / 5.0)), "{:?}", tps(2));
    // All five in the middle of a tick that will take ten at least.
    assert!(close(tps(10).last_5s, Some(0.1)), "{:?}", tps(10));
}

#[test]
fn before_the_second_tick_there_is_nothing() {
    let service = Service::new();
    let nothing = service.snapshot_at(MonotonicNanos(START));
    assert_eq!((nothing.tps.last_5s, nothing.tps.known_seconds), (None, 0.0));
    assert_eq!((nothing.players, nothing.mspt.last_10s), (None, None));
    service.tick(MonotonicNanos(START), TID, 5.0);
    let one = service.snapshot_at(MonotonicNanos(START + SECOND));
    assert_eq!((one.tps.last_5s, one.mspt.last_10s), (None, None));
    assert_eq!(service.server_thread(), Some(TID));
}

#[test]
fn a_quarter_of_an_hour_is_kept_at_twenty_ticks_a_second() {
    let service = Service::new();
    // Half an hour.
    let last = steady(&service, 36_000);
    let found = service.snapshot_at(MonotonicNanos(last));
    assert_eq!(found.tps.known_seconds, 900.0);
    assert_eq!(found.mspt.known_seconds, 300.0);
    assert!(close(found.tps.last_15m, Some(20.0)), "{found:?}");
    let kept = service.ticks(0);
    assert_eq!(kept.len(), limits::HISTORY_TICKS - 1);
    assert_eq!(kept.last().unwrap().number, 35_999);
    assert_eq!((kept[0].millis, kept.last().unwrap().millis), (Some(12.5), None));
}

#[test]
fn at_a_high_rate_ticks_per_second_reach_back_as_far_and_lengths_say_how_far() {
    let service = Service::new();
    // 200 a second for 15 minutes, of which the first five were at 100.
    let mut at = START;
    for second in 0..1_000_u64 {
        let per_second = if second < 400 { 100 } else { 200 };
        for _ in 0..per_second {
            service.tick(MonotonicNanos(at), TID, 1.0);
            at += SECOND / per_second;
        }
    }
    let last = at - SECOND / 200;
    let found = service.snapshot_at(MonotonicNanos(last));
    assert_eq!(found.tps.known_seconds, 900.0);
    // 300 seconds at 100 and 600 at 200.
    let expected = (300.0 * 100.0 + 600.0 * 200.0) / 900.0;
    let tps = found.tps.last_15m.unwrap();
    assert!((tps - expected).abs() < 0.2, "{tps}, not {expected}");
    assert!((found.tps.last_5m.unwrap() - 200.0).abs() < 0.01, "{found:?}");
    let kept = (limits::HISTORY_TICKS - 2) as f64 / 200.0;
    assert!((found.mspt.known_seconds - kept).abs() < 0.01, "{found:?}");
}

fn player(name: &str, millis: u32) -> PlayerPing {
    PlayerPing {
        name: name.to_owned(),
        millis,
    }
}

#[test]
fn pings_are_those_of_now_and_of_a_quarter_of_an_hour() {
    let service = Service::new();
    let at = |round: u64| MonotonicNanos(START + round * limits::PING_NANOS);
    // An hour: each round one player with the round's number and one with 1,000.
    for round in 0..360 {
        service.set_players(at(round), vec![player("§cred", round as u32), player("b", 1_000)]);
    }
    let found = service.snapshot_at(at(359)).ping;
    assert_eq!(found.known_seconds, 900.0);
    assert_eq!(found.players, [player("red", 359), player("b", 1_000)]);
    let of = |values: Vec<u32>| distribution(values.into_iter().map(f64::from).collect());
    assert_eq!(found.now, of(vec![359, 1_000]));
    let last: Vec<u32> = (269..360).flat_map(|round| [round, 1_000]).collect();
    assert_eq!(found.last_15m, of(last));
    assert_eq!(service.snapshot_at(at(359)).players, Some(2));
    // All leave.
    service.set_players(at(360), Vec::new());
    let found = service.snapshot_at(at(360));
    assert_eq!((found.players, found.ping.now), (Some(0), None));
    assert!(found.ping.last_15m.is_some());
}

#[test]
fn more_players_than_there_is_room_for_reach_back_less() {
    let service = Service::new();
    for round in 0..200 {
        let players = (0..500).map(|_| player("p", 20)).collect();
        service.set_players(MonotonicNanos(START + round * limits::PING_NANOS), players);
    }
    let now = MonotonicNanos(START + 199 * limits::PING_NANOS);
    let found = service.snapshot_at(now).ping;
    // 36 rounds of 500 have room.
    assert_eq!(found.known_seconds, 350.0);
}

fn reading(second: u64, process_nanos: u64, busy: u64, total: u64, counts: [u64; 4]) -> Reading {
    Reading {
        at: MonotonicNanos(START + second * SECOND),
        process_nanos: Some(process_nanos),
        machine: Some(MachineTime {
            busy,
            total,
            processors: 4,
        }),
        memory: MemoryUse::default(),
        threads: Some(3),
        disk: None,
        interfaces: Some((
            vec![Counters {
                name: "eth0".to_owned(),
                counts,
            }],
            0,
        )),
    }
}

proptest! {
    #[test]
    fn shares_and_rates_are_what_their_definition_says(
        seconds in prop::collection::vec((0_u64..4 * SECOND, 0_u64..400, 0_u64..1_000_000), 1..1_200),
    ) {
        let mut system = SystemHistory::default();
        let (mut process, mut busy, mut total, mut bytes) = (77, 1_000, 5_000, 9_000);
        system.add(reading(0, process, busy, total, [bytes, 0, 0, bytes]));
        for (second, (used, work, received)) in seconds.iter().enumerate() {
            process += used;
            busy += work;
            total += 400;
            bytes += received;
            system.add(reading(second as u64 + 1, process, busy, total, [bytes, 0, 0, bytes]));
        }
        let now = MonotonicNanos(START + seconds.len() as u64 * SECOND);
        let cpu = system.cpu(now);
        for (time, process, machine) in [
            (10, cpu.process.last_10s, cpu.system.last_10s),
            (60, cpu.process.last_1m, cpu.system.last_1m),
            (900, cpu.process.last_15m, cpu.system.last_15m),
        ] {
            let last = &seconds[seconds.len().saturating_sub(time)..];
            let number = last.len() as f64;
            let used: u64 = last.iter().map(|(used, ..)| used).sum();
            let work: u64 = last.iter().map(|(_, work, _)| work).sum();
            prop_assert!(close(process, Some(used as f64 / 1e9 / number / 4.0)), "{time}: {process:?}");
            prop_assert!(close(machine, Some(work as f64 / (number * 400.0))), "{time}: {machine:?}");
        }
        let (network, _) = system.network(now);
        let last = &seconds[seconds.len().saturating_sub(900)..];
        let rates = distribution(last.iter().map(|(.., received)| *received as f64).collect()).unwrap();
        prop_assert_eq!(network.len(), 1);
        prop_assert_eq!(network[0].received_bytes_per_second, rates);
        prop_assert_eq!(network[0].sent_packets_per_second, rates);
        prop_assert_eq!(network[0].sent_bytes_per_second, Distribution::default());
        prop_assert_eq!(network[0].known_seconds, last.len() as f64);
    }
}

#[test]
fn what_was_not_read_is_unknown_and_never_zero() {
    let mut system = SystemHistory::default();
    for second in 0..20 {
        system.add(Reading {
            process_nanos: None,
            machine: None,
            threads: None,
            interfaces: None,
            ..reading(second, 0, 0, 0, [0; 4])
        });
    }
    let now = MonotonicNanos(START + 19 * SECOND);
    let cpu = system.cpu(now);
    assert_eq!((cpu.process, cpu.system), Default::default());
    assert_eq!((cpu.processors, cpu.threads), (None, None));
    assert_eq!((system.disk(), system.memory()), (None, MemoryUse::default()));
    assert_eq!(system.network(now), (Vec::new(), 0));
}

#[test]
fn an_interface_that_is_made_anew_begins_anew() {
    let mut system = SystemHistory::default();
    for second in 0..10 {
        system.add(reading(second, second, second, 400 * second, [second * 100, 0, 1, 1]));
    }
    // Its counters begin again: 18 million terabytes a second would be wrong.
    for second in 10..13 {
        system.add(reading(
            second,
            second,
            second,
            400 * second,
            [(second - 10) * 7, 0, 0, 0],
        ));
    }
    let (network, _) = system.network(MonotonicNanos(START + 12 * SECOND));
    assert_eq!(network[0].received_bytes_per_second.max, 7.0);
    assert_eq!(network[0].known_seconds, 2.0);
}

#[test]
fn the_thread_reads_this_machine_and_ends_when_told() {
    let service = Service::new();
    service.start().unwrap();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let found = loop {
        let found = service.snapshot();
        if found.cpu.process.last_10s.is_some() {
            break found;
        }
        assert!(std::time::Instant::now() < end, "{found:?}");
        std::thread::yield_now();
    };
    assert!(
        found
            .cpu
            .system
            .last_10s
            .is_some_and(|share| (0.0..=1.0).contains(&share)),
        "{found:?}"
    );
    assert!(
        found.memory.process_resident_bytes.is_some() && found.disk.is_some(),
        "{found:?}"
    );
    assert!(
        found.host.kernel.is_some() && found.process_uptime_millis.is_some(),
        "{found:?}"
    );
    assert!(service.stop());
    assert!(service.stop(), "a second time there is nothing to end");
}
