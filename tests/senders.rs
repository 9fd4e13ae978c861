//! Who is answered, and where: the plugin between a server, a console, a player and a command block that are made here, because the real
//! ones need a running game. One test, because a session is process-wide.

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use endstone_spark::command::PERMISSIONS;
use endstone_spark::endstone::abi::{
    CommandExecutorSlots, CommandSenderSlots, CxxFunction, CxxString, CxxVector, Foreign, FunctionBaseSlots,
    LoggerSlots, Message, MessageKind, OfflinePlayerSlots, PermissibleSlots, PlayerSlots, PluginBase,
    PluginManagerSlots, PluginSlots, SchedulerSlots, ServerSlots, Slot, TaskSlots, UniqueId,
};
use endstone_spark::endstone::init_endstone_plugin;
use harness::{Lab, PythonVersion};
use parking_lot::Mutex;

const ID: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const TASK: u32 = 77;

/// What was said, as `receiver: text`.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
static PLAYER_IS_ONLINE: AtomicBool = AtomicBool::new(true);
static PLAYER_MAY: AtomicBool = AtomicBool::new(true);
static CANCELLED: AtomicU32 = AtomicU32::new(0);
/// The callable of the tick task, moved out of the plugin's argument as the real scheduler does.
static TICK: Mutex<Option<usize>> = Mutex::new(None);

/// An object of a class that only has a vtable. The second word is for the part of a player that has one of its own.
#[repr(C)]
struct Object([*const *const c_void; 2]);

unsafe extern "C" fn unexpected() {
    eprintln!("a slot was called that this server does not have");
    std::process::abort();
}

fn vtable(slots: &[(Slot, *const c_void)]) -> *const *const c_void {
    let table = Box::leak(Box::new([unexpected as *const c_void; 128]));
    for (slot, function) in slots {
        table[slot.index] = *function;
    }
    table.as_ptr()
}

fn object(slots: &[(Slot, *const c_void)]) -> usize {
    Box::leak(Box::new(Object([vtable(slots), std::ptr::null()]))) as *const Object as usize
}

struct World {
    server: usize,
    logger: usize,
    console: usize,
    player: usize,
    /// Online too, and may use the profiler.
    helper: usize,
    /// Online too, and may not.
    guest: usize,
    block: usize,
    scheduler: usize,
    manager: usize,
    task: usize,
}

fn world() -> &'static World {
    static WORLD: std::sync::OnceLock<World> = std::sync::OnceLock::new();
    WORLD.get_or_init(|| {
        let sender = |console: *const c_void, player: *const c_void, send: *const c_void| {
            [
                (PermissibleSlots::HAS_PERMISSION, has_permission as *const c_void),
                (CommandSenderSlots::AS_CONSOLE, console),
                (CommandSenderSlots::AS_PLAYER, player),
                (CommandSenderSlots::SEND_MESSAGE, send),
                (CommandSenderSlots::GET_NAME, name as *const c_void),
                (PlayerSlots::GET_PING, ping as *const c_void),
            ]
        };
        let (no, own) = (nothing as *const c_void, itself as *const c_void);
        let player = object(&sender(no, own, to_player as *const c_void));
        let offline = vtable(&[(OfflinePlayerSlots::GET_UNIQUE_ID, unique_id as *const c_void)]);
        // SAFETY: the object made above; its second word is the OfflinePlayer part.
        unsafe { (*(player as *mut Object)).0[1] = offline };
        World {
            helper: object(&sender(no, own, to_helper as *const c_void)),
            guest: object(&sender(no, own, to_guest as *const c_void)),
            console: object(&sender(own, no, to_console as *const c_void)),
            block: object(&sender(no, no, to_block as *const c_void)),
            player,
            logger: object(&[(LoggerSlots::LOG, log as *const c_void)]),
            scheduler: object(&[
                (SchedulerSlots::RUN_TASK_TIMER, run_task_timer as *const c_void),
                (SchedulerSlots::CANCEL_TASK, cancel_task as *const c_void),
            ]),
            manager: object(&[(PluginManagerSlots::GET_PLUGINS, no_plugins as *const c_void)]),
            task: object(&[(TaskSlots::GET_TASK_ID, task_id as *const c_void)]),
            server: object(&[
                (ServerSlots::GET_NAME, name as *const c_void),
                (ServerSlots::GET_VERSION, name as *const c_void),
                (ServerSlots::GET_MINECRAFT_VERSION, name as *const c_void),
                (ServerSlots::GET_PLUGIN_MANAGER, get_manager as *const c_void),
                (ServerSlots::GET_SCHEDULER, get_scheduler as *const c_void),
                (ServerSlots::GET_COMMAND_SENDER, get_console as *const c_void),
                (ServerSlots::GET_PLAYER_BY_ID, get_player as *const c_void),
                (ServerSlots::GET_ONLINE_PLAYERS, online_players as *const c_void),
                (ServerSlots::GET_CURRENT_MSPT, five as *const c_void),
                (ServerSlots::GET_AVERAGE_TPS, five as *const c_void),
            ]),
        }
    })
}

