//! How a runner ends.

/// The exit code of a job container's PID 1. Any other code means that the runner itself was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCode {
    /// 0: the run came to an end that its `result` line names; a cap that was reached is such an end.
    Done,
    /// 1: infrastructure. It may be tried again while nothing was spent.
    Infrastructure,
    /// 2: policy or configuration. Never tried again.
    Policy,
}

impl ExitCode {
    /// The number.
    pub const fn code(self) -> u8 {
        match self {
            ExitCode::Done => 0,
            ExitCode::Infrastructure => 1,
            ExitCode::Policy => 2,
        }
    }

    /// What Docker's number means, if it is one of ours.
    pub const fn from_code(code: i64) -> Option<ExitCode> {
        match code {
            0 => Some(ExitCode::Done),
            1 => Some(ExitCode::Infrastructure),
            2 => Some(ExitCode::Policy),
            _ => None,
        }
    }
}
