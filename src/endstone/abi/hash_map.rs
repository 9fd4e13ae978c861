//! `std::unordered_map`, empty only.

use std::ffi::c_void;

/// An empty `std::unordered_map<std::string, bool>`. No filled one is ever built or read here, so nothing is owned.
#[repr(C)]
#[derive(Debug)]
pub struct CxxHashMap {
    buckets: *mut c_void,
    bucket_count: usize,
    first_node: *mut c_void,
    size: usize,
    max_load_factor: f32,
}

layout! { CxxHashMap, mirrors "std::__1::unordered_map<std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >, bool, std::__1::hash<std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> > >, std::__1::equal_to<std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> > >, std::__1::allocator<std::__1::pair<const std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >, bool> > >", 40 bytes, in memory true {
    buckets @ 0 = "__table_";
} }

impl CxxHashMap {
    /// Offsets inside `__table_`, which the debug information describes as `__hash_table`.
    pub const TABLE_MEMBERS: &'static [super::Member] = &[
        super::Member {
            name: "__bucket_list_",
            offset: std::mem::offset_of!(CxxHashMap, buckets),
        },
        super::Member {
            name: "__first_node_",
            offset: std::mem::offset_of!(CxxHashMap, first_node),
        },
        super::Member {
            name: "__size_",
            offset: std::mem::offset_of!(CxxHashMap, size),
        },
        super::Member {
            name: "__max_load_factor_",
            offset: std::mem::offset_of!(CxxHashMap, max_load_factor),
        },
    ];

    /// An empty map, as its default constructor makes it.
    pub const fn empty() -> Self {
        CxxHashMap {
            buckets: std::ptr::null_mut(),
            bucket_count: 0,
            first_node: std::ptr::null_mut(),
            size: 0,
            max_load_factor: 1.0,
        }
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.size
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }
}
