//! `std::function<void()>`.

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use super::alloc::{allocate, release};
use super::rtti::TypeInfo;
use super::slot::{Pass, Slot};

vtable_slots! {
    /// Slots of `std::__function::__base<void ()>`, the callable inside a `std::function`.
    FunctionBaseSlots of "std::__1::__function::__base<void ()>" {
        CLONE = 2 "_ZNKSt3__110__function6__baseIFvvEE7__cloneEv" () -> Pass::Registers(8);
        CLONE_TO = 3 "_ZNKSt3__110__function6__baseIFvvEE7__cloneEPS3_" (Pass::Registers(8)) -> Pass::Nothing;
        DESTROY = 4 "_ZNSt3__110__function6__baseIFvvEE7destroyEv" () -> Pass::Nothing;
        DESTROY_DEALLOCATE = 5 "_ZNSt3__110__function6__baseIFvvEE18destroy_deallocateEv" () -> Pass::Nothing;
        CALL = 6 "_ZNSt3__110__function6__baseIFvvEEclEv" () -> Pass::Nothing;
        TARGET = 7 "_ZNKSt3__110__function6__baseIFvvEE6targetERKSt9type_info" (Pass::Registers(8)) -> Pass::Registers(8);
        TARGET_TYPE = 8 "_ZNKSt3__110__function6__baseIFvvEE11target_typeEv" () -> Pass::Registers(8);
    }
}

/// `std::function<void()>` that runs a Rust closure. The callable is always on the heap, so the value may be moved by Rust.
///
/// The host clones and destroys the callable whenever it likes, also after the plugin is gone: after `clearPlugins` the scheduler's next
/// heartbeat destroys the functions of cancelled tasks. The code they need stays mapped because the plugin is linked with
/// `-z nodelete`.
#[repr(C, align(16))]
pub struct CxxFunction {
    buffer: [usize; 4],
    callable: *mut Callable,
}

layout! { CxxFunction, mirrors "std::__1::function<void ()>", 48 bytes, in memory true {
    buffer @ 0 = "__f_";
} }

impl CxxFunction {
    /// Offsets inside `__f_`, which the debug information describes as `__value_func`.
    pub const VALUE_FUNC_MEMBERS: &'static [super::Member] = &[
        super::Member {
            name: "__buf_",
            offset: std::mem::offset_of!(CxxFunction, buffer),
        },
        super::Member {
            name: "__f_",
            offset: std::mem::offset_of!(CxxFunction, callable),
        },
    ];
}

type Closure = Arc<dyn Fn() + Send + Sync>;

/// Our implementation of `__base`. Clones share one closure.
#[repr(C)]
struct Callable {
    slots: *const *const c_void,
    /// One word, so that the object is two: a fat `Arc` inside a thin `Arc`.
    closure: *const Closure,
}

#[repr(C)]
struct CallableVtable {
    offset_to_top: isize,
    type_info: *const c_void,
    slots: [*const c_void; 9],
}

// SAFETY: written once, before it is shared, then only read.
unsafe impl Sync for CallableVtable {}
// SAFETY: as above.
unsafe impl Send for CallableVtable {}

fn vtable() -> &'static CallableVtable {
    static VTABLE: OnceLock<CallableVtable> = OnceLock::new();
    VTABLE.get_or_init(|| {
        let mut slots = [std::ptr::null(); 9];
        let mut set = |slot: Slot, function: *const c_void| {
            if let Some(entry) = slots.get_mut(slot.index) {
                *entry = function;
            }
        };
        set(FunctionBaseSlots::CLONE, clone as *const c_void);
        set(FunctionBaseSlots::CLONE_TO, clone_to as *const c_void);
        set(FunctionBaseSlots::DESTROY, destroy as *const c_void);
        set(
            FunctionBaseSlots::DESTROY_DEALLOCATE,
            destroy_deallocate as *const c_void,
        );
        set(FunctionBaseSlots::CALL, invoke as *const c_void);
        set(FunctionBaseSlots::TARGET, target as *const c_void);
        set(FunctionBaseSlots::TARGET_TYPE, target_type as *const c_void);
        // The two destructors: `std::function` uses `destroy` and `destroy_deallocate` instead, but they mean the same.
        slots[0] = destroy as *const c_void;
        slots[1] = destroy_deallocate as *const c_void;
        CallableVtable {
            offset_to_top: 0,
            type_info: target_type_info(),
            slots,
        }
    })
}

fn target_type_info() -> *const c_void {
    static INFO: OnceLock<Option<&'static TypeInfo>> = OnceLock::new();
    INFO.get_or_init(|| TypeInfo::of_root_class(c"N5spark8CallableE").ok())
        .map_or(std::ptr::null(), |info| std::ptr::from_ref(info).cast())
}

