//! One file each.

mod apache_workers_full;
mod beanstalkd_fsync;
mod beanstalkd_healthy;
mod bind_healthy;
mod dnsmasq_healthy;
mod etcd_fsync;
mod gearman_one_worker;
mod go_gc;
mod go_healthy;
mod go_mutex;
mod gunicorn_backlog;
mod gunicorn_file_lock;
mod haproxy_healthy;
mod haproxy_queue;
mod influxdb_fsync;
mod java_gc;
mod java_healthy;
mod java_monitor;
mod java_nagle;
mod java_safepoint_late;
mod lighttpd_healthy;
mod mariadb_healthy;
mod mariadb_row_lock;
mod memcached_healthy;
mod memcached_quota;
mod mosquitto_healthy;
mod mosquitto_saves;
mod nats_healthy;
mod nginx_dead_upstream;
mod nginx_disk_reads;
mod nginx_healthy;
mod nginx_log_pipe;
mod nginx_slow_upstream;
mod node_healthy;
mod node_neighbours;
mod node_sync_call;
mod node_threadpool;
mod pgbouncer_pool_of_one;
mod php_fpm_children_full;
mod postgres_commit;
mod postgres_healthy;
mod postgres_row_lock;
mod postgres_table_lock;
mod python_asyncio_sync;
mod python_executor_full;
mod python_executor_healthy;
mod python_gil;
mod python_grpc_healthy;
mod python_grpc_pool_full;
mod python_healthy;
mod python_lock;
mod python_nagle;
mod redis_fsync;
mod redis_healthy;
mod redis_keys;
mod rsync_disk_reads;
mod rsyslog_udp_healthy;
mod ruby_healthy;
mod ruby_mutex;
mod slapd_threads_full;
mod sqlite_busy;
mod squid_helper;
mod stunnel_healthy;
mod tokio_blocking;
mod tokio_healthy;
mod tokio_mutex;
mod tomcat_pool_of_two;
mod unbound_slow_upstream;
mod varnish_healthy;
mod varnish_serialized;

use crate::situation::Situation;

/// All, by name.
pub static SITUATIONS: &[&Situation] = &[
    &apache_workers_full::SITUATION,
    &beanstalkd_fsync::SITUATION,
    &beanstalkd_healthy::SITUATION,
    &bind_healthy::SITUATION,
    &dnsmasq_healthy::SITUATION,
    &etcd_fsync::SITUATION,
    &gearman_one_worker::SITUATION,
    &go_gc::SITUATION,
    &go_healthy::SITUATION,
    &go_mutex::SITUATION,
    &gunicorn_backlog::SITUATION,
    &gunicorn_file_lock::SITUATION,
    &haproxy_healthy::SITUATION,
    &haproxy_queue::SITUATION,
    &influxdb_fsync::SITUATION,
    &java_gc::SITUATION,
    &java_healthy::SITUATION,
    &java_monitor::SITUATION,
    &java_nagle::SITUATION,
    &java_safepoint_late::SITUATION,
    &lighttpd_healthy::SITUATION,
    &mariadb_healthy::SITUATION,
    &mariadb_row_lock::SITUATION,
    &memcached_healthy::SITUATION,
    &memcached_quota::SITUATION,
    &mosquitto_healthy::SITUATION,
    &mosquitto_saves::SITUATION,
    &nats_healthy::SITUATION,
    &nginx_dead_upstream::SITUATION,
    &nginx_disk_reads::SITUATION,
    &nginx_healthy::SITUATION,
    &nginx_log_pipe::SITUATION,
    &nginx_slow_upstream::SITUATION,
    &node_healthy::SITUATION,
    &node_neighbours::SITUATION,
    &node_sync_call::SITUATION,
    &node_threadpool::SITUATION,
    &pgbouncer_pool_of_one::SITUATION,
    &php_fpm_children_full::SITUATION,
    &postgres_commit::SITUATION,
    &postgres_healthy::SITUATION,
    &postgres_row_lock::SITUATION,
    &postgres_table_lock::SITUATION,
    &python_asyncio_sync::SITUATION,
    &python_executor_full::SITUATION,
    &python_executor_healthy::SITUATION,
    &python_gil::SITUATION,
    &python_grpc_healthy::SITUATION,
    &python_grpc_pool_full::SITUATION,
    &python_healthy::SITUATION,
    &python_lock::SITUATION,
    &python_nagle::SITUATION,
    &redis_fsync::SITUATION,
    &redis_healthy::SITUATION,
    &redis_keys::SITUATION,
    &rsync_disk_reads::SITUATION,
    &rsyslog_udp_healthy::SITUATION,
    &ruby_healthy::SITUATION,
    &ruby_mutex::SITUATION,
    &slapd_threads_full::SITUATION,
    &sqlite_busy::SITUATION,
    &squid_helper::SITUATION,
    &stunnel_healthy::SITUATION,
    &tokio_blocking::SITUATION,
    &tokio_healthy::SITUATION,
    &tokio_mutex::SITUATION,
    &tomcat_pool_of_two::SITUATION,
    &unbound_slow_upstream::SITUATION,
    &varnish_healthy::SITUATION,
    &varnish_serialized::SITUATION,
];
