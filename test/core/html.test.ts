import { describe, expect, it } from 'vitest';
import { html, prose } from '../../src/core/html.ts';

describe('html', () => {
  it('is text wherever something is put in', () => {
    const evil = `"><script>alert('&')</script>`;
    const shown = '&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;';
    expect(html`<a title="${evil}">${evil}</a>`.text).toBe(`<a title="${shown}">${shown}</a>`);
    expect(html`${[html`<b>${1}</b>`, evil]}`.text).toBe(`<b>1</b>${shown}`);
  });

  it('has code where prose has backticks', () => {
    expect(prose('say `a<b`, or `c`').text).toBe('say <code>a&lt;b</code>, or <code>c</code>');
    expect(prose('one ` alone').text).toBe('one <code> alone</code>');
  });
});
