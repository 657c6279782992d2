"""The types of requests and answers. `make clients-generate` writes this file: do not edit it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Dict, List, Literal, Mapping, Sequence, Union

from typing_extensions import NotRequired, TypedDict

BoardName = str
InstanceName = str
MemberId = str
ScoreInput = Union[int, float, str, Sequence[Union[int, float, str]]]
Score = Union[int, float, List[Union[int, float]]]
Profile = Mapping[str, Any]
Token = str
AsOf = str

# Where objects have numbers that may be strings in JSON: beyond 2^53, and infinities. By the names
# of objects and of fields. `#` is a number, a name is an object with some, and with `*` before it
# each field is one, because its keys are data. Lists are as their items.
NUMBERS: Dict[str, Dict[str, str]] = {
    'KeyInput': {'min': '#', 'max': '#'},
    'Key': {'min': '#', 'max': '#'},
    'DefinitionInput': {'keys': 'KeyInput'},
    'ListedBoard': {'keys': 'Key'},
    'Board': {'keys': 'Key'},
    'DefinedBoard': {'keys': 'Key'},
    'BoardList': {'boards': 'ListedBoard'},
    'TrimInput': {'worse_than': '#', 'better_than': '#'},
    'Job': {'score': '#', 'scores': '*#', 'version': '#'},
    'EntryInput': {'score': '#', 'version': '#'},
    'Previous': {'score': '#'},
    'Entry': {'score': '#', 'movement': '#', 'error': '#', 'version': '#'},
    'Change': {'entry': 'Entry', 'previous': 'Previous'},
    'EntryWritten': {'entry': 'Entry', 'previous': 'Previous', 'windows': '*Entry'},
    'JobResult': {'entry': 'Entry', 'previous': 'Previous', 'boards': '*Change', 'windows': '*Entry'},
    'JobsWritten': {'results': 'JobResult'},
    'EntryByWindow': {'windows': '*Entry'},
    'EntryOnBoard': {'score': '#', 'error': '#'},
    'ListedEntry': {'score': '#', 'movement': '#', 'error': '#', 'with': '*EntryOnBoard', 'version': '#'},
    'Page': {'entries': 'ListedEntry'},
    'LiveState': {'entries': 'ListedEntry', 'members': 'ListedEntry'},
    'LiveChanges': {'entries': 'ListedEntry', 'members': 'ListedEntry'},
    'Neighbours': {'entries': 'ListedEntry'},
    'GroupEntry': {'score': '#', 'movement': '#', 'error': '#', 'with': '*EntryOnBoard'},
    'Group': {'entries': 'GroupEntry'},
    'MemberBoards': {'entries': 'Entry'},
    'Rank': {'score': '#'},
    'ScoresInput': {'scores': '#'},
    'RanksRank': {'score': '#'},
    'Ranks': {'ranks': 'RanksRank'},
    'Place': {'score': '#'},
    'Count': {'min': '#', 'max': '#'},
    'HistogramBucket': {'min': '#', 'max': '#'},
    'Histogram': {'buckets': 'HistogramBucket'},
    'PercentilesPercentile': {'score': '#'},
    'Percentiles': {'percentiles': 'PercentilesPercentile'},
    'CombinedEntry': {'score': '#'},
    'CombinedMember': {'score': '#'},
    'CombinedBoards': {'entries': 'CombinedEntry', 'member': 'CombinedMember'},
    'Problem': {'results': 'JobResult'},
}

class KeyInput(TypedDict):
    name: str
    """1 to 64 bytes, different from the names of the other keys."""
    order: NotRequired[Union[Literal['asc', 'desc'], None]]
    """`desc`: greater is better; `asc`: smaller is better."""
    type: NotRequired[Union[Literal['integer', 'float'], None]]
    """`integer`: exact signed 64-bit integers. `float`: IEEE doubles, so fractions and infinities too; `incr`
    adds as doubles do. It can never change.
    """
    min: NotRequired[Union[int, float, str, None]]
    """The least value that a job may lead to. Existing entries stay as they are."""
    max: NotRequired[Union[int, float, str, None]]
    """The greatest value that a job may lead to; not below `min`. Existing entries stay as they are."""
    below_min: NotRequired[Union[Literal['reject', 'clamp'], None]]
    """What an `incr` to less than `min` does. `reject` refuses the job; `clamp` stops at the bound."""
    above_max: NotRequired[Union[Literal['reject', 'clamp'], None]]
    """What an `incr` to more than `max` does. `reject` refuses the job; `clamp` stops at the bound."""


class Key(TypedDict):
    """A component of a board's scores. An absent `min` or `max` means no bound."""
    name: str
    order: Literal['asc', 'desc']
    type: NotRequired[Literal['float']]
    """`float`: IEEE doubles. Absent: exact 64-bit integers."""
    min: NotRequired[Union[int, float]]
    max: NotRequired[Union[int, float]]
    below_min: NotRequired[Literal['clamp']]
    """`clamp`: an `incr` to less than `min` leads to `min`. Absent: it is refused."""
    above_max: NotRequired[Literal['clamp']]
    """`clamp`: an `incr` to more than `max` leads to `max`. Absent: it is refused."""


class Instance(TypedDict):
    """An instance of a window. It exists from its beginning on, whether or not it has entries."""
    name: InstanceName
    begin: Union[str, None]
    end: Union[str, None]
    open: bool
    """Whether jobs can still enter it: until its end and the board's `grace`."""
    total: int
    """Entries of the instance."""


class PlannedSeason(TypedDict):
    """A season that was planned by a request and has not begun."""
    name: InstanceName
    begin: str


class DefinitionInputSeason(TypedDict):
    starts: NotRequired[Union[str, datetime]]
    every: NotRequired[str]
    """How long each season is, a minute at least. Another length holds from the next season on."""


class DefinitionInput(TypedDict):
    """What a board's definition is to have. On a new board absent fields have their default; on one that is
    there they keep their value. `null` is the default. Only `policy`, `keep`, `grace`, `entry_ttl`,
    `expires_at`, `expires_after`, `capacity`, the `every` of `season` and the bounds of keys with
    `below_min` and `above_max` can change, and windows be added.
    """
    keys: NotRequired[Union[Sequence[KeyInput], None]]
    """The components of a score, compared in this order. Default: one key, `score`, descending."""
    policy: NotRequired[Union[Literal['set', 'best', 'incr'], None]]
    """What a job without `op` does: `set` (the latest wins), `best` or `incr`."""
    ties: NotRequired[Union[Literal['first', 'last', 'member', 'member_desc'], None]]
    """Which of equal scores comes first: that of the `first` or the `last` member to reach it, or with
    `member` that of the smallest id, compared byte by byte. The id also decides if the times are equal.
    Equal scores share their rank regardless.
    """
    windows: NotRequired[Union[Sequence[Literal['all', 'hour', 'day', 'week', 'month', 'season']], None]]
    """The kinds of time slices that the board has a ranking of, `["all"]` if absent. Each has instances:
    `all`, `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11`, `s7`. Weeks are those of ISO 8601. A read
    that names no window is of `all`, or of the first one of the list.
    """
    season: NotRequired[Union[Literal['manual'], DefinitionInputSeason, None]]
    """When seasons begin. Given if, and only if, `season` is one of the windows."""
    utc_offset: NotRequired[Union[str, None]]
    """Where hours, days, weeks and months begin, `+09:00`, from `-18:00` to `+18:00`. Default: `+00:00`."""
    keep: NotRequired[Union[int, None]]
    """Closed instances kept per kind of window."""
    grace: NotRequired[Union[str, None]]
    """How long an instance stays open after its end, up to `36500d`. It may keep at most 10,000 instances of
    a window open: with the window `hour` it is at most `10000h`. All windows together have at most 16,000
    instances, those of `keep` included. A whole number and one of `s`, `m`, `h`, `d` and `w`.
    """
    entry_ttl: NotRequired[Union[str, None]]
    """How long an entry stays that is not updated, `1s` to `36500d`. Default: forever. A whole number and one
    of `s`, `m`, `h`, `d` and `w`.
    """
    expires_at: NotRequired[Union[str, datetime, None]]
    """When the board ends: it is dropped then, as `DELETE` drops it. A time that is over is refused on a new
    board; on one that is there it takes `?force=true`. Default: it does not end at a time.
    """
    expires_after: NotRequired[Union[str, None]]
    """How long after its last job the board ends, `1s` to `36500d`: it is dropped then. Until the first job
    it is counted from when the board was defined, and anew from when this is changed. Default: it stays. A
    whole number and one of `s`, `m`, `h`, `d` and `w`.
    """
    capacity: NotRequired[Union[int, None]]
    """Each instance shows only so many entries, the best ones: those at later positions are not listed and
    not counted. They are kept, and shown again when those before them leave or the capacity grows.
    Default: all are shown.
    """
    kind: NotRequired[Union[Literal['ranking', 'top_k'], None]]
    """`ranking` keeps all members. `top_k`, for streams of unbounded members, keeps those with the greatest
    counts in fixed memory (SpaceSaving): `capacity`, which must be given and cannot change later, is the
    number of entries that each instance has on each shard at most, and entries have `error`. It has one
    descending key and the policy `incr`, `ties` of `first` or `last`, no `entry_ttl` and no `movement`.
    Its jobs are `incr` by 0 or more and `remove`, without `version`.
    """
    movement: NotRequired[Union[bool, None]]
    """`true` keeps what `movement` of reads needs: how positions in `all` were when the current instance of
    each other window began. The windows must be `all` and at least one other.
    """


