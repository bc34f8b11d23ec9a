/** Talking to the plugin's server. Every failure becomes a `Failure`: what happened, why, and what helps. */

export interface Failure {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly cure?: string | undefined;
}

const PATIENCE_MS = 90_000;

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return send<T>(path, { method: "GET" }, signal);
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const headers = { "Content-Type": "application/json", "X-Lance-Request": "1" };
  return send<T>(path, { method: "POST", body: JSON.stringify(body), headers });
}

/** The address of a part of the API with its query; what is undefined is left out. */
export function apiPath(parts: readonly string[], query: Readonly<Record<string, string | number | boolean | undefined>> = {}): string {
  const kept = Object.entries(query).filter((entry) => entry[1] !== undefined && entry[1] !== "");
  const search = kept.length ? `?${new URLSearchParams(kept.map(([key, value]) => [key, String(value)])).toString()}` : "";
  return `lance/api/${parts.map(encodeURIComponent).join("/")}${search}`;
}

async function send<T>(path: string, init: RequestInit, signal?: AbortSignal): Promise<T> {
  const limit = AbortSignal.timeout(PATIENCE_MS);
  let answer: Response;
  try {
    const address = new URL(path, document.baseURI);
    answer = await fetch(address, { ...init, credentials: "same-origin", signal: signal ? AbortSignal.any([signal, limit]) : limit });
  } catch (error) {
    if (signal?.aborted) throw error;
    if (limit.aborted) throw failure(0, "timeout", `Airflow did not answer within ${PATIENCE_MS / 1000} s.`, "Try again.");
    throw failure(0, "offline", "Airflow cannot be reached.", "Look at your network, or whether the API server runs.");
  }
  const body: unknown = await answer.json().catch(() => undefined);
  if (!answer.ok) throw failureOf(answer.status, body);
  if (body === undefined) throw failure(answer.status, "no_json", "Airflow sent an answer that is not JSON.");
  return body as T;
}

const WORDS: Readonly<Record<number, readonly [string, string]>> = {
  401: ["You are not logged in.", "Log in to Airflow again and reload this page."],
  403: ["You do not have the right to see this.", "Ask an administrator of Airflow for it."],
  404: ["This does not exist.", "It may have been removed since the page was loaded."],
};

/** What an answer other than 2xx means: the server's own words, else those of the status. */
export function failureOf(status: number, body: unknown): Failure {
  const [message, cure] = WORDS[status] ?? [`Airflow answered with status ${status}.`, undefined];
  const said = fields(fields(body)?.["error"]);
  const detail = fields(body)?.["detail"];
  const part = (name: string): string | undefined => (typeof said?.[name] === "string" ? said[name] : undefined);
  const own = part("message") ?? (typeof detail === "string" ? detail : undefined);
  return failure(status, part("code") ?? "failed", own ?? message, part("cure") ?? cure);
}

function failure(status: number, code: string, message: string, cure?: string): Failure {
  return { status, code, message, cure };
}

function fields(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
}
