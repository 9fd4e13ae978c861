//! When ticks end, for sessions that keep only slow ones.
//!
//! **Problem.** The server says how long its last tick took, but not when that was, and a plugin's task runs somewhere in the middle of a tick.
//!
//! **Algorithm.** The figure changes at the moment when a tick ends. So it is looked at around each round of sampling: the tick ended between the last look with
//! the old figure and the first with the new one. The task of the next tick is a look as well, on the server thread and so never late, which tells of
//! every tick, also of one that was over before the next round, or took exactly as long as the one before.
//!
//! **The last tick.** A session mostly ends in a tick: that of the command, or the slow one that somebody has waited for. [`TickWatch::wait_for_end`] waits for its end on the
//! worker, for a bounded time; a tick that runs longer than that, or that nothing can wait for because the plugin is being disabled, is told by
//! [`TickWatch::cut`] as if it had ended then, if it is slow already.
//!
//! **Price.** One call of the server's function and one short lock for each look, 100 nanoseconds twice per round, on the sampler's thread; nothing for sessions
//! that keep all ticks but a lock that nobody else wants, once a tick.
//!
//! **Assumption.** The function may be called on any thread while the plugin is enabled: it reads one number under a lock of its own that is held for some
//! instructions. [`TickWatch::close`] ends that for good: it waits for a look that is under way, and there is none after it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::limits;
use crate::model::MonotonicNanos;
use crate::profile::TickEnd;
use crate::sys::clock;

/// Gives the length of the server's last tick in milliseconds, on any thread.
pub type TickGauge = Arc<dyn Fn() -> f32 + Send + Sync>;

/// See the module's text.
#[derive(Default)]
pub(super) struct TickWatch {
    /// Locked while it is called.
    gauge: Mutex<Option<TickGauge>>,
    state: Mutex<Option<State>>,
    /// Told of each tick that ends. Mostly nobody waits: that costs the server thread one look at a word.
    ended: Condvar,
}

impl std::fmt::Debug for TickWatch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("TickWatch").finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    /// The figure that was seen last, and when the last look began that saw it.
    figure: Option<(f32, MonotonicNanos)>,
    /// When the task of the tick ran that runs now, if one does and its task has run.
    task: Option<MonotonicNanos>,
    /// Tasks so far: a look during which one ran is void.
    tasks: u64,
    ends: VecDeque<TickEnd>,
    /// Ends so far.
    told: u64,
    /// The last tick was cut off: nothing that comes is of the session.
    is_cut: bool,
}

impl TickWatch {
    /// Sets what to look at.
    pub(super) fn set_gauge(&self, gauge: TickGauge) {
        *self.gauge.lock() = Some(gauge);
    }

    /// Ends all calls of the gauge: none is running when this returns, and none follows.
    pub(super) fn close(&self) {
        *self.gauge.lock() = None;
    }

    /// Begins to note when ticks end.
    pub(super) fn begin(&self) {
        *self.state.lock() = Some(State::default());
    }

    /// Ends it.
    pub(super) fn end(&self) {
        *self.state.lock() = None;
    }

    /// The ticks that have ended since this was asked last, in order.
    pub(super) fn take(&self) -> VecDeque<TickEnd> {
        self.state
            .lock()
            .as_mut()
            .map(|state| std::mem::take(&mut state.ends))
            .unwrap_or_default()
    }

    /// One look, on the sampler's thread.
    pub(super) fn look(&self) {
        let Some(tasks) = self.state.lock().as_ref().map(|state| state.tasks) else {
            return;
        };
        let begun = clock::monotonic();
        let Some(figure) = self.gauge.lock().as_ref().map(|gauge| gauge()) else {
            return;
        };
        let done = clock::monotonic();
        if let Some(state) = self.state.lock().as_mut()
            && state.tasks == tasks
        {
            state.look(figure, begun, done);
        }
        self.ended.notify_all();
    }

    /// The task of a tick runs, and the server says this of the tick before. On the server thread.
    pub(super) fn task(&self, at: MonotonicNanos, figure: f32) {
        if let Some(state) = self.state.lock().as_mut() {
            state.task(figure, at);
            self.ended.notify_all();
        }
    }

