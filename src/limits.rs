//! Every cap of the profiler, each with its reason. A thing that reaches a cap is counted and shown, never dropped silently.

/// Visible Python frames per thread. Deeper calls are counted, not stored. Real plugins stay under 60; 256 entries keep one thread's shadow
/// stack at two pages.
pub const PYTHON_FRAMES: usize = 256;

/// Threads that can own a shadow stack in one session. A slot is kept until the session ends, so that a sample never reads another
/// thread's frames.
pub const PYTHON_THREADS: usize = 256;

/// Leaf-most native frames kept of one stack.
pub const LEAF_FRAMES: usize = 256;

/// Root-most native frames kept of one stack when it is deeper than [`LEAF_FRAMES`]; one frame says how many were left out between.
pub const ROOT_FRAMES: usize = 256;

/// Default sampling interval in microseconds: 4 ms, spark's own default.
pub const DEFAULT_INTERVAL_MICROS: u64 = 4_000;

/// Shortest interval in microseconds. Below it the handler's own time would dominate.
pub const MIN_INTERVAL_MICROS: u64 = 100;

/// Longest interval in microseconds. Above it a profile of a minute holds too few samples to read.
pub const MAX_INTERVAL_MICROS: u64 = 1_000_000;

/// Shortest `--timeout` in seconds: spark asks for more than 10.
pub const MIN_TIMEOUT_SECONDS: u64 = 11;

/// Longest `--timeout` in seconds: a day. Nobody reads a longer foreground profile.
pub const MAX_TIMEOUT_SECONDS: u64 = 86_400;

/// Longest comment in characters: it is one line on the profile's page.
pub const COMMENT_CHARS: usize = 500;

/// Deepest exported stack. The viewer breaks at about 1000 and spark cuts at 300.
pub const EXPORT_DEPTH: usize = 300;

/// Longest exported class, method or source file name in characters: a longer one stretches the viewer's page.
pub const NAME_CHARS: usize = 150;

/// Longest command line in bytes that is parsed. The client's chat allows 512 characters; a console line with a long comment fits easily.
pub const COMMAND_LINE_BYTES: usize = 4096;

/// Longest piece of foreign text (a word that was not understood, a name) that an answer repeats, in characters: an answer stays one line.
pub const ECHO_CHARS: usize = 40;

/// Plugins that a profile lists. A server with more than this many is not known.
pub const PLUGINS: usize = 1_000;

/// Tick durations kept per window for its median: a minute at 20 ticks per second, and room for servers that catch up after a stall.
pub const WINDOW_TICKS: usize = 2_400;

/// Notices that wait for delivery. They are fetched every tick; a server that stands still for minutes gets the newest ones.
pub const WAITING_NOTICES: usize = 64;

/// Longest wait for a running session to be saved when the plugin is disabled, in seconds. An owner who stops the server waits this long at most.
pub const SHUTDOWN_SECONDS: u64 = 5;

/// Length of a window in nanoseconds: spark's windows are minutes, and the viewer draws them as such.
pub const WINDOW_NANOS: u64 = 60_000_000_000;

/// Nodes of one thread's call tree. The viewer takes seconds for 200,000; at 40 bytes each this many are some 15 MB. Beyond it a stack ends
/// in a frame that says so.
pub const TREE_NODES: usize = 300_000;

/// Root-most frames kept of an exported stack that is deeper than [`EXPORT_DEPTH`].
pub const EXPORT_ROOT_FRAMES: usize = 150;

/// Longest exported class name in characters, so that class and method stay under the 300 at which the viewer's page stretches.
pub const CLASS_CHARS: usize = 100;
