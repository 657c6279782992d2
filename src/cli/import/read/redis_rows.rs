//! Rows of a sorted set in a running Redis: ZSCAN from beginning to end, a job per member.
//!
//! ZSCAN returns each member that stays during the scan at least once. It may return some twice, and miss
//! members that come or go. So jobs set a score, which is the same once or twice.

use std::time::Duration;

use redis::{Connection, ConnectionInfo, IntoConnectionInfo as _, RedisError};

use crate::cli::import::ImportError;
use crate::cli::import::read::redis_entry::RedisEntries;
use crate::cli::import::read::row::Parsed;

/// Members of one ZSCAN call: Redis serves nobody else during a call.
const SCAN_COUNT: u32 = 1_000;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Where the sorted set is, and what its members become.
pub struct RedisSource<'a> {
    pub url: &'a str,
    pub password: Option<&'a str>,
    pub key: &'a str,
}

pub struct RedisRows {
    connection: Connection,
    key: String,
    entries: RedisEntries,
    /// `None` at the end.
    cursor: Option<String>,
    page: std::vec::IntoIter<(Vec<u8>, String)>,
    read: u64,
    /// Members when the scan began.
    pub total: u64,
}

impl RedisRows {
    /// # Errors
    /// When Redis cannot be reached, or has no such sorted set.
    pub fn open(source: &RedisSource<'_>, entries: RedisEntries) -> Result<Self, ImportError> {
        let info = connection_info(source).map_err(ImportError::Redis)?;
        let client = redis::Client::open(info).map_err(ImportError::Redis)?;
        let mut connection =
            client.get_connection_with_timeout(CONNECT_TIMEOUT).map_err(ImportError::Redis)?;
        connection.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(ImportError::Redis)?;
        connection.set_write_timeout(Some(ANSWER_TIMEOUT)).map_err(ImportError::Redis)?;
        let total = redis::cmd("ZCARD").arg(source.key).query(&mut connection).map_err(ImportError::Redis)?;
        if total == 0 {
            return Err(ImportError::RedisEmpty(source.key.to_owned()));
        }
        Ok(Self {
            connection,
            key: source.key.to_owned(),
            entries,
            cursor: Some("0".to_owned()),
            page: Vec::new().into_iter(),
            read: 0,
            total,
        })
    }

    fn scan(&mut self, cursor: &str) -> Result<(), RedisError> {
        let mut command = redis::cmd("ZSCAN");
        command.arg(&self.key).arg(cursor).arg("COUNT").arg(SCAN_COUNT);
        let (next, page): (String, Vec<(Vec<u8>, String)>) = command.query(&mut self.connection)?;
        self.cursor = (next != "0").then_some(next);
        self.page = page.into_iter();
        Ok(())
    }
}

impl Iterator for RedisRows {
    type Item = Result<Parsed, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((member, score)) = self.page.next() {
                self.read += 1;
                return Some(Ok(self
                    .entries
                    .row(self.read, &member, &score)
                    .map_or_else(Parsed::Rejected, Parsed::Row)));
            }
            let cursor = self.cursor.take()?;
            if let Err(error) = self.scan(&cursor) {
                return Some(Err(ImportError::Redis(error)));
            }
        }
    }
}

fn connection_info(source: &RedisSource<'_>) -> Result<ConnectionInfo, RedisError> {
    let info = source.url.into_connection_info()?;
    let Some(password) = source.password else { return Ok(info) };
    let settings = info.redis_settings().clone().set_password(password);
    Ok(info.set_redis_settings(settings))
}
