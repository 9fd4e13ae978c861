//! `./dev release`: the file that owners install, for systems as old as those that Endstone's own wheels run on.
//!
//! The C library to link with comes from zig, by `cargo-zigbuild`. Zig would also link its own unwinder, and two of them in one process make every C++
//! exception that passes through our frames a crash: the system's is named by its path, which goes before.

use super::arguments::Arguments;
use super::{CommandError, Outcome};
use harness::{Lab, Linked, PythonVersion, Step};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Tools from PyPI.
const ZIGBUILD: &str = "cargo-zigbuild==0.24.1";
const ZIG: &str = "ziglang==0.17.1";

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The C library of Endstone's own wheels (their platform tag).
const GLIBC: (u32, u32) = (2, 31);

/// Between two of the compiler's flags, which may have blanks.
const SEPARATOR: &str = "\x1f";

/// More than this is a mistake in the build.
const MOST_BYTES: u64 = 6 << 20;

pub(super) fn run(arguments: Vec<String>) -> Outcome {
    let mut arguments = Arguments::new("release", arguments);
    let tested = arguments.flag("--test");
    arguments.finish()?;
    let lab = Lab::open()?;
    let built = build(&lab)?;
    let folder = lab.target().join("dist");
    fs::create_dir_all(&folder).map_err(|error| failed("making a folder", &error))?;
    let plugin = split(&built, &folder)?;
    let linked = Linked::read(&plugin)?;
    let mut problems = problems(&linked);
    let content = fs::read(&plugin).map_err(|error| failed("reading the plugin", &error))?;
    problems.extend(folders_in(&content, &builders_folders(lab.root())));
    println!("plugin        {} ({} KB)", plugin.display(), linked.bytes / 1024);
    println!("debug file    {}", debug_file(&plugin).display());
    println!("build id      {}", linked.build_id.as_deref().unwrap_or("none"));
    println!("needs glibc   {}.{}", linked.glibc.0, linked.glibc.1);
    println!("needs         {}", linked.needed.join(", "));
    if !problems.is_empty() {
        return Err(CommandError::Result(problems.join("\n")));
    }
    if tested {
        let mut command = lab.cargo();
        command
            .args(["test", "--release", "--workspace", "--test", "stand_in"])
            .env("SPARK_PLUGIN", &plugin);
        if let Ok(commit) = commit(&lab) {
            command.env("SPARK_PLUGIN_COMMIT", commit);
        }
        run_to_end(&mut command, "the tests of the release file")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the library for the older C library.
fn build(lab: &Lab) -> Result<PathBuf, CommandError> {
    // Neither is for a certain Python.
    let zigbuild = lab.package(PythonVersion::V3_13, ZIGBUILD)?.join("bin/cargo-zigbuild");
    let zig = lab.package(PythonVersion::V3_13, ZIG)?.join("ziglang/zig");
    let unwinder = output(Command::new("cc").arg("-print-file-name=libgcc_s.so.1"))?;
    if !Path::new(&unwinder).is_absolute() {
        return Err(CommandError::Result("the C compiler knows no libgcc_s.so.1".to_owned()));
    }
    let step = Step::start("Building the release");
    let mut command = Command::new(zigbuild);
    command
        .args(["zigbuild", "--release", "--lib", "-p", "endstone-spark", "--target"])
        .arg(format!("{TARGET}.{}.{}", GLIBC.0, GLIBC.1))
        .arg("--target-dir")
        .arg(lab.target().join("dist-build"))
        .current_dir(lab.root())
        .env("CARGO_ZIGBUILD_ZIG_PATH", &zig)
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            flags(&unwinder, &builders_folders(lab.root())).join(SEPARATOR),
        )
        // The release is the same whatever this build inherits.
        .env_remove("CARGO_INCREMENTAL");
    if let Ok(commit) = commit(lab) {
        command.env("SPARK_COMMIT", commit);
    }
    run_to_end(&mut command, "the build")?;
    step.done();
    let built = lab.target().join("dist-build").join(TARGET).join("release");
    Ok(built.join("libendstone_spark.so"))
}

/// The commit that is built, which a folder without a repository does not say.
fn commit(lab: &Lab) -> Result<String, CommandError> {
    output(
        Command::new("git")
            .args(["rev-parse", "--short=12", "HEAD"])
            .current_dir(lab.root()),
    )
}

/// Folders of whoever builds, and what they are called instead: they are in the texts of panics and in the debug file.
fn builders_folders(root: &Path) -> Vec<(PathBuf, &'static str)> {
    let cargo = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let mut folders = vec![(root.to_owned(), "endstone-spark")];
    folders.extend(cargo.map(|cargo| (cargo, "cargo")));
    folders
}

/// For the compiler: the unwinder, and the names of folders.
fn flags(unwinder: &str, folders: &[(PathBuf, &str)]) -> Vec<String> {
    let mut flags = vec![format!("-Clink-arg={unwinder}")];
    flags.extend(
        folders
            .iter()
            .map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display())),
    );
    flags
}

