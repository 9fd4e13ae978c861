//! Drives the stand-in server.
