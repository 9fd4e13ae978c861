//! The tick clock: when each tick's task ran, and how long the tick before took.
//!
//! Both are exact. The server closes a tick's measurement when the next one begins, so what it says inside our task is the whole length of the previous tick,
//! and the time between two of our tasks is the ticks' true spacing. When a tick began it does not say.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use super::distribution::distribution;
use super::growth::Growth;
use crate::limits;
use crate::model::{Distribution, MonotonicNanos, Mspt, Tick, Tid, Tps};
use crate::sync::History;

const SECOND: u64 = 1_000_000_000;

/// The last fifteen minutes of ticks.
#[derive(Debug)]
pub(super) struct TickLog {
    /// When a tick's task ran, and the bits of the length of the tick before in milliseconds.
    ticks: History<2>,
    /// When a tick's task ran, and the tick's number; one a second, for when single ticks do not reach back far enough.
    marks: History<2>,
    /// When the next mark is due. Used by the server thread only.
    next_mark: AtomicU64,
    /// 0 before the first tick.
    server_thread: AtomicI32,
}

impl Default for TickLog {
    fn default() -> Self {
        TickLog {
            ticks: History::new(limits::HISTORY_TICKS),
            marks: History::new(limits::HISTORY_SECONDS as usize + 10),
            next_mark: AtomicU64::new(0),
            server_thread: AtomicI32::new(0),
        }
    }
}

impl TickLog {
    /// Takes one tick. On the server thread; neither waits nor allocates.
    pub(super) fn record(&self, at: MonotonicNanos, thread: Tid, millis_before: f32) {
        // Relaxed: the number stands for itself.
        self.server_thread.store(thread.get(), Ordering::Relaxed);
        let number = self.ticks.added();
        // What a server says that has not ticked yet is the length of nothing.
        let millis = if number == 0 { f32::NAN } else { millis_before };
        self.ticks.push([at.0, u64::from(millis.to_bits())]);
        // Relaxed: only the server thread uses it.
        if at.0 >= self.next_mark.load(Ordering::Relaxed) {
            self.marks.push([at.0, number]);
            self.next_mark.store(at.0 + SECOND, Ordering::Relaxed);
        }
    }

    /// The thread that ticks, once it has.
    pub(super) fn server_thread(&self) -> Option<Tid> {
        // Relaxed: as above.
        match self.server_thread.load(Ordering::Relaxed) {
            0 => None,
            tid => Some(Tid::new(tid)),
        }
    }

    /// How many ticks there have been.
    pub(super) fn number(&self) -> u64 {
        self.ticks.added()
    }

    /// The ticks that are still known, from number `from` on, oldest first.
    pub(super) fn ticks(&self, from: u64) -> Vec<Tick> {
        let (first, records) = self.ticks.copy_from(from);
        let lengths = records.iter().skip(1).map(|record| length(*record)).chain([None]);
        records
            .iter()
            .zip(lengths)
            .enumerate()
            .map(|(place, ([at, _], millis))| Tick {
                number: first + place as u64,
                at: MonotonicNanos(*at),
                millis,
            })
            .collect()
    }

    pub(super) fn view(&self, now: MonotonicNanos) -> TickView {
        // Marks first: ticks that are added meanwhile must not fall between both.
        let (_, marks) = self.marks.copy_from(0);
        let ticks = self.ticks(0);
        let first = ticks.first().map_or(u64::MAX, |tick| tick.number);
        let mut growth = Growth::new(
            marks
                .iter()
                .map(|[at, number]| (*at, *number))
                .take_while(|(_, number)| *number < first)
                .chain(ticks.iter().map(|tick| (tick.at.0, tick.number)))
                .map(|(at, number)| (MonotonicNanos(at), number as f64))
                .collect(),
        );
        // The tick to come is on its way as fast as the last one was, but not here yet: while it is late, it counts as if it came now.
        if let [.., (before, _), (last, number)] = *growth.points()
            && now > last
            && last > before
        {
            let part = now.since(last) as f64 / last.since(before) as f64;
            growth.push(now, number + part.min(1.0));
        }
        TickView { now, growth, ticks }
    }
}

/// The bits of a length are NaN where it is not known.
fn length([_, bits]: [u64; 2]) -> Option<f32> {
    Some(f32::from_bits(bits as u32)).filter(|millis| millis.is_finite())
}

/// The ticks as they are at one moment.
#[derive(Debug)]
pub(super) struct TickView {
    now: MonotonicNanos,
    growth: Growth,
    ticks: Vec<Tick>,
}

/// Ticks of a window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct TickWindow {
    pub(super) ticks: u32,
    pub(super) tps: Option<f64>,
    pub(super) millis: Option<Distribution>,
}

impl TickView {
    pub(super) fn tps(&self) -> Tps {
        let last = |seconds: u64| {
            let from = MonotonicNanos(self.now.0.saturating_sub(seconds * SECOND));
            self.rate(from, self.now)
        };
        Tps {
            known_seconds: self.growth.known_seconds(self.now).min(limits::HISTORY_SECONDS as f64),
            last_5s: last(5),
            last_10s: last(10),
            last_1m: last(60),
            last_5m: last(300),
            last_15m: last(900),
        }
    }

    fn rate(&self, from: MonotonicNanos, to: MonotonicNanos) -> Option<f64> {
        let grown = self.growth.between(from, to)?;
        Some(grown.by / grown.seconds)
    }

    pub(super) fn mspt(&self) -> Mspt {
        // A tick is over when the next one's task runs, which is also when its length is known.
        let over = || self.ticks.iter().zip(self.ticks.iter().skip(1));
        let last = |seconds: u64| {
            let from = self.now.0.saturating_sub(seconds * SECOND);
            let millis = over()
                .filter(|(_, next)| next.at.0 > from)
                .filter_map(|(tick, _)| tick.millis);
            distribution(millis.map(f64::from).collect())
        };
        let first = self.ticks.first().map_or(self.now, |tick| tick.at);
        Mspt {
            known_seconds: (self.now.since(first) as f64 / 1e9).min(300.0),
            last_10s: last(10),
            last_1m: last(60),
            last_5m: last(300),
        }
    }

    /// What began from `from` to before `to`.
    pub(super) fn window(&self, from: MonotonicNanos, to: MonotonicNanos) -> TickWindow {
        let inside: Vec<&Tick> = self
            .ticks
            .iter()
            .filter(|tick| tick.at >= from && tick.at < to)
            .collect();
        TickWindow {
            ticks: u32::try_from(inside.len()).unwrap_or(u32::MAX),
            tps: self.rate(from, to),
            millis: distribution(inside.iter().filter_map(|tick| tick.millis).map(f64::from).collect()),
        }
    }
}
