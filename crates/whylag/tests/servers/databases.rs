//! PostgreSQL and MariaDB.
