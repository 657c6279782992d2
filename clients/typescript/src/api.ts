// The types of requests and answers. `make clients-generate-typescript` writes this file: do not edit it.

/**
 * Where the integers of an answer are, which are strings beyond 2^53 - 1. A shape is `"integer"`, the name of
 * another one, the shapes of an object's fields, or that of each part of a list, or of a map whose keys are
 * callers' names. What has none is left as it is.
 */
type Shape = string | { readonly fields: Shapes } | { readonly each: Shape };
type Shapes = { readonly [name: string]: Shape };
export const SHAPES: Shapes = {
  Board: {"fields":{"keys":{"each":"Key"}}},
  BoardList: {"fields":{"boards":{"each":"ListedBoard"}}},
  Change: {"fields":{"entry":"Entry","previous":"Previous"}},
  CombinedBoards: {"fields":{"entries":{"each":"CombinedEntry"},"member":"CombinedMember"}},
  CombinedEntry: {"fields":{"score":"integer"}},
  CombinedMember: {"fields":{"score":"integer"}},
  Count: {"fields":{"min":"integer","max":"integer"}},
  DefinedBoard: {"fields":{"keys":{"each":"Key"}}},
  Entry: {"fields":{"score":"integer","error":"integer","version":"integer"}},
  EntryByWindow: {"fields":{"windows":{"each":"Entry"}}},
  EntryOnBoard: {"fields":{"score":"integer","error":"integer"}},
  EntryWritten: {"fields":{"entry":"Entry","previous":"Previous","windows":{"each":"Entry"}}},
  Group: {"fields":{"entries":{"each":{"fields":{"score":"integer","error":"integer","with":{"each":"EntryOnBoard"}}}}}},
  Histogram: {"fields":{"buckets":{"each":{"fields":{"min":"integer","max":"integer"}}}}},
  JobResult: {"fields":{"entry":"Entry","previous":"Previous","boards":{"each":"Change"},"windows":{"each":"Entry"}}},
  JobsWritten: {"fields":{"results":{"each":"JobResult"}}},
  Key: {"fields":{"min":"integer","max":"integer"}},
  ListedBoard: {"fields":{"keys":{"each":"Key"}}},
  ListedEntry: {"fields":{"score":"integer","error":"integer","with":{"each":"EntryOnBoard"},"version":"integer"}},
  LiveChanges: {"fields":{"entries":{"each":"ListedEntry"},"members":{"each":"ListedEntry"}}},
  LiveState: {"fields":{"entries":{"each":"ListedEntry"},"members":{"each":"ListedEntry"}}},
  MemberBoards: {"fields":{"entries":{"each":"Entry"}}},
  Neighbours: {"fields":{"entries":{"each":"ListedEntry"}}},
  Page: {"fields":{"entries":{"each":"ListedEntry"}}},
  Percentiles: {"fields":{"percentiles":{"each":{"fields":{"score":"integer"}}}}},
  Place: {"fields":{"score":"integer"}},
  Previous: {"fields":{"score":"integer"}},
  Problem: {"fields":{"results":{"each":"JobResult"}}},
  Rank: {"fields":{"score":"integer"}},
  Ranks: {"fields":{"ranks":{"each":{"fields":{"score":"integer"}}}}},
};

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @description A board's name.
         * @example arena
         */
        BoardName: string;
        /**
         * @description An instance of a window: `all`, an hour `2026-11-20T09`, a day `2026-11-20`, an ISO week `2026-W47`, a month `2026-11` or a season `s7`.
         * @example all
         * @example 2026-W47
         */
        InstanceName: string;
        /**
         * @description The id of who holds a score: 1 to 256 **bytes** of UTF-8 without control characters. Spaces, dots and slashes are allowed.
         * @example p42
         */
        MemberId: string;
        /** @description A signed 64-bit integer, exact: a JSON number that is whole, `42.0` and `1e3` too, or a decimal string for clients whose numbers are doubles. Fractions, numbers beyond 64 bits and, in a string, exponents and plus signs are refused. Of a key of the type `float`: any number, its string, or an infinity. */
        IntegerInput: number | bigint;
        /** @description A signed 64-bit integer; beyond ±(2^53-1) a decimal string, because many JSON readers would round it. Of a key of the type `float`: a double, with the shortest digits that read back as it. */
        Integer: number | bigint;
        /** @description A score: one number, or an array of 1 to 8, as many as the board has keys. */
        ScoreInput: components["schemas"]["IntegerInput"] | components["schemas"]["IntegerInput"][];
        /** @description A score: one number on boards of one key, an array on others. */
        Score: components["schemas"]["Integer"] | components["schemas"]["Integer"][];
        /** @description An unsigned 64-bit integer, or its decimal string. */
        Version: number | bigint;
        /**
         * Format: date-time
         * @description RFC 3339 in UTC, to the microsecond.
         * @example 2026-11-20T09:59:58Z
         */
        Time: string;
        /** @description A JSON object of at most 1024 bytes in UTF-8 without white space and needless escapes, nested at most 64 deep. It is kept as written: numbers with all their digits, fields in their order. */
        Metadata: {
            [key: string]: unknown;
        };
        /** @description A member's profile: a JSON object of at most 4096 bytes in UTF-8 without white space and needless escapes, nested at most 64 deep. It is kept as written, as metadata are. */
        Profile: {
            [key: string]: unknown;
        };
        /**
         * @description The writes to wait for: `shard:sequence`, several joined by commas.
         * @example 0:1
         */
        Token: string;
        /**
         * @description The applied sequence of every shard that the answer was exact at: `shard:sequence`, joined by commas.
         * @example 0:1842,1:1777
         */
        AsOf: string;
        KeyInput: {
            /** @description 1 to 64 bytes, different from the names of the other keys. */
            name: string;
            /**
             * @description `desc`: greater is better; `asc`: smaller is better.
             * @default desc
             * @enum {string|null}
             */
            order?: "asc" | "desc" | null;
            /**
             * @description `integer`: exact signed 64-bit integers. `float`: IEEE doubles, so fractions and infinities too; `incr` adds as doubles do. It can never change.
             * @default integer
             * @enum {string|null}
             */
            type?: "integer" | "float" | null;
            /** @description The least value that a job may lead to. Existing entries stay as they are. */
            min?: components["schemas"]["IntegerInput"] | null;
            /** @description The greatest value that a job may lead to; not below `min`. Existing entries stay as they are. */
            max?: components["schemas"]["IntegerInput"] | null;
            /**
             * @description What an `incr` to less than `min` does. `reject` refuses the job; `clamp` stops at the bound.
             * @default reject
             * @enum {string|null}
             */
            below_min?: "reject" | "clamp" | null;
            /**
             * @description What an `incr` to more than `max` does. `reject` refuses the job; `clamp` stops at the bound.
             * @default reject
             * @enum {string|null}
             */
            above_max?: "reject" | "clamp" | null;
        };
        /** @description A component of a board's scores. An absent `min` or `max` means no bound. */
        Key: {
            name: string;
            /** @enum {unknown} */
            order: "asc" | "desc";
            /**
             * @description `float`: IEEE doubles. Absent: exact 64-bit integers.
             * @constant
             */
            type?: "float";
            min?: components["schemas"]["Integer"];
            max?: components["schemas"]["Integer"];
            /**
             * @description `clamp`: an `incr` to less than `min` leads to `min`. Absent: it is refused.
             * @enum {unknown}
             */
            below_min?: "clamp";
            /**
             * @description `clamp`: an `incr` to more than `max` leads to `max`. Absent: it is refused.
             * @enum {unknown}
             */
            above_max?: "clamp";
        };
        /** @description An instance of a window. It exists from its beginning on, whether or not it has entries. */
        Instance: {
            name: components["schemas"]["InstanceName"];
            begin: components["schemas"]["Time"] | null;
            end: components["schemas"]["Time"] | null;
            /** @description Whether jobs can still enter it: until its end and the board's `grace`. */
            open: boolean;
            /** @description Entries of the instance. */
            total: number;
        };
        /** @description A season that was planned by a request and has not begun. */
        PlannedSeason: {
            name: components["schemas"]["InstanceName"];
            begin: components["schemas"]["Time"];
        };
        /** @description What a board's definition is to have. On a new board absent fields have their default; on one that is there they keep their value. `null` is the default. Only `policy`, `keep`, `grace`, `entry_ttl`, `expires_at`, `expires_after`, `capacity`, the `every` of `season` and the bounds of keys with `below_min` and `above_max` can change, and windows be added. */
        DefinitionInput: {
            /** @description The components of a score, compared in this order. Default: one key, `score`, descending. */
            keys?: components["schemas"]["KeyInput"][] | null;
            /**
             * @description What a job without `op` does: `set` (the latest wins), `best` or `incr`.
             * @default set
             * @enum {string|null}
             */
            policy?: "set" | "best" | "incr" | null;
            /**
             * @description Which of equal scores comes first: that of the `first` or the `last` member to reach it, or with `member` that of the smallest id, compared byte by byte. The id also decides if the times are equal. Equal scores share their rank regardless.
             * @default first
             * @enum {string|null}
             */
            ties?: "first" | "last" | "member" | "member_desc" | null;
            /** @description The kinds of time slices that the board has a ranking of, `["all"]` if absent. Each has instances: `all`, `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11`, `s7`. Weeks are those of ISO 8601. A read that names no window is of `all`, or of the first one of the list. */
            windows?: ("all" | "hour" | "day" | "week" | "month" | "season")[] | null;
            /** @description When seasons begin. Given if, and only if, `season` is one of the windows. */
            season?: {
                starts?: components["schemas"]["TimeInput"];
                /** @description How long each season is, a minute at least. Another length holds from the next season on. */
                every?: string;
            } | "manual" | null;
            /** @description Where hours, days, weeks and months begin, `+09:00`, from `-18:00` to `+18:00`. Default: `+00:00`. */
            utc_offset?: string | null;
            /**
             * @description Closed instances kept per kind of window.
             * @default 12
             */
            keep?: number | null;
            /**
             * @description How long an instance stays open after its end, up to `36500d`. It may keep at most 10,000 instances of a window open: with the window `hour` it is at most `10000h`. All windows together have at most 16,000 instances, those of `keep` included. A whole number and one of `s`, `m`, `h`, `d` and `w`.
             * @example 5m
             */
            grace?: string | null;
            /**
             * @description How long an entry stays that is not updated, `1s` to `36500d`. Default: forever. A whole number and one of `s`, `m`, `h`, `d` and `w`.
             * @example 30d
             */
            entry_ttl?: string | null;
            /** @description When the board ends: it is dropped then, as `DELETE` drops it. A time that is over is refused on a new board; on one that is there it takes `?force=true`. Default: it does not end at a time. */
            expires_at?: components["schemas"]["TimeInput"] | null;
            /**
             * @description How long after its last job the board ends, `1s` to `36500d`: it is dropped then. Until the first job it is counted from when the board was defined, and anew from when this is changed. Default: it stays. A whole number and one of `s`, `m`, `h`, `d` and `w`.
             * @example 1h
             */
            expires_after?: string | null;
            /** @description Each instance shows only so many entries, the best ones: those at later positions are not listed and not counted. They are kept, and shown again when those before them leave or the capacity grows. Default: all are shown. */
            capacity?: number | null;
            /**
             * @description `ranking` keeps all members. `top_k`, for streams of unbounded members, keeps those with the greatest counts in fixed memory (SpaceSaving): `capacity`, which must be given and cannot change later, is the number of entries that each instance has on each shard at most, and entries have `error`. It has one descending key and the policy `incr`, `ties` of `first` or `last`, no `entry_ttl` and no `movement`. Its jobs are `incr` by 0 or more and `remove`, without `version`.
             * @default ranking
             * @enum {string|null}
             */
            kind?: "ranking" | "top_k" | null;
            /**
             * @description `true` keeps what `movement` of reads needs: how positions in `all` were when the current instance of each other window began. The windows must be `all` and at least one other.
             * @default false
             */
            movement?: boolean | null;
        };
        /** @description A board's definition, and how many entries it has. */
        ListedBoard: {
            board: components["schemas"]["BoardName"];
            keys: components["schemas"]["Key"][];
            /** @enum {unknown} */
            policy: "set" | "best" | "incr";
            /** @enum {unknown} */
            ties: "first" | "last" | "member" | "member_desc";
            windows: ("all" | "hour" | "day" | "week" | "month" | "season")[];
            /** @description When seasons begin: `null` if there are none. */
            season: {
                starts?: components["schemas"]["Time"];
                /** @description How long each season is, a minute at least. Another length holds from the next season on. */
                every?: string;
            } | "manual" | null;
            utc_offset: string;
            /** @description Closed instances kept per kind of window. */
            keep: number;
            /** @description How long an instance stays open after its end, in the longest unit that divides it. */
            grace: string;
            entry_ttl: string | null;
            capacity: number | null;
            /** @description Whether reads of `all` take `movement`. */
            movement: boolean;
            /** @enum {unknown} */
            kind: "ranking" | "top_k";
            read_only: components["schemas"]["ReadOnly"];
            expires_at: components["schemas"]["Time"] | null;
            expires_after: string | null;
            /** @description Entries of the board, by window: of `all`, or if the board does not have it of the current instance of its first window. With the parameter `window`: of that one. Empty if there is no such instance. */
            totals: {
                /** @description Entries of the instance. */
                all?: number;
                /** @description Entries of the instance. */
                hour?: number;
                /** @description Entries of the instance. */
                day?: number;
                /** @description Entries of the instance. */
                week?: number;
                /** @description Entries of the instance. */
                month?: number;
                /** @description Entries of the instance. */
                season?: number;
            };
        };
        /** @description A board's definition, and how many entries it has. */
        Board: {
            board: components["schemas"]["BoardName"];
            keys: components["schemas"]["Key"][];
            /** @enum {unknown} */
            policy: "set" | "best" | "incr";
            /** @enum {unknown} */
            ties: "first" | "last" | "member" | "member_desc";
            windows: ("all" | "hour" | "day" | "week" | "month" | "season")[];
            /** @description When seasons begin: `null` if there are none. */
            season: {
                starts?: components["schemas"]["Time"];
                /** @description How long each season is, a minute at least. Another length holds from the next season on. */
                every?: string;
            } | "manual" | null;
            utc_offset: string;
            /** @description Closed instances kept per kind of window. */
            keep: number;
            /** @description How long an instance stays open after its end, in the longest unit that divides it. */
            grace: string;
            entry_ttl: string | null;
            capacity: number | null;
            /** @description Whether reads of `all` take `movement`. */
            movement: boolean;
            /** @enum {unknown} */
            kind: "ranking" | "top_k";
            read_only: components["schemas"]["ReadOnly"];
            expires_at: components["schemas"]["Time"] | null;
            expires_after: string | null;
            /** @description Entries of the board, by window: of `all`, or if the board does not have it of the current instance of its first window. With the parameter `window`: of that one. Empty if there is no such instance. */
            totals: {
                /** @description Entries of the instance. */
                all?: number;
                /** @description Entries of the instance. */
                hour?: number;
                /** @description Entries of the instance. */
                day?: number;
                /** @description Entries of the instance. */
                week?: number;
                /** @description Entries of the instance. */
                month?: number;
                /** @description Entries of the instance. */
                season?: number;
            };
            /** @description The instances that can be read, by window, newest first: from the current one to the oldest one that has entries and is not dropped. */
            instances: {
                all?: components["schemas"]["Instance"][];
                hour?: components["schemas"]["Instance"][];
                day?: components["schemas"]["Instance"][];
                week?: components["schemas"]["Instance"][];
                month?: components["schemas"]["Instance"][];
                season?: components["schemas"]["Instance"][];
            };
            ends_at?: components["schemas"]["Time"] | null;
            planned_seasons: components["schemas"]["PlannedSeason"][];
            /** @description For windows with older instances that have entries than those listed: the `cursor` that lists them. More than 1,000 instances behind the newest, it may list some without entries. */
            next_cursors: {
                all?: components["schemas"]["InstanceName"];
                hour?: components["schemas"]["InstanceName"];
                day?: components["schemas"]["InstanceName"];
                week?: components["schemas"]["InstanceName"];
                month?: components["schemas"]["InstanceName"];
                season?: components["schemas"]["InstanceName"];
            };
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
        };
        /** @description A board's definition, and how many entries it has. */
        DefinedBoard: {
            board: components["schemas"]["BoardName"];
            keys: components["schemas"]["Key"][];
            /** @enum {unknown} */
            policy: "set" | "best" | "incr";
            /** @enum {unknown} */
            ties: "first" | "last" | "member" | "member_desc";
            windows: ("all" | "hour" | "day" | "week" | "month" | "season")[];
            /** @description When seasons begin: `null` if there are none. */
            season: {
                starts?: components["schemas"]["Time"];
                /** @description How long each season is, a minute at least. Another length holds from the next season on. */
                every?: string;
            } | "manual" | null;
            utc_offset: string;
            /** @description Closed instances kept per kind of window. */
            keep: number;
            /** @description How long an instance stays open after its end, in the longest unit that divides it. */
            grace: string;
            entry_ttl: string | null;
            capacity: number | null;
            /** @description Whether reads of `all` take `movement`. */
            movement: boolean;
            /** @enum {unknown} */
            kind: "ranking" | "top_k";
            read_only: components["schemas"]["ReadOnly"];
            expires_at: components["schemas"]["Time"] | null;
            expires_after: string | null;
            /** @description Entries of the board, by window: of `all`, or if the board does not have it of the current instance of its first window. With the parameter `window`: of that one. Empty if there is no such instance. */
            totals: {
                /** @description Entries of the instance. */
                all?: number;
                /** @description Entries of the instance. */
                hour?: number;
                /** @description Entries of the instance. */
                day?: number;
                /** @description Entries of the instance. */
                week?: number;
                /** @description Entries of the instance. */
                month?: number;
                /** @description Entries of the instance. */
                season?: number;
            };
            /** @description Names every shard, with a sequence from which on the definition is in force there. */
            token: string;
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
        };
        /** @description Boards by name. */
        BoardList: {
            boards: components["schemas"]["ListedBoard"][];
            next_cursor: components["schemas"]["BoardName"] | null;
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
        };
        /** @description The outcome of dropping a board. */
        DroppedBoard: {
            board: string;
            /** @constant */
            dropped: true;
            token: components["schemas"]["Token"];
        };
        /** @description The next season. */
        SeasonInput: {
            /** @description Which one it is to be. The request can be repeated then. */
            name?: string | null;
            /** @description When it begins, at least a second ahead and after the last one. Absent: a second from now. */
            at?: components["schemas"]["TimeInput"] | null;
        };
        /** @description When a planned season begins. */
        MovedSeasonInput: {
            at: components["schemas"]["TimeInput"];
        };
        /** @description A planned season that was cancelled. */
        CancelledSeason: {
            board: string;
            /** @description Its name. */
            season: string;
            /** @constant */
            cancelled: true;
            /** @description Names every shard, with a sequence from which on that is known there. */
            token: string;
        };
        /** @description A season that was opened or moved. When it begins, the season before it ends. */
        OpenedSeason: {
            board: string;
            /** @description Its name. */
            season: string;
            begin: components["schemas"]["Time"];
            /** @description Names every shard, with a sequence from which on the season is known there. */
            token: string;
        };
        /** @description Which entries are removed: give exactly one of the three. */
        TrimInput: {
            /** @description The last position that stays, from 1. */
            positions_beyond?: number | string;
            /** @description The worst score that stays. On boards with several keys it may have the first keys only; then only these are compared. */
            worse_than?: components["schemas"]["ScoreInput"];
            /** @description The best score that stays. It may have the first keys only, as `worse_than`. */
            better_than?: components["schemas"]["ScoreInput"];
        };
        /** @description The outcome of a removal of many entries. `window` is the instance that was trimmed. */
        RemovedEntries: {
            board: string;
            window?: components["schemas"]["InstanceName"];
            /** @description The number of removed entries, hidden ones included. Of a cleared board: those that `all`, or the current instance of its first window, held when the clear began. */
            removed: number;
            /** @description Names every shard, with a sequence from which on the entries are removed there. */
            token: string;
        };
        /** @description One requested change. */
        Job: {
            board: components["schemas"]["BoardName"];
            member: components["schemas"]["MemberId"];
            score: components["schemas"]["ScoreInput"];
            scores?: null;
            /**
             * @description `set` replaces the score, `best` replaces a worse one, `incr` adds to it key by key, from zero for a new member; `create` sets it if the member has no entry, and `update` if it has one. Default: the board's `policy`.
             * @default null
             * @enum {unknown}
             */
            op?: "set" | "best" | "incr" | "create" | "update" | null;
            /** @description The job applies only if this is greater than the version stored for the member and the board, or of the profile, so that a repetition counts once. Of jobs that overtake each other the older one is rejected: an `incr` is not added then. Use `id` where several senders add. */
            version?: components["schemas"]["Version"] | null;
            /** @description When the score was reached, from 1970 to April 2262, with any offset; decides ties. A job whose `at` is more than five minutes after the queue took it is rejected with `future_time`; exactly five minutes are allowed. Default: when the queue took the job. */
            at?: components["schemas"]["TimeInput"] | null;
            /** @description 1 to 64 bytes that the sender makes of what happened. A job whose shard has applied one of the same id, within an hour unless the node is configured otherwise, changes nothing, whoever has sent it: its result has `repeated`. Default: each job counts. */
            id?: string | null;
            /** @description Replaces the entry's metadata. Default: left as it is. */
            meta?: components["schemas"]["Metadata"] | null;
        } | {
            board?: null;
            member: components["schemas"]["MemberId"];
            score?: null;
            scores: {
                [key: string]: components["schemas"]["ScoreInput"];
            };
            /**
             * @description `set` replaces the score, `best` replaces a worse one, `incr` adds to it key by key, from zero for a new member; `create` sets it if the member has no entry, and `update` if it has one. Default: the board's `policy`.
             * @default null
             * @enum {unknown}
             */
            op?: "set" | "best" | "incr" | "create" | "update" | null;
            /** @description The job applies only if this is greater than the version stored for the member and the board, or of the profile, so that a repetition counts once. Of jobs that overtake each other the older one is rejected: an `incr` is not added then. Use `id` where several senders add. */
            version?: components["schemas"]["Version"] | null;
            /** @description When the score was reached, from 1970 to April 2262, with any offset; decides ties. A job whose `at` is more than five minutes after the queue took it is rejected with `future_time`; exactly five minutes are allowed. Default: when the queue took the job. */
            at?: components["schemas"]["TimeInput"] | null;
            /** @description 1 to 64 bytes that the sender makes of what happened. A job whose shard has applied one of the same id, within an hour unless the node is configured otherwise, changes nothing, whoever has sent it: its result has `repeated`. Default: each job counts. */
            id?: string | null;
            /** @description Replaces the entry's metadata. Default: left as it is. */
            meta?: components["schemas"]["Metadata"] | null;
        } | {
            board?: components["schemas"]["BoardName"] | null;
            member: components["schemas"]["MemberId"];
            score?: null;
            scores?: null;
            /** @constant */
            op: "remove";
            /** @description The job applies only if this is greater than the version stored for the member and the board, or of the profile, so that a repetition counts once. Of jobs that overtake each other the older one is rejected: an `incr` is not added then. Use `id` where several senders add. */
            version?: components["schemas"]["Version"] | null;
            /** @description When the score was reached, from 1970 to April 2262, with any offset; decides ties. A job whose `at` is more than five minutes after the queue took it is rejected with `future_time`; exactly five minutes are allowed. Default: when the queue took the job. */
            at?: components["schemas"]["TimeInput"] | null;
            /** @description 1 to 64 bytes that the sender makes of what happened. A job whose shard has applied one of the same id, within an hour unless the node is configured otherwise, changes nothing, whoever has sent it: its result has `repeated`. Default: each job counts. */
            id?: string | null;
            meta?: null;
        } | {
            board?: components["schemas"]["BoardName"] | null;
            member: components["schemas"]["MemberId"];
            score?: null;
            scores?: null;
            /** @enum {unknown} */
            op: "hide" | "show";
            /** @description The job applies only if this is greater than the version stored for the member and the board, or of the profile, so that a repetition counts once. Of jobs that overtake each other the older one is rejected: an `incr` is not added then. Use `id` where several senders add. */
            version?: components["schemas"]["Version"] | null;
            /** @description When the score was reached, from 1970 to April 2262, with any offset; decides ties. A job whose `at` is more than five minutes after the queue took it is rejected with `future_time`; exactly five minutes are allowed. Default: when the queue took the job. */
            at?: components["schemas"]["TimeInput"] | null;
            /** @description 1 to 64 bytes that the sender makes of what happened. A job whose shard has applied one of the same id, within an hour unless the node is configured otherwise, changes nothing, whoever has sent it: its result has `repeated`. Default: each job counts. */
            id?: string | null;
            meta?: null;
        } | {
            board?: null;
            member: components["schemas"]["MemberId"];
            score?: null;
            scores?: null;
            /** @constant */
            op: "profile";
            /** @description The job applies only if this is greater than the version stored for the member and the board, or of the profile, so that a repetition counts once. Of jobs that overtake each other the older one is rejected: an `incr` is not added then. Use `id` where several senders add. */
            version?: components["schemas"]["Version"] | null;
            /** @description When the score was reached, from 1970 to April 2262, with any offset; decides ties. A job whose `at` is more than five minutes after the queue took it is rejected with `future_time`; exactly five minutes are allowed. Default: when the queue took the job. */
            at?: components["schemas"]["TimeInput"] | null;
            /** @description 1 to 64 bytes that the sender makes of what happened. A job whose shard has applied one of the same id, within an hour unless the node is configured otherwise, changes nothing, whoever has sent it: its result has `repeated`. Default: each job counts. */
            id?: string | null;
            meta?: null;
            profile: components["schemas"]["Profile"];
        };
        /** @description One job, or an array of 1 to 1000, of any members. */
        Jobs: components["schemas"]["Job"] | components["schemas"]["Job"][];
        /** @description One job whose board and member are in the path. */
        EntryInput: {
            /** @description If present, it must be the board of the path. */
            board?: string | null;
            /** @description If present, it must be the member of the path. */
            member?: string | null;
            score: components["schemas"]["ScoreInput"];
            scores?: null;
            /**
             * @description `set` replaces the score, `best` replaces a worse one, `incr` adds to it key by key, from zero for a new member; `create` sets it if the member has no entry, and `update` if it has one. Default: the board's `policy`.
             * @default null
             * @enum {unknown}
             */
            op?: "set" | "best" | "incr" | "create" | "update" | null;
            /** @description The job applies only if this is greater than the version stored for the member and the board, or of the profile, so that a repetition counts once. Of jobs that overtake each other the older one is rejected: an `incr` is not added then. Use `id` where several senders add. */
            version?: components["schemas"]["Version"] | null;
            /** @description When the score was reached, from 1970 to April 2262, with any offset; decides ties. A job whose `at` is more than five minutes after the queue took it is rejected with `future_time`; exactly five minutes are allowed. Default: when the queue took the job. */
            at?: components["schemas"]["TimeInput"] | null;
            /** @description 1 to 64 bytes that the sender makes of what happened. A job whose shard has applied one of the same id, within an hour unless the node is configured otherwise, changes nothing, whoever has sent it: its result has `repeated`. Default: each job counts. */
            id?: string | null;
            /** @description Replaces the entry's metadata. Default: left as it is. */
            meta?: components["schemas"]["Metadata"] | null;
        } | {
            /** @description If present, it must be the board of the path. */
            board?: string | null;
            /** @description If present, it must be the member of the path. */
            member?: string | null;
            score?: null;
            scores?: null;
            /** @enum {unknown} */
            op: "remove" | "hide" | "show";
            /** @description The job applies only if this is greater than the version stored for the member and the board, or of the profile, so that a repetition counts once. Of jobs that overtake each other the older one is rejected: an `incr` is not added then. Use `id` where several senders add. */
            version?: components["schemas"]["Version"] | null;
            /** @description When the score was reached, from 1970 to April 2262, with any offset; decides ties. A job whose `at` is more than five minutes after the queue took it is rejected with `future_time`; exactly five minutes are allowed. Default: when the queue took the job. */
            at?: components["schemas"]["TimeInput"] | null;
            /** @description 1 to 64 bytes that the sender makes of what happened. A job whose shard has applied one of the same id, within an hour unless the node is configured otherwise, changes nothing, whoever has sent it: its result has `repeated`. Default: each job counts. */
            id?: string | null;
            meta?: null;
        };
        /** @description The write is stored in its stream, and will be applied. */
        Accepted: {
            token: components["schemas"]["Token"];
        };
        /** @description What the entry was before. */
        Previous: {
            score: components["schemas"]["Score"];
            /** @description Its rank. */
            rank: number;
            /** @description Its position. */
            position: number;
        };
        /** @description What a job did on a board. */
        Change: {
            /** @description Whether the entry is another one afterwards for a reader who may see hidden ones: its score, its place among ties, `updated_at`, its metadata, or whether it is there. Of `hide` and `show`: whether the ban began or ended. */
            changed: boolean;
            entry: components["schemas"]["Entry"] | null;
            previous: components["schemas"]["Previous"] | null;
        };
        /** @description Whether a job did anything on a board. */
        Changed: {
            /** @description Whether the entry is another one afterwards for a reader who may see hidden ones: its score, its place among ties, `updated_at`, its metadata, or whether it is there. Of `hide` and `show`: whether the ban began or ended. */
            changed: boolean;
        };
        /** @description The outcome of the write. */
        EntryWritten: {
            token: components["schemas"]["Token"];
            /** @description Whether the entry is another one afterwards for a reader who may see hidden ones: its score, its place among ties, `updated_at`, its metadata, or whether it is there. Of `hide` and `show`: whether the ban began or ended. */
            changed?: boolean;
            entry?: components["schemas"]["Entry"] | null;
            previous?: components["schemas"]["Previous"] | null;
            /** @description With the parameter `windows`: the member's entries right after the write, by the names that were asked for; `null` where the job has entered no instance, and for all of it if the entries cannot be read. */
            windows?: {
                [key: string]: components["schemas"]["Entry"] | null;
            } | null;
            /**
             * @description Present if a job of this `id` was applied before: this one has changed nothing, and the entry is as it is now.
             * @constant
             */
            repeated?: true;
            /** @description With `repeated`: what came of the first one. */
            first?: {
                /** @description Whether it changed anything. */
                changed: boolean;
                token: components["schemas"]["Token"];
            };
            /** @description The shards that did not answer; none if the entries kept changing while they were counted. */
            missing?: number[];
        };
        /** @description The outcome of the removal. */
        MemberRemoved: {
            token: components["schemas"]["Token"];
            /** @description Whether the job changed anything: an entry on any board, the profile, or the ban of all boards. */
            changed?: boolean;
            entry?: null;
            previous?: null;
            /** @description Boards. */
            counts?: {
                /** @description The number of boards that had an entry, or a remembered removal, of the member. */
                boards: number;
                /** @description The number of boards that changed. */
                changed: number;
                /** @description The number of boards that a removal with a `version` has left, as theirs is not smaller. Absent if it has left nothing, the profile included. */
                left?: number;
            };
            /** @description What a removal with a `version` has left, and how to remove that: without one. Absent if it has left nothing. */
            detail?: string;
            /**
             * @description Present if a job of this `id` was applied before: this one has changed nothing, and the entry is as it is now.
             * @constant
             */
            repeated?: true;
            /** @description With `repeated`: what came of the first one. */
            first?: {
                /** @description Whether it changed anything. */
                changed: boolean;
                token: components["schemas"]["Token"];
            };
        };
        /** @description The outcome of one job. */
        JobResult: {
            /** @description Whether the entry is another one afterwards for a reader who may see hidden ones: its score, its place among ties, `updated_at`, its metadata, or whether it is there. Of `hide` and `show`: whether the ban began or ended. */
            changed?: boolean | false;
            entry?: (components["schemas"]["Entry"] | null) | null;
            previous?: (components["schemas"]["Previous"] | null) | null;
            /** @description For a job on several boards: the outcome on each. The `changed`, `entry` and `previous` next to it are those of the first board. */
            boards?: {
                [key: string]: components["schemas"]["Change"];
            } | {
                [key: string]: components["schemas"]["Changed"];
            };
            /** @description With the parameter `windows`: the member's entries right after the write, by the names that were asked for; `null` where the job has entered no instance, and for all of it if the entries cannot be read. */
            windows?: {
                [key: string]: components["schemas"]["Entry"] | null;
            } | null;
            /**
             * @description Present if a job of this `id` was applied before: this one has changed nothing, and the entry is as it is now.
             * @constant
             */
            repeated?: true;
            /** @description With `repeated`: what came of the first one. */
            first?: {
                /** @description Whether it changed anything. */
                changed: boolean;
                token: components["schemas"]["Token"];
            };
            /** @description The shards that did not answer; none if the entries kept changing while they were counted. */
            missing?: number[];
            /** @description Boards. */
            counts?: {
                /** @description The number of boards that had an entry, or a remembered removal, of the member. */
                boards: number;
                /** @description The number of boards that changed. */
                changed: number;
                /** @description The number of boards that a removal with a `version` has left, as theirs is not smaller. Absent if it has left nothing, the profile included. */
                left?: number;
            };
            /** @description What a removal with a `version` has left, and how to remove that: without one. Absent if it has left nothing. */
            detail?: string;
            /** @enum {unknown} */
            rejected?: "malformed" | "unknown_board" | "bad_member" | "bad_score" | "out_of_range" | "overflow" | "stale_version" | "closed_window" | "wrong_shard" | "too_large" | "future_time" | "read_only";
            /** @enum {unknown} */
            failed?: "overloaded" | "shard_unavailable" | "queue_full" | "commit_unknown" | "commit_failed" | "too_large";
            /** @constant */
            waits_for_board?: true;
            /** @constant */
            stored?: true;
        };
        /** @description The outcomes of the jobs, one result per job in their order. */
        JobsWritten: {
            /** @description A read with this as `after` sees these writes. */
            token: string | components["schemas"]["Token"];
            results?: components["schemas"]["JobResult"][];
        };
        /** @description A member's entry on a board. `meta` is `{}` if there is none, and `null` if it could not be read. */
        Entry: {
            board: components["schemas"]["BoardName"];
            window: components["schemas"]["InstanceName"];
            member: components["schemas"]["MemberId"];
            score: components["schemas"]["Score"];
            /** @description 1 + better; shared by equal scores, "1 2 2 4". */
            rank: number;
            /** @description The place in the total order, counted from 1; ties are ordered by the board's rule. */
            position: number;
            /** @description Entries with a better score. */
            better: number;
            /** @description Entries with this score, including the entry itself. */
            tied: number;
            /** @description Entries with a worse score. */
            worse: number;
            /** @description Entries of the instance: better + tied + worse. */
            total: number;
            /** @description 100 × worse / total: the share of entries with a worse score. Entries of equal score have the same percentile, and are not worse than each other. */
            percentile: number;
            updated_at: components["schemas"]["Time"];
            meta: components["schemas"]["Metadata"] | null;
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
            /** @description The member's profile; `null` if there is none, or if it could not be read. Present with `profile=true`. */
            profile?: components["schemas"]["Profile"] | null;
            /**
             * Format: int64
             * @description The entry's position when the current instance of the window asked for began, less its position now: positive if it has climbed. `null` if it was not listed then. Present with `movement`.
             */
            movement?: number | null;
            /** @description The most by which the score is too high. Present on boards of the kind `top_k`. */
            error?: components["schemas"]["Integer"];
            /** @description Present with `accuracy=approx`: the most by which `rank` and `position` can be off, as of the summaries that `as_of` names. 0 for the first 1,000. */
            rank_error?: number;
            /**
             * @description Present with `hidden=true`, of an entry that is hidden. `rank`, `position` and the counts are those that there would be if it were not: it counts itself.
             * @constant
             */
            hidden?: true;
            /**
             * @description Present with `hidden=true`, of an entry that is kept and not listed, because it is beyond the board's `capacity`. `rank`, `position` and the counts are those among all entries that are kept.
             * @constant
             */
            beyond_capacity?: true;
            reached_at?: components["schemas"]["Time"];
            version?: components["schemas"]["Version"];
        };
        /** @description A member's entries in several windows of a board. */
        EntryByWindow: {
            board: components["schemas"]["BoardName"];
            member: components["schemas"]["MemberId"];
            /** @description By the names that were asked for; `null` where the member has no entry. */
            windows: {
                [key: string]: components["schemas"]["Entry"] | null;
            };
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
        };
        /** @description A member's entry on another board than the one that is listed. */
        EntryOnBoard: {
            score: components["schemas"]["Score"];
            /** @description The most by which the score is too high. Present on boards of the kind `top_k`. */
            error?: components["schemas"]["Integer"];
            /** @description 1 + the number of entries of that board with a better score; shared by equal scores. Present with `with_rank=true`. */
            rank?: number;
        };
        /** @description An entry within a list. `reached_at`, the time at which the score was reached, is present if it was asked for and orders the board's ties; `version`, if it was asked for and a job had one. */
        ListedEntry: {
            member: components["schemas"]["MemberId"];
            score: components["schemas"]["Score"];
            /** @description 1 + the number of entries with a better score; shared by equal scores, "1 2 2 4". */
            rank: number;
            /** @description The place in the total order, counted from 1; ties are ordered by the board's rule. */
            position: number;
            updated_at: components["schemas"]["Time"];
            meta: components["schemas"]["Metadata"] | null;
            /** @description The member's profile; `null` if there is none, or if it could not be read. Present with `profile=true`. */
            profile?: components["schemas"]["Profile"] | null;
            /**
             * Format: int64
             * @description The entry's position when the current instance of the window asked for began, less its position now: positive if it has climbed. `null` if it was not listed then. Present with `movement`.
             */
            movement?: number | null;
            /** @description The most by which the score is too high. Present on boards of the kind `top_k`. */
            error?: components["schemas"]["Integer"];
            /** @description The member on the boards that the parameter `with` names; `null` where it is not listed. Present with `with`. */
            with?: {
                [key: string]: components["schemas"]["EntryOnBoard"] | null;
            };
            reached_at?: components["schemas"]["Time"];
            version?: components["schemas"]["Version"];
        };
        /** @description Entries in their order. `next_cursor` is the cursor of the next page, and `null` at the end. */
        Page: {
            board: components["schemas"]["BoardName"];
            window: components["schemas"]["InstanceName"];
            /** @description Entries of the instance. */
            total: number;
            entries: components["schemas"]["ListedEntry"][];
            next_cursor: string | null;
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
            /** @description The instance by which each of the boards was read that the parameter `with` names; `null` where there is no such instance now. Present with `with`. */
            with_windows?: {
                [key: string]: string | null;
            };
        };
        /** @description The data of the event `state`: all that is watched. */
        LiveState: {
            board: components["schemas"]["BoardName"];
            window: components["schemas"]["InstanceName"];
            /** @description Entries of the instance. */
            total: number;
            entries: components["schemas"]["ListedEntry"][];
            members: components["schemas"]["ListedEntry"][];
            not_found: components["schemas"]["MemberId"][];
            as_of: components["schemas"]["Token"];
            /**
             * @description Present if a shard does not answer, or does not apply what is published.
             * @constant
             */
            stale?: true;
        };
        /** @description The data of the event `changes`: `entries` of the top that are new in it or have changed, those who have `left` it, watched `members` whose entries have changed, and those who are on the board no longer (`not_found`). */
        LiveChanges: {
            board: components["schemas"]["BoardName"];
            window: components["schemas"]["InstanceName"];
            /** @description Entries of the instance. */
            total: number;
            entries: components["schemas"]["ListedEntry"][];
            left: components["schemas"]["MemberId"][];
            members: components["schemas"]["ListedEntry"][];
            not_found: components["schemas"]["MemberId"][];
            as_of: components["schemas"]["Token"];
            /**
             * @description Present if a shard does not answer, or does not apply what is published.
             * @constant
             */
            stale?: true;
        };
        /** @description The member and its neighbours, best first. */
        Neighbours: {
            board: components["schemas"]["BoardName"];
            window: components["schemas"]["InstanceName"];
            /** @description Entries of the instance. */
            total: number;
            entries: components["schemas"]["ListedEntry"][];
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
            /** @description The instance by which each of the boards was read that the parameter `with` names; `null` where there is no such instance now. Present with `with`. */
            with_windows?: {
                [key: string]: string | null;
            };
        };
        LookupInput: {
            /** @description Ids; repeated ones count once. */
            members: components["schemas"]["MemberId"][];
        };
        /** @description Those of the members who are on the board, best first, and those who are not. */
        Group: {
            board: components["schemas"]["BoardName"];
            window: components["schemas"]["InstanceName"];
            /** @description Entries of the instance. */
            total: number;
            entries: {
                /** @description Rank among the members asked for. */
                group_rank: number;
                member: components["schemas"]["MemberId"];
                score: components["schemas"]["Score"];
                /** @description 1 + the number of entries with a better score; shared by equal scores, "1 2 2 4". */
                rank: number;
                /** @description The place in the total order, counted from 1; ties are ordered by the board's rule. */
                position: number;
                updated_at: components["schemas"]["Time"];
                meta: components["schemas"]["Metadata"] | null;
                /** @description The member's profile; `null` if there is none, or if it could not be read. Present with `profile=true`. */
                profile?: components["schemas"]["Profile"] | null;
                /**
                 * Format: int64
                 * @description The entry's position when the current instance of the window asked for began, less its position now: positive if it has climbed. `null` if it was not listed then. Present with `movement`.
                 */
                movement?: number | null;
                /** @description The most by which the score is too high. Present on boards of the kind `top_k`. */
                error?: components["schemas"]["Integer"];
                /** @description The member on the boards that the parameter `with` names; `null` where it is not listed. Present with `with`. */
                with?: {
                    [key: string]: components["schemas"]["EntryOnBoard"] | null;
                };
            }[];
            not_found: components["schemas"]["MemberId"][];
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
            /** @description The instance by which each of the boards was read that the parameter `with` names; `null` where there is no such instance now. Present with `with`. */
            with_windows?: {
                [key: string]: string | null;
            };
        };
        /** @description A member's entries, by board. `next_cursor` is the cursor for entries on further boards, and `null` at the end. */
        MemberBoards: {
            member: components["schemas"]["MemberId"];
            /** @description What was asked for: the parameter `window`, or `all`; `null` with `windows`. `window` of an entry names the instance that it is of. */
            window: string | null;
            entries: components["schemas"]["Entry"][];
            not_found: components["schemas"]["BoardName"][];
            next_cursor: string | null;
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
            /** @description The member's profile, whether it has an entry or not; `null` if there is none, or if it could not be read. Present with `profile=true` and without `boards`, unless the token is confined to some boards. */
            profile?: components["schemas"]["Profile"] | null;
        };
        /** @description The rank of a score, whether a member has it or not. */
        Rank: {
            board: components["schemas"]["BoardName"];
            window: components["schemas"]["InstanceName"];
            score: components["schemas"]["Score"];
            /** @description The rank that this score has, or would have. */
            rank: number;
            /** @description Entries with a better score. */
            better: number;
            /** @description Entries with this score, including the entry itself. */
            tied: number;
            /** @description Entries with a worse score. */
            worse: number;
            /** @description Entries of the instance: better + tied + worse. */
            total: number;
            shards: {
                /** @description The shard's number. */
                shard: number;
                /** @description Better entries on the shard. */
                better: number;
                /** @description Equal entries on the shard. */
                tied: number;
                /** @description Entries on the shard. */
                total: number;
            }[];
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
            /** @description Present with `accuracy=approx`: the most by which `rank` and `position` can be off, as of the summaries that `as_of` names. 0 for the first 1,000. */
            rank_error?: number;
        };
        ScoresInput: {
            scores: components["schemas"]["ScoreInput"][];
        };
        /** @description The ranks of the scores, in their order. */
        Ranks: {
            board: components["schemas"]["BoardName"];
            window: components["schemas"]["InstanceName"];
            /** @description Entries of the instance. */
            total: number;
            ranks: {
                score: components["schemas"]["Score"];
                /** @description The rank that this score has, or would have. */
                rank: number;
                /** @description Entries with a better score. */
                better: number;
                /** @description Entries with this score, including the entry itself. */
                tied: number;
                /** @description Entries with a worse score. */
                worse: number;
                /** @description Entries of the instance: better + tied + worse. */
                total: number;
                shards: {
                    /** @description The shard's number. */
                    shard: number;
                    /** @description Better entries on the shard. */
                    better: number;
                    /** @description Equal entries on the shard. */
                    tied: number;
                    /** @description Entries on the shard. */
                    total: number;
                }[];
                /** @description Present with `accuracy=approx`: the most by which `rank` and `position` can be off, as of the summaries that `as_of` names. 0 for the first 1,000. */
                rank_error?: number;
            }[];
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
        };
        /** @description The score at that place, and how many entries have it. */
        Place: {
            board: components["schemas"]["BoardName"];
            window: components["schemas"]["InstanceName"];
            score: components["schemas"]["Score"];
            /** @description Its rank. */
            rank: number;
            /** @description Entries with a better score. */
            better: number;
            /** @description Entries with this score, including the entry itself. */
            tied: number;
            /** @description Entries with a worse score. */
            worse: number;
            /** @description Entries of the instance: better + tied + worse. */
            total: number;
            /** @description 100 × worse / total: the share of entries with a worse score. Entries of equal score have the same percentile, and are not worse than each other. */
            percentile: number;
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
        };
        /** @description How many entries lie between the bounds, both inclusive. A bound that was not sent is `null`. */
        Count: {
            board: components["schemas"]["BoardName"];
            window: components["schemas"]["InstanceName"];
            /** @description Entries of the instance. */
            total: number;
            min: components["schemas"]["Integer"] | null;
            max: components["schemas"]["Integer"] | null;
            /** @description Entries whose first key lies between the bounds. */
            count: number;
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
        };
        /** @description Entries by their first key. Buckets include both of their bounds. */
        Histogram: {
            board: components["schemas"]["BoardName"];
            window: components["schemas"]["InstanceName"];
            /** @description Entries of the instance. */
            total: number;
            buckets: {
                min: components["schemas"]["Integer"];
                max: components["schemas"]["Integer"];
                /** @description Entries in the bucket. */
                count: number;
            }[];
            /** @description Entries below the first bucket. */
            below: number;
            /** @description Entries above the last one. */
            above: number;
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
        };
        /** @description The score at each percentile, in the order asked for. On a board without entries `score` is `null`, alone. */
        Percentiles: {
            board: components["schemas"]["BoardName"];
            window: components["schemas"]["InstanceName"];
            /** @description Entries of the instance. */
            total: number;
            percentiles: {
                p: number;
                score: components["schemas"]["Score"] | null;
                /** @description Its rank. */
                rank?: number;
                /** @description Entries with a better score. */
                better?: number;
                /** @description Entries with this score, including the entry itself. */
                tied?: number;
                /** @description Entries with a worse score. */
                worse?: number;
                /** @description Entries of the instance: better + tied + worse. */
                total?: number;
                /** @description 100 × worse / total: the share of entries with a worse score. Entries of equal score have the same percentile, and are not worse than each other. */
                percentile?: number;
            }[];
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
        };
        CombineInput: {
            /**
             * @description Boards, and what their scores are multiplied by.
             * @example {
             *       "chess": 1,
             *       "go": 2
             *     }
             */
            boards: {
                [key: string]: number;
            };
            /**
             * @default union
             * @enum {string}
             */
            combine?: "union" | "inter" | "diff";
            /**
             * @description What is made of a member's scores. `diff` has one score of each.
             * @default sum
             * @enum {string}
             */
            aggregate?: "sum" | "min" | "max";
            /**
             * @description Which results are best: the greatest or the least. By default as the boards have it, which must agree.
             * @enum {string}
             */
            order?: "desc" | "asc";
            /** @description The board from which `diff` takes the others away; by default the first one that `boards` has. */
            first?: string;
            /**
             * @description How many entries the page has at most; 0 for the total, and the member, alone.
             * @default 10
             */
            limit?: number;
            /** @description The `next_cursor` of the page before, with the same boards, weights, combination and order. Pages go on in the instances of the first one. */
            cursor?: string;
            /** @description A member whose place in the result is wanted, too. */
            member?: string;
        };
        /** @description A member, and what comes of its scores. */
        CombinedEntry: {
            member: components["schemas"]["MemberId"];
            score: components["schemas"]["Score"];
            /** @description 1 + the number of members with a better result; shared by equal ones, "1 2 2 4". */
            rank: number;
            /** @description The place in the total order, counted from 1. */
            position: number;
        };
        /** @description A member's place in the result. */
        CombinedMember: {
            member: components["schemas"]["MemberId"];
            score: components["schemas"]["Score"];
            /** @description 1 + the number of members with a better result; shared by equal ones, "1 2 2 4". */
            rank: number;
            /** @description The place in the total order, counted from 1. */
            position: number;
            /** @description Members with a better result. */
            better: number;
            /** @description Members with the same result, itself included. */
            tied: number;
            /** @description Members with a worse result. */
            worse: number;
            /** @description All members of the result. */
            total: number;
            /** @description 100 × worse / total. */
            percentile: number;
        };
        /** @description Boards together, best first. */
        CombinedBoards: {
            /** @description The instance by which each board was read. */
            windows: {
                [key: string]: components["schemas"]["InstanceName"];
            };
            /** @description Members of the result. */
            total: number;
            entries: components["schemas"]["CombinedEntry"][];
            next_cursor: string | null;
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
            /** @description The member that was asked for; `null` if it is not in the result. Present with `member`. */
            member?: components["schemas"]["CombinedMember"] | null;
        };
        /** @description A copy of a shard on its way from another node. */
        Copying: {
            /** @description The node that gives it. */
            from: string;
            /** @description Bytes that have arrived. Once all have, the copy is checked and loaded. */
            bytes: number;
            /** @description Bytes of all files. */
            total: number;
        };
        /** @description A node that owns a shard, as of what was last heard of it. */
        Owner: {
            /** @description Its name. */
            node: string;
            /**
             * @description `silent`: nothing was heard of the node for ten seconds. `unknown`: the node is alive and does not say.
             * @enum {unknown}
             */
            state: "live" | "catching_up" | "halted" | "silent" | "unknown";
            /** @description The last sequence that it has applied; `null`: unknown. */
            applied_sequence: number | null;
            /** @description Messages that it has not applied yet; `null`: unknown. */
            lag: number | null;
            /** @description What its last checkpoint holds; `null`: unknown. */
            checkpoint_sequence: number | null;
            /** @description With NATS, the hash of what it has applied, `sequence:hash`: equal on all owners at the same sequence. `null`: unknown. */
            hash: string | null;
        };
        /** @description A node on the same streams. */
        KnownNode: {
            /** @description Its name, which `--node` sets. */
            node: string;
            /** @description Where it answers, as a URL; `null`: unknown. */
            address: string | null;
            /** @description The version of ranktree that it runs; `null`: unknown. */
            version: string | null;
            /** @description Something was heard of it within the last ten seconds. */
            alive: boolean;
            /** @description Time since something was last heard of it. */
            silent_seconds: number;
            /** @description Why this node cannot read what the other says of itself, or cannot say anything of itself. */
            problem: string | null;
        };
        /** @description A job that was refused. */
        Reject: {
            /** @description The shard that the job was published to. */
            shard: number;
            /** @description Its message's place in the shard's queue. */
            sequence: number;
            /** @description Its place in the message, counted from 0. */
            index: number;
            rejected_at: components["schemas"]["Time"];
            /**
             * @description Stable; the same code is `rejected` in the job's result.
             * @enum {unknown}
             */
            reason: "malformed" | "unknown_board" | "bad_member" | "bad_score" | "out_of_range" | "overflow" | "stale_version" | "closed_window" | "wrong_shard" | "too_large" | "future_time" | "read_only";
            /** @description What was wrong with this job, for people to read. */
            detail: string;
            /** @description The job as it was sent. A string if that is not JSON, or was cut to 4 KiB. */
            job: unknown;
        };
        /** @description Rejects, newest first. */
        RejectList: {
            rejects: components["schemas"]["Reject"][];
            next_cursor: string | null;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
        };
        /** @description The state of a shard. */
        Shard: {
            /** @description Its number. */
            shard: number;
            /**
             * @description `local`: this node owns it. `remote`: it does not; the fields that tell of its files and its stream are absent, and `owners` tells of the nodes that own it.
             * @enum {unknown}
             */
            owner: "local" | "remote";
            /**
             * @description Of a `remote` shard the best of its owners' states, or `no_owner`.
             * @enum {unknown}
             */
            state: "live" | "catching_up" | "halted" | "silent" | "unknown" | "no_owner";
            /** @description Why it is not live. */
            reason: string | null;
            /** @description Which of its files were found damaged since the start, and what to do. */
            damage: string | null;
            /** @description The last sequence that is applied. */
            applied_sequence?: number;
            /** @description The last sequence in its queue, as far as it is known. */
            last_sequence?: number;
            /** @description Messages that are not applied yet. */
            lag?: number;
            /** @description Members that the shard knows. */
            members?: number;
            /** @description Jobs that were rejected since the shard was created. */
            rejects?: number;
            /** @description With NATS: jobs that wait for their board to be defined. */
            parked?: number;
            /** @description With NATS: how full its stream is; `null` until it was first read. */
            stream?: components["schemas"]["Stream"] | null;
            /** @description With NATS: the copy of another node's data that is being fetched; `null` if none is. */
            copying?: components["schemas"]["Copying"] | null;
            /** @description What the last checkpoint holds. */
            checkpoint_sequence?: number;
            owners: components["schemas"]["Owner"][];
        };
        /** @description How full a shard's stream is, as it was read a second ago or less. The bytes of the parts are estimates. */
        Stream: {
            /**
             * @description `nearly_full` from seven eighths on; `full`: publishers are refused.
             * @enum {unknown}
             */
            level: "roomy" | "nearly_full" | "full";
            /** @description What is wrong with the settings of the stream, or that there is no stream of rejects; otherwise what holds the stream's messages. And what to do. `null` if nothing is wrong and it is `roomy`. */
            reason: string | null;
            /** @description Which other node messages are held for, or why that is unknown; `null` if none are. */
            held_for: string | null;
            /** @description Bytes in the stream. */
            bytes: number;
            /** @description Bytes that the stream may hold; `null`: no limit. */
            bytes_max: number | null;
            /** @description Messages in the stream. */
            messages: number;
            /** @description Messages that the stream may hold; `null`: no limit. */
            messages_max: number | null;
            /** @description Why messages are still in the stream. Each is counted once, under the first of these reasons that applies. */
            held_by: {
                /** @description Not applied yet. */
                lag: {
                    /** @description Messages. */
                    messages: number;
                    /** @description Bytes, estimated. */
                    bytes: number;
                };
                /** @description In no checkpoint yet. */
                checkpoint: {
                    /** @description Messages. */
                    messages: number;
                    /** @description Bytes, estimated. */
                    bytes: number;
                };
                /** @description Younger than the stream's duplicate window, or not known to be older. */
                duplicate_window: {
                    /** @description Messages. */
                    messages: number;
                    /** @description Bytes, estimated. */
                    bytes: number;
                };
                /** @description Needed by another node, whose last checkpoint does not hold them. */
                nodes: {
                    /** @description Messages. */
                    messages: number;
                    /** @description Bytes, estimated. */
                    bytes: number;
                };
                /** @description Kept by `--nats-keep`, or never purged because of `--nats-no-purge`. */
                keep: {
                    /** @description Messages. */
                    messages: number;
                    /** @description Bytes, estimated. */
                    bytes: number;
                };
            };
        };
        /** @description Bans. `next_cursor` is the cursor of the next page, and `null` at the end. */
        HiddenList: {
            hidden: components["schemas"]["Ban"][];
            next_cursor: string | null;
            as_of: components["schemas"]["AsOf"];
            /**
             * @description Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date.
             * @enum {boolean}
             */
            stale?: true;
            /** @description Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined. */
            missing?: number[];
        };
        /** @description Who is hidden. */
        Ban: {
            member: components["schemas"]["MemberId"];
            /** @description On which board, in all its instances; `null`: on all boards, those to come included. */
            board: components["schemas"]["BoardName"] | null;
            since: components["schemas"]["Time"];
        };
        /** @description The state of the node. A token that is confined to some boards is not told what counts the members and jobs of all boards: its shards lack `members`, `rejects`, `parked`, `stream` and `copying`, and have `null` as `reason` and `damage`. */
        Status: {
            version: string;
            /** @description Every shard that the node owns is live, and its lag is under the limit; after the lag has exceeded the limit, it must fall below half of it. */
            ready: boolean;
            /** @description A shard's stream is full or nearly full or was changed, the stream of rejects is gone, files of a shard are damaged, its time is far ahead of the node's clock, the node's clock is over a second from the NATS server's, no node that runs owns a shard, or jobs have waited over a minute for their board; its `stream` or `damage`, or `/readyz`, says why. */
            degraded: boolean;
            read_only: components["schemas"]["ReadOnly"];
            /** @description Whether a job for a board that does not exist creates it; `--no-auto-create` rejects it. */
            auto_create: boolean;
            /** @description The name of this node. */
            node: string;
            nodes: components["schemas"]["KnownNode"][];
            shards: components["schemas"]["Shard"][];
        };
        /** @description Why and since when writes are refused with `read_only`; `null` if they are taken. Of a board: also while the service is read-only. */
        ReadOnly: {
            /** @description Text without control characters. */
            reason: string;
            since: components["schemas"]["Time"];
        } | null;
        /** @description What is to be read-only, and why. */
        ReadOnlyInput: {
            /** @description Absent: the service, with all boards, those to come included. */
            board?: components["schemas"]["BoardName"] | null;
            /** @description `false`: it takes writes again. */
            readonly: boolean;
            /** @description Needed where `readonly` is true. Who is refused is told it. */
            reason?: string | null;
        };
        /** @description Whether it is read-only now. */
        ReadOnlySet: {
            board: components["schemas"]["BoardName"] | null;
            readonly: boolean;
            reason: string | null;
            since: components["schemas"]["Time"] | null;
            /** @description Names every shard, with a sequence from which on that holds there. */
            token: string;
        };
        /** @description An RFC 9457 problem. `code` is stable; `detail` is for people. */
        Problem: {
            /** @description `urn:ranktree:problem:` and the code. */
            type: string;
            title: string;
            status: number;
            /** @enum {unknown} */
            code: "malformed" | "unknown_board" | "bad_member" | "bad_score" | "out_of_range" | "overflow" | "stale_version" | "closed_window" | "future_time" | "read_only" | "wrong_shard" | "too_large" | "unauthorized" | "invalid_token" | "insufficient_scope" | "forbidden_board" | "forbidden_profile" | "foreign_origin" | "unknown_route" | "method_not_allowed" | "unknown_member" | "unknown_window" | "unknown_position" | "bad_parameter" | "bad_cursor" | "unsupported" | "invalid_definition" | "unknown_shard" | "no_manual_seasons" | "season_conflict" | "too_many_seasons" | "would_drop" | "board_differs" | "too_many_boards" | "body_too_slow" | "unsupported_coding" | "internal" | "overloaded" | "shard_unavailable" | "shard_damaged" | "queue_full" | "commit_unknown" | "commit_failed" | "unknown_snapshot" | "too_many_snapshots" | "snapshot_failed" | "not_ready" | "other_history" | "not_yet_applied";
            detail: string;
            /** @description For `POST /v1/jobs`: which jobs are invalid. No job of the request was applied. */
            errors?: {
                /** @description Its place in the request, counted from 0. */
                index: number;
                /** @enum {unknown} */
                code: "malformed" | "unknown_board" | "bad_member" | "bad_score" | "out_of_range" | "overflow" | "stale_version" | "closed_window" | "wrong_shard" | "too_large" | "future_time" | "read_only";
                detail: string;
            }[];
            /** @description For `POST /v1/jobs` that failed in part: names the jobs that were stored. Absent if none was. */
            token?: string;
            /** @description For `POST /v1/jobs` that failed in part: the outcome of each job. */
            results?: components["schemas"]["JobResult"][];
            /** @description For `/readyz`: the state of each shard that the node owns. A node that asks for tokens shows `shard` and `state` only; `/v1/status` has the rest. Otherwise: the numbers of the shards that no node answers for, or that this node does not own. */
            shards?: (number | {
                /** @description Its number. */
                shard: number;
                /**
                 * @description `local`: this node owns it. `remote`: it does not; the fields that tell of its files and its stream are absent, and `owners` tells of the nodes that own it.
                 * @enum {unknown}
                 */
                owner?: "local" | "remote";
                /**
                 * @description Of a `remote` shard the best of its owners' states, or `no_owner`.
                 * @enum {unknown}
                 */
                state: "live" | "catching_up" | "halted" | "silent" | "unknown" | "no_owner";
                /** @description Why it is not live. */
                reason?: string | null;
                /** @description Which of its files were found damaged since the start, and what to do. */
                damage?: string | null;
                /** @description The last sequence that is applied. */
                applied_sequence?: number;
                /** @description The last sequence in its queue, as far as it is known. */
                last_sequence?: number;
                /** @description Messages that are not applied yet. */
                lag?: number;
                /** @description Members that the shard knows. */
                members?: number;
                /** @description Jobs that were rejected since the shard was created. */
                rejects?: number;
                /** @description With NATS: jobs that wait for their board to be defined. */
                parked?: number;
                /** @description With NATS: how full its stream is; `null` until it was first read. */
                stream?: components["schemas"]["Stream"] | null;
                /** @description With NATS: the copy of another node's data that is being fetched; `null` if none is. */
                copying?: components["schemas"]["Copying"] | null;
                /** @description What the last checkpoint holds. */
                checkpoint_sequence?: number;
                owners?: components["schemas"]["Owner"][];
            })[];
        };
        /**
         * Format: date-time
         * @description RFC 3339 with any offset, or a `Date`.
         * @example 2026-11-20T09:59:58Z
         */
        TimeInput: string | Date;
        /** @description What `boards` may be asked with. */
        BoardsQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
            /**
             * @description How many boards the page has at most.
             * @default 1000
             */
            limit?: number;
            /** @description The `next_cursor` of the page before; empty means the first page. */
            cursor?: string;
        };
        /** @description What `put_board` may be asked with. */
        PutBoardQuery: {
            /**
             * @description `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every write waits.
             * @enum {string}
             */
            wait?: "applied";
            /**
             * @description Whether instances and entries may be dropped.
             * @default false
             */
            force?: boolean;
        };
        /** @description What `board` may be asked with. */
        BoardQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
            /**
             * @description How many instances of a window are listed at most. An answer lists 1,000 in all: where several windows are listed, each has its share.
             * @default 100
             */
            limit?: number;
            /** @description One of the `next_cursors` of the page before: only instances of its window are listed, older ones. Empty means the first page. */
            cursor?: string;
        };
        /** @description What `delete_board` may be asked with. */
        DeleteBoardQuery: {
            /**
             * @description `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every write waits.
             * @enum {string}
             */
            wait?: "applied";
        };
        /** @description What `clear_board` may be asked with. */
        ClearBoardQuery: {
            /**
             * @description `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every write waits.
             * @enum {string}
             */
            wait?: "applied";
        };
        /** @description What `trim_board` may be asked with. */
        TrimBoardQuery: {
            /**
             * @description `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every write waits.
             * @enum {string}
             */
            wait?: "applied";
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
        };
        /** @description What `open_season` may be asked with. */
        OpenSeasonQuery: {
            /**
             * @description `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every write waits.
             * @enum {string}
             */
            wait?: "applied";
            /**
             * @description Whether a season is opened also where the request looks like a repeated one.
             * @default false
             */
            force?: boolean;
        };
        /** @description What `move_season` may be asked with. */
        MoveSeasonQuery: {
            /**
             * @description `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every write waits.
             * @enum {string}
             */
            wait?: "applied";
        };
        /** @description What `cancel_season` may be asked with. */
        CancelSeasonQuery: {
            /**
             * @description `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every write waits.
             * @enum {string}
             */
            wait?: "applied";
        };
        /** @description What `put_member` may be asked with. */
        PutMemberQuery: {
            /**
             * @description `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every write waits.
             * @enum {string}
             */
            wait?: "applied";
            /**
             * @description `changed`: the answer says of each job only whether it changed anything, without `entry` and `previous`. Use it for a short answer if these are not needed. It has no effect on 202.
             * @enum {string}
             */
            results?: "changed";
            /**
             * @description Names of windows or instances, joined by commas, at most 64, in place of `window`. The answer has the member's entries there as `windows`, read right after the job, so that it tells which instances the job has entered: a window's name, and `*` for each, stands for the instance that the job's own time falls in, and is `null` if that was closed or had not begun. With `wait=applied` only. Of several jobs each names one board, and the answer shows up to 1,000 entries.
             * @example all,day
             * @example *
             */
            windows?: string;
        };
        /** @description What `delete_member` may be asked with. */
        DeleteMemberQuery: {
            /**
             * @description `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every write waits.
             * @enum {string}
             */
            wait?: "applied";
            /**
             * @description `changed`: the answer says of each job only whether it changed anything, without `entry` and `previous`. Use it for a short answer if these are not needed. It has no effect on 202.
             * @enum {string}
             */
            results?: "changed";
            /** @description The removal applies only if this is greater than the version stored for the member and the board. The version is remembered, so that a late retry of an older write does not create the entry again. */
            version?: components["schemas"]["Version"];
        };
        /** @description What `member` may be asked with. */
        MemberQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
            /**
             * @description The name of a window of the board, and not `all`: each entry has `movement`, how many positions it has climbed since the current instance of that window began. It is exact at the answer's `as_of`. Entries must be of `all`, and the board must be defined with `movement`; otherwise the answer is `bad_parameter`. A window that the board does not have is `unknown_window`.
             * @enum {string}
             */
            movement?: "hour" | "day" | "week" | "month" | "season";
            /**
             * @description Whether an entry is answered, too, that is kept and not listed: one that is hidden, with `hidden`, and one beyond the board's `capacity`, with `beyond_capacity`; each with the rank that it would have if it were listed. Such an entry has no `rank_error` and no `movement`, whatever was asked. Needs the scope `write`.
             * @default false
             */
            hidden?: boolean;
            /**
             * @description Names of windows or instances, joined by commas, at most 64, in place of `window`. `*` asks for the current instance of each window of the board.
             * @example all,day
             * @example *
             */
            windows?: string;
            /**
             * @description Whether an entry has `reached_at`, the time at which the score was reached, on boards where it orders ties. A copy of a board needs it to keep the order of ties. `updated_at` may be later.
             * @default false
             */
            reached_at?: boolean;
            /**
             * @description Whether an entry has `version`, the greatest one of the jobs that it took, if any had one. A copy of a board needs it to refuse what the board would refuse.
             * @default false
             */
            version?: boolean;
        };
        /** @description What `delete_everywhere` may be asked with. */
        DeleteEverywhereQuery: {
            /**
             * @description `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every write waits.
             * @enum {string}
             */
            wait?: "applied";
            /**
             * @description `changed`: the answer says of each job only whether it changed anything, without `entry` and `previous`. Use it for a short answer if these are not needed. It has no effect on 202.
             * @enum {string}
             */
            results?: "changed";
            /** @description The removal applies only if this is greater than the version stored for the member and the board. The version is remembered, so that a late retry of an older write does not create the entry again. */
            version?: components["schemas"]["Version"];
        };
        /** @description What `member_boards` may be asked with. */
        MemberBoardsQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
            /**
             * @description Names of windows or instances, joined by commas, at most 64, in place of `window`. `*` asks for the current instance of each window of a board that `boards` names; without `boards`, for every instance that holds an entry of the member.
             * @example all,day
             * @example *
             */
            windows?: string;
            /** @description Up to 1000 boards. A comma within a name is percent-encoded. Without it, all boards that the member is on, up to 1000 at a time. */
            boards?: components["schemas"]["BoardName"][];
            /** @description The `next_cursor` of the page before, without `boards`; empty means the first page. */
            cursor?: string;
            /**
             * @description Whether an entry is answered, too, that is kept and not listed: one that is hidden, with `hidden`, and one beyond the board's `capacity`, with `beyond_capacity`; each with the rank that it would have if it were listed. Such an entry has no `rank_error` and no `movement`, whatever was asked. Needs the scope `write`.
             * @default false
             */
            hidden?: boolean;
        };
        /** @description What `jobs` may be asked with. */
        JobsQuery: {
            /**
             * @description `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every write waits.
             * @enum {string}
             */
            wait?: "applied";
            /**
             * @description `changed`: the answer says of each job only whether it changed anything, without `entry` and `previous`. Use it for a short answer if these are not needed. It has no effect on 202.
             * @enum {string}
             */
            results?: "changed";
            /**
             * @description Names of windows or instances, joined by commas, at most 64, in place of `window`. The answer has the member's entries there as `windows`, read right after the job, so that it tells which instances the job has entered: a window's name, and `*` for each, stands for the instance that the job's own time falls in, and is `null` if that was closed or had not begun. With `wait=applied` only. Of several jobs each names one board, and the answer shows up to 1,000 entries.
             * @example all,day
             * @example *
             */
            windows?: string;
        };
        /** @description What `set_read_only` may be asked with. */
        SetReadOnlyQuery: {
            /**
             * @description `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a write without this parameter is answered 202 as soon as it is stored in the stream; without NATS every write waits.
             * @enum {string}
             */
            wait?: "applied";
        };
        /** @description What `around` may be asked with. */
        AroundQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
            /** @description Up to 8 boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`: its member's score on those boards, at the same `as_of`, and `null` where it is not listed, because it has no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what `window` asks for if it has such a window, and otherwise by its default window: `with_windows` says which. A board that there is not is `unknown_board`. Entries times boards are 8000 at most, and those that are counted, with `with_rank` or because the board has a capacity, 1000; over them the answer is `too_large`. */
            with?: components["schemas"]["BoardName"][];
            /**
             * @description Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score.
             * @default false
             */
            with_rank?: boolean;
            /**
             * @description How many entries before the member the answer has at most.
             * @default 4
             */
            above?: number;
            /**
             * @description How many entries after the member the answer has at most.
             * @default 4
             */
            below?: number;
            /**
             * @description Whether the other side has more entries if there are too few at an end of the board.
             * @default false
             */
            fill?: boolean;
            /**
             * @description The name of a window of the board, and not `all`: each entry has `movement`, how many positions it has climbed since the current instance of that window began. It is exact at the answer's `as_of`. Entries must be of `all`, and the board must be defined with `movement`; otherwise the answer is `bad_parameter`. A window that the board does not have is `unknown_window`.
             * @enum {string}
             */
            movement?: "hour" | "day" | "week" | "month" | "season";
        };
        /** @description What `lookup` may be asked with. */
        LookupQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
            /** @description Up to 8 boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`: its member's score on those boards, at the same `as_of`, and `null` where it is not listed, because it has no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what `window` asks for if it has such a window, and otherwise by its default window: `with_windows` says which. A board that there is not is `unknown_board`. Entries times boards are 8000 at most, and those that are counted, with `with_rank` or because the board has a capacity, 1000; over them the answer is `too_large`. */
            with?: components["schemas"]["BoardName"][];
            /**
             * @description Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score.
             * @default false
             */
            with_rank?: boolean;
            /**
             * @description The name of a window of the board, and not `all`: each entry has `movement`, how many positions it has climbed since the current instance of that window began. It is exact at the answer's `as_of`. Entries must be of `all`, and the board must be defined with `movement`; otherwise the answer is `bad_parameter`. A window that the board does not have is `unknown_window`.
             * @enum {string}
             */
            movement?: "hour" | "day" | "week" | "month" | "season";
        };
        /** @description What `combine` may be asked with. */
        CombineQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
        };
        /** @description What `top` may be asked with. */
        TopQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
            /** @description Up to 8 boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`: its member's score on those boards, at the same `as_of`, and `null` where it is not listed, because it has no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what `window` asks for if it has such a window, and otherwise by its default window: `with_windows` says which. A board that there is not is `unknown_board`. Entries times boards are 8000 at most, and those that are counted, with `with_rank` or because the board has a capacity, 1000; over them the answer is `too_large`. */
            with?: components["schemas"]["BoardName"][];
            /**
             * @description Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score.
             * @default false
             */
            with_rank?: boolean;
            /**
             * @description How many entries the page has at most.
             * @default 10
             */
            limit?: number;
            /** @description The `next_cursor` of the page before; empty means the first page. */
            cursor?: string;
            /**
             * @description The end to begin at, `top` by default. With a cursor it may be left out.
             * @enum {string}
             */
            from?: "top" | "bottom";
            /**
             * @description Whether an entry has `reached_at`, the time at which the score was reached, on boards where it orders ties. A copy of a board needs it to keep the order of ties. `updated_at` may be later.
             * @default false
             */
            reached_at?: boolean;
            /**
             * @description Whether an entry has `version`, the greatest one of the jobs that it took, if any had one. A copy of a board needs it to refuse what the board would refuse.
             * @default false
             */
            version?: boolean;
            /**
             * @description The name of a window of the board, and not `all`: each entry has `movement`, how many positions it has climbed since the current instance of that window began. It is exact at the answer's `as_of`. Entries must be of `all`, and the board must be defined with `movement`; otherwise the answer is `bad_parameter`. A window that the board does not have is `unknown_window`.
             * @enum {string}
             */
            movement?: "hour" | "day" | "week" | "month" | "season";
        };
        /** @description What `positions` may be asked with. */
        PositionsQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
            /** @description Up to 8 boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`: its member's score on those boards, at the same `as_of`, and `null` where it is not listed, because it has no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what `window` asks for if it has such a window, and otherwise by its default window: `with_windows` says which. A board that there is not is `unknown_board`. Entries times boards are 8000 at most, and those that are counted, with `with_rank` or because the board has a capacity, 1000; over them the answer is `too_large`. */
            with?: components["schemas"]["BoardName"][];
            /**
             * @description Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score.
             * @default false
             */
            with_rank?: boolean;
            /**
             * @description How many entries the page has at most.
             * @default 10
             */
            limit?: number;
        };
        /** @description What `range` may be asked with. */
        RangeQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
            /** @description Up to 8 boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`: its member's score on those boards, at the same `as_of`, and `null` where it is not listed, because it has no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what `window` asks for if it has such a window, and otherwise by its default window: `with_windows` says which. A board that there is not is `unknown_board`. Entries times boards are 8000 at most, and those that are counted, with `with_rank` or because the board has a capacity, 1000; over them the answer is `too_large`. */
            with?: components["schemas"]["BoardName"][];
            /**
             * @description Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score.
             * @default false
             */
            with_rank?: boolean;
            /** @description The least value. */
            min?: components["schemas"]["IntegerInput"];
            /** @description The greatest value; not below `min`. */
            max?: components["schemas"]["IntegerInput"];
            /**
             * @description How many entries the page has at most.
             * @default 10
             */
            limit?: number;
            /** @description The `next_cursor` of the page before; empty means the first page. */
            cursor?: string;
        };
        /** @description What `live` may be asked with. */
        LiveQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description How many of the best entries are watched.
             * @default 10
             */
            top?: number;
            /** @description Up to 100 members that are watched wherever they are. A comma within an id is percent-encoded. Over several nodes they may be of later sequences than `as_of` names. */
            members?: components["schemas"]["MemberId"][];
            /**
             * @description The most events a second.
             * @default 5
             */
            max_rate?: number;
        };
        /** @description What `rank` may be asked with. */
        RankQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
        };
        /** @description What `ranks_of` may be asked with. */
        RanksOfQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
        };
        /** @description What `score` may be asked with. */
        ScoreQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
            /** @description A rank, from 1. */
            rank?: number;
            /** @description A position, from 1. */
            position?: number;
            /** @description A percentile, 100 × worse / total, where equal scores are not worse than each other. The answer is the lowest score whose percentile is at least this, or the best score if no percentile is that high, for example because many share the best score. */
            percentile?: number;
        };
        /** @description What `count` may be asked with. */
        CountQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
            /** @description The least value. */
            min?: components["schemas"]["IntegerInput"];
            /** @description The greatest value; not below `min`. */
            max?: components["schemas"]["IntegerInput"];
        };
        /** @description What `histogram` may be asked with. */
        HistogramQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
            /**
             * @description How many buckets of about equal width the range from the least to the greatest score is cut into. Not with `edges`.
             * @default 20
             */
            buckets?: number;
            /** @description 2 to 1000 integers, each greater than the one before: the bounds of the buckets. A bucket ends just below the next edge; the last bucket includes its upper edge. */
            edges?: components["schemas"]["IntegerInput"][];
        };
        /** @description What `percentiles` may be asked with. */
        PercentilesQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
        };
        /** @description What `hidden` may be asked with. */
        HiddenQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
            /** @description Only bans that hold on this board: its own, and those of all boards. */
            board?: components["schemas"]["BoardName"];
            /** @description Only bans of this member. */
            member?: components["schemas"]["MemberId"];
            /**
             * @description How many bans the page has at most.
             * @default 10
             */
            limit?: number;
            /** @description The `next_cursor` of the page before; empty means the first page. */
            cursor?: string;
        };
        /** @description What `rejects` may be asked with. */
        RejectsQuery: {
            /**
             * @description What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's `window` names the instance that was read. An instance can be read from its beginning on, also while it has no entries, until it is dropped; others, and windows that the board does not have, are `unknown_window`.
             * @example day
             * @example 2026-W47
             */
            window?: string;
            /** @description Waits until the writes that the token names are visible. The token is the `token` of a write, or the `as_of` of another read. It may name some of the shards; a shard that the service does not have is refused with `unknown_shard`. */
            after?: components["schemas"]["Token"];
            /**
             * @description How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
             * @default 5000
             */
            timeout_ms?: number;
            /**
             * @description Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
             * @default false
             */
            partial?: boolean;
            /**
             * @description Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without entries take no notice of it.
             * @default false
             */
            profile?: boolean;
            /**
             * @description `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a member's entry can be approximate; other answers are always exact, and refuse it with `bad_parameter`.
             * @default exact
             * @enum {string}
             */
            accuracy?: "exact" | "approx";
            /** @description Only rejects of this shard. */
            shard?: number;
            /**
             * @description Only rejects for this reason.
             * @enum {unknown}
             */
            reason?: "malformed" | "unknown_board" | "bad_member" | "bad_score" | "out_of_range" | "overflow" | "stale_version" | "closed_window" | "wrong_shard" | "too_large" | "future_time" | "read_only";
            /** @description Only rejects of this member: those that the erasure of the member reaches. Of what is no readable job, those are listed in which the id stands as a JSON string. */
            member?: components["schemas"]["MemberId"];
            /**
             * @description How many rejects the page has at most.
             * @default 100
             */
            limit?: number;
            /** @description The `next_cursor` of the page before; empty means the first page. Send it with the same `shard`, `reason` and `member`. */
            cursor?: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type BoardName = components['schemas']['BoardName'];
export type InstanceName = components['schemas']['InstanceName'];
export type MemberId = components['schemas']['MemberId'];
export type IntegerInput = components['schemas']['IntegerInput'];
export type Integer = components['schemas']['Integer'];
export type ScoreInput = components['schemas']['ScoreInput'];
export type Score = components['schemas']['Score'];
export type Version = components['schemas']['Version'];
export type Time = components['schemas']['Time'];
export type Metadata = components['schemas']['Metadata'];
export type Profile = components['schemas']['Profile'];
export type Token = components['schemas']['Token'];
export type AsOf = components['schemas']['AsOf'];
export type KeyInput = components['schemas']['KeyInput'];
export type Key = components['schemas']['Key'];
export type Instance = components['schemas']['Instance'];
export type PlannedSeason = components['schemas']['PlannedSeason'];
export type DefinitionInput = components['schemas']['DefinitionInput'];
export type ListedBoard = components['schemas']['ListedBoard'];
export type Board = components['schemas']['Board'];
export type DefinedBoard = components['schemas']['DefinedBoard'];
export type BoardList = components['schemas']['BoardList'];
export type DroppedBoard = components['schemas']['DroppedBoard'];
export type SeasonInput = components['schemas']['SeasonInput'];
export type MovedSeasonInput = components['schemas']['MovedSeasonInput'];
export type CancelledSeason = components['schemas']['CancelledSeason'];
export type OpenedSeason = components['schemas']['OpenedSeason'];
export type TrimInput = components['schemas']['TrimInput'];
export type RemovedEntries = components['schemas']['RemovedEntries'];
export type Job = components['schemas']['Job'];
export type Jobs = components['schemas']['Jobs'];
export type EntryInput = components['schemas']['EntryInput'];
export type Accepted = components['schemas']['Accepted'];
export type Previous = components['schemas']['Previous'];
export type Change = components['schemas']['Change'];
export type Changed = components['schemas']['Changed'];
export type EntryWritten = components['schemas']['EntryWritten'];
export type MemberRemoved = components['schemas']['MemberRemoved'];
export type JobResult = components['schemas']['JobResult'];
export type JobsWritten = components['schemas']['JobsWritten'];
export type Entry = components['schemas']['Entry'];
export type EntryByWindow = components['schemas']['EntryByWindow'];
export type EntryOnBoard = components['schemas']['EntryOnBoard'];
export type ListedEntry = components['schemas']['ListedEntry'];
export type Page = components['schemas']['Page'];
export type LiveState = components['schemas']['LiveState'];
export type LiveChanges = components['schemas']['LiveChanges'];
export type Neighbours = components['schemas']['Neighbours'];
export type LookupInput = components['schemas']['LookupInput'];
export type Group = components['schemas']['Group'];
export type MemberBoards = components['schemas']['MemberBoards'];
export type Rank = components['schemas']['Rank'];
export type ScoresInput = components['schemas']['ScoresInput'];
export type Ranks = components['schemas']['Ranks'];
export type Place = components['schemas']['Place'];
export type Count = components['schemas']['Count'];
export type Histogram = components['schemas']['Histogram'];
export type Percentiles = components['schemas']['Percentiles'];
export type CombineInput = components['schemas']['CombineInput'];
export type CombinedEntry = components['schemas']['CombinedEntry'];
export type CombinedMember = components['schemas']['CombinedMember'];
export type CombinedBoards = components['schemas']['CombinedBoards'];
export type Copying = components['schemas']['Copying'];
export type Owner = components['schemas']['Owner'];
export type KnownNode = components['schemas']['KnownNode'];
export type Reject = components['schemas']['Reject'];
export type RejectList = components['schemas']['RejectList'];
export type Shard = components['schemas']['Shard'];
export type Stream = components['schemas']['Stream'];
export type HiddenList = components['schemas']['HiddenList'];
export type Ban = components['schemas']['Ban'];
export type Status = components['schemas']['Status'];
export type ReadOnly = components['schemas']['ReadOnly'];
export type ReadOnlyInput = components['schemas']['ReadOnlyInput'];
export type ReadOnlySet = components['schemas']['ReadOnlySet'];
export type Problem = components['schemas']['Problem'];
export type TimeInput = components['schemas']['TimeInput'];
export type BoardsQuery = components['schemas']['BoardsQuery'];
export type PutBoardQuery = components['schemas']['PutBoardQuery'];
export type BoardQuery = components['schemas']['BoardQuery'];
export type DeleteBoardQuery = components['schemas']['DeleteBoardQuery'];
export type ClearBoardQuery = components['schemas']['ClearBoardQuery'];
export type TrimBoardQuery = components['schemas']['TrimBoardQuery'];
export type OpenSeasonQuery = components['schemas']['OpenSeasonQuery'];
export type MoveSeasonQuery = components['schemas']['MoveSeasonQuery'];
export type CancelSeasonQuery = components['schemas']['CancelSeasonQuery'];
export type PutMemberQuery = components['schemas']['PutMemberQuery'];
export type DeleteMemberQuery = components['schemas']['DeleteMemberQuery'];
export type MemberQuery = components['schemas']['MemberQuery'];
export type DeleteEverywhereQuery = components['schemas']['DeleteEverywhereQuery'];
export type MemberBoardsQuery = components['schemas']['MemberBoardsQuery'];
export type JobsQuery = components['schemas']['JobsQuery'];
export type SetReadOnlyQuery = components['schemas']['SetReadOnlyQuery'];
export type AroundQuery = components['schemas']['AroundQuery'];
export type LookupQuery = components['schemas']['LookupQuery'];
export type CombineQuery = components['schemas']['CombineQuery'];
export type TopQuery = components['schemas']['TopQuery'];
export type PositionsQuery = components['schemas']['PositionsQuery'];
export type RangeQuery = components['schemas']['RangeQuery'];
export type LiveQuery = components['schemas']['LiveQuery'];
export type RankQuery = components['schemas']['RankQuery'];
export type RanksOfQuery = components['schemas']['RanksOfQuery'];
export type ScoreQuery = components['schemas']['ScoreQuery'];
export type CountQuery = components['schemas']['CountQuery'];
export type HistogramQuery = components['schemas']['HistogramQuery'];
export type PercentilesQuery = components['schemas']['PercentilesQuery'];
export type HiddenQuery = components['schemas']['HiddenQuery'];
export type RejectsQuery = components['schemas']['RejectsQuery'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
