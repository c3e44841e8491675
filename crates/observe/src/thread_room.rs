//! Room for what the kernel side remembers of each watched thread: blocks of threads, made as they are
//! needed. One is 8.9 MB of kernel memory, and all that there can be 107 MB.

use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, libbpf_sys};

use crate::Error;
use crate::bpf;
use crate::wire;

const STEP: &str = "making room for threads";

/// The blocks of a recording.
pub struct ThreadRoom {
    map: MapHandle,
    /// Kept open, so that /proc/PID/fdinfo shows what memory the recorder has of the kernel.
    blocks: Vec<MapHandle>,
}

/// The first block, which another thread makes: the kernel waits for 10 ms and more until no program can
/// see what was there before.
pub struct FirstRoom(JoinHandle<Result<ThreadRoom, Error>>);

impl ThreadRoom {
    /// In the map of blocks, none of which is there yet.
    pub fn begin(map: MapHandle) -> Result<FirstRoom, Error> {
        let mut room = ThreadRoom { map, blocks: Vec::new() };
        let first = thread::Builder::new().spawn(move || room.add().map(|()| room));
        first.map(FirstRoom).map_err(Error::io(STEP))
    }

    /// Adds what is missing when the slots up to this one are in use: there are to be twice as many blocks.
    /// The first slot is in the second block of the map, so that slot 0 is none.
    /// The kernel side says so when a quarter of its last block is in use. A program starts a thread in
    /// some 20 us, so there are 30 ms left, and a block is there within 1 ms.
    pub fn provide(&mut self, slot: u32) -> Result<(), Error> {
        let used = slot / wire::BLOCK_THREADS as u32;
        let wanted = (2 * used).min(self.map.max_entries() - 1) as usize;
        while self.blocks.len() < wanted {
            self.add()?;
        }
        Ok(())
    }

    /// Adds what is missing whenever it is told a slot, in a thread of its own: who empties the rings has no
    /// time to wait for the kernel.
    pub fn follow(mut self) -> Result<Sender<u32>, Error> {
        let (used, slots) = channel();
        // Where there is no memory, trying again would press the host. Threads without room are counted.
        let add = move || slots.into_iter().try_for_each(|slot| self.provide(slot));
        let thread = thread::Builder::new().name("thread room".into()).spawn(add);
        thread.map_err(Error::io(STEP))?;
        Ok(used)
    }

    fn add(&mut self) -> Result<(), Error> {
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            map_flags: libbpf_sys::BPF_F_MMAPABLE,
            ..Default::default()
        };
        let block = MapHandle::create(
            MapType::Array,
            Some("thread_block"),
            size_of::<u32>() as u32,
            size_of::<bpf::thread>() as u32,
            wire::BLOCK_THREADS as u32,
            &options,
        );
        let block = block.map_err(Error::bpf(STEP))?;
        let fd = block.as_fd().as_raw_fd().to_ne_bytes();
        let place = (self.blocks.len() as u32 + 1).to_ne_bytes();
        self.map.update(&place, &fd, MapFlags::ANY).map_err(Error::bpf(STEP))?;
        self.blocks.push(block);
        Ok(())
    }
}

impl FirstRoom {
    /// Once it is there.
    pub fn join(self) -> Result<ThreadRoom, Error> {
        // A panic there has been printed.
        self.0.join().unwrap_or(Err(Error::Io { doing: STEP, source: ErrorKind::Other.into() }))
    }
}