class ListedBoardSeason(TypedDict):
    starts: NotRequired[str]
    every: NotRequired[str]
    """How long each season is, a minute at least. Another length holds from the next season on."""


class ListedBoardTotals(TypedDict):
    """Entries of the board, by window: of `all`, or if the board does not have it of the current instance of
    its first window. With the parameter `window`: of that one. Empty if there is no such instance.
    """
    all: NotRequired[int]
    """Entries of the instance."""
    hour: NotRequired[int]
    """Entries of the instance."""
    day: NotRequired[int]
    """Entries of the instance."""
    week: NotRequired[int]
    """Entries of the instance."""
    month: NotRequired[int]
    """Entries of the instance."""
    season: NotRequired[int]
    """Entries of the instance."""


class ListedBoard(TypedDict):
    """A board's definition, and how many entries it has."""
    board: BoardName
    keys: List[Key]
    policy: Literal['set', 'best', 'incr']
    ties: Literal['first', 'last', 'member', 'member_desc']
    windows: List[Literal['all', 'hour', 'day', 'week', 'month', 'season']]
    season: Union[Literal['manual'], ListedBoardSeason, None]
    """When seasons begin: `null` if there are none."""
    utc_offset: str
    keep: int
    """Closed instances kept per kind of window."""
    grace: str
    """How long an instance stays open after its end, in the longest unit that divides it."""
    entry_ttl: Union[str, None]
    capacity: Union[int, None]
    movement: bool
    """Whether reads of `all` take `movement`."""
    kind: Literal['ranking', 'top_k']
    read_only: Union[ReadOnly, None]
    expires_at: Union[str, None]
    expires_after: Union[str, None]
    totals: ListedBoardTotals
    """Entries of the board, by window: of `all`, or if the board does not have it of the current instance of
    its first window. With the parameter `window`: of that one. Empty if there is no such instance.
    """


class BoardSeason(TypedDict):
    starts: NotRequired[str]
    every: NotRequired[str]
    """How long each season is, a minute at least. Another length holds from the next season on."""


class BoardTotals(TypedDict):
    """Entries of the board, by window: of `all`, or if the board does not have it of the current instance of
    its first window. With the parameter `window`: of that one. Empty if there is no such instance.
    """
    all: NotRequired[int]
    """Entries of the instance."""
    hour: NotRequired[int]
    """Entries of the instance."""
    day: NotRequired[int]
    """Entries of the instance."""
    week: NotRequired[int]
    """Entries of the instance."""
    month: NotRequired[int]
    """Entries of the instance."""
    season: NotRequired[int]
    """Entries of the instance."""


class BoardInstances(TypedDict):
    """The instances that can be read, by window, newest first: from the current one to the oldest one that
    has entries and is not dropped.
    """
    all: NotRequired[List[Instance]]
    hour: NotRequired[List[Instance]]
    day: NotRequired[List[Instance]]
    week: NotRequired[List[Instance]]
    month: NotRequired[List[Instance]]
    season: NotRequired[List[Instance]]


class BoardNextCursors(TypedDict):
    """For windows with older instances that have entries than those listed: the `cursor` that lists them.
    More than 1,000 instances behind the newest, it may list some without entries.
    """
    all: NotRequired[InstanceName]
    hour: NotRequired[InstanceName]
    day: NotRequired[InstanceName]
    week: NotRequired[InstanceName]
    month: NotRequired[InstanceName]
    season: NotRequired[InstanceName]


class Board(TypedDict):
    """A board's definition, and how many entries it has."""
    board: BoardName
    keys: List[Key]
    policy: Literal['set', 'best', 'incr']
    ties: Literal['first', 'last', 'member', 'member_desc']
    windows: List[Literal['all', 'hour', 'day', 'week', 'month', 'season']]
    season: Union[Literal['manual'], BoardSeason, None]
    """When seasons begin: `null` if there are none."""
    utc_offset: str
    keep: int
    """Closed instances kept per kind of window."""
    grace: str
    """How long an instance stays open after its end, in the longest unit that divides it."""
    entry_ttl: Union[str, None]
    capacity: Union[int, None]
    movement: bool
    """Whether reads of `all` take `movement`."""
    kind: Literal['ranking', 'top_k']
    read_only: Union[ReadOnly, None]
    expires_at: Union[str, None]
    expires_after: Union[str, None]
    totals: BoardTotals
    """Entries of the board, by window: of `all`, or if the board does not have it of the current instance of
    its first window. With the parameter `window`: of that one. Empty if there is no such instance.
    """
    instances: BoardInstances
    """The instances that can be read, by window, newest first: from the current one to the oldest one that
    has entries and is not dropped.
    """
    ends_at: NotRequired[Union[str, None]]
    planned_seasons: List[PlannedSeason]
    next_cursors: BoardNextCursors
    """For windows with older instances that have entries than those listed: the `cursor` that lists them.
    More than 1,000 instances behind the newest, it may list some without entries.
    """
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """


class DefinedBoardSeason(TypedDict):
    starts: NotRequired[str]
    every: NotRequired[str]
    """How long each season is, a minute at least. Another length holds from the next season on."""


class DefinedBoardTotals(TypedDict):
    """Entries of the board, by window: of `all`, or if the board does not have it of the current instance of
    its first window. With the parameter `window`: of that one. Empty if there is no such instance.
    """
    all: NotRequired[int]
    """Entries of the instance."""
    hour: NotRequired[int]
    """Entries of the instance."""
    day: NotRequired[int]
    """Entries of the instance."""
    week: NotRequired[int]
    """Entries of the instance."""
    month: NotRequired[int]
    """Entries of the instance."""
    season: NotRequired[int]
    """Entries of the instance."""


class DefinedBoard(TypedDict):
    """A board's definition, and how many entries it has."""
    board: BoardName
    keys: List[Key]
    policy: Literal['set', 'best', 'incr']
    ties: Literal['first', 'last', 'member', 'member_desc']
    windows: List[Literal['all', 'hour', 'day', 'week', 'month', 'season']]
    season: Union[Literal['manual'], DefinedBoardSeason, None]
    """When seasons begin: `null` if there are none."""
    utc_offset: str
    keep: int
    """Closed instances kept per kind of window."""
    grace: str
    """How long an instance stays open after its end, in the longest unit that divides it."""
    entry_ttl: Union[str, None]
    capacity: Union[int, None]
    movement: bool
    """Whether reads of `all` take `movement`."""
    kind: Literal['ranking', 'top_k']
    read_only: Union[ReadOnly, None]
    expires_at: Union[str, None]
    expires_after: Union[str, None]
    totals: DefinedBoardTotals
    """Entries of the board, by window: of `all`, or if the board does not have it of the current instance of
    its first window. With the parameter `window`: of that one. Empty if there is no such instance.
    """
    token: str
    """Names every shard, with a sequence from which on the definition is in force there."""
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """


class BoardList(TypedDict):
    """Boards by name."""
    boards: List[ListedBoard]
    next_cursor: Union[BoardName, None]
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """


class DroppedBoard(TypedDict):
    """The outcome of dropping a board."""
    board: str
    dropped: Literal[True]
    token: Token


class SeasonInput(TypedDict):
    """The next season."""
    name: NotRequired[Union[str, None]]
    """Which one it is to be. The request can be repeated then."""
    at: NotRequired[Union[str, datetime, None]]
    """When it begins, at least a second ahead and after the last one. Absent: a second from now."""


class MovedSeasonInput(TypedDict):
    """When a planned season begins."""
    at: Union[str, datetime]


class CancelledSeason(TypedDict):
    """A planned season that was cancelled."""
    board: str
    season: str
    """Its name."""
    cancelled: Literal[True]
    token: str
    """Names every shard, with a sequence from which on that is known there."""


class OpenedSeason(TypedDict):
    """A season that was opened or moved. When it begins, the season before it ends."""
    board: str
    season: str
    """Its name."""
    begin: str
    token: str
    """Names every shard, with a sequence from which on the season is known there."""


class TrimInput(TypedDict):
    """Which entries are removed: give exactly one of the three."""
    positions_beyond: NotRequired[Union[int, str]]
    """The last position that stays, from 1."""
    worse_than: NotRequired[ScoreInput]
    """The worst score that stays. On boards with several keys it may have the first keys only; then only
    these are compared.
    """
    better_than: NotRequired[ScoreInput]
    """The best score that stays. It may have the first keys only, as `worse_than`."""


class RemovedEntries(TypedDict):
    """The outcome of a removal of many entries. `window` is the instance that was trimmed."""
    board: str
    window: NotRequired[InstanceName]
    removed: int
    """The number of removed entries, hidden ones included. Of a cleared board: those that `all`, or the
    current instance of its first window, held when the clear began.
    """
    token: str
    """Names every shard, with a sequence from which on the entries are removed there."""


