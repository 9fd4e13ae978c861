//! Who may do what.

use super::parse::Command;

/// A permission that the plugin declares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permission {
    /// As it is given to a player.
    pub name: &'static str,
    /// One line for the server's list.
    pub description: &'static str,
    /// Whether operators have it without being given it.
    pub for_operators: bool,
}

/// Covers everything.
const ALL: &str = "endstone.command.spark";
const PROFILER: &str = "spark.profiler";
const ACTIVITY: &str = "spark.activity";
const TPS: &str = "spark.tps";
const HEALTH: &str = "spark.health";
const PING: &str = "spark.ping";
const TICK_MONITOR: &str = "spark.tickmonitor";

/// All of them. Only the first is for operators by itself, so that taking it away takes everything; the others are given to somebody who should have less.
pub const PERMISSIONS: &[Permission] = &[
    Permission {
        name: ALL,
        description: "Use everything of spark",
        for_operators: true,
    },
    Permission {
        name: PROFILER,
        description: "Use /spark profiler",
        for_operators: false,
    },
    Permission {
        name: ACTIVITY,
        description: "Use /spark activity",
        for_operators: false,
    },
    Permission {
        name: TPS,
        description: "Use /spark tps",
        for_operators: false,
    },
    Permission {
        name: HEALTH,
        description: "Use /spark health",
        for_operators: false,
    },
    Permission {
        name: PING,
        description: "Use /spark ping",
        for_operators: false,
    },
    Permission {
        name: TICK_MONITOR,
        description: "Use /spark tickmonitor",
        for_operators: false,
    },
];

/// What a sender may do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Granted(Vec<&'static str>);

impl Granted {
    /// Asks for each permission.
    pub fn ask(mut has: impl FnMut(&str) -> bool) -> Self {
        Granted(
            PERMISSIONS
                .iter()
                .map(|permission| permission.name)
                .filter(|name| has(name))
                .collect(),
        )
    }

    /// Everything, as the console has it.
    pub fn all() -> Self {
        Granted::ask(|_| true)
    }

    /// Whether results of the profiler are for this receiver.
    pub fn covers_profiler(&self) -> bool {
        self.covers(PROFILER)
    }

    fn covers(&self, name: &str) -> bool {
        self.0.contains(&ALL) || self.0.contains(&name)
    }

    /// Whether there is anything that may be done.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is missing for a command, in words.
    pub(super) fn missing(&self, command: &Command) -> Option<String> {
        let needed = match command {
            Command::Profiler(_) => PROFILER,
            Command::Activity { .. } => ACTIVITY,
            Command::Tps => TPS,
            Command::Health(_) => HEALTH,
            Command::Ping { .. } => PING,
            Command::TickMonitor(_) => TICK_MONITOR,
            Command::Help | Command::Version | Command::Java(_) => return None,
        };
        (!self.covers(needed)).then(|| format!("This needs the permission {needed} or {ALL}."))
    }

    /// What is said to somebody who may do nothing.
    pub(super) fn refusal() -> String {
        format!("This needs the permission {ALL}.")
    }
}
