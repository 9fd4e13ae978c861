//! What the profiler needs of the host, between `onEnable` and `onDisable`, on the server thread only.

use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::abi::{CxxFunction, Plugin, Server, UniqueId};
use super::image;
use super::pure::pure;
use super::surveyor::Surveyor;
use parking_lot::Mutex;

use crate::activity::ActivityLog;
use crate::command::{Audience, Granted, answer_notice};
use crate::limits;
use crate::model::{PlayerPing, clean_text, plugin_stem};
use crate::session::{Control, Environment, Notice, Outgoing, PluginInfo, Requester, Service, TickSample};
use crate::settings;
use crate::sys::{clock, thread};

/// Ticks between two looks at the list of plugins: a minute.
const ENVIRONMENT_TICKS: u32 = 1_200;

/// Why the profiler did not begin or did not end well.
#[derive(Debug, thiserror::Error)]
pub(super) enum AdapterError {
    /// No scheduler, or it refused.
    #[error("the server's scheduler did not take its tick task")]
    NoTask,
    /// A bug of ours.
    #[error("an internal error ({0})")]
    Panic(String),
    /// The worker was left to itself.
    #[error(
        "The profile that was being saved was not finished in time. A reload does not end that; after a stop the next start saves what was sampled"
    )]
    Unfinished,
}

/// The running plugin.
#[derive(Debug)]
pub(super) struct Adapter {
    ticker: Arc<Ticker>,
    /// The tick task's number, once it is scheduled.
    task: Option<u32>,
}

/// What the tick task works with. The scheduler keeps the task's function after it is cancelled, even after the plugin is gone, so this
/// owns all it needs and looks at `enabled` before it touches the host.
#[derive(Debug)]
struct Ticker {
    enabled: AtomicBool,
    ticks: AtomicU32,
    /// When players are asked for next, in nanoseconds of the monotonic clock.
    next_ping: AtomicU64,
    server: HostAddress,
    service: Service,
    surveyor: Mutex<Surveyor>,
}

/// The server's address. Used while the plugin is enabled, on the server thread only, with one exception.
#[derive(Debug)]
struct HostAddress(*mut c_void);

impl HostAddress {
    /// How long the last tick took, in milliseconds. The one thing that is asked on other threads: the host reads a number under a lock of its own.
    fn last_tick_millis(&self) -> f32 {
        // SAFETY: called by the service only, which ends that before `Service::shutdown` waits for anything, and that is called before the plugin is disabled or
        // deleted: the server lives longer. The function may be called on any thread.
        unsafe { Server::borrow(self.0) }.map_or(0.0, Server::current_milliseconds_per_tick)
    }
}

// SAFETY: the address may travel anywhere; it is only followed in `Ticker::tick`, which the scheduler runs on the server thread, and in `last_tick_millis`.
unsafe impl Send for HostAddress {}
// SAFETY: as above; it never changes.
unsafe impl Sync for HostAddress {}

impl Adapter {
    /// Starts the profiler's service and its tick task.
    ///
    /// Gives the lines for the log too: what is wrong with files of ours that the owner may mend.
    pub(super) fn enable(
        server: Server<'_>,
        plugin: Plugin<'_>,
        folder: PathBuf,
    ) -> Result<(Self, Vec<String>), AdapterError> {
        let (service, mut problems) = pure(|| service(folder)).map_err(AdapterError::Panic)?;
        let ticker = Arc::new(Ticker {
            enabled: AtomicBool::new(true),
            ticks: AtomicU32::new(0),
            next_ping: AtomicU64::new(0),
            server: HostAddress(server.as_ptr()),
            service,
            surveyor: Mutex::default(),
        });
        ticker.service.time_collections();
        if let Err(error) = ticker.service.statistics_service().start() {
            problems.push(format!(
                "Processor, memory, disk and network are not measured: no thread could be started ({error})."
            ));
        }
        // From here on dropping ends the service, also when the host throws.
        let mut adapter = Adapter { ticker, task: None };
        let address = HostAddress(server.as_ptr());
        adapter
            .ticker
            .service
            .set_tick_gauge(Arc::new(move || address.last_tick_millis()));
        let function = CxxFunction::new({
            let ticker = Arc::clone(&adapter.ticker);
            move || ticker.tick()
        });
        adapter.task = server
            .scheduler()
            .and_then(|scheduler| scheduler.run_task_timer(plugin, function, 0, 1));
        if adapter.task.is_some() {
            Ok((adapter, problems))
        } else {
            Err(AdapterError::NoTask)
        }
    }