class Job(TypedDict):
    """One requested change."""
    board: NotRequired[Union[BoardName, None]]
    member: MemberId
    score: NotRequired[Union[ScoreInput, None]]
    scores: NotRequired[Union[Mapping[str, ScoreInput], None]]
    op: NotRequired[Union[Literal['set', 'best', 'incr', 'create', 'update', 'remove', 'hide', 'show',
        'profile'], None]]
    """`set` replaces the score, `best` replaces a worse one, `incr` adds to it key by key, from zero for a
    new member; `create` sets it if the member has no entry, and `update` if it has one. Default: the
    board's `policy`.
    """
    version: NotRequired[Union[int, None]]
    """The job applies only if this is greater than the version stored for the member and the board, or of the
    profile, so that a repetition counts once. Of jobs that overtake each other the older one is rejected:
    an `incr` is not added then. Use `id` where several senders add.
    """
    at: NotRequired[Union[str, datetime, None]]
    """When the score was reached, from 1970 to April 2262, with any offset; decides ties. A job whose `at` is
    more than five minutes after the queue took it is rejected with `future_time`; exactly five minutes are
    allowed. Default: when the queue took the job.
    """
    id: NotRequired[Union[str, None]]
    """1 to 64 bytes that the sender makes of what happened. A job whose shard has applied one of the same id,
    within an hour unless the node is configured otherwise, changes nothing, whoever has sent it: its
    result has `repeated`. Default: each job counts.
    """
    meta: NotRequired[Union[Dict[str, Any], None]]
    """Replaces the entry's metadata. Default: left as it is."""
    profile: NotRequired[Profile]


class EntryInput(TypedDict):
    """One job whose board and member are in the path."""
    board: NotRequired[Union[str, None]]
    """If present, it must be the board of the path."""
    member: NotRequired[Union[str, None]]
    """If present, it must be the member of the path."""
    score: NotRequired[Union[ScoreInput, None]]
    scores: NotRequired[None]
    op: NotRequired[Union[Literal['set', 'best', 'incr', 'create', 'update', 'remove', 'hide', 'show'], None]]
    """`set` replaces the score, `best` replaces a worse one, `incr` adds to it key by key, from zero for a
    new member; `create` sets it if the member has no entry, and `update` if it has one. Default: the
    board's `policy`.
    """
    version: NotRequired[Union[int, None]]
    """The job applies only if this is greater than the version stored for the member and the board, or of the
    profile, so that a repetition counts once. Of jobs that overtake each other the older one is rejected:
    an `incr` is not added then. Use `id` where several senders add.
    """
    at: NotRequired[Union[str, datetime, None]]
    """When the score was reached, from 1970 to April 2262, with any offset; decides ties. A job whose `at` is
    more than five minutes after the queue took it is rejected with `future_time`; exactly five minutes are
    allowed. Default: when the queue took the job.
    """
    id: NotRequired[Union[str, None]]
    """1 to 64 bytes that the sender makes of what happened. A job whose shard has applied one of the same id,
    within an hour unless the node is configured otherwise, changes nothing, whoever has sent it: its
    result has `repeated`. Default: each job counts.
    """
    meta: NotRequired[Union[Dict[str, Any], None]]
    """Replaces the entry's metadata. Default: left as it is."""


class Accepted(TypedDict):
    """The write is stored in its stream, and will be applied."""
    token: Token


class Previous(TypedDict):
    """What the entry was before."""
    score: Score
    rank: int
    """Its rank."""
    position: int
    """Its position."""


class Change(TypedDict):
    """What a job did on a board."""
    changed: bool
    """Whether the entry is another one afterwards for a reader who may see hidden ones: its score, its place
    among ties, `updated_at`, its metadata, or whether it is there. Of `hide` and `show`: whether the ban
    began or ended.
    """
    entry: Union[Entry, None]
    previous: Union[Previous, None]


class Changed(TypedDict):
    """Whether a job did anything on a board."""
    changed: bool
    """Whether the entry is another one afterwards for a reader who may see hidden ones: its score, its place
    among ties, `updated_at`, its metadata, or whether it is there. Of `hide` and `show`: whether the ban
    began or ended.
    """


class EntryWrittenFirst(TypedDict):
    """With `repeated`: what came of the first one."""
    changed: bool
    """Whether it changed anything."""
    token: Token


class EntryWritten(TypedDict):
    """The outcome of the write. With NATS and without `wait=applied` it has `token` and nothing else."""
    token: Token
    changed: NotRequired[bool]
    """Whether the entry is another one afterwards for a reader who may see hidden ones: its score, its place
    among ties, `updated_at`, its metadata, or whether it is there. Of `hide` and `show`: whether the ban
    began or ended.
    """
    entry: NotRequired[Union[Entry, None]]
    previous: NotRequired[Union[Previous, None]]
    windows: NotRequired[Union[Dict[str, Union[Entry, None]], None]]
    """With the parameter `windows`: the member's entries right after the write, by the names that were asked
    for; `null` where the job has entered no instance, and for all of it if the entries cannot be read.
    """
    repeated: NotRequired[Literal[True]]
    """Present if a job of this `id` was applied before: this one has changed nothing, and the entry is as it
    is now.
    """
    first: NotRequired[EntryWrittenFirst]
    """With `repeated`: what came of the first one."""
    missing: NotRequired[List[int]]
    """The shards that did not answer; none if the entries kept changing while they were counted."""


class MemberRemovedCounts(TypedDict):
    """Boards."""
    boards: int
    """The number of boards that had an entry, or a remembered removal, of the member."""
    changed: int
    """The number of boards that changed."""
    left: NotRequired[int]
    """The number of boards that a removal with a `version` has left, as theirs is not smaller. Absent if it
    has left nothing, the profile included.
    """


class MemberRemovedFirst(TypedDict):
    """With `repeated`: what came of the first one."""
    changed: bool
    """Whether it changed anything."""
    token: Token


class MemberRemoved(TypedDict):
    """The outcome of the removal. With NATS and without `wait=applied` it has `token` and nothing else."""
    token: Token
    changed: NotRequired[bool]
    """Whether the job changed anything: an entry on any board, the profile, or the ban of all boards."""
    entry: NotRequired[None]
    previous: NotRequired[None]
    counts: NotRequired[MemberRemovedCounts]
    """Boards."""
    detail: NotRequired[str]
    """What a removal with a `version` has left, and how to remove that: without one. Absent if it has left
    nothing.
    """
    repeated: NotRequired[Literal[True]]
    """Present if a job of this `id` was applied before: this one has changed nothing, and the entry is as it
    is now.
    """
    first: NotRequired[MemberRemovedFirst]
    """With `repeated`: what came of the first one."""


class JobResultFirst(TypedDict):
    """With `repeated`: what came of the first one."""
    changed: bool
    """Whether it changed anything."""
    token: Token


class JobResultCounts(TypedDict):
    """Boards."""
    boards: int
    """The number of boards that had an entry, or a remembered removal, of the member."""
    changed: int
    """The number of boards that changed."""
    left: NotRequired[int]
    """The number of boards that a removal with a `version` has left, as theirs is not smaller. Absent if it
    has left nothing, the profile included.
    """


class JobResult(TypedDict):
    """The outcome of one job."""
    changed: NotRequired[bool]
    """Whether the entry is another one afterwards for a reader who may see hidden ones: its score, its place
    among ties, `updated_at`, its metadata, or whether it is there. Of `hide` and `show`: whether the ban
    began or ended.
    """
    entry: NotRequired[Union[Entry, None]]
    previous: NotRequired[Union[Previous, None]]
    boards: NotRequired[Union[Dict[str, Change], Dict[str, Changed]]]
    """For a job on several boards: the outcome on each. The `changed`, `entry` and `previous` next to it are
    those of the first board.
    """
    windows: NotRequired[Union[Dict[str, Union[Entry, None]], None]]
    """With the parameter `windows`: the member's entries right after the write, by the names that were asked
    for; `null` where the job has entered no instance, and for all of it if the entries cannot be read.
    """
    repeated: NotRequired[Literal[True]]
    """Present if a job of this `id` was applied before: this one has changed nothing, and the entry is as it
    is now.
    """
    first: NotRequired[JobResultFirst]
    """With `repeated`: what came of the first one."""
    missing: NotRequired[List[int]]
    """The shards that did not answer; none if the entries kept changing while they were counted."""
    counts: NotRequired[JobResultCounts]
    """Boards."""
    detail: NotRequired[str]
    """What a removal with a `version` has left, and how to remove that: without one. Absent if it has left
    nothing.
    """
    rejected: NotRequired[Literal['malformed', 'unknown_board', 'bad_member', 'bad_score', 'out_of_range',
        'overflow', 'stale_version', 'closed_window', 'wrong_shard', 'too_large', 'future_time', 'read_only']]
    failed: NotRequired[Literal['overloaded', 'shard_unavailable', 'queue_full', 'commit_unknown',
        'commit_failed', 'too_large']]
    waits_for_board: NotRequired[Literal[True]]
    stored: NotRequired[Literal[True]]


