//! Every cap of the profiler, each with its reason. A thing that reaches a cap is counted and shown, never dropped silently.

/// Visible Python frames per thread. Deeper calls are counted, not stored. Real plugins stay under 60; 256 entries keep one thread's shadow
/// stack at two pages.
pub const PYTHON_FRAMES: usize = 256;

/// Threads that can own a shadow stack in one session. A slot is kept until the session ends, so that a sample never reads another
/// thread's frames.
pub const PYTHON_THREADS: usize = 256;

/// Taken shadow stacks at which a background session attaches to Python anew: three quarters of [`PYTHON_THREADS`], so that no thread is refused meanwhile.
pub const RENEWED_STACKS: usize = PYTHON_THREADS * 3 / 4;

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

/// Python functions (by what a profile shows of them) that one session names. A large server with many plugins runs some 20,000
/// different ones; 65,536 of them cost about 30 MB. Beyond it a program makes new names all the time, and they would say nothing.
pub const CODE_OBJECTS: usize = 65_536;

/// Entries of a thread's cache from code object to id: a tick runs some hundred different functions. 16 bytes each.
pub const CODE_CACHE: usize = 1_024;

/// Characters kept of a Python name or file. Real ones stay under 200; exported ones are cut further.
pub const CODE_TEXT_CHARS: usize = 512;

/// Reasons that a session gives for not following Python in full: there are not many more, and they are read in chat.
pub const DEGRADED_REASONS: usize = 4;

/// Registrations that may be running inside each other on one thread: a finaliser that runs while a code object is looked at runs code itself.
pub const NESTED_REGISTRATIONS: u32 = 4;

/// Seconds to wait for the interpreter's lock when a session starts or ends. C extensions may hold it for a while; a server that does not
/// give it away for this long profiles natively.
pub const INTERPRETER_LOCK_SECONDS: u64 = 20;

/// How long work with the interpreter's lock is waited for when the interpreter is about to end and when it has begun to, in milliseconds. It takes some; a thread that lost the lock in
/// the middle never gets it again.
pub const ENDING_WORK_MILLIS: u64 = 1_000;

/// Seconds to wait for Python work of a session's start or end once it has the interpreter's lock.
pub const INTERPRETER_WORK_SECONDS: u64 = 60;

/// Events that calibration records: its script causes fewer than 100.
pub const CALIBRATION_EVENTS: usize = 256;

/// Distance in bytes from a callback's stack pointer to its eval frame's caller: measured 672 to 960. More than a few pages is no
/// interpreter we know.
pub const ANCHOR_DISTANCE: u64 = 16_384;

/// Shortest time between two audits of one thread's shadow stack, in nanoseconds: at ten a second of some 10 to 50 microseconds each they
/// cost less than a thousandth of the thread's time.
pub const AUDIT_NANOS: u64 = 100_000_000;

/// Audits of one thread that find a wrong frame before the thread is shown natively: one is an accident that was mended, several say that its events do not
/// tell what runs.
pub const AUDIT_DISAGREEMENTS: u8 = 3;

/// Audits with a wrong frame whose stacks are kept as text, for whoever looks for the cause: the first ones; later ones are often their consequences.
pub const WRONG_STACKS: usize = 4;

/// Innermost functions of a stack that is kept as text.
pub const WRONG_STACK_FUNCTIONS: usize = 16;

/// Most of a stack that is looked at for a greenlet's beginning without unwinding, in bytes: some ten times what the deepest servers' stacks take;
/// reading it takes as long as unwinding does.
pub const SCANNED_STACK_BYTES: u64 = 65_536;

/// Names that are kept of threads that swap stacks.
pub const SWAPPING_THREADS: usize = 8;

/// Enter events after an audit that are looked at in search of one that tells where frames stand that ran before their thread was seen. An event
/// loop comes back to its outermost functions within a few dozen calls; more would slow a thread whose frames cannot be placed.
pub const PLACING_TRIES: u32 = 64;

