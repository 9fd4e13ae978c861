//! Compares the unwinder with the truth at every single instruction of a piece of work.
//!
//! The processor's trap flag makes the kernel send `SIGTRAP` after each instruction of the calling thread. The handler keeps the true chain of callers by watching
//! the instructions themselves: a call adds the return address it has pushed, and whatever moves the stack pointer above such a word (a return, `longjmp`,
//! an exception) takes it away. Then it unwinds from the interrupted registers, as the sampler's handler does, and compares. Sampling would need hours to meet
//! what is met here: each instruction of a prologue, an epilogue, a PLT entry, the loader's resolver.
//!
//! What it cannot step through: calls that block `SIGTRAP` (starting a thread or a process), for a blocked trap ends the process.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_void};
use std::fmt;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use endstone_spark::model::StackEnd;
use endstone_spark::native::Unwinder;
use endstone_spark::sys::task;
use endstone_spark::sys::thread::current_tid;

/// How often one instruction is compared: with the stacks of its first occurrences.
const COMPARISONS: u8 = 4;
/// How far up the stack a function may put its return address, in bytes.
const FARTHEST: u64 = 4_096;
const PLACES: usize = 1 << 20;
const KEPT: usize = 4_096;

/// How the unwinder was wrong at an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wrong {
    pub end: StackEnd,
    /// How many of the outermost callers agree, of how many true ones.
    pub agree: usize,
    pub truth: usize,
    pub found: usize,
}

struct Trace<'a> {
    unwinder: &'a Unwinder,
    limit: u64,
    stack: std::ops::Range<u64>,
    /// True return addresses and where the stack pointer is after each return, outermost first.
    chain: Vec<(u64, u64)>,
    /// The instruction before: its address and the stack pointer then.
    before: Option<(u64, u64)>,
    found: Vec<(u64, u64)>,
    /// By instruction: how often it was compared.
    seen: Vec<(u64, u8)>,
    report: Report,
    wrong: Vec<(u64, Wrong)>,
}

/// What a trace found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub steps: u64,
    pub compared: u64,
    /// Different instructions among these.
    pub instructions: u64,
    pub deepest: usize,
    /// Where the unwinder was wrong, and how.
    pub wrong: BTreeMap<String, Wrong>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} steps, {} comparisons at {} different instructions, up to {} callers, wrong at {} places",
            self.steps,
            self.compared,
            self.instructions,
            self.deepest,
            self.wrong.len()
        )
    }
}

static TRACE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static TRACED: AtomicUsize = AtomicUsize::new(0);

const TRAP_FLAG: i64 = 0x100;

extern "C" fn on_trap(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a ucontext; the trace belongs to the thread that has put it there, which is interrupted now.
    unsafe {
        let saved = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let trace = TRACE.load(Ordering::Acquire).cast::<Trace<'_>>();
        if trace.is_null() || TRACED.load(Ordering::Acquire) != libc::gettid() as usize {
            saved[libc::REG_EFL as usize] &= !TRAP_FLAG;
            return;
        }
        let (pc, sp) = (
            saved[libc::REG_RIP as usize] as u64,
            saved[libc::REG_RSP as usize] as u64,
        );
        (*trace).step(pc, sp, context);
    }
}

/// Whether the instruction at `pc` is a call, and its length does not matter: what it pushed does.
unsafe fn is_call(pc: u64) -> bool {
    let mut at = pc as *const u8;
    // SAFETY: the thread has just executed this instruction; one is at most 15 bytes long.
    unsafe {
        while matches!(at.read(), 0x66 | 0xf2 | 0x3e | 0x40..=0x4f) {
            at = at.add(1);
        }
        match at.read() {
            0xe8 => true,
            0xff => at.add(1).read() >> 3 & 7 == 2,
            _ => false,
        }
    }
}