class JobsWritten(TypedDict):
    """The outcomes of the jobs, one result per job in their order. With NATS and without `wait=applied` it
    has `token` and nothing else.
    """
    token: str
    """A read with this as `after` sees these writes."""
    results: NotRequired[List[JobResult]]


class Entry(TypedDict):
    """A member's entry on a board. `meta` is `{}` if there is none, and `null` if it could not be read."""
    board: BoardName
    window: InstanceName
    member: MemberId
    score: Score
    rank: int
    """1 + better; shared by equal scores, "1 2 2 4"."""
    position: int
    """The place in the total order, counted from 1; ties are ordered by the board's rule."""
    better: int
    """Entries with a better score."""
    tied: int
    """Entries with this score, including the entry itself."""
    worse: int
    """Entries with a worse score."""
    total: int
    """Entries of the instance: better + tied + worse."""
    percentile: float
    """100 × worse / total: the share of entries with a worse score. Entries of equal score have the same
    percentile, and are not worse than each other.
    """
    updated_at: str
    meta: Union[Dict[str, Any], None]
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """
    profile: NotRequired[Union[Profile, None]]
    """The member's profile; `null` if there is none, or if it could not be read. Present with `profile=true`.
    """
    movement: NotRequired[Union[int, None]]
    """The entry's position when the current instance of the window asked for began, less its position now:
    positive if it has climbed. `null` if it was not listed then. Present with `movement`.
    """
    error: NotRequired[Union[int, float]]
    """The most by which the score is too high. Present on boards of the kind `top_k`."""
    rank_error: NotRequired[int]
    """Present with `accuracy=approx`: the most by which `rank` and `position` can be off, as of the summaries
    that `as_of` names. 0 for the first 1,000.
    """
    hidden: NotRequired[Literal[True]]
    """Present with `hidden=true`, of an entry that is hidden. `rank`, `position` and the counts are those
    that there would be if it were not: it counts itself.
    """
    beyond_capacity: NotRequired[Literal[True]]
    """Present with `hidden=true`, of an entry that is kept and not listed, because it is beyond the board's
    `capacity`. `rank`, `position` and the counts are those among all entries that are kept.
    """
    reached_at: NotRequired[str]
    version: NotRequired[int]


class EntryByWindow(TypedDict):
    """A member's entries in several windows of a board."""
    board: BoardName
    member: MemberId
    windows: Dict[str, Union[Entry, None]]
    """By the names that were asked for; `null` where the member has no entry."""
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """


class EntryOnBoard(TypedDict):
    """A member's entry on another board than the one that is listed."""
    score: Score
    error: NotRequired[Union[int, float]]
    """The most by which the score is too high. Present on boards of the kind `top_k`."""
    rank: NotRequired[int]
    """1 + the number of entries of that board with a better score; shared by equal scores. Present with
    `with_rank=true`.
    """


_ListedEntryWords = TypedDict(
    '_ListedEntryWords',
    {
        'with': NotRequired[Dict[str, Union[EntryOnBoard, None]]],
    },
)


class ListedEntry(_ListedEntryWords):
    """An entry within a list. `reached_at`, the time at which the score was reached, is present if it was
    asked for and orders the board's ties; `version`, if it was asked for and a job had one.
    """
    member: MemberId
    score: Score
    rank: int
    """1 + the number of entries with a better score; shared by equal scores, "1 2 2 4"."""
    position: int
    """The place in the total order, counted from 1; ties are ordered by the board's rule."""
    updated_at: str
    meta: Union[Dict[str, Any], None]
    profile: NotRequired[Union[Profile, None]]
    """The member's profile; `null` if there is none, or if it could not be read. Present with `profile=true`.
    """
    movement: NotRequired[Union[int, None]]
    """The entry's position when the current instance of the window asked for began, less its position now:
    positive if it has climbed. `null` if it was not listed then. Present with `movement`.
    """
    error: NotRequired[Union[int, float]]
    """The most by which the score is too high. Present on boards of the kind `top_k`."""
    reached_at: NotRequired[str]
    version: NotRequired[int]


class Page(TypedDict):
    """Entries in their order. `next_cursor` is the cursor of the next page, and `null` at the end."""
    board: BoardName
    window: InstanceName
    total: int
    """Entries of the instance."""
    entries: List[ListedEntry]
    next_cursor: Union[str, None]
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """
    with_windows: NotRequired[Dict[str, Union[str, None]]]
    """The instance by which each of the boards was read that the parameter `with` names; `null` where there
    is no such instance now. Present with `with`.
    """


class LiveState(TypedDict):
    """The data of the event `state`: all that is watched."""
    board: BoardName
    window: InstanceName
    total: int
    """Entries of the instance."""
    entries: List[ListedEntry]
    members: List[ListedEntry]
    not_found: List[MemberId]
    as_of: Token
    stale: NotRequired[Literal[True]]
    """Present if a shard does not answer, or does not apply what is published."""


class LiveChanges(TypedDict):
    """The data of the event `changes`: `entries` of the top that are new in it or have changed, those who
    have `left` it, watched `members` whose entries have changed, and those who are on the board no longer
    (`not_found`).
    """
    board: BoardName
    window: InstanceName
    total: int
    """Entries of the instance."""
    entries: List[ListedEntry]
    left: List[MemberId]
    members: List[ListedEntry]
    not_found: List[MemberId]
    as_of: Token
    stale: NotRequired[Literal[True]]
    """Present if a shard does not answer, or does not apply what is published."""


class Neighbours(TypedDict):
    """The member and its neighbours, best first."""
    board: BoardName
    window: InstanceName
    total: int
    """Entries of the instance."""
    entries: List[ListedEntry]
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """
    with_windows: NotRequired[Dict[str, Union[str, None]]]
    """The instance by which each of the boards was read that the parameter `with` names; `null` where there
    is no such instance now. Present with `with`.
    """


class LookupInput(TypedDict):
    members: Sequence[MemberId]
    """Ids; repeated ones count once."""


_GroupEntryWords = TypedDict(
    '_GroupEntryWords',
    {
        'with': NotRequired[Dict[str, Union[EntryOnBoard, None]]],
    },
)


class GroupEntry(_GroupEntryWords):
    """An entry, and its rank within the group."""
    group_rank: int
    """Rank among the members asked for."""
    member: MemberId
    score: Score
    rank: int
    """1 + the number of entries with a better score; shared by equal scores, "1 2 2 4"."""
    position: int
    """The place in the total order, counted from 1; ties are ordered by the board's rule."""
    updated_at: str
    meta: Union[Dict[str, Any], None]
    profile: NotRequired[Union[Profile, None]]
    """The member's profile; `null` if there is none, or if it could not be read. Present with `profile=true`.
    """
    movement: NotRequired[Union[int, None]]
    """The entry's position when the current instance of the window asked for began, less its position now:
    positive if it has climbed. `null` if it was not listed then. Present with `movement`.
    """
    error: NotRequired[Union[int, float]]
    """The most by which the score is too high. Present on boards of the kind `top_k`."""


class Group(TypedDict):
    """Those of the members who are on the board, best first, and those who are not."""
    board: BoardName
    window: InstanceName
    total: int
    """Entries of the instance."""
    entries: List[GroupEntry]
    not_found: List[MemberId]
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """
    with_windows: NotRequired[Dict[str, Union[str, None]]]
    """The instance by which each of the boards was read that the parameter `with` names; `null` where there
    is no such instance now. Present with `with`.
    """


class MemberBoards(TypedDict):
    """A member's entries, by board. `next_cursor` is the cursor for entries on further boards, and `null` at
    the end.
    """
    member: MemberId
    window: Union[str, None]
    """What was asked for: the parameter `window`, or `all`; `null` with `windows`. `window` of an entry names
    the instance that it is of.
    """
    entries: List[Entry]
    not_found: List[BoardName]
    next_cursor: Union[str, None]
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """
    profile: NotRequired[Union[Profile, None]]
    """The member's profile, whether it has an entry or not; `null` if there is none, or if it could not be
    read. Present with `profile=true` and without `boards`, unless the token is confined to some boards.
    """


class RankShard(TypedDict):
    """A shard's share."""
    shard: int
    """The shard's number."""
    better: int
    """Better entries on the shard."""
    tied: int
    """Equal entries on the shard."""
    total: int
    """Entries on the shard."""


class Rank(TypedDict):
    """The rank of a score, whether a member has it or not."""
    board: BoardName
    window: InstanceName
    score: Score
    rank: int
    """The rank that this score has, or would have."""
    better: int
    """Entries with a better score."""
    tied: int
    """Entries with this score, including the entry itself."""
    worse: int
    """Entries with a worse score."""
    total: int
    """Entries of the instance: better + tied + worse."""
    shards: List[RankShard]
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """
    rank_error: NotRequired[int]
    """Present with `accuracy=approx`: the most by which `rank` and `position` can be off, as of the summaries
    that `as_of` names. 0 for the first 1,000.
    """


class ScoresInput(TypedDict):
    scores: Sequence[ScoreInput]


class RanksRankShard(TypedDict):
    """A shard's share."""
    shard: int
    """The shard's number."""
    better: int
    """Better entries on the shard."""
    tied: int
    """Equal entries on the shard."""
    total: int
    """Entries on the shard."""