/// How often it is made sure, with the interpreter's lock, that nobody has replaced our callbacks while events come, in seconds. It is a
/// visit of some microseconds; until it, audits notice what goes wrong.
pub const TOOL_CHECK_SECONDS: u64 = 10;

/// The same while no events come: either nobody runs Python, and then the lock is free, or our callbacks are gone.
pub const SILENT_TOOL_CHECK_SECONDS: u64 = 2;

/// Python frames looked at when a thread is first seen in the middle of its work: four times CPython's default recursion limit.
pub const SEEDED_FRAMES: usize = 4_096;
/// Longest command line in bytes that is parsed. The client's chat allows 512 characters; a console line with a long comment fits easily.
pub const COMMAND_LINE_BYTES: usize = 4096;

/// Longest piece of foreign text (a word that was not understood, a name) that an answer repeats, in characters: an answer stays one line.
pub const ECHO_CHARS: usize = 40;

/// Plugins that a profile lists. A server with more than this many is not known.
pub const PLUGINS: usize = 1_000;
/// Largest unwind section that is copied, in bytes. The largest known server has 20 MiB of it; a larger figure is a damaged header.
pub const UNWIND_SECTION_BYTES: usize = 256 << 20;

/// Most functions of one module that unwind data is indexed for. At 8 bytes each this is 64 MiB; the largest known server has under a million.
pub const UNWIND_ENTRIES: usize = 8 << 20;

/// Longest single entry of unwind data that is interpreted, in bytes: it bounds the time a handler can spend on one. The longest seen in
/// interpreters' main loops are a few thousand.
pub const UNWIND_ENTRY_BYTES: u32 = 64 << 10;

/// Most frames the unwinder steps over before it gives a stack up: at some ten nanoseconds each this bounds the handler to a few tenths of a millisecond.
pub const UNWIND_STEPS: u32 = 16_384;

/// Signal frames one stack may hold. Each may move the stack pointer anywhere (alternate stacks), so they are counted to rule out loops.
pub const SIGNAL_FRAMES: u32 = 8;

/// Unwinding contexts: handlers that can run at the same time. The sampler asks one thread after the other, so more than two are rarely in use.
pub const UNWIND_CONTEXTS: usize = 8;

/// Rules at call addresses that one unwinding context remembers; at 24 bytes each they stay within the second-level cache.
pub const CACHED_RULES: usize = 4096;

/// Ranges whose rule one unwinding context remembers, by blocks of 128 bytes: an interpreter's loop has 300 of these. 32 bytes each.
pub const CACHED_RANGES: usize = 1024;

/// Capture slots: requests that can be open at the same time. With all threads of a server selected, each may have one; 17 KB each.
pub const CAPTURE_SLOTS: usize = 256;

/// Stack that must be left below the interrupted frame for the handler to work, in bytes.
pub const HANDLER_STACK_BYTES: u64 = 32 << 10;

/// Unloaded modules that are remembered, so that a library that comes and goes stays one module. Programs that do so use a handful.
pub const UNLOADED_MODULES: usize = 64;

/// Most bytes read of one run of notes in search of the build id. It stands in the first hundred.
pub const NOTE_BYTES: usize = 64 << 10;

/// Longest `--only-ticks-over` in milliseconds: a server that does not tick for a minute is killed by its watchdog.
pub const MAX_TICK_MILLIS: u64 = 60_000;

/// Samples that wait for the end of their tick. At 4 ms that is a tick of 17 minutes on one thread, of 10 seconds on a hundred; 80 bytes each.
pub const WAITING_SAMPLES: usize = 262_144;

/// Frames of the stacks of these samples, 16 bytes each: 32 MB. A stack that repeats counts once.
pub const WAITING_FRAMES: usize = 2_000_000;

/// Slow ticks that are remembered for samples that come later than their tick's end is known. An answer takes a second at most ([`ANSWER_NANOS`]).
pub const SLOW_TICKS: usize = 1_024;

