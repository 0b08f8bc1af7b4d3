/** How many slots a Redis Cluster has. */
export const SLOTS = 16_384;

const CRC16 = crcTable();

/** The slot of a key: of its hash tag, where it has one. */
export function slotOf(key: string): number {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  return close > open + 1 ? slotOfPart(key, open + 1, close) : slotOfPart(key, 0, key.length);
}

function slotOfPart(key: string, from: number, to: number): number {
  let crc = 0;
  for (let i = from; i < to; i++) {
    const byte = key.charCodeAt(i);
    // Nearly always text is its own bytes; made into a buffer, it would cost as much as all the
    // rest.
    if (byte > 0x7f) return slotOfBytes(Buffer.from(key.slice(from, to)));
    crc = next(crc, byte);
  }
  return crc % SLOTS;
}

function slotOfBytes(bytes: Buffer): number {
  let crc = 0;
  for (const byte of bytes) crc = next(crc, byte);
  return crc % SLOTS;
}

function next(crc: number, byte: number): number {
  return ((crc << 8) ^ (CRC16[((crc >> 8) ^ byte) & 0xff] ?? 0)) & 0xffff;
}

/** CRC-16/XMODEM, which is what Redis uses. */
function crcTable(): Uint16Array {
  return Uint16Array.from({ length: 256 }, (_, byte) => {
    let crc = byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
    return crc & 0xffff;
  });
}
