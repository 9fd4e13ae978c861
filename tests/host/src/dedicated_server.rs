//! `DedicatedServer::start` and the server thread: the order in which the real server starts, ticks and ends.
//!
//! ```text
//! main thread                                         server thread (MC_SERVER)
//! Endstone's detour of DedicatedServer::start:
//!   starts Python, releases the GIL, closes stdin
//!   `start` below:
//!     EndstoneServer: loads plugins (onLoad)
//!     init: enables STARTUP plugins
//!     starts the server thread  ------------------>   attaches to Python
//!     waits                                           enables POSTWORLD plugins, ServerLoadEvent
//!     reads the console  <--------------------------  restores stdin
//!       lines                ---------------------->  between two ticks: ServerCommandEvent, PluginCommand::execute
//!                                                     onServerUpdateStart, Level::tick (hooked), onServerUpdateEnd
//!     waits for the thread   <----------------------  stop: onServerThreadStopped = disable plugins, destroy EndstoneServer
//!   takes the GIL again (the real server never finalises Python either)
//! main returns 0: exit handlers and static destructors run
//! ```
//! With `--no-python` the detour is left out, since it would start Python.

use std::ffi::c_void;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};

use endstone_spark::endstone::abi::CxxString;

use crate::console::Console;
use crate::endstone_server::EndstoneServer;
use crate::error::HostError;
use crate::image;
use crate::level::{self, Level};
use crate::options::Options;
use crate::orders::Orders;
use crate::own_python;
use crate::runtime::{Runtime, symbol};
use crate::say::say;
use crate::server_instance::ServerInstance;
use crate::world::World;

/// Ticks after which the server counts as ready: every plugin's first task has run.
const READY_TICKS: u64 = 5;
/// Ticks that a late server makes up for before it gives up on them.
const MAX_TICKS_BEHIND: u64 = 20;
/// Byte offsets in ServerInstanceLifecycleListener of its optional GIL guards and of their "engaged" flags.
const GIL_ACQUIRE: usize = 0x8;
const GIL_ACQUIRE_ENGAGED: usize = 0x18;
const GIL_RELEASE: usize = 0x20;

#[derive(Debug)]
pub struct Context {
    pub options: Options,
    pub runtime: Runtime,
}

/// What [`start`] needs; a C++ function in between cannot pass it on.
static CONTEXT: OnceLock<Context> = OnceLock::new();

/// Runs the server to its end on the calling thread, through Endstone's detour if there is to be Python. Returns the exit code.
pub fn run(context: Context) -> i32 {
    let (python, own_python) = (context.options.python, context.options.own_python);
    if CONTEXT.set(context).is_err() {
        return 1;
    }
    if own_python && let Err(reason) = own_python::start() {
        say(reason);
        return 1;
    }
    // The real DedicatedServer holds the console reader at +0x50, which only `setLevel` asks for.
    let mut dedicated_server = [0u64; 64];
    let (session, arguments) = (CxxString::new("stand-in"), [0u64; 64]);
    let this: *mut c_void = dedicated_server.as_mut_ptr().cast();
    if python {
        // SAFETY: the planted code at this address has the signature of `start`; Endstone hooked it.
        unsafe {
            let hooked: unsafe extern "C-unwind" fn(*mut c_void, *const c_void, *const c_void) -> i32 =
                std::mem::transmute(image::at(image::DEDICATED_SERVER_START));
            hooked(this, (&raw const session).cast(), arguments.as_ptr().cast())
        }
    } else {
        start(this, (&raw const session).cast(), arguments.as_ptr().cast())
    }
}

/// The original `DedicatedServer::start`: 0 when the server ended well.
#[unsafe(export_name = "_ZN15DedicatedServer5startERKNSt3__112basic_stringIcNS0_11char_traitsIcEENS0_9allocatorIcEEEERKN7Bedrock19ActivationArgumentsE")]
pub extern "C-unwind" fn start(_this: *mut c_void, _session: *const c_void, _arguments: *const c_void) -> i32 {
    match CONTEXT.get().ok_or(HostError::NotStarted).and_then(run_server) {
        Ok(()) => 0,
        Err(error) => {
            say(&error.to_string());
            1
        }
    }
}

