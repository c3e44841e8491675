//! One file each.

use crate::situation::Situation;

macro_rules! situations {
    ($($name:ident),* $(,)?) => {
        $(mod $name;)*

        /// All, by name.
        pub static SITUATIONS: &[&Situation] = &[$(&$name::SITUATION),*];
    };
}

situations![nginx_healthy, python_asyncio_sync, python_healthy, redis_keys,];