/// Ends of ticks that wait for the aggregator, which fetches them four times a second.
pub const TICK_ENDS: usize = 4_096;

/// Tick durations kept per window for its median: a minute at 20 ticks per second, and room for servers that catch up after a stall.
pub const WINDOW_TICKS: usize = 2_400;

/// Notices that wait for delivery. They are fetched every tick; a server that stands still for minutes gets the newest ones.
pub const WAITING_NOTICES: usize = 64;

/// Longest wait for a running session to be saved, and for a recovery to notice, when the plugin is disabled, in milliseconds. With [`WATCHER_STOP_MILLIS`] that makes the two
/// seconds that an owner who stops or reloads the server waits at most.
pub const SHUTDOWN_MILLIS: u64 = 1_500;

/// How long a session that is saved while the plugin is being disabled waits for the interpreter to let it go, in milliseconds: a third of [`SHUTDOWN_MILLIS`]. The names of its
/// functions are taken down before.
pub const SHUTDOWN_INTERPRETER_MILLIS: u64 = 500;

/// How long files are read for names of native functions then, in milliseconds: two thirds of it, so that the profile can still be written. A function without a name is shown
/// by its place, and the session's journal stays for the next start.
pub const SHUTDOWN_NAMES_MILLIS: u64 = 1_000;

/// Length of a window in nanoseconds: spark's windows are minutes, and the viewer draws them as such.
pub const WINDOW_NANOS: u64 = 60_000_000_000;

/// Nodes of one thread's call tree. The viewer takes seconds for 200,000; at 40 bytes each this many are some 15 MB. Beyond it a stack ends
/// in a frame that says so.
pub const TREE_NODES: usize = 300_000;

/// Frames of all call trees of a session together. At some 70 bytes each they are 40 MB; the viewer would take ten seconds for as many.
pub const SESSION_NODES: usize = 600_000;

/// Frames that each thread's tree can have even when the others took all of [`SESSION_NODES`]: enough to show where it is. With as many threads as are
/// sampled they are 20 MB more.
pub const THREAD_NODES: usize = 256;

/// Times of a session, one for each frame and minute in which it was leaf-most, at 16 bytes each: 128 MB. A thread has some thousand in a minute, so a day of
/// one thread fits. Beyond it a minute's new ones are booked at one frame that says so.
pub const SESSION_TIMES: usize = 8_000_000;

/// Default interval of the background profiler in milliseconds: 100 samples a second of an hour are plenty, for a quarter of the usual cost.
pub const BACKGROUND_INTERVAL_MILLIS: u64 = 10;

/// Most that Python's callbacks may take of a thread while the background profiler follows Python, in thousandths: nobody asked for it.
pub const BACKGROUND_CALLBACK_PERMILLE: u64 = 5;

/// How long they are watched before that is decided, in seconds: a plugin's busy second is no reason.
pub const BACKGROUND_CALLBACK_SECONDS: u64 = 10;

/// What one monitoring event costs, in nanoseconds: half of what a call and its return cost more, which is 58 in the middle of all versions of Python and kinds of work
/// in docs/performance.md (39 to 110).
pub const CALLBACK_NANOS: u64 = 29;

/// Minutes that an endless session keeps: as many as the viewer shows well, and as many as spark keeps.
pub const ENDLESS_MINUTES: u32 = 60;

/// Root-most frames kept of an exported stack that is deeper than [`EXPORT_DEPTH`].
pub const EXPORT_ROOT_FRAMES: usize = 150;

/// Longest exported class name in characters, so that class and method stay under the 300 at which the viewer's page stretches.
pub const CLASS_CHARS: usize = 100;

/// Samples that wait for the aggregator. At 4 ms and one thread this is half a minute; each holds one or two kilobytes.
pub const QUEUED_SAMPLES: usize = 8192;

/// Stacks whose memory is kept for the next sample: a quarter of a second of one thread at 1 ms, between two looks of the aggregator. One or two kilobytes
/// each.
pub const SPARE_STACKS: usize = 256;