fn run_server(context: &'static Context) -> Result<(), HostError> {
    let console = Arc::new(Console::new().map_err(HostError::Thread)?);
    let instance = ServerInstance::new(console.clone());
    let plan = context.options.world;
    let world = plan.map(|plan| World::make(&context.runtime, plan)).transpose()?;
    let begun = level::now();
    let server = EndstoneServer::create(&context.runtime, instance, world)?;
    say(&format!("Endstone {}", server.version()));
    say(&format!("plugins loaded in {}", millis_since(begun)));

    let (started, wait_started) = channel();
    let thread = ServerThread {
        listener: Listener::find(&context.runtime)?,
        stdin_restore: context.runtime.address(symbol::STDIN_RESTORE)?,
        instance,
        server,
        console: console.clone(),
        options: &context.options,
        started,
    };
    let handle = spawn(thread)?;
    // Standard input belongs to nobody until the server thread has restored it.
    if wait_started.recv().is_ok() {
        console.read_lines();
    }
    // SAFETY: the handle is from pthread_create and joined once.
    unsafe { libc::pthread_join(handle, std::ptr::null_mut()) };
    Ok(())
}

fn millis_since(begun: u64) -> String {
    format!("{:.3} ms", (level::now() - begun) as f64 / 1e6)
}

/// A plain POSIX thread, so that the profile's root is the server's own function.
fn spawn(thread: ServerThread) -> Result<libc::pthread_t, HostError> {
    let argument = Box::into_raw(Box::new(thread));
    let mut handle = 0;
    // SAFETY: the attributes are the defaults; the new thread takes over the box.
    let error = unsafe { libc::pthread_create(&raw mut handle, std::ptr::null(), server_thread, argument.cast()) };
    if error != 0 {
        // SAFETY: there is no thread, so the box is still ours.
        drop(unsafe { Box::from_raw(argument) });
        return Err(HostError::Thread(std::io::Error::from_raw_os_error(error)));
    }
    Ok(handle)
}

/// Endstone's listener to the server's life: the real object and its real functions.
#[derive(Debug, Clone, Copy)]
struct Listener {
    object: usize,
    update_start: usize,
    update_end: usize,
    thread_stopped: usize,
    gil_acquire: usize,
    gil_release_emplace: usize,
}

type Notice = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void) -> u32;

impl Listener {
    fn find(runtime: &Runtime) -> Result<Listener, HostError> {
        Ok(Listener {
            object: runtime.address(symbol::LISTENER)?,
            update_start: runtime.address(symbol::UPDATE_START)?,
            update_end: runtime.address(symbol::UPDATE_END)?,
            thread_stopped: runtime.address(symbol::THREAD_STOPPED)?,
            gil_acquire: runtime.address(symbol::GIL_ACQUIRE)?,
            gil_release_emplace: runtime.address(symbol::GIL_RELEASE_EMPLACE)?,
        })
    }

    fn notify(&self, function: usize, instance: ServerInstance) {
        // SAFETY: one of the listener's functions, with their common signature, on the server thread.
        unsafe {
            let function: Notice = std::mem::transmute(function);
            function(self.object as *mut c_void, instance.address());
        }
    }

    /// The first half of onServerThreadStarted: a Python thread state for this thread, with the GIL released. The second half hooks
    /// Bedrock's level, which is not here.
    fn attach_python(&self) {
        // SAFETY: the guards are constructed in the listener's own optionals, as its function does; onServerThreadStopped destroys them.
        unsafe {
            let acquire: unsafe extern "C-unwind" fn(*mut c_void) = std::mem::transmute(self.gil_acquire);
            let emplace_release: unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void =
                std::mem::transmute(self.gil_release_emplace);
            acquire((self.object + GIL_ACQUIRE) as *mut c_void);
            *((self.object + GIL_ACQUIRE_ENGAGED) as *mut bool) = true;
            emplace_release((self.object + GIL_RELEASE) as *mut c_void);
        }
    }
}