/// Which of the folders are named in a file.
fn folders_in(content: &[u8], folders: &[(PathBuf, &str)]) -> Vec<String> {
    let holds = |folder: &Path| {
        let name = folder.as_os_str().as_encoded_bytes();
        content.windows(name.len()).any(|part| part == name)
    };
    folders
        .iter()
        .filter(|(folder, _)| holds(folder))
        .map(|(folder, _)| format!("it names {}, a folder of whoever built it", folder.display()))
        .collect()
}

fn debug_file(plugin: &Path) -> PathBuf {
    plugin.with_extension("so.debug")
}

/// Puts the debug information into a file of its own, which the other names.
fn split(built: &Path, folder: &Path) -> Result<PathBuf, CommandError> {
    let plugin = folder.join("endstone_spark.so");
    let debug = debug_file(&plugin);
    let objcopy = || Command::new("objcopy");
    run_to_end(objcopy().arg("--only-keep-debug").arg(built).arg(&debug), "objcopy")?;
    let link = format!("--add-gnu-debuglink={}", debug.display());
    run_to_end(
        objcopy().arg("--strip-all").arg(link).arg(built).arg(&plugin),
        "objcopy",
    )?;
    Ok(plugin)
}

/// What must not be so in a file that others install.
fn problems(linked: &Linked) -> Vec<String> {
    let mut problems = Vec::new();
    if linked.glibc > GLIBC {
        problems.push(format!("it needs glibc {:?}, newer than {GLIBC:?}", linked.glibc));
    }
    if !linked.needed.iter().any(|name| name == "libgcc_s.so.1") {
        problems.push("it does not use the system's unwinder".to_owned());
    }
    if let Some(own) = linked.unwinder.first() {
        problems.push(format!("it brings an unwinder of its own: {own}"));
    }
    if linked.exports != ["init_endstone_plugin"] {
        problems.push(format!("it exports {:?}", linked.exports));
    }
    if linked.build_id.is_none() {
        problems.push("it has no build id".to_owned());
    }
    if linked.bytes > MOST_BYTES {
        problems.push(format!("it has {} bytes, more than {MOST_BYTES}", linked.bytes));
    }
    problems
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> CommandError {
    CommandError::Result(format!("{what} failed: {error}"))
}

fn run_to_end(command: &mut Command, what: &str) -> Result<(), CommandError> {
    let status = command.status().map_err(|error| failed(what, &error))?;
    if status.success() {
        Ok(())
    } else {
        Err(failed(what, &status))
    }
}

fn output(command: &mut Command) -> Result<String, CommandError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| failed(&name, &error))?;
    if !output.status.success() {
        return Err(failed(&name, &output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Linked {
        Linked {
            bytes: 3 << 20,
            needed: vec!["libgcc_s.so.1".to_owned(), "libc.so.6".to_owned()],
            glibc: (2, 30),
            unwinder: Vec::new(),
            exports: vec!["init_endstone_plugin".to_owned()],
            build_id: Some("00".to_owned()),
        }
    }

    #[test]
    fn each_mistake_of_a_build_is_found() {
        assert!(problems(&good()).is_empty());
        let with = |change: fn(&mut Linked)| {
            let mut linked = good();
            change(&mut linked);
            problems(&linked).len()
        };
        assert_eq!(with(|linked| linked.glibc = (2, 34)), 1);
        assert_eq!(with(|linked| linked.needed.clear()), 1);
        assert_eq!(with(|linked| linked.unwinder.push("_Unwind_Resume".to_owned())), 1);
        assert_eq!(with(|linked| linked.exports.push("other".to_owned())), 1);
        assert_eq!(with(|linked| linked.build_id = None), 1);
        assert_eq!(with(|linked| linked.bytes = 7 << 20), 1);
    }

    #[test]
    fn folders_of_the_builder_are_found() {
        let folders = [(PathBuf::from("/home/somebody/spark"), "endstone-spark")];
        assert_eq!(folders_in(b"panicked at endstone-spark/src/lib.rs", &folders), [""; 0]);
        assert_eq!(folders_in(b"at /home/somebody/spark/src/lib.rs", &folders).len(), 1);
        assert_eq!(flags("/lib/libgcc_s.so.1", &folders).len(), 2);
    }
}
