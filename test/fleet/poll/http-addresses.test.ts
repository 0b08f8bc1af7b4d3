import { describe, expect, it } from 'vitest';
import {
  type AddressKind,
  isAllowed,
  isInside,
  kindOf,
  literalOf,
} from '../../../src/fleet/poll/http/addresses.ts';

describe('the kind of an address', () => {
  it.each<[string, AddressKind]>([
    ['1.1.1.1', 'public'],
    ['8.8.8.8', 'public'],
    ['172.15.255.255', 'public'],
    ['172.32.0.0', 'public'],
    ['100.63.255.255', 'public'],
    ['100.128.0.0', 'public'],
    ['223.255.255.255', 'public'],
    ['2606:4700::1111', 'public'],
    ['2001:200::1', 'public'],
    ['127.0.0.1', 'loopback'],
    ['127.255.255.255', 'loopback'],
    ['::1', 'loopback'],
    ['0:0:0:0:0:0:0:1', 'loopback'],
    ['10.0.0.1', 'private'],
    ['172.16.0.1', 'private'],
    ['172.31.255.255', 'private'],
    ['192.168.1.1', 'private'],
    ['100.64.0.1', 'private'],
    ['100.127.255.255', 'private'],
    ['fc00::1', 'private'],
    ['fdff::1', 'private'],
    ['169.254.169.254', 'metadata'],
    ['100.100.100.200', 'metadata'],
    ['168.63.129.16', 'metadata'],
    ['fd00:ec2::254', 'metadata'],
    ['fd00:ec2::23', 'metadata'],
    ['fd00:ec2:ffff::1', 'metadata'],
    ['fd00:ec3::254', 'private'],
    ['fd20:ce::254', 'metadata'],
    ['fd20:ce::253', 'private'],
    ['fd00:42::42', 'metadata'],
    ['fd00:42::43', 'private'],
    ['fd00:c1::a9fe:a9fe', 'metadata'],
    ['64:ff9b::169.254.169.254', 'metadata'],
    ['169.254.0.1', 'link-local'],
    ['fe80::1', 'link-local'],
    ['fe80::1%eth0', 'link-local'],
    ['febf::1', 'link-local'],
    ['224.0.0.1', 'multicast'],
    ['239.255.255.255', 'multicast'],
    ['ff02::1', 'multicast'],
    ['0.0.0.0', 'reserved'],
    ['0.1.2.3', 'reserved'],
    ['192.0.0.192', 'reserved'],
    ['192.0.2.1', 'reserved'],
    ['198.18.0.1', 'reserved'],
    ['198.51.100.1', 'reserved'],
    ['203.0.113.1', 'reserved'],
    ['240.0.0.1', 'reserved'],
    ['255.255.255.255', 'reserved'],
    ['::', 'reserved'],
    ['::7f00:1', 'reserved'],
    ['100::1', 'reserved'],
    ['2001::1', 'reserved'],
    ['2001:db8::1', 'reserved'],
    ['2002:7f00:1::1', 'reserved'],
    ['3fff::1', 'reserved'],
    ['4000::1', 'reserved'],
    ['64:ff9b:1::7f00:1', 'reserved'],
    ['fec0::1', 'reserved'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['::ffff:7f00:1', 'loopback'],
    ['0:0:0:0:0:ffff:10.0.0.1', 'private'],
    ['::FFFF:169.254.169.254', 'metadata'],
    ['::ffff:0.0.0.0', 'reserved'],
    ['::ffff:8.8.8.8', 'public'],
    ['64:ff9b::127.0.0.1', 'loopback'],
    ['64:ff9b::a00:1', 'private'],
    ['64:ff9b::808:808', 'public'],
    ['', 'reserved'],
    ['localhost', 'reserved'],
    ['127.1', 'reserved'],
    ['1.2.3.4.5', 'reserved'],
  ])('%s is %s', (address, kind) => {
    expect(kindOf(address)).toBe(kind);
  });
});

describe('an address', () => {
  const SAMPLES: Record<AddressKind, string> = {
    ...{ public: '1.1.1.1', loopback: '127.0.0.1', private: '10.0.0.1' },
    ...{ 'link-local': '169.254.1.1', metadata: '169.254.169.254', multicast: '224.0.0.1' },
    reserved: '0.0.0.0',
  };
  const polled = (...allow: ('loopback' | 'private')[]) =>
    Object.entries(SAMPLES)
      .filter(([, address]) => isAllowed(address, new Set(allow)))
      .map(([kind]) => kind);

  it('is polled if it is public, or of a zone that is allowed; others never', () => {
    expect(polled()).toEqual(['public']);
    expect(polled('loopback')).toEqual(['public', 'loopback']);
    expect(polled('private')).toEqual(['public', 'private']);
    expect(polled('loopback', 'private')).toEqual(['public', 'loopback', 'private']);
  });

  it.each([
    ['127.0.0.1', true],
    ['::ffff:127.0.0.1', true],
    ['10.0.0.1', true],
    ['1.1.1.1', false],
    ['169.254.1.1', false],
    ['', false],
    [undefined, false],
  ])('%s counts as inside: %s', (address, inside) => {
    expect(isInside(address)).toBe(inside);
  });

  it.each([
    ['http://127.0.0.1/', '127.0.0.1'],
    ['http://2130706433/', '127.0.0.1'],
    ['http://0x7f.1/', '127.0.0.1'],
    ['http://0177.0.0.1/', '127.0.0.1'],
    ['http://127.1/', '127.0.0.1'],
    ['http://127.0.0.1./', '127.0.0.1'],
    ['http://①②⑦.0.0.1/', '127.0.0.1'],
    ['http://[::1]/', '::1'],
    ['http://[::ffff:127.0.0.1]/', '::ffff:7f00:1'],
    ['http://localhost/', null],
    ['http://127.0.0.1.example/', null],
  ])('is found in %s', (url, address) => {
    expect(literalOf(new URL(url))).toBe(address);
  });
});
