// Why a request has no answer, and whether anything of it was sent.

/** Of a connection that could not be made: nothing was sent. Browsers do not tell. */
const UNSENT = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
  // What fetch refuses to send.
  "ERR_INVALID_URL",
  "UND_ERR_INVALID_ARG",
  // The handshake of TLS comes before the request: with a port that has none, or other versions,
  "ERR_SSL_WRONG_VERSION_NUMBER",
  "ERR_SSL_PACKET_LENGTH_TOO_LONG",
  "ERR_SSL_UNSUPPORTED_PROTOCOL",
  "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION",
  "ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE",
  // and with a certificate that is not taken.
  "CERT_HAS_EXPIRED",
  "CERT_NOT_YET_VALID",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/** Steps before a connection is there, and failures during them that have no code of their own. */
const BEFORE = new Set(["connect", "getaddrinfo"]);
const UNSENT_WORDS = /^bad port$|before secure TLS connection was established/;

interface Cause {
  code?: string;
  message?: string;
  syscall?: string;
  errors?: Cause[];
}

/** Whether a request failed before anything of it was sent. */
export function isUnsent(error: unknown): boolean {
  const cause = causeOf(error);
  return cause !== undefined && isBefore(cause);
}

function isBefore({ code = "", message = "", syscall = "", errors = [] }: Cause): boolean {
  if (UNSENT.has(code) || BEFORE.has(syscall) || UNSENT_WORDS.test(message)) return true;
  // Of a name with several addresses, each of which was tried.
  return errors.length > 0 && errors.every(isBefore);
}

function causeOf(error: unknown): Cause | undefined {
  const cause = error instanceof Error ? error.cause : undefined;
  return typeof cause === "object" && cause !== null ? cause : undefined;
}

/** Why a request failed, in the words of what is closest to the network. */
export function reason(error: unknown): string {
  const cause = causeOf(error);
  const told = cause?.message || cause?.code || (error instanceof Error ? error.message : String(error));
  return told.trim();
}
