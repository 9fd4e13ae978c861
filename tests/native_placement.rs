//! The sampler stays off the processor of the thread that it samples, and follows it.

mod native_support;

use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use endstone_spark::model::Tid;
use endstone_spark::native::ThreadSelection;
use endstone_spark::sys::task;
use native_support::{start, this_thread};
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

/// A machine that gives nobody a processor for longer than this is not one to test on.
const PATIENCE: Duration = Duration::from_secs(60);

/// There is one capture at a time in a process.
static ONE: Mutex<()> = Mutex::new(());

fn confine_to(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(None, &set).unwrap();
}

fn processors(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::MAX_CPU)
        .filter(|processor| set.is_set(*processor))
        .collect()
}

/// A thread has its name a moment after it has begun.
fn sampler_thread() -> Tid {
    let begun = Instant::now();
    loop {
        let all = task::all().unwrap();
        let is_it = |tid: &Tid| task::name(*tid).is_ok_and(|name| name == "spark-sampler");
        if let Some(tid) = all.into_iter().find(is_it) {
            return tid;
        }
        assert!(begun.elapsed() < PATIENCE, "the sampler does not run");
    }
}

/// Where the sampler may run.
fn of_sampler() -> CpuSet {
    sched_getaffinity(Pid::from_raw(sampler_thread().get())).unwrap()
}

#[test]
fn the_sampler_leaves_the_thread_its_processor_and_takes_nothing_else_from_itself() {
    let _one = ONE.lock();
    let allowed = processors(&sched_getaffinity(None).unwrap());
    let (report, reported) = mpsc::channel();
    let (order, orders) = mpsc::channel::<usize>();
    let thread = std::thread::spawn(move || {
        report.send(this_thread()).unwrap();
        let mut orders = orders.into_iter();
        let mut next = orders.next();
        while let Some(processor) = next {
            confine_to(processor);
            report.send(this_thread()).unwrap();
            next = orders.next();
        }
    });
    let tid = reported.recv().unwrap();
    let (mut sampler, mut source) = start(1_000, ThreadSelection::Tids(vec![tid]));
    for processor in allowed.iter().take(3).chain(allowed.first()) {
        order.send(*processor).unwrap();
        reported.recv().unwrap();
        let expected: Vec<usize> = match allowed.len() {
            1 => allowed.clone(),
            _ => allowed.iter().copied().filter(|other| other != processor).collect(),
        };
        let begun = Instant::now();
        while processors(&of_sampler()) != expected {
            source.drain(Duration::from_millis(5), &mut |_| {});
            assert!(
                begun.elapsed() < PATIENCE,
                "{:?}, not {expected:?}",
                processors(&of_sampler())
            );
        }
    }
    sampler.stop();
    drop(order);
    thread.join().unwrap();
    assert_eq!(
        processors(&sched_getaffinity(None).unwrap()),
        allowed,
        "others are left alone"
    );
}

#[test]
fn with_all_threads_the_sampler_may_run_anywhere() {
    let _one = ONE.lock();
    let allowed = processors(&sched_getaffinity(None).unwrap());
    let (mut sampler, mut source) = start(1_000, ThreadSelection::All);
    let begun = Instant::now();
    while sampler.figures().rounds < 300 && begun.elapsed() < PATIENCE {
        source.drain(Duration::from_millis(5), &mut |_| {});
    }
    assert_eq!(processors(&of_sampler()), allowed);
    sampler.stop();
}
