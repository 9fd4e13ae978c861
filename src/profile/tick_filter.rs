//! Only the time of slow ticks.
//!
//! **Problem.** Whether a tick is slow is known when it has ended. Its samples have to wait for that; and what is kept must be that tick's time to the end,
//! but nothing of the tick before it or of the waiting in between: a fast tick's function must not show at all.
//!
//! **What is known.** Of each tick that ends: how long it took, exactly; an instant at which it still ran, and a later one at which it was over ([`TickEnd`]).
//! Both come from looks at the server's own figure, and one from the server thread at the beginning of the next tick, so no tick is missed.
//!
//! **Algorithm.** The end is taken to be as late as it can have been, and the beginning to be that much earlier. (Looks are made around each round of sampling,
//! so the two instants are at most one interval apart; and the tick's own task, which runs near its beginning, bounds both.) A sample belongs to a tick if it
//! was certainly taken in it. One that was taken between the two instants belongs to none, and is counted; with looks right before and right after each round
//! this is one in thousands.
//!
//! Time is shared between neighbouring samples as ever (`ledger.rs`), then cut to the slow ticks: what begins or ends outside is given to the stack inside, so
//! that a tick has exactly its length on every thread that was sampled in it or stood still all the time.
//!
//! **Price.** Some 100 bytes and a copy of the stack for each sample until the next tick has ended; a stack that repeats is not copied.
//! [`limits::WAITING_SAMPLES`] and [`limits::WAITING_FRAMES`] bound it, and what finds no room is counted.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::frame::FrameKey;
use crate::limits;
use crate::model::{MonotonicNanos, Sample, ThreadKey, TickFigures};

/// A tick that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TickEnd {
    /// The last instant at which it is known to have run.
    pub after: MonotonicNanos,
    /// The first instant at which it is known to have been over.
    pub before: MonotonicNanos,
    /// An instant in it, if one is known, as near to its beginning as possible.
    pub inside: Option<MonotonicNanos>,
    /// How long it took.
    pub nanos: u64,
}

/// Time to book: whose, which stack, the instant that says in which window, nanoseconds.
pub type Book<'a> = dyn FnMut(ThreadKey, &[FrameKey], MonotonicNanos, u64) + 'a;

/// A slow tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    /// Its time.
    begin: MonotonicNanos,
    end: MonotonicNanos,
    /// Samples from here on, and up to there, were taken in it.
    first: MonotonicNanos,
    last: MonotonicNanos,
}

impl Span {
    fn overlap(&self, from: MonotonicNanos, until: MonotonicNanos) -> u64 {
        self.end.min(until).since(self.begin.max(from))
    }
}

/// A sample without what its path was made of.
#[derive(Clone, Debug)]
struct Waiting {
    thread: ThreadKey,
    path: Arc<[FrameKey]>,
    taken_at: MonotonicNanos,
    weight: u64,
    held: u64,
    repeated: bool,
}

impl Waiting {
    /// When the thread stood where the sample found it. It may have been taken later: a thread that waits for a processor answers when it gets one.
    fn instant(&self) -> MonotonicNanos {
        MonotonicNanos(self.taken_at.0 - self.held)
    }

    /// From here on the sample speaks for its thread's time.
    fn since(&self) -> MonotonicNanos {
        MonotonicNanos(self.taken_at.0.saturating_sub(self.weight))
    }
}

