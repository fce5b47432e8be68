/** What the generator is told to do for one turn. */
export interface Job {
  target: HttpTarget | GrpcTarget;
  connections: number;
  seconds: number;
  /** Requests that fall due each second, whatever the answers take; undefined: each connection asks again once it is answered. */
  rate?: number;
}

export interface HttpTarget {
  kind: "http";
  port: number;
  /** Whole HTTP/1.1 requests, sent in turn. */
  requests: string[];
  /** The status that every answer has to have. */
  status: number;
}

export interface GrpcTarget {
  kind: "grpc";
  /** Such as `127.0.0.1:40124`. */
  address: string;
  /** Such as `GetSandbox`. */
  method: string;
  /** Messages as JSON, sent in turn. */
  requests: object[];
  metadata: Record<string, string>;
  /** The code that every answer has to have; 0: success. */
  status: number;
}

export interface Outcome {
  /** Answers as they should be. */
  answers: number;
  /** All others, by their status. */
  others: Record<string, number>;
  /** How long it took, in milliseconds. */
  tookMs: number;
  /** The generator's own CPU, in milliseconds. */
  cpuMs: number;
  /** From when a request was due, or sent where there is no rate, to its answer. */
  latency: { p50: number; p90: number; p99: number; most: number };
  /** Of an open loop: how late requests were sent though a connection was free, 99th percentile. */
  lateP99: number;
}

/** One connection to a target, or as good as one: sends one request at a time. */
export interface Connection {
  /** @param done told the answer's status once it is there */
  send(done: (status: number) => void): void;
  close(): void;
}
