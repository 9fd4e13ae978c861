//! What a callback finds for its thread: cache, counters, shadow stack.
//!
//! One thread-local word points at the thread's [`Context`]. Nothing runs for it when a thread ends, so using it ties no host thread to this plugin. Contexts are
//! statics that are never freed: whatever a thread-local of a thread we forgot still points at is there. Whether it is of *this* session is told
//! by the session mark, the object that CPython hands to every callback as its `self`: it is another one in each session, and an old one
//! lives as long as any old callback does, so a mark is never confused with an earlier session's.

use std::arch::{asm, global_asm};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::monitoring::Event;
use crate::limits::{CODE_CACHE, NESTED_REGISTRATIONS, PYTHON_THREADS};
use crate::model::{CodeId, EventCounts};
use crate::shadow::ShadowStack;

/// See the module's text. Written by its thread only; counters are read by others.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Context {
    /// Address of the session's mark; 0 for no session.
    session: AtomicUsize,
    /// The thread that it belongs to, by its [`thread_pointer`]. A thread that was here in an earlier session still has this context's address,
    /// and the context may be another thread's by now.
    owner: AtomicU64,
    shadow: AtomicPtr<ShadowStack>,
    events: [AtomicU64; Event::COUNT],
    /// Registrations running on this thread.
    nested: AtomicU32,
    /// Direct-mapped: address of a code object, and its id.
    cache: [[AtomicU64; 2]; CODE_CACHE],
}

/// The owner of the context that all threads without a slot share.
const EVERYBODY: u64 = u64::MAX;

/// A stack that is never opened: it ignores events.
static NO_STACK: ShadowStack = ShadowStack::new();

/// The context of threads that have not been seen in any session. No mark equals its 0.
static STRANGER: Context = Context::new((&raw const NO_STACK).cast_mut());

/// The context of all threads that found no slot. Its counters may lose counts when such threads run in parallel.
static REFUSED: Context = Context::new((&raw const NO_STACK).cast_mut());

/// One per slot. All zeroes, so that four megabytes take no room in the file; [`Context::adopt`] gives each a stack before a thread can see it.
static CONTEXTS: [Context; PYTHON_THREADS] = [const { Context::new(std::ptr::null_mut()) }; PYTHON_THREADS];

// The thread-local word, which begins as the address of `STRANGER`. Declared by hand because `thread_local!` in a shared library calls
// `__tls_get_addr` at every access, some 2 ns twice per Python call. A TLS descriptor (https://www.fsfla.org/~lxoliva/writeups/TLS/RFC-TLSDESC-x86.txt)
// costs two instructions where the loader found static space for the word, and falls back to the same function where it did not.
global_asm!(
    ".pushsection .tdata.spark_thread_context,\"awT\",@progbits",
    ".globl spark_thread_context",
    ".hidden spark_thread_context",
    ".type spark_thread_context,@object",
    ".size spark_thread_context,8",
    ".p2align 3",
    "spark_thread_context:",
    ".quad {stranger}",
    ".popsection",
    stranger = sym STRANGER,
);

/// The calling thread's word.
fn thread_word() -> *mut &'static Context {
    let word: *mut &'static Context;
    // SAFETY: the sequence that the TLS descriptor ABI prescribes; it changes rax and the flags only, and reads the thread's own segment.
    unsafe {
        asm!(
            "lea rax, [rip + spark_thread_context@TLSDESC]",
            "call [rax + spark_thread_context@TLSCALL]",
            "add rax, fs:0",
            out("rax") word,
        );
    }
    word
}

/// The address of the thread control block, which no two living threads share (System V psABI, 3.4.6: the word at `fs:0` points to itself). A thread that
/// is born at a dead one's address finds its thread-local word fresh, so it cannot be taken for the dead one.
#[inline(always)]
fn thread_pointer() -> u64 {
    let address: u64;
    // SAFETY: every thread of a Linux x86-64 program has `fs:0` from its start; this only reads it.
    unsafe {
        asm!("mov {}, fs:0", out(reg) address, options(pure, nostack, readonly, preserves_flags));
    }
    address
}

/// Where a code object's id is cached. Code objects lie 16 bytes apart at least, and most are some hundred bytes long.
#[inline(always)]
fn place(code: u64) -> usize {
    ((code >> 4) ^ (code >> 13)) as usize % CODE_CACHE
}

/// What ties a leave to its enter: the part of the address that tells code objects of one process apart.
#[inline(always)]
pub(super) fn tag(code: u64) -> u32 {
    (code >> 4) as u32
}

impl Context {
    const fn new(shadow: *mut ShadowStack) -> Self {
        Context {
            session: AtomicUsize::new(0),
            owner: AtomicU64::new(0),
            shadow: AtomicPtr::new(shadow),
            events: [const { AtomicU64::new(0) }; Event::COUNT],
            nested: AtomicU32::new(0),
            cache: [const { [const { AtomicU64::new(0) }; 2] }; CODE_CACHE],
        }
    }