/// Longest wait for a thread's answer, in nanoseconds. A thread that waits for the disk answers when it is done, and its stack is then right for all of
/// that time; a second of it is the most that one sample should stand for.
pub const ANSWER_NANOS: u64 = 1_000_000_000;

/// How often an unanswered thread is asked for whether it blocks the signal, in nanoseconds.
pub const BLOCKED_CHECK_NANOS: u64 = 50_000_000;

/// How often the list of modules is compared with the loader's counters, in nanoseconds: half of the time within which a change must be taken up.
pub const MODULES_CHECK_NANOS: u64 = 100_000_000;

/// How often threads' names and lives are looked at, in nanoseconds: new ones are to join within a tenth of a second, which leaves a tenth of that for the look itself.
pub const THREADS_CHECK_NANOS: u64 = 90_000_000;

/// How often a thread's stack bounds are looked up again when it runs outside of those known, in nanoseconds.
pub const BOUNDS_CHECK_NANOS: u64 = 1_000_000_000;

/// Longest wait, in nanoseconds, for handlers that are running when the sampler stops. One takes microseconds; a thread that is not scheduled for
/// longer leaves nothing behind but its slot.
pub const STOP_NANOS: u64 = 200_000_000;

/// Longest wait for an answer that has not begun when the sampler stops, in nanoseconds: a thread that runs has begun long before.
pub const STOP_ANSWER_NANOS: u64 = 10_000_000;

/// Longest distance between two looks at a thread that has not run for long, in nanoseconds. Looks at one that runs are never further apart than the
/// interval asks for.
pub const IDLE_LOOK_NANOS: u64 = 64_000_000;

/// Looks in a row at which a thread had not run, before the distance of looks at it doubles: at 4 ms a thread that works once a tick (50 ms) is never among
/// these.
pub const IDLE_LOOKS: u32 = 16;

/// Time that the sampler came too late by, in nanoseconds, from which on it is looked up whether the process was stopped. A shorter stop is hardly seen in a
/// profile of a minute, and the sampler's own work takes less.
pub const PAUSE_NANOS: u64 = 500_000_000;

/// CPU time, in nanoseconds, within which a thread whose system call we have cut short may still be on its way back into it: a loop around the call takes some
/// microseconds, some tens with cold caches. One that works is asked again after that much of its work.
pub const WAY_BACK_NANOS: u64 = 100_000;

/// Looks at a thread that is just falling asleep, before it is taken for one that runs. Each takes some microseconds, and so does falling asleep.
pub const SETTLING_LOOKS: u32 = 3;

/// How often each thread's name is read, in nanoseconds; that of a thread younger than this is read whenever threads are looked at, because most threads get
/// their name a moment after their birth.
pub const NAMES_CHECK_NANOS: u64 = 1_000_000_000;

/// Threads that are sampled at a time. Linux servers have some hundred; each costs a file descriptor, so a program with more of them keeps its own.
pub const SAMPLED_THREADS: usize = 1024;

/// Threads that ended during a session and have a tree of their own; later ones share. More would not be looked at one by one.
pub const ENDED_THREADS: usize = 500;

/// Size of one compiled pattern for thread names, in bytes. Useful ones take a few thousand; `a{2000}{2000}` would take all memory.
pub const PATTERN_BYTES: usize = 64 << 10;

/// How often the figures of the handler's cost are made, in nanoseconds: nobody looks more often, and each time some thousand counters are read.
pub const COSTS_NANOS: u64 = 100_000_000;

/// Longest sleep of the sampler in nanoseconds, so that a stop is noticed soon at long intervals.
pub const SLEEP_NANOS: u64 = 50_000_000;
/// Names tried for a new file. Exports of one second get a number each; a hundred of them means that something else is wrong.
pub const FILE_NAME_TRIES: usize = 100;

/// Buffer of a file that is being written, in bytes: few system calls, little memory.
pub const WRITE_BUFFER_BYTES: usize = 256 * 1024;