class RanksRank(TypedDict):
    """The rank of a score, whether a member has it or not."""
    score: Score
    rank: int
    """The rank that this score has, or would have."""
    better: int
    """Entries with a better score."""
    tied: int
    """Entries with this score, including the entry itself."""
    worse: int
    """Entries with a worse score."""
    total: int
    """Entries of the instance: better + tied + worse."""
    shards: List[RanksRankShard]
    rank_error: NotRequired[int]
    """Present with `accuracy=approx`: the most by which `rank` and `position` can be off, as of the summaries
    that `as_of` names. 0 for the first 1,000.
    """


class Ranks(TypedDict):
    """The ranks of the scores, in their order."""
    board: BoardName
    window: InstanceName
    total: int
    """Entries of the instance."""
    ranks: List[RanksRank]
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """


class Place(TypedDict):
    """The score at that place, and how many entries have it."""
    board: BoardName
    window: InstanceName
    score: Score
    rank: int
    """Its rank."""
    better: int
    """Entries with a better score."""
    tied: int
    """Entries with this score, including the entry itself."""
    worse: int
    """Entries with a worse score."""
    total: int
    """Entries of the instance: better + tied + worse."""
    percentile: float
    """100 × worse / total: the share of entries with a worse score. Entries of equal score have the same
    percentile, and are not worse than each other.
    """
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """


class Count(TypedDict):
    """How many entries lie between the bounds, both inclusive. A bound that was not sent is `null`."""
    board: BoardName
    window: InstanceName
    total: int
    """Entries of the instance."""
    min: Union[int, float, None]
    max: Union[int, float, None]
    count: int
    """Entries whose first key lies between the bounds."""
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """


class HistogramBucket(TypedDict):
    """A bucket."""
    min: Union[int, float]
    max: Union[int, float]
    count: int
    """Entries in the bucket."""


class Histogram(TypedDict):
    """Entries by their first key. Buckets include both of their bounds."""
    board: BoardName
    window: InstanceName
    total: int
    """Entries of the instance."""
    buckets: List[HistogramBucket]
    below: int
    """Entries below the first bucket."""
    above: int
    """Entries above the last one."""
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """


class PercentilesPercentile(TypedDict):
    p: float
    score: Union[Score, None]
    rank: NotRequired[int]
    """Its rank."""
    better: NotRequired[int]
    """Entries with a better score."""
    tied: NotRequired[int]
    """Entries with this score, including the entry itself."""
    worse: NotRequired[int]
    """Entries with a worse score."""
    total: NotRequired[int]
    """Entries of the instance: better + tied + worse."""
    percentile: NotRequired[float]
    """100 × worse / total: the share of entries with a worse score. Entries of equal score have the same
    percentile, and are not worse than each other.
    """


class Percentiles(TypedDict):
    """The score at each percentile, in the order asked for. On a board without entries `score` is `null`,
    alone.
    """
    board: BoardName
    window: InstanceName
    total: int
    """Entries of the instance."""
    percentiles: List[PercentilesPercentile]
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """


class CombineInput(TypedDict):
    boards: Mapping[str, float]
    """Boards, and what their scores are multiplied by."""
    combine: NotRequired[Literal['union', 'inter', 'diff']]
    aggregate: NotRequired[Literal['sum', 'min', 'max']]
    """What is made of a member's scores. `diff` has one score of each."""
    order: NotRequired[Literal['desc', 'asc']]
    """Which results are best: the greatest or the least. By default as the boards have it, which must agree.
    """
    first: NotRequired[str]
    """The board from which `diff` takes the others away; by default the first one that `boards` has."""
    limit: NotRequired[int]
    """How many entries the page has at most; 0 for the total, and the member, alone."""
    cursor: NotRequired[str]
    """The `next_cursor` of the page before, with the same boards, weights, combination and order. Pages go on
    in the instances of the first one.
    """
    member: NotRequired[str]
    """A member whose place in the result is wanted, too."""


class CombinedEntry(TypedDict):
    """A member, and what comes of its scores."""
    member: MemberId
    score: Score
    rank: int
    """1 + the number of members with a better result; shared by equal ones, "1 2 2 4"."""
    position: int
    """The place in the total order, counted from 1."""


class CombinedMember(TypedDict):
    """A member's place in the result."""
    member: MemberId
    score: Score
    rank: int
    """1 + the number of members with a better result; shared by equal ones, "1 2 2 4"."""
    position: int
    """The place in the total order, counted from 1."""
    better: int
    """Members with a better result."""
    tied: int
    """Members with the same result, itself included."""
    worse: int
    """Members with a worse result."""
    total: int
    """All members of the result."""
    percentile: float
    """100 × worse / total."""


class CombinedBoards(TypedDict):
    """Boards together, best first."""
    windows: Dict[str, InstanceName]
    """The instance by which each board was read."""
    total: int
    """Members of the result."""
    entries: List[CombinedEntry]
    next_cursor: Union[str, None]
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """
    member: NotRequired[Union[CombinedMember, None]]
    """The member that was asked for; `null` if it is not in the result. Present with `member`."""


class SnapshotShardFile(TypedDict):
    """A file of a snapshot. It does not change."""
    name: str
    bytes: int
    """Its size."""


class SnapshotShard(TypedDict):
    """The copy of a shard."""
    shard: int
    """Its number."""
    applied_sequence: int
    """The copy holds everything up to this sequence of the shard's queue, and nothing after it."""
    stream: str
    """Identity of that queue: empty without NATS."""
    files: List[SnapshotShardFile]


class Snapshot(TypedDict):
    """A snapshot whose files can be fetched."""
    snapshot: str
    """Names the snapshot in paths."""
    version: str
    """The node's version."""
    taken_at: str
    """When the copying began, in UTC."""
    expires_seconds: int
    """The snapshot is removed if it is not asked for within so many seconds."""
    shard_count: int
    """The number of all shards. A node that does not own all of them copies those that it owns."""
    shards: List[SnapshotShard]


class DeletedSnapshot(TypedDict):
    """A snapshot that is removed."""
    snapshot: str
    """Names the snapshot in paths."""


_CopyingWords = TypedDict(
    '_CopyingWords',
    {
        'from': str,
    },
)


class Copying(_CopyingWords):
    """A copy of a shard on its way from another node."""
    bytes: int
    """Bytes that have arrived. Once all have, the copy is checked and loaded."""
    total: int
    """Bytes of all files."""


class Owner(TypedDict):
    """A node that owns a shard, as of what was last heard of it."""
    node: str
    """Its name."""
    state: Literal['live', 'catching_up', 'halted', 'silent', 'unknown']
    """`silent`: nothing was heard of the node for ten seconds. `unknown`: the node is alive and does not say.
    """
    applied_sequence: Union[int, None]
    """The last sequence that it has applied; `null`: unknown."""
    lag: Union[int, None]
    """Messages that it has not applied yet; `null`: unknown."""
    checkpoint_sequence: Union[int, None]
    """What its last checkpoint holds; `null`: unknown."""
    hash: Union[str, None]
    """With NATS, the hash of what it has applied, `sequence:hash`: equal on all owners at the same sequence.
    `null`: unknown.
    """


class KnownNode(TypedDict):
    """A node on the same streams."""
    node: str
    """Its name, which `--node` sets."""
    address: Union[str, None]
    """Where it answers, as a URL; `null`: unknown."""
    version: Union[str, None]
    """The version of ranktree that it runs; `null`: unknown."""
    alive: bool
    """Something was heard of it within the last ten seconds."""
    silent_seconds: int
    """Time since something was last heard of it."""
    problem: Union[str, None]
    """Why this node cannot read what the other says of itself, or cannot say anything of itself."""


class Reject(TypedDict):
    """A job that was refused."""
    shard: int
    """The shard that the job was published to."""
    sequence: int
    """Its message's place in the shard's queue."""
    index: int
    """Its place in the message, counted from 0."""
    rejected_at: str
    reason: Literal['malformed', 'unknown_board', 'bad_member', 'bad_score', 'out_of_range', 'overflow',
        'stale_version', 'closed_window', 'wrong_shard', 'too_large', 'future_time', 'read_only']
    """Stable; the same code is `rejected` in the job's result."""
    detail: str
    """What was wrong with this job, for people to read."""
    job: Any
    """The job as it was sent. A string if that is not JSON, or was cut to 4 KiB."""


