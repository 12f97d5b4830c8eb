//! What worker and runner share: the job's files, the runner's lines, exit codes, labels, capabilities.
