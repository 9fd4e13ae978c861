//! `./dev fuzz`: random inputs for what the plugin reads and others write.

use super::arguments::Arguments;
use super::{Outcome, run_cargo};
use harness::Lab;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

/// Names of targets (the modules of `tests/fuzz`), and what they read.
const TARGETS: [(&str, &str); 6] = [
    ("commands", "command lines"),
    ("settings", "plugins/spark/config.toml"),
    ("properties", "server.properties"),
    ("journal", "what a crash left"),
    ("symbols", "ELF files, with debug information"),
    ("replies", "answers to uploads"),
];

/// Seconds, unless said otherwise: a longer test run, not yet a search.
const SECONDS: u64 = 60;

pub(super) fn run(arguments: Vec<String>) -> Outcome {
    let mut arguments = Arguments::new("fuzz", arguments);
    let file: Option<PathBuf> = arguments.option("--file")?;
    let seed: Option<u64> = arguments.option("--seed")?;
    let name = arguments.positional();
    let name = name.as_deref().unwrap_or_default();
    let is_one = TARGETS.iter().any(|(target, _)| *target == name);
    if !is_one && (name != "all" || file.is_some()) {
        return Err(arguments.usage(format!("say which target: all, or one of\n{}", names())));
    }
    let seconds = match arguments.positional() {
        None => SECONDS,
        Some(text) => text
            .parse()
            .map_err(|_| arguments.usage(format!("{text} is no number of seconds")))?,
    };
    arguments.finish()?;
    let lab = Lab::open()?;
    let mut command = lab.cargo();
    command.args([
        "test",
        "--release",
        "--test",
        "fuzz",
        "--",
        "--nocapture",
        "--test-threads=1",
    ]);
    if is_one {
        command.arg(format!("{name}::"));
    }
    match file {
        Some(file) => command.env("SPARK_FUZZ_FILE", from_caller(&file)),
        None => command
            .env("SPARK_FUZZ_SECONDS", seconds.to_string())
            .env("SPARK_FUZZ_SEED", seed.unwrap_or_else(another_seed).to_string()),
    };
    Ok(if run_cargo(&mut command)?.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Each run tries other inputs; its seed is printed.
fn another_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(1, |since| since.as_secs())
}

/// `./dev` changes into the project's folder; a file is meant where it was called.
fn from_caller(file: &Path) -> PathBuf {
    std::env::var_os("SPARK_CALLER_DIR").map_or_else(|| file.to_owned(), |folder| Path::new(&folder).join(file))
}

fn names() -> String {
    let line = |(name, what): &(&str, &str)| format!("  {name:10} {what}\n");
    TARGETS.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_is_a_module_of_the_fuzz_tests_and_has_a_test() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
        let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
        for (name, _) in TARGETS {
            assert!(main.contains(&format!("mod {name};")), "{name}");
            let module = std::fs::read_to_string(folder.join(format!("{name}.rs"))).unwrap();
            assert!(
                module.contains(&format!("const TEST: &'static str = \"{name}::")),
                "{name}"
            );
        }
        let targets = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default());
        assert_eq!(
            targets.filter(|text| text.contains("impl Target for ")).count(),
            TARGETS.len()
        );
    }

    #[test]
    fn an_unknown_target_is_answered_with_the_list() {
        for line in [&["speed"][..], &[], &["all", "--file", "x"]] {
            let error = run(line.iter().map(|word| (*word).to_owned()).collect())
                .unwrap_err()
                .to_string();
            assert!(error.contains("symbols") && error.contains("all"), "{error}");
        }
        let error = run(vec!["journal".to_owned(), "long".to_owned()])
            .unwrap_err()
            .to_string();
        assert!(error.contains("long is no number of seconds"), "{error}");
    }
}