    /// Waits until the tick has ended that runs now, at most so long and as long as `goes_on` says so. Never on the server thread. The tick may be one that begins only
    /// now: whether one runs is not known before its task.
    pub(super) fn wait_for_end(&self, limit: Duration, goes_on: impl Fn() -> bool) {
        let end = Instant::now() + limit;
        let mut state = self.state.lock();
        let Some(told) = state.as_ref().map(|state| state.told) else {
            return;
        };
        while state.as_ref().is_some_and(|state| state.told == told) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || !MutexGuard::unlocked(&mut state, &goes_on) {
                return;
            }
            let look = left.min(Duration::from_millis(limits::UPLOAD_LOOK_MILLIS));
            self.ended.wait_for(&mut state, look);
        }
    }

    /// Tells of the tick that runs now as if it ended now, if it has run longer than `over_nanos` already since its task. What comes after is not told.
    pub(super) fn cut(&self, now: MonotonicNanos, over_nanos: u64) {
        if let Some(state) = self.state.lock().as_mut() {
            state.cut(now, over_nanos);
        }
    }
}

impl State {
    fn look(&mut self, figure: f32, begun: MonotonicNanos, done: MonotonicNanos) {
        if let Some((known, looked)) = self.figure
            && known.to_bits() != figure.to_bits()
        {
            self.ended(looked.max(self.task.unwrap_or_default()), done, figure);
        }
        self.figure = Some((figure, begun));
    }

    fn task(&mut self, figure: f32, at: MonotonicNanos) {
        match (self.figure, self.task) {
            (Some((known, looked)), task) if known.to_bits() != figure.to_bits() => {
                self.ended(looked.max(task.unwrap_or_default()), at, figure);
            }
            // Its end was not seen: it took as long as the one before. Looks say nothing then.
            (_, Some(task)) => self.ended(task, at, figure),
            _ => {}
        }
        self.tasks += 1;
        self.task = Some(at);
        self.figure = Some((figure, at));
    }

    fn cut(&mut self, now: MonotonicNanos, over_nanos: u64) {
        if let Some(task) = self.task.take()
            && !self.is_cut
            && now.since(task) > over_nanos
        {
            self.tell(TickEnd {
                after: now,
                before: now,
                inside: Some(task),
                nanos: now.since(task),
            });
        }
        self.is_cut = true;
    }

    fn ended(&mut self, after: MonotonicNanos, before: MonotonicNanos, millis: f32) {
        let inside = self.task.take();
        if self.is_cut || !millis.is_finite() || millis < 0.0 {
            return;
        }
        self.tell(TickEnd {
            after,
            before,
            inside,
            nanos: (f64::from(millis) * 1e6) as u64,
        });
    }

