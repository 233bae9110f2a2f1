/** Where the program parley is. */

import { createRequire } from 'node:module';

/** Of `PARLEY_BINARY`, of the package for this platform, or on the PATH. */
export function program(): string {
  const { PARLEY_BINARY } = process.env;
  if (PARLEY_BINARY) return PARLEY_BINARY;
  const name = process.platform === 'win32' ? 'parley.exe' : 'parley';
  try {
    return createRequire(import.meta.url).resolve(`@parley-asp/parley-${process.platform}-${process.arch}/${name}`);
  } catch {
    return name;
  }
}
