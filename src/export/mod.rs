//! From a frozen snapshot to the file that the spark viewer opens.

pub mod pb;
