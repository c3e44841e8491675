//! Sockets, and the requests that are seen at them.

use std::io::Read;
use std::os::fd::AsFd;

use libbpf_rs::{Iter, Link, MapHandle, ProgramMut};
use model::RecorderPart;

use super::Probes;
use crate::Error;
use crate::files_of;
use crate::queues::Walks;
use crate::socket_walk::SocketWalk;

impl Probes {
    /// How sockets are reached.
    pub fn socket_walk(&self) -> SocketWalk {
        self.socket_walk
    }

    /// From now on the requests of a service that take `threshold_ns` are sent whole, and of the others
    /// one in `mask` + 1.
    pub fn choose_requests(&mut self, service: u32, threshold_ns: u64, mask: u32) {
        let bss = self.skel.maps.bss_data.as_mut();
        if let Some(choice) = bss.and_then(|bss| bss.choices.get_mut(service as usize)) {
            choice.threshold_ns = threshold_ns;
            choice.sample_mask = mask;
        }
        self.forget_sent(service);
    }

    /// Makes room for what a service sends of the next second.
    pub fn forget_sent(&mut self, service: u32) {
        let bss = self.skel.maps.bss_data.as_mut();
        if let Some(choice) = bss.and_then(|bss| bss.choices.get_mut(service as usize)) {
            choice.sent = 0;
            choice.longest_ns = 0;
        }
    }

    /// Numbers of services given out so far; 0 is none.
    pub fn services(&self) -> u32 {
        self.skel.maps.data_data.as_ref().map_or(0, |data| data.service_next)
    }

    /// Ends the answers to which nothing was added for so long, and counts connections anew.
    pub fn end_answers(&mut self, idle_ns: u64) -> Result<(), Error> {
        if !self.links.contains_key(&RecorderPart::Requests) {
            return Ok(());
        }
        if let Some(bss) = self.skel.maps.bss_data.as_mut() {
            bss.idle_ns = idle_ns;
            bss.connections_walked = 0;
        }
        let progs = &self.skel.progs;
        let link = match self.socket_walk {
            SocketWalk::Storage => {
                progs.end_answers.attach_iter(self.skel.maps.connections.as_fd())
            }
            SocketWalk::Files => self.over_files(&progs.end_answers_of_files),
        };
        walk(link)?;
        if let Some(bss) = self.skel.maps.bss_data.as_mut() {
            bss.connections_open = bss.connections_walked;
        }
        Ok(())
    }

    /// Counts the requests of UDP that have no answer when recording stops.
    pub(super) fn find_open_of_peers(&self) -> Result<(), Error> {
        if !self.links.contains_key(&RecorderPart::Requests) {
            return Ok(());
        }
        walk(self.skel.progs.find_open_of_peers.attach_iter(self.skel.maps.peers.as_fd()))
    }

    /// The sockets that listen have been found: who asks on a connection can be told from now on.
    pub fn roles_are_known(&mut self) {
        if let Some(bss) = self.skel.maps.bss_data.as_mut() {
            bss.roles_known = 1;
        }
    }

    /// Where one process alone is watched, its files alone are walked over: the host may have millions.
    fn over_files(&self, program: &ProgramMut<'_>) -> libbpf_rs::Result<Link> {
        let alone = self.alone.and_then(|tgid| files_of::attach(program, tgid));
        alone.map_or_else(|| program.attach(), Ok)
    }

    /// The walks over sockets, `None` if that part is off.
    pub fn socket_walks(&self) -> Result<Option<Walks>, Error> {
        if !self.links.contains_key(&RecorderPart::Sockets) {
            return Ok(None);
        }
        let attached = Error::bpf("attaching an iterator");
        let progs = &self.skel.progs;
        let look = match self.socket_walk {
            SocketWalk::Storage => {
                progs.dump_queues.attach_iter(self.skel.maps.socket_notes.as_fd())
            }
            SocketWalk::Files => self.over_files(&progs.dump_queues_of_files),
        };
        match (self.over_files(&progs.find_sockets), look) {
            (Ok(search), Ok(look)) => {
                let sends = MapHandle::try_from(&self.skel.maps.send_sums);
                let sends = sends.map_err(Error::bpf("sharing a map"))?;
                Ok(Some(Walks { search, look, sends }))
            }
            (Err(error), _) | (_, Err(error)) => Err(attached(error)),
        }
    }
}

fn walk(link: libbpf_rs::Result<Link>) -> Result<(), Error> {
    let link = link.map_err(Error::bpf("attaching an iterator"))?;
    let mut iter = Iter::new(&link).map_err(Error::bpf("opening an iterator"))?;
    iter.read_to_end(&mut Vec::new()).map_err(Error::io("walking over connections"))?;
    Ok(())
}
