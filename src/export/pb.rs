//! Spark's messages, generated from `proto/` at build time.
#![allow(missing_docs, clippy::doc_markdown)]

include!(concat!(env!("OUT_DIR"), "/spark.rs"));