/// A thread's last sample, and the slow tick that it was taken in.
#[derive(Clone, Debug)]
struct Last {
    path: Arc<[FrameKey]>,
    taken_at: MonotonicNanos,
    span: Option<Span>,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct TickFilter {
    threshold_nanos: u64,
    started_at: MonotonicNanos,
    /// Slow ticks of late, oldest first: a sample may come later than the end of its tick is known.
    spans: VecDeque<Span>,
    /// The end of the last tick.
    previous: Option<TickEnd>,
    /// In the order in which they came, which is the order of time for each thread.
    waiting: VecDeque<Waiting>,
    /// Of the paths that wait, each counted once.
    waiting_frames: usize,
    /// The newest path of each thread, to be shared by the next sample.
    newest: HashMap<ThreadKey, Arc<[FrameKey]>>,
    last: HashMap<ThreadKey, Last>,
    figures: TickFigures,
}

impl TickFilter {
    /// Keeps ticks of more than `threshold_nanos` that begin at `started_at` or later.
    pub fn new(threshold_nanos: u64, started_at: MonotonicNanos) -> Self {
        TickFilter {
            threshold_nanos,
            started_at,
            spans: VecDeque::new(),
            previous: None,
            waiting: VecDeque::new(),
            waiting_frames: 0,
            newest: HashMap::new(),
            last: HashMap::new(),
            figures: TickFigures::default(),
        }
    }

    /// Takes a sample; its time is booked once its tick has ended, if at all.
    pub fn sample(&mut self, sample: &Sample<'_>, path: &[FrameKey], book: &mut Book<'_>) {
        let known = self.newest.get(&sample.thread).filter(|known| ***known == *path);
        let path = match known {
            Some(known) => Arc::clone(known),
            None => {
                let path: Arc<[FrameKey]> = path.into();
                self.newest.insert(sample.thread, Arc::clone(&path));
                self.waiting_frames += path.len();
                path
            }
        };
        let weight = sample.weight_nanos.min(sample.taken_at.0);
        let sample = Waiting {
            thread: sample.thread,
            path,
            taken_at: sample.taken_at,
            weight,
            held: sample.held_nanos.min(weight),
            repeated: sample.repeated,
        };
        if self.is_decided(sample.instant()) {
            self.decide(&sample, book);
        } else if self.waiting.len() >= limits::WAITING_SAMPLES || self.waiting_frames > limits::WAITING_FRAMES {
            self.figures.samples_without_room += 1;
        } else {
            self.waiting.push_back(sample);
        }
    }

    /// Takes the end of a tick, in the order of time.
    pub fn tick(&mut self, tick: TickEnd, book: &mut Book<'_>) {
        let ended_before = self.previous.map_or(MonotonicNanos(0), |previous| previous.before);
        let earliest = self.previous.map_or(MonotonicNanos(0), |previous| previous.after);
        // It cannot have begun before the one before it had ended, nor after an instant at which it ran.
        let last = tick.after.max(MonotonicNanos(earliest.0.saturating_add(tick.nanos)));
        let end = tick.inside.map_or(tick.before, |inside| {
            tick.before.min(MonotonicNanos(inside.0.saturating_add(tick.nanos)))
        });
        let begin = MonotonicNanos(end.0.saturating_sub(tick.nanos));
        let last = last.min(end);
        self.previous = Some(TickEnd {
            after: last,
            before: end,
            ..tick
        });
        if begin >= self.started_at {
            self.figures.seen += 1;
            self.figures.longest_nanos = self.figures.longest_nanos.max(tick.nanos);
            if tick.nanos > self.threshold_nanos {
                self.figures.kept += 1;
                let begin = begin.max(ended_before);
                self.spans.push_back(Span {
                    begin,
                    end,
                    first: begin,
                    last,
                });
                if self.spans.len() > limits::SLOW_TICKS {
                    self.spans.pop_front();
                }
            }
        }
        let waiting = std::mem::take(&mut self.waiting);
        for sample in waiting {
            if self.is_decided(sample.instant()) {
                self.decide(&sample, book);
            } else {
                self.waiting.push_back(sample);
            }
        }
        self.count_frames();
    }

    /// What still waits was taken in no tick that has ended: it is dropped.
    pub fn finish(&mut self, book: &mut Book<'_>) {
        for sample in std::mem::take(&mut self.waiting) {
            self.figures.samples_unfinished += 1;
            self.decide(&sample, book);
        }
    }