class RejectList(TypedDict):
    """Rejects, newest first."""
    rejects: List[Reject]
    next_cursor: Union[str, None]
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """


class Shard(TypedDict):
    """The state of a shard."""
    shard: int
    """Its number."""
    owner: Literal['local', 'remote']
    """`local`: this node owns it. `remote`: it does not; the fields that tell of its files and its stream are
    absent, and `owners` tells of the nodes that own it.
    """
    state: Literal['live', 'catching_up', 'halted', 'silent', 'unknown', 'no_owner']
    """Of a `remote` shard the best of its owners' states, or `no_owner`."""
    reason: Union[str, None]
    """Why it is not live."""
    damage: Union[str, None]
    """Which of its files were found damaged since the start, and what to do."""
    applied_sequence: NotRequired[int]
    """The last sequence that is applied."""
    last_sequence: NotRequired[int]
    """The last sequence in its queue, as far as it is known."""
    lag: NotRequired[int]
    """Messages that are not applied yet."""
    members: NotRequired[int]
    """Members that the shard knows."""
    rejects: NotRequired[int]
    """Jobs that were rejected since the shard was created."""
    parked: NotRequired[int]
    """With NATS: jobs that wait for their board to be defined."""
    stream: NotRequired[Union[Stream, None]]
    """With NATS: how full its stream is; `null` until it was first read."""
    copying: NotRequired[Union[Copying, None]]
    """With NATS: the copy of another node's data that is being fetched; `null` if none is."""
    checkpoint_sequence: NotRequired[int]
    """What the last checkpoint holds."""
    owners: List[Owner]


class StreamHeldByLag(TypedDict):
    """Not applied yet."""
    messages: int
    """Messages."""
    bytes: int
    """Bytes, estimated."""


class StreamHeldByCheckpoint(TypedDict):
    """In no checkpoint yet."""
    messages: int
    """Messages."""
    bytes: int
    """Bytes, estimated."""


class StreamHeldByDuplicateWindow(TypedDict):
    """Younger than the stream's duplicate window, or not known to be older."""
    messages: int
    """Messages."""
    bytes: int
    """Bytes, estimated."""


class StreamHeldByNodes(TypedDict):
    """Needed by another node, whose last checkpoint does not hold them."""
    messages: int
    """Messages."""
    bytes: int
    """Bytes, estimated."""


class StreamHeldByKeep(TypedDict):
    """Kept by `--nats-keep`, or never purged because of `--nats-no-purge`."""
    messages: int
    """Messages."""
    bytes: int
    """Bytes, estimated."""


class StreamHeldBy(TypedDict):
    """Why messages are still in the stream. Each is counted once, under the first of these reasons that
    applies.
    """
    lag: StreamHeldByLag
    """Not applied yet."""
    checkpoint: StreamHeldByCheckpoint
    """In no checkpoint yet."""
    duplicate_window: StreamHeldByDuplicateWindow
    """Younger than the stream's duplicate window, or not known to be older."""
    nodes: StreamHeldByNodes
    """Needed by another node, whose last checkpoint does not hold them."""
    keep: StreamHeldByKeep
    """Kept by `--nats-keep`, or never purged because of `--nats-no-purge`."""


class Stream(TypedDict):
    """How full a shard's stream is, as it was read a second ago or less. The bytes of the parts are
    estimates.
    """
    level: Literal['roomy', 'nearly_full', 'full']
    """`nearly_full` from seven eighths on; `full`: publishers are refused."""
    reason: Union[str, None]
    """What is wrong with the settings of the stream, or that there is no stream of rejects; otherwise what
    holds the stream's messages. And what to do. `null` if nothing is wrong and it is `roomy`.
    """
    held_for: Union[str, None]
    """Which other node messages are held for, or why that is unknown; `null` if none are."""
    bytes: int
    """Bytes in the stream."""
    bytes_max: Union[int, None]
    """Bytes that the stream may hold; `null`: no limit."""
    messages: int
    """Messages in the stream."""
    messages_max: Union[int, None]
    """Messages that the stream may hold; `null`: no limit."""
    held_by: StreamHeldBy
    """Why messages are still in the stream. Each is counted once, under the first of these reasons that
    applies.
    """


class HiddenList(TypedDict):
    """Bans. `next_cursor` is the cursor of the next page, and `null` at the end."""
    hidden: List[Ban]
    next_cursor: Union[str, None]
    as_of: AsOf
    stale: NotRequired[Literal[True]]
    """Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    out of date.
    """
    missing: NotRequired[List[int]]
    """Present if the answer lacks shards, which no node answered for: their numbers. Only with
    `partial=true`, or after a board was defined.
    """


class Ban(TypedDict):
    """Who is hidden."""
    member: MemberId
    board: Union[BoardName, None]
    """On which board, in all its instances; `null`: on all boards, those to come included."""
    since: str


class Status(TypedDict):
    """The state of the node. A token that is confined to some boards is not told what counts the members and
    jobs of all boards: its shards lack `members`, `rejects`, `parked`, `stream` and `copying`, and have
    `null` as `reason` and `damage`.
    """
    version: str
    ready: bool
    """Every shard that the node owns is live, and its lag is under the limit; after the lag has exceeded the
    limit, it must fall below half of it.
    """
    degraded: bool
    """A shard's stream is full or nearly full or was changed, the stream of rejects is gone, files of a shard
    are damaged, its time is far ahead of the node's clock, the node's clock is over a second from the NATS
    server's, no node that runs owns a shard, or jobs have waited over a minute for their board; its
    `stream` or `damage`, or `/readyz`, says why.
    """
    read_only: Union[ReadOnly, None]
    auto_create: bool
    """Whether a job for a board that does not exist creates it; `--no-auto-create` rejects it."""
    node: str
    """The name of this node."""
    nodes: List[KnownNode]
    shards: List[Shard]


class ReadOnly(TypedDict):
    """It is read-only."""
    reason: str
    """Text without control characters."""
    since: str


class ReadOnlyInput(TypedDict):
    """What is to be read-only, and why."""
    board: NotRequired[Union[BoardName, None]]
    """Absent: the service, with all boards, those to come included."""
    readonly: bool
    """`false`: it takes writes again."""
    reason: NotRequired[Union[str, None]]
    """Needed where `readonly` is true. Who is refused is told it."""


class ReadOnlySet(TypedDict):
    """Whether it is read-only now."""
    board: Union[BoardName, None]
    readonly: bool
    reason: Union[str, None]
    since: Union[str, None]
    token: str
    """Names every shard, with a sequence from which on that holds there."""


class ProblemError(TypedDict):
    """An invalid job."""
    index: int
    """Its place in the request, counted from 0."""
    code: Literal['malformed', 'unknown_board', 'bad_member', 'bad_score', 'out_of_range', 'overflow',
        'stale_version', 'closed_window', 'wrong_shard', 'too_large', 'future_time', 'read_only']
    detail: str


class ProblemShard(TypedDict):
    """The state of a shard."""
    shard: int
    """Its number."""
    owner: NotRequired[Literal['local', 'remote']]
    """`local`: this node owns it. `remote`: it does not; the fields that tell of its files and its stream are
    absent, and `owners` tells of the nodes that own it.
    """
    state: Literal['live', 'catching_up', 'halted', 'silent', 'unknown', 'no_owner']
    """Of a `remote` shard the best of its owners' states, or `no_owner`."""
    reason: NotRequired[Union[str, None]]
    """Why it is not live."""
    damage: NotRequired[Union[str, None]]
    """Which of its files were found damaged since the start, and what to do."""
    applied_sequence: NotRequired[int]
    """The last sequence that is applied."""
    last_sequence: NotRequired[int]
    """The last sequence in its queue, as far as it is known."""
    lag: NotRequired[int]
    """Messages that are not applied yet."""
    members: NotRequired[int]
    """Members that the shard knows."""
    rejects: NotRequired[int]
    """Jobs that were rejected since the shard was created."""
    parked: NotRequired[int]
    """With NATS: jobs that wait for their board to be defined."""
    stream: NotRequired[Union[Stream, None]]
    """With NATS: how full its stream is; `null` until it was first read."""
    copying: NotRequired[Union[Copying, None]]
    """With NATS: the copy of another node's data that is being fetched; `null` if none is."""
    checkpoint_sequence: NotRequired[int]
    """What the last checkpoint holds."""
    owners: NotRequired[List[Owner]]


class Problem(TypedDict):
    """An RFC 9457 problem. `code` is stable; `detail` is for people."""
    type: str
    """`urn:ranktree:problem:` and the code."""
    title: str
    status: int
    code: Literal['malformed', 'unknown_board', 'bad_member', 'bad_score', 'out_of_range', 'overflow',
        'stale_version', 'closed_window', 'future_time', 'read_only', 'wrong_shard', 'too_large',
        'unauthorized', 'invalid_token', 'insufficient_scope', 'forbidden_board', 'forbidden_profile',
        'foreign_origin', 'unknown_route', 'method_not_allowed', 'unknown_member', 'unknown_window',
        'unknown_position', 'bad_parameter', 'bad_cursor', 'unsupported', 'invalid_definition',
        'unknown_shard', 'no_manual_seasons', 'season_conflict', 'too_many_seasons', 'would_drop',
        'board_differs', 'too_many_boards', 'body_too_slow', 'unsupported_coding', 'internal', 'overloaded',
        'shard_unavailable', 'shard_damaged', 'queue_full', 'commit_unknown', 'commit_failed',
        'unknown_snapshot', 'too_many_snapshots', 'snapshot_failed', 'not_ready', 'other_history',
        'not_yet_applied']
    detail: str
    errors: NotRequired[List[ProblemError]]
    """For `POST /v1/jobs`: which jobs are invalid. No job of the request was applied."""
    token: NotRequired[str]
    """For `POST /v1/jobs` that failed in part: names the jobs that were stored. Absent if none was."""
    results: NotRequired[List[JobResult]]
    """For `POST /v1/jobs` that failed in part: the outcome of each job."""
    shards: NotRequired[List[Union[int, ProblemShard]]]
    """For `/readyz`: the state of each shard that the node owns. A node that asks for tokens shows `shard`
    and `state` only; `/v1/status` has the rest. Otherwise: the numbers of the shards that no node answers
    for, or that this node does not own.
    """


