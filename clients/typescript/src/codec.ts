// How requests and answers are written: JSON, paths and queries. Knows nothing of connections.
//
// Integers of 64 bits: JavaScript's numbers are exact up to 2^53 - 1. An integer within that is a `number`,
// and one beyond is a `bigint`, so that each has one form: `===` and `<` are right, also between the two.

import { INTEGER_FIELDS } from "./api.js";

/** What callers gave as JSON of their own, and get back as it is. */
const FREE_FORM = new Set(["job", "meta", "profile"]);
/** Fields whose own fields are named by callers: by boards. */
const BY_BOARD = new Set(["boards", "scores", "totals"]);

/** Compact JSON. A `bigint` becomes a decimal string, which the service takes, and a `Date` RFC 3339. */
export function encode(value: unknown): string {
  return JSON.stringify(writable(value, "", false));
}

function writable(value: unknown, name: string, isFree: boolean): unknown {
  if (typeof value === "bigint") {
    if (isFree) throw new TypeError(`"${name}" is JSON of your own, which has no bigint: give a string`);
    return value.toString();
  }
  if (typeof value === "number") return checked(value, name, isFree);
  if (value instanceof Date) return written(value);
  if (Array.isArray(value)) return value.map((one) => writable(one, name, isFree));
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).map(([field, inner]) => {
      return [field, writable(inner, field, isFree || (FREE_FORM.has(field) && !BY_BOARD.has(name)))];
    });
    return Object.fromEntries(entries);
  }
  return value;
}

/** A number that says what its caller meant. */
function checked(value: number, name: string, isFree: boolean): number {
  if (!Number.isFinite(value)) throw new RangeError(`"${name}" is ${value}, which JSON does not have`);
  if (!isFree && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new RangeError(`"${name}" is ${value}, which may have been rounded: give a bigint beyond 2^53`);
  }
  return value;
}

function written(time: Date): string {
  if (Number.isNaN(time.getTime())) throw new RangeError("a time is an invalid Date");
  return time.toISOString();
}

/** JSON, in which integers beyond 2^53 are strings: they become `bigint`. */
export function decode(text: string): unknown {
  return read(JSON.parse(text), "");
}

function read(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return value.map((one) => read(one, ""));
  if (typeof value === "object" && value !== null) {
    const isByBoard = BY_BOARD.has(name);
    const entries = Object.entries(value).map(([field, inner]) => {
      return [field, isByBoard ? read(inner, "") : readField(field, inner)];
    });
    return Object.fromEntries(entries);
  }
  return value;
}

function readField(name: string, value: unknown): unknown {
  if (FREE_FORM.has(name)) return value;
  if (INTEGER_FIELDS.has(name)) {
    if (Array.isArray(value)) return value.map(integer);
    if (typeof value === "string") return integer(value);
  }
  return read(value, name);
}

function integer(value: unknown): unknown {
  if (typeof value !== "string") return value;
  const exact = BigInt(value);
  const near = Number(exact);
  return Number.isSafeInteger(near) ? near : exact;
}

/** A path of the API. */
export function path(...parts: string[]): string {
  return "/v1/" + parts.map(segment).join("/");
}

function segment(text: string): string {
  // URLs have no other way to write them: `fetch` takes `%2E%2E` for the folder above as well.
  if (text === "." || text === "..") {
    throw new RangeError(`"${text}" cannot be in a path: write it with writeMany, and read it with lookup`);
  }
  if (text === "") throw new RangeError("a name or a member's id is at least one character");
  return encodeURIComponent(text);
}

/** The query of a request. `undefined` and `null` are left out. */
export function query(values: object): string {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  if (pairs.length === 0) return "";
  // Commas part the values of a list, and those within a value are percent-encoded.
  const one = (name: string) => (value: unknown) => encodeURIComponent(word(name, value));
  const words = pairs.map(([name, value]: [string, unknown]) => {
    return `${name}=${Array.isArray(value) ? value.map(one(name)).join(",") : one(name)(value)}`;
  });
  return "?" + words.join("&");
}

function word(name: string, value: unknown): string {
  if (value instanceof Date) return written(value);
  return String(typeof value === "number" ? checked(value, name, false) : value);
}

/** The address without a slash at its end, and what it is called in messages. */
export function splitUrl(url: string): { base: string; called: string } {
  if (!/^https?:\/\//.test(url)) {
    throw new TypeError(`the address of a node begins with http:// or https://; got "${url}"`);
  }
  const base = url.replace(/\/+$/, "");
  return { base, called: base.split("@").pop() as string };
}
