//go:build browser

package browser

import (
	"context"
	"os"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// calls is what a human does at the command line.
func (w *world) calls(a performatives.Agent, verb string, request any) []byte {
	w.Helper()
	data, err := json.Marshal(request)
	testkit.Must(w, err)
	reply := w.Principal(a).Call(verb, string(data))
	if code := testkit.Code(w, reply); code != "" {
		w.Fatalf("%s: %s", verb, reply.Data)
	}
	return reply.Data
}

func (b *browser) scheme(value string) {
	b.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}},
		})
		return err
	}))
}

func (b *browser) dark()  { b.Helper(); b.scheme("dark") }
func (b *browser) light() { b.Helper(); b.scheme("light") }

// fits asserts that nobody has to scroll sideways.
func (b *browser) fits() {
	b.Helper()
	// Not innerWidth: a phone makes that as wide as what runs out of it.
	if over := get[float64](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		b.Errorf("the page is %g pixels wider than the window, which has %g; beyond it are %s", over, get[float64](b, `document.documentElement.clientWidth`), get[string](b, `[...document.body.querySelectorAll('*')]
  .filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5).slice(0, 6).map((e) => e.outerHTML.slice(0, 90)).join('\n')`))
	}
}

// readable asserts WCAG AA on all text that is shown: 4.5 to 1, and 3 to 1 for
// large text. What is switched off may be fainter.
func (b *browser) readable() {
	b.Helper()
	faults := get[string](b, `(() => {
  const rgb = (c) => {
    const p = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    p.fillStyle = c; p.fillRect(0, 0, 1, 1);
    const d = p.getImageData(0, 0, 1, 1).data;
    return [d[0], d[1], d[2], d[3] / 255];
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const behind = (e) => {
    const layers = [];
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c[3] > 0) layers.push(c);
      if (c[3] === 1) break;
    }
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const faults = new Set();
  for (const e of document.body.querySelectorAll('*')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || e.closest('.sr, [disabled], kbd, .skip')) continue;
    const s = getComputedStyle(e);
    const under = behind(e);
    const [a, z] = [light(over(rgb(s.color), under)), light(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (z + 0.05);
    const size = parseFloat(s.fontSize);
    const needs = size >= 24 || (size >= 18.66 && s.fontWeight >= 700) ? 3 : 4.5;
    if (ratio < needs) faults.add(e.tagName + '.' + e.className + ' "' + e.innerText.slice(0, 30) + '" ' + ratio.toFixed(2));
  }
  return [...faults].join('\n');
})()`)
	if strings.TrimSpace(faults) != "" {
		b.Errorf("too faint to read:\n%s", faults)
	}
}

// accessible asserts that axe-core finds nothing on the page as it is.
func (b *browser) accessible(where string) {
	b.Helper()
	script, err := os.ReadFile(*axe)
	if err != nil {
		b.Fatalf("axe-core, which .ci/browser gets: %v", err)
	}
	get[bool](b, string(script)+"\n;true")
	faults := get[string](b, `axe.run(document, { resultTypes: ['violations'], preload: false }).then((r) => r.violations.map((v) =>
  v.id + ': ' + v.help + '\n' + v.nodes.slice(0, 4).map((n) => '    ' + n.html.slice(0, 160)).join('\n')).join('\n'))`)
	if faults != "" {
		b.Errorf("%s: axe-core finds\n%s", where, faults)
	}
}
