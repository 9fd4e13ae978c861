//! Distances and weights of samples.

mod native_support;

use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use endstone_spark::native::ThreadSelection;
use native_support::{Busy, Taken, sample_until, start};

/// There is one capture at a time in a process.
static ONE: Mutex<()> = Mutex::new(());

#[test]
fn samples_are_never_closer_than_asked_and_account_for_all_time() {
    let _one = ONE.lock();
    let busy = Busy::new();
    for (interval_micros, wanted) in [(100, 2_000), (4_000, 100), (1_000_000, 3)] {
        let begun = Instant::now();
        let (taken, _, _) = sample_until(interval_micros, ThreadSelection::Tids(vec![busy.tid]), |taken, _| {
            taken.len() >= wanted
        });
        // One falls into each interval, the first at once.
        let intervals = begun.elapsed().as_micros() as u64 / interval_micros;
        assert!(
            taken.len() as u64 <= intervals + 2,
            "{} samples in {intervals} intervals of {interval_micros} us",
            taken.len()
        );
        // What is between is our own handler's time: microseconds, unless the machine has none for the thread just then.
        let between = |pair: &[Taken]| pair[1].taken_at.since(pair[0].taken_at) - pair[1].weight_nanos;
        let long = taken.windows(2).filter(|pair| between(pair) > 1_000_000).count();
        assert!(
            long <= 1 + taken.len() / 20,
            "{long} of {} samples leave time out",
            taken.len()
        );
    }
    busy.end();
}

#[test]
fn time_in_our_handler_is_nobodys() {
    let _one = ONE.lock();
    let busy = Busy::new();
    let (taken, _, _) = sample_until(200, ThreadSelection::Tids(vec![busy.tid]), |taken, _| {
        taken.len() >= 1_000
    });
    let begins_after = |pair: &&[Taken]| {
        let begin = pair[1].taken_at.0 - pair[1].weight_nanos;
        begin > pair[0].taken_at.0
    };
    let signalled: Vec<&[Taken]> = taken
        .windows(2)
        .filter(|pair| !pair[0].repeated && !pair[1].repeated)
        .collect();
    assert!(signalled.len() > 500, "a busy thread is asked");
    let after = signalled.iter().filter(|pair| begins_after(pair)).count();
    assert_eq!(
        after,
        signalled.len(),
        "the time of a sample begins where the handler of the last one ended"
    );
    busy.end();
}

#[test]
fn the_time_in_which_the_process_was_stopped_is_left_out() {
    let _one = ONE.lock();
    let busy = Busy::new();
    let begun = Instant::now();
    let (mut sampler, mut source) = start(1_000, ThreadSelection::Tids(vec![busy.tid]));
    let mut counted = 0;
    let mut drain = |source: &mut endstone_spark::native::SampleSource| {
        source.drain(Duration::from_millis(5), &mut |sample| counted += sample.weight_nanos)
    };
    while sampler.figures().samples < 20 {
        drain(&mut source);
    }
    let this = std::process::id();
    let mut stopper = Command::new("sh")
        .args(["-c", &format!("kill -STOP {this}; sleep 2; kill -CONT {this}")])
        .spawn()
        .unwrap();
    assert!(stopper.wait().unwrap().success());
    let before = sampler.figures().samples;
    while sampler.figures().samples < before + 20 || sampler.figures().stopped_nanos == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", sampler.figures());
        drain(&mut source);
    }
    sampler.stop();
    while drain(&mut source) {}
    let (all, stopped) = (begun.elapsed().as_nanos() as u64, sampler.figures().stopped_nanos);
    assert!(stopped > 1_000_000_000, "{stopped}");
    assert!(counted + stopped <= all, "{counted} + {stopped} of {all} ns");
    busy.end();
}
