import { generateKeyPairSync, sign } from 'node:crypto';

const SEQUENCE = 0x30;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const UTC_TIME = 0x17;
/** ecdsa-with-SHA256 */
const ALGORITHM = Buffer.from('300a06082a8648ce3d040302', 'hex');

function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

/** A key and a certificate for it that nobody has signed but its owner: enough for a TLS handshake without verification. */
export function selfSigned(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const nobody = der(SEQUENCE);
  const validity = [
    der(UTC_TIME, Buffer.from('200101000000Z')),
    der(UTC_TIME, Buffer.from('491231235959Z')),
  ];
  const body = der(
    SEQUENCE,
    der(INTEGER, Buffer.from([1])),
    ALGORITHM,
    nobody,
    der(SEQUENCE, ...validity),
    nobody,
    publicKey.export({ type: 'spki', format: 'der' }),
  );
  const signature = der(BIT_STRING, Buffer.from([0]), sign('sha256', body, privateKey));
  const text = der(SEQUENCE, body, ALGORITHM, signature).toString('base64');
  const cert = `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`;
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), cert };
}
