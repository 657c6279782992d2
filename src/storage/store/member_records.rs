//! What is kept of members whatever their entries are: bans, and versions that hold on every board.
//!
//! Both are records of the log, each as it is now. So a start reads them as of the last commit, and no
//! checkpoint has to have them.

use rocksdb::WriteBatch;

use crate::state::{BanChange, Bans, MemberVersionChange, MemberVersions};
use crate::storage::codec::{self, undecodable};
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::store::Store;
use crate::types::{BoardName, MemberId};

impl Store {
    /// Reads the bans and the versions of members, as of the last commit.
    pub fn member_records(&self) -> Result<(Bans, MemberVersions), StorageError> {
        let (mut bans, mut versions) = (Bans::default(), MemberVersions::default());
        self.scan_log(&[keys::BAN], &[keys::BAN], |key, value| {
            let (member, board) = keys::member_and_board_of_ban(key)
                .ok_or_else(|| undecodable("ban", "its key does not name a member"))?;
            let scope = match board {
                "" => None,
                board => Some(BoardName::new(board).map_err(|error| undecodable("ban", error))?),
            };
            let member = MemberId::new(member).map_err(|error| undecodable("ban", error))?;
            bans.apply(&BanChange { scope, member, after: Some(codec::decode_ban(value)?) });
            Ok(())
        })?;
        self.scan_log(&[keys::MEMBER_VERSION], &[keys::MEMBER_VERSION], |key, value| {
            let member = keys::member_of(key).and_then(|member| std::str::from_utf8(member).ok());
            let member = member.unwrap_or_default();
            let member = MemberId::new(member).map_err(|error| undecodable("member's version", error))?;
            let after = Some(codec::decode_member_version(value)?);
            versions.apply(&MemberVersionChange { member, after });
            Ok(())
        })?;
        Ok((bans, versions))
    }

    pub(in crate::storage) fn put_member_records(
        &self,
        batch: &mut WriteBatch,
        bans: &[BanChange],
        versions: &[MemberVersionChange],
    ) {
        let log = self.log();
        for BanChange { scope, member, after } in bans {
            let key = keys::ban(member.as_bytes(), scope.as_ref().map_or("", BoardName::as_str));
            match after {
                Some(record) => batch.put_cf(log, key, codec::encode_ban(*record)),
                None => batch.delete_cf(log, key),
            }
        }
        for MemberVersionChange { member, after } in versions {
            let key = keys::member_version(member.as_bytes());
            match after {
                Some(after) => batch.put_cf(log, key, codec::encode_member_version(*after)),
                None => batch.delete_cf(log, key),
            }
        }
    }
}
