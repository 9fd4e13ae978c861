//! The few C++ types that cross between the stand-in and Endstone 0.11.14 (libc++, Itanium ABI, x86-64).

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

type New = unsafe extern "C-unwind" fn(usize) -> *mut c_void;
type Delete = unsafe extern "C" fn(*mut c_void);

/// The process's own operator new and delete. Endstone frees with a sized delete that mimalloc checks, so what it may free has to come from
/// the same allocator, with exactly the size of the object.
fn operators() -> (New, Delete) {
    static OPERATORS: OnceLock<(usize, usize)> = OnceLock::new();
    let &(new, delete) = OPERATORS.get_or_init(|| {
        // SAFETY: both names are C strings.
        let (new, delete) = unsafe {
            (
                libc::dlsym(libc::RTLD_DEFAULT, c"_Znwm".as_ptr()),
                libc::dlsym(libc::RTLD_DEFAULT, c"_ZdlPv".as_ptr()),
            )
        };
        if new.is_null() || delete.is_null() {
            (libc::malloc as *const () as usize, libc::free as *const () as usize)
        } else {
            (new as usize, delete as usize)
        }
    });
    // SAFETY: the addresses are those of operator new(unsigned long) and operator delete(void*), or of malloc and free.
    unsafe {
        (
            std::mem::transmute::<usize, New>(new),
            std::mem::transmute::<usize, Delete>(delete),
        )
    }
}

fn allocate(bytes: usize) -> *mut u8 {
    // SAFETY: operator new with any size; it throws instead of returning null.
    unsafe { operators().0(bytes).cast() }
}

/// Operator delete.
///
/// # Safety
/// `memory` is from C++'s operator new and not used any more.
pub unsafe fn free(memory: *mut u8) {
    // SAFETY: the caller passes a pointer from `allocate` or from C++'s operator new.
    unsafe { operators().1(memory.cast()) }
}

/// `std::string`: short = `{length << 1, 22 bytes}`, long = `{allocation | 1, size, pointer}`.
#[repr(C)]
#[derive(Debug)]
pub struct CxxString {
    words: [usize; 3],
}

const SHORT_MAX: usize = 22;

impl CxxString {
    pub fn new(text: &str) -> CxxString {
        let mut string = CxxString { words: [0; 3] };
        let bytes = text.as_bytes();
        if bytes.len() <= SHORT_MAX {
            let at = string.words.as_mut_ptr().cast::<u8>();
            // SAFETY: the 24 bytes of the object hold the length byte, 22 characters and the terminator, which is zero already.
            unsafe {
                *at = (bytes.len() as u8) << 1;
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.add(1), bytes.len());
            }
        } else {
            let allocation = (bytes.len() + 1).next_multiple_of(16);
            let at = allocate(allocation);
            // SAFETY: the allocation holds the text and its terminator.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
                *at.add(bytes.len()) = 0;
            }
            string.words = [allocation | 1, bytes.len(), at as usize];
        }
        string
    }

    fn is_long(&self) -> bool {
        self.words[0] & 1 == 1
    }

    pub fn bytes(&self) -> &[u8] {
        let at = self.words.as_ptr().cast::<u8>();
        // SAFETY: a valid string describes its own characters, in place or in its allocation.
        unsafe {
            if self.is_long() {
                std::slice::from_raw_parts(self.words[2] as *const u8, self.words[1])
            } else {
                std::slice::from_raw_parts(at.add(1), usize::from(*at >> 1))
            }
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }
}

impl Drop for CxxString {
    fn drop(&mut self) {
        if self.is_long() {
            // SAFETY: a long string owns its allocation.
            unsafe { free(self.words[2] as *mut u8) }
        }
    }
}

/// `std::vector<T>`.
#[repr(C)]
#[derive(Debug)]
pub struct CxxVector<T> {
    begin: *mut T,
    end: *mut T,
    capacity_end: *mut T,
}