/// Largest file that is read for names: larger than any server binary, and offsets stay far from overflow.
pub const SYMBOL_FILE_BYTES: u64 = 2 << 30;

/// Largest symbol and string table together of one module: ten times that of a large server with all its symbols.
pub const SYMBOL_TABLE_BYTES: u64 = 512 << 20;

/// Largest image of the kernel's own library: it has two or three pages.
pub const VDSO_BYTES: u64 = 1 << 20;

/// Bytes of a symbol that are looked at. C++ templates reach 20 KiB.
pub const MANGLED_BYTES: usize = 64 * 1024;

/// Longest demangled name in bytes; it is shortened for the viewer afterwards.
pub const DEMANGLED_BYTES: usize = 64 * 1024;

/// How long the start of a session waits for the interpreter before it goes on natively, in milliseconds. Attaching takes some 20 ms when nobody holds the
/// interpreter's lock; an owner who waits longer for an answer thinks that the command was lost.
pub const ATTACH_WAIT_MILLIS: u64 = 2_000;

/// How often a thread that is inside a callback when a session ends is waited for, 10 ms each: a second. Callbacks take microseconds unless a
/// finaliser runs inside one.
pub const CALLBACK_EXITS: u32 = 100;

/// How often the end of a session tries again to make the thread that lets Python go, after 10 ms each: half a second.
pub const THREAD_RETRIES: u32 = 50;

/// Addresses that are remembered as callers of Python code. An interpreter has some dozens; beyond this an eval frame between two events is shown as such.
pub const CARRIERS: usize = 4_096;

/// Largest table that is unpacked from a stripped file (`.gnu_debugdata`): that of a large server would have 60 MB.
pub const EMBEDDED_TABLE_BYTES: u64 = 128 << 20;

/// Memory for unpacking such a table, in KiB: xz's highest setting needs 65 MiB.
pub const XZ_MEMORY_KIB: u32 = 80 << 10;

/// Largest debug information of one module that is searched for names, in bytes, to stay within the memory that naming may take.
pub const DEBUG_INFO_BYTES: u64 = 192 << 20;

/// References followed from a function's debug information to its name: copy, original, declaration; more is a loop.
pub const DWARF_REFERENCES: usize = 8;

/// Threads that read modules' files at the same time. A server loads one large file and some hundred small ones: more would wait for the large one.
pub const SYMBOL_THREADS: usize = 4;

/// Largest profile as gzip, in bytes. The viewer's server takes 10 MB by default; the rest is room for what it does not count as we do.
pub const PROFILE_GZIP_BYTES: u64 = 8 << 20;

/// Largest profile as it is written, in bytes. The viewer's page holds all of it, with a number for every frame and minute: 200,000 frames of an hour are
/// 110 MB, of a day they would be 2 GB.
pub const PROFILE_BYTES: u64 = 256 << 20;

/// Tries to fold a profile so that it fits. One or two is the rule.
pub const FOLD_ROUNDS: usize = 12;

/// Bytes of profiles that are kept: a year of one a day.
pub const PROFILE_FOLDER_BYTES: u64 = 1 << 30;

/// Recovered profiles that are kept: the last ones of a server that crashes again and again say what there is to know.
pub const RECOVERED_PROFILES: usize = 20;

/// Age in seconds from which a temporary file is taken for one that a killed process left: writing one takes seconds.
pub const LEFTOVER_SECONDS: i64 = 3_600;
/// Finished profiles kept in memory because they could not be written. Each may be some tens of megabytes; an owner who does not mend a full disk after this many
/// has been told each time.
pub const UNSAVED_PROFILES: usize = 4;

/// How long the end of a session waits for Python to be let go before the profile is made, in milliseconds. The names are taken down before; what is waited for is only
/// that monitoring is off and the last figures are in. Ordinarily some milliseconds.
pub const DETACH_WAIT_MILLIS: u64 = 2_000;

