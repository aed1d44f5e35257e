//! The operations as scripts, because each has several steps that nothing may come between.
//!
//! A value is a string: its version as 16 digits, then its bytes. A lease is one too: its token, then its owner. A log is a stream,
//! whose entries have the numbers of the events as ids, and a hash with what the stream does not tell.
//!
//! Versions, tokens and numbers come from one counter that never is behind the time in microseconds, so that they go on growing when
//! a server was emptied. They fit into Lua's numbers until the year 2255.

use std::{sync::LazyLock, time::Duration};

use redis::{
    ErrorKind, RedisError, RedisResult, Script, ScriptInvocation, Value, aio::MultiplexedConnection,
};

use crate::store::{Expect, StoreOperation, StoreReply};

/// The digits of a number.
const DIGITS: usize = 16;
/// The key of the counter.
const COUNTER: &str = "gudgeon:number";
/// The longest time after which a value ends, in milliseconds: a hundred years.
const MAX_TTL: u64 = 100 * 365 * 24 * 3600 * 1000;

/// Begins the scripts that need a number: `next_number(key of the counter)`.
const NEXT_NUMBER: &str = "
local function next_number(counter)
    local time = redis.call('TIME')
    local now = time[1] * 1000000 + time[2]
    local last = tonumber(redis.call('GET', counter) or '0')
    local number = string.format('%016.0f', math.max(now, last + 1))
    redis.call('SET', counter, number)
    return number
end
";

static PUT: LazyLock<Script> = LazyLock::new(|| {
    script(
        "
local current = redis.call('GETRANGE', KEYS[1], 0, 15)
if ARGV[1] == 'absent' then
    if current ~= '' then return false end
elseif ARGV[1] ~= 'any' and ARGV[1] ~= current then
    return false
end
local number = next_number(KEYS[2])
redis.call('SET', KEYS[1], number .. ARGV[3], 'PX', ARGV[2])
return number
",
    )
});

static APPEND: LazyLock<Script> = LazyLock::new(|| {
    script(
        "
local info = redis.call('HMGET', KEYS[2], 'before', 'removed', 'bytes')
local before, removed, bytes = info[1], info[2], tonumber(info[3] or '0')
local number = next_number(KEYS[3])
if not before or redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('DEL', KEYS[1])
    before, removed, bytes = string.format('%016.0f', number - 1), '0', 0
end
redis.call('XADD', KEYS[1], number .. '-0', 'e', ARGV[1])
bytes = bytes + #ARGV[1]
local count = redis.call('XLEN', KEYS[1])
while count > tonumber(ARGV[2]) or bytes > tonumber(ARGV[3]) do
    local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
    redis.call('XDEL', KEYS[1], oldest[1])
    removed = string.match(oldest[1], '%d+')
    bytes = bytes - #oldest[2][2]
    count = count - 1
end
redis.call('HSET', KEYS[2], 'before', before, 'removed', removed, 'last', number, 'bytes', bytes)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return number
",
    )
});

static READ: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "
local after = tonumber(ARGV[1])
local info = redis.call('HMGET', KEYS[2], 'before', 'removed', 'last')
if not info[1] or redis.call('EXISTS', KEYS[1]) == 0 then
    if after == 0 then return {} end
    return false
end
local before, removed, last = tonumber(info[1]), tonumber(info[2]), tonumber(info[3])
if after == 0 then
    if removed > 0 then return false end
elseif after <= before or after < removed or after > last then
    return false
end
local events = {}
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+')) do
    events[#events + 1] = string.match(entry[1], '%d+')
    events[#events + 1] = entry[2][2]
end
return events
",
    )
});

static LEASE: LazyLock<Script> = LazyLock::new(|| {
    script(
        "
local current = redis.call('GET', KEYS[1])
if current and string.sub(current, 17) ~= ARGV[1] then return false end
local number = next_number(KEYS[2])
redis.call('SET', KEYS[1], number .. ARGV[1], 'PX', ARGV[2])
return number
",
    )
});

static RENEW: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "
local current = redis.call('GET', KEYS[1])
if not current or string.sub(current, 17) ~= ARGV[1] then return false end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return string.sub(current, 1, 16)
",
    )
});

static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "
local current = redis.call('GET', KEYS[1])
if current and string.sub(current, 17) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
",
    )
});

fn script(code: &str) -> Script {
    Script::new(&format!("{NEXT_NUMBER}{code}"))
}

/// Returns the channel of a topic.
pub(super) fn channel(topic: &str) -> String {
    format!("{CHANNELS}{topic}")
}

/// The beginning of all channels.
pub(super) const CHANNELS: &str = "gudgeon:topic:";