impl<T> CxxVector<T> {
    pub fn from_vec(items: Vec<T>) -> CxxVector<T> {
        let count = items.len();
        let begin = if count == 0 {
            std::ptr::null_mut()
        } else {
            allocate(count * size_of::<T>()).cast::<T>()
        };
        for (index, item) in items.into_iter().enumerate() {
            // SAFETY: the allocation has room for `count` items.
            unsafe { begin.add(index).write(item) }
        }
        let end = begin.wrapping_add(count);
        CxxVector {
            begin,
            end,
            capacity_end: end,
        }
    }

    pub fn items(&self) -> &[T] {
        if self.begin.is_null() {
            return &[];
        }
        // SAFETY: a valid vector holds items from begin to end.
        unsafe { std::slice::from_raw_parts(self.begin, self.end.offset_from_unsigned(self.begin)) }
    }
}

impl<T> Drop for CxxVector<T> {
    fn drop(&mut self) {
        if !self.begin.is_null() {
            // SAFETY: the vector owns its items and its allocation.
            unsafe {
                std::ptr::drop_in_place(std::ptr::slice_from_raw_parts_mut(self.begin, self.items().len()));
                free(self.begin.cast());
            }
        }
    }
}

/// `std::shared_ptr<T>`: the control block counts owners minus one at +8; its slot 2 destroys the object.
#[repr(C)]
#[derive(Debug)]
pub struct SharedPtr<T> {
    pub object: *mut T,
    control: *mut c_void,
}
// SAFETY: the counters are atomic, as in libc++, and the control block's functions may run on any thread.
unsafe impl<T> Send for SharedPtr<T> {}

impl<T> SharedPtr<T> {
    pub const NULL: SharedPtr<T> = SharedPtr {
        object: std::ptr::null_mut(),
        control: std::ptr::null_mut(),
    };

    fn owners(&self) -> Option<&AtomicI64> {
        // SAFETY: a non-null control block begins with its vtable pointer and the owners' count, and lives while we own a share.
        (!self.control.is_null()).then(|| unsafe { &*self.control.cast::<AtomicI64>().add(1) })
    }
}

impl<T> Clone for SharedPtr<T> {
    fn clone(&self) -> Self {
        if let Some(owners) = self.owners() {
            // Relaxed: we own a share, so the object cannot go away; as libc++ does.
            owners.fetch_add(1, Ordering::Relaxed);
        }
        SharedPtr {
            object: self.object,
            control: self.control,
        }
    }
}

impl<T> Drop for SharedPtr<T> {
    fn drop(&mut self) {
        // AcqRel: pairs with the same decrement of every other owner, so the last one sees all their writes.
        if self
            .owners()
            .is_some_and(|owners| owners.fetch_sub(1, Ordering::AcqRel) == 0)
        {
            // SAFETY: this was the last owner. Slot 2 is __on_zero_shared; __release_weak frees the block and is exported by libc++.
            unsafe {
                let on_zero: unsafe extern "C-unwind" fn(*mut c_void) = std::mem::transmute(slot(self.control, 2));
                on_zero(self.control);
                let release = libc::dlsym(
                    libc::RTLD_DEFAULT,
                    c"_ZNSt3__119__shared_weak_count14__release_weakEv".as_ptr(),
                );
                if !release.is_null() {
                    let release: unsafe extern "C-unwind" fn(*mut c_void) = std::mem::transmute(release);
                    release(self.control);
                }
            }
        }
    }
}

/// `endstone::Message` that holds a text: the string, then the variant's index at 48. 56 bytes.
#[repr(C)]
#[derive(Debug)]
pub struct Message {
    text: CxxString,
    unused: [usize; 3],
    index: u32,
}

impl Message {
    pub fn text(text: &str) -> Message {
        Message {
            text: CxxString::new(text),
            unused: [0; 3],
            index: 0,
        }
    }
}

