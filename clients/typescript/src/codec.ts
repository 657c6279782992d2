// How requests and answers are written: JSON, paths and queries. Knows nothing of connections.
//
// Integers of 64 bits: JavaScript's numbers are exact up to 2^53 - 1. An integer within that is a `number`,
// and one beyond is a `bigint`, so that each has one form: `===` and `<` are right, also between the two.
// Doubles are numbers, and the infinities, which JSON does not have, are the service's "inf" and "-inf".

import { SHAPES, type components } from "./api.js";

/** What callers gave as JSON of their own, and get back as it is. */
const FREE_FORM = new Set(["job", "meta", "profile"]);
/** Fields of requests whose own fields are named by callers: by boards. */
const BY_BOARD = new Set(["boards", "scores"]);
/** From here on neither a score of integers nor a version has room, so that no such number can be meant. */
const INTEGERS_END = 2 ** 64;

/** The objects of the API, by their names. */
type Schemas = components["schemas"];
export type SchemaName = keyof Schemas;
export type Answer<N extends SchemaName> = Schemas[N];
type Shape = (typeof SHAPES)[string];

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
function checked(value: number, name: string, isFree: boolean): number | string {
  if (Number.isNaN(value)) throw new RangeError(`"${name}" is NaN, which is no number to send`);
  if (!Number.isFinite(value)) {
    if (isFree) throw new RangeError(`"${name}" is ${value}, which JSON does not have`);
    return value > 0 ? "inf" : "-inf";
  }
  const isInexact = Number.isInteger(value) && !Number.isSafeInteger(value);
  // Greater ones are doubles: a board of integers has no room for them, and refuses them.
  if (!isFree && isInexact && Math.abs(value) < INTEGERS_END) {
    const told = `"${name}" is ${value}, which may have been rounded`;
    throw new RangeError(`${told}: from 2^53 to 2^64, give a bigint, such as BigInt(value)`);
  }
  return value;
}

function written(time: Date): string {
  if (Number.isNaN(time.getTime())) throw new RangeError("a time is an invalid Date");
  return time.toISOString();
}

/**
 * An answer. Its integers beyond 2^53 are strings, and become `bigint`. Which strings are integers is told by
 * the place that they have in the object of the API that is `answered`, not by the names of fields: boards,
 * windows, and what is in metadata, have the names that callers gave them.
 */
export function decode(text: string, answered: SchemaName): unknown {
  return read(JSON.parse(text), answered);
}

function read(value: unknown, shape: Shape | undefined): unknown {
  if (shape === "integer") return Array.isArray(value) ? value.map(integer) : integer(value);
  if (typeof shape === "string") return read(value, SHAPES[shape]);
  if (shape === undefined || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return "each" in shape ? value.map((one) => read(one, shape.each)) : value;
  const entries = Object.entries(value).map(([field, inner]) => {
    if ("each" in shape) return [field, read(inner, shape.each)];
    return [field, Object.hasOwn(shape.fields, field) ? read(inner, shape.fields[field]) : inner];
  });
  return Object.fromEntries(entries);
}

function integer(value: unknown): unknown {
  if (value === "inf") return Infinity;
  if (value === "-inf") return -Infinity;
  if (typeof value !== "string" || !/^-?\d+$/.test(value)) return value;
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
  return encodeURIComponent(named(text));
}

/** The name of a board, or the id of a member, which the service could not take for none at all. */
export function named(text: string): string {
  if (typeof text !== "string") {
    throw new TypeError(`a name or a member's id is a string; got ${typeof text}`);
  }
  if (text === "") throw new RangeError("a name or a member's id is at least one character");
  // Half of a pair is not a character, and has no UTF-8.
  if (/\p{Surrogate}/u.test(text)) {
    throw new RangeError(`a name or a member's id has half of a character: ${JSON.stringify(text)}`);
  }
  return text;
}

/** The query of a request. `undefined` and `null` are left out. */
export function query(values: object): string {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  if (pairs.length === 0) return "";
  // Commas part the values of a list, and those within a value are percent-encoded. A list of one empty name
  // would be written as one that is empty.
  const one = (name: string) => (value: unknown) => encodeURIComponent(word(name, value));
  const listed = (value: unknown) => (typeof value === "string" ? named(value) : value);
  const words = pairs.map(([name, value]: [string, unknown]) => {
    const text = Array.isArray(value) ? value.map(listed).map(one(name)).join(",") : one(name)(value);
    return `${name}=${text}`;
  });
  return "?" + words.join("&");
}

function word(name: string, value: unknown): string {
  if (value instanceof Date) return written(value);
  return String(typeof value === "number" ? checked(value, name, false) : value);
}

/**
 * The address without a slash at its end. Messages of what is wrong with it do not show it: it may have a
 * password in it.
 */
export function baseUrl(url: string): string {
  const given = url.trim();
  if (!/^https?:\/\//i.test(given)) {
    throw new TypeError("a node's address begins with http:// or https://: http://127.0.0.1:8080");
  }
  if (!URL.canParse(given)) throw new TypeError("a node's address has a host or a port that no URL can have");
  const { username, password, search, hash, protocol, host, pathname } = new URL(given);
  if (username || password) {
    throw new TypeError("a node's address has no user and no password: give a token as the option bearer");
  }
  if (search || hash) throw new TypeError("a node's address has no query and no fragment: leave them out");
  return `${protocol}//${host}${pathname.replace(/\/+$/, "")}`;
}

/** The header of a token; none for no token. Messages do not show it. */
export function authorization(bearer: string | undefined): Record<string, string> {
  const token = bearer?.trim();
  if (!token) return {};
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new TypeError(
      "the option bearer has a space, a line break or another character within that no token has",
    );
  }
  return { Authorization: `Bearer ${token}` };
}
