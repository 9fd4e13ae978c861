//! `std::vector`.

use std::ffi::c_void;

use super::alloc::{allocate, release};
use super::string::CxxString;

/// `std::vector<T>`: three pointers. The capacity is always exact, because the owner frees with the size that it names.
#[repr(C)]
pub struct CxxVector<T> {
    begin: *mut T,
    end: *mut T,
    capacity: *mut T,
}

layout! { CxxVector<CxxString>, mirrors "std::__1::vector<std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >, std::__1::allocator<std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> > > >", 24 bytes, in memory true {
    begin @ 0 = "__begin_";
    end @ 8 = "__end_";
    capacity @ 16 = "__cap_";
} }

impl<T> CxxVector<T> {
    /// A vector without elements or memory.
    pub const fn empty() -> Self {
        CxxVector {
            begin: std::ptr::null_mut(),
            end: std::ptr::null_mut(),
            capacity: std::ptr::null_mut(),
        }
    }

    /// The elements.
    pub fn as_slice(&self) -> &[T] {
        if self.begin.is_null() {
            return &[];
        }
        // SAFETY: both pointers are into this vector's one block, `end` not before `begin`.
        let length = unsafe { self.end.offset_from_unsigned(self.begin) };
        // SAFETY: that many elements are initialised, and the vector owns them.
        unsafe { std::slice::from_raw_parts(self.begin, length) }
    }
}

impl<T> FromIterator<T> for CxxVector<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let items: Vec<T> = items.into_iter().collect();
        if items.is_empty() {
            return Self::empty();
        }
        let count = items.len();
        let begin = allocate(count * size_of::<T>()).cast::<T>();
        for (index, item) in items.into_iter().enumerate() {
            // SAFETY: the block holds `count` elements; operator new aligns to 16, which is the largest alignment used here.
            unsafe { begin.add(index).write(item) }
        }
        // SAFETY: one past the last element of the block.
        let end = unsafe { begin.add(count) };
        CxxVector {
            begin,
            end,
            capacity: end,
        }
    }
}

impl CxxVector<CxxString> {
    /// Copies of `texts`.
    pub fn of_texts(texts: &[&str]) -> Self {
        texts.iter().map(|text| CxxString::new(text)).collect()
    }

    /// The elements as text.
    pub fn to_texts(&self) -> Vec<String> {
        self.as_slice().iter().map(|text| text.to_text().into_owned()).collect()
    }
}

impl<T> Drop for CxxVector<T> {
    fn drop(&mut self) {
        if self.begin.is_null() {
            return;
        }
        let elements = std::ptr::from_ref(self.as_slice()).cast_mut();
        // SAFETY: the vector owns its elements and its block, and neither is used again.
        unsafe {
            std::ptr::drop_in_place(elements);
            release(self.begin.cast::<c_void>());
        }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for CxxVector<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_read_back_and_the_capacity_is_exact() {
        let vector = CxxVector::of_texts(&["one", "", "a text that is longer than twenty-two bytes"]);
        assert_eq!(
            vector.to_texts(),
            ["one", "", "a text that is longer than twenty-two bytes"]
        );
        assert_eq!(vector.end, vector.capacity);
    }

    #[test]
    fn an_empty_vector_has_no_memory() {
        let vector = CxxVector::<CxxString>::of_texts(&[]);
        assert!(vector.begin.is_null());
        assert!(vector.as_slice().is_empty());
    }
}
