//! A number in shared memory. The order of memory is in the name of every access.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

macro_rules! word {
    ($name:ident, $atomic:ty, $plain:ty, $bits:literal) => {
        #[doc = concat!("A ", $bits, "-bit number that another process may read at any time.")]
        #[repr(transparent)]
        #[derive(Debug, Default)]
        pub struct $name($atomic);

        impl $name {
            #[inline(always)]
            pub fn load_relaxed(&self) -> $plain {
                self.0.load(Ordering::Relaxed)
            }

            #[inline(always)]
            pub fn load_acquire(&self) -> $plain {
                self.0.load(Ordering::Acquire)
            }

            #[inline(always)]
            pub fn store_relaxed(&self, value: $plain) {
                self.0.store(value, Ordering::Relaxed);
            }

            #[inline(always)]
            pub fn store_release(&self, value: $plain) {
                self.0.store(value, Ordering::Release);
            }

            /// For a word with one writer: a load and a store, no locked instruction.
            #[inline(always)]
            pub fn add_as_owner(&self, value: $plain) {
                self.store_relaxed(self.load_relaxed().wrapping_add(value));
            }

            /// For a word with many writers.
            #[inline(always)]
            pub fn add_shared(&self, value: $plain) {
                self.0.fetch_add(value, Ordering::Relaxed);
            }

            /// True if this call changed `from` to `to`.
            pub fn exchange_acquire(&self, from: $plain, to: $plain) -> bool {
                self.0.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
            }
        }
    };
}

word!(U32, AtomicU32, u32, "32");
word!(U64, AtomicU64, u64, "64");
