//! The machine, which tests have for themselves or share.
//!
//! Those that share it go first, some at once, and those that measure after them, one by one: taken in the order of their names each of these would wait for the longest of the others, with
//! nothing beside that one. `./dev test` gives each test a thread, so that none waits for a thread that waits here.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Servers beside each other, for each processor: most of the time they wait.
const SERVERS_FOR_EACH_PROCESSOR: usize = 2;

static MACHINE: Mutex<Use> = Mutex::new(Use {
    measures: false,
    sharing: 0,
    want_to_share: 0,
});
static CHANGED: Condvar = Condvar::new();

/// Who uses it.
struct Use {
    measures: bool,
    sharing: usize,
    want_to_share: usize,
}

/// Given back when the test ends, however it ends.
pub(crate) struct Turn {
    alone: bool,
}

fn look() -> MutexGuard<'static, Use> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_while(now: MutexGuard<'static, Use>, busy: impl FnMut(&mut Use) -> bool) -> MutexGuard<'static, Use> {
    CHANGED.wait_while(now, busy).unwrap_or_else(PoisonError::into_inner)
}

/// Held by a test that measures shares or times, while its server runs: no other server runs beside it.
pub(crate) fn alone() -> Turn {
    let busy = |now: &mut Use| now.measures || now.sharing > 0 || now.want_to_share > 0;
    wait_while(look(), busy).measures = true;
    Turn { alone: true }
}

/// Held by a test whose answer is the same on a busy machine, while its server runs.
pub(crate) fn beside() -> Turn {
    let room = SERVERS_FOR_EACH_PROCESSOR * std::thread::available_parallelism().map_or(1, usize::from);
    let mut now = look();
    now.want_to_share += 1;
    let mut now = wait_while(now, |now| now.measures || now.sharing >= room);
    now.want_to_share -= 1;
    now.sharing += 1;
    Turn { alone: false }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut now = look();
        if self.alone {
            now.measures = false;
        } else {
            now.sharing -= 1;
        }
        CHANGED.notify_all();
    }
}