class Reading(TypedDict, total=False):
    """What every read may be asked with."""
    window: Union[str, None]
    """What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current
    instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or
    `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's
    `window` names the instance that was read. An instance can be read from its beginning on, also while it
    has no entries, until it is dropped; others, and windows that the board does not have, are
    `unknown_window`.
    """
    after: Union[Token, None]
    """Waits until the writes that the token names are visible. The token is the `token` of a write, or the
    `as_of` of another read. It may name some of the shards; a shard that the service does not have is
    refused with `unknown_shard`.
    """
    timeout_ms: Union[int, None]
    """How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`."""
    partial: Union[bool, None]
    """Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it
    the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
    """
    profile: Union[bool, None]
    """Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without
    entries take no notice of it.
    """
    accuracy: Union[Literal['exact', 'approx'], None]
    """`approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a
    second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names
    their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is
    asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry
    can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
    """


class BoardsQuery(Reading, total=False):
    """What `boards` may be asked with."""
    limit: Union[int, None]
    """How many boards the page has at most."""
    cursor: Union[str, None]
    """The `next_cursor` of the page before; empty means the first page."""


class PutBoardQuery(TypedDict, total=False):
    """What `put_board` may be asked with."""
    wait: Union[Literal['applied'], None]
    """`applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every
    write waits.
    """
    force: Union[bool, None]
    """Whether instances and entries may be dropped."""


class BoardQuery(Reading, total=False):
    """What `board` may be asked with."""
    limit: Union[int, None]
    """How many instances of a window are listed at most. An answer lists 1,000 in all: where several windows
    are listed, each has its share.
    """
    cursor: Union[str, None]
    """One of the `next_cursors` of the page before: only instances of its window are listed, older ones.
    Empty means the first page.
    """


class DeleteBoardQuery(TypedDict, total=False):
    """What `delete_board` may be asked with."""
    wait: Union[Literal['applied'], None]
    """`applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every
    write waits.
    """


class ClearBoardQuery(TypedDict, total=False):
    """What `clear_board` may be asked with."""
    wait: Union[Literal['applied'], None]
    """`applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every
    write waits.
    """


class TrimBoardQuery(TypedDict, total=False):
    """What `trim_board` may be asked with."""
    wait: Union[Literal['applied'], None]
    """`applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every
    write waits.
    """
    window: Union[str, None]
    """What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current
    instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or
    `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's
    `window` names the instance that was read. An instance can be read from its beginning on, also while it
    has no entries, until it is dropped; others, and windows that the board does not have, are
    `unknown_window`.
    """


class OpenSeasonQuery(TypedDict, total=False):
    """What `open_season` may be asked with."""
    wait: Union[Literal['applied'], None]
    """`applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every
    write waits.
    """
    force: Union[bool, None]
    """Whether a season is opened also where the request looks like a repeated one."""


class MoveSeasonQuery(TypedDict, total=False):
    """What `move_season` may be asked with."""
    wait: Union[Literal['applied'], None]
    """`applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every
    write waits.
    """


class CancelSeasonQuery(TypedDict, total=False):
    """What `cancel_season` may be asked with."""
    wait: Union[Literal['applied'], None]
    """`applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every
    write waits.
    """


class PutMemberQuery(TypedDict, total=False):
    """What `put_member` may be asked with."""
    wait: Union[Literal['applied'], None]
    """`applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every
    write waits.
    """
    results: Union[Literal['changed'], None]
    """`changed`: the answer says of each job only whether it changed anything, without `entry` and
    `previous`. Use it for a short answer if these are not needed. It has no effect on 202.
    """
    windows: Union[str, None]
    """Names of windows or instances, joined by commas, at most 64, in place of `window`. The answer has the
    member's entries there as `windows`, read right after the job, so that it tells which instances the job
    has entered: a window's name, and `*` for each, stands for the instance that the job's own time falls
    in, and is `null` if that was closed or had not begun. With `wait=applied` only. Of several jobs each
    names one board, and the answer shows up to 1,000 entries.
    """


class DeleteMemberQuery(TypedDict, total=False):
    """What `delete_member` may be asked with."""
    wait: Union[Literal['applied'], None]
    """`applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every
    write waits.
    """
    results: Union[Literal['changed'], None]
    """`changed`: the answer says of each job only whether it changed anything, without `entry` and
    `previous`. Use it for a short answer if these are not needed. It has no effect on 202.
    """
    version: Union[int, None]
    """The removal applies only if this is greater than the version stored for the member and the board. The
    version is remembered, so that a late retry of an older write does not create the entry again.
    """


class MemberQuery(Reading, total=False):
    """What `member` may be asked with."""
    movement: Union[Literal['hour', 'day', 'week', 'month', 'season'], None]
    """The name of a window of the board, and not `all`: each entry has `movement`, how many positions it has
    climbed since the current instance of that window began. It is exact at the answer's `as_of`. Entries
    must be of `all`, and the board must be defined with `movement`; otherwise the answer is
    `bad_parameter`. A window that the board does not have is `unknown_window`.
    """
    hidden: Union[bool, None]
    """Whether an entry is answered, too, that is kept and not listed: one that is hidden, with `hidden`, and
    one beyond the board's `capacity`, with `beyond_capacity`; each with the rank that it would have if it
    were listed. Such an entry has no `rank_error` and no `movement`, whatever was asked. Needs the scope
    `write`.
    """
    reached_at: Union[bool, None]
    """Whether an entry has `reached_at`, the time at which the score was reached, on boards where it orders
    ties. A copy of a board needs it to keep the order of ties. `updated_at` may be later.
    """
    version: Union[bool, None]
    """Whether an entry has `version`, the greatest one of the jobs that it took, if any had one. A copy of a
    board needs it to refuse what the board would refuse.
    """


class DeleteEverywhereQuery(TypedDict, total=False):
    """What `delete_everywhere` may be asked with."""
    wait: Union[Literal['applied'], None]
    """`applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every
    write waits.
    """
    results: Union[Literal['changed'], None]
    """`changed`: the answer says of each job only whether it changed anything, without `entry` and
    `previous`. Use it for a short answer if these are not needed. It has no effect on 202.
    """
    version: Union[int, None]
    """The removal applies only if this is greater than the version stored for the member and the board. The
    version is remembered, so that a late retry of an older write does not create the entry again.
    """


class MemberBoardsQuery(Reading, total=False):
    """What `member_boards` may be asked with."""
    windows: Union[str, None]
    """Names of windows or instances, joined by commas, at most 64, in place of `window`. `*` asks for the
    current instance of each window of a board that `boards` names; without `boards`, for every instance
    that holds an entry of the member.
    """
    boards: Union[Sequence[BoardName], None]
    """Up to 1000 boards. A comma within a name is percent-encoded. Without it, all boards that the member is
    on, up to 1000 at a time.
    """
    cursor: Union[str, None]
    """The `next_cursor` of the page before, without `boards`; empty means the first page."""
    hidden: Union[bool, None]
    """Whether an entry is answered, too, that is kept and not listed: one that is hidden, with `hidden`, and
    one beyond the board's `capacity`, with `beyond_capacity`; each with the rank that it would have if it
    were listed. Such an entry has no `rank_error` and no `movement`, whatever was asked. Needs the scope
    `write`.
    """


class JobsQuery(TypedDict, total=False):
    """What `jobs` may be asked with."""
    wait: Union[Literal['applied'], None]
    """`applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every
    write waits.
    """
    results: Union[Literal['changed'], None]
    """`changed`: the answer says of each job only whether it changed anything, without `entry` and
    `previous`. Use it for a short answer if these are not needed. It has no effect on 202.
    """
    windows: Union[str, None]
    """Names of windows or instances, joined by commas, at most 64, in place of `window`. The answer has the
    member's entries there as `windows`, read right after the job, so that it tells which instances the job
    has entered: a window's name, and `*` for each, stands for the instance that the job's own time falls
    in, and is `null` if that was closed or had not begun. With `wait=applied` only. Of several jobs each
    names one board, and the answer shows up to 1,000 entries.
    """


class SetReadOnlyQuery(TypedDict, total=False):
    """What `set_read_only` may be asked with."""
    wait: Union[Literal['applied'], None]
    """`applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every
    write waits.
    """


