//! What the server thread and the worker share: where the state machine stands, what is to be done, and what is to be said.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::background::Background;
use super::control::{ExportStep, Notice, Outgoing, Requester, StartRequest, StopRequest};
use super::environment::Environment;
use super::journaling::Journaling;
use super::monitor::Monitor;
use super::recording::Recording;
use super::tick_watch::TickWatch;
use super::ticks::TickWindows;
use super::unsaved::Unsaved;
use super::world::WorldDesk;
use crate::activity::ActivityLog;
use crate::limits;
use crate::model::{MonotonicNanos, PastProfile, WallMillis};
use crate::settings::Settings;
use crate::stats;
use crate::sys::Deadline;
use crate::upload::{Upload, Uploader};

/// What the worker is to do.
#[derive(Debug)]
pub(super) enum Order {
    Start(StartRequest),
    Stop(StopRequest),
    Cancel(Requester),
    /// Nothing but what there is to do when nothing is asked for: the background profiler.
    Background,
}

/// Where the state machine stands.
#[derive(Debug, Default)]
pub(super) enum Phase {
    #[default]
    Idle,
    Starting {
        by: Requester,
        since: MonotonicNanos,
    },
    Running(Arc<Recording>),
    Ending(Ending),
}

/// What is being done for a session that has ended.
#[derive(Debug)]
pub(super) enum Ending {
    Naming,
    Writing,
    Uploading { upload: Arc<Upload>, bytes: u64 },
}

impl Ending {
    pub(super) fn step(&self) -> ExportStep {
        match self {
            Ending::Naming => ExportStep::Naming,
            Ending::Writing => ExportStep::Writing,
            Ending::Uploading { upload, bytes } => ExportStep::Uploading {
                sent: upload.sent().min(*bytes),
                bytes: *bytes,
            },
        }
    }
}

/// Why an upload that runs is not wanted any more.
#[derive(Debug)]
pub(super) enum Interrupt {
    /// A file is wanted instead.
    Save,
    /// Nothing is wanted; who said so.
    Drop(Requester),
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// Finished profiles that could not be written, oldest first; the next `stop` tries again, each where it was meant to go.
    pub(super) unsaved: Vec<Unsaved>,
    pub(super) orders: VecDeque<Order>,
    /// Said while an upload runs.
    pub(super) interrupt: Option<Interrupt>,
    /// Whether a worker looks after the orders. It goes only under the lock, when there are none.
    pub(super) has_worker: bool,
    pub(super) shutting_down: bool,
    /// A call on the server thread has ended by a bug of ours.
    pub(super) has_failed: bool,
    pub(super) background: Background,
    pub(super) health_is_made: bool,
}

impl State {
    /// True when an order to end is waiting already.
    pub(super) fn ends_already(&self) -> bool {
        self.orders
            .iter()
            .any(|order| matches!(order, Order::Stop(_) | Order::Cancel(_)))
    }

    /// True when an order to end and keep what there is waits already.
    pub(super) fn is_stopped_already(&self) -> bool {
        self.orders.iter().any(|order| matches!(order, Order::Stop(_)))
    }

    /// Says that an upload that runs is not wanted any more; `false` when none runs or somebody else was first.
    pub(super) fn interrupt_upload(&mut self, why: Interrupt) -> bool {
        let runs = matches!(self.phase, Phase::Ending(Ending::Uploading { .. })) && self.interrupt.is_none();
        if runs {
            self.interrupt = Some(why);
        }
        runs
    }
}

/// What the server thread and the worker share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) folder: PathBuf,
    pub(super) settings: Settings,
    pub(super) uploader: Uploader,
    pub(super) past: ActivityLog,
    pub(super) state: Mutex<State>,
    /// After which the interpreter is not waited for any more, because the plugin is being disabled.
    pub(super) deadline: Deadline,
    /// After which no further file is read for names, for the same reason.
    pub(super) names_until: Deadline,
    pub(super) wake: Condvar,
    pub(super) statistics: Arc<stats::Service>,
    pub(super) ticks: TickWindows,
    pub(super) watch: Arc<TickWatch>,
    pub(super) monitor: Monitor,
    pub(super) journaling: Journaling,
    pub(super) environment: Mutex<Environment>,
    pub(super) world: WorldDesk,
    pub(super) outgoing: Mutex<Vec<Outgoing>>,
}

impl Shared {
    /// Leaves a notice for the server thread to deliver. The oldest goes when nobody fetches them.
    pub(super) fn send(&self, to: &Requester, notice: Notice) {
        let mut outgoing = self.outgoing.lock();
        if outgoing.len() >= limits::WAITING_NOTICES {
            outgoing.remove(0);
        }
        outgoing.push(Outgoing { to: to.clone(), notice });
    }

    /// Adds to the list of past profiles. That it could not be written is no reason to worry anybody who has what was made.
    pub(super) fn list(&self, by: &Requester, entry: PastProfile, now: WallMillis) {
        if let Err(error) = self.past.add(entry, now) {
            self.send(by, Notice::NotListed(error.to_string()));
        }
    }
}
