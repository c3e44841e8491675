//! Sockets: queues, drops, timers of TCP, and their tables.

pub(crate) mod causes_of_stalls;
pub(crate) mod close_linger;
pub(crate) mod connect_timeout;
mod connects;
pub(crate) mod dns_timeout;
pub(crate) mod held_rests;
pub(crate) mod listen_overflow;
pub(crate) mod nagle_delack;
pub(crate) mod rate_limit_burst;
pub(crate) mod receivers;
pub(crate) mod socket_diag_reader;
pub(crate) mod tcp_rto;
pub(crate) mod tcp_timers;
pub(crate) mod udp_rcvbuf_stall;
pub(crate) mod unix_population;
