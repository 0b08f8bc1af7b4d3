/** How many slots a Redis Cluster has. */
export const SLOTS = 16_384;

const CRC16 = crcTable();

/** The slot of a key: of its hash tag, where it has one. */
export function slotOf(key: string): number {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  const tag = close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc = ((crc << 8) ^ (CRC16[((crc >> 8) ^ byte) & 0xff] ?? 0)) & 0xffff;
  }
  return crc % SLOTS;
}

/** CRC-16/XMODEM, which is what Redis uses. */
function crcTable(): Uint16Array {
  return Uint16Array.from({ length: 256 }, (_, byte) => {
    let crc = byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
    return crc & 0xffff;
  });
}