impl Trace<'_> {
    unsafe fn step(&mut self, pc: u64, sp: u64, context: *mut c_void) {
        self.report.steps += 1;
        if self.report.steps >= self.limit {
            TRACED.store(0, Ordering::Release);
        }
        match self.before {
            // The first instruction that is seen is that after the flag was set, with the chain of `begin`.
            None => {}
            Some((call, before)) => {
                self.leave(pc, sp);
                // SAFETY: executed just now.
                if sp == before - 8 && unsafe { is_call(call) } {
                    // SAFETY: the top of this thread's stack.
                    let pushed = unsafe { (sp as *const u64).read() };
                    if pushed > call && pushed <= call + 15 && pushed != pc && self.chain.len() < self.chain.capacity()
                    {
                        self.chain.push((pushed, sp + 8));
                    }
                }
            }
        }
        self.before = Some((pc, sp));
        if !self.wants(pc) {
            return;
        }
        self.report.compared += 1;
        self.report.deepest = self.report.deepest.max(self.chain.len());
        self.found.clear();
        let from = sp.saturating_sub(128).max(self.stack.start);
        // SAFETY: the kernel's context; this thread's own stack.
        let end = unsafe {
            self.unwinder
                .unwind_interrupted(context, from..self.stack.end, &mut self.found)
        };
        let agree = self
            .found
            .iter()
            .rev()
            .zip(&self.chain)
            .take_while(|(found, truth)| found == truth)
            .count();
        let right = (agree, agree) == (self.chain.len(), self.found.len()) && end == StackEnd::Root;
        if !right && self.wrong.len() < self.wrong.capacity() {
            let how = Wrong {
                end,
                agree,
                truth: self.chain.len(),
                found: self.found.len(),
            };
            self.wrong.push((pc, how));
        }
    }

    /// Takes off the chain what the last instruction has left.
    fn leave(&mut self, pc: u64, sp: u64) {
        let mut left = None;
        let mut count = 0;
        while self.chain.last().is_some_and(|(_, cfa)| cfa - 8 < sp) {
            left = self.chain.pop();
            count += 1;
        }
        // One return address went without a return to it: the function may have put it elsewhere before (libffi's calls do).
        if let Some((address, _)) = left.filter(|(address, _)| count == 1 && *address != pc) {
            let slots = (sp..self.stack.end.min(sp + FARTHEST)).step_by(8);
            // SAFETY: words of this thread's own stack, above its stack pointer.
            let moved = slots
                .into_iter()
                .find(|slot| unsafe { (*slot as *const u64).read() } == address);
            self.chain.extend(moved.map(|slot| (address, slot + 8)));
        }
    }

    /// Whether this instruction is to be compared once more.
    fn wants(&mut self, pc: u64) -> bool {
        let mut at = (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as usize % PLACES;
        for _ in 0..64 {
            let place = &mut self.seen[at];
            if place.0 == 0 {
                *place = (pc, 1);
                self.report.instructions += 1;
                return true;
            }
            if place.0 == pc {
                place.1 += 1;
                let wanted = place.1 <= COMPARISONS;
                place.1 = place.1.min(COMPARISONS);
                return wanted;
            }
            at = (at + 1) % PLACES;
        }
        false
    }
}

/// Module and place in it, with the name of the function where the loader knows it.
pub fn place(pc: u64) -> String {
    // SAFETY: dladdr fills the structure in or says that it did not.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(pc as *const c_void, &mut info) == 0 {
            return format!("{pc:#x}");
        }
        let module = CStr::from_ptr(info.dli_fname).to_string_lossy();
        let module = module.rsplit('/').next().unwrap_or_default();
        let rva = pc - info.dli_fbase as u64;
        let name = match info.dli_sname.is_null() {
            true => String::new(),
            false => format!(" {}", CStr::from_ptr(info.dli_sname).to_string_lossy()),
        };
        format!("{module}+{rva:#x}{name}")
    }
}

/// Does `work` step by step, but not more than `limit` steps of it (a step takes some 20 microseconds on a virtual machine), and compares at each
/// instruction. One at a time in a process.
#[inline(never)]
pub fn compare(unwinder: &Unwinder, limit: u64, work: &mut dyn FnMut()) -> Report {
    let mut trace = Trace {
        unwinder,
        limit,
        stack: task::own_stack().unwrap(),
        chain: Vec::with_capacity(20_000),
        before: None,
        found: Vec::with_capacity(20_000),
        seen: vec![(0, 0); PLACES],
        report: Report::default(),
        wrong: Vec::with_capacity(KEPT),
    };
    // SAFETY: a zeroed action is valid, the handler fits the flags.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_trap as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGTRAP, &action, std::ptr::null_mut()), 0);
    }
    TRACED.store(current_tid().get() as usize, Ordering::Release);
    stepped(&mut trace, work);
    TRACE.store(std::ptr::null_mut(), Ordering::Release);
    let mut report = trace.report;
    for (pc, wrong) in trace.wrong {
        report.wrong.entry(place(pc)).or_insert(wrong);
    }
    report
}

/// Its callers are the chain to begin with; `work` is called with the trap flag set.
#[inline(never)]
fn stepped(trace: &mut Trace<'_>, work: &mut dyn FnMut()) {
    let (pc, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) pc, out(reg) sp, out(reg) bp, options(nomem, nostack));
    }
    assert_eq!(trace.unwinder.unwind(pc, sp, bp, &mut trace.chain), StackEnd::Root);
    trace.chain.reverse();
    TRACE.store((trace as *mut Trace<'_>).cast(), Ordering::Release);
    // SAFETY: sets the trap flag; the handler is installed.
    unsafe { std::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    work();
    // Seen by the handler, which clears the flag.
    TRACED.store(0, Ordering::Release);
}