/// Carries out an operation.
pub(super) async fn run(
    connection: &mut MultiplexedConnection,
    operation: StoreOperation,
) -> RedisResult<StoreReply> {
    Ok(match operation {
        StoreOperation::Get { key } => {
            let found = redis::cmd("GET").arg(value_key(&key)).query_async(connection).await?;
            StoreReply::Found(read_value(found)?)
        }
        StoreOperation::Take { key } => {
            let taken = redis::cmd("GETDEL").arg(value_key(&key)).query_async(connection).await?;
            StoreReply::Taken(read_value(taken)?.map(|(value, _)| value))
        }
        StoreOperation::Delete { key } => {
            let () = redis::cmd("DEL").arg(value_key(&key)).query_async(connection).await?;
            StoreReply::Deleted
        }
        StoreOperation::Put { key, value, ttl, expect } => {
            let mut put = PUT.key(value_key(&key));
            let expect = match expect {
                Expect::Any => "any".into(),
                Expect::Absent => "absent".into(),
                Expect::Version(version) => format!("{version:016}"),
            };
            put.key(COUNTER).arg(expect).arg(milliseconds(ttl)).arg(value);
            number(connection, &put).await?.map_or(StoreReply::Conflict, StoreReply::Stored)
        }
        StoreOperation::Append { log, event, max_events, max_bytes, ttl } => {
            if let Some(failed) = crate::store::too_long(&event, max_bytes) {
                return Ok(failed);
            }
            let [stream, info] = log_keys(&log);
            let mut append = APPEND.key(stream);
            append.key(info).key(COUNTER).arg(event).arg(max_events.max(1)).arg(max_bytes);
            append.arg(milliseconds(ttl));
            match number(connection, &append).await? {
                Some(number) => StoreReply::Appended(number),
                None => return Err(unexpected()),
            }
        }
        StoreOperation::Read { log, after } => {
            let [stream, info] = log_keys(&log);
            let mut read = READ.key(stream);
            read.key(info).arg(after);
            let events: Option<Vec<Vec<u8>>> = read.invoke_async(connection).await?;
            match events {
                None => StoreReply::Gone,
                Some(events) => {
                    let pairs = events.chunks_exact(2);
                    let event = |pair: &[Vec<u8>]| Some((parse(&pair[0])?, pair[1].clone()));
                    let events = pairs.map(event).collect::<Option<_>>();
                    StoreReply::Events(events.ok_or_else(unexpected)?)
                }
            }
        }
        StoreOperation::Publish { topic, message } => {
            let mut publish = redis::cmd("PUBLISH");
            let () = publish.arg(channel(&topic)).arg(message).query_async(connection).await?;
            StoreReply::Published
        }
        StoreOperation::Lease { key, owner, ttl } => {
            let mut lease = LEASE.key(lease_key(&key));
            lease.key(COUNTER).arg(owner).arg(milliseconds(ttl));
            number(connection, &lease).await?.map_or(StoreReply::Held, StoreReply::Leased)
        }
        StoreOperation::Renew { key, owner, ttl } => {
            let mut renew = RENEW.key(lease_key(&key));
            renew.arg(owner).arg(milliseconds(ttl));
            number(connection, &renew).await?.map_or(StoreReply::Held, StoreReply::Leased)
        }
        StoreOperation::Release { key, owner } => {
            let mut release = RELEASE.key(lease_key(&key));
            let _: Value = release.arg(owner).invoke_async(connection).await?;
            StoreReply::Released
        }
    })
}

/// Runs a script that returns a number or nothing.
async fn number(
    connection: &mut MultiplexedConnection,
    script: &ScriptInvocation<'_>,
) -> RedisResult<Option<u64>> {
    let number: Option<Vec<u8>> = script.invoke_async(connection).await?;
    number.map(|number| parse(&number).ok_or_else(unexpected)).transpose()
}

fn read_value(stored: Option<Vec<u8>>) -> RedisResult<Option<(Vec<u8>, u64)>> {
    let Some(mut stored) = stored else { return Ok(None) };
    let version = stored.get(..DIGITS).and_then(parse).ok_or_else(unexpected)?;
    Ok(Some((stored.split_off(DIGITS), version)))
}

fn parse(number: &[u8]) -> Option<u64> {
    std::str::from_utf8(number).ok()?.parse().ok()
}

fn unexpected() -> RedisError {
    (ErrorKind::UnexpectedReturnType, "something else is stored there, and not by this store")
        .into()
}

fn value_key(key: &str) -> String {
    format!("gudgeon:value:{key}")
}

fn lease_key(key: &str) -> String {
    format!("gudgeon:lease:{key}")
}

/// Returns the keys of a log's stream, and of what the stream does not tell.
fn log_keys(log: &str) -> [String; 2] {
    [format!("gudgeon:log:{log}"), format!("gudgeon:log-info:{log}")]
}

fn milliseconds(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).clamp(1, MAX_TTL)
}
