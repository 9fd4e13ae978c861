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

/// Shortest `--timeout` in seconds; spark asks for the same.
pub const MIN_TIMEOUT_SECONDS: u64 = 10;

/// Longest `--timeout` in seconds: a day. Nobody reads a longer foreground profile.
pub const MAX_TIMEOUT_SECONDS: u64 = 86_400;

/// Longest comment in characters: it is one line on the profile's page.
pub const COMMENT_CHARS: usize = 500;

/// Deepest exported stack. The viewer breaks at about 1000 and spark cuts at 300.
pub const EXPORT_DEPTH: usize = 300;

/// Longest exported class, method or source file name in characters: a longer one stretches the viewer's page.
pub const NAME_CHARS: usize = 150;

/// Python code objects that one session names; each is kept alive until the session ends. A large server with many plugins runs some 20,000
/// different functions; 65,536 of them cost about 30 MB. Beyond it a program makes new code all the time, and its names would say nothing.
pub const CODE_OBJECTS: usize = 65_536;

/// Entries of a thread's cache from code object to id: a tick runs some hundred different functions. 16 bytes each.
pub const CODE_CACHE: usize = 1_024;

/// Characters kept of a Python name or file. Real ones stay under 200; exported ones are cut further.
pub const CODE_TEXT_CHARS: usize = 512;

/// Registrations that may be running inside each other on one thread: a finaliser that runs while a code object is looked at runs code itself.
pub const NESTED_REGISTRATIONS: u32 = 4;

/// Seconds to wait for the interpreter's lock when a session starts or ends. C extensions may hold it for a while; a server that does not
/// give it away for this long profiles natively.
pub const INTERPRETER_LOCK_SECONDS: u64 = 20;

/// Seconds to wait for Python work of a session's start or end once it has the interpreter's lock.
pub const INTERPRETER_WORK_SECONDS: u64 = 60;

/// Events that calibration records: its script causes fewer than 100.
pub const CALIBRATION_EVENTS: usize = 256;

/// Distance in bytes from a callback's stack pointer to its eval frame's caller: measured 672 to 960. More than a few pages is no
/// interpreter we know.
pub const ANCHOR_DISTANCE: u64 = 16_384;

/// Python frames looked at when a thread is first seen in the middle of its work: four times CPython's default recursion limit.
pub const SEEDED_FRAMES: usize = 4_096;
