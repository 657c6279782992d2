//! Whether a shard needs a copy of another owner's data, and what is known of getting one.
//!
//! Knows: what the fetcher found, what whoever fetches copies says about it, and the floors that must hold
//! while copies are out. Must not know: how a copy is fetched or given (`cluster::copies`).

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::writer::{CopyToInstall, ShardState};

/// Why a shard cannot go on by its stream alone, and from where on the stream could continue a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededCopy {
    /// The identity of the stream that the copy must be of.
    pub stream: String,
    /// The first message that the stream has.
    pub first: u64,
    /// What the fetcher found, in words.
    pub reason: String,
}

/// What is known of getting a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyOutlook {
    /// It is not known yet whether another node can give one.
    Looking,
    /// One is on its way, or will be; how, in words.
    Coming(String),
    /// No node can give one at present; why, in words. The shard halts until one can.
    Nobody(String),
}

/// The floor of an owner while a copy is out: the identity of the stream, and a sequence of it.
pub type CopyFloor = (String, u64);

/// A shard's part in copies: what it needs, what it gets, and what the stream must keep meanwhile.
pub struct ShardCopies {
    need: watch::Sender<Option<NeededCopy>>,
    outlook: watch::Sender<CopyOutlook>,
    /// Why the directory is empty although it held data.
    lost: Mutex<Option<String>>,
    to_install: Mutex<Option<CopyToInstall>>,
    floors: Mutex<CopyFloors>,
    /// The floor that was stored last.
    stored: watch::Sender<Option<CopyFloor>>,
}

#[derive(Default)]
struct CopyFloors {
    /// What a copy holds that this node fetches.
    fetched: Option<CopyFloor>,
    /// The lowest sequence of the copies that this node gives.
    given: Option<u64>,
}

impl Default for ShardCopies {
    fn default() -> Self {
        Self {
            need: watch::channel(None).0,
            outlook: watch::channel(CopyOutlook::Looking).0,
            lost: Mutex::default(),
            to_install: Mutex::default(),
            floors: Mutex::default(),
            stored: watch::channel(None).0,
        }
    }
}

impl ShardCopies {
    /// The shard's directory is empty although it held data: its stream alone must not fill it.
    pub fn set_lost(&self, why: Option<String>) {
        *self.lost.lock() = why;
    }

    pub fn lost(&self) -> Option<String> {
        self.lost.lock().clone()
    }

    /// Notes what the fetcher found. Returns the state that the shard is in by that.
    pub fn note_need(&self, need: NeededCopy) -> ShardState {
        let reason = need.reason.clone();
        // Before anybody hears of the need: what is known of the last one says nothing of this one.
        if self.need.borrow().is_none() {
            self.outlook.send_replace(CopyOutlook::Looking);
        }
        self.need.send_if_modified(|known| {
            let is_new = known.is_none();
            *known = Some(need);
            is_new
        });
        match &*self.outlook.borrow() {
            CopyOutlook::Looking => ShardState::CatchingUp(format!(
                "{reason}; looking for another node whose copy of the shard would do"
            )),
            CopyOutlook::Coming(words) => ShardState::CatchingUp(format!("{reason}; {words}")),
            CopyOutlook::Nobody(words) => ShardState::Halted(format!("{reason}; {words}")),
        }
    }

    /// The stream continues what was applied, or it is to be found out anew.
    pub fn clear_need(&self) {
        self.need.send_if_modified(|need| need.take().is_some());
    }

    /// What the shard needs; `None`: nothing.
    pub fn need(&self) -> watch::Receiver<Option<NeededCopy>> {
        self.need.subscribe()
    }

    pub fn set_outlook(&self, outlook: CopyOutlook) {
        self.outlook.send_if_modified(|known| {
            let is_new = *known != outlook;
            *known = outlook;
            is_new
        });
    }

    pub fn outlook(&self) -> watch::Receiver<CopyOutlook> {
        self.outlook.subscribe()
    }

    /// Hands a copy to the writer.
    pub fn install(&self, copy: CopyToInstall) {
        *self.to_install.lock() = Some(copy);
    }

    pub fn take_to_install(&self) -> Option<CopyToInstall> {
        self.to_install.lock().take()
    }

    /// While this node fetches a copy, the copy's sequence is its floor, and not that of its own data.
    pub fn hold_fetched(&self, floor: Option<CopyFloor>) {
        self.floors.lock().fetched = floor;
    }

    /// While this node gives a copy, its floor is no greater than this.
    pub fn hold_given(&self, sequence: Option<u64>) {
        self.floors.lock().given = sequence;
    }

    /// The lowest sequence of the copies that this node gives.
    pub fn given(&self) -> Option<u64> {
        self.floors.lock().given
    }

    /// What this node needs of the stream, `None` if it is not known.
    ///
    /// # Arguments
    /// - `stream`: the identity of the stream, empty if no session has read it yet
    /// - `safe`: the last sequence of it that no crash takes back. Asked for only once it is known that no
    ///   copy is fetched: when one was put in place, it is the copy's, and was less a moment before
    pub fn floor(&self, stream: &str, safe: impl FnOnce() -> Option<u64>) -> Option<CopyFloor> {
        let floors = self.floors.lock();
        if let Some(fetched) = &floors.fetched {
            return Some(fetched.clone());
        }
        let safe = safe().filter(|_| !stream.is_empty())?;
        let floor = floors.given.map_or(safe, |given| given.min(safe));
        Some((stream.to_owned(), floor))
    }

    /// The bucket of floors has this floor of this node's.
    pub fn note_stored(&self, floor: CopyFloor) {
        self.stored.send_replace(Some(floor));
    }

    pub fn stored(&self) -> watch::Receiver<Option<CopyFloor>> {
        self.stored.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(first: u64) -> NeededCopy {
        NeededCopy { stream: "S@1".to_owned(), first, reason: "it is purged".to_owned() }
    }

    #[test]
    fn a_shard_halts_only_once_nobody_can_give_a_copy() {
        let copies = ShardCopies::default();
        let state = copies.note_need(need(5));
        assert_eq!((state.name(), copies.need().borrow().clone()), ("catching_up", Some(need(5))));
        copies.set_outlook(CopyOutlook::Nobody("no other node owns it".to_owned()));
        let state = copies.note_need(need(6));
        assert_eq!(state, ShardState::Halted("it is purged; no other node owns it".to_owned()));
        copies.set_outlook(CopyOutlook::Coming("fetching it".to_owned()));
        assert_eq!(copies.note_need(need(6)).name(), "catching_up");
        copies.clear_need();
        assert_eq!(copies.need().borrow().clone(), None);
        // What was known of the last one says nothing of the next.
        copies.set_outlook(CopyOutlook::Nobody(String::new()));
        assert_eq!(copies.note_need(need(9)).name(), "catching_up");
    }

    #[test]
    fn a_floor_is_that_of_the_copy_while_one_is_out() {
        let copies = ShardCopies::default();
        let floor = |at| Some(("S@1".to_owned(), at));
        assert_eq!((copies.floor("S@1", || Some(70)), copies.floor("", || Some(70))), (floor(70), None));
        assert_eq!(copies.floor("S@1", || None), None);
        copies.hold_given(Some(60));
        assert_eq!(copies.floor("S@1", || Some(70)), floor(60));
        copies.hold_given(Some(80));
        assert_eq!(copies.floor("S@1", || Some(70)), floor(70));
        copies.hold_fetched(floor(90));
        assert_eq!(copies.floor("", || panic!("what is replaced says nothing")), floor(90));
    }
}