class AroundQuery(Reading, total=False):
    """What `around` may be asked with."""
    with_: Union[Sequence[BoardName], None]
    """Up to 8 boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`: its
    member's score on those boards, at the same `as_of`, and `null` where it is not listed, because it has
    no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what `window`
    asks for if it has such a window, and otherwise by its default window: `with_windows` says which. A
    board that there is not is `unknown_board`. Entries times boards are 8000 at most, and those that are
    counted, with `with_rank` or because the board has a capacity, 1000; over them the answer is
    `too_large`.
    """
    with_rank: Union[bool, None]
    """Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score."""
    above: Union[int, None]
    """How many entries before the member the answer has at most."""
    below: Union[int, None]
    """How many entries after the member the answer has at most."""
    fill: Union[bool, None]
    """Whether the other side has more entries if there are too few at an end of the board."""
    movement: Union[Literal['hour', 'day', 'week', 'month', 'season'], None]
    """The name of a window of the board, and not `all`: each entry has `movement`, how many positions it has
    climbed since the current instance of that window began. It is exact at the answer's `as_of`. Entries
    must be of `all`, and the board must be defined with `movement`; otherwise the answer is
    `bad_parameter`. A window that the board does not have is `unknown_window`.
    """


class LookupQuery(Reading, total=False):
    """What `lookup` may be asked with."""
    with_: Union[Sequence[BoardName], None]
    """Up to 8 boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`: its
    member's score on those boards, at the same `as_of`, and `null` where it is not listed, because it has
    no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what `window`
    asks for if it has such a window, and otherwise by its default window: `with_windows` says which. A
    board that there is not is `unknown_board`. Entries times boards are 8000 at most, and those that are
    counted, with `with_rank` or because the board has a capacity, 1000; over them the answer is
    `too_large`.
    """
    with_rank: Union[bool, None]
    """Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score."""
    movement: Union[Literal['hour', 'day', 'week', 'month', 'season'], None]
    """The name of a window of the board, and not `all`: each entry has `movement`, how many positions it has
    climbed since the current instance of that window began. It is exact at the answer's `as_of`. Entries
    must be of `all`, and the board must be defined with `movement`; otherwise the answer is
    `bad_parameter`. A window that the board does not have is `unknown_window`.
    """


class CombineQuery(Reading, total=False):
    """What `combine` may be asked with."""


class TopQuery(Reading, total=False):
    """What `top` may be asked with."""
    with_: Union[Sequence[BoardName], None]
    """Up to 8 boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`: its
    member's score on those boards, at the same `as_of`, and `null` where it is not listed, because it has
    no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what `window`
    asks for if it has such a window, and otherwise by its default window: `with_windows` says which. A
    board that there is not is `unknown_board`. Entries times boards are 8000 at most, and those that are
    counted, with `with_rank` or because the board has a capacity, 1000; over them the answer is
    `too_large`.
    """
    with_rank: Union[bool, None]
    """Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score."""
    limit: Union[int, None]
    """How many entries the page has at most."""
    cursor: Union[str, None]
    """The `next_cursor` of the page before; empty means the first page."""
    from_: Union[Literal['top', 'bottom'], None]
    """The end to begin at, `top` by default. With a cursor it may be left out."""
    reached_at: Union[bool, None]
    """Whether an entry has `reached_at`, the time at which the score was reached, on boards where it orders
    ties. A copy of a board needs it to keep the order of ties. `updated_at` may be later.
    """
    version: Union[bool, None]
    """Whether an entry has `version`, the greatest one of the jobs that it took, if any had one. A copy of a
    board needs it to refuse what the board would refuse.
    """
    movement: Union[Literal['hour', 'day', 'week', 'month', 'season'], None]
    """The name of a window of the board, and not `all`: each entry has `movement`, how many positions it has
    climbed since the current instance of that window began. It is exact at the answer's `as_of`. Entries
    must be of `all`, and the board must be defined with `movement`; otherwise the answer is
    `bad_parameter`. A window that the board does not have is `unknown_window`.
    """


class PositionsQuery(Reading, total=False):
    """What `positions` may be asked with."""
    with_: Union[Sequence[BoardName], None]
    """Up to 8 boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`: its
    member's score on those boards, at the same `as_of`, and `null` where it is not listed, because it has
    no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what `window`
    asks for if it has such a window, and otherwise by its default window: `with_windows` says which. A
    board that there is not is `unknown_board`. Entries times boards are 8000 at most, and those that are
    counted, with `with_rank` or because the board has a capacity, 1000; over them the answer is
    `too_large`.
    """
    with_rank: Union[bool, None]
    """Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score."""
    limit: Union[int, None]
    """How many entries the page has at most."""


class RangeQuery(Reading, total=False):
    """What `range` may be asked with."""
    with_: Union[Sequence[BoardName], None]
    """Up to 8 boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`: its
    member's score on those boards, at the same `as_of`, and `null` where it is not listed, because it has
    no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what `window`
    asks for if it has such a window, and otherwise by its default window: `with_windows` says which. A
    board that there is not is `unknown_board`. Entries times boards are 8000 at most, and those that are
    counted, with `with_rank` or because the board has a capacity, 1000; over them the answer is
    `too_large`.
    """
    with_rank: Union[bool, None]
    """Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score."""
    min: Union[int, float, str, None]
    """The least value."""
    max: Union[int, float, str, None]
    """The greatest value; not below `min`."""
    limit: Union[int, None]
    """How many entries the page has at most."""
    cursor: Union[str, None]
    """The `next_cursor` of the page before; empty means the first page."""


class LiveQuery(TypedDict, total=False):
    """What `live` may be asked with."""
    window: Union[str, None]
    """What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current
    instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or
    `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's
    `window` names the instance that was read. An instance can be read from its beginning on, also while it
    has no entries, until it is dropped; others, and windows that the board does not have, are
    `unknown_window`.
    """
    after: Union[Token, None]
    """Waits until the writes that the token names are visible. The token is the `token` of a write, or the
    `as_of` of another read. It may name some of the shards; a shard that the service does not have is
    refused with `unknown_shard`.
    """
    timeout_ms: Union[int, None]
    """How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`."""
    top: Union[int, None]
    """How many of the best entries are watched."""
    members: Union[Sequence[MemberId], None]
    """Up to 100 members that are watched wherever they are. A comma within an id is percent-encoded. Over
    several nodes they may be of later sequences than `as_of` names.
    """
    max_rate: Union[int, None]
    """The most events a second."""


class RankQuery(Reading, total=False):
    """What `rank` may be asked with."""


class RanksOfQuery(Reading, total=False):
    """What `ranks_of` may be asked with."""


class ScoreQuery(Reading, total=False):
    """What `score` may be asked with."""
    rank: Union[int, None]
    """A rank, from 1."""
    position: Union[int, None]
    """A position, from 1."""
    percentile: Union[float, None]
    """A percentile, 100 × worse / total, where equal scores are not worse than each other. The answer is the
    lowest score whose percentile is at least this, or the best score if no percentile is that high, for
    example because many share the best score.
    """


class CountQuery(Reading, total=False):
    """What `count` may be asked with."""
    min: Union[int, float, str, None]
    """The least value."""
    max: Union[int, float, str, None]
    """The greatest value; not below `min`."""


class HistogramQuery(Reading, total=False):
    """What `histogram` may be asked with."""
    buckets: Union[int, None]
    """How many buckets of about equal width the range from the least to the greatest score is cut into. Not
    with `edges`.
    """
    edges: Union[Sequence[Union[int, float, str]], None]
    """2 to 1000 integers, each greater than the one before: the bounds of the buckets. A bucket ends just
    below the next edge; the last bucket includes its upper edge.
    """


class PercentilesQuery(Reading, total=False):
    """What `percentiles` may be asked with."""


class HiddenQuery(Reading, total=False):
    """What `hidden` may be asked with."""
    board: Union[BoardName, None]
    """Only bans that hold on this board: its own, and those of all boards."""
    member: Union[MemberId, None]
    """Only bans of this member."""
    limit: Union[int, None]
    """How many bans the page has at most."""
    cursor: Union[str, None]
    """The `next_cursor` of the page before; empty means the first page."""


class RejectsQuery(Reading, total=False):
    """What `rejects` may be asked with."""
    shard: Union[int, None]
    """Only rejects of this shard."""
    reason: Union[Literal['malformed', 'unknown_board', 'bad_member', 'bad_score', 'out_of_range', 'overflow',
        'stale_version', 'closed_window', 'wrong_shard', 'too_large', 'future_time', 'read_only'], None]
    """Only rejects for this reason."""
    member: Union[MemberId, None]
    """Only rejects of this member: those that the erasure of the member reaches. Of what is no readable job,
    those are listed in which the id stands as a JSON string.
    """
    limit: Union[int, None]
    """How many rejects the page has at most."""
    cursor: Union[str, None]
    """The `next_cursor` of the page before; empty means the first page. Send it with the same `shard`,
    `reason` and `member`.
    """


Jobs = Union[Job, Sequence[Job]]
