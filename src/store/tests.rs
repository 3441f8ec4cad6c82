//! What a store must survive, tested below its public interface.

mod catalog;
mod contract;
mod crash_sequences;
mod failing_storage;
mod full_disk;
mod head_path;
mod interleaving;
mod interrupted_artifacts;
mod interrupted_batches;
mod interrupted_documents;
mod interrupted_imports;
mod interrupted_packing;
mod interrupted_receives;
mod interrupted_rekey;
mod interrupted_segments;
mod limits;
mod power_cut;
mod published_contract;
mod rollback;
mod setbacks;
mod threads;
mod tombstones;
mod unbound_keys;