/// Largest settings file that is read, in bytes: the one we write has under 2,000.
pub const SETTINGS_BYTES: u64 = 64 << 10;

/// Wrong lines of the settings file that are told one by one: the owner reads them in the log, and mends some before the next start.
pub const SETTINGS_PROBLEMS: usize = 10;

/// Least room for saved profiles that may be asked for, in MiB: one large profile.
pub const MIN_PROFILE_FOLDER_MEBIBYTES: u64 = 16;

/// Most room for saved profiles that may be asked for, in MiB: a terabyte.
pub const MAX_PROFILE_FOLDER_MEBIBYTES: u64 = 1 << 20;

/// Longest wait for a connection to the server that takes uploads, in seconds. Twice it, with the pause between two tries, stays under half a minute.
pub const CONNECT_SECONDS: u64 = 10;

/// Longest wait for the next byte to be taken or given during an upload, in seconds.
pub const STALLED_SECONDS: u64 = 10;

/// Longest upload, in seconds: 8 MiB in two minutes is half a megabit a second.
pub const UPLOAD_SECONDS: u64 = 120;

/// Pause before an upload is tried a second time, in milliseconds: a server that restarts or a lost packet is over by then.
pub const UPLOAD_PAUSE_MILLIS: u64 = 1_000;

/// Largest reply to an upload that is read, in bytes. A good one has under 100.
pub const UPLOAD_REPLY_BYTES: u64 = 64 << 10;

/// Largest headers of such a reply, in bytes.
pub const UPLOAD_HEADER_BYTES: usize = 16 << 10;

/// Shortest and longest key that a server may give an upload: it becomes a part of a link.
pub const UPLOAD_KEY_CHARS: std::ops::RangeInclusive<usize> = 4..=64;

/// How often it is looked whether an upload that runs is still wanted, in milliseconds.
pub const UPLOAD_LOOK_MILLIS: u64 = 50;

/// Entries of the list of past profiles that are kept.
pub const ACTIVITY_ENTRIES: usize = 500;

/// Largest such list that is read, in bytes: 500 entries have some 150 KB.
pub const ACTIVITY_BYTES: u64 = 2 << 20;

/// Entries on one page of that list: a client shows ten lines of chat at once.
pub const ACTIVITY_PAGE: usize = 8;

/// Age in days from which a link is taken for dead: the public server keeps uploads for 60 days.
pub const LINK_DAYS: i64 = 60;

/// Length at which a segment of a journal is ended, in bytes: half an hour of one thread at the shortest useful interval (1 ms), and what a damaged place in it can cost.
pub const JOURNAL_SEGMENT_BYTES: u64 = 4 << 20;

/// Bytes of one journal; the oldest segments go. Some hours of one thread at 4 ms, a quarter of an hour of a thousand busy threads.
pub const JOURNAL_BYTES: u64 = 64 << 20;

/// Longest record of a journal, in bytes. The largest that is written holds the new frames of one batch, at 18 bytes each 3.5 MB.
pub const JOURNAL_RECORD_BYTES: usize = 4 << 20;

/// Batches that wait to be written to a journal: a quarter of a second each, so that a disk may stand still for a quarter of a minute.
pub const JOURNAL_BATCHES: usize = 64;

/// Frames in all batches that wait, 16 bytes each.
pub const JOURNAL_QUEUE_FRAMES: usize = 512 << 10;

/// Frames in one batch: a quarter of a second of 2,000 deep stacks. More are not taken in that time by a server that works.
pub const JOURNAL_BATCH_FRAMES: usize = 128 << 10;

/// Samples in one batch, repetitions put together.
pub const JOURNAL_BATCH_SAMPLES: usize = 32 << 10;

/// Names and ends of threads that wait while the disk stands still; then the journal is given up. A program that makes a thread for each request may have 100 a second.
pub const JOURNAL_WAITING_NAMES: usize = 64 << 10;

