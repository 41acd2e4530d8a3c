//! The server over real sockets.

// Lets the lints see that all of it is tests.
#![cfg(test)]

mod api;
mod client;
mod faults;
