//! `./dev bench`: measures what the profiler costs on this machine, as a table and as JSON.

use super::arguments::Arguments;
use super::{CommandError, Outcome, run_cargo};
use harness::Lab;
use std::process::ExitCode;

/// Name, JSON file in `target/`, and what it measures.
const PARTS: [(&str, &str, &str); 10] = [
    (
        "native",
        "bench.json",
        "one frame's unwinding, the handler, the sampler thread",
    ),
    (
        "callbacks",
        "bench-python.json",
        "what each call of a Python function costs more: ours, empty callbacks, cProfile, viztracer",
    ),
    ("server", "bench-server.json", "the handler and our threads in a server"),
    (
        "background",
        "bench-background.json",
        "a server with the background profiler and without",
    ),
    (
        "profile",
        "bench-profile.json",
        "from sample to file: merge, tree, export, symbols",
    ),
    ("statistics", "bench-statistics.json", "ticks per second and their like"),
    (
        "start",
        "bench-start.json",
        "the plugin's size, loading it, starting a session",
    ),
    (
        "session",
        "bench-session.json",
        "memory, processor time, export and size of a session with as many samples as an hour has",
    ),
    (
        "mspt",
        "bench-mspt.json",
        "a server's ticks and processor time: none, ours, py-spy",
    ),
    (
        "accuracy",
        "bench-accuracy.json",
        "known shares: ours, py-spy, perf, cProfile, viztracer, profiling.sampling",
    ),
];

pub(super) fn run(arguments: Vec<String>) -> Outcome {
    let mut arguments = Arguments::new("bench", arguments);
    let for_part = arguments.after_dashes();
    let wanted = arguments.positional();
    if let Some(name) = &wanted
        && chosen(wanted.as_deref()).next().is_none()
    {
        return Err(arguments.usage(format!("there is no part {name}; there are\n{}", names())));
    }
    arguments.finish()?;
    let lab = Lab::open()?;
    for (bench, file, _) in chosen(wanted.as_deref()) {
        let json = lab.target().join(file);
        let mut command = lab.cargo();
        command
            .args(["bench", "--workspace", "--bench", bench, "--"])
            .args(&for_part)
            .env("SPARK_BENCH_JSON", &json);
        let status = run_cargo(&mut command)?;
        if !status.success() {
            return Err(CommandError::Result(format!("the bench {bench} failed: {status}")));
        }
        if json.is_file() {
            println!("\nThe same as JSON: {}\n", json.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The part of this name, or all.
fn chosen(wanted: Option<&str>) -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str)> {
    PARTS
        .iter()
        .filter(move |(name, ..)| wanted.is_none_or(|wanted| wanted == *name))
}

fn names() -> String {
    let line = |(name, _, what): &(&str, &str, &str)| format!("  {name:10} {what}\n");
    PARTS.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_chosen_by_its_name_and_all_without_one() {
        assert_eq!(chosen(Some("mspt")).count(), 1);
        assert_eq!(chosen(None).count(), PARTS.len());
        let error = run(vec!["speed".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("speed") && error.contains("accuracy"), "{error}");
    }

    #[test]
    fn each_part_is_a_bench_of_this_project() {
        let manifest = include_str!("../../../../Cargo.toml");
        for (name, ..) in PARTS {
            assert!(manifest.contains(&format!("[[bench]]\nname = \"{name}\"")), "{name}");
        }
    }
}