    /// What commands talk to.
    pub(super) fn control(&self) -> &dyn Control {
        &self.ticker.service
    }

    /// A command has ended by a bug of ours.
    pub(super) fn fail(&self) {
        self.ticker.service.fail();
    }

    /// Ends everything: the session (saving its profile), the task, and what was left to say.
    pub(super) fn disable(self, server: Server<'_>) -> Result<(), AdapterError> {
        // Relaxed: written and read on the server thread.
        self.ticker.enabled.store(false, Ordering::Relaxed);
        let ended = pure(|| self.ticker.service.shutdown());
        if let Ok(replies) = pure(|| self.ticker.replies()) {
            deliver(server, &replies, self.ticker.to_console_only());
        }
        if let (Some(scheduler), Some(task)) = (server.scheduler(), self.task) {
            scheduler.cancel_task(task);
        }
        match ended {
            Ok(true) => Ok(()),
            Ok(false) => Err(AdapterError::Unfinished),
            Err(panic) => Err(AdapterError::Panic(panic)),
        }
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        // Relaxed: as above.
        if self.ticker.enabled.swap(false, Ordering::Relaxed) {
            // Deleted without being disabled, or the host threw while the task was being scheduled: our threads must not stay. Nobody is left
            // to be told how it went.
            let _ = pure(|| self.ticker.service.shutdown());
        }
    }
}

impl Ticker {
    /// Once per tick, on the server thread.
    fn tick(&self) {
        // Relaxed: written and read on the server thread.
        if !self.enabled.load(Ordering::Relaxed) {
            return;
        }
        // SAFETY: the plugin is enabled, so its server is alive, and the scheduler runs this on the server thread.
        let Some(server) = (unsafe { Server::borrow(self.server.0) }) else {
            return;
        };

        // Gather. The figures are of the tick before: this one is not over.
        let sample = TickSample {
            at: clock::monotonic(),
            tid: thread::current_tid(),
            mspt: server.current_milliseconds_per_tick(),
        };
        // Relaxed: only the server thread uses it.
        let players = (sample.at.0 >= self.next_ping.load(Ordering::Relaxed)).then(|| {
            self.next_ping
                .store(sample.at.0 + limits::PING_NANOS, Ordering::Relaxed);
            pings(server)
        });
        // Relaxed: only the server thread counts.
        let environment = self
            .ticks
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(ENVIRONMENT_TICKS)
            .then(|| gather(server));

        // Compute.
        let replies = pure(|| {
            if let Some(environment) = environment {
                self.service.set_environment(environment.presentable());
            }
            self.service.on_tick(sample);
            if let Some(players) = players {
                self.service.statistics_service().set_players(sample.at, players);
            }
            self.replies()
        });

        // Deliver. A panic was reported by the panic hook; the session ends, and the next tick tells of it.
        match replies {
            Ok(replies) => {
                if !deliver(server, &replies, self.to_console_only()) {
                    self.service.stop_monitor();
                }
            }
            Err(_) => self.service.fail(),
        }

        // Last: the host may throw.
        self.surveyor.lock().tick(server, sample.at, self.service.world());
    }

    fn to_console_only(&self) -> bool {
        self.service.settings().disable_response_broadcast
    }

    fn replies(&self) -> Vec<Reply> {
        self.service.take_outgoing().into_iter().map(Reply::new).collect()
    }
}

/// The profiler, with what its files say, and what is wrong with those or with the environment.
fn service(folder: PathBuf) -> (Service, Vec<String>) {
    let loaded = settings::load(&folder);
    let (past, damage) = ActivityLog::load(folder.clone());
    let service = Service::new(folder, loaded.settings, past);
    service.recover();
    let of_settings = loaded.problems.iter().map(ToString::to_string);
    let of_environment = service.environment_problem().map(str::to_owned);
    let problems = of_settings.chain(damage).chain(of_environment).collect();
    (service, problems)
}

