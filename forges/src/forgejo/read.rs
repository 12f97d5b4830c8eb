//! Reading a delivery.
use crate::{ForgeKind, KeptHeaders, Reading};

pub(crate) fn read(_kind: ForgeKind, _headers: &KeptHeaders, _body: &[u8]) -> Reading {
    todo!()
}