unsafe extern "C" fn nothing(_this: usize) -> usize {
    0
}
unsafe extern "C" fn itself(this: usize) -> usize {
    this
}
unsafe extern "C" fn five(_this: usize) -> f32 {
    5.0
}
unsafe extern "C" fn get_manager(_this: usize) -> usize {
    world().manager
}
unsafe extern "C" fn get_scheduler(_this: usize) -> usize {
    world().scheduler
}
unsafe extern "C" fn get_console(_this: usize) -> usize {
    world().console
}
unsafe extern "C" fn get_player(_this: usize, id: UniqueId) -> usize {
    let online = PLAYER_IS_ONLINE.load(Ordering::Relaxed) && id.to_bytes() == ID;
    if online { world().player } else { 0 }
}
unsafe extern "C" fn task_id(_this: usize) -> u32 {
    TASK
}
unsafe extern "C" fn cancel_task(_this: usize, id: u32) {
    CANCELLED.store(id, Ordering::Relaxed);
}
unsafe extern "C" fn unique_id(this: usize) -> UniqueId {
    assert_eq!(this, world().player + 8, "called on the OfflinePlayer part");
    UniqueId::from_bytes(ID)
}
unsafe extern "C" fn has_permission(this: usize, name: *const CxxString) -> bool {
    // SAFETY: the caller's string.
    let name = unsafe { &*name }.to_text();
    assert!(PERMISSIONS.iter().any(|permission| permission.name == name), "{name}");
    if this == world().guest {
        return false;
    }
    this != world().player || PLAYER_MAY.load(Ordering::Relaxed)
}
unsafe extern "C" fn ping(this: usize) -> i64 {
    if this == world().helper { 40 } else { 250 }
}
unsafe extern "C" fn name(result: *mut CxxString, _this: usize) -> *mut CxxString {
    // SAFETY: room for the result.
    unsafe { result.write(CxxString::new("§6Somebody")) };
    result
}
unsafe extern "C" fn no_plugins(result: *mut CxxVector<usize>, _this: usize) -> *mut CxxVector<usize> {
    // SAFETY: room for the result.
    unsafe { result.write(CxxVector::empty()) };
    result
}
unsafe extern "C" fn online_players(result: *mut CxxVector<usize>, _this: usize) -> *mut CxxVector<usize> {
    let players = [world().helper, world().guest];
    // SAFETY: room for the result.
    unsafe { result.write(players.into_iter().collect()) };
    result
}
unsafe extern "C" fn run_task_timer(
    result: *mut [usize; 2],
    _this: usize,
    _plugin: usize,
    function: *mut CxxFunction,
    delay: u64,
    period: u64,
) -> *mut [usize; 2] {
    assert_eq!((delay, period), (0, 1));
    let callable = CxxFunction::VALUE_FUNC_MEMBERS[1].offset;
    // SAFETY: the caller's function, out of which the callable is moved; room for a shared_ptr that owns nothing.
    unsafe {
        let place = function.byte_add(callable).cast::<usize>();
        *TICK.lock() = Some(place.replace(0));
        result.write([world().task, 0]);
    }
    result
}

