// Sends connections of this process to other ports of this host: each instance reaches every server through a proxy of its
// own, also those whose addresses it learns from sentinels or from a Cluster.
import { Socket } from 'node:net';

export function detour(ports) {
  const { connect } = Socket.prototype;
  Socket.prototype.connect = function (...args) {
    const [first] = args;
    // Through net.connect they come normalised, as a list of options and callback.
    const isList = Array.isArray(first);
    const options = isList ? first[0] : first;
    // `pg` names port and host one after the other.
    const isBare = typeof first === 'number';
    const port = ports[isBare ? first : options?.port];
    if (port !== undefined && isBare) args[0] = port;
    else if (port !== undefined && isList) first[0] = { ...options, port };
    else if (port !== undefined) args[0] = { ...options, port };
    return connect.apply(this, args);
  };
}
