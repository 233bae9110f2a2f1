/** Terms without a library: a Standard Schema of one's own. */

import type { TermsSchema } from '../../src/index.js';

export interface Cups { price: number; currency: string }

export const cups = (price: number): Cups => ({ price, currency: 'EUR' });

export const Cups: TermsSchema<Cups> = {
  '~standard': {
    validate: (value) => {
      const { price, currency } = value as Partial<Cups>;
      return typeof price === 'number' && typeof currency === 'string' ? { value: { price, currency } } : { issues: [{ message: 'no cups' }] };
    },
  },
};
