//! What the command is declared as.

/// The command's name.
pub const NAME: &str = "spark";

/// One line for the server's help.
pub const DESCRIPTION: &str = "Profile the server: see what its time is spent on";

/// Other names for the command: none. `sampler` is an alias of the word `profiler`, not of the command.
pub const ALIASES: &[&str] = &[];

/// In Endstone's usage language: the client completes from these, and the server splits a line by the first that fits. `message` takes the
/// rest of the line. The last two take what the others do not, so that a wrong word is answered by us, who know what is allowed, and not
/// by the server's syntax error; whichever of them a server prefers, the words arrive in the same order.
pub const USAGES: &[&str] = &[
    "/spark (help|version)[topic: SparkHelp]",
    "/spark (profiler|sampler)<module: SparkModule> (start|stop|upload|info|cancel)[action: SparkAction] [flags: message]",
    "/spark (tps|cpu|health|healthreport|ht|ping|tickmonitor|tickmonitoring)<view: SparkView> [flags: message]",
    "/spark (activity|activitylog|log)<list: SparkList> [flags: message]",
    "/spark (profiler|sampler)<module: SparkModule> <arguments: message>",
    "/spark <arguments: message>",
];