/// What the server thread starts with, handed over by the main thread.
struct ServerThread {
    listener: Listener,
    stdin_restore: usize,
    instance: ServerInstance,
    server: EndstoneServer,
    console: Arc<Console>,
    options: &'static Options,
    started: Sender<()>,
}

#[unsafe(export_name = "_ZN14ServerInstance13_serverThreadEv")]
extern "C" fn server_thread(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `spawn` passes a box that is now ours.
    let mut thread = unsafe { Box::from_raw(argument.cast::<ServerThread>()) };
    // SAFETY: a C string of less than 16 bytes.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), c"MC_SERVER".as_ptr()) };
    thread.begin();
    thread.tick_until_stopped();
    thread.end();
    std::ptr::null_mut()
}

impl ServerThread {
    fn begin(&mut self) {
        self.instance.adopt_server_thread();
        World::adopt_server_thread();
        if self.options.python {
            self.listener.attach_python();
        }
        let begun = level::now();
        self.server.enable_plugins();
        say(&format!("plugins enabled in {}", millis_since(begun)));
        self.server.call_load_event();
        // SAFETY: a function without arguments that puts the saved standard input back.
        unsafe { std::mem::transmute::<usize, unsafe extern "C-unwind" fn()>(self.stdin_restore)() };
        // The main thread waits for this; it cannot have gone.
        let _ = self.started.send(());
    }

    fn tick_until_stopped(&mut self) {
        let tick_nanos = self.options.tick_ms * 1_000_000;
        let mut level = Level::new(self.options.load, tick_nanos);
        let mut orders = Orders::new(self.server, self.console.clone());
        let mut deadline = level::now();
        while !self.console.is_stopping() {
            level.current_tick += 1;
            update(self, &mut level, &mut orders);
            if level.current_tick == READY_TICKS {
                say("ready");
            }
            deadline += tick_nanos;
            let now = level::now();
            if now > deadline + MAX_TICKS_BEHIND * tick_nanos {
                deadline = now;
            }
            sleep_until(deadline);
        }
    }

    fn end(&mut self) {
        say("stopping");
        self.listener.notify(self.listener.thread_stopped, self.instance);
        say("plugins disabled and unloaded");
    }
}

/// One turn of the server's main loop.
#[inline(never)]
#[unsafe(export_name = "_ZN14ServerInstance7_updateEv")]
extern "C-unwind" fn update(thread: &ServerThread, level: &mut Level, orders: &mut Orders) {
    orders.run_pending(level);
    let begun = level::now();
    thread.listener.notify(thread.listener.update_start, thread.instance);
    let now = level::now();
    level.beats.add(now);
    level.tasks.begin(now);
    // SAFETY: the planted code at this address has this signature; Endstone's detour is in its place and calls the original.
    unsafe {
        let hooked: unsafe extern "C-unwind" fn(*mut Level) = std::mem::transmute(image::at(image::LEVEL_TICK));
        hooked(level);
    }
    thread.listener.notify(thread.listener.update_end, thread.instance);
    level.lengths.add(level::now() - begun);
    std::hint::black_box(&thread.instance);
}

/// Sleeps until the monotonic clock reads `deadline`, also when signals interrupt the sleep.
#[inline(never)]
#[unsafe(export_name = "_ZN14ServerInstance19_sleepUntilNextTickEm")]
extern "C" fn sleep_until(deadline: u64) {
    let time = libc::timespec {
        tv_sec: (deadline / 1_000_000_000) as libc::time_t,
        tv_nsec: (deadline % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `time` is readable; an absolute sleep needs no remainder.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
    std::hint::black_box(&time);
}
