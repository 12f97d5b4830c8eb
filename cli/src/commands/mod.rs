//! One module per command or group of commands. They read configuration, call a room, print for people or for machines.

pub mod check;
pub mod control;
pub mod explain;
pub mod image;
pub mod jobs;
pub mod run;
pub mod serve;
pub mod services;
pub mod show_config;
pub mod up;
pub mod user;