/// Different frames of one segment. Real ones have some ten thousand; at 24 bytes each a reader needs 12 MB for as many as are allowed.
pub const JOURNAL_NODES: usize = 512 << 10;

/// Threads of one segment, ended ones included; half of them and a new segment is begun.
pub const JOURNAL_THREADS: usize = 8_192;

/// Modules of one journal: libraries that are loaded anew all day must not fill it. A server has some hundred.
pub const JOURNAL_MODULES: usize = 4_096;

/// Longest path in a journal, in bytes: Linux's own limit (PATH_MAX).
pub const JOURNAL_PATH_BYTES: usize = 4_096;

/// Bytes of all modules' paths that are read from one journal. Real ones have some ten thousand.
pub const JOURNAL_PATHS_BYTES: usize = 4 << 20;

/// Longest text in a journal, in bytes: a comment of [`COMMENT_CHARS`] characters, whichever they are.
pub const JOURNAL_TEXT_BYTES: usize = 4 * COMMENT_CHARS;

/// Names or patterns of threads that a journal remembers of the command that began its session: more do not fit on a command line.
pub const JOURNAL_NAMES: usize = 1_000;

/// Longest time that one sample of a journal may stand for, in microseconds: an hour. A thread that waits is looked at far more often, and sums stay far from overflow.
pub const JOURNAL_WEIGHT_MICROS: u64 = 3_600_000_000;

/// Longest time that all samples of a journal may stand for, in nanoseconds: 58 years. A thousand threads reach it in three weeks, of which the disk holds minutes.
pub const JOURNAL_TOTAL_NANOS: u64 = u64::MAX / 10;

/// Stalls of a session that are kept one by one, the newest ones; all are counted. An hour of a server that stands still all the time has some hundred.
pub const STALLS: usize = 100;

/// For how many seconds the server thread does not tick before that is a stall, unless the owner says otherwise: a hundred ticks. Saving a large world takes less.
pub const STALL_SECONDS: u64 = 5;

/// Most seconds that may be asked for: an hour.
pub const MAX_STALL_SECONDS: u64 = 3_600;

/// How often the watchdog looks whether a stall is over, in milliseconds: a tick. And how often it looks at all, whatever it expects.
pub const STALL_LOOK_MILLIS: u64 = 50;
/// See [`STALL_LOOK_MILLIS`].
pub const WATCHDOG_LOOK_MILLIS: u64 = 1_000;

/// Shortest time between two lines about stalls, in nanoseconds: a server that stands still all the time must not fill its log. What is not told is counted.
pub const STALL_REPORT_NANOS: u64 = 60_000_000_000;

/// Minutes of a recovered profile, the newest ones: a day. Each costs a number for every frame in the viewer.
pub const RECOVERED_MINUTES: u32 = 1_440;

/// Segments that could not be read and are kept: those of a whole journal, and as many of others.
pub const UNREADABLE_SEGMENTS: usize = 32;

/// Bytes of segments that could not be read and are kept. A whole journal must fit beside what was there before: it may be wanted once more.
pub const UNREADABLE_BYTES: u64 = 2 * JOURNAL_BYTES;

/// Names of removed files that one message gives; of more it says how many.
pub const REMOVED_SHOWN: usize = 3;

/// How often the reading of one journal is begun. A journal that ends the server when it is read must not do so at every start; a server that is stopped meanwhile is
/// no reason to give it up at once.
pub const RECOVERY_ATTEMPTS: u32 = 3;

/// Longest wait for the last bytes of a journal when its session ends, in milliseconds.
pub const JOURNAL_END_MILLIS: u64 = 1_000;
/// Entities that are looked at in one tick, where a profile or a report wants to know what they are. Kind and place of one, with its part of the
/// host's list, took 1.4 microseconds on average in the stand-in server (docs/performance.md), so this is a hundredth of a tick, at worst a fiftieth.
pub const SURVEYED_ENTITIES_PER_TICK: usize = 256;