unsafe extern "C" fn clone(this: *const Callable) -> *mut Callable {
    let copy = allocate(size_of::<Callable>()).cast::<Callable>();
    // SAFETY: `this` is alive, `copy` is a fresh block of the right size.
    unsafe { clone_to(this, copy) };
    copy
}

unsafe extern "C" fn clone_to(this: *const Callable, place: *mut Callable) {
    // SAFETY: the caller passes a live callable of ours and room for another (`__clone` into the buffer of a `std::function`, 24 bytes).
    unsafe {
        Arc::increment_strong_count((*this).closure);
        place.write(Callable {
            slots: (*this).slots,
            closure: (*this).closure,
        });
    }
}

unsafe extern "C" fn destroy(this: *mut Callable) {
    // SAFETY: each callable owns one strong count, and the caller gives this one up.
    unsafe { Arc::decrement_strong_count((*this).closure) }
}

unsafe extern "C" fn destroy_deallocate(this: *mut Callable) {
    // SAFETY: as in `destroy`; the block came from `clone` or `CxxFunction::new`.
    unsafe {
        destroy(this);
        release(this.cast::<c_void>());
    }
}

/// Unwinds: what the closure calls in the host may throw.
unsafe extern "C-unwind" fn invoke(this: *mut Callable) {
    // SAFETY: the callable is alive during its own call. The closure is cloned because it may cancel its own task.
    let closure = unsafe { Arc::clone(&*(*this).closure) };
    closure();
}

unsafe extern "C" fn target(_this: *const Callable, _asked: *const c_void) -> *const c_void {
    // "The callable is not of the type you ask for": nobody outside can name its type.
    std::ptr::null()
}

unsafe extern "C" fn target_type(_this: *const Callable) -> *const c_void {
    target_type_info()
}

impl CxxFunction {
    /// A function that runs `closure`. The closure must not panic: a panic cannot pass through C++.
    pub fn new(closure: impl Fn() + Send + Sync + 'static) -> Self {
        let closure: Closure = Arc::new(closure);
        // Exactly `sizeof` the callable: the host may free it with that size.
        let callable = allocate(size_of::<Callable>()).cast::<Callable>();
        // SAFETY: a fresh block of the right size; operator new aligns to 16.
        unsafe {
            callable.write(Callable {
                slots: vtable().slots.as_ptr(),
                closure: Arc::into_raw(Arc::new(closure)),
            });
        }
        CxxFunction {
            buffer: [0; 4],
            callable,
        }
    }
}

impl Drop for CxxFunction {
    fn drop(&mut self) {
        // A callee that took a by-value argument has moved the callable out and left null behind; then there is nothing to do.
        if self.callable.is_null() {
            return;
        }
        let in_buffer = std::ptr::from_ref(&self.buffer).cast::<Callable>() == self.callable.cast_const();
        let slot = if in_buffer {
            FunctionBaseSlots::DESTROY
        } else {
            FunctionBaseSlots::DESTROY_DEALLOCATE
        };
        // SAFETY: a callable that is still here is owned by this function, and both slots take and return nothing.
        unsafe { call!(self.callable.cast::<c_void>(), slot; ()) }
    }
}

impl std::fmt::Debug for CxxFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CxxFunction").field("callable", &self.callable).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn clones_share_the_closure_and_the_last_one_drops_it() {
        let calls = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&calls);
        let function = CxxFunction::new(move || {
            // Relaxed: one thread.
            seen.fetch_add(1, Ordering::Relaxed);
        });
        // SAFETY: the callable is alive; the slots are our own functions, called with their own types.
        unsafe {
            let copy = call!(function.callable.cast::<c_void>(), FunctionBaseSlots::CLONE; *mut c_void);
            drop(function);
            call!(copy, FunctionBaseSlots::CALL; ());
            let mut buffer = [0usize; 4];
            let inside = buffer.as_mut_ptr().cast::<c_void>();
            call!(copy, FunctionBaseSlots::CLONE_TO, inside => *mut c_void; ());
            call!(copy, FunctionBaseSlots::DESTROY_DEALLOCATE; ());
            call!(inside, FunctionBaseSlots::CALL; ());
            call!(inside, FunctionBaseSlots::DESTROY; ());
        }
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert_eq!(Arc::strong_count(&calls), 1, "the closure is gone");
    }

    #[test]
    fn a_function_whose_callable_was_moved_out_drops_nothing() {
        let mut function = CxxFunction::new(|| {});
        let moved = std::mem::replace(&mut function.callable, std::ptr::null_mut());
        drop(function);
        // SAFETY: the callable was moved out alive.
        unsafe { call!(moved.cast::<c_void>(), FunctionBaseSlots::DESTROY_DEALLOCATE; ()) };
    }
}
