//! The files of a data directory besides the log.
//!
//! | file | holds |
//! | --- | --- |
//! | `data_directory` | what a directory holds before it is opened; making a new one |
//! | [`directory_state`] | the same for a program that does not open it |
//! | `control_file` | where recovery begins, what was handed out |
//! | `data_file` | the relations' files |
//! | `created` | the record of a relation that is made |
//! | `lengths` | how many pages each relation has, so that a lost page is an error |
//! | `status_pages` | the commit log's pages |
//! | `status_journal` | of a standby: the page of the commit log that is about to be written |
//! | `copy_manifest` | of a copy: what its files should be |
//! | [`descriptors`] | how many files may be open |

pub(crate) mod control_file;
pub(crate) mod copy_manifest;
pub(crate) mod created;
pub(crate) mod data_directory;
pub(crate) mod data_file;
pub mod descriptors;
pub mod directory_state;
pub(crate) mod lengths;
pub(crate) mod status_journal;
pub(crate) mod status_pages;