/// `endstone::Command`. 136 bytes.
#[repr(C)]
#[derive(Debug)]
pub struct Command {
    vtable: *const usize,
    pub name: CxxString,
    pub description: CxxString,
    pub aliases: CxxVector<CxxString>,
    pub usages: CxxVector<CxxString>,
    pub permissions: CxxVector<CxxString>,
    pub command_map: *const c_void,
}

/// `endstone::ServerLoadEvent`. 16 bytes.
#[repr(C)]
#[derive(Debug)]
pub struct ServerLoadEvent {
    pub vtable: usize,
    pub asynchronous: bool,
    pub cancelled: bool,
    pub load_type: i32,
}

/// `endstone::ServerCommandEvent`: cancellable, so it has a second vtable. 56 bytes.
#[repr(C)]
#[derive(Debug)]
pub struct ServerCommandEvent {
    pub vtable: usize,
    pub asynchronous: bool,
    pub cancelled: bool,
    pub cancellable_vtable: usize,
    pub sender: *const c_void,
    pub command: CxxString,
}

const _: () = {
    assert!(size_of::<CxxString>() == 24);
    assert!(size_of::<CxxVector<CxxString>>() == 24);
    assert!(size_of::<SharedPtr<Command>>() == 16);
    assert!(size_of::<Command>() == 136);
    assert!(size_of::<Message>() == 56);
    assert!(std::mem::offset_of!(Message, index) == 48);
    assert!(size_of::<ServerLoadEvent>() == 16);
    assert!(std::mem::offset_of!(ServerLoadEvent, load_type) == 12);
    assert!(size_of::<ServerCommandEvent>() == 56);
    assert!(std::mem::offset_of!(ServerCommandEvent, command) == 32);
};

/// The address in slot `index` of the object's vtable.
///
/// # Safety
/// `object` points to a live object with a vtable of more than `index` slots.
pub unsafe fn slot(object: *const c_void, index: usize) -> usize {
    // SAFETY: by the caller's promise.
    unsafe { *(*object.cast::<*const usize>()).add(index) }
}

/// Calls a virtual function: `vcall!(object, slot, fn(types) -> result, arguments)`. Unsafe as any foreign call.
macro_rules! vcall {
    ($object:expr, $slot:expr, fn($($type:ty),*) $(-> $result:ty)? $(, $argument:expr)*) => {{
        let object = $object as *const std::ffi::c_void;
        let function: unsafe extern "C-unwind" fn(*const std::ffi::c_void $(, $type)*) $(-> $result)? =
            std::mem::transmute($crate::abi::slot(object, $slot));
        function(object $(, $argument)*)
    }};
}
pub(crate) use vcall;

/// Calls a virtual function that returns a class by a hidden first pointer.
macro_rules! vcall_sret {
    ($object:expr, $slot:expr, $result:ty) => {{
        let object = $object as *const std::ffi::c_void;
        let function: unsafe extern "C-unwind" fn(*mut $result, *const std::ffi::c_void) =
            std::mem::transmute($crate::abi::slot(object, $slot));
        let mut result = std::mem::MaybeUninit::<$result>::uninit();
        function(result.as_mut_ptr(), object);
        result.assume_init()
    }};
}
pub(crate) use vcall_sret;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_keeps_its_text_short_and_long() {
        for text in [
            "",
            "spark",
            "exactly twenty-two byte",
            &"x".repeat(22),
            &"y".repeat(23),
            &"z".repeat(1000),
        ] {
            assert_eq!(CxxString::new(text).text(), text);
        }
    }

    #[test]
    fn a_vector_keeps_its_items_in_order() {
        let vector = CxxVector::from_vec(vec![CxxString::new("a"), CxxString::new("b")]);
        assert_eq!(
            vector.items().iter().map(CxxString::text).collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert!(CxxVector::<CxxString>::from_vec(Vec::new()).items().is_empty());
    }
}
