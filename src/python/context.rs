//! What a callback finds for its thread: cache, counters, shadow stack.
//!
//! One thread-local word points at the thread's [`Context`]. Nothing runs for it when a thread ends, so using it ties no host thread to this plugin. Contexts are
//! statics that are never freed: whatever a thread-local of a thread we forgot still points at is there. Whether it is of *this* session is told
//! by the session mark, the object that CPython hands to every callback as its `self`: it is another one in each session, and an old one
//! lives as long as any old callback does, so a mark is never confused with an earlier session's.

use std::arch::{asm, global_asm};
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::monitoring::Event;
use crate::limits::{CODE_CACHE, NESTED_REGISTRATIONS, PYTHON_THREADS};
use crate::model::EventCounts;
use crate::shadow::{EntryCode, ShadowStack};

/// See the module's text. Written by its thread only; counters are read by others.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Context {
    /// By [`place`]: two code objects. Each is its address and what its entry on the shadow stack says. First, as that spares
    /// an addition.
    cache: [[[AtomicU64; 2]; 2]; CODE_CACHE / 2],
    /// Address of the session's mark; 0 for no session.
    session: AtomicUsize,
    /// The thread that it belongs to, by its [`thread_pointer`]. A thread that was here in an earlier session still has this context's address,
    /// and the context may be another thread's by now.
    owner: AtomicU64,
    shadow: AtomicPtr<ShadowStack>,
    events: [AtomicU64; Event::COUNT],
    /// Registrations running on this thread.
    nested: AtomicU32,
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
// asks the loader instead, which answers in a few instructions where it found static space for the word; [`word_offset`] is that answer.
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

/// Distance from the thread pointer to the thread-local word, if that is the same for all threads. That is so if the word lies in static thread-local
/// space, and for a thread of libpthread's that space is the top of its stack's mapping (glibc, nptl/allocatestack.c). A word that was allocated for the
/// thread alone lies elsewhere. The main thread cannot tell.
pub(super) fn word_offset() -> Option<i64> {
    let (word, pointer) = (thread_word().expose_provenance() as u64, thread_pointer());
    let is_static = own_stack().is_some_and(|stack| stack.contains(&word) && stack.contains(&pointer));
    is_static.then(|| word.wrapping_sub(pointer) as i64)
}

/// The mapping of the calling thread's stack.
fn own_stack() -> Option<Range<u64>> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut start, mut length) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes are initialised by the first call when it succeeds, read by the second, and given back by the third.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let found = libc::pthread_attr_getstack(attributes.as_ptr(), &mut start, &mut length) == 0;
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        let start = start.expose_provenance() as u64;
        found.then(|| start..start + length as u64)
    }
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

/// Where a code object is cached. Most are some hundred bytes long, so that the bits from 256 on are as good as any hash: of 6,922 code objects of the
/// standard library, random choices met as often as random numbers would.
#[inline(always)]
fn place(code: u64) -> usize {
    (code >> 8) as usize % (CODE_CACHE / 2)
}

/// What ties a leave to its enter: the part of the address that tells code objects apart, unless they are a multiple of 4 GiB from each other.
#[inline(always)]
pub(super) fn tag(code: u64) -> u32 {
    code as u32
}

impl Context {
    const fn new(shadow: *mut ShadowStack) -> Self {
        Context {
            session: AtomicUsize::new(0),
            owner: AtomicU64::new(0),
            shadow: AtomicPtr::new(shadow),
            events: [const { AtomicU64::new(0) }; Event::COUNT],
            nested: AtomicU32::new(0),
            cache: [const { [const { [const { AtomicU64::new(0) }; 2] }; 2] }; CODE_CACHE / 2],
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
        for word in self.cache.iter().flatten().flatten() {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Whether this is the calling thread's own context in the session with this mark. Threads without a slot have none.
    #[inline(always)]
    pub(super) fn is_own(&self, session: usize) -> bool {
        // Relaxed, twice: this thread's own, or 0 since `end_session`, which runs when no callback does; or another thread's, which the owner tells.
        self.session.load(Ordering::Relaxed) == session && self.owner.load(Ordering::Relaxed) == thread_pointer()
    }

    /// Whether this is the calling thread's context in the session with this mark, be it the shared one.
    pub(super) fn is_of(&self, session: usize) -> bool {
        // Relaxed: see `is_own`.
        self.is_own(session) || self.is_in(session) && self.owner.load(Ordering::Relaxed) == EVERYBODY
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

    /// What the entry of the code object at this address says, if that is known.
    #[inline(always)]
    pub(super) fn cached(&self, code: u64) -> Option<EntryCode> {
        let [first, second] = &self.cache[place(code)];
        // Relaxed, all: this thread's own, or taken out by `forget`.
        let pair = if first[0].load(Ordering::Relaxed) == code {
            first
        } else if second[0].load(Ordering::Relaxed) == code {
            second
        } else {
            return None;
        };
        Some(EntryCode::from_bits(pair[1].load(Ordering::Relaxed)))
    }

    /// Where there is room, or else in the place of one of the two, which stays where it is: moving it could bring back what another thread
    /// forgets at the same time.
    pub(super) fn remember(&self, code: u64, entry: EntryCode) {
        let [first, second] = &self.cache[place(code)];
        // Relaxed, all: this thread's own. In the shared context of refused threads two threads may mix their pairs; there the words reach a
        // stack that ignores them.
        let is_free = |pair: &[AtomicU64; 2]| pair[0].load(Ordering::Relaxed) == 0;
        let pair = match (is_free(first), is_free(second)) {
            (true, _) => first,
            (false, true) => second,
            (false, false) if entry.code().get().is_multiple_of(2) => first,
            (false, false) => second,
        };
        pair[0].store(code, Ordering::Relaxed);
        pair[1].store(entry.to_bits(), Ordering::Relaxed);
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
        // Relaxed: in a free-threaded build the context's thread may put another code object there at the same time, and then that one stays; nobody
        // asks for this one, as a running function keeps its code object alive. What gives the address to a new object orders this before it.
        for [cached, _] in &context.cache[place(code)] {
            let _ = cached.compare_exchange(code, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
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