/// A worded notice.
#[derive(Debug)]
struct Reply {
    to: Requester,
    /// For the player it is for.
    coloured: String,
    /// For the console.
    plain: String,
    /// Whether it is for nobody else, should they have left.
    personal: bool,
}

impl Reply {
    fn new(outgoing: Outgoing) -> Self {
        let line = answer_notice(&outgoing.notice);
        Reply {
            coloured: line.render(Audience::Player),
            plain: line.render(Audience::Console),
            personal: matches!(outgoing.notice, Notice::Monitor(_)),
            to: outgoing.to,
        }
    }
}

/// Sends each reply to whoever asked, if still there; else to the console and, unless the owner does not want it, to the players who may use the profiler.
/// Nobody is remembered by address: players leave. `false` when somebody has left whom alone a reply was for.
fn deliver(server: Server<'_>, replies: &[Reply], to_console_only: bool) -> bool {
    let mut all_there = true;
    for reply in replies {
        let player = match reply.to {
            Requester::Player { unique_id, .. } => server.player_by_id(UniqueId::from_bytes(unique_id)),
            Requester::Console => None,
        };
        match player {
            Some(player) => player.as_sender().send_message(&reply.coloured),
            None if reply.personal && reply.to != Requester::Console => all_there = false,
            None => {
                if let Some(console) = server.console() {
                    console.send_message(&reply.plain);
                }
                if matches!(reply.to, Requester::Player { .. }) && !to_console_only {
                    broadcast(server, &reply.coloured);
                }
            }
        }
    }
    all_there
}

/// How long the packets of each player take.
fn pings(server: Server<'_>) -> Vec<PlayerPing> {
    server
        .online_players()
        .into_iter()
        .map(|player| PlayerPing {
            name: player.name(),
            millis: u32::try_from(player.ping_millis().max(0)).unwrap_or(u32::MAX),
        })
        .collect()
}

/// Sends a line to the players who may use the profiler.
fn broadcast(server: Server<'_>, line: &str) {
    for player in server.online_players() {
        let sender = player.as_sender();
        if Granted::ask(|name| sender.has_permission(name)).covers_profiler() {
            sender.send_message(line);
        }
    }
}

/// What the host says of itself, as it says it.
struct Gathered {
    server_name: String,
    server_version: String,
    minecraft_version: String,
    plugins: Vec<PluginInfo>,
}

fn gather(server: Server<'_>) -> Gathered {
    let plugins = server
        .plugin_manager()
        .map(|manager| manager.plugins())
        .unwrap_or_default();
    let plugins = plugins
        .into_iter()
        .take(limits::PLUGINS)
        .filter_map(|plugin| Some((plugin.description()?, plugin.description_code())))
        .map(|(description, code)| PluginInfo {
            name: description.name.to_text().into_owned(),
            version: description.version.to_text().into_owned(),
            authors: description.authors.to_texts().join(", "),
            description: description.description.to_text().into_owned(),
            native_stem: image::file_of(code).and_then(|file| plugin_stem(&file)),
        })
        .collect();
    Gathered {
        server_name: server.name(),
        server_version: server.version(),
        minecraft_version: server.minecraft_version(),
        plugins,
    }
}

impl Gathered {
    /// Without anything that could break a profile's page or a line of chat.
    fn presentable(self) -> Environment {
        let short = |text: &str| clean_text(text, limits::NAME_CHARS);
        Environment {
            server_name: short(&self.server_name),
            server_version: short(&self.server_version),
            minecraft_version: short(&self.minecraft_version),
            plugins: self
                .plugins
                .iter()
                .map(|plugin| PluginInfo {
                    name: short(&plugin.name),
                    version: short(&plugin.version),
                    authors: short(&plugin.authors),
                    description: short(&plugin.description),
                    native_stem: plugin.native_stem.clone(),
                })
                .collect(),
        }
    }
}
