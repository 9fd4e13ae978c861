//! How slots and layouts are written down, and how a slot is called.

use std::ffi::c_void;

/// How one argument or result travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pass {
    /// There is none.
    Nothing,
    /// In general registers: integers, pointers, references, trivial classes of up to 16 bytes. The number of bytes.
    Registers(u8),
    /// In a vector register: a `float`.
    Float,
    /// Through memory that the caller owns: a pointer to the object as argument, the hidden first pointer as result.
    Memory,
}

/// One entry of a C++ vtable. Slot 0 is the complete destructor, slot 1 the deleting one.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Position after the two header words.
    pub index: usize,
    /// The function's mangled name.
    pub symbol: &'static str,
    /// Arguments after `this`.
    pub arguments: &'static [Pass],
    /// The result.
    pub result: Pass,
}

impl Slot {
    /// The function in this slot of `object`'s vtable.
    ///
    /// # Safety
    ///
    /// `object` must point to a live C++ object of the class whose table this slot is of, or of one derived from it.
    pub unsafe fn entry(self, object: *const c_void) -> *const c_void {
        // SAFETY: a live polymorphic object begins with the pointer to its vtable's slot 0, and the vtable has at least `index + 1` slots
        // because the class declares this one; `tests/abi/main.rs` compares the number with the released headers' debug information.
        unsafe { *(*object.cast::<*const *const c_void>()).add(self.index) }
    }
}

/// The slots of one class that are used.
#[derive(Clone, Copy, Debug)]
pub struct VtableSlots {
    /// The class, spelled as in its debug information.
    pub class: &'static str,
    /// In order of their positions.
    pub slots: &'static [Slot],
}

/// One data member.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Spelled as in the debug information.
    pub name: &'static str,
    /// In bytes from the start of the object.
    pub offset: usize,
}

/// Size and members of one class.
#[derive(Clone, Copy, Debug)]
pub struct ClassLayout {
    /// The class, spelled as in its debug information.
    pub class: &'static str,
    /// In bytes.
    pub size: usize,
    /// Whether values travel through memory as arguments and results (`false`: in registers).
    pub in_memory: bool,
    /// Members that are known here.
    pub members: &'static [Member],
}

/// The enumerators of one C++ enumeration.
#[derive(Clone, Copy, Debug)]
pub struct EnumValues {
    /// The enumeration, spelled as in its debug information.
    pub class: &'static str,
    /// In bytes.
    pub size: usize,
    /// Names and numbers.
    pub values: &'static [(&'static str, i64)],
}

/// A Rust type that mirrors a C++ class byte for byte.
pub trait Foreign {
    /// What it mirrors.
    const LAYOUT: ClassLayout;
}

/// Declares a table of slots: one constant per slot and `TABLE`.
macro_rules! vtable_slots {
    ($(#[$meta:meta])* $name:ident of $class:literal {
        $($slot:ident = $index:literal $symbol:literal ($($argument:expr),*) -> $result:expr;)*
    }) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub enum $name {}

        impl $name {
            $(
                #[doc = concat!("`", $symbol, "`")]
                pub const $slot: $crate::endstone::abi::Slot = $crate::endstone::abi::Slot {
                    index: $index,
                    symbol: $symbol,
                    arguments: &[$($argument),*],
                    result: $result,
                };
            )*

            /// All of them.
            pub const TABLE: $crate::endstone::abi::VtableSlots = $crate::endstone::abi::VtableSlots {
                class: $class,
                slots: &[$(Self::$slot),*],
            };
        }
    };
}

/// Declares the layout of a mirror type and lets the compiler check it.
macro_rules! layout {
    ($type:ty, mirrors $class:literal, $size:literal bytes, in memory $in_memory:literal {
        $($field:ident @ $offset:literal = $member:literal;)*
    }) => {
        impl $crate::endstone::abi::Foreign for $type {
            const LAYOUT: $crate::endstone::abi::ClassLayout = $crate::endstone::abi::ClassLayout {
                class: $class,
                size: $size,
                in_memory: $in_memory,
                members: &[$($crate::endstone::abi::Member { name: $member, offset: $offset }),*],
            };
        }

        const _: () = {
            assert!(size_of::<$type>() == $size);
            $(assert!(std::mem::offset_of!($type, $field) == $offset);)*
        };
    };
}

/// Declares a C++ enumeration as a Rust one with the same numbers.
macro_rules! foreign_enum {
    ($(#[$meta:meta])* $name:ident: $repr:ident mirrors $class:literal {
        $($(#[$value_meta:meta])* $value:ident = $number:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr($repr)]
        pub enum $name {
            $($(#[$value_meta])* $value = $number),*
        }

        impl $name {
            /// Names and numbers.
            pub const VALUES: $crate::endstone::abi::EnumValues = $crate::endstone::abi::EnumValues {
                class: $class,
                size: size_of::<$repr>(),
                values: &[$((stringify!($value), $number)),*],
            };
        }
    };
}

/// Declares a borrowed reference to a host object.
macro_rules! host_object {
    ($(#[$meta:meta])* $name:ident, $class:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'host> {
            pub(super) object: std::ptr::NonNull<std::ffi::c_void>,
            pub(super) alive: std::marker::PhantomData<&'host std::ffi::c_void>,
        }

        impl<'host> $name<'host> {
            /// Borrows the object at `object`; `None` when null.
            ///
            /// # Safety
            ///
            #[doc = concat!("`object` must be null or point to an `", $class, "` that lives for `'host`, and `'host` must be spent on the")]
            /// thread that the host allows to use it: the server thread.
            pub unsafe fn borrow(object: *mut std::ffi::c_void) -> Option<Self> {
                std::ptr::NonNull::new(object).map(|object| Self { object, alive: std::marker::PhantomData })
            }

            /// The object's address.
            pub fn as_ptr(self) -> *mut std::ffi::c_void {
                self.object.as_ptr()
            }
        }
    };
}

/// Calls a slot whose result is in registers. Unsafe like any call through a function pointer: the object must be live and of the slot's
/// class, and the argument types must be those of the slot.
macro_rules! call {
    ($object:expr, $slot:expr $(, $argument:expr => $type:ty)* ; $result:ty) => {{
        let object: *mut std::ffi::c_void = $object;
        let function = std::mem::transmute::<
            *const std::ffi::c_void,
            unsafe extern "C-unwind" fn(*mut std::ffi::c_void $(, $type)*) -> $result,
        >($slot.entry(object));
        function(object $(, $argument)*)
    }};
}

/// Calls a slot whose result is written through the hidden first pointer. Unsafe as `call!` is; the result is owned.
macro_rules! call_for_object {
    ($object:expr, $slot:expr $(, $argument:expr => $type:ty)* ; $result:ty) => {{
        let object: *mut std::ffi::c_void = $object;
        let function = std::mem::transmute::<
            *const std::ffi::c_void,
            unsafe extern "C-unwind" fn(*mut $result, *mut std::ffi::c_void $(, $type)*) -> *mut $result,
        >($slot.entry(object));
        let mut result = std::mem::MaybeUninit::<$result>::uninit();
        function(result.as_mut_ptr(), object $(, $argument)*);
        result.assume_init()
    }};
}