    /// The calling thread's.
    pub(super) fn current() -> &'static Context {
        // SAFETY: only references to statics are ever stored there.
        unsafe { &**thread_word() }
    }

    /// Makes the calling thread's context that of slot `number`, or the shared one of threads without a slot.
    pub(super) fn adopt(session: usize, slot: Option<(usize, &'static ShadowStack)>) -> &'static Context {
        let claimed = slot.and_then(|(number, shadow)| Some((CONTEXTS.get(number)?, shadow)));
        let (context, shadow) = claimed.unwrap_or((&REFUSED, &NO_STACK));
        // Relaxed, all of it: this thread writes, this thread reads.
        if !context.is_of(session) {
            context.clear();
            let owner = if claimed.is_some() { thread_pointer() } else { EVERYBODY };
            context.owner.store(owner, Ordering::Relaxed);
            context
                .shadow
                .store(std::ptr::from_ref(shadow).cast_mut(), Ordering::Relaxed);
            context.session.store(session, Ordering::Relaxed);
        }
        // SAFETY: this thread's own word, which no reference points at.
        unsafe { *thread_word() = context };
        context
    }

    fn clear(&self) {
        // Relaxed: see `adopt` and `end_session`.
        self.session.store(0, Ordering::Relaxed);
        self.nested.store(0, Ordering::Relaxed);
        self.events.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        for [code, id] in &self.cache {
            code.store(0, Ordering::Relaxed);
            id.store(0, Ordering::Relaxed);
        }
    }

    /// Whether this is the calling thread's context in the session with this mark.
    #[inline(always)]
    pub(super) fn is_of(&self, session: usize) -> bool {
        // Relaxed, twice: this thread's own, or 0 since `end_session`, which runs when no callback does; or another thread's, which the owner tells.
        let owner = self.owner.load(Ordering::Relaxed);
        self.session.load(Ordering::Relaxed) == session && (owner == thread_pointer() || owner == EVERYBODY)
    }

    /// Whether it is any thread's context in the session with this mark.
    fn is_in(&self, session: usize) -> bool {
        // Relaxed: for figures.
        self.session.load(Ordering::Relaxed) == session
    }

    #[inline(always)]
    pub(super) fn shadow(&self) -> &'static ShadowStack {
        // Relaxed: this thread's own.
        // SAFETY: only addresses of statics are ever stored, and `adopt` stores one before a thread gets its context.
        unsafe { &*self.shadow.load(Ordering::Relaxed) }
    }

    #[inline(always)]
    pub(super) fn count<const EVENT: usize>(&self) {
        let count = &self.events[EVENT];
        // Relaxed twice: one writer; readers want the figure, not an order.
        count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// The cached id of the code object at this address.
    #[inline(always)]
    pub(super) fn cached(&self, code: u64) -> Option<CodeId> {
        let [cached, id] = &self.cache[place(code)];
        // Relaxed: this thread's own.
        (cached.load(Ordering::Relaxed) == code).then(|| CodeId::new(id.load(Ordering::Relaxed) as u32))
    }

    pub(super) fn remember(&self, code: u64, id: CodeId) {
        let [cached, place] = &self.cache[place(code)];
        // Relaxed: this thread's own. In the shared context of refused threads two threads may mix their pairs; there the ids reach a
        // stack that ignores them.
        cached.store(code, Ordering::Relaxed);
        place.store(u64::from(id.get()), Ordering::Relaxed);
    }

    /// Begins a registration; `false` when too many are running inside each other.
    pub(super) fn begin_registration(&self) -> bool {
        // Relaxed: this thread's own.
        self.nested.fetch_add(1, Ordering::Relaxed) < NESTED_REGISTRATIONS
    }

    pub(super) fn end_registration(&self) {
        // Relaxed: this thread's own.
        self.nested.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Takes the code object at this address, which dies, out of all caches of the session with this mark.
pub(super) fn forget(session: usize, code: u64) {
    for context in CONTEXTS
        .iter()
        .chain([&REFUSED])
        .filter(|context| context.is_in(session))
    {
        let [cached, _] = &context.cache[place(code)];
        // Relaxed: in a free-threaded build the context's thread may put another code object there at the same time, and then that one stays; nobody
        // asks for this one, as a running function keeps its code object alive. What gives the address to a new object orders this before it.
        let _ = cached.compare_exchange(code, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Makes all contexts nobody's. No callback may be running.
pub(super) fn end_session() {
    for context in CONTEXTS.iter().chain([&REFUSED]) {
        // Relaxed: what made sure that no callback runs orders this before the next one.
        context.session.store(0, Ordering::Relaxed);
    }
}

/// The events that the threads of the session with this mark have counted.
pub(super) fn event_counts(session: usize) -> EventCounts {
    let sum = |event: Event| {
        let contexts = CONTEXTS.iter().chain([&REFUSED]);
        contexts
            .filter(|context| context.is_in(session))
            // Relaxed: a figure.
            .filter_map(|context| Some(context.events.get(event as usize)?.load(Ordering::Relaxed)))
            .sum()
    };
    EventCounts {
        start: sum(Event::Start),
        resume: sum(Event::Resume),
        throw: sum(Event::Throw),
        ret: sum(Event::Return),
        yielded: sum(Event::Yield),
        unwind: sum(Event::Unwind),
    }
}