    /// Of these threads, those of which a sample still waits.
    pub fn waits_for(&self) -> HashSet<ThreadKey> {
        self.waiting.iter().map(|sample| sample.thread).collect()
    }

    /// A thread has ended, and nothing of it waits.
    pub fn forget(&mut self, thread: ThreadKey) {
        self.newest.remove(&thread);
        self.last.remove(&thread);
    }

    /// What became of ticks and samples.
    pub fn figures(&self) -> TickFigures {
        self.figures
    }

    /// Whether the tick that this instant lies in, or follows, has ended.
    fn is_decided(&self, instant: MonotonicNanos) -> bool {
        self.previous.is_some_and(|previous| instant < previous.before)
    }

    fn count_frames(&mut self) {
        let mut frames = 0;
        let mut before = std::ptr::null();
        for sample in &self.waiting {
            // Threads alternate, so a path may be counted more than once: on the safe side.
            if !std::ptr::eq(before, sample.path.as_ptr()) {
                frames += sample.path.len();
            }
            before = sample.path.as_ptr();
        }
        self.waiting_frames = frames;
    }

    fn span_of(&self, instant: MonotonicNanos) -> Option<Span> {
        let spans = self.spans.iter().rev();
        spans
            .take_while(|span| span.end >= instant)
            .find(|span| span.first <= instant && instant <= span.last)
            .copied()
    }

    /// Whether a slow tick may or may not have been over at this instant.
    fn is_uncertain(&self, instant: MonotonicNanos) -> bool {
        let mut spans = self.spans.iter().rev().take_while(|span| span.end > instant);
        spans.any(|span| span.last < instant)
    }

    /// Books what a sample says about time in slow ticks.
    fn decide(&mut self, sample: &Waiting, book: &mut Book<'_>) {
        let span = self.span_of(sample.instant());
        let since = sample.since();
        let last = self.last.remove(&sample.thread);
        if let Some(Last {
            path,
            taken_at,
            span: Some(left),
        }) = &last
            && span.is_none_or(|span| span != *left)
        {
            let rest = left.overlap(since, sample.taken_at);
            book(sample.thread, path, *taken_at, rest);
        }
        if sample.repeated {
            // It stood still: also through slow ticks in which it was not looked at.
            let left = last.as_ref().and_then(|last| last.span);
            let through = self.spans.iter().rev().take_while(|other| other.end > since);
            for other in through.filter(|other| Some(**other) != span && Some(**other) != left) {
                let nanos = other.overlap(since, sample.taken_at);
                if nanos > 0 {
                    book(sample.thread, &sample.path, other.begin.max(since), nanos);
                }
            }
        }
        if let Some(span) = span {
            self.figures.samples_kept += 1;
            // What is after the tick's end is booked nowhere: only the answer came later.
            let until = sample.taken_at.min(span.end);
            let nanos = until.since(span.begin.max(since));
            let mut own = nanos;
            if let Some(Last {
                path,
                taken_at,
                span: Some(before),
            }) = &last
                && *before == span
                && *path != sample.path
            {
                let shared = nanos.saturating_sub(sample.held) / 2;
                own -= shared;
                book(sample.thread, path, *taken_at, shared);
            }
            book(sample.thread, &sample.path, sample.taken_at, own);
        } else {
            self.figures.samples_dropped += 1;
            if self.is_uncertain(sample.instant()) {
                self.figures.samples_uncertain += 1;
                // It says nothing: the tick's rest stays with the stack before.
                if let Some(last) = last {
                    self.last.insert(sample.thread, last);
                    return;
                }
            }
        }
        self.last.insert(
            sample.thread,
            Last {
                path: Arc::clone(&sample.path),
                taken_at: sample.taken_at,
                span,
            },
        );
    }
}

#[cfg(test)]
#[path = "tick_filter_tests.rs"]
mod tests;
