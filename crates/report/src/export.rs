//! Files for other tools.

pub mod csv;
pub mod difference;
pub mod folded;
pub mod json;
pub mod on_cpu;
pub mod svg;
pub mod wakers;

pub use folded::Coverage;
pub use on_cpu::Sampled;