fn say(receiver: &str, message: *const Message) {
    // SAFETY: the caller's message.
    let MessageKind::Text(text) = (unsafe { &*message }).kind() else {
        panic!("not plain text")
    };
    SAID.lock().push(format!("{receiver}: {}", text.to_text()));
}
unsafe extern "C" fn to_player(_this: usize, message: *const Message) {
    say("player", message);
}
unsafe extern "C" fn to_console(_this: usize, message: *const Message) {
    say("console", message);
}
unsafe extern "C" fn to_helper(_this: usize, message: *const Message) {
    say("helper", message);
}
unsafe extern "C" fn to_guest(_this: usize, message: *const Message) {
    say("guest", message);
}
unsafe extern "C" fn to_block(_this: usize, message: *const Message) {
    say("block", message);
}
unsafe extern "C" fn log(_this: usize, level: u8, text: *const u8, length: usize) {
    // SAFETY: the caller's string_view.
    let text = unsafe { std::slice::from_raw_parts(text, length) };
    SAID.lock()
        .push(format!("log {level}: {}", String::from_utf8_lossy(text)));
}

/// The plugin, driven through its vtable as Endstone does it.
struct Driven(*mut c_void);

impl Driven {
    fn new(folder: &std::path::Path) -> Driven {
        let settings = folder.join("config.toml");
        if !settings.exists() {
            // No session but those that are asked for.
            std::fs::write(settings, "backgroundProfiler = false\n").unwrap();
        }
        let plugin = init_endstone_plugin();
        assert!(!plugin.is_null());
        let at = |member: &str| {
            PluginBase::LAYOUT
                .members
                .iter()
                .find(|found| found.name == member)
                .unwrap()
                .offset
        };
        // SAFETY: a fresh plugin begins with the members of endstone::Plugin, which the host fills in.
        unsafe {
            plugin.byte_add(at("server_")).cast::<usize>().write(world().server);
            plugin.byte_add(at("logger_")).cast::<usize>().write(world().logger);
            *plugin.byte_add(at("data_folder_")).cast::<CxxString>() =
                CxxString::from_bytes(folder.as_os_str().as_bytes());
        }
        Driven(plugin)
    }

    fn call(&self, slot: Slot) {
        // SAFETY: slots that take nothing and return nothing, of a live plugin.
        unsafe {
            let function: unsafe extern "C-unwind" fn(*mut c_void) = std::mem::transmute(slot.entry(self.0));
            function(self.0);
        }
    }

    /// What is said when `sender` types `line`.
    fn type_line(&self, sender: usize, line: &str) -> Vec<String> {
        SAID.lock().clear();
        let arguments = CxxVector::of_texts(&line.splitn(3, ' ').collect::<Vec<_>>());
        // SAFETY: onCommand of a live plugin, with a live sender and arguments; the command is not looked at.
        let done = unsafe {
            let function: unsafe extern "C-unwind" fn(
                *mut c_void,
                usize,
                *const c_void,
                *const CxxVector<CxxString>,
            ) -> bool = std::mem::transmute(CommandExecutorSlots::ON_COMMAND.entry(self.0));
            function(self.0, sender, std::ptr::null(), &raw const arguments)
        };
        assert!(done);
        std::mem::take(&mut SAID.lock())
    }
}

/// Runs the tick task once, as the scheduler does.
fn tick() {
    let callable = TICK.lock().expect("the tick task was scheduled") as *mut c_void;
    // SAFETY: the callable lives until it is destroyed at the end of the test.
    unsafe {
        let function: unsafe extern "C-unwind" fn(*mut c_void) =
            std::mem::transmute(FunctionBaseSlots::CALL.entry(callable));
        function(callable);
    }
}

