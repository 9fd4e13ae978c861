//! The statistics as others hold them.

use parking_lot::Mutex;

use super::players::Players;
use super::ticks::TickLog;
use super::watcher::Watcher;
use crate::model::{MonotonicNanos, PlayerPing, Statistics, Tick, Tid, WindowStatistics};
use crate::sys::{self, clock};

/// All statistics. Lives from the plugin's start to its end; may be asked by any thread.
#[derive(Debug, Default)]
pub struct Service {
    ticks: TickLog,
    players: Mutex<Players>,
    watcher: Watcher,
}

impl Service {
    /// Statistics that begin now, without a thread yet: of ticks and players only.
    pub fn new() -> Self {
        Service::default()
    }

    /// Starts the thread that reads what the kernel says.
    ///
    /// # Errors
    /// The system gives us no thread. Everything else works; what would be read is `None`.
    pub fn start(&self) -> std::io::Result<()> {
        self.watcher.start()
    }

    /// Ends the thread. `false` when it did not end within [`crate::limits::WATCHER_STOP_MILLIS`] and was left to itself: it touches nothing of the host.
    pub fn stop(&self) -> bool {
        self.watcher.stop()
    }

    /// Whether that thread has ended by a bug of ours: what it read is unknown from then on. To be asked once a tick.
    pub fn has_failed(&self) -> bool {
        self.watcher.has_failed()
    }

    /// Takes one tick: when our task ran in it, on which thread, and how many milliseconds the tick before took. On the server thread, once a tick; neither waits
    /// nor allocates.
    pub fn tick(&self, at: MonotonicNanos, thread: Tid, millis_before: f32) {
        self.ticks.record(at, thread, millis_before);
    }

    /// Takes the pings of all players who are online. On the server thread, every [`crate::limits::PING_NANOS`].
    pub fn set_players(&self, at: MonotonicNanos, players: Vec<PlayerPing>) {
        self.players.lock().add(at, players);
    }

    /// The thread that ticks, once it has ticked.
    pub fn server_thread(&self) -> Option<Tid> {
        self.ticks.server_thread()
    }

    /// How many ticks there have been.
    pub fn tick_number(&self) -> u64 {
        self.ticks.number()
    }

    /// The ticks that are still known, from number `from` on, oldest first. The newest is not over.
    pub fn ticks(&self, from: u64) -> Vec<Tick> {
        self.ticks.ticks(from)
    }

    /// Everything, now.
    pub fn snapshot(&self) -> Statistics {
        self.snapshot_at(clock::monotonic())
    }

    /// Everything, as of `now`, which is not before the newest tick.
    pub(super) fn snapshot_at(&self, now: MonotonicNanos) -> Statistics {
        let ticks = self.ticks.view(now);
        let (players, ping) = {
            let players = self.players.lock();
            (players.online(), players.ping(now))
        };
        let statistics = Statistics {
            taken: clock::wall(),
            process_uptime_millis: sys::process_uptime_millis(),
            tps: ticks.tps(),
            mspt: ticks.mspt(),
            players,
            ping,
            ..Statistics::default()
        };
        self.watcher.look(|system| {
            let (network, network_left_out) = system.network(now);
            Statistics {
                cpu: system.cpu(now),
                host: system.host(),
                memory: system.memory(),
                disk: system.disk(),
                network,
                network_left_out,
                ..statistics
            }
        })
    }

    /// A part of a profile, as far as it is known at `now`: best asked for two seconds after its end, when its last tick is over and the kernel has been read once more.
    pub fn window(&self, from: MonotonicNanos, to: MonotonicNanos, now: MonotonicNanos) -> WindowStatistics {
        let ticks = self.ticks.view(now).window(from, to);
        let (cpu_process, cpu_system) = self.watcher.look(|system| system.shares(from, to));
        WindowStatistics {
            ticks: ticks.ticks,
            tps: ticks.tps,
            mspt_median: ticks.millis.map(|millis| millis.median),
            mspt_max: ticks.millis.map(|millis| millis.max),
            cpu_process,
            cpu_system,
        }
    }
}
