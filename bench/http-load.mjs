/**
 * Requests over plain sockets, prepared as bytes and looked at no more than needed: whatever the loader takes of the processors is
 * missing where it is measured.
 */
import { connect } from 'node:net';
import { monotonicMs, quantile } from './statistics.mjs';

const ACCEPTED = 'HTTP/1.1 202 ';
const HEAD_END = '\r\n\r\n';
/** As wide as any channel's number, so that all bodies are of one length. */
const DIGITS = 9;

/**
 * So many connections, each with one request under way, for so long: `{ perSecond, p50Ms, p99Ms, sessions, isNew, cpuShare }`. `next()`
 * numbers the channels. Anything but 202 ends it.
 */
export async function load({ port, token, connections, forMs, next, isDeclared = false }) {
  const bytes = requestBytes({ port, token, isDeclared });
  const untilMs = monotonicMs() + forMs;
  const seen = { tookMs: [], sessions: new Set(), created: 0 };
  const cpu = process.cpuUsage();
  const startMs = monotonicMs();
  const lanes = Array.from({ length: connections }, () =>
    lane({ port, bytes, untilMs, next, seen }),
  );
  await Promise.all(lanes);
  const elapsedMs = monotonicMs() - startMs;
  const { user, system } = process.cpuUsage(cpu);
  return {
    perSecond: (seen.tookMs.length / elapsedMs) * 1_000,
    p50Ms: quantile(seen.tookMs, 0.5),
    p99Ms: quantile(seen.tookMs, 0.99),
    requests: seen.tookMs.length,
    created: seen.created,
    sessions: seen.sessions.size,
    cpuShare: (user + system) / 1_000 / elapsedMs,
  };
}

function requestBytes({ port, token, isDeclared }) {
  const body = (number) => {
    const ref = `1:0:19:${String(number).padStart(DIGITS, '0')}:3FB:1:C00000:0:0:0:`;
    const params = { file: ref, preset: 'hd' };
    return JSON.stringify(
      isDeclared
        ? { type: 'start', kind: 'transcode', params }
        : { type: 'stream.start', serviceRef: ref, profile: 'hd' },
    );
  };
  const head = [
    'POST /api/v3/intents HTTP/1.1',
    `Host: 127.0.0.1:${port}`,
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${body(0).length}`,
  ].join('\r\n');
  return (number) => head + HEAD_END + body(number);
}

/** One request after the other over one connection. */
function lane({ port, bytes, untilMs, next, seen }) {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    let sentMs = 0;
    let text = '';
    const send = () => {
      sentMs = monotonicMs();
      if (sentMs >= untilMs) return socket.end();
      socket.write(bytes(next()), 'latin1');
    };
    socket.on('connect', send);
    socket.on('error', reject);
    socket.on('close', () => resolve());
    socket.on('data', (chunk) => {
      text += chunk.latin1Slice();
      if (!isWhole(text)) return;
      if (!text.startsWith(ACCEPTED)) {
        socket.destroy(new Error(`answered with: ${text}`));
        return;
      }
      seen.tookMs.push(monotonicMs() - sentMs);
      if (text.includes('"replayed":false')) seen.created++;
      const id = /"sessionId":"([^"]+)"/.exec(text)?.[1];
      if (id !== undefined && seen.sessions.size < 2) seen.sessions.add(id);
      text = '';
      send();
    });
  });
}

/** By its length where it says one, else by the last of its chunks. */
function isWhole(text) {
  const headEnd = text.indexOf(HEAD_END);
  if (headEnd === -1) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
  if (length === undefined) return text.endsWith(`\r\n0${HEAD_END}`);
  return text.length >= headEnd + HEAD_END.length + Number(length);
}
