//! The causes, by what they are about: one file each, with what it is, its evidence, its look-alikes
//! and its tests. Files without a `CAUSE` hold what several of them share; a folder with the name of
//! a file, what is too long for that one.

pub(crate) mod cpu;
pub(crate) mod files;
pub(crate) mod ids;
pub(crate) mod locks;
pub(crate) mod memory;
pub(crate) mod network;
pub(crate) mod processes;
pub(crate) mod requests;
mod scripts;
pub(crate) mod timers;
pub(crate) mod tries;