/// Ticks until something with `part` is said, and gives it back.
fn tick_until_said(part: &str) -> String {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        tick();
        if let Some(found) = SAID.lock().iter().find(|line| line.contains(part)) {
            return found.clone();
        }
        assert!(Instant::now() < end, "nobody said {part:?}: {:?}", SAID.lock());
        std::thread::yield_now();
    }
}

/// Something like the server's C++ runtime: libc++abi has the type information and the allocation functions.
fn load_cxx_runtime() {
    let lab = Lab::open().unwrap();
    let libraries = lab.endstone(PythonVersion::V3_13).unwrap().site().join("endstone.libs");
    // The second needs the first, which is found by its name once it is there.
    for (start, flags) in [("libunwind", libc::RTLD_LOCAL), ("libc++abi", libc::RTLD_GLOBAL)] {
        let library = std::fs::read_dir(&libraries)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.file_name().unwrap().to_string_lossy().starts_with(start))
            .unwrap();
        let name = CString::new(library.as_os_str().as_bytes()).unwrap();
        // SAFETY: a terminated path.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | flags) };
        assert!(!handle.is_null(), "{}", library.display());
    }
}

const PREFIX: &str = "§8[§e§l⚡§r§8]";

#[test]
fn everybody_is_answered_where_they_are() {
    load_cxx_runtime();
    let folder = tempfile::tempdir().unwrap();
    let plugin = Driven::new(folder.path());
    let world = world();

    // Before it is enabled.
    assert_eq!(
        plugin.type_line(world.console, "profiler info"),
        ["console: [⚡] The profiler is not available; the server's log says why."]
    );
    plugin.call(PluginSlots::ON_LOAD);
    plugin.call(PluginSlots::ON_ENABLE);

    // Before the first tick.
    assert_eq!(
        plugin.type_line(world.console, "profiler start"),
        ["console: [⚡] The server has not ticked yet. Try again when it has finished starting."]
    );
    tick();

    // Each sender gets the answer, the player in colour.
    assert_eq!(
        plugin.type_line(world.console, "profiler stop"),
        ["console: [⚡] The profiler is not running. Start it with /spark profiler start."]
    );
    assert_eq!(
        plugin.type_line(world.player, "profiler stop"),
        [format!(
            "player: {PREFIX} §cThe profiler is not running. Start it with §f/spark profiler start§c."
        )]
    );

    // Those who may not.
    assert_eq!(
        plugin.type_line(world.block, "profiler start"),
        ["block: [⚡] Only players and the console can use spark."]
    );
    PLAYER_MAY.store(false, Ordering::Relaxed);
    assert_eq!(
        plugin.type_line(world.player, "profiler start"),
        [format!(
            "player: {PREFIX} §cThis needs the permission endstone.command.spark."
        )]
    );
    PLAYER_MAY.store(true, Ordering::Relaxed);

    // The result of long work goes to the player who asked for it ...
    let answer = plugin.type_line(world.player, "profiler start --interval 5");
    assert_eq!(
        answer,
        [format!(
            "player: {PREFIX} §7Starting the profiler, one sample every §f5 ms§7. Stop it with §f/spark profiler stop§7."
        )]
    );
    let started = tick_until_said("The profiler is running");
    assert!(
        started.starts_with(&format!("player: {PREFIX} §aThe profiler is running: §f1 thread§7")),
        "{started}"
    );
    let refused = plugin.type_line(world.console, "profiler start").remove(0);
    assert!(
        refused.starts_with("console: [⚡] The profiler is running already: Somebody started it"),
        "{refused}"
    );

    // ... and when they have left, to the console and to those who may use the profiler.
    PLAYER_IS_ONLINE.store(false, Ordering::Relaxed);
    plugin.type_line(world.player, "profiler stop --save-to-file");
    let saved = tick_until_said("Saved");
    assert!(saved.starts_with("console: [⚡] Saved "), "{saved}");
    let said = SAID.lock().clone();
    let broadcast = format!("helper: {PREFIX} §aSaved ");
    assert!(said.iter().any(|line| line.starts_with(&broadcast)), "{said:?}");
    assert!(!said.iter().any(|line| line.starts_with("guest")), "{said:?}");

    // What the console asked for is for the console alone.
    plugin.type_line(world.console, "profiler start");
    tick_until_said("The profiler is running");
    plugin.type_line(world.console, "profiler cancel");
    tick_until_said("nothing was saved");
    let said = SAID.lock().clone();
    assert!(said.iter().all(|line| line.starts_with("console: ")), "{said:?}");

    // What runs is saved when the plugin is disabled, and the task is cancelled.
    plugin.type_line(world.console, "profiler start");
    tick_until_said("The profiler is running");
    SAID.lock().clear();
    plugin.call(PluginSlots::ON_DISABLE);
    let last = SAID.lock().clone();
    assert!(
        last.iter().any(|line| line.starts_with("console: [⚡] Saved ")),
        "{last:?}"
    );
    assert_eq!(CANCELLED.load(Ordering::Relaxed), TASK);
    assert_eq!(std::fs::read_dir(folder.path().join("profiles")).unwrap().count(), 2);

    // A tick that comes late touches nothing, and the function outlives the plugin, as it does in the real scheduler.
    SAID.lock().clear();
    tick();
    plugin.call(Slot {
        index: 1,
        ..PluginSlots::ON_LOAD
    });
    tick();
    let callable = TICK.lock().take().unwrap() as *mut c_void;
    // SAFETY: the scheduler's share of the callable, given up once.
    unsafe {
        let destroy: unsafe extern "C" fn(*mut c_void) =
            std::mem::transmute(FunctionBaseSlots::DESTROY_DEALLOCATE.entry(callable));
        destroy(callable);
    }
    assert!(SAID.lock().is_empty(), "{:?}", SAID.lock());

    // What is wrong with the owner's files is in the log. Without broadcast, results for somebody who has left are for the console alone.
    let settings = "disableResponseBroadcast = true\nviewerUrl = 5\nbackgroundProfiler = false\n";
    std::fs::write(folder.path().join("config.toml"), settings).unwrap();
    std::fs::write(folder.path().join("activity.json"), "{").unwrap();
    let plugin = Driven::new(folder.path());
    plugin.call(PluginSlots::ON_ENABLE);
    let said = SAID.lock().clone();
    assert!(
        said[0].starts_with("log 3: plugins/spark/config.toml, line 2: viewerUrl must be an address"),
        "{said:?}"
    );
    assert!(
        said[1].ends_with(
            "The list of past profiles cannot be used: activity.json is damaged in line 1. \
             It is kept as plugins/spark/activity.json.damaged, and a new list is begun."
        ) && said.len() == 2,
        "{said:?}"
    );
    tick();
    plugin.type_line(world.player, "profiler start");
    tick_until_said("The profiler is running");
    plugin.type_line(world.player, "profiler cancel");
    tick_until_said("nothing was saved");
    let said = SAID.lock().clone();
    assert!(said.iter().all(|line| !line.starts_with("helper")), "{said:?}");

    // Deleted without being disabled, while profiling: no thread of ours stays.
    plugin.type_line(world.console, "profiler start");
    tick_until_said("The profiler is running");
    assert!(own_threads() > 0);
    plugin.call(Slot {
        index: 1,
        ..PluginSlots::ON_LOAD
    });
    // A thread leaves the list a moment after it was joined.
    let end = Instant::now() + Duration::from_secs(60);
    while own_threads() > 0 {
        assert!(Instant::now() < end, "{} threads are left", own_threads());
        std::thread::yield_now();
    }
    SAID.lock().clear();
    tick();
    assert!(SAID.lock().is_empty(), "{:?}", SAID.lock());
}

/// How many threads of the profiler live.
fn own_threads() -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok())
        .filter(|name| name.starts_with("spark-"))
        .count()
}
