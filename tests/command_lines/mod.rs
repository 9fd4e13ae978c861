//! Command lines without `/spark`, and what they answer on the console, word for word. Given to the parser in all shapes by `tests/commands.rs`, and typed into the
//! stand-in server's console by `tests/stand_in`.

pub const HELP: &str = concat!(
    "[⚡] spark ",
    env!("CARGO_PKG_VERSION"),
    " profiles this server. Commands:
    /spark profiler start [--interval MS] [--timeout SECONDS]: start sampling the server thread
    ... start [--thread NAME]... [--regex] [--ignore-sleeping] [--only-ticks-over MS]: other threads (* for all, with --regex by pattern); leave out waiting; keep slow ticks only
    ... start [--not-combined] [--combine-all] [--show-interpreter]: one tree per thread, one for all; keep Python's own call functions
    /spark profiler stop [--comment \"TEXT\"] [--save-to-file]: stop, and upload the profile or save it; both also with start
    /spark profiler upload: stop, and upload the profile
    /spark profiler info: show how the profiler is doing
    /spark profiler cancel: stop, and throw the samples away
    /spark tps: show how the server ticks
    /spark health [--memory] [--network] [--upload]: the same with memory, disk, system and network; or send a report to the viewer
    /spark ping [--player NAME]: show how long players' packets take
    /spark tickmonitor [--threshold PERCENT] [--threshold-tick MS]: tell of slow ticks; again to stop
    /spark activity [--page N]: list past profiles"
);
pub const STARTED_4: &str = "[⚡] Starting the profiler, one sample every 4 ms. Stop it with /spark profiler stop.";
pub const STOPPED: &str = "[⚡] Stopping the profiler.";
pub const UPLOADING: &str = "[⚡] Stopping the profiler. The profile will be uploaded.";
pub const STOPPED_TO_FILE: &str = "[⚡] Stopping the profiler. The profile will be saved to a file.";
pub const CANCELLED: &str = "[⚡] Stopping the profiler without saving anything.";
pub const IDLE: &str = "[⚡] The profiler is not running. Start it with /spark profiler start.";
pub const INTERVAL: &str = "[⚡] --interval must be a number of milliseconds from 0.1 to 1000.";
pub const THREAD: &str = "[⚡] --thread needs the name of a thread, or * for all. It may be given several times.";
pub const TIMEOUT: &str = "[⚡] --timeout must be a whole number of seconds from 11 to 86400.";
pub const COMMENT: &str = "[⚡] --comment needs a text of 1 to 500 characters, for example --comment \"lag at spawn\".";
pub const QUOTE: &str = "[⚡] A quote is not closed. Write texts as \"like this\".";
pub const PAGE: &str = "[⚡] --page must be a whole number from 1.";
pub const PLAYER: &str = "[⚡] --player needs the name of a player.";
pub const THRESHOLD: &str = "[⚡] --threshold must be a number of percent above 0.";
pub const THRESHOLD_TICK: &str = "[⚡] --threshold-tick must be a number of milliseconds above 0.";
pub const REPORTING: &str = "[⚡] Making a health report ...";
pub const NOTHING_YET: &str = "[⚡] No profile has been made yet. Begin with /spark profiler start.";
pub const HEAP: &str = "[⚡] There is no Java heap in this server. What Python objects take is shown by Python's own tracemalloc; where time goes by /spark profiler start.";
pub const COLLECTOR: &str = "[⚡] There is no Java garbage collector in this server. What Python's costs is in a profile: /spark profiler start.";
pub const OPEN: &str = "[⚡] A profile cannot be looked at while it is taken. See how it is doing with /spark profiler info, or end it and get a link with /spark profiler stop.";
pub const ONLY_TICKS_OVER: &str =
    "[⚡] --only-ticks-over must be a whole number of milliseconds from 1 to 60000, for example 60.";
pub const NO_ACTION: &str = "[⚡] The profiler needs to know what to do. Use: start, stop, upload, info, cancel.";

/// Lines that ask the session for something: the line, what it asks for, the answer.
pub const GOOD: &[(&str, &str, &str)] = &[
    ("profiler start", "start 4000 None", STARTED_4),
    ("sampler start", "start 4000 None", STARTED_4),
    ("PROFILER Start", "start 4000 None", STARTED_4),
    ("  profiler   start  ", "start 4000 None", STARTED_4),
    ("profiler\tstart", "start 4000 None", STARTED_4),
    ("profiler start --interval 4", "start 4000 None", STARTED_4),
    ("profiler start --interval=4", "start 4000 None", STARTED_4),
    ("profiler start --thread *", "start 4000 None all", STARTED_4),
    ("profiler start --thread a --thread=*", "start 4000 None all", STARTED_4),
    ("profiler start --thread * --regex", "start 4000 None all", STARTED_4),
    (
        "profiler start --thread \"IO Thread\" --THREAD net",
        "start 4000 None exact [\"IO Thread\", \"net\"]",
        STARTED_4,
    ),
    (
        "profiler start --thread \"\"x",
        "start 4000 None exact [\"x\"]",
        STARTED_4,
    ),
    (
        "profiler start --thread \"\" x",
        "start 4000 None exact [\"x\"]",
        STARTED_4,
    ),
    ("profiler start --thread= x", "start 4000 None exact [\"x\"]", STARTED_4),
    (
        "profiler start --thread \" IO Thread \"",
        "start 4000 None exact [\"IO Thread\"]",
        STARTED_4,
    ),
    (
        "profiler start --thread IO Thread",
        "start 4000 None exact [\"IO Thread\"]",
        STARTED_4,
    ),
    (
        "profiler start --regex --thread worker-[0-9]+ --ignore-sleeping",
        "start 4000 None regex [\"worker-[0-9]+\"] awake",
        STARTED_4,
    ),
    (
        "profiler start --only-ticks-over 50",
        "start 4000 None over 50",
        STARTED_4,
    ),
    (
        "profiler start --only-ticks-over=60000 --thread *",
        "start 4000 None all over 60000",
        STARTED_4,
    ),
    (
        "profiler start --show-interpreter",
        "start 4000 None ByPool true",
        STARTED_4,
    ),
    (
        "profiler start --not-combined",
        "start 4000 None Separate false",
        STARTED_4,
    ),
    (
        "profiler start --combine-all --show-interpreter",
        "start 4000 None AllInOne true",
        STARTED_4,
    ),
    ("profiler start --INTERVAL 4", "start 4000 None", STARTED_4),
    ("profiler start --interval \"4\"", "start 4000 None", STARTED_4),
    ("profiler start --interval=\"4\"", "start 4000 None", STARTED_4),
    ("profiler start --interval 4 --interval 4", "start 4000 None", STARTED_4),
    ("profiler start --interval 004.000", "start 4000 None", STARTED_4),
    ("\"profiler\" \"start\"", "start 4000 None", STARTED_4),
    (
        "profiler start --interval 0.1",
        "start 100 None",
        "[⚡] Starting the profiler, one sample every 0.1 ms. Stop it with /spark profiler stop.",
    ),
    (
        "profiler start --interval 2.125",
        "start 2125 None",
        "[⚡] Starting the profiler, one sample every 2.125 ms. Stop it with /spark profiler stop.",
    ),
    (
        "profiler start --interval 1000",
        "start 1000000 None",
        "[⚡] Starting the profiler, one sample every 1000 ms. Stop it with /spark profiler stop.",
    ),
    (
        "profiler start --timeout 11",
        "start 4000 Some(11)",
        "[⚡] Starting the profiler, one sample every 4 ms. It stops by itself after 11 s.",
    ),
    (
        "profiler start --timeout=86400 --interval 10",
        "start 10000 Some(86400)",
        "[⚡] Starting the profiler, one sample every 10 ms. It stops by itself after 24 h.",
    ),
    (
        "profiler start --interval 10 --timeout 90",
        "start 10000 Some(90)",
        "[⚡] Starting the profiler, one sample every 10 ms. It stops by itself after 1 min 30 s.",
    ),
    ("profiler stop", "stop None", STOPPED),
    ("sampler stop", "stop None", STOPPED),
    ("profiler stop --save-to-file", "stop file None", STOPPED_TO_FILE),
    (
        "profiler stop --save-to-file --save-to-file",
        "stop file None",
        STOPPED_TO_FILE,
    ),
    ("profiler stop --comment lag", "stop Some(\"lag\")", STOPPED),
    (
        "profiler stop --comment lag at spawn",
        "stop Some(\"lag at spawn\")",
        STOPPED,
    ),
    (
        "profiler stop --comment \"lag at spawn\"",
        "stop Some(\"lag at spawn\")",
        STOPPED,
    ),
    (
        "profiler stop --comment=\"lag at spawn\" --save-to-file",
        "stop file Some(\"lag at spawn\")",
        STOPPED_TO_FILE,
    ),
    (
        "profiler stop --save-to-file --comment it's fine",
        "stop file Some(\"it's fine\")",
        STOPPED_TO_FILE,
    ),
    (
        "profiler stop --comment \"say \\\"hi\\\"\"",
        "stop Some(\"say \\\"hi\\\"\")",
        STOPPED,
    ),
    (
        "profiler stop --comment \"--save-to-file\"",
        "stop Some(\"--save-to-file\")",
        STOPPED,
    ),
    ("profiler stop --comment a=b", "stop Some(\"a=b\")", STOPPED),
    ("profiler stop --comment=a=b", "stop Some(\"a=b\")", STOPPED),
    (
        "profiler stop --comment §cred§r and §lbold",
        "stop Some(\"red and bold\")",
        STOPPED,
    ),
    ("profiler stop --comment \"a\nb\"", "stop Some(\"a b\")", STOPPED),
    (
        "profiler stop --comment bell\u{7}\u{1b}[31m",
        "stop Some(\"bell[31m\")",
        STOPPED,
    ),
    ("profiler stop --comment \u{202e}gniht", "stop Some(\"gniht\")", STOPPED),
    (
        "profiler stop --comment 🦀 naïve 東京",
        "stop Some(\"🦀 naïve 東京\")",
        STOPPED,
    ),
    ("profiler stop --comment --save-to-file", "", COMMENT),
    ("profiler stop --SAVE-TO-FILE", "stop file None", STOPPED_TO_FILE),
    ("profiler upload", "stop server None", UPLOADING),
    ("sampler UPLOAD", "stop server None", UPLOADING),
    (
        "profiler upload --comment \"for you\"",
        "stop server Some(\"for you\")",
        UPLOADING,
    ),
    // The older forms.
    ("profiler --stop", "stop None", STOPPED),
    ("sampler --STOP", "stop None", STOPPED),
    (
        "profiler --stop --comment lag at spawn --save-to-file",
        "stop file Some(\"lag at spawn\")",
        STOPPED_TO_FILE,
    ),
    ("profiler --comment x --stop", "stop Some(\"x\")", STOPPED),
    ("profiler --stop --stop", "stop None", STOPPED),
    ("profiler --upload", "stop server None", UPLOADING),
    ("profiler --cancel", "cancel", CANCELLED),
    // What a session is ended with may be said at its start.
    ("profiler start --save-to-file", "start 4000 None file", STARTED_4),
    ("profiler start --comment x", "start 4000 None \"x\"", STARTED_4),
    (
        "profiler start --comment \"lag at spawn\" --timeout 90 --save-to-file",
        "start 4000 Some(90) file \"lag at spawn\"",
        "[⚡] Starting the profiler, one sample every 4 ms. It stops by itself after 1 min 30 s.",
    ),
    ("profiler start --comment --thread", "", COMMENT),
    ("profiler cancel", "cancel", CANCELLED),
    ("sampler cancel", "cancel", CANCELLED),
    ("health --upload", "report health", REPORTING),
    ("ht --memory --upload", "report health", REPORTING),
];

/// Lines that ask for nothing: the line and the answer.
pub const OTHER: &[(&str, &str)] = &[
    ("", HELP),
    ("   ", HELP),
    ("help", HELP),
    ("HELP", HELP),
    ("profiler", HELP),
    ("sampler", HELP),
    ("profiler info", IDLE),
    ("sampler INFO", IDLE),
    ("profiler --info", IDLE),
    ("activity", NOTHING_YET),
    ("ACTIVITY", NOTHING_YET),
    ("activitylog", NOTHING_YET),
    ("log", NOTHING_YET),
    ("activity --page 1", NOTHING_YET),
    ("activity --page=007", NOTHING_YET),
    // What only Java has.
    ("heapsummary", HEAP),
    ("heapdump --compress gzip", HEAP),
    ("HeapDump", HEAP),
    ("gc", COLLECTOR),
    ("gcmonitor", COLLECTOR),
    // Not commands.
    (
        "activity 2",
        "[⚡] Did not expect \"2\" after \"activity\". Use: --page N.",
    ),
    (
        "activity --all",
        "[⚡] \"activity\" has no option --all. Use: --page N.",
    ),
    ("activity --page", PAGE),
    ("activity --page 0", PAGE),
    ("activity --page -1", PAGE),
    ("activity --page 1.5", PAGE),
    ("activity --page last", PAGE),
    ("activity --page 99999999999999999999999", PAGE),
    (
        "activity --page 1 --page 2",
        "[⚡] --page is given twice with different values. Give it once.",
    ),
    ("tps --all", "[⚡] \"tps\" has no option --all. It takes nothing more."),
    (
        "cpu now",
        "[⚡] Did not expect \"now\" after \"tps\". It takes nothing more.",
    ),
    (
        "ht --link",
        "[⚡] \"health\" has no option --link. Use: --memory, --network, --upload.",
    ),
    ("health --upload now", "[⚡] --upload takes no value."),
    (
        "healthreport memory",
        "[⚡] Did not expect \"memory\" after \"health\". Use: --memory, --network, --upload.",
    ),
    ("health --memory all", "[⚡] --memory takes no value."),
    ("ping --player", PLAYER),
    ("ping --player \"\"", PLAYER),
    (
        "ping Steve",
        "[⚡] Did not expect \"Steve\" after \"ping\". Use: --player NAME.",
    ),
    (
        "ping --player §cSteve",
        "[⚡] No player called Steve is known yet: who joins is asked within ten seconds.",
    ),
    ("tickmonitor --threshold", THRESHOLD),
    ("tickmonitor --threshold 0", THRESHOLD),
    ("tickmonitor --threshold -5", THRESHOLD),
    ("tickmonitor --threshold NaN", THRESHOLD),
    ("tickmonitor --threshold 1e3", THRESHOLD),
    ("tickmonitor --threshold 1000001", THRESHOLD),
    ("tickmonitor --threshold-tick", THRESHOLD_TICK),
    ("tickmonitoring --threshold-tick 60ms", THRESHOLD_TICK),
    ("tickmonitor --threshold-tick inf", THRESHOLD_TICK),
    (
        "tickmonitor --threshold 50 --threshold-tick 60",
        "[⚡] --threshold and --threshold-tick exclude each other. Give one of them.",
    ),
    (
        "tickmonitor --without-gc",
        "[⚡] \"tickmonitor\" has no option --without-gc. Use: --threshold PERCENT or --threshold-tick MS.",
    ),
    ("profiler --stop --cancel", NO_ACTION),
    ("profiler --stop --upload", NO_ACTION),
    ("profiler --start", NO_ACTION),
    ("profiler --stop now", "[⚡] --stop takes no value."),
    ("profiler --stop=", "[⚡] --stop takes no value."),
    (
        "profiler --info --all",
        "[⚡] \"profiler info\" has no option --all. It takes nothing more.",
    ),
    (
        "profiler --upload --save-to-file",
        "[⚡] \"profiler upload\" has no option --save-to-file. Use: --comment \"TEXT\".",
    ),
    (
        "profiler upload --save-to-file",
        "[⚡] \"profiler upload\" has no option --save-to-file. Use: --comment \"TEXT\".",
    ),
    (
        "profiler upload now",
        "[⚡] Did not expect \"now\" after \"profiler upload\". Use: --comment \"TEXT\".",
    ),
    (
        "profiler start --save-to-file yes",
        "[⚡] --save-to-file takes no value.",
    ),
    ("profiler start --only-ticks-over 0", ONLY_TICKS_OVER),
    ("profiler start --only-ticks-over 60001", ONLY_TICKS_OVER),
    ("profiler start --only-ticks-over 49.5", ONLY_TICKS_OVER),
    ("profiler start --only-ticks-over -1", ONLY_TICKS_OVER),
    ("profiler start --only-ticks-over soon", ONLY_TICKS_OVER),
    ("profiler start --only-ticks-over", ONLY_TICKS_OVER),
    (
        "prof",
        "[⚡] Unknown command \"prof\". Use: help, version, profiler, tps, health, ping, tickmonitor, activity.",
    ),
    (
        "\"\"",
        "[⚡] Unknown command \"\". Use: help, version, profiler, tps, health, ping, tickmonitor, activity.",
    ),
    (
        "--help",
        "[⚡] Unknown command \"--help\". Use: help, version, profiler, tps, health, ping, tickmonitor, activity.",
    ),
    (
        "profiler start help",
        "[⚡] Did not expect \"help\" after \"profiler start\". Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --only-ticks-over MS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter, --comment \"TEXT\", --save-to-file.",
    ),
    (
        "help profiler",
        "[⚡] Did not expect \"profiler\" after \"help\". It takes nothing more.",
    ),
    (
        "profiler begin",
        "[⚡] Unknown profiler command \"begin\". Use: start, stop, upload, info, cancel.",
    ),
    ("profiler open", OPEN),
    ("profiler open --now please", OPEN),
    ("profiler --open", OPEN),
    (
        "profiler \"--stop\"",
        "[⚡] Unknown profiler command \"--stop\". Use: start, stop, upload, info, cancel.",
    ),
    ("profiler --interval 4", NO_ACTION),
    // Not options.
    (
        "profiler start --intervall 4",
        "[⚡] \"profiler start\" has no option --intervall. Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --only-ticks-over MS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter, --comment \"TEXT\", --save-to-file.",
    ),
    (
        "profiler start --",
        "[⚡] \"profiler start\" has no option --. Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --only-ticks-over MS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter, --comment \"TEXT\", --save-to-file.",
    ),
    (
        "profiler start --=4",
        "[⚡] \"profiler start\" has no option --. Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --only-ticks-over MS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter, --comment \"TEXT\", --save-to-file.",
    ),
    (
        "profiler stop --interval 4",
        "[⚡] \"profiler stop\" has no option --interval. Use: --save-to-file, --comment \"TEXT\".",
    ),
    (
        "profiler info --all",
        "[⚡] \"profiler info\" has no option --all. It takes nothing more.",
    ),
    (
        "profiler cancel --force",
        "[⚡] \"profiler cancel\" has no option --force. It takes nothing more.",
    ),
    (
        "profiler info now",
        "[⚡] Did not expect \"now\" after \"profiler info\". It takes nothing more.",
    ),
    (
        "profiler start 4",
        "[⚡] Did not expect \"4\" after \"profiler start\". Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --only-ticks-over MS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter, --comment \"TEXT\", --save-to-file.",
    ),
    (
        "profiler start -interval 4",
        "[⚡] Did not expect \"-interval\" after \"profiler start\". Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --only-ticks-over MS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter, --comment \"TEXT\", --save-to-file.",
    ),
    (
        "profiler start \"--interval\" 4",
        "[⚡] Did not expect \"--interval\" after \"profiler start\". Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --only-ticks-over MS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter, --comment \"TEXT\", --save-to-file.",
    ),
    (
        "profiler stop --save-to-file yes",
        "[⚡] --save-to-file takes no value.",
    ),
    ("profiler stop --save-to-file=", "[⚡] --save-to-file takes no value."),
    // Not values.
    ("profiler start --interval", INTERVAL),
    ("profiler start --interval=", INTERVAL),
    ("profiler start --thread", THREAD),
    ("profiler start --thread \"\"", THREAD),
    ("profiler start --thread --regex", THREAD),
    ("profiler start --thread \" \"", THREAD),
    ("profiler start --thread=\"\" --thread x", THREAD),
    (
        "profiler start --regex",
        "[⚡] --regex makes patterns of thread names. Give at least one, for example --thread \"worker-.*\" --regex.",
    ),
    ("profiler start --thread a --regex b", "[⚡] --regex takes no value."),
    (
        "profiler start --ignore-sleeping yes",
        "[⚡] --ignore-sleeping takes no value.",
    ),
    ("profiler start --interval --timeout 30", INTERVAL),
    ("profiler start --interval $(sleep 5)", INTERVAL),
    ("profiler start --timeout 30 --interval", INTERVAL),
    ("profiler start --interval 0", INTERVAL),
    ("profiler start --interval 0.099", INTERVAL),
    ("profiler start --interval 1000.001", INTERVAL),
    ("profiler start --interval 1001", INTERVAL),
    ("profiler start --interval -4", INTERVAL),
    ("profiler start --interval +4", INTERVAL),
    ("profiler start --interval 4ms", INTERVAL),
    ("profiler start --interval 4 5", INTERVAL),
    ("profiler start --interval 4,5", INTERVAL),
    ("profiler start --interval 1.2.3", INTERVAL),
    ("profiler start --interval .5", INTERVAL),
    ("profiler start --interval 5.", INTERVAL),
    ("profiler start --interval 1e1", INTERVAL),
    ("profiler start --interval 0x4", INTERVAL),
    ("profiler start --interval NaN", INTERVAL),
    ("profiler start --interval inf", INTERVAL),
    ("profiler start --interval ４", INTERVAL),
    ("profiler start --interval 99999999999999999999999999999", INTERVAL),
    ("profiler start --timeout", TIMEOUT),
    ("profiler start --timeout 10", TIMEOUT),
    ("profiler start --timeout 0", TIMEOUT),
    ("profiler start --timeout 86401", TIMEOUT),
    ("profiler start --timeout -30", TIMEOUT),
    ("profiler start --timeout 30.5", TIMEOUT),
    ("profiler start --timeout 30s", TIMEOUT),
    ("profiler start --timeout 18446744073709551616", TIMEOUT),
    ("profiler stop --comment", COMMENT),
    ("profiler stop --comment \"\"", COMMENT),
    ("profiler stop --comment \"   \"", COMMENT),
    ("profiler stop --comment §c", COMMENT),
    ("profiler stop --comment \u{7}", COMMENT),
    // Contradictions and quotes.
    (
        "profiler start --not-combined --combine-all",
        "[⚡] --not-combined and --combine-all exclude each other. Give one of them.",
    ),
    ("profiler start --combine-all yes", "[⚡] --combine-all takes no value."),
    (
        "profiler start --interval 4 --interval 8",
        "[⚡] --interval is given twice with different values. Give it once.",
    ),
    (
        "profiler start --interval 4 --interval",
        "[⚡] --interval is given twice with different values. Give it once.",
    ),
    (
        "profiler stop --comment a --comment b",
        "[⚡] --comment is given twice with different values. Give it once.",
    ),
    ("profiler stop --comment \"open", QUOTE),
    ("profiler stop --comment \"a\" \"b", QUOTE),
    ("\"", QUOTE),
    // Foreign text in answers is cleaned and short.
    (
        "profiler §cstart",
        "[⚡] Unknown profiler command \"start\". Use: start, stop, upload, info, cancel.",
    ),
    (
        "profiler start\u{200b}",
        "[⚡] Unknown profiler command \"start\". Use: start, stop, upload, info, cancel.",
    ),
    (
        "\u{1b}[2J",
        "[⚡] Unknown command \"[2J\". Use: help, version, profiler, tps, health, ping, tickmonitor, activity.",
    ),
    (
        "profiler aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "[⚡] Unknown profiler command \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…\". Use: start, stop, upload, info, cancel.",
    ),
    (
        "\u{fffd}\u{fffd}",
        "[⚡] Unknown command \"\u{fffd}\u{fffd}\". Use: help, version, profiler, tps, health, ping, tickmonitor, activity.",
    ),
];