/// Entities of one dimension that are looked at. With [`SURVEYED_ENTITIES_PER_TICK`] they take two seconds; a server with more has other troubles, and what these
/// are says which. The others are counted.
pub const SURVEYED_ENTITIES: usize = 10_240;

/// Loaded chunks of one dimension whose places are kept: 8 bytes each. Two hundred players who are far from each other have as many. The others are counted.
pub const SURVEYED_CHUNKS: usize = 65_536;

/// Dimensions that are looked at. The game has three.
pub const SURVEYED_DIMENSIONS: usize = 16;

/// Longest wait for the server thread to look at the world, in milliseconds. It takes a tick or two for each dimension, and one for every
/// [`SURVEYED_ENTITIES_PER_TICK`] entities; a server that is that slow has its profile without.
pub const SURVEY_WAIT_MILLIS: u64 = 10_000;

/// How long a server may not tick until it is no longer waited for, in milliseconds: then the profile is what its owner wants to see, not the world.
pub const STILL_SERVER_MILLIS: u64 = 2_000;

/// Longest wait of a session that keeps only slow ticks for the end of the one that runs when it is to end, in milliseconds. One that takes longer is kept as far as it came.
pub const LAST_TICK_MILLIS: u64 = 2_000;

/// Minutes whose counts of players, entities and chunks are kept: those of the longest session ([`MAX_TIMEOUT_SECONDS`]).
pub const COUNTED_MINUTES: usize = 1_441;

/// Largest `server.properties` that is read, in bytes: the game's own has some 8,000.
pub const SERVER_PROPERTIES_BYTES: u64 = 256 << 10;
/// How far back statistics reach, in seconds: the longest time that spark gives figures for.
pub const HISTORY_SECONDS: u64 = 900;

/// Ticks whose lengths are kept: fifteen minutes at 20 a second, in 288 KB. Lengths are shown over five minutes at most, which these cover up to 60 a second; at
/// higher rates the time that is covered is said. Ticks per second reach back all of the time at any rate, by one mark a second.
pub const HISTORY_TICKS: usize = 18_000;

/// Network interfaces that are looked at: a machine with containers has some dozens. Each takes 36 KB.
pub const NETWORK_INTERFACES: usize = 32;

/// Players' pings that are kept: fifteen minutes of 200 players, asked every ten seconds, in 288 KB. With more players they reach back less, and it is said how far.
pub const HISTORY_PINGS: usize = 18_000;

/// Players whose pings are asked: far more than a Bedrock server holds.
pub const PINGED_PLAYERS: usize = 1_000;

/// How often players are asked for, in nanoseconds.
pub const PING_NANOS: u64 = 10_000_000_000;

/// How long the plugin's end waits for the thread that reads `/proc`, in milliseconds. It ends at once, unless the disk that it asks for its room does not answer.
pub const WATCHER_STOP_MILLIS: u64 = 500;

/// Ticks that the tick monitor looks at before it reports: six seconds.
pub const MONITOR_BASELINE_TICKS: u64 = 120;

/// Shortest time between two reports of the tick monitor, in nanoseconds: chat that scrolls faster is not read. What comes in between is counted.
pub const MONITOR_REPORT_NANOS: u64 = 500_000_000;

/// How often a recovery looks whether the folder is free, in milliseconds, while threads of this process use it that an earlier end of the plugin has left to themselves.
pub const RECOVERY_LOOK_MILLIS: u64 = 100;

/// Longest wait for the second reading of the kernel's figures, in milliseconds. They are read once a second, so only a report of a server's first moments waits.
pub const FIRST_READING_MILLIS: u64 = 3_000;
/// How long after the end of a session's window its figures are taken down, in nanoseconds: its last tick is over then, and the kernel has been read once more.
pub const WINDOW_SETTLES_NANOS: u64 = 2_000_000_000;

/// Largest threshold of the tick monitor, in percent or milliseconds: more than any tick that a server survives.
pub const MOST_THRESHOLD: f64 = 1e6;