    fn tell(&mut self, end: TickEnd) {
        self.told += 1;
        if self.ends.len() >= limits::TICK_ENDS {
            // Nobody fetches them: the aggregator is gone, and its session with it.
            self.ends.pop_front();
        }
        self.ends.push_back(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(millis: u64) -> MonotonicNanos {
        MonotonicNanos(millis * MS)
    }

    fn ends(state: &mut State) -> Vec<(u64, u64, Option<u64>, u64)> {
        let ends = std::mem::take(&mut state.ends);
        let millis = |instant: MonotonicNanos| instant.0 / MS;
        ends.into_iter()
            .map(|end| {
                (
                    millis(end.after),
                    millis(end.before),
                    end.inside.map(millis),
                    end.nanos / MS,
                )
            })
            .collect()
    }

    #[test]
    fn a_tick_ended_between_the_last_look_with_the_old_figure_and_the_first_with_the_new() {
        let mut state = State::default();
        state.look(5.0, at(1), at(2));
        state.task(5.0, at(10));
        state.look(5.0, at(14), at(15));
        state.look(5.0, at(18), at(19));
        assert_eq!(ends(&mut state), []);
        state.look(11.0, at(22), at(23));
        assert_eq!(ends(&mut state), [(18, 23, Some(10), 11)]);
        state.look(11.0, at(26), at(27));
        state.task(11.0, at(60));
        assert_eq!(ends(&mut state), [], "it was told already");
    }

    #[test]
    fn the_task_of_the_next_tick_tells_of_one_that_no_look_saw() {
        let mut state = State::default();
        state.task(5.0, at(10));
        state.look(5.0, at(12), at(13));
        // This one ended, and the next began, before the next look.
        state.task(80.0, at(91));
        assert_eq!(ends(&mut state), [(12, 91, Some(10), 80)]);
        state.look(1.0, at(94), at(95));
        assert_eq!(ends(&mut state), [(91, 95, Some(91), 1)]);
    }

    #[test]
    fn a_tick_as_long_as_the_one_before_is_not_missed() {
        let mut state = State::default();
        state.task(5.0, at(10));
        state.look(70.0, at(81), at(82));
        state.task(70.0, at(83));
        state.look(70.0, at(90), at(91));
        state.look(70.0, at(158), at(159));
        state.task(70.0, at(160));
        assert_eq!(ends(&mut state), [(10, 82, Some(10), 70), (83, 160, Some(83), 70)]);
    }

    #[test]
    fn a_look_during_which_a_task_ran_is_void() {
        let watch = Arc::new(TickWatch::default());
        watch.begin();
        watch.task(at(1), 5.0);
        watch.set_gauge(Arc::new({
            let watch = Arc::clone(&watch);
            move || {
                // As if this thread had been stopped after it had read the old figure.
                watch.task(at(2), 7.0);
                5.0
            }
        }));
        watch.look();
        let ended = watch.take();
        assert_eq!(ended.iter().map(|end| end.nanos / MS).collect::<Vec<_>>(), [7]);
        watch.set_gauge(Arc::new(|| 7.0));
        watch.look();
        assert!(watch.take().is_empty());
    }

    #[test]
    fn a_slow_tick_that_runs_at_the_end_is_told_as_far_as_it_came_and_nothing_after_it() {
        let mut state = State::default();
        state.task(5.0, at(10));
        state.cut(at(110), 60 * MS);
        assert_eq!(ends(&mut state), [(110, 110, Some(10), 100)]);
        // It goes on, and others follow.
        state.look(400.0, at(410), at(411));
        state.task(400.0, at(420));
        state.cut(at(900), 60 * MS);
        assert_eq!(ends(&mut state), []);
    }

    #[test]
    fn a_tick_that_is_not_slow_yet_or_has_ended_is_not_cut() {
        let mut state = State::default();
        state.task(5.0, at(10));
        state.cut(at(70), 60 * MS);
        assert_eq!(ends(&mut state), []);
        let mut state = State::default();
        state.task(5.0, at(10));
        state.look(80.0, at(95), at(96));
        assert_eq!(ends(&mut state).len(), 1);
        // The server waits for its next tick.
        state.cut(at(500), 60 * MS);
        assert_eq!(ends(&mut state), []);
    }

    #[test]
    fn a_wait_ends_with_the_tick_or_when_nobody_wants_it() {
        let watch = TickWatch::default();
        let for_ever = Duration::from_secs(3_600);
        // No session.
        watch.wait_for_end(for_ever, || true);
        watch.begin();
        watch.task(at(1), 5.0);
        watch.wait_for_end(Duration::ZERO, || true);
        watch.wait_for_end(for_ever, || false);
        assert!(watch.take().is_empty());
        // The server thread goes on while it is asked whether to.
        let time = std::cell::Cell::new(1);
        watch.wait_for_end(for_ever, || {
            time.set(time.get() + 100);
            watch.task(at(time.get()), 100.0);
            true
        });
        assert!(!watch.take().is_empty());
    }

    #[test]
    fn nothing_is_called_outside_a_session_or_once_closed() {
        let watch = TickWatch::default();
        watch.set_gauge(Arc::new(|| panic!("called")));
        watch.look();
        watch.begin();
        watch.close();
        watch.look();
        watch.end();
        assert!(watch.take().is_empty());
    }

    #[test]
    fn figures_that_are_none_end_no_tick() {
        let mut state = State::default();
        state.task(5.0, at(10));
        for figure in [f32::NAN, -1.0, f32::INFINITY] {
            state.task(figure, at(60));
        }
        assert_eq!(ends(&mut state), []);
    }
}
