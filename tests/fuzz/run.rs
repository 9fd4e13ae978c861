//! Running a target: the process that does it, and the one that looks after it.

use std::collections::HashMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::progress::Progress;
use super::target::{self, Target};

/// Names the file of the progress, to a process that is to read inputs.
const WORK: &str = "SPARK_FUZZ_WORK";
/// Names a file to try alone.
const FILE: &str = "SPARK_FUZZ_FILE";
/// The seed of a usual test run.
const SEED: u64 = 0x5eed;
/// From so many inputs on, what came of them can be judged.
const ENOUGH: u64 = 1_000;

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

fn seed() -> u64 {
    setting("SPARK_FUZZ_SEED").unwrap_or(SEED)
}

/// Gives random inputs to a target, as many as a usual run has or the environment says.
pub fn fuzz<T: Target>(target: &T) {
    if let Some(file) = std::env::var_os(FILE) {
        bound_memory(T::MEMORY_BYTES);
        target.check(&std::fs::read(file).unwrap());
    } else if let Some(path) = std::env::var_os(WORK) {
        work(target, Path::new(&path));
    } else {
        look_after(target);
    }
}

/// Memory beyond this is refused, which ends the process.
fn bound_memory(bytes: u64) {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    // SAFETY: it only reads the structure.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_DATA, &limit) }, 0);
}

/// The most memory that this process has had, in kB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn work<T: Target>(target: &T, path: &Path) {
    bound_memory(T::MEMORY_BYTES);
    let seed = seed();
    let progress = Progress::open(path, T::THREADS);
    let begin = Instant::now();
    let end = setting("SPARK_FUZZ_SECONDS").map(|seconds| begin + Duration::from_secs(seconds));
    let inputs = match end {
        Some(_) => u64::MAX,
        None => setting("SPARK_FUZZ_INPUTS").unwrap_or(T::INPUTS),
    };
    let next = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let read = |thread: usize| {
        // All Relaxed: numbers that are given out once, and a wish to stop.
        while !failed.load(Ordering::Relaxed) && end.is_none_or(|end| Instant::now() < end) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= inputs {
                return;
            }
            let input = target::input(target, seed, number);
            progress.begins(thread, number);
            if catch_unwind(AssertUnwindSafe(|| target.check(&input))).is_err() && !failed.swap(true, Ordering::Relaxed)
            {
                progress.blame(thread);
                std::process::exit(101);
            }
            progress.has_done(thread);
        }
    };
    std::thread::scope(|scope| {
        let read = &read;
        (1..T::THREADS).for_each(|thread| drop(scope.spawn(move || read(thread))));
        read(0);
    });
    let inputs = next.load(Ordering::Relaxed).min(inputs);
    println!(
        "{inputs} inputs from seed {seed} in {:.0} s, at most {:.1} MB of memory; {}",
        begin.elapsed().as_secs_f64(),
        peak() as f64 / 1e3,
        if inputs < ENOUGH {
            "too few to judge".to_owned()
        } else {
            target.finish(inputs)
        }
    );
}

fn this_program<T: Target>() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([T::TEST, "--exact", "--nocapture", "--test-threads=1"]);
    // Naming a backtrace takes more memory than any input may.
    command.env("RUST_BACKTRACE", "0");
    command
}

fn look_after<T: Target>(target: &T) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("progress");
    let progress = Progress::create(&path, T::THREADS);
    let output = folder.path().join("output");
    let file = File::create(&output).unwrap();
    let mut child = this_program::<T>()
        .env(WORK, &path)
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let ended = wait(&mut child, &progress, T::HANG);
    let said = std::fs::read_to_string(&output).unwrap_or_default();
    println!("{said}");
    match ended {
        Ok(status) if status.success() => {
            assert!(said.contains("inputs from seed"), "{} ran nothing", T::TEST);
        }
        Ok(status) => panic!("{}: {status}\n{said}\n{}", T::TEST, suspects(target, &progress)),
        Err(number) => panic!("{} hangs\n{}", T::TEST, write::<T>(target, number)),
    }
}

/// Waits for the process, or gives the number of an input that it does not get done.
fn wait(child: &mut Child, progress: &Progress, limit: Duration) -> Result<ExitStatus, u64> {
    let mut since: HashMap<(usize, u64), Instant> = HashMap::new();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Ok(status);
        }
        let running = progress.running();
        let running = running
            .iter()
            .enumerate()
            .filter_map(|(thread, number)| Some((thread, (*number)?)));
        let before = std::mem::take(&mut since);
        since = running
            .map(|key| (key, before.get(&key).copied().unwrap_or_else(Instant::now)))
            .collect();
        if let Some(((_, number), _)) = since.iter().find(|(_, begun)| begun.elapsed() > limit) {
            child.kill().unwrap();
            child.wait().unwrap();
            return Err(*number);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What may have ended the process: each is tried again alone.
fn suspects<T: Target>(target: &T, progress: &Progress) -> String {
    let running: Vec<u64> = progress.running().into_iter().flatten().collect();
    let guilty: Vec<u64> = running
        .iter()
        .copied()
        .filter(|number| {
            let status = this_program::<T>()
                .env(FILE, file::<T>(target, *number))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            !status.unwrap().success()
        })
        .collect();
    // One that is no trouble alone may be together with others.
    let told = if guilty.is_empty() { running } else { guilty };
    told.into_iter().map(|number| write::<T>(target, number)).collect()
}

fn file<T: Target>(target: &T, number: u64) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{}-{}-{number}", T::TEST.replace("::", "-"), seed()));
    std::fs::write(&path, target::input(target, seed(), number)).unwrap();
    path
}

fn write<T: Target>(target: &T, number: u64) -> String {
    let path = file(target, number);
    let name = T::TEST.split("::").next().unwrap_or_default();
    format!(
        "input {number} of seed {}: {}\nagain: ./dev fuzz {name} --file {}\n",
        seed(),
        path.display(),
        path.display()
    )
}
