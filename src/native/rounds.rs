//! The sampler thread: one round per interval, one decision per thread and round.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::cadence::Cadence;
use super::capture::Capture;
use super::desk::{Desk, Life};
use super::engine::Engine;
use super::modules::Modules;
use super::pause::PauseWatch;
use super::placement::Placement;
use super::sampler::{Look, SamplerOptions, Shared, handler_in_place};
use super::threads::Threads;
use crate::limits;
use crate::model::{MonotonicNanos, Tid};
use crate::sync::Owner;
use crate::sys::thread::own_tids;
use crate::sys::{clock, fault, signal, sleep, task};

/// See the module's text.
pub(super) struct Rounds {
    threads: Threads,
    modules: Modules,
    interval: u64,
    desk: Desk,
    look: Option<Look>,
    /// The only thread to sample, if it is known that there is only one.
    only: Option<Tid>,
}

impl Rounds {
    pub(super) fn new(
        engine: &'static Engine,
        owner: Owner<'static, Capture>,
        shared: Arc<Shared>,
        options: SamplerOptions,
        look: Option<Look>,
    ) -> Self {
        let interval = options
            .interval_nanos
            .clamp(limits::MIN_INTERVAL_MICROS * 1_000, limits::MAX_INTERVAL_MICROS * 1_000);
        let only = options.threads.only();
        Rounds {
            threads: Threads::new(options.threads),
            modules: Modules::new(engine.process),
            interval,
            desk: Desk::new(engine, owner, shared, interval, options.ignore_sleeping),
            look,
            only,
        }
    }

    pub(super) fn run(mut self) {
        sleep::be_exact();
        sleep::be_prompt();
        let mut placement = Placement::new(self.only);
        let mut cadence = Cadence::new(clock::monotonic(), self.interval);
        let mut modules_at = MonotonicNanos(0);
        let mut threads_at = MonotonicNanos(0);
        let mut pauses = PauseWatch::new(clock::monotonic(), task::nanos_in_line());
        while !self.stopping() {
            fault::point("sampler");
            let now = clock::monotonic();
            if let Some(pause) = pauses.turn(now, task::nanos_in_line) {
                self.leave_out(pause, now);
                cadence.leave_out(pause);
            }
            if now.since(modules_at) >= limits::MODULES_CHECK_NANOS {
                modules_at = now;
                self.look_at_modules();
            }
            if now.since(threads_at) >= limits::THREADS_CHECK_NANOS {
                threads_at = now;
                self.look_at_threads();
                placement.look();
                pauses.has_waited(task::nanos_in_line());
            }
            if now >= cadence.deadline {
                self.look_around();
                self.round();
                self.look_around();
                let late = cadence.advance(clock::monotonic());
                self.desk.figures.count_round(late, cadence.mean());
                self.desk.publish_figures(false);
            }
            let now = clock::monotonic();
            let until = [
                cadence.deadline.0,
                threads_at.0 + limits::THREADS_CHECK_NANOS,
                now.0 + limits::SLEEP_NANOS,
            ];
            let until = MonotonicNanos(until.into_iter().fold(u64::MAX, u64::min));
            pauses.sleeps(now, until);
            sleep::until(until);
        }
        self.finish();
    }

    /// The process was stopped for so long until just now: that time is nobody's.
    fn leave_out(&mut self, pause: u64, now: MonotonicNanos) {
        self.desk.figures.count_stop(pause);
        for thread in self.threads.iter_mut() {
            thread.since = MonotonicNanos(thread.since.0 + pause).min(now);
        }
    }

    fn look_around(&mut self) {
        if let Some(look) = &mut self.look {
            look();
        }
    }

    fn stopping(&self) -> bool {
        // Acquire: pairs with the Release in Sampler::finish.
        self.desk.shared.stop.load(Ordering::Acquire)
    }

    fn look_at_modules(&mut self) {
        if let Some((table, new)) = self.modules.refresh() {
            // Names first: a sample with the new table may be looked at by the aggregator at once.
            self.desk.shared.modules.lock().extend(new);
            self.desk.publisher.publish(Some(Box::new(table)));
        }
        self.desk.publisher.reclaim();
    }

    /// The look before the first round, so that whoever asks knows at once how many threads there are.
    pub(super) fn look_first(&mut self) {
        self.look_at_threads();
        self.desk.publish_figures(true);
    }

    fn look_at_threads(&mut self) {
        let shared = &self.desk.shared;
        let gone = self.threads.look(clock::monotonic(), own_tids, |key, name| {
            shared.names.lock().insert(key, name.to_owned());
        });
        for mut thread in gone {
            self.desk.let_go(&mut thread);
        }
        for thread in self.threads.unwanted_mut() {
            self.desk.withdraw(thread, true);
        }
        self.desk.stacks.forget();
        let (now, ever) = (self.threads.count(), self.threads.ever());
        self.desk.figures.count_threads(now, ever, self.threads.refusals);
    }

    /// Looks whether somebody has taken our handler's place. Nothing is sent any more then, and what is under way must not end the process.
    fn look_at_handler(&mut self) {
        // Relaxed: a flag that only goes up.
        let displaced = &self.desk.shared.displaced;
        if !displaced.load(Ordering::Relaxed) && !handler_in_place() {
            displaced.store(true, Ordering::Relaxed);
            signal::defuse(libc::SIGPROF);
        }
    }

    fn round(&mut self) {
        // Before anybody is asked, and also when all wait and nobody is.
        self.look_at_handler();
        let mut ended = Vec::new();
        for thread in self.threads.iter_mut() {
            if self.desk.decide(thread) == Life::Ended {
                self.desk.let_go(thread);
                ended.push(thread.key);
            }
        }
        ended.into_iter().for_each(|key| self.threads.remove(key));
        self.threads.rotate();
    }

    /// Sends no more, waits a moment for answers under way, and closes the books.
    fn finish(mut self) {
        let begun = clock::monotonic();
        loop {
            let waited = clock::monotonic().since(begun);
            let mut open = false;
            for thread in self.threads.iter_mut() {
                open |= !self.desk.withdraw(thread, waited > limits::STOP_ANSWER_NANOS);
            }
            let running = open || self.desk.engine.modules.readers() > 0;
            if !running || waited > limits::STOP_NANOS {
                break;
            }
            sleep::nanos(50_000);
        }
        self.desk.publish_figures(true);
    }
}
