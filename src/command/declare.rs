//! What the command is declared as.

/// The command's name.
pub const NAME: &str = "spark";

/// One line for the server's help.
pub const DESCRIPTION: &str = "Profile the server: see what its time is spent on";

/// Other names for the command: none. `sampler` is an alias of the word `profiler`, not of the command.
pub const ALIASES: &[&str] = &[];

/// In Endstone's usage language; the client completes from these, and the server splits a line by them. `message` takes the rest of the
/// line.
pub const USAGES: &[&str] = &[
    "/spark (help)[topic: SparkHelp]",
    "/spark (profiler|sampler)<module: SparkModule> (start|stop|info|cancel)[action: SparkAction] [flags: message]",
];

/// Needed for every subcommand.
pub const PERMISSION: &str = "endstone.command.spark";

/// One line for the server's permission list.
pub const PERMISSION_DESCRIPTION: &str = "Use the spark profiler";
